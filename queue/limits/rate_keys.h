/* The keys of a limit that have the most jobs parked, and who is paused: rate_keys.lua. */
#pragma once

#include "core/client/answer.h"

#define RATE_KEYS_MOST 100 /* in one answer */

/* key NULL: the longest, most of them at most; else this one alone, any text. *answer: the script's, the caller's (json_decref); NULL after a
 * failure. WEIR_ENOTFOUND: there is no such limit; WEIR_EINPUT: it has no keys. */
WEIR_CHECKED int rate_keys_read(struct weir *w, const char *limit, int most, const char *key,
                                json_t **answer);
