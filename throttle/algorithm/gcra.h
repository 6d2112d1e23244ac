/* GCRA's functions on a gate, which token-bucket shares: gcra.c. What they do is said in algorithm.h. */
#ifndef THROTTLE_ALGORITHM_GCRA_H
#define THROTTLE_ALGORITHM_GCRA_H

#include "throttle/algorithm/state.h"

int64_t gcra_most_in_period(const struct rule *rule);
void gcra_scale(struct rule *rule, int thousandths);
int gcra_load(struct gate *g, const char *words, int64_t now_us);
int64_t gcra_start(const struct gate *g, int64_t now_us, int64_t slots);
int64_t gcra_used(const struct gate *g, int64_t at_us);
int gcra_take(struct gate *g, int64_t s_us, int64_t slots);
int gcra_charge(struct gate *g, int64_t now_us, int64_t slots);
void gcra_give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots);
void gcra_remember(struct gate *g, int64_t now_us);
int64_t gcra_last(const struct gate *g);
int gcra_fill(struct gate *g, int64_t at_us, int64_t slots);
void gcra_step_back(struct gate *g, int64_t us);
int64_t gcra_resets(const struct gate *g);
int64_t gcra_nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t slots);

#endif
