/* Rules that one key of a limit has for itself, for a time or until they are removed (throttle/key_rules.lua). They replace the keyed rules of the
 * limit for that key. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

struct json_t; /* jansson */
struct weir;

/* A change of the rules of a key. */
struct key_change {
    const char *limit, *key; /* key: as jobs have it, any text */
    const char *rules;       /* joined by blanks, without by=; NULL: removes them */
    int64_t for_us;          /* or RATE_ENDLESS */
    bool
        closes; /* after that time nothing starts, until they are set again or removed; else the limit's rules hold */
    int64_t revision; /* nothing is done unless that of the key is this one; below 0: whatever it is */
    bool dry;         /* changes nothing */
};

/* Makes the change, and has what waits for the key looked at. *answer: that of rate_set_key.lua, the caller's; NULL after a failure. WEIR_ENOTFOUND:
 * there is no such limit, or nothing to remove. WEIR_ENOTNOW: the key has another revision. */
WEIR_CHECKED int key_rules_change(struct weir *w, const struct key_change *change, struct json_t **answer);
/* Reads the keys of a limit that have rules of their own, or one of them (key not NULL): *rows: key -> its row of rate_key_rules.lua, with `by`, the path of the
 * limit; the caller's. *now_us, *count: Redis's time; how many there are. */
WEIR_CHECKED int key_rules_read(struct weir *w, const char *limit, const char *key, struct json_t **rows,
                                int64_t *now_us, int64_t *count);
