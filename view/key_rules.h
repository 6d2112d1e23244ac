/* Keys of a limit with rules of their own, as JSON documents and in words. */
#pragma once

#include <stdio.h>

#include "core/client/client.h"
#include "queue/limits/key_rules.h"
#include "view/json.h"

/* Makes the document of a row of rate_key_rules.lua, or of "is" or "was" of rate_set_key.lua: {"rules", "until", "at_end", "closed", "revision"}; null: there is
 * none. */
json_t *key_rules_document(const json_t *row);
/* Makes that of a change, {"name", "key", "own", "own_before"}, and of a dry one how many of the key's jobs wait in lanes. */
json_t *key_change_document(const struct key_change *change, const json_t *answer);
/* Reads the keys of a limit that have rules of their own: an array, {"key", and what those have}, the caller's. */
WEIR_CHECKED int view_key_rules(struct weir *w, const char *limit, json_t **doc, int64_t *now_us);
/* Puts "50/s,burst=5 until 14:05:00, then closed". */
void key_rules_put(FILE *to, const json_t *doc, int64_t now_us);
