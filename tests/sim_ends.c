#include "tests/sim_ends.h"

#include "tests/sim_acts.h"

#define SECOND_US INT64_C(1000000)

long long ends_throttled;

/* Those that have failed and are not settled yet; a worker settles them together. */
static struct failed {
    enum settle_verb verb;
    struct span token;
    int64_t number;
    const char *reason;
} failed[SIM_JOBS];
static int failed_count;

static void end_by(struct args *a, enum settle_verb verb, struct span token, int64_t number,
                   const char *reason)
{
    if (verb == SETTLE_RETRY || verb == SETTLE_DEAD)
        failed[failed_count++] = (struct failed){verb, token, number, reason ? reason : ""};
    else
        settle_end(a, verb, token, number, reason);
}

static bool fails_like(const struct failed *one, const struct failed *other)
{
    const char *lane = memchr(one->token.at, '/', one->token.len);
    const char *of_other = memchr(other->token.at, '/', other->token.len);
    size_t len = (size_t)(one->token.at + one->token.len - lane);

    return one->verb == other->verb && strcmp(one->reason, other->reason) == 0 &&
           len == (size_t)(other->token.at + other->token.len - of_other) && memcmp(lane, of_other, len) == 0;
}

static void end_failed(struct args *a)
{
    int n;

    if (failed_count == 0)
        return;
    settle_failed(a, (size_t)failed_count);
    for (int i = 0; i < failed_count; i++)
        settle_token(a, failed[i].token);
    for (int i = 0; i < failed_count; i += n) {
        for (n = 1; i + n < failed_count && fails_like(&failed[i + n], &failed[i]) && sim_pick(0, 5) > 0;)
            n++;
        settle_cause(a, failed[i].verb, false, (size_t)n, failed[i].reason);
        for (int k = i, same; failed[i].verb == SETTLE_RETRY && k < i + n; k += same) {
            for (same = 1; k + same < i + n && failed[k + same].number == failed[k].number;)
                same++;
            settle_delay(a, (size_t)same, failed[k].number);
        }
    }
    failed_count = 0;
}

/* The verbs of a job's life, and what a failure leaves. */
static void end_alive(struct args *a, int n, enum settle_verb verb, int64_t delay_us)
{
    struct sim_job *job = &sim_jobs[n];
    int reason = (int)sim_pick(0, 2);
    int64_t keep_ms = sim_chance(2) ? 1000 : 0, number = verb == SETTLE_RETRY         ? delay_us
                                                         : verb == SETTLE_INTERRUPTED ? INTERRUPTED_MOST
                                                         : verb == SETTLE_FINISH      ? keep_ms
                                                                                      : 0;

    end_by(a, verb, sim_token(n), number, sim_reason(reason));
    if (verb == SETTLE_FINISH) {
        job->remembered = keep_ms > 0;
        sim_end_job(n, SIM_DONE);
    } else if (verb == SETTLE_CANCELLED) {
        sim_end_job(n, SIM_CANCELLED);
    } else if (verb == SETTLE_INTERRUPTED) {
        sim_fails(n, reason, false);
        if (!sim_interrupt(n, 0, INTERRUPTED_MOST))
            job->place = SIM_WAITING;
    } else {
        sim_fails(n, reason, true);
        job->attempts++;
        job->together = 0;
        job->place = SIM_LATER;
        job->scheduled = false;
        job->due_us = turns.now_us + delay_us;
        if (job->batch >= 0)
            sim.batches[job->batch].failed++;
    }
}

/* A job that would wait for long ends, as its batch was cancelled. */
static bool ends_with_batch(int n, enum settle_verb verb)
{
    const struct sim_job *job = &sim_jobs[n];

    if ((verb != SETTLE_RETRY && verb != SETTLE_THROTTLED) || job->batch < 0 ||
        sim.batches[job->batch].halt != SIM_HALTED)
        return false;
    sim_end_job(n, SIM_CANCELLED);
    return true;
}

static void end_job(struct args *a, int n, enum settle_verb verb, bool unstarted)
{
    struct sim_job *job = &sim_jobs[n];
    int64_t delay_us = sim_chance(3) ? SECOND_US : sim_pick(0, 3 * SECOND_US);

    if (verb == SETTLE_THROTTLED && sim_chance(2))
        delay_us = SETTLE_NO_TIME;
    if (verb != SETTLE_FINISH && (sim_ends_cancelled(n) || ends_with_batch(n, verb))) {
        end_by(a, verb, sim_token(n), verb == SETTLE_INTERRUPTED ? INTERRUPTED_MOST : unstarted, "no");
        return;
    }
    if (verb > SETTLE_DEAD || (sim.lives && verb == SETTLE_RETRY)) {
        end_alive(a, n, verb, delay_us);
        return;
    }
    end_by(a, verb, sim_token(n), verb == SETTLE_BACK ? unstarted : delay_us,
           verb == SETTLE_DEAD ? "no\nway" : NULL);
    if (verb == SETTLE_DEAD) {
        job->attempts++;
        if (job->batch >= 0)
            sim.batches[job->batch].failed++;
        sim_end_job(n, SIM_DEAD);
    } else if (verb == SETTLE_RETRY) {
        sim_fails(n, 0, true);
        job->together = 0;
        job->attempts++;
        job->place = SIM_LATER;
        job->scheduled = false;
        job->due_us = turns.now_us + delay_us;
    } else if (verb == SETTLE_THROTTLED) {
        struct sim_need needs[SIM_NEEDS];

        job->together = 0;
        job->throttled++;
        job->place = sim_needs(job->type, job->key, needs) > 0 ? SIM_WAITING : SIM_LATER;
        job->scheduled = false;
        job->due_us = -1; /* the pause may be longer than asked for */
        ends_throttled++;
    } else {
        job->place = SIM_WAITING; /* put into its lane when all are known */
    }
}

static bool is_of(int n, int type, int batch)
{
    return sim_jobs[n].ending && sim_jobs[n].type == type && sim_jobs[n].batch == batch;
}

/* Settles as a run those of list from `from` on that follow one another; returns how many they are. */
static int end_run(struct args *a, const int *list, int count, int from, const char *batch)
{
    int type = sim_jobs[list[from]].type, of = sim_jobs[list[from]].batch, n = 1;

    while (from + n < count && is_of(list[from + n], type, of) &&
           settle_follows(sim_token(list[from + n]), sim_token(list[from + n - 1])))
        n++;
    settle_run(a, sim_type_names[type], span_str(batch), sim_token(list[from]), (size_t)n);
    return n;
}

static void end_job_of_group(int n)
{
    sim_jobs[n].ending = false;
    sim_end_job(n, SIM_DONE);
}

/* Those of list that are done, by type and batch; batch: -1 none. */
static void end_group(struct args *a, const int *list, int count, int type, int batch)
{
    const char *name = batch < 0 ? "" : sim.batches[batch].name;
    size_t done = 0;

    for (int i = 0; i < count; i++)
        done += is_of(list[i], type, batch);
    if (done == 0)
        return;
    if (sim_chance(2)) {
        for (int i = 0; i < count; i++)
            for (int n = is_of(list[i], type, batch) ? end_run(a, list, count, i, name) : 0; n > 0; n--)
                end_job_of_group(list[n > 1 ? i++ : i]);
        return;
    }
    settle_done(a, sim_type_names[type], span_str(name), done);
    for (int i = 0; i < count; i++)
        if (is_of(list[i], type, batch)) {
            settle_token(a, sim_token(list[i]));
            end_job_of_group(list[i]);
        }
}

/* Those that are done; who holds a lock until its end, one by itself. */
static void end_done(struct args *a, const int *list, int count)
{
    for (int i = 0; i < count; i++)
        if (sim_jobs[list[i]].ending && sim_jobs[list[i]].lock >= 0 && !sim_jobs[list[i]].lock_until_start) {
            sim_jobs[list[i]].ending = false;
            end_alive(a, list[i], SETTLE_FINISH, 0);
        }
    for (int t = 0; t < sim.type_count; t++)
        for (int batch = -1; batch < (sim.lives ? SIM_BATCHES : 0); batch++)
            end_group(a, list, count, t, batch);
}

static void settle_send(struct args *a, bool one_stale)
{
    int64_t stale;

    sim_must(turns_send(a), "settle");
    sim_must(settle_reply(turns.reply, &stale, &turns.error), "settle");
    sim_fail_if(stale != one_stale, "settle: %lld leases were stale, not %d", (long long)stale, one_stale);
}

static enum settle_verb any_verb(void)
{
    if (!sim.lives)
        return (enum settle_verb)sim_pick(SETTLE_RETRY, SETTLE_DEAD);
    return sim_chance(3) ? SETTLE_DEAD : (enum settle_verb)sim_pick(SETTLE_RETRY, SETTLE_INTERRUPTED);
}

/* Part of what the worker has ends; often one of them twice. */
void ends_some(int owner)
{
    static int list[SIM_JOBS], back[SIM_JOBS], unstarted[SIM_JOBS];
    int count = sim_leases(owner, list), kept = 0, back_count = 0, unstarted_count = 0, again = -1;
    struct args a = {0};

    for (int i = 0; i < count; i++)
        if (!sim_chance(3))
            list[kept++] = list[i];
    settle_request(&a, PREFIX, turns.now_us, sim_ids[owner].name);
    for (int i = 0; i < kept; i++) {
        int n = list[i];
        int64_t cost = sim.spends && !sim_chance(4) ? sim_pick(0, sim_jobs[n].taken) : sim_pick(1, 8);

        if (sim_jobs[n].slot_us > 0 && sim_chance(sim.spends ? 2 : 6)) {
            settle_cost(&a, sim_token(n), &(struct job_cost){.plain = cost});
            sim_true_cost(n, cost);
        } else if (sim_jobs[n].slot_us > 0 && sim_chance(4)) {
            end_job(&a, n, SETTLE_BACK, true);
            unstarted[unstarted_count++] = n;
            if (sim_jobs[n].place == SIM_WAITING)
                back[back_count++] = n;
            again = n;
            continue;
        }
        if (sim_jobs[n].cancelled && sim_chance(2)) {
            end_job(&a, n, SETTLE_CANCELLED, false);
            continue;
        }
        if (!sim_chance(3)) {
            sim_jobs[n].ending = true;
            continue;
        }
        end_job(&a, n, any_verb(), false);
        if (sim_jobs[n].place == SIM_WAITING)
            back[back_count++] = n;
        again = n;
        if (sim_chance(8))
            end_failed(&a);
    }
    end_failed(&a);
    end_done(&a, list, kept);
    if (again >= 0)
        turns_add_end(&a, SETTLE_RETRY, sim_token(again), 0, NULL);
    settle_send(&a, again >= 0);
    for (int i = 0; i < unstarted_count; i++) /* after what others were charged */
        sim_true_cost(unstarted[i], -1);
    for (int i = 0; i < kept; i++)
        sim_unlease(list[i]);
    sim_come_back(back, back_count);
}

/* What was reaped settles nothing. */
void ends_in_vain(int owner)
{
    const char *token = "1.--/high/t0/";
    int64_t stale;

    sim_must(turns_settle_end(sim_ids[owner].name, SETTLE_DEAD, span_str(token), 0, "x", &stale), "settle");
    sim_fail_if(stale != 1, "settle: a worker that was reaped settles");
}

void ends_all(int owner)
{
    static int list[SIM_JOBS];
    int count = sim_leases(owner, list);
    struct args a = {0};

    if (count == 0)
        return;
    settle_request(&a, PREFIX, turns.now_us, sim_ids[owner].name);
    for (int i = 0; i < count; i++)
        sim_jobs[list[i]].ending = true;
    end_done(&a, list, count);
    settle_send(&a, false);
    for (int i = 0; i < count; i++)
        sim_unlease(list[i]);
}
