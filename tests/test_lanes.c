/* The scripts of a turn against a model, under virtual time: worlds of random types, rules, queues and
 * workers, in which jobs are pushed, claimed, settled by every verb, retried, taken back, handed back, while
 * workers crash, limits change and the clock is set. After each step: each job is in the place where the
 * model has it, the invariants hold, starts are exactly those of a leaky bucket (gate_model.h), each lane is
 * first in first out, no slot is left while an executor is free.
 *
 * World n is made of the seed $WEIR_SEED + n; a failure names the world's own seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock.h"
#include "tests/gate_model.h"
#include "tests/turns.h"
#include "throttle/gcra.h"

enum {
    TYPES = 10,
    QUEUES = 3,
    WORKERS = 5,
    IDS = 400,
    JOBS = 12000,
    LATE = 5000 /* us ahead, as in gate.lua */
};
#define WORLDS 300 /* as many as fit into that time: */
#define WORLDS_S 18
#define INTERRUPTED_MOST 3
#define HOUR_US INT64_C(3600000000)

/* ---- The model */

enum place { WAITING, LEASED, LATER, DONE, DEAD };

/* Jobs of one (queue, type) that wait, in the lane or behind it in the queue, are a line: linked by next. */
struct job {
    int queue, type, next;
    enum place place;
    int attempts, interrupted, throttled;
    int owner;       /* index in ids; while leased, or the last */
    char token[160]; /* the same */
    int64_t due_us;
    bool scheduled; /* LATER: goes to the tail of its queue, not to the head of its lane */
};

struct line {
    int head, tail;
};

struct type {
    const char *name;
    bool limited;
    struct rule rule; /* that is set */
    struct model gate;
    bool used; /* the gate has a state */
    int64_t wrote_us;
    char state[160];
};

/* A worker's name in Redis: gone when it was reaped or left. */
struct id {
    char name[24];
    bool registered;
    int64_t deadline_us;
};

struct worker {
    int id; /* -1: not there */
    bool crashed;
    int64_t turn, duty_until_us;
    int types[TYPES], type_count;
    int queues[QUEUES], queue_count;
};

static struct job jobs[JOBS];
static struct id ids[IDS];
static struct world {
    uint64_t seed, random;
    int step;
    int job_count, raw;
    struct line lines[QUEUES][TYPES];
    struct type types[TYPES];
    int type_count, queue_count;
    struct worker workers[WORKERS];
    int worker_count;
    int id_count;
    int64_t tick_us, amnesty_us;
    int64_t next_us; /* of the last claim */
    bool sets_clock;
    /* As Redis has it now. */
    int64_t lanes[QUEUES][TYPES], queued;
    bool held[QUEUES][TYPES];
} w;

static struct {
    long long claims, starts, slots, reaped, interrupted;
} totals;

static const char *const queue_names[QUEUES] = {"high", "mid", "low"};
static const char *const type_names[TYPES] = {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"};

static void give_up(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void give_up(const char *fmt, ...)
{
    char text[1024];
    va_list rest;

    va_start(rest, fmt);
    vsnprintf(text, sizeof text, fmt, rest);
    va_end(rest);
    fail_msg("WEIR_SEED=%llu: step %d: %s", (unsigned long long)w.seed, w.step, text);
    abort();
}

static int64_t pick(int64_t low, int64_t high)
{
    return random_in(&w.random, low, high);
}

static bool chance(int one_in)
{
    return pick(1, one_in) == 1;
}

static void must(int rc, const char *what)
{
    if (rc != 0)
        give_up("%s: %s", what, turns.error.text);
}

static struct id *id_of(const struct worker *worker)
{
    return &ids[worker->id];
}

static void line_append(int n)
{
    struct line *line = &w.lines[jobs[n].queue][jobs[n].type];

    jobs[n].place = WAITING;
    jobs[n].next = -1;
    if (line->head < 0)
        line->head = n;
    else
        jobs[line->tail].next = n;
    line->tail = n;
}

static void line_prepend(int n)
{
    struct line *line = &w.lines[jobs[n].queue][jobs[n].type];

    jobs[n].place = WAITING;
    jobs[n].next = line->head;
    if (line->head < 0)
        line->tail = n;
    line->head = n;
}

/* By turn and index of their tokens. */
static int token_order(const void *a, const void *b)
{
    const char *x = jobs[*(const int *)a].token, *y = jobs[*(const int *)b].token;
    long long turn_x = atoll(x), turn_y = atoll(y);

    return turn_x != turn_y ? (turn_x < turn_y ? -1 : 1) : memcmp(strchr(x, '.'), strchr(y, '.'), 3);
}

/* These go back to the heads of their lines, in their order. */
static void return_in_order(const int *list, int count)
{
    for (int i = count - 1; i >= 0; i--)
        line_prepend(list[i]);
}

static int leases_of(int owner, int list[JOBS])
{
    int count = 0;

    for (int n = 0; n < w.job_count; n++)
        if (jobs[n].place == LEASED && jobs[n].owner == owner)
            list[count++] = n;
    qsort(list, (size_t)count, sizeof *list, token_order);
    return count;
}

static struct span token_of(int n)
{
    return (struct span){jobs[n].token, strlen(jobs[n].token)};
}

/* The gate of a type as it is when it is looked at now. */
static struct model gate_now(const struct type *type)
{
    struct model m = type->gate;

    if (!type->used) {
        model_init(&m, &type->rule);
        return m;
    }
    if (type->wrote_us > turns.now_us)
        model_step_back(&m, type->wrote_us - turns.now_us);
    if (memcmp(&m.rule, &type->rule, sizeof m.rule) != 0)
        model_change(&m, &type->rule, turns.now_us);
    return m;
}

static int64_t opening_of(const struct type *type)
{
    struct model m = gate_now(type);

    return type->limited ? model_start(&m, turns.now_us, 1) : turns.now_us;
}

/* ---- What Redis has */

static const char peek_text[] =
    "local P, reply, queued = KEYS[1], {}, 0\n"
    "local queues = tonumber(ARGV[1])\n"
    "for q = 2, 1 + queues do\n"
    "  queued = queued + redis.call('LLEN', P .. 'queue:' .. ARGV[q])\n"
    "  for t = 2 + queues, #ARGV do\n"
    "    reply[#reply + 1] = redis.call('LLEN', P .. 'lane:' .. ARGV[q] .. '/' .. ARGV[t] .. '/')\n"
    "    reply[#reply + 1] = redis.call('ZSCORE', P .. 'held:' .. ARGV[q], ARGV[t]) and 1 or 0\n"
    "  end\n"
    "end\n"
    "for t = 2 + queues, #ARGV do reply[#reply + 1] = redis.call('GET', P .. 'gate:' .. ARGV[t] .. '#0') or "
    "'' end\n"
    "reply[#reply + 1] = queued\n"
    "return reply\n";

/* A gate that was written has seen the clock and the rule as they are now. */
static void note_gate(struct type *type, const char *state)
{
    if (strcmp(state, type->state) == 0)
        return;
    type->gate = gate_now(type);
    type->used = true;
    type->wrote_us = turns.now_us;
    snprintf(type->state, sizeof type->state, "%s", state);
}

static void peek(void)
{
    struct redisReply *reply, **at;
    struct args a;

    args_init(&a);
    args_add(&a, "EVAL");
    args_add(&a, peek_text);
    args_add(&a, "1");
    args_add(&a, PREFIX);
    args_add_int(&a, w.queue_count);
    for (int q = 0; q < w.queue_count; q++)
        args_add(&a, queue_names[q]);
    for (int t = 0; t < w.type_count; t++)
        args_add(&a, w.types[t].name);
    must(redis_call(turns.redis, &a, &reply, NULL, &turns.error), "peek");
    args_free(&a);
    at = reply->element;
    for (int q = 0; q < w.queue_count; q++)
        for (int t = 0; t < w.type_count; t++) {
            w.lanes[q][t] = (*at++)->integer;
            w.held[q][t] = (*at++)->integer != 0;
        }
    for (int t = 0; t < w.type_count; t++)
        note_gate(&w.types[t], (*at++)->str);
    w.queued = (*at)->integer;
    freeReplyObject(reply);
}

/* Each job is where the model has it. */
static void check_places(void)
{
    struct invariants seen;
    const char *why = invariants_broken(turns.redis, PREFIX, turns.now_us, LEASE_US, &seen);
    int64_t places[DEAD + 1] = {0};

    if (why)
        give_up("%s", why);
    for (int n = 0; n < w.job_count; n++)
        places[jobs[n].place]++;
    if (seen.queued + seen.parked != places[WAITING] || seen.leased != places[LEASED] ||
        seen.later != places[LATER] || seen.dead != places[DEAD] || seen.foreign != w.raw)
        give_up("Redis has %lld queued, %lld parked, %lld leased, %lld later, %lld dead, %lld foreign; the "
                "model %lld "
                "waiting, %lld leased, %lld later, %lld dead, %d foreign",
                (long long)seen.queued, (long long)seen.parked, (long long)seen.leased, (long long)seen.later,
                (long long)seen.dead, (long long)seen.foreign, (long long)places[WAITING],
                (long long)places[LEASED], (long long)places[LATER], (long long)places[DEAD], w.raw);
}

/* ---- Jobs in */

static int new_job(int queue, int type)
{
    int n = w.job_count++;

    jobs[n] = (struct job){.queue = queue, .type = type};
    return n;
}

static void push_raw(int count)
{
    struct args a;
    int queue = (int)pick(0, w.queue_count - 1);
    char text[256];

    args_init(&a);
    args_add(&a, "RPUSH");
    snprintf(text, sizeof text, PREFIX "queue:%s", queue_names[queue]);
    args_add(&a, text);
    for (int i = 0; i < count; i++) {
        int n = new_job(queue, (int)pick(0, w.type_count - 1));
        static const char *const forms[] = {"{\"id\":\"j%d\",\"type\":\"%s\",\"args\":{\"to\":[1,2]}}",
                                            " { \"args\":null,\"id\" : \"j%d\", \"type\" :\"%s\" } "};

        snprintf(text, sizeof text, forms[chance(4)], n, w.types[jobs[n].type].name);
        args_add(&a, text);
        line_append(n);
    }
    w.raw += count;
    must(turns_send(&a), "RPUSH");
}

static void enqueue_some(void)
{
    for (int64_t i = pick(1, 8); i > 0; i--) {
        int n = new_job((int)pick(0, w.queue_count - 1), (int)pick(0, w.type_count - 1));
        struct job *job = &jobs[n];
        int64_t delay_us = chance(4) ? pick(1, 3000000) : -1;
        char id[16];

        snprintf(id, sizeof id, "j%d", n);
        must(turns_enqueue(queue_names[job->queue], w.types[job->type].name, id, delay_us), "enqueue");
        if (delay_us < 0) {
            line_append(n);
            continue;
        }
        job->place = LATER;
        job->scheduled = true;
        job->due_us = turns.now_us + delay_us;
    }
}

/* ---- Claiming */

struct asked {
    struct worker *worker;
    struct claim_call call;
    const char *queues[QUEUES], *types[TYPES];
};

static bool runs(const struct worker *worker, int type)
{
    for (int i = 0; i < worker->type_count; i++)
        if (worker->types[i] == type)
            return true;
    return false;
}

static void ask_claim(struct asked *asked, struct worker *worker, int free, int prefetch)
{
    *asked = (struct asked){.worker = worker};
    for (int i = 0; i < worker->queue_count; i++)
        asked->queues[i] = queue_names[worker->queues[i]];
    for (int i = 0; i < worker->type_count; i++)
        asked->types[i] = w.types[worker->types[i]].name;
    asked->call = (struct claim_call){.worker = id_of(worker)->name,
                                      .group = "g",
                                      .turn = ++worker->turn,
                                      .free = free,
                                      .prefetch = prefetch,
                                      .look = (int)(chance(3) ? pick(1, 16) : pick(16, 1000)),
                                      .duty_until_us = worker->duty_until_us,
                                      .held = chance(3),
                                      .mark = chance(5),
                                      .queues = {asked->queues, worker->queue_count},
                                      .types = {asked->types, worker->type_count}};
}

static int type_named(struct span name)
{
    for (int t = 0; t < w.type_count; t++)
        if (strlen(w.types[t].name) == name.len && memcmp(w.types[t].name, name.at, name.len) == 0)
            return t;
    give_up("a lease of the unknown type %.*s", (int)name.len, name.at);
}

/* The number in "id":"j123". */
static int job_in(struct span body)
{
    struct job_view view;
    int n;

    if (job_read(body.at, body.len, &view, &turns.error) != 0 || !view.id.at)
        give_up("a lease of what is no job: %.*s", (int)body.len, body.at);
    n = atoi(view.id.at + 1);
    if (n < 0 || n >= w.job_count)
        give_up("a lease of the unknown job %d", n);
    return n;
}

static void check_slot(struct type *type, const struct lease *lease)
{
    int64_t start_us;

    if (!type->limited) {
        if (lease->slot_us != 0)
            give_up("%s has no limit, and a slot", type->name);
        return;
    }
    start_us = model_start(&type->gate, turns.now_us, 1);
    if (lease->slot_us != start_us || start_us > turns.now_us + LATE)
        give_up("%s starts at now + %lld, not now + %lld", type->name,
                (long long)(lease->slot_us - turns.now_us), (long long)(start_us - turns.now_us));
    model_take(&type->gate, start_us, 1);
    totals.slots++;
}

static void check_lease(const struct asked *asked, const struct lease *lease)
{
    int type = type_named(lease->type), n = job_in(lease->body);
    struct job *job = &jobs[n];
    struct line *line = &w.lines[job->queue][job->type];

    if (job->type != type || !runs(asked->worker, type))
        give_up("job %d of %s was leased as %s", n, w.types[job->type].name, w.types[type].name);
    if (job->place != WAITING)
        give_up("job %d was leased, but it is in place %d", n, job->place);
    if (line->head != n)
        give_up("job %d of %s/%s was leased before job %d", n, queue_names[job->queue], w.types[type].name,
                line->head);
    if (lease->attempts != job->attempts || lease->interrupted != job->interrupted ||
        lease->throttled != job->throttled)
        give_up("job %d: @%d,%d,%d, not @%d,%d,%d", n, lease->attempts, lease->interrupted, lease->throttled,
                job->attempts, job->interrupted, job->throttled);
    check_slot(&w.types[type], lease);
    line->head = job->next;
    job->place = LEASED;
    job->owner = asked->worker->id;
    snprintf(job->token, sizeof job->token, "%.*s", (int)lease->token.len, lease->token.at);
}

/* Strictly: the queues come in their order, and a limit takes an executor. */
static void check_room(const struct asked *asked)
{
    int limited = 0;

    for (size_t i = 0; i < turns.claim.lease_count; i++)
        limited += turns.claim.leases[i].slot_us != 0;
    if (limited > asked->call.free ||
        turns.claim.lease_count > (size_t)(asked->call.free + asked->call.prefetch))
        give_up("%zu leases, %d with limits, for %d executors and %d in advance", turns.claim.lease_count,
                limited, asked->call.free, asked->call.prefetch);
}

/* Nothing that could start waits while there is room for it. */
static void check_nothing_waits(const struct asked *asked)
{
    const struct worker *worker = asked->worker;
    int64_t left = asked->call.free + asked->call.prefetch - (int64_t)turns.claim.lease_count;

    for (int i = 0; i < worker->queue_count; i++)
        for (int k = 0; k < worker->type_count; k++) {
            int q = worker->queues[i], t = worker->types[k];
            const struct type *type = &w.types[t];
            int head = w.lines[q][t].head;
            bool alone = head >= 0 && (type->limited || jobs[head].interrupted > 0);

            if (head >= 0 && !w.held[q][t] && opening_of(type) <= turns.now_us + LATE &&
                left > (alone ? asked->call.prefetch : 0))
                give_up("job %d of %s/%s could start, with room for %lld", head, queue_names[q], type->name,
                        (long long)left);
        }
}

static void check_next(const struct asked *asked)
{
    const struct claim *claim = &turns.claim;
    int64_t later_us = INT64_MAX;

    for (int i = 0; i < asked->worker->queue_count; i++)
        for (int t = 0; t < w.type_count; t++) {
            int q = asked->worker->queues[i];
            int64_t opens_us = opening_of(&w.types[t]);

            if (w.lanes[q][t] > 0 && !w.held[q][t] && (claim->next_us < 0 || claim->next_us > opens_us))
                give_up("%s/%s opens at now + %lld; next is %lld", queue_names[q], w.types[t].name,
                        (long long)(opens_us - turns.now_us),
                        (long long)(claim->next_us < 0 ? -1 : claim->next_us - turns.now_us));
        }
    if (claim->next_us >= 0 && claim->next_us <= turns.now_us + LATE && !claim->more)
        give_up("next is now + %lld, but there is no more to take",
                (long long)(claim->next_us - turns.now_us));
    for (int n = 0; n < w.job_count; n++)
        if (jobs[n].place == LATER && jobs[n].due_us < later_us)
            later_us = jobs[n].due_us;
    if (claim->later_us != (later_us == INT64_MAX ? -1 : later_us))
        give_up("later is %lld, not %lld", (long long)claim->later_us, (long long)later_us);
}

/* One claim, checked. Returns whether anything moved. */
static bool claim_once(struct worker *worker, int free, int prefetch)
{
    int64_t queued;
    struct asked asked;

    peek();
    queued = w.queued;
    ask_claim(&asked, worker, free, prefetch);
    must(turns_claim(&asked.call), "claim");
    peek();
    if (turns.claim.now_us != turns.now_us || turns.claim.broken_count != 0)
        give_up("claim: another time, or broken limits");
    check_room(&asked);
    totals.claims++;
    totals.starts += (long long)turns.claim.lease_count;
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        check_lease(&asked, &turns.claim.leases[i]);
    if (!turns.claim.more)
        check_nothing_waits(&asked);
    check_next(&asked);
    worker->duty_until_us = turns.claim.duty_until_us;
    w.next_us = turns.claim.next_us;
    return turns.claim.lease_count > 0 || w.queued < queued;
}

/* A claim, and more of them while there is more than could be taken and an executor for it. */
static void claim_all(struct worker *worker, int free, int prefetch)
{
    int idle = 0;

    while (idle < 3) {
        bool moved = claim_once(worker, free, prefetch);
        int64_t left = free + prefetch - (int64_t)turns.claim.lease_count;

        if (!turns.claim.more || left <= prefetch)
            return;
        free = (int)left - prefetch;
        idle = moved ? 0 : idle + 1;
    }
    give_up("there is more to take, and an executor, but nothing moves");
}

static void claim_unregistered(struct worker *worker)
{
    struct asked asked;

    ask_claim(&asked, worker, 1, 0);
    if (turns_claim(&asked.call) == 0 || !turn_is_unregistered(&turns.error))
        give_up("a worker that was reaped claims");
}

/* ---- Settling */

static void settle_as(struct args *a, int n, enum settle_verb verb, int64_t delay_us)
{
    struct job *job = &jobs[n];

    settle_end(a, verb, token_of(n), delay_us, verb == SETTLE_DEAD ? "no\nway" : NULL);
    if (verb == SETTLE_DEAD) {
        job->place = DEAD;
    } else if (verb == SETTLE_BACK) {
        job->place = WAITING; /* put into its line when all are known */
    } else {
        job->attempts += verb == SETTLE_RETRY;
        job->throttled += verb == SETTLE_THROTTLED;
        job->place = LATER;
        job->scheduled = false;
        job->due_us = turns.now_us + delay_us;
    }
}

/* Those of list that are done, by type. */
static void settle_done_ones(struct args *a, const int *list, int count)
{
    for (int t = 0; t < w.type_count; t++) {
        size_t done = 0;

        for (int i = 0; i < count; i++)
            done += jobs[list[i]].type == t && jobs[list[i]].place == DONE;
        if (done == 0)
            continue;
        settle_done(a, w.types[t].name, done);
        for (int i = 0; i < count; i++)
            if (jobs[list[i]].type == t && jobs[list[i]].place == DONE)
                settle_token(a, token_of(list[i]));
    }
}

/* Settles part of what the worker has; often one of them twice. */
static void settle_some(struct worker *worker)
{
    static int list[JOBS], back[JOBS];
    int count = leases_of(worker->id, list), kept = 0, back_count = 0, again = -1;
    int64_t stale;
    struct args a;

    for (int i = 0; i < count; i++)
        if (!chance(3))
            list[kept++] = list[i];
    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, id_of(worker)->name);
    for (int i = 0; i < kept; i++) {
        int n = list[i];

        if (!chance(3)) {
            jobs[n].place = DONE;
            continue;
        }
        settle_as(&a, n, (enum settle_verb)pick(SETTLE_RETRY, SETTLE_DEAD),
                  chance(3) ? 1000000 : pick(0, 3000000));
        if (jobs[n].place == WAITING)
            back[back_count++] = n;
        again = n;
    }
    settle_done_ones(&a, list, kept);
    if (again >= 0)
        settle_end(&a, SETTLE_RETRY, token_of(again), 0, NULL);
    must(turns_send(&a), "settle");
    must(settle_reply(turns.reply, &stale, &turns.error), "settle");
    if (stale != (again >= 0))
        give_up("settle: %lld leases were stale, not %d", (long long)stale, again >= 0);
    return_in_order(back, back_count);
}

/* What was reaped settles nothing. */
static void settle_in_vain(struct worker *worker)
{
    const char *token = "1.--/high/t0/";
    int64_t stale;

    must(turns_settle_end(id_of(worker)->name, SETTLE_DEAD, (struct span){token, strlen(token)}, 0, "x",
                          &stale),
         "settle");
    if (stale != 1)
        give_up("settle: a worker that was reaped settles");
}

/* ---- Later */

/* What Redis sorts by among those due at the same time. */
static void header_of(int n, char out[400])
{
    const struct job *job = &jobs[n];
    const char *queue = queue_names[job->queue], *type = type_names[job->type];

    if (job->scheduled)
        snprintf(out, 400, "q j%d.tag %s %s\n", n, queue, type);
    else
        snprintf(out, 400, "l %s:%.*s %s/%s/\n", ids[job->owner].name, (int)strcspn(job->token, "/"),
                 job->token, queue, type);
}

static int due_order(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    char header_x[400], header_y[400];

    if (jobs[x].due_us != jobs[y].due_us)
        return jobs[x].due_us < jobs[y].due_us ? -1 : 1;
    header_of(x, header_x);
    header_of(y, header_y);
    return strcmp(header_x, header_y);
}

static void promote_some(void)
{
    static int due[JOBS], returned[JOBS];
    int count = 0, most = (int)(chance(3) ? pick(1, 5) : 1000), returned_count = 0;
    int64_t moved;

    for (int n = 0; n < w.job_count; n++)
        if (jobs[n].place == LATER && jobs[n].due_us <= turns.now_us)
            due[count++] = n;
    qsort(due, (size_t)count, sizeof *due, due_order);
    if (count > most)
        count = most;
    must(turns_promote(most, &moved), "promote");
    if (moved != count)
        give_up("promote: %lld moved, %d are due", (long long)moved, count);
    for (int i = 0; i < count; i++)
        if (jobs[due[i]].scheduled)
            line_append(due[i]);
        else
            returned[returned_count++] = due[i];
    return_in_order(returned, returned_count);
}

/* ---- Workers */

static void new_id(struct worker *worker)
{
    struct id *id = &ids[w.id_count];

    worker->id = w.id_count++;
    snprintf(id->name, sizeof id->name, "w%d", (int)pick(0, 9) * 1000 + worker->id);
    id->registered = true;
    id->deadline_us = turns.now_us + LEASE_US;
}

static struct names names_of(const struct worker *worker, const char *queues[QUEUES])
{
    for (int i = 0; i < worker->queue_count; i++)
        queues[i] = queue_names[worker->queues[i]];
    return (struct names){queues, worker->queue_count};
}

static void start_worker(struct worker *worker)
{
    const char *queues[QUEUES];

    new_id(worker);
    worker->crashed = false;
    worker->duty_until_us = 0;
    must(turns_adopt(id_of(worker)->name, "", NULL, 0, names_of(worker, queues), NULL), "adopt");
}

/* Under a new id, with part of what it had; or it leaves. */
static void adopt_anew(struct worker *worker, bool leaves)
{
    static int list[JOBS], back[JOBS];
    static struct span running[JOBS];
    int old = worker->id, count = leases_of(old, list), back_count = 0;
    size_t kept = 0, lost, expected;
    const char *queues[QUEUES];

    if (!leaves)
        new_id(worker);
    for (int i = 0; i < count; i++)
        if (!leaves && !chance(3)) {
            running[kept++] = token_of(list[i]);
            jobs[list[i]].owner = worker->id;
        } else {
            back[back_count++] = list[i];
        }
    return_in_order(back, back_count);
    expected = ids[old].registered ? 0 : kept;
    if (!ids[old].registered || chance(3))
        running[kept++] = (struct span){"999999.--/high/t0/", 18}, expected++;
    ids[old].registered = false;
    for (int times = leaves ? 1 : (int)pick(1, 2); times > 0; times--) {
        must(turns_adopt(leaves ? "" : id_of(worker)->name, ids[old].name, running, kept,
                         names_of(worker, queues), &lost),
             "adopt");
        if (lost != expected)
            give_up("adopt: %zu lost, not %zu", lost, expected);
    }
    worker->duty_until_us = 0;
    if (leaves)
        worker->id = -1;
}

/* ---- Reaping */

static void model_reap(struct id *id)
{
    static int list[JOBS], back[JOBS];
    int count = leases_of((int)(id - ids), list), back_count = 0;

    for (int i = 0; i < count; i++) {
        struct job *job = &jobs[list[i]];

        if (++job->interrupted >= INTERRUPTED_MOST)
            job->place = DEAD;
        else
            back[back_count++] = list[i];
    }
    return_in_order(back, back_count);
    id->registered = false;
    totals.reaped++;
    totals.interrupted += count;
}

static void model_tick(struct id *self)
{
    if (turns.now_us < w.tick_us)
        for (int i = 0; i < w.id_count; i++)
            ids[i].deadline_us -= w.tick_us - turns.now_us;
    if (turns.now_us < w.tick_us || turns.now_us - w.tick_us > LEASE_US / 2)
        w.amnesty_us = turns.now_us + LEASE_US;
    if (w.amnesty_us > turns.now_us + LEASE_US)
        w.amnesty_us = turns.now_us + LEASE_US;
    w.tick_us = turns.now_us;
    self->deadline_us = turns.now_us + LEASE_US;
}

static void tick(struct worker *worker)
{
    int64_t taken, workers, due = 0;

    must(turns_reap(id_of(worker)->name, &taken, &workers), "reap");
    model_tick(id_of(worker));
    for (int i = 0; i < w.id_count && turns.now_us >= w.amnesty_us; i++)
        due += ids[i].registered && ids[i].deadline_us <= turns.now_us;
    if (workers != (due < 8 ? due : 8))
        give_up("reap: %lld workers, %lld are due", (long long)workers, (long long)due);
    for (size_t i = 2; i < turns.reply->elements; i++)
        for (int k = 0; k < w.id_count; k++)
            if (strcmp(ids[k].name, turns.reply->element[i]->str) == 0) {
                if (!ids[k].registered || ids[k].deadline_us > turns.now_us)
                    give_up("reap: %s is alive", ids[k].name);
                model_reap(&ids[k]);
            }
}

/* ---- Steps */

static void set_rule(int t)
{
    struct type *type = &w.types[t];
    char stored[RULE_TEXT_SIZE] = "";

    type->limited = !chance(4);
    if (type->limited) {
        type->rule = random_rule(&w.random);
        rule_write(&type->rule, stored);
    }
    must(turns_rate(type->name, stored), "rate set");
}

/* A step back is noticed at the next heartbeat, when it is longer than the time since the last one. */
static void set_clock(void)
{
    struct worker *worker = &w.workers[pick(0, w.worker_count - 1)];

    if (chance(2)) {
        turns.now_us += pick(0, 2 * HOUR_US);
    } else if (worker->id >= 0 && id_of(worker)->registered && !worker->crashed) {
        tick(worker);
        turns.now_us -= random_magnitude(&w.random, 2 * HOUR_US);
        tick(worker);
    }
}

static void move_clock(void)
{
    int64_t ahead_us = w.next_us - turns.now_us;

    switch (pick(0, 9)) {
    case 0:
    case 1:
    case 2:
        if (w.next_us >= 0 && ahead_us > 0 && ahead_us < 48 * HOUR_US)
            turns.now_us =
                w.next_us - (chance(2) ? 0 : pick(0, ahead_us < LATE + 100 ? ahead_us : LATE + 100));
        break;
    case 3:
        turns.now_us += pick(0, 1000000);
        break;
    case 4:
        turns.now_us += chance(10) ? pick(0, 2 * LEASE_US) : pick(0, LEASE_US / 4);
        break;
    case 5:
        if (w.sets_clock && chance(3))
            set_clock();
        break;
    default:
        turns.now_us += pick(1, 20000);
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
            settle_in_vain(worker);
            adopt_anew(worker, false);
        }
        return;
    }
    if (worker->crashed)
        return;
    switch (pick(0, 15)) {
    case 0:
        worker->crashed = chance(3);
        break;
    case 1:
        adopt_anew(worker, chance(3));
        break;
    case 2:
    case 3:
        tick(worker);
        break;
    case 4:
    case 5:
    case 6:
    case 7:
        settle_some(worker);
        break;
    default:
        claim_all(worker, (int)(chance(4) ? 1 : pick(0, 50)), (int)(chance(2) ? 0 : pick(0, 60)));
    }
}

static void step(int jobs_most)
{
    move_clock();
    if (w.job_count < jobs_most && chance(4))
        push_raw((int)pick(1, jobs_most > 1000 ? 900 : 40));
    if (w.job_count < jobs_most && chance(6))
        enqueue_some();
    if (chance(12))
        set_rule((int)pick(0, w.type_count - 1));
    if (chance(3))
        promote_some();
    step_worker(&w.workers[pick(0, w.worker_count - 1)]);
    if (w.job_count < 300 || w.step % 16 == 0)
        check_places();
}

/* ---- Worlds */

static void some_of(int count, int *list, int *list_count)
{
    *list_count = 0;
    for (int i = 0; i < count; i++)
        if (!chance(3))
            list[(*list_count)++] = i;
    if (*list_count == 0)
        list[(*list_count)++] = (int)pick(0, count - 1);
    for (int i = *list_count - 1; i > 0; i--) {
        int k = (int)pick(0, i), swapped = list[i];

        list[i] = list[k];
        list[k] = swapped;
    }
}

static void make_world(uint64_t seed)
{
    w = (struct world){.seed = seed, .random = seed, .next_us = -1};
    memset(w.lines, -1, sizeof w.lines);
    turns_flush(NULL);
    w.sets_clock = chance(3);
    w.type_count = (int)pick(1, TYPES);
    w.queue_count = (int)pick(1, QUEUES);
    w.worker_count = (int)pick(1, WORKERS - 1);
    for (int t = 0; t < w.type_count; t++) {
        w.types[t].name = type_names[t];
        set_rule(t);
    }
    for (int i = 0; i < w.worker_count; i++) {
        w.workers[i].id = -1;
        some_of(w.type_count, w.workers[i].types, &w.workers[i].type_count);
        some_of(w.queue_count, w.workers[i].queues, &w.workers[i].queue_count);
    }
}

static void settle_everything(struct worker *worker)
{
    static int list[JOBS];
    int count = leases_of(worker->id, list);
    int64_t stale;
    struct args a;

    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, id_of(worker)->name);
    for (int i = 0; i < count; i++)
        jobs[list[i]].place = DONE;
    settle_done_ones(&a, list, count);
    must(turns_send(&a), "settle");
    must(settle_reply(turns.reply, &stale, &turns.error), "settle");
    if (stale != 0)
        give_up("settle: %lld of %d leases were stale", (long long)stale, count);
}

static bool all_ended(const struct worker *last)
{
    for (int n = 0; n < w.job_count; n++)
        if (jobs[n].place != DONE && jobs[n].place != DEAD)
            return false;
    for (int i = 0; i < w.id_count; i++)
        if (ids[i].registered && i != last->id)
            return false;
    return true;
}

/* One worker that can do all runs everything to its end. */
static void drain(void)
{
    struct worker *all = &w.workers[WORKERS - 1];

    *all = (struct worker){.id = -1, .type_count = w.type_count, .queue_count = w.queue_count};
    for (int t = 0; t < w.type_count; t++) {
        all->types[t] = t;
        w.types[t].limited = false;
        must(turns_rate(w.types[t].name, ""), "rate set");
    }
    for (int q = 0; q < w.queue_count; q++)
        all->queues[q] = q;
    for (int i = 0; i < w.worker_count; i++)
        if (w.workers[i].id >= 0 && !w.workers[i].crashed)
            adopt_anew(&w.workers[i], true);
    start_worker(all);
    for (w.step = 100000; !all_ended(all); w.step++) {
        if (w.step > 100500)
            give_up("does not drain");
        turns.now_us +=
            w.step % 10 ? LEASE_US / 4 : HOUR_US / 6; /* the clock may have been set back by hours */
        tick(all);
        promote_some();
        claim_all(all, 100, 400);
        settle_everything(all);
    }
    check_places();
    adopt_anew(all, true);
}

static void check_nothing_left(void)
{
    static const char *const stay[] = {"queues", "types", "limits", "gate:",  "stats:", "reap",
                                       "dead",   "id:",   "bell:",  "spare:", "duty"};
    char *keys = server_ask(&turns.server, "KEYS", "*", NULL), *rest = keys;

    for (char *key; (key = strsep(&rest, "\n"));) {
        const char *name = key + strlen(PREFIX);
        bool known = false;

        for (size_t i = 0; i < sizeof stay / sizeof *stay; i++)
            known |=
                strncmp(key, PREFIX, strlen(PREFIX)) == 0 && strncmp(name, stay[i], strlen(stay[i])) == 0;
        if (!known)
            give_up("%s is left over", key);
    }
    free(keys);
}

static void run_world(uint64_t seed)
{
    int steps, jobs_most;

    make_world(seed);
    steps = (int)pick(40, 160);
    jobs_most = chance(40) ? 6000 : (int)pick(20, 500);
    for (w.step = 0; w.step < steps; w.step++)
        step(jobs_most);
    drain();
    check_nothing_left();
}

static void test_random_worlds(void **state)
{
    uint64_t seed = random_seed();
    int64_t end_us = clock_mono_us() + WORLDS_S * INT64_C(1000000);
    int worlds = 0;

    (void)state;
    while (worlds < WORLDS && clock_mono_us() < end_us)
        run_world(seed + (uint64_t)worlds++);
    print_message("%d worlds from seed %llu: %lld claims, %lld starts, %lld of them with a slot, %lld "
                  "workers reaped, %lld jobs "
                  "interrupted\n",
                  worlds, (unsigned long long)seed, totals.claims, totals.starts, totals.slots, totals.reaped,
                  totals.interrupted);
}

/* ---- Long runs */

static void push_backlog(int64_t count)
{
    struct args a;

    while (count > 0) {
        args_init(&a);
        args_add(&a, "RPUSH");
        args_add(&a, PREFIX "queue:default");
        for (int i = 0; i < 1000 && count > 0; i++, count--)
            args_add(&a, "{\"id\":\"j\",\"type\":\"t\"}");
        assert_int_equal(turns_send(&a), 0);
    }
}

/* The n-th start of a backlog that is served as early as its rule allows, written as it is defined. */
static int64_t exact_start(const struct rule *rule, int64_t n)
{
    ticks waited = n > rule->burst ? (ticks)(n - rule->burst) * rule->period_us : 0;

    return BEGIN_US + (int64_t)((waited + rule->count - 1) / rule->count);
}

static void check_starts(const struct rule *rule, int64_t *n)
{
    for (size_t i = 0; i < turns.claim.lease_count; i++) {
        int64_t start_us = exact_start(rule, ++*n);

        if (turns.claim.leases[i].slot_us != start_us)
            fail_msg("%lld/%lld us: start %lld is %lld us off", (long long)rule->count,
                     (long long)rule->period_us, (long long)*n,
                     (long long)(turns.claim.leases[i].slot_us - start_us));
    }
}

/* Claims as a worker takes its turns, a little before each opening; many are under way, since when they are
 * is known. */
static void run_backlog(const struct rule *rule, int64_t starts)
{
    enum { UNDER_WAY = 100, A_CLAIM = 200 };
    static const char *const queue = "default", *const type = "t";
    struct claim_call call = {
        .worker = "w", .group = "g", .free = 1000, .look = 1000, .queues = {&queue, 1}, .types = {&type, 1}};
    int64_t asked = 0, got = 0;
    struct args a;

    args_init(&a);
    while (got < starts) {
        int sent = 0;

        for (; sent < UNDER_WAY && asked < starts; sent++) {
            int64_t before_us = exact_start(rule, asked + 1) - LATE / 2;

            turns.now_us = before_us > BEGIN_US ? before_us : BEGIN_US;
            call.turn++;
            claim_request(&a, PREFIX, turns.now_us, &call);
            assert_int_equal(redis_append(turns.redis, &a, &turns.error), 0);
            for (int granted = 0;
                 granted < A_CLAIM && asked < starts && exact_start(rule, asked + 1) <= turns.now_us + LATE;
                 granted++)
                asked++;
        }
        for (; sent > 0; sent--) {
            struct redisReply *reply;

            assert_int_equal(redis_result(turns.redis, &reply, &turns.error), 0);
            assert_int_equal(claim_reply(reply, &turns.claim, &turns.error), 0);
            check_starts(rule, &got);
            freeReplyObject(reply);
        }
        assert_true(got >= asked);
    }
    args_free(&a);
}

static void test_a_backlog_runs_exactly_at_its_rate(void **state)
{
    static const struct {
        struct rule rule;
        int64_t seconds;
    } runs[] = {
        {{7, 1000000, 1}, 3600},    {{7, 1000000, 7}, 600},       {{30, 1000000, 1}, 600},
        {{1, 1500000, 1}, 3600},    {{100, 60000000, 100}, 3600}, {{1, 86400000000, 1}, 365 * 86400},
        {{1000, 1000000, 1}, 20},   {{30000, 1000000, 1}, 3},     {{30000, 1000000, 30000}, 2},
        {{999983, 1000003, 10}, 0}, {{1000000, 1000000, 1}, 0},
    };
    static const char *const queue = "default";

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct rule *rule = &runs[i].rule;
        int64_t starts = runs[i].seconds ? runs[i].seconds * 1000000 / rule->period_us * rule->count : 100000;
        char stored[RULE_TEXT_SIZE];

        turns_flush(NULL);
        rule_write(rule, stored);
        assert_int_equal(turns_adopt("w", "", NULL, 0, (struct names){&queue, 1}, NULL), 0);
        assert_int_equal(turns_rate("t", stored), 0);
        push_backlog(starts);
        run_backlog(rule, starts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_a_backlog_runs_exactly_at_its_rate, turns_flush),
        cmocka_unit_test_setup(test_random_worlds, turns_flush),
    };

    return cmocka_run_group_tests_name("lanes", tests, turns_start, turns_stop);
}
