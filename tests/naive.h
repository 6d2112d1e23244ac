/* Gates as their definitions say it, over the list of all that started: slow, plain, and shared with nothing
 * that is tested.
 *
 * A gate is kept twice. Its list of starts answers whether a start exceeds the rule, in any window; where it
 * cannot know what was in use (a rule that changed, slots given back) it takes the least that can have been.
 * What answers when the next start is possible takes the most, so a gate must be open then. Mostly both are
 * the same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "throttle/algorithm/state.h"

enum naive_kind {
    NAIVE_GCRA,
    NAIVE_TOKEN_BUCKET,
    NAIVE_FIXED_WINDOW,
    NAIVE_SLIDING_LOG,
    NAIVE_SLIDING_WINDOW,
    NAIVE_CONCURRENCY,
};

struct naive_rule {
    enum naive_kind kind;
    int64_t count, period_us;
    int64_t burst; /* the most that can start at once */
    int64_t offset_us;
    struct zone_rule zone;
};

struct naive_start {
    int64_t at_us, least, most; /* what it costs */
    int job;
    bool forced; /* it was not asked: what was in use when the rule changed, what a job cost more */
};

struct naive {
    struct naive_rule rule;
    struct naive_start *starts; /* in order of time */
    size_t count, capacity;
    int64_t last_us;          /* the latest of them */
    __int128 level, level_at; /* the bucket that GCRA and the token bucket are, in 1/count us */
    struct naive *former;     /* under rules that were in force before */
    size_t former_count;
    int64_t till_us; /* of one of these: it is not forgotten before */
};
#define NAIVE_FORMER 4

/* Reads the first rule of a stored form, without its marks; the end of what was read, or NULL. */
const char *naive_rule_read(const char *text, struct naive_rule *rule);
bool naive_rule_equal(const struct naive_rule *a, const struct naive_rule *b);

void naive_init(struct naive *n, const struct naive_rule *rule);
/* The same by a rule's stored form, which must be one. */
void naive_begin(struct naive *n, const char *stored);
void naive_free(struct naive *n);
void naive_copy(struct naive *to, const struct naive *from);

/* By when a job of that cost can start, not before now; INT64_MAX: never. */
int64_t naive_opens(const struct naive *n, int64_t now_us, int64_t cost);
/* How many of so many jobs of that cost can start at s. */
int64_t naive_count(const struct naive *n, int64_t s_us, int64_t most, int64_t cost);
/* A job starts at s. NULL, or what that exceeds. */
const char *naive_start(struct naive *n, int64_t at_us, int64_t cost, int job);
/* The job that started at s has cost that much less, or more. */
void naive_give(struct naive *n, int64_t now_us, int64_t at_us, int64_t cost, int job);
void naive_charge(struct naive *n, int64_t now_us, int64_t cost);
/* Something started under a rule that is not kept here, concurrency: those under the rules before it know that. */
void naive_note(struct naive *n, int64_t start_us, int64_t cost);
/* Another rule. Its own starts and those since then, when it was in force before; else what is in use stays in use, as if taken at the
 * last start, which may be granted ahead. in_flight: the most that concurrency can count now, where that is the rule until now. */
void naive_change(struct naive *n, const struct naive_rule *rule, int64_t now_us, int64_t in_flight);
/* What is in use is no more known than that. */
void naive_fill(struct naive *n, int64_t at_us, int64_t least, int64_t most);
/* The clock steps back by that. Of windows only the sums are known then, and stay with the last start. */
void naive_step_back(struct naive *n, int64_t us);
