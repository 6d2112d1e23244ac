/* What the algorithms work on: a rule, and the state of one gate. rule.h and gate.h have what is done with them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum algorithm {
    ALGORITHM_GCRA,
    ALGORITHM_TOKEN_BUCKET,
    ALGORITHM_FIXED_WINDOW,
    ALGORITHM_SLIDING_LOG,
    ALGORITHM_SLIDING_WINDOW,
    ALGORITHM_CONCURRENCY,
    ALGORITHM_COUNT,
};

/* Slots are granted so far ahead of now (exact.AHEAD in Lua), and at most so far to a worker that is far away. */
#define GATE_AHEAD_US 5000
#define GATE_AHEAD_MOST_US 210000

#define RULE_PATH_SIZE 129
#define RULE_OF_SIZE 33
#define RULE_ZONE_SIZE 65

/* A change of local clocks, the same every year: on that weekday (0: Sunday) of that week of a month (5: the last), at_s after midnight
 * of the clocks until then. */
struct zone_change {
    int month, week, weekday, at_s;
};

/* Local time: what is added to UTC, and when that changes. */
struct zone_rule {
    bool is_set, changes;
    int std_s, dst_s; /* dst_s: from to_dst to to_std */
    struct zone_change to_dst, to_std;
};

struct rule {
    int64_t count;     /* 1 to 10^9: starts in a period; concurrency: jobs in flight */
    int64_t period_us; /* T is at least 1 us: at most 1,000,000/s; concurrency: 0 */
    int64_t burst;     /* the most that can start at once: burst= of gcra and token-bucket; else the count */
    int64_t offset_us; /* fixed-window: 0 to below the period; else 0 */
    /* fixed-window: its windows are the days, weeks from Monday, or months of those local clocks: CALENDAR_*_US is the period */
    struct zone_rule zone;
    enum algorithm algorithm;
    int place;                 /* in its limit, from 0: the index in the keys of its gates */
    int adapt_low, adapt_high; /* thousandths of the count; 0: the rate is what it is */
    bool of_jobs;              /* a job takes one slot, whatever it costs */
    char of[RULE_OF_SIZE];     /* else which part of the cost it counts; "": the plain one */
    char by[RULE_PATH_SIZE];   /* "": one gate for all */
    char zone_name[RULE_ZONE_SIZE];
};

#define TEN_YEARS_US (INT64_C(3650) * 86400 * 1000000) /* the longest period: below 2^49 */

#define GATE_WORDS 3
#define GATE_NEVER INT64_MAX
struct gate_entry {
    int64_t at_us, slots;
};

/* A low is a start, at us + rem / count, that found less in use than all later ones. */
struct gate_low {
    int64_t start_us, us, rem;
};
#define GATE_LOWS 16
#define GATE_FORMER 4 /* in Redis */

/* Members may be read; the functions of gate.h change them. */
struct gate {
    struct rule rule;         /* in force: the base at its present rate */
    struct rule base;         /* as it was set */
    int64_t pause_until_us;   /* 0: not paused */
    int factor;               /* adapt=: thousandths of the rate at since_us; 0: the full rate */
    int64_t since_us;         /* when it fell to that */
    int64_t in_flight;        /* jobs that have not ended: concurrency */
    int64_t word[GATE_WORDS]; /* the algorithm's own: its file names them */
    /* sliding-log's starts, oldest first, of which the first log_first are over; owned */
    struct gate_entry *log;
    size_t log_first, log_count, log_capacity;
    bool remembers; /* gcra: what starts find in use, for those that give back */
    int low_count;
    struct gate_low lows[GATE_LOWS + 1]; /* oldest first; the last place is for the one too many */
    struct gate *former;                 /* states under rules that were in force before; owned */
    int former_count;
    int64_t till_us; /* of a former state: it is remembered until then at least */
    /* its rule counts slots by name: each job takes `named` of them, whatever else is asked to cost */
    bool counts_named;
    int64_t named;
};
