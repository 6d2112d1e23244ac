#include "tests/chaos/judge.h"

#include "tests/program.h"

#define EARLY_US (3 * MS) /* two clocks that are read one after the other */

/* ---- Rates */

/* Redis's clock between two steps of it. */
struct epoch {
    int64_t from_us, shift_us;
};

static struct epoch *read_epochs(const struct run *run, int *count)
{
    struct epoch *epochs = run_more(NULL, 0, sizeof *epochs);

    epochs[0] = (struct epoch){INT64_MIN, 0};
    *count = 1;
    for (int i = 0; i < run->incident_count; i++) {
        if (run->incidents[i].kind != FAULT_STEP_CLOCK)
            continue;
        epochs = run_more(epochs, *count, sizeof *epochs);
        epochs[(*count)++] = (struct epoch){run->incidents[i].from_us, run->incidents[i].shift_us};
    }
    return epochs;
}

/* The slot by our clock: of the step behind which it was granted, the one by which it comes nearest to the
 * start. */
static void place_slot(struct start *s, int64_t slot_us, const struct epoch *epochs, int count)
{
    int64_t nearest_us = INT64_MAX;

    for (int i = 0; i < count; i++) {
        int64_t at_us = slot_us - epochs[i].shift_us, away_us = llabs(s->at_us - at_us);

        if (epochs[i].from_us <= at_us + EARLY_US && away_us <= nearest_us) {
            nearest_us = away_us;
            s->slot_us = at_us;
            s->epoch = i;
        }
    }
}

/* The start that a line is of: the first one of the job in that life of the worker that came after it was written. A line before
 * it was of a call that no handler has seen. */
static struct start *start_of_line(struct judge *j, int worker, const char *id, int64_t at_us)
{
    for (int i = judge_first_of(j, id); i < j->start_count && strcmp(j->starts[i].id, id) == 0; i++) {
        struct start *s = &j->starts[i];

        if (s->worker == worker && start_life(j, s)->begun_us <= at_us &&
            s->at_us >= (s->traced ? at_us : at_us - EARLY_US))
            return s;
    }
    return NULL;
}

static void read_trace(struct judge *j, int worker, const struct epoch *epochs, int count)
{
    char name[32], line[4096], id[32];
    long long slot_us, start_us;
    struct start *s;
    FILE *f;

    snprintf(name, sizeof name, "trace%d", worker);
    f = judge_open(j->run, name);
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "\"id\":\"");

        if (!at || sscanf(line, "{\"slot\":%lld,\"start\":%lld", &slot_us, &start_us) != 2 ||
            sscanf(at, "\"id\":\"%31[^\"]", id) != 1 ||
            !(s = start_of_line(j, worker, id, start_us - j->wall_us)))
            continue;
        s->traced = true;
        s->called_us = start_us - j->wall_us;
        if (slot_us)
            place_slot(s, slot_us - j->wall_us, epochs, count);
    }
    if (f)
        fclose(f);
}

void judge_read_traces(struct judge *j)
{
    int count;
    struct epoch *epochs = read_epochs(j->run, &count);

    for (int i = 0; i < PLAN_WORKERS; i++)
        read_trace(j, i, epochs, count);
    free(epochs);
}

void judge_check_traces(struct judge *j)
{
    for (int i = 0; i < j->start_count; i++) {
        const struct start *s = &j->starts[i];

        if (s->traced)
            continue;
        j->v->untraced++;
        if (start_life(j, s)->code == 0)
            judge_wrong(j->v, "%s began in %d.%d at %lld ms, and its worker knows nothing of it", s->id,
                        s->worker, s->n, judge_ms(j->run, s->at_us));
    }
}

static bool holds(const struct limit_plan *limit, int type)
{
    return type_plans[type].limit && strcmp(type_plans[type].limit, limit->name) == 0;
}

static int by_slot(const void *a, const void *b)
{
    const struct start *one = *(struct start *const *)a, *other = *(struct start *const *)b;

    if (one->epoch != other->epoch)
        return one->epoch - other->epoch;
    return (one->slot_us > other->slot_us) - (one->slot_us < other->slot_us);
}

static int by_time(const void *a, const void *b)
{
    const struct start *one = *(struct start *const *)a, *other = *(struct start *const *)b;

    return (one->at_us > other->at_us) - (one->at_us < other->at_us);
}

/* The starts at one gate: of a limit, and of a key where it has those. */
static struct start **starts_at(const struct judge *j, const struct limit_plan *limit, int key, int *count)
{
    struct start **starts = NULL;

    *count = 0;
    for (int i = 0; i < j->start_count; i++) {
        struct start *s = &j->starts[i];

        if (!holds(limit, s->type) || (limit->by_key && j->run->plan.jobs[s->job].key != key))
            continue;
        starts = run_more(starts, *count, sizeof *starts);
        starts[(*count)++] = s;
    }
    return starts;
}

static int cost_of(const struct start *s)
{
    return s->type == TYPE_RIGHT ? 2 : 1;
}

/* GCRA, in parts of 1/count us; each step of the clock may let one burst through. */
static void replay_gcra(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    int64_t tat = 0, burst = limit->burst * limit->period_us;
    int epoch = -1;

    for (int i = 0; i < count; i++) {
        const struct start *s = starts[i];
        int64_t at = s->slot_us * limit->count, cost = cost_of(s) * limit->period_us;

        if (s->epoch != epoch)
            tat = at;
        epoch = s->epoch;
        if (at + limit->count < tat - burst + cost)
            judge_wrong(j->v, "%s: %s has a slot %lld us too early, at %lld ms", limit->name, s->id,
                        (long long)((tat - burst + cost - at) / limit->count), judge_ms(j->run, s->slot_us));
        tat = (at > tat ? at : tat) + cost;
    }
}

static void replay_log(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    for (int i = (int)limit->count; i < count; i++) {
        const struct start *s = starts[i], *before = starts[i - limit->count];

        if (s->epoch == before->epoch && s->slot_us < before->slot_us + limit->period_us)
            judge_wrong(j->v, "%s: %s has a slot within a period of %d others, at %lld ms", limit->name,
                        s->id, (int)limit->count, judge_ms(j->run, s->slot_us));
    }
}

/* By the handlers' clocks: those that begin at most LATE_US after their slot are no more, in any time that is
 * so much shorter than a period, than the rule lets into the period. */
static void check_period(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    int64_t most = limit->count + (limit->burst ? limit->burst - 1 : 0), in_period = 0;
    int *peak = &j->v->in_period[limit - limit_plans], first = 0;

    qsort(starts, (size_t)count, sizeof(struct start *), by_time);
    for (int i = 0; i < count; i++) {
        for (; starts[first]->at_us <= starts[i]->at_us - limit->period_us + LATE_US ||
               starts[first]->epoch != starts[i]->epoch;
             first++)
            in_period -= cost_of(starts[first]);
        in_period += cost_of(starts[i]);
        *peak = in_period > *peak ? (int)in_period : *peak;
        if (in_period > most)
            judge_wrong(j->v, "%s: %d slots until %s began, within a period less 50 ms, at %lld ms",
                        limit->name, (int)in_period, starts[i]->id, judge_ms(j->run, starts[i]->at_us));
    }
}

/* Leaves those that are not late. */
static int look_at_lateness(struct judge *j, struct start **starts, int count)
{
    struct verdict *v = j->v;
    int in_time = 0;

    for (int i = 0; i < count; i++) {
        struct start *s = starts[i];
        int64_t late_us = s->at_us - s->slot_us, called_us = s->called_us - s->slot_us;

        if (late_us < -EARLY_US)
            judge_wrong(v, "%s began %lld us before its slot", s->id, (long long)-late_us);
        v->latest_us = late_us > v->latest_us ? late_us : v->latest_us;
        v->late += late_us > LATE_US;
        v->called_late += called_us > LATE_US;
        v->called_latest_us = called_us > v->called_latest_us ? called_us : v->called_latest_us;
        if (late_us <= LATE_US)
            starts[in_time++] = s;
    }
    return in_time;
}

static void check_rate(struct judge *j, const struct limit_plan *limit, struct start **starts, int count)
{
    int known = 0;

    for (int i = 0; i < count; i++)
        if (starts[i]->slot_us)
            starts[known++] = starts[i];
    j->v->slots += known;
    qsort(starts, (size_t)known, sizeof(struct start *), by_slot);
    if (limit->burst)
        replay_gcra(j, limit, starts, known);
    else
        replay_log(j, limit, starts, known);
    check_period(j, limit, starts, look_at_lateness(j, starts, known));
}

/* ---- Concurrency */

static int by_release(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return (one > other) - (one < other);
}

static void check_concurrency(struct judge *j, const struct limit_plan *limit, struct start **starts,
                              int count, int *peak)
{
    int64_t *released = run_more(NULL, 0, sizeof *released);
    int gone = 0;

    for (int i = 0; i < count; i++) {
        released = run_more(released, i, sizeof *released);
        released[i] = start_released_us(j, starts[i]);
    }
    qsort(released, (size_t)count, sizeof *released, by_release);
    qsort(starts, (size_t)count, sizeof(struct start *), by_time);
    for (int i = 0; i < count; i++) {
        while (gone < count && released[gone] <= starts[i]->at_us)
            gone++;
        if (i + 1 - gone > *peak)
            *peak = i + 1 - gone;
        if (i + 1 - gone > limit->most)
            judge_wrong(j->v, "%s: %s is one of %d at a time, at %lld ms", limit->name, starts[i]->id,
                        i + 1 - gone, judge_ms(j->run, starts[i]->at_us));
    }
    free(released);
}

void judge_check_limits(struct judge *j)
{
    int count;

    for (int i = 0; i < PLAN_LIMITS; i++) {
        const struct limit_plan *limit = &limit_plans[i];

        for (int key = 0; key < (limit->by_key ? PLAN_KEYS : 1); key++) {
            struct start **starts = starts_at(j, limit, key, &count);

            if (limit->most && count > 0)
                check_concurrency(j, limit, starts, count, &j->v->at_once[i]);
            if (limit->count && count > 0)
                check_rate(j, limit, starts, count);
            free(starts);
        }
    }
}

/* A trace does not tell when Redis's clock was set. */
static bool trace_tells_all(const struct run *run)
{
    bool tells = true;

    for (int i = 0; i < run->incident_count; i++)
        tells &= run->incidents[i].kind != FAULT_STEP_CLOCK;
    return tells;
}

void judge_check_verify(struct judge *j)
{
    const char *words[PLAN_WORKERS + 3] = {built("weir"), "verify"};
    char names[PLAN_WORKERS][24];
    struct outcome *o = malloc(sizeof *o);

    assert_non_null(o);
    for (int i = 0; i < PLAN_WORKERS; i++) {
        snprintf(names[i], sizeof names[i], "trace%d", i);
        words[2 + i] = names[i];
    }
    program_run(o, j->run->server.folder, words);
    if (o->code != 0 && trace_tells_all(j->run))
        judge_wrong(j->v, "weir verify ends with %d: %.800s", o->code, o->err);
    free(o);
}
