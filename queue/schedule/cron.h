/* When a schedule is due: five fields as in crontab(5), "@daily" and the like, or "every 15m". Times are
 * whole seconds since 1970. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "core/zone.h"

struct cron {
    int64_t every_s; /* not 0: at its multiples, counted from 1970 in UTC; the rest is not used */
    /* Bit n: at minute n, in hour n, on day n, in month n (January is 1), on weekday n (Sunday is 0). */
    uint64_t minutes, hours, days, months, weekdays;
    bool any_hour, any_day, any_weekday; /* that field begins with a star */
};

/* WEIR_EINPUT: what is wrong and what to write. */
WEIR_CHECKED int cron_parse(const char *text, struct cron *cron, struct error *e);

#define CRON_NEVER INT64_MAX
/* Finds the first occurrence after that time; CRON_NEVER: none before the year 2100. * Day and weekday: when neither begins with a star,
 * either one is enough. Where the clock is set forward, what falls into the gap is due once at its end; where it is set back, what stands
 * in the repeated hour is due in the first one only. With a star in the field of the hour each real hour counts instead: both repeated
 * ones, none in a gap. */
int64_t cron_next(const struct cron *cron, const struct zone *zone, int64_t after_s);
