/* When the jobs of a backlog would start: under gates that were never used, as early as all of them allow. */
#pragma once

#include "throttle/gate.h"

/* Under several rules at most so many jobs are planned: each start depends on the one before, so starts are walked, some millions a
 * second. Under one rule any number is a formula. */
#define PLAN_SEVERAL_MAX 10000000

struct plan_point {
    int64_t job;      /* from 1 */
    int64_t start_us; /* the answer */
};

/* Computes the starts of `points`, which are in the order of their jobs. WEIR_EINPUT: a job that never starts, or more than
 * PLAN_SEVERAL_MAX under several rules. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int plan_starts(const struct rule_set *set, int64_t from_us, struct plan_point *points, size_t n,
                             struct error *e);
