/* The keys of a limit by their backlog: weir rate keys --json, GET /api/rates/NAME/keys. */
#pragma once

#include "view/document.h"

#define RATE_KEYS_SHOWN 20

/* Reads one key; key NULL: the longest. now_us (may be NULL): Redis's time. */
WEIR_CHECKED int view_rate_keys(struct weir *w, const char *limit, int most, const char *key, json_t **doc,
                                int64_t *now_us);
/* Adds to a limit's document its paused keys; nothing where that cannot be read. */
/* Returns until when a key of such a document is paused or throttled; FORMAT_ENDLESS_US: until somebody resumes it. */
int64_t rate_key_until(const struct json_t *row);
void limit_add_paused_keys(struct weir *w, const char *name, json_t *doc);
