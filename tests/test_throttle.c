/* Claims under limits of every kind against a model (tests/sim.h), under virtual time: worlds of random
 * types, limits of their own and shared, keys, costs, queues and workers that each know only some of the
 * types. Jobs are pushed, claimed and ended in every way; rules, uses, weights and pauses change; workers
 * stop after any script, lose the answer of a claim, and are taken over by themselves or reaped. After each
 * step the invariants hold and each job is where the model has it; at each start no rate, window or
 * concurrency is exceeded; each lane is first in first out; no slot is left while an executor is free; the
 * next look is not too late; and nothing is left over at the end.
 *
 * World n is made of the seed $WEIR_SEED + n, and a failure names the world's own seed. $WEIR_WORLDS: how
 * many. Without a seed the worlds are always the same, so that a failure of the suite means a change; new
 * ones are explored with WEIR_SEED=$(date +%s)000000. */
#include "core/clock.h"
#include "core/script/script.h"
#include "queue/limits/rate_request.h"
#include "tests/sim_acts.h"
#include "tests/sim_changes.h"
#include "tests/sim_ends.h"
#include "tests/test.h"

#ifdef __SANITIZE_ADDRESS__ /* what is sanitized is this program, hardly what it tests */
#define WORLDS 200
#else
#define WORLDS 2000
#endif
enum { WORKERS = 5, WORLDS_S = 30, WORLDS_WITHOUT = 50, ALONG_MOST = 16 };
#define SECOND_US INT64_C(1000000)
#define DUTY_US 800000 /* as in claim_duty.lua */
#define USUAL_SEED 20261121

struct worker {
    int id; /* -1: not there */
    bool crashed;
    char group[16];
    int executors, prefetch;
    int64_t turn, duty_until_us;
    bool alone;       /* it is to have nothing in flight, for a job that is to run alone */
    int64_t known_us; /* when it looks again by itself; INT64_MAX: not before it is rung */
    const char *types[SIM_TYPES], *queues[SIM_QUEUES];
    int type_count, queue_count;
};

static struct worker workers[WORKERS];
static int worker_count;
static int64_t next_us, tick_us, amnesty_us;
static long long reaped, lost_answers, along_total;

static struct sim_id *id_of(const struct worker *worker)
{
    return &sim_ids[worker->id];
}

/* ---- Jobs in */

static int64_t random_cost(int type)
{
    int64_t most = sim_cost_most(type);

    if (sim_chance(4) == sim.spends)
        return 0;
    return sim_pick(1, sim_chance(30) ? 30 : most < 6 ? most : 6);
}

/* A head that no script has signed says nothing. Returns its length; mostly there is none. */
static size_t foreign_head(char *out, size_t size)
{
    const char *batch = sim.batches[sim_pick(0, SIM_BATCHES - 1)].name;

    *out = '\0';
    if (!sim_chance(8))
        return 0;
    return (size_t)snprintf(out, size, "@%d,%d,%d%s,b%s;", (int)sim_pick(0, 30), (int)sim_pick(0, 3),
                            (int)sim_pick(0, 3), sim_chance(2) ? ",sguess" : "", batch);
}

static void push_raw(int count)
{
    struct args a = {0};
    int queue = (int)sim_pick(0, sim.queue_count - 1);
    char text[600];

    args_add(&a, "RPUSH");
    snprintf(text, sizeof text, PREFIX "queue:%s", sim_queue_names[queue]);
    args_add(&a, text);
    for (int i = 0; i < count; i++) {
        int type = (int)sim_pick(0, sim.type_count - 1), n = sim_new_job(queue, type, random_cost(type));

        size_t head = foreign_head(text, sizeof text);

        sim_body(n, text + head, sizeof text - head);
        args_add(&a, text);
        sim_to_queue(n);
    }
    sim.raw += count;
    sim_must(turns_send(&a), "RPUSH");
}

static void enqueue_some(void)
{
    for (int64_t i = sim_pick(1, 5); i > 0; i--) {
        int n = sim_new_job((int)sim_pick(0, sim.queue_count - 1), (int)sim_pick(0, sim.type_count - 1), 0);
        struct sim_job *job = &sim_jobs[n];
        int64_t delay_us = sim_chance(4) ? sim_pick(1, 3 * SECOND_US) : -1;
        const char *id = textf("j%d", n);

        for (int i_path = 0; i_path < SIM_PATHS; i_path++)
            job->values[i_path] = 0; /* turns_enqueue writes none */
        sim_must(turns_enqueue(sim_queue_names[job->queue], sim_type_names[job->type], id, delay_us),
                 "enqueue");
        sim_enqueued(job, delay_us);
        if (delay_us < 0) {
            sim_to_queue(n);
            continue;
        }
        job->place = SIM_LATER;
        job->scheduled = true;
        job->due_us = turns.now_us + delay_us;
    }
}

/* ---- Claiming */

/* A worker was heard of: by its heartbeat, as it began, or as it took or renewed the duty. */
static void model_heard(void)
{
    int64_t back_us = tick_us - turns.now_us;

    for (int i = 0; i < sim.id_count && back_us > 0; i++)
        sim_ids[i].deadline_us -= back_us;
    for (int n = 0; n < sim.job_count && back_us > 0; n++)
        if (sim_jobs[n].place == SIM_LATER && !sim_jobs[n].scheduled)
            sim_jobs[n].due_us -= back_us;
    if (back_us > 0 || -back_us > LEASE_US / 2 || amnesty_us > turns.now_us + LEASE_US)
        amnesty_us = turns.now_us + LEASE_US;
    tick_us = turns.now_us;
}

static struct claim_call call_of(struct worker *worker, int free, int prefetch)
{
    bool far = sim_chance(3);

    return (struct claim_call){.worker = id_of(worker)->name,
                               .group = worker->group,
                               .turn = ++worker->turn,
                               .free = free,
                               .prefetch = prefetch,
                               .chunk = (int)(sim_chance(3) ? sim_pick(1, 16) : sim_pick(16, 1000)),
                               .duty_until_us = worker->duty_until_us,
                               .ahead_us = far ? sim_pick(0, GATE_AHEAD_MOST_US) : 0,
                               .far = far ? (int)sim_pick(0, 8) : 0,
                               .reserved = sim_chance(5),
                               .early = far && sim_chance(2),
                               .held = sim_chance(3),
                               .mark = sim_chance(5),
                               .alone = worker->alone || sim_chance(2),
                               .queues = {worker->queues, worker->queue_count},
                               .types = {worker->types, worker->type_count}};
}

/* Whoever has the duty of its group and knows of a later time only, was rung for what opens before. */
static void check_bells(void)
{
    for (int i = 0; i < worker_count && sim.models_gates; i++) {
        struct worker *worker = &workers[i];
        const char *duty = item_value(snapshot_item(sim.all, "duty"), worker->group);
        struct names queues = {worker->queues, worker->queue_count},
                     types = {worker->types, worker->type_count};
        size_t len = worker->id >= 0 ? strlen(id_of(worker)->name) : 0;
        const char *bell = textf("bell:%s", worker->group);

        if (len == 0 || !duty || strncmp(duty, id_of(worker)->name, len) != 0 || duty[len] != ' ' ||
            atoll(duty + len) <= turns.now_us || snapshot_item(sim.all, bell))
            continue;
        if (sim_opens(&queues, &types) < worker->known_us)
            sim_fail(
                "%s of %s has the duty and looks at now + %lld; a lane opens at now + %lld and nobody rang",
                id_of(worker)->name, worker->group, (long long)(worker->known_us - turns.now_us),
                (long long)(sim_opens(&queues, &types) - turns.now_us));
    }
}

/* What a claim parks is for its own group to wake for; so is what it took from the held types. */
static void excuse_bells(void)
{
    for (int i = 0; i < worker_count && sim.models_gates; i++) {
        struct names queues = {workers[i].queues, workers[i].queue_count};
        struct names types = {workers[i].types, workers[i].type_count};
        int64_t opens_us = sim_opens(&queues, &types);

        if (opens_us < workers[i].known_us)
            workers[i].known_us = opens_us;
    }
}

static void look(void)
{
    sim_look();
    check_bells();
}

/* It was woken, or woke by itself. */
static void answer_bell(const struct worker *worker)
{
    struct args a = {0};
    const char *bell = textf(PREFIX "bell:%s", worker->group);

    args_add(&a, "DEL");
    args_add(&a, bell);
    sim_must(turns_send(&a), "DEL");
}

/* Less whenever a job leaves a queue or a lane: those that wait, and again those of them that stand in
 * queues. */
static int waiting(void)
{
    int count = 0;

    for (int q = 0; q < sim.queue_count; q++)
        count += sim.queues[q].count;
    for (int n = 0; n < sim.job_count; n++)
        count += sim_jobs[n].place == SIM_WAITING;
    return count;
}

/* Jobs of one type that are done: the next claim settles them. */
static struct {
    const char *type;
    struct span tokens[ALONG_MOST];
    int count, stale;
} along;

static bool goes_along(int n)
{
    const struct sim_job *job = &sim_jobs[n];

    return job->batch < 0 && (job->lock < 0 || job->lock_until_start) && !strchr(job->token, '~');
}

/* At times one was settled before, as after a lost answer. */
static void end_along(const struct worker *worker)
{
    static int list[SIM_JOBS];
    int count = sim_chance(2) ? sim_leases(worker->id, list) : 0;

    along.count = along.stale = 0;
    for (int i = 0; i < count && along.count < ALONG_MOST - 1; i++) {
        const char *type = sim_type_names[sim_jobs[list[i]].type];

        if (!goes_along(list[i]) || (along.count > 0 && type != along.type) || sim_chance(3))
            continue;
        along.type = type;
        along.tokens[along.count++] = sim_token(list[i]);
        sim_end_job(list[i], SIM_DONE);
        sim_unlease(list[i]);
    }
    along_total += along.count;
    along.stale = along.count > 0 && sim_chance(6);
    if (along.stale)
        along.tokens[along.count++] = along.tokens[0];
}

static void check_along(int64_t stale)
{
    if (stale != along.stale)
        sim_fail("%lld leases were stale that a claim was to settle, not %d", (long long)stale, along.stale);
    along.count = 0;
}

/* No claim goes. */
static void settle_along(const struct worker *worker)
{
    int64_t stale;

    if (along.count == 0)
        return;
    sim_must(turns_settle_done(id_of(worker)->name, along.type, along.tokens, (size_t)along.count, &stale),
             "settle");
    check_along(stale);
}

/* Whether anything moved. */
static bool claim_once(struct worker *worker, int free, int prefetch)
{
    struct claim_call call = call_of(worker, free, prefetch);
    int waited = waiting();

    answer_bell(worker);
    call.done_type = along.type;
    call.done = along.tokens;
    call.done_count = along.count;
    sim_must(turns_claim(&call), "claim");
    if (along.count > 0)
        check_along(turns.stale);
    if (turns.claim.duty_until_us == turns.now_us + DUTY_US)
        model_heard();
    sim_claimed(&call, worker->id);
    worker->duty_until_us = turns.claim.duty_until_us;
    worker->alone = turns.claim.alone;
    next_us = turns.claim.next_us;
    worker->known_us = turns.claim.more ? turns.now_us : next_us >= 0 ? next_us : INT64_MAX;
    excuse_bells();
    return turns.claim.lease_count > 0 || waiting() < waited;
}

static int free_of(const struct worker *worker)
{
    static int list[SIM_JOBS];
    int left = worker->executors - sim_leases(worker->id, list);

    return left > 0 ? left : 0;
}

/* Does it claim nothing, as a job is to run alone, or does? At times it gives that up. */
static bool keeps_others(struct worker *worker)
{
    static int list[SIM_JOBS];
    int count = sim_leases(worker->id, list);

    if (count > 0 && sim_jobs[list[0]].together)
        return true;
    if (worker->alone && count > 0 && sim_chance(4))
        worker->alone = false;
    return worker->alone && count > 0;
}

/* A claim, and more of them while there is more than could be taken and an executor for it. */
static void claim_all(struct worker *worker)
{
    int idle = 0;

    end_along(worker);
    if (keeps_others(worker)) {
        settle_along(worker);
        return;
    }
    while (idle < 40) {
        bool moved = claim_once(worker, free_of(worker), worker->prefetch);

        if (!turns.claim.more || free_of(worker) == 0 || keeps_others(worker))
            return;
        idle = moved ? 0 : idle + 1;
    }
    sim_fail("there is more to take, and an executor, but nothing moves");
}

static void claim_unregistered(struct worker *worker)
{
    struct claim_call call = call_of(worker, 1, 0);
    struct span token = span_str("1.--/high/t0/");

    call.done_type = "t0";
    call.done = &token;
    call.done_count = sim_chance(2);
    turns.stale = call.done_count;
    if (turns_claim(&call) == 0 || !turn_is_unregistered(&turns.error) || turns.stale != call.done_count)
        sim_fail("a worker that was reaped claims, or settles");
}

/* ---- Later */

/* What Redis sorts by among those due at the same time. */
static void header_of(int n, char out[700])
{
    const struct sim_job *job = &sim_jobs[n];
    const char *queue = sim_queue_names[job->queue], *type = sim_type_names[job->type];

    if (job->scheduled)
        snprintf(out, 700, "q j%d.tag %s %s\n", n, queue, type);
    else
        snprintf(out, 700, "l %s:%.*s %s/%s/%s\n", sim_ids[job->owner].name, (int)strcspn(job->token, "/"),
                 job->token, queue, type, sim_key_text(job->key));
}

static int due_order(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    char header_x[700], header_y[700];

    if (sim_jobs[x].due_us != sim_jobs[y].due_us)
        return sim_jobs[x].due_us < sim_jobs[y].due_us ? -1 : 1;
    header_of(x, header_x);
    header_of(y, header_y);
    return strcmp(header_x, header_y);
}

static void promote_some(void)
{
    static int due[SIM_JOBS], returned[SIM_JOBS];
    int count = 0, most = (int)(sim_chance(3) ? sim_pick(1, 5) : 1000), returned_count = 0;
    int64_t moved;

    for (int n = 0; n < sim.job_count; n++)
        if (sim_jobs[n].place == SIM_LATER && sim_jobs[n].due_us <= turns.now_us)
            due[count++] = n;
    qsort(due, (size_t)count, sizeof *due, due_order);
    if (count > most)
        count = most;
    sim_must(turns_promote(most, &moved), "promote");
    sim_fail_if(moved != count, "promote: %lld moved, %d are due", (long long)moved, count);
    for (int i = 0; i < count; i++)
        if (sim_jobs[due[i]].scheduled)
            sim_to_queue(due[i]);
        else
            returned[returned_count++] = due[i];
    sim_return(returned, returned_count);
}

/* ---- Workers */

static void new_id(struct worker *worker)
{
    struct sim_id *id = &sim_ids[sim.id_count];

    model_heard();
    worker->id = sim.id_count++;
    snprintf(id->name, sizeof id->name, "w%d", (int)sim_pick(0, 9) * 1000 + worker->id);
    id->registered = true;
    id->deadline_us = turns.now_us + LEASE_US;
    id->inside = (unsigned)sim_pick(0, (1 << SIM_TYPES) - 1) | (sim_chance(2) ? ~0u : 0);
}

/* It says which types can end it, or nothing: all can. */
static const char *info_of(const struct sim_id *id)
{
    static char text[200];
    int len = snprintf(text, sizeof text, "{\"lease\":30.0,\"inside\":[");

    if (id->inside == ~0u)
        return NULL;
    for (int t = 0; t < SIM_TYPES; t++)
        if (id->inside & 1u << t)
            len += snprintf(text + len, sizeof text - (size_t)len, "%s\"%s\"",
                            text[len - 1] == '[' ? "" : ",", sim_type_names[t]);
    snprintf(text + len, sizeof text - (size_t)len, "]}");
    return text;
}

static struct names queues_of(const struct worker *worker)
{
    return (struct names){worker->queues, worker->queue_count};
}

static void start_worker(struct worker *worker)
{
    new_id(worker);
    worker->crashed = false;
    worker->duty_until_us = 0;
    turns.info = info_of(id_of(worker));
    sim_must(turns_adopt(id_of(worker)->name, "", NULL, 0, queues_of(worker), NULL), "adopt");
}

/* As adopt.lua does it: the last ones first, so many at once; -1: it has ended. */
static void give_back(const int *gone, int count)
{
    enum { AT_ONCE = 8 };

    for (int end = count; end > 0; end -= AT_ONCE) {
        int back[AT_ONCE], back_count = 0;

        for (int i = end > AT_ONCE ? end - AT_ONCE : 0; i < end; i++)
            if (gone[i] >= 0)
                back[back_count++] = gone[i];
        sim_come_back(back, back_count);
    }
}

/* Under a new id, with what it had before the job `first`, or part of that; or it leaves. */
static void adopt_anew(struct worker *worker, bool leaves, int64_t turn_most)
{
    static int list[SIM_JOBS], gone[SIM_JOBS];
    static struct span running[SIM_JOBS];
    int old = worker->id, count = sim_leases(old, list), gone_count = 0;
    size_t kept = 0, lost, expected;

    if (!leaves)
        new_id(worker);
    for (int i = 0; i < count; i++)
        if (!leaves && !sim_chance(3) && atoll(sim_jobs[list[i]].token) <= turn_most) {
            running[kept++] = sim_token(list[i]);
            sim_jobs[list[i]].owner = worker->id;
        } else {
            sim_unlease(list[i]);
            gone[gone_count++] = sim_ends_cancelled(list[i]) ? -1 : list[i];
        }
    give_back(gone, gone_count);
    sim_untell(old, leaves ? -1 : worker->id);
    expected = sim_ids[old].registered ? 0 : kept;
    if (!sim_ids[old].registered || sim_chance(3))
        running[kept++] = (struct span){"999999.--/high/t0/", 18}, expected++;
    sim_ids[old].registered = false;
    turns.info = leaves ? NULL : info_of(id_of(worker));
    turns.left = 0;
    for (int times = leaves ? 1 : (int)sim_pick(1, 2); times > 0 || turns.left > 0; times--) {
        sim_must(turns_adopt(leaves ? "" : id_of(worker)->name, sim_ids[old].name, running, kept,
                             queues_of(worker), &lost),
                 "adopt");
        sim_fail_if(lost != expected, "adopt: %zu lost, not %zu", lost, expected);
    }
    worker->duty_until_us = 0;
    if (leaves)
        worker->id = -1;
}

/* A claim whose answer never came: what it granted goes back. */
static void lose_claim(struct worker *worker)
{
    int64_t turn = worker->turn;

    end_along(worker);
    if (keeps_others(worker)) {
        settle_along(worker);
        return;
    }
    claim_once(worker, free_of(worker), worker->prefetch);
    lost_answers++;
    adopt_anew(worker, false, turn);
}

/* ---- Reaping */

static void model_reap(struct sim_id *id)
{
    static int list[SIM_JOBS], back[SIM_JOBS], behind[SIM_JOBS];
    int count = sim_leases((int)(id - sim_ids), list), back_count = 0, behind_count = 0;

    for (int i = 0; i < count; i++) {
        bool suspect = id->inside & 1u << sim_jobs[list[i]].type, again = sim_jobs[list[i]].together > 0;

        sim_unlease(list[i]);
        if (sim_ends_cancelled(list[i]) || (suspect && sim_interrupt(list[i], count, INTERRUPTED_MOST)))
            continue;
        if (suspect && again)
            behind[behind_count++] = list[i];
        else
            back[back_count++] = list[i];
    }
    sim_come_back(back, back_count);
    for (int i = 0; i < behind_count; i++)
        sim_return_behind(behind[i]);
    sim_untell((int)(id - sim_ids), -1);
    id->registered = false;
    reaped++;
}

static void model_tick(struct sim_id *self)
{
    model_heard();
    self->deadline_us = turns.now_us + LEASE_US;
}

static void tick(struct worker *worker)
{
    int64_t taken, count, due = 0;

    sim_must(turns_reap(id_of(worker)->name, &taken, &count), "reap");
    model_tick(id_of(worker));
    for (int i = 0; i < sim.id_count && turns.now_us >= amnesty_us; i++)
        due += sim_ids[i].registered && sim_ids[i].deadline_us <= turns.now_us;
    if (count != (due < 8 ? due : 8))
        sim_fail("reap: %lld workers, %lld are due", (long long)count, (long long)due);
    for (size_t i = 0; i < turns.reply->element[4]->elements; i++)
        for (int k = 0; k < sim.id_count; k++)
            if (strcmp(sim_ids[k].name, turns.reply->element[4]->element[i]->str) == 0) {
                if (!sim_ids[k].registered || sim_ids[k].deadline_us > turns.now_us)
                    sim_fail("reap: %s is alive", sim_ids[k].name);
                model_reap(&sim_ids[k]);
            }
}

/* ---- Steps */

/* A step back is noticed by the worker on duty, or at the next heartbeat, when it is longer than the time
 * since the last one. */
static void set_clock(void)
{
    struct worker *worker = &workers[sim_pick(0, worker_count - 1)];

    if (worker->id < 0 || !id_of(worker)->registered || worker->crashed)
        return;
    tick(worker);
    claim_all(worker);
    turns.now_us -= sim_pick(1, sim_chance(2) ? 7200 * SECOND_US : SECOND_US);
    if (worker->duty_until_us > turns.now_us + DUTY_US && free_of(worker) > 0)
        claim_all(worker);
    else
        tick(worker);
}

static void move_clock(void)
{
    int64_t ahead_us = next_us - turns.now_us;

    switch (sim_pick(0, 9)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (next_us >= 0 && next_us < ENDLESS_US - SECOND_US && ahead_us > 0)
            turns.now_us = next_us - (sim_chance(2) ? 0 : sim_pick(0, ahead_us < 5100 ? ahead_us : 5100));
        break;
    case 4:
        turns.now_us += sim_pick(0, SECOND_US);
        break;
    case 5:
        turns.now_us += sim_chance(10) ? sim_pick(0, 2 * LEASE_US) : sim_pick(0, LEASE_US / 4);
        break;
    case 6:
        if (!sim.models_gates && sim_chance(3))
            set_clock();
        break;
    case 7:
        break;
    default:
        turns.now_us += sim_pick(1, 20000);
    }
}

/* Time passes until its lease is over, with heartbeats of another one. */
static void die(struct worker *worker)
{
    struct worker *other = &workers[sim_pick(0, worker_count - 1)];

    worker->crashed = true;
    for (int beats = 0;
         beats < 6 && other != worker && other->id >= 0 && !other->crashed && id_of(other)->registered;
         beats++) {
        turns.now_us += LEASE_US / 4;
        tick(other);
    }
}

static void step_worker(struct worker *worker)
{
    if (worker->id < 0) {
        start_worker(worker);
        return;
    }
    if (!id_of(worker)->registered) { /* reaped: a crashed one starts as another, a slow one finds out */
        if (worker->crashed) {
            start_worker(worker);
        } else {
            claim_unregistered(worker);
            ends_in_vain(worker->id);
            adopt_anew(worker, false, INT64_MAX);
        }
        return;
    }
    if (worker->crashed)
        return;
    switch (sim_pick(0, 19)) {
    case 0:
        if (sim_chance(2))
            die(worker);
        break;
    case 1:
        adopt_anew(worker, sim_chance(3), INT64_MAX);
        break;
    case 2:
        lose_claim(worker);
        break;
    case 3:
    case 4:
        tick(worker);
        break;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
    case 10:
        ends_some(worker->id);
        break;
    default:
        claim_all(worker);
    }
}

/* What happens beside the workers; returns whether anything did. */
static bool step_outside(int jobs_most)
{
    int calls = turns.calls;

    if (sim.job_count < jobs_most && sim_chance(sim.lives ? 16 : 4))
        push_raw((int)sim_pick(1, jobs_most > 500 ? 300 : sim.lives ? 6 : 20));
    if (sim.job_count < jobs_most && sim_chance(8))
        enqueue_some();
    if (sim_chance(8))
        changes_make();
    if (sim.lives && !sim_chance(4))
        acts_do(sim.job_count < jobs_most);
    if (sim_chance(sim.later_us >= 0 && sim.later_us <= turns.now_us ? 2 : 20))
        promote_some();
    return turns.calls > calls;
}

static void step(int jobs_most)
{
    long long claims = sim_totals.claims;

    move_clock();
    if (step_outside(jobs_most))
        look();
    step_worker(&workers[sim_pick(0, worker_count - 1)]);
    if (sim_totals.claims == claims) /* a claim looks by itself */
        look();
}

/* ---- Worlds */

/* A part of the names, in any order; at least one. */
static int some_of(const char *const *names, int count, const char **out)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (!sim_chance(3))
            out[kept++] = names[i];
    if (kept == 0)
        out[kept++] = names[sim_pick(0, count - 1)];
    for (int i = kept - 1; i > 0; i--) {
        int k = (int)sim_pick(0, i);
        const char *swapped = out[i];

        out[i] = out[k];
        out[k] = swapped;
    }
    return kept;
}

static void make_world(uint64_t seed)
{
    sim_begin(seed);
    sim.lives = seed % 2 == 0;
    next_us = -1;
    tick_us = amnesty_us = 0;
    sim.models_gates = !sim_chance(10);
    sim.spends = sim_chance(3);
    sim.type_count = (int)sim_pick(1, SIM_TYPES);
    sim.queue_count = (int)sim_pick(1, SIM_QUEUES);
    sim.limit_count = (int)sim_pick(0, 4);
    sim.key_count = (int)(sim_chance(2) ? sim_pick(1, 4) : sim_pick(1, 20));
    changes_begin();
    worker_count = (int)sim_pick(1, WORKERS - 1);
    if (sim.lives)
        acts_begin();
    changes_make_limits();
    for (int i = 0; i < worker_count; i++) {
        workers[i] = (struct worker){.id = -1, .executors = (int)SIM_ONE_OF(1, 2, 5, 50)};
        workers[i].prefetch = sim_chance(2) ? 0 : (int)sim_pick(0, 20);
        snprintf(workers[i].group, sizeof workers[i].group, "g%d", i);
        workers[i].type_count = some_of(sim_type_names, sim.type_count, workers[i].types);
        workers[i].queue_count = some_of(sim_queue_names, sim.queue_count, workers[i].queues);
    }
}

static bool all_ended(const struct worker *last)
{
    for (int n = 0; n < sim.job_count; n++)
        if (sim_jobs[n].place < SIM_DEAD)
            return false;
    for (int i = 0; i < sim.id_count; i++)
        if (sim_ids[i].registered && i != last->id)
            return false;
    return true;
}

static int64_t later_of(int64_t a_us, int64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

static int64_t next_beat(const struct worker *worker)
{
    return id_of(worker)->deadline_us - LEASE_US + LEASE_US / 4;
}

/* To the time that the last claim named, or the first job of later; heartbeats in between. */
static void move_to_next(struct worker *worker)
{
    int64_t to_us = next_us >= 0 ? next_us : turns.now_us + LEASE_US / 4;

    if (sim.later_us >= 0 && sim.later_us < to_us)
        to_us = sim.later_us;
    if (to_us <= turns.now_us)
        to_us = turns.now_us + 1;
    for (int beats = 0; beats < 8 && next_beat(worker) <= to_us; beats++) {
        turns.now_us = later_of(turns.now_us, next_beat(worker));
        tick(worker);
    }
    turns.now_us = to_us;
}

static bool is_any_held(void)
{
    for (int q = 0; q < SIM_LINES; q++)
        for (int t = 0; t < sim.type_count; t++)
            if (sim.held[q][t])
                return true;
    return false;
}

static struct worker *start_last_worker(void)
{
    struct worker *all = &workers[WORKERS - 1];

    *all = (struct worker){.id = -1, .executors = sim_chance(2) ? 3 : 100, .group = "all"};
    for (; all->type_count < sim.type_count; all->type_count++)
        all->types[all->type_count] = sim_type_names[all->type_count];
    for (; all->queue_count < sim.queue_count; all->queue_count++)
        all->queues[all->queue_count] = sim_queue_names[all->queue_count];
    start_worker(all);
    tick(all);
    return all;
}

/* Marks of jobs that are nowhere: heartbeats forget them, those that nobody confirmed after a day, by a clock
 * that may have been set back meanwhile. */
static void forget_marks(struct worker *worker)
{
    turns.now_us += 3 * 86400 * SECOND_US;
    for (int beats = 0; beats < 20; beats++)
        tick(worker);
    sim_look();
    acts_check_end();
}

/* One worker that can do all runs everything to its end, under the limits as they are or without any. */
static void drain(void)
{
    struct worker *all;
    bool retried = !sim.lives || sim_chance(2);

    for (int i = 0; i < worker_count; i++)
        if (workers[i].id >= 0 && !workers[i].crashed)
            adopt_anew(&workers[i], true, 0);
    if (sim_chance(2))
        changes_end_limits();
    for (int t = 0; t < sim.type_count; t++)
        if (sim.types[t].pause_until_us == ENDLESS_US)
            changes_pause_type(&sim.types[t], RATE_RESUME);
    if (sim.lives)
        acts_finish();
    all = start_last_worker();
    for (sim.step = 100000; !all_ended(all); sim.step++) {
        sim_fail_if(sim.step > 103000, "does not drain");
        if (sim.later_us >= 0 && sim.later_us <= turns.now_us)
            promote_some();
        if (is_any_held()) {
            struct claim_call call = call_of(all, 0, 0);

            call.held = true;
            sim_must(turns_claim(&call), "claim");
            sim_claimed(&call, all->id);
            all->alone = turns.claim.alone;
        }
        claim_all(all);
        ends_all(all->id);
        move_to_next(all);
        if (!retried && all_ended(all)) {
            retried = true;
            acts_retry_dead();
            sim_look();
        }
    }
    if (sim.lives)
        forget_marks(all);
    adopt_anew(all, true, 0);
    sim.step = 0; /* the doctor looks too */
    sim_look();
}

static void check_nothing_left(void)
{
    static const char *const stay[] = {
        "queues",  "types",     "limits", "gate:",   "stats:", "reap",    "dead",       "id:",      "bell:",
        "spare:",  "duty",      "stop:",  "changes", "acts",   "weights", "key_pauses", "longest:", "batch:",
        "batches", "finished:", "kept:",  "at:",     "about",  "alone",   "revisions",  "news:"};
    char *keys = server_ask(&turns.server, "KEYS", "*", NULL), *rest = keys;

    for (char *key; (key = strsep(&rest, "\n"));) {
        const char *name = key + strlen(PREFIX);
        bool known = false;

        for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
            known |=
                strncmp(key, PREFIX, strlen(PREFIX)) == 0 && strncmp(name, stay[i], strlen(stay[i])) == 0;
        sim_fail_if(!known, "%s is left over", key);
    }
    free(keys);
}

static void run_world(uint64_t seed)
{
    int steps, jobs_most;

    make_world(seed);
    steps = sim.lives ? (int)sim_pick(8, 50) : (int)sim_pick(8, 30);
    jobs_most = (int)(sim_chance(200) ? 1500 : sim.lives ? sim_pick(20, 80) : sim_pick(5, 40));
    for (sim.step = 0; sim.step < steps; sim.step++)
        step(jobs_most);
    drain();
    check_nothing_left();
}

TEST_WITH(test_random_worlds, turns_flush, NULL)
{
    uint64_t seed = getenv("WEIR_SEED") ? random_seed() : USUAL_SEED;
    const char *given = getenv("WEIR_WORLDS");
    int64_t end_us = clock_mono_us() + WORLDS_S * SECOND_US;
    int worlds = 0, most = given ? atoi(given) : WORLDS;

    while (worlds < most && (given || clock_mono_us() < end_us))
        run_world(seed + (uint64_t)worlds++);
    sim_end();
    print_message(
        "%d worlds from seed %llu: %lld claims, %lld starts, %lld of them with a slot, %lld looks that "
        "met a hold, %lld workers reaped, %lld answers lost, %lld settled by a claim, %lld throttled, %lld "
        "changes "
        "of limits\n",
        worlds, (unsigned long long)seed, sim_totals.claims, sim_totals.starts, sim_totals.slots,
        sim_totals.holds, reaped, lost_answers, along_total, ends_throttled, changes_count);
    print_message(
        "%lld starts of suspects, %lld of them alone, %lld jobs enqueued with a batch or lock, %lld refused, "
        "%lld cancelled by name, "
        "%lld run by name, %lld acted on by a search, "
        "%lld purged, "
        "%lld ended as cancelled, %lld set aside, %lld batches followed, %lld dead jobs retried, %lld "
        "acts broken off\n",
        sim_totals.suspects, sim_totals.alone, acts_totals.enqueued, acts_totals.refused, acts_totals.cancels,
        acts_totals.runs, acts_totals.by_search, acts_totals.purged, sim_totals.cancelled, sim_totals.aside,
        sim_totals.fired, sim_totals.revived, acts_totals.broken_off);
}

static void load_library(const char *text)
{
    struct args a = {0};

    args_add(&a, "FUNCTION");
    args_add(&a, "LOAD");
    args_add(&a, "REPLACE");
    args_add(&a, text);
    assert_int_equal(turns_send(&a), 0);
}

/* What a claim remembers to be faster decides nothing. */
TEST_WITH(test_random_worlds_without_caches, turns_flush, NULL)
{
    static const char on[] = "local ON = true\n", off[] = "local ON = nil \n";
    char *text = strdup(script_library);
    uint64_t seed = getenv("WEIR_SEED") ? random_seed() : USUAL_SEED;

    assert_non_null(text);
    assert_non_null(strstr(text, on));
    for (char *at = text; (at = strstr(at, on)) != NULL;)
        memcpy(at, off, strlen(off));
    load_library(text);
    for (uint64_t i = 0; i < WORLDS_WITHOUT; i++)
        run_world(seed + i);
    sim_end();
    load_library(script_library);
    free(text);
}

static int stop_all(void **state)
{
    acts_stop();
    return turns_stop(state);
}

TESTS(turns_start, stop_all)
