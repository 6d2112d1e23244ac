/* Slots on lease, for what is not a job: hold.lua's and its neighbours'. */
#pragma once

#include <signal.h>

#include "core/client/answer.h"

#define HOLD_TTL_USUAL_S 30
#define HOLD_TTL_MOST_S 86400

/* weir_hold, or weir_hold_costs where costs is not NULL, until *stopped. *asked_us: a time by CLOCK_BOOTTIME from which it lasts for its ttl at least. */
WEIR_CHECKED int hold_take(struct weir *w, const char *target, int64_t cost, const char *costs, double ttl_s,
                           double most_s, const volatile sig_atomic_t *stopped, struct weir_hold *hold,
                           int64_t *asked_us);
/* Who holds slots of a limit: {"token", "key", "cost", "since", "until", "who"} each, times in us. The caller's. */
WEIR_CHECKED int hold_list(struct weir *w, const char *limit, json_t **rows);
