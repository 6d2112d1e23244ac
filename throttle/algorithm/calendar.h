/* Windows that turn by the clocks of a place: its days, its weeks from Monday, its months; in days of 23 and 25 hours too.
 *
 * A window begins when local clocks first show its beginning or a later time, and lasts until the next one begins. */
#pragma once

#include "throttle/algorithm/state.h"

/* The periods of a rule with a zone. A month counts as 30 days where only its length matters. */
#define CALENDAR_DAY_US INT64_C(86400000000)
#define CALENDAR_WEEK_US (7 * CALENDAR_DAY_US)
#define CALENDAR_MONTH_US (30 * CALENDAR_DAY_US)

/* Returns when the n-th window behind that of at_us begins; n = 0: when its own does. at_us: from 1970 on. */
int64_t calendar_window(const struct rule *rule, int64_t at_us, int64_t n);
/* Returns what such a period is: "day", "week" or "month". */
const char *calendar_unit(int64_t period_us);
/* Returns the length of the shortest window. */
int64_t calendar_shortest(const struct rule *rule);
/* Returns what is added to UTC at that time, both in seconds. */
int zone_rule_offset(const struct zone_rule *zone, int64_t at_s);
