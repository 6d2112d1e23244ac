/* What somebody has set, read whole, and whether a type could be held otherwise: rate_export, rate_fits. */
#pragma once

#include "core/client/answer.h"

/* *rows: those of rate_export.lua, of all partitions; the caller's, NULL after a failure. *now_us: Redis's time. */
WEIR_CHECKED int rate_export(struct weir *w, json_t **rows, int64_t *now_us);
/* WEIR_EINPUT: why the type could not be held by these limits at that cost, as people write it. rules[i]: as rule_set_write has them; "": as they are. */
WEIR_CHECKED int rate_fits(struct weir *w, const char *type, const char *cost, const char *const *limits,
                           const char *const *rules, size_t count);
