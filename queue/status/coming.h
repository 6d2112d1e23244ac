/* Which jobs of a limit start next: coming.lua's answer. */
#pragma once

#include "queue/limits/limits.h"

/* now_us < 0: Redis's time. At most `most` (1 to 50) jobs of a limit, in the order in which they start: *jobs is the caller's, NULL after a failure, a list
 * of {"type", "queue", "id", "key", "list", "place", "of", "start"}: start: us, at the earliest, as its rules go and the gate of its key; not there: when a job ends. Key: not
 * there: it has none. Other limits of its type may hold a job for longer; of more than 20 types, or 100 queues, some are not looked at. */
WEIR_CHECKED int coming_ask(struct weir *w, int64_t now_us, const struct limits *limits,
                            const struct limit *limit, int most, json_t **jobs);
