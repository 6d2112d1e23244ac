/* token-bucket: a bucket of burst tokens, one more every T until it is full; a job takes as many as it costs.
 *
 * Such a bucket lacks (TAT - now) / T tokens, TAT being the time at which it is full again: it grants exactly
 * what GCRA grants, and is kept as GCRA keeps it. tests/test_algorithms.c counts the tokens.
 *
 * Worst case: a full bucket and what flows in: count + burst - 1 in any period. */
#include "throttle/algorithm/algorithm.h"
#include "throttle/algorithm/gcra.h"

const struct algorithm_ops token_bucket_ops = {
    .name = "token-bucket",
    .bursts = true,
    .count_max = SLOTS_MOST,
    .most_in_period = gcra_most_in_period,
    .scale = gcra_scale,
    .load = gcra_load,
    .start = gcra_start,
    .used = gcra_used,
    .take = gcra_take,
    .charge = gcra_charge,
    .give = gcra_give,
    .remember = gcra_remember,
    .last = gcra_last,
    .fill = gcra_fill,
    .step_back = gcra_step_back,
    .resets = gcra_resets,
    .nth_start = gcra_nth_start,
};
