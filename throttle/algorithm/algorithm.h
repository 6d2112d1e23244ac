/* An algorithm behind gates: what each must do, and what several need. A new one is a C file with its struct
 * algorithm_ops, its name in enum algorithm and its row in algorithms.c; and a Lua file with its row in rules.lua. */
#pragma once

#include "core/error.h"
#include "core/number.h"
#include "throttle/algorithm/state.h"

#define SLOTS_MOST 1000000000 /* no state counts more */

/* The functions do what those of these names in gate.h do, for a gate that is not paused; slots fit the rule's burst. */
struct algorithm_ops {
    const char *name;     /* in both forms of a rule */
    bool bursts, offsets; /* a rule may have burst=, offset= */
    int64_t count_max;

    int64_t (*most_in_period)(const struct rule *rule);
    /* Makes the rule one of so many thousandths of its rate, under which a state means the same; NULL: it has no rate. */
    void (*scale)(struct rule *rule, int thousandths);
    /* Reads the words of a stored state. 0, WEIR_EINPUT or WEIR_EINTERNAL. */
    int (*load)(struct gate *g, const char *words);

    int64_t (*start)(const struct gate *g, int64_t now_us, int64_t slots);
    /* Returns the slots in use at a time that is not before the last start, rounded up. */
    int64_t (*used)(const struct gate *g, int64_t at_us);
    int (*take)(struct gate *g, int64_t s_us, int64_t slots);
    /* Notes slots that were taken at s_us while another rule was in force: they count, but make the state no fuller than full. */
    int (*note)(struct gate *g, int64_t s_us, int64_t slots);
    /* Charges what was used in truth. NULL: it takes the slots, not before the last start. */
    int (*charge)(struct gate *g, int64_t now_us, int64_t slots);
    void (*give)(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots);
    /* Begins to remember what giving back needs; NULL: it needs nothing. */
    void (*remember)(struct gate *g, int64_t now_us);
    /* Returns the last start; any time that has passed when it is not known to be ahead. */
    int64_t (*last)(const struct gate *g);
    /* Fills a gate that was never used with slots in use, taken at that time. */
    int (*fill)(struct gate *g, int64_t at_us, int64_t slots);
    void (*step_back)(struct gate *g, int64_t us);
    /* Returns when all slots are back, which may have passed. */
    int64_t (*resets)(const struct gate *g);
    int64_t (*nth_start)(const struct gate *g, int64_t now_us, int64_t n, int64_t slots);
};

extern const struct algorithm_ops gcra_ops, token_bucket_ops, fixed_window_ops, sliding_log_ops,
    sliding_window_ops, concurrency_ops;

/* ---- What several of them need */

/* Reads exactly n numbers, 0 to 2^53, separated by one blank. */
bool words_read(const char *words, int n, int64_t *number);
/* Scales a rule whose state counts slots: the count shrinks, to 1 at least. */
void scale_count(struct rule *rule, int thousandths);
/* Do what last() and step_back() do where the first word of a state is the last start. */
int64_t first_word_last(const struct gate *g);
void first_word_step_back(struct gate *g, int64_t us);
/* Returns us, or GATE_NEVER when that is beyond all time. */
int64_t time_or_never(__int128 us);
