/* Types as a whole: paused, whether a limit holds them or not, resumed, and forgotten when nothing of them is left. */
#pragma once

#include "core/client/answer.h"
#include "queue/limits/rate_request.h"

/* *answer: "before" and "pause" as queue/state/reasons.lua describes a pause, null where there is none; the caller's, NULL after a failure.
 * WEIR_ENOTFOUND: no job, worker or limit has that name, and how->create does not say that it is meant. */
WEIR_CHECKED int type_pause(struct weir *w, const char *type, const struct pausing *how, json_t **answer);
/* WEIR_ENOTFOUND: there is no such type. WEIR_EINPUT: something is left of it, which the error names. */
WEIR_CHECKED int type_remove(struct weir *w, const char *type);
