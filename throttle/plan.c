#include "throttle/plan.h"

#define TIME_END (GATE_NEVER / 2) /* no sum that a gate makes of an earlier time overflows */

static int never(const struct plan_point *point, struct error *e)
{
    return error_set(e, WEIR_EINPUT,
                     "job %lld: it would start beyond all time; give fewer jobs or a faster rule",
                     (long long)point->job);
}

static int one_by_formula(const struct gate *gate, int64_t from_us, struct plan_point *points, size_t n,
                          struct error *e)
{
    for (size_t i = 0; i < n; i++) {
        points[i].start_us = gate_nth_start(gate, from_us, points[i].job, 1);
        if (points[i].start_us == GATE_NEVER)
            return never(&points[i], e);
    }
    return 0;
}

static int several_in_turn(struct gate *gates, size_t count, int64_t s_us, struct plan_point *points,
                           size_t n, struct error *e)
{
    int64_t started = 0, taken;

    for (size_t i = 0; i < n;) {
        s_us = gates_start(gates, count, s_us, 1);
        if (s_us > TIME_END)
            return never(&points[i], e);
        if (gates_take(gates, count, s_us, points[n - 1].job - started, 1, &taken) < 0)
            return error_no_memory(e, "plan");
        started += taken;
        for (; i < n && points[i].job <= started; i++)
            points[i].start_us = s_us;
    }
    return 0;
}

int plan_starts(const struct rule_set *set, int64_t from_us, struct plan_point *points, size_t n,
                struct error *e)
{
    struct gate gates[RULES_MAX];
    int status;

    if (set->count > 1 && points[n - 1].job > PLAN_SEVERAL_MAX)
        return error_set(
            e, WEIR_EINPUT,
            "%lld jobs: under several rules each start depends on the one before, and at most %d are "
            "reckoned; give fewer jobs, or the rules one by one",
            (long long)points[n - 1].job, PLAN_SEVERAL_MAX);
    for (size_t i = 0; i < set->count; i++)
        gate_init(&gates[i], &set->at[i]);
    if (set->count == 1)
        status = one_by_formula(&gates[0], from_us, points, n, e);
    else
        status = several_in_turn(gates, set->count, from_us, points, n, e);
    for (size_t i = 0; i < set->count; i++)
        gate_free(&gates[i]);
    return status;
}
