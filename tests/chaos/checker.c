#include "tests/chaos/checker.h"

#include <signal.h>

#include "core/client/client.h"
#include "tests/chaos/deed.h"
#include "tests/chaos/judge.h"
#include "tests/invariants.h"
#include "tests/program.h"

#define ENDED_US (400 * MS) /* what a busy machine needs to end a handler */

const char *const cause_names[CAUSES] = {
    "asked for", "worker died", "worker silent", "worker ended", "handler died", "no cause",
};

/* ---- Nothing is lost, nothing twice */

/* A worker that has lost leases says so, unless it was killed before it could. */
static bool says_it_was_silent(const struct judge *j, const struct life *life)
{
    static const char *const words[] = {"silent for longer than", "were given to others",
                                        "leases were no longer ours"};
    bool says = life->code == 1000 + SIGKILL;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        says = says || life_says(j->run, life, words[i]);
    return says;
}

/* Why the job of s began again at s->next_us. */
static enum cause cause_of_again(const struct judge *j, const struct start *s)
{
    const struct life *life = start_life(j, s);

    if (s->ending && s->ending != DEED_DONE)
        return CAUSE_ASKED;
    if (life->ended_us && life->ended_us <= s->next_us && life->code == 1000 + SIGKILL)
        return CAUSE_DIED;
    if (start_silent_us(j, s, s->next_us) && says_it_was_silent(j, life))
        return CAUSE_SILENT;
    if (start_told_us(j, s, s->next_us))
        return CAUSE_FORCED;
    if (!s->ending && (start_died_us(j, s, s->next_us) || start_cancelled_us(j, s, s->next_us)))
        return CAUSE_CHILD;
    if (start_was_killed(j, s))
        return CAUSE_CHILD;
    return CAUSE_NONE;
}

/* What was called before s and began after it is late: what happened to its own worker in between is the cause. s is not the
 * last start of its job, so the next one is behind it. */
static enum cause cause_of_next(const struct judge *j, const struct start *s)
{
    struct start called = s[1];

    if (!called.called_us || called.called_us >= s->at_us)
        return cause_of_again(j, s);
    called.next_us = called.at_us;
    called.at_us = called.called_us;
    called.ending = 0;
    return cause_of_again(j, &called);
}

static void print_starts(const struct judge *j, const char *id)
{
    for (int i = 0; i < j->start_count; i++) {
        const struct start *s = &j->starts[i];

        if (strcmp(s->id, id) == 0)
            printf("    %s: %s in %d.%d called %lld ms, at %lld ms, ended %lld ms %c\n", id,
                   type_plans[s->type].name, s->worker, s->n, judge_ms(j->run, s->called_us),
                   judge_ms(j->run, s->at_us), judge_ms(j->run, s->ended_us), s->ending ? s->ending : ' ');
    }
}

static void check_start(struct judge *j, const struct start *s)
{
    struct answer *a = s->job >= 0 ? &j->answers[s->job] : NULL;
    enum cause cause;

    j->v->starts++;
    if (a && ((!a->in && !a->maybe) || a->held))
        judge_wrong(j->v, "%s ran though %s", s->id, a->held ? "its key was held" : "nobody enqueued it");
    if (a && a->stopped_us && s->at_us > a->stopped_us)
        judge_wrong(j->v, "%s began %lld ms after its cancel was answered", s->id,
                    (long long)(s->at_us - a->stopped_us) / 1000);
    if (a && s->ending == DEED_DONE)
        a->done = true;
    if (!s->next_us)
        return;
    cause = cause_of_next(j, s);
    j->v->again[cause]++;
    if (cause == CAUSE_NONE) {
        judge_wrong(j->v, "%s was begun again without a cause:", s->id);
        if (!j->v->quiet)
            print_starts(j, s->id);
    }
}

/* Can its worker end it? */
static bool can_be_ended(const struct start *s)
{
    enum way way = plan_way(&worker_plans[s->worker], s->type);

    return way != WAY_LOOP && way != WAY_HTTP;
}

/* Nothing begins in a worker that is cut off for longer than its lease, and what ran there has been ended. */
static void check_cut_off(struct judge *j, const struct start *s)
{
    for (int i = 0; i < j->run->incident_count; i++) {
        const struct incident *in = &j->run->incidents[i];
        int64_t lost_us = in->sure_us + start_lease_us(s);

        if (in->kind != FAULT_PARTITION || !start_was_hit(in, s))
            continue;
        if ((s->at_us > lost_us + LATE_US && s->at_us < in->to_us) ||
            (can_be_ended(s) && s->at_us < lost_us && s->ended_us > lost_us + ENDED_US &&
             s->ended_us < in->to_us))
            judge_wrong(j->v, "%s began in %d.%d at %lld ms and ended at %lld ms, cut off since %lld ms",
                        s->id, s->worker, s->n, judge_ms(j->run, s->at_us), judge_ms(j->run, s->ended_us),
                        judge_ms(j->run, in->from_us));
    }
}

static bool may_be_cancelled(const struct judge *j, int job)
{
    const struct step *step = plan_step_of(&j->run->plan, job);

    return j->answers[job].cancel_asked || (step->batch >= 0 && j->batch_cancelled[step->batch]);
}

static void check_jobs(struct judge *j)
{
    struct verdict *v = j->v;

    for (int i = 0; i < j->start_count; i++) {
        check_start(j, &j->starts[i]);
        check_cut_off(j, &j->starts[i]);
    }
    for (int i = 0; i < j->run->plan.job_count; i++) {
        const struct answer *a = &j->answers[i];

        v->accepted += a->in && !a->held;
        v->maybe += a->maybe;
        v->held += a->held;
        v->done += a->done;
        if (a->in && !a->held && !a->done && may_be_cancelled(j, i))
            v->cancelled++;
        else if (a->in && !a->held && !a->done && ++v->lost)
            judge_wrong(v, "j%d is lost: %s, enqueued and never done", i,
                        type_plans[j->run->plan.jobs[i].type].name);
    }
}

/* ---- Schedules and batches */

static void check_schedule_job(struct judge *j, const struct start *s)
{
    int i = 0;
    const char *at = NULL;

    for (; !at && i < PLAN_SCHEDULES; i++) {
        size_t len = strlen(schedule_plans[i].name);

        if (strncmp(s->id, schedule_plans[i].name, len) == 0 && s->id[len] == '.')
            at = s->id + len + 1;
    }
    if (!at || atoll(at) % schedule_plans[i - 1].every_s != 0)
        judge_wrong(j->v, "%s is no occurrence of a schedule", s->id);
    if (!s->next_us && s->ending != DEED_DONE)
        judge_wrong(j->v, "%s was not done", s->id);
    j->v->schedule_jobs += !s->next_us;
}

/* What follows a batch comes when each of its jobs has ended at least once, or was cancelled. */
static void check_follower(struct judge *j, const struct start *s)
{
    const struct plan *plan = &j->run->plan;
    int batch = atoi(s->id + strlen("batch"));
    const struct step *step = plan->steps;
    char id[16];

    while (step < plan->steps + plan->step_count && step->batch != batch)
        step++;
    j->v->batches += !s->next_us;
    for (int job = step->first; job < step->first + step->count; job++) {
        bool ended = false;

        plan_id(job, id);
        for (int i = judge_first_of(j, id); i < j->start_count && strcmp(j->starts[i].id, id) == 0; i++)
            ended |= j->starts[i].ended_us && j->starts[i].ended_us <= s->at_us &&
                     (j->starts[i].ending == DEED_DONE || j->starts[i].ending == DEED_DEAD);
        if (!ended && !may_be_cancelled(j, job))
            judge_wrong(j->v, "%s began before %s had ended", s->id, id);
    }
}

static void check_made_jobs(struct judge *j)
{
    for (int i = 0; i < j->start_count; i++) {
        if (j->starts[i].type == TYPE_TICK)
            check_schedule_job(j, &j->starts[i]);
        else if (j->starts[i].type == TYPE_REPORT)
            check_follower(j, &j->starts[i]);
    }
}

/* ---- Every end was settled once */

static bool may_end_so(const struct judge *j, const struct start *s)
{
    return s->job >= 0 && may_be_cancelled(j, s->job);
}

/* Redis counts as done each job that a handler has done; of those that were cancelled too, either. */
static void check_settled(struct judge *j)
{
    long long done[TYPE_COUNT] = {0}, perhaps[TYPE_COUNT] = {0};

    for (int i = 0, next; i < j->start_count; i = next) {
        bool is_done = false;

        for (next = i; next < j->start_count && strcmp(j->starts[next].id, j->starts[i].id) == 0; next++)
            is_done |= j->starts[next].ending == DEED_DONE;
        done[j->starts[i].type] += is_done;
        perhaps[j->starts[i].type] += is_done && may_end_so(j, &j->starts[i]);
    }
    for (int i = 0; i < TYPE_COUNT; i++) {
        char key[64];
        char *text;

        snprintf(key, sizeof key, "weir:{0}:stats:%s", type_plans[i].name);
        text = server_ask(&j->run->server, "HGET", key, "done", NULL);
        if (atoll(text) > done[i] || atoll(text) < done[i] - perhaps[i])
            judge_wrong(j->v,
                        "%s: %lld were done, %lld of them perhaps cancelled before, and Redis counts %s",
                        type_plans[i].name, done[i], perhaps[i], text);
        free(text);
    }
}

/* ---- Workers */

/* A worker ends because it was told to, or says why. */
static bool ran_nothing(const struct judge *j, const struct life *life)
{
    for (int i = 0; i < j->start_count; i++)
        if (j->starts[i].worker == life->worker && j->starts[i].n == life->n)
            return false;
    return true;
}

static bool may_end_with_its_code(const struct judge *j, const struct life *life)
{
    switch (life->code) {
    case 0:
    case 1000 + SIGKILL:
        return life->asked;
    case 1000 + SIGTERM: /* asked before its main() was there */
        return life->asked && ran_nothing(j, life);
    case 69: /* asked while it was cut off */
        return life->asked && life_says(j->run, life, "they return when their lease ends");
    case 70:
        return life_says(j->run, life, "silent for longer than its lease");
    default:
        return false;
    }
}

static void check_lives(struct judge *j)
{
    for (int i = 0; i < j->run->life_count; i++) {
        const struct life *life = &j->run->lives[i];

        if (life_says(j->run, life, "please report"))
            judge_wrong(j->v, "worker %d.%d says 'please report'", life->worker, life->n);
        if (!may_end_with_its_code(j, life))
            judge_wrong(j->v, "worker %d.%d ended with %d", life->worker, life->n, life->code);
    }
}

void check_history(struct run *run, struct verdict *v)
{
    struct judge j = {.run = run, .v = v, .wall_us = run_wall_ahead()};

    j.answers = calloc((size_t)run->plan.job_count + 1, sizeof *j.answers);
    j.batch_cancelled = calloc((size_t)run->plan.batch_count + 1, sizeof *j.batch_cancelled);
    if (!j.answers || !j.batch_cancelled)
        abort();
    judge_read_history(&j);
    judge_read_traces(&j);
    judge_check_traces(&j);
    check_jobs(&j);
    judge_check_limits(&j);
    check_made_jobs(&j);
    if (run->server.pid > 0) { /* else it is made up */
        check_settled(&j);
        judge_check_verify(&j);
    }
    check_lives(&j);
    free(j.events);
    free(j.starts);
    free(j.answers);
    free(j.batch_cancelled);
}

/* ---- Redis */

static void check_invariants(struct run *run, struct verdict *v)
{
    const char *broken = invariants_broken(run->client->redis, run->client->prefix, -1, 0, NULL);

    if (broken)
        judge_wrong(v, "Redis: %s", broken);
}

static void check_doctor(struct run *run, struct verdict *v)
{
    struct outcome o;

    setenv("REDIS_URL", run->server.url, 1);
    run_in(&o, NULL, built("weir"), "doctor", NULL);
    if (o.code == 0)
        return;
    judge_wrong(v, "weir doctor ends with %d:", o.code);
    printf("%s%s\n", o.out, o.err);
}

/* Where jobs are, or wait, or are held: nothing of it may be there when no job is. */
static void check_keys(struct run *run, struct verdict *v)
{
    static const char *const gone[] = {
        "queue:", "lane:",  "ring:",     "wait:", "wake:",  "sleep:",    "held:",   "credit:",
        "later",  "halted", "cancelled", "told:", "aside:", "schedules", "unique:",
    };
    char *keys = server_ask(&run->server, "KEYS", "*", NULL), *rest = keys, *key;

    while ((key = strsep(&rest, "\n")) && *key) {
        bool left = strncmp(key, "weir:{0}:", 9) != 0;

        for (size_t i = 0; !left && i < sizeof gone / sizeof *gone; i++)
            left = strncmp(key + 9, gone[i], strlen(gone[i])) == 0;
        if (left)
            judge_wrong(v, "left in Redis: %s", key);
    }
    free(keys);
}

/* The numbers of a hash's fields in all keys of that pattern, added up. */
static long long sum_of(struct run *run, const char *pattern, const char *field)
{
    static const char script[] = "local sum = 0\n"
                                 "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do\n"
                                 "    sum = sum + (redis.call('HGET', key, ARGV[2]) or 0)\n"
                                 "end\n"
                                 "return sum";

    return stage_number(run, "EVAL", script, "0", pattern, field);
}

/* Dead jobs of cancelled batches are not retried; all others were, until none was dead. */
static void check_batches(struct run *run, struct verdict *v)
{
    static const char all[] = "weir:{0}:batch:batch*";
    long long total = sum_of(run, all, "total"), done = sum_of(run, all, "done"),
              dead = sum_of(run, all, "dead"), cancelled = sum_of(run, all, "cancelled"),
              left = stage_number(run, "ZCARD", "weir:{0}:dead");

    if (dead != left || done + dead + cancelled != total)
        judge_wrong(v, "batches: %lld jobs, but %lld done, %lld dead, %lld cancelled; %lld are dead", total,
                    done, dead, cancelled, left);
}

void check_redis(struct run *run, struct verdict *v)
{
    check_invariants(run, v);
    check_doctor(run, v);
    check_keys(run, v);
    check_batches(run, v);
}
