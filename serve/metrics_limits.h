/* The rows of limits in /metrics. */
#pragma once

#include "queue/status/status.h"
#include "serve/metrics_text.h"

/* Asks Redis for what was recorded of limits. */
void metrics_limits(struct metrics *m, struct weir *w, const struct all_limits *all);
