/* Random rules of gcra, for tests of all that reads or keeps rules. */
#pragma once

#include <string.h>

#include "tests/random.h"
#include "throttle/rule.h"

/* A rule of gcra, the algorithm of rules that name none. */
#define GCRA(n, period, at_once)                                                                             \
    {                                                                                                        \
        .count = (n), .period_us = (period), .burst = (at_once)                                              \
    }

/* 1 to high, each magnitude about as likely. */
static inline int64_t random_magnitude(uint64_t *state, int64_t high)
{
    int bits = 0;
    int64_t top;

    while (bits < 61 && (INT64_C(2) << bits) <= high)
        bits++;
    top = INT64_C(2) << random_in(state, 0, bits);
    return random_in(state, 1, top < high ? top : high);
}

/* The rates that must be exact, with a burst of their own half of the time, and any rule that is valid. */
static inline struct rule random_rule(uint64_t *state)
{
    static const struct rule known[] = {
        GCRA(7, 1000000, 7),
        GCRA(30000, 1000000, 30000),
        GCRA(1000000, 1000000, 1000000),
        GCRA(1, 1500000, 1),
        GCRA(1, 86400000000, 1),
        GCRA(100, 1000000, 10),
        GCRA(1000, 1000000, 1),
        GCRA(5000, 1000000, 1),
        GCRA(1000000000, 1000000001, 1000000000),
        GCRA(3, 315360000000000, 2),
        GCRA(10000, 86400000000, 10000),
    };
    const int64_t ten_years = INT64_C(3650) * 86400 * 1000000;
    struct rule r = known[random_in(state, 0, sizeof known / sizeof *known - 1)];
    __int128 burst_max;

    if (random_in(state, 0, 2) == 0) {
        r.count = random_magnitude(state, 1000000000);
        r.period_us = r.count - 1 + random_magnitude(state, ten_years - r.count + 1);
    }
    burst_max = (__int128)ten_years * r.count / r.period_us + 1;
    if (burst_max > 1000000000)
        burst_max = 1000000000;
    if (r.burst > burst_max || random_in(state, 0, 1))
        r.burst = random_magnitude(state, (int64_t)burst_max);
    return r;
}

/* Makes a rule one whose windows turn by local clocks, as odd as they may be. */
static inline void random_calendar(uint64_t *state, struct rule *rule)
{
    static const int64_t days[] = {1, 7, 30}; /* 30: a month */
    struct zone_rule *zone = &rule->zone;
    int latest = random_in(state, 0, 3) ? 192 : 668; /* 668: after 167 hours, as in TZ of POSIX */

    rule->period_us = days[random_in(state, 0, 2)] * 86400000000;
    rule->offset_us = random_in(state, 0, 1) ? 0 : random_in(state, 0, 95) * 900000000;
    *zone = (struct zone_rule){.is_set = true, .std_s = (int)random_in(state, -56, 56) * 900};
    zone->dst_s = zone->std_s;
    if (random_in(state, 0, 3) == 0)
        return;
    zone->changes = true;
    zone->dst_s += (int)random_in(state, 1, 8) * (random_in(state, 0, 1) ? 900 : -900);
    zone->to_dst =
        (struct zone_change){(int)random_in(state, 1, 5), (int)random_in(state, 1, 5),
                             (int)random_in(state, 0, 6), (int)random_in(state, -96, latest) * 900};
    zone->to_std =
        (struct zone_change){(int)random_in(state, 8, 11), (int)random_in(state, 1, 5),
                             (int)random_in(state, 0, 6), (int)random_in(state, -96, latest) * 900};
    if (random_in(state, 0, 1)) {
        struct zone_change change = zone->to_dst;

        zone->to_dst = zone->to_std;
        zone->to_std = change;
    }
}

/* A rule of any algorithm, perhaps keyed, perhaps one that adapts. */
static inline struct rule random_any_rule(uint64_t *random)
{
    struct rule r = random_rule(random);

    r.algorithm = (enum algorithm)random_in(random, 0, ALGORITHM_COUNT - 1);
    if (r.algorithm == ALGORITHM_CONCURRENCY)
        return (struct rule){.algorithm = r.algorithm, .count = random_in(random, 1, 20)};
    if (r.algorithm == ALGORITHM_SLIDING_LOG && r.count > 300)
        r.count = random_in(random, 1, 300);
    if (r.algorithm != ALGORITHM_GCRA && r.algorithm != ALGORITHM_TOKEN_BUCKET)
        r.burst = r.count;
    if (r.algorithm == ALGORITHM_FIXED_WINDOW)
        r.offset_us = random_in(random, 0, r.period_us - 1);
    if (r.algorithm == ALGORITHM_FIXED_WINDOW && random_in(random, 0, 2) == 0)
        random_calendar(random, &r);
    r.of_jobs = random_in(random, 0, 3) == 0;
    if (random_in(random, 0, 2) == 0) {
        r.adapt_low = (int)random_in(random, 1, 999);
        r.adapt_high = random_in(random, 0, 1) ? 1000 : (int)random_in(random, r.adapt_low + 1, 1000);
    }
    if (random_in(random, 0, 3) == 0)
        strcpy(r.by, "args.customer");
    return r;
}
