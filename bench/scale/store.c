#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale/scale.h"
#include "core/number.h"
#include "core/script/script.h"
#include "queue/enqueue/enqueue.h"

/* What a call costs Redis, by doc/scale.md; of the sums of what they do, not of a cold cache. */
#define CLAIM_US 60
#define LEASE_EACH_US 8
#define SETTLE_US 20
#define SETTLE_EACH_US 2
#define BEAT_US 60
#define PROMOTE_US 20
#define ADOPT_US 80
#define PUSH_US 45
#define WAIT_US 5
#define STAND_US (250 * MS) /* a peek with a claim behind it ends after that: waking.c */
#define PROMOTE_MOST 200
#define BODY_SIZE 128

static struct server server;
static int64_t free_us; /* when it is done with what has come */
static const char *const queue_name[] = {"default"};
static char types[SPREAD_MOST][16]; /* each has its home in that partition */

static struct waiting {
    struct waiter {
        int agent, epoch;
        struct turn *turn; /* with the claim that stands behind it; NULL: none does */
        int64_t until_us;  /* of a claim that stands */
    } * at;
    size_t first, count, capacity;
} waiting[SPREAD_MOST][WAITS];
#define KEYS(prefix)                                                                                         \
    {                                                                                                        \
        prefix "bell:" GROUP, prefix "spare:" GROUP, prefix "queue:default"                                  \
    }
static const char *const prefixes[SPREAD_MOST] = {"weir:{0}:", "weir:{1}:", "weir:{2}:", "weir:{3}:"};
static const char *const keys[SPREAD_MOST][WAITS] = {KEYS("weir:{0}:"), KEYS("weir:{1}:"), KEYS("weir:{2}:"),
                                                     KEYS("weir:{3}:")};
static long long lengths[SPREAD_MOST][WAITS];

static int partition_of(int agent)
{
    return agent % world.partitions;
}

/* ---- Tasks */

void row_init(struct task_row *row)
{
    *row = (struct task_row){.tail = &row->head};
}

void row_push(struct task_row *row, struct task *task)
{
    task->next = NULL;
    *row->tail = task;
    row->tail = &task->next;
    row->count++;
}

struct task *row_pop(struct task_row *row)
{
    struct task *task = row->head;

    if (!task)
        return NULL;
    row->head = task->next;
    row->count--;
    if (!row->head)
        row->tail = &row->head;
    return task;
}

void row_take(struct task_row *to, struct task_row *from)
{
    *to = *from;
    if (!to->head)
        to->tail = &to->head;
    row_init(from);
}

void row_free(struct task_row *row)
{
    for (struct task *task; (task = row_pop(row));)
        free(task);
}

void turn_free(struct turn *turn)
{
    freeReplyObject(turn->adopted);
    freeReplyObject(turn->settled);
    freeReplyObject(turn->promoted);
    freeReplyObject(turn->beaten);
    freeReplyObject(turn->claimed);
    row_free(&turn->held);
    free(turn);
}

const struct redisReply *turn_claim(const struct turn *turn)
{
    return turn->along ? turn_replies(turn->claimed).claim : turn->claimed;
}

/* ---- Redis */

void store_open(void)
{
    server_start(&server, false);
}

void store_close(void)
{
    server_stop(&server);
    for (int i = 0; i < SPREAD_MOST * WAITS; i++)
        free(waiting[i / WAITS][i % WAITS].at);
}

/* A call by itself loads the functions. */
static void warm_up(void)
{
    const struct job_cost one = cost_of(1);
    struct args a = {0};

    fits_request(&a, prefixes[0], BEGIN_US, (struct span){types[0], strlen(types[0])}, &one);
    freeReplyObject(server_call(&server, &a));
}

static void set_limit(int partition)
{
    char rules[64];
    struct args a = {0};

    snprintf(rules, sizeof rules, "gcra:%d/1000000/%d", (int)world.rate, world.burst);
    script_begin(&a, "rate_set", prefixes[partition], BEGIN_US);
    args_add(&a, types[partition]);
    args_add(&a, rules);
    args_add(&a, "0");
    args_add(&a, "set");
    args_add(&a, "sim");
    freeReplyObject(server_call(&server, &a));
}

static void write_body(char body[BODY_SIZE], int partition, int number)
{
    snprintf(body, BODY_SIZE, "{\"id\":\"j%d\",\"type\":\"%s\"}", number, types[partition]);
}

static void fill(int partition, int first, int jobs)
{
    struct args a = {0};
    char body[BODY_SIZE];

    for (int n = 0; n < jobs; n += 1000) {
        args_add(&a, "RPUSH");
        args_add(&a, keys[partition][WAIT_QUEUE]);
        for (int i = n; i < n + 1000 && i < jobs; i++) {
            write_body(body, partition, first + i);
            args_add(&a, body);
        }
        freeReplyObject(server_call(&server, &a));
    }
    lengths[partition][WAIT_QUEUE] = jobs;
}

static void forget_waiting(enum wait wait, int partition)
{
    for (size_t k = 0; k < waiting[partition][wait].count; k++) {
        struct turn *turn = waiting[partition][wait].at[waiting[partition][wait].first + k].turn;

        if (turn)
            turn_free(turn);
    }
    waiting[partition][wait].first = waiting[partition][wait].count = 0;
}

static void name_type(int partition)
{
    int n = 0;

    strcpy(types[partition], "t");
    while (partition_home(types[partition], strlen(types[partition]), world.partitions) != partition)
        snprintf(types[partition], sizeof types[partition], "t%d", n++);
}

void store_reset(void)
{
    char about[32], count[16];

    snprintf(count, sizeof count, "%d", world.partitions);
    server_ask(&server, "FLUSHALL", NULL);
    memset(lengths, 0, sizeof lengths);
    for (int i = 0; i < SPREAD_MOST * WAITS; i++)
        forget_waiting((enum wait)(i % WAITS), i / WAITS);
    free_us = 0;
    for (int i = 0; i < world.partitions; i++)
        name_type(i);
    warm_up();
    for (int i = 0; i < world.partitions; i++) {
        snprintf(about, sizeof about, "%sabout", prefixes[i]);
        if (world.partitions > 1)
            server_ask(&server, "HSET", about, "partitions", count, NULL);
        if (world.burst > 0 && !is_flooded(i))
            set_limit(i);
        fill(i, i * world.jobs, is_flooded(i) ? world.flood : world.jobs);
    }
}

/* ---- Who waits */

static void add_waiting(enum wait wait, struct waiter waiter)
{
    struct waiting *w = &waiting[partition_of(waiter.agent)][wait];
    size_t end = w->first + w->count++;

    if (end == w->capacity) {
        w->capacity = end ? 2 * end : 64;
        w->at = realloc(w->at, w->capacity * sizeof *w->at);
        if (!w->at)
            abort();
    }
    w->at[end] = waiter;
}

/* Runs the claim that stands there. */
static void answer_standing(struct waiter waiter)
{
    events_add(store_turn(waiter.turn) + way(), EVENT_STOOD, waiter.agent, waiter.epoch, waiter.turn);
}

/* A token goes to the one that waits longest; who peeks at a queue leaves it as it is. */
static void wake(int partition, enum wait wait)
{
    struct waiting *w = &waiting[partition][wait];

    while (lengths[partition][wait] > 0 && w->count > 0) {
        struct waiter waiter = w->at[w->first++];

        w->count--;
        if (wait != WAIT_QUEUE) {
            server_ask(&server, "LPOP", keys[partition][wait], NULL);
            lengths[partition][wait]--;
        }
        if (waiter.turn)
            answer_standing(waiter);
        else
            events_add(free_us + way(), EVENT_WAKE, waiter.agent, waiter.epoch, (void *)(intptr_t)wait);
    }
    if (w->count == 0)
        w->first = 0;
}

static void begin_waiting(enum wait wait, struct waiter waiter)
{
    free_us = max_i64(free_us, now_us) + WAIT_US;
    if (is_measured())
        sums.busy_us += WAIT_US, sums.calls++;
    add_waiting(wait, waiter);
    wake(partition_of(waiter.agent), wait);
}

void store_wait(int agent, int epoch, enum wait wait)
{
    begin_waiting(wait, (struct waiter){agent, epoch, NULL, 0});
}

void store_stand(int agent, int epoch, struct turn *turn)
{
    events_add(now_us + STAND_US, EVENT_TIMEOUT, agent, epoch, NULL);
    begin_waiting(WAIT_QUEUE, (struct waiter){agent, epoch, turn, now_us + STAND_US});
}

/* Takes away the waiter of that agent, if it waits. */
static struct waiter remove_waiting(enum wait wait, int agent)
{
    struct waiting *w = &waiting[partition_of(agent)][wait];
    size_t kept = w->first, end = kept + w->count;
    struct waiter found = {.turn = NULL};

    for (size_t k = w->first; k < end; k++)
        if (w->at[k].agent == agent)
            found = w->at[k];
        else
            w->at[kept++] = w->at[k];
    w->count = kept - w->first;
    return found;
}

void store_timeout(int agent)
{
    struct waiting *w = &waiting[partition_of(agent)][WAIT_QUEUE];

    for (size_t k = w->first; k < w->first + w->count; k++)
        if (w->at[k].agent == agent && w->at[k].turn && w->at[k].until_us <= now_us) {
            answer_standing(remove_waiting(WAIT_QUEUE, agent));
            return;
        }
}

void store_forget(int agent)
{
    for (int i = 0; i < WAITS; i++) {
        struct waiter waiter = remove_waiting((enum wait)i, agent);

        if (waiter.turn)
            turn_free(waiter.turn);
    }
}

void store_stall(int64_t for_us)
{
    free_us = (free_us > now_us ? free_us : now_us) + for_us;
}

/* ---- Calls */

static void send(struct args *a)
{
    must(redis_append(server.redis, a, &failure));
    args_clear(a);
}

/* NULL: this worker was silent for a lease, and is not registered any more. */
static struct redisReply *receive(void)
{
    struct redisReply *reply;
    int rc = redis_result(server.redis, &reply, &failure);

    if (rc != 0 && !turn_is_unregistered(&failure))
        must(rc);
    return reply;
}

static void send_settle(struct args *a, const struct turn *turn, int64_t at_us)
{
    int done = 0;

    settle_request(a, prefixes[turn->partition], at_us, turn->worker);
    for (const struct task *task = turn->settles.head; task; task = task->next)
        done += !task->back;
    if (done > 0)
        settle_done(a, types[turn->partition], (struct span){"", 0}, (size_t)done);
    for (const struct task *task = turn->settles.head; task; task = task->next)
        if (!task->back)
            settle_token(a, (struct span){task->token, strlen(task->token)});
    for (const struct task *task = turn->settles.head; task; task = task->next)
        if (task->back)
            settle_end(a, SETTLE_BACK, (struct span){task->token, strlen(task->token)}, 1, NULL);
    send(a);
}

static void send_adopt(struct args *a, const struct turn *turn, int64_t at_us)
{
    adopt_request(a, prefixes[turn->partition], at_us,
                  &(struct adopt_call){.worker = turn->worker,
                                       .old_worker = turn->old,
                                       .group = GROUP,
                                       .lease_us = LEASE_US,
                                       .info = "{}",
                                       .birth = "",
                                       .queues = {queue_name, 1}});
    for (const struct task *task = turn->held.head; task; task = task->next)
        settle_token(a, (struct span){task->token, strlen(task->token)});
    send(a);
}

static void send_all(const struct turn *turn, int64_t at_us)
{
    const char *prefix = prefixes[turn->partition], *type = types[turn->partition];
    struct claim_call claim = turn->claim;
    struct span done[16];
    struct args a = {0};

    if (turn->adopts)
        send_adopt(&a, turn, at_us);
    if (turn->settles.count > 0 && !turn->along)
        send_settle(&a, turn, at_us);
    if (turn->promotes) {
        promote_request(&a, prefix, at_us, PROMOTE_MOST);
        send(&a);
    }
    if (turn->beats) {
        reap_request(
            &a, prefix, at_us,
            &(struct reap_call){
                .worker = turn->worker, .lease_us = LEASE_US, .interrupted_most = 3, .group = GROUP});
        send(&a);
    }
    if (turn->claims) {
        claim.worker = turn->worker;
        claim.group = GROUP;
        claim.queues = (struct names){queue_name, 1};
        claim.types = (struct names){&type, 1};
        if (turn->along) {
            claim.done_type = types[turn->partition];
            claim.done = done;
            for (const struct task *task = turn->settles.head; task; task = task->next)
                done[claim.done_count++] = (struct span){task->token, strlen(task->token)};
        }
        claim_request(&a, prefix, at_us, &claim);
        send(&a);
    }
    for (int i = 0; i < WAITS; i++) {
        args_add(&a, "LLEN");
        args_add(&a, keys[turn->partition][i]);
        send(&a);
    }
    args_free(&a);
}

static int64_t leases_of(const struct turn *turn)
{
    static struct claim claim;

    if (!turn->claimed || claim_is_declined(turn_claim(turn)))
        return 0;
    must(claim_reply(turn_claim(turn), &claim, &failure));
    return (int64_t)claim.lease_count;
}

static int64_t turn_cost(const struct turn *turn)
{
    int64_t cost = (turn->adopts ? ADOPT_US : 0) + (turn->promotes ? PROMOTE_US : 0) +
                   (turn->beats ? BEAT_US : 0) + (turn->claims ? CLAIM_US : 0);

    if (turn->settles.count > 0)
        cost += (turn->along ? 0 : SETTLE_US) + SETTLE_EACH_US * turn->settles.count;
    return cost + LEASE_EACH_US * leases_of(turn);
}

static void count_calls(const struct turn *turn, int64_t cost)
{
    if (!is_measured())
        return;
    sums.turns++;
    sums.busy_us += cost;
    sums.claims += turn->claims;
    sums.calls += turn->adopts + turn->promotes + turn->beats + turn->claims +
                  (turn->settles.count > 0 && !turn->along);
}

int64_t store_turn(struct turn *turn)
{
    int64_t begin = free_us > now_us ? free_us : now_us, cost;

    send_all(turn, BEGIN_US + begin);
    if (turn->adopts)
        turn->adopted = receive();
    if (turn->settles.count > 0 && !turn->along)
        turn->settled = receive();
    if (turn->promotes)
        turn->promoted = receive();
    if (turn->beats)
        turn->beaten = receive();
    if (turn->claims)
        turn->claimed = receive();
    for (int i = 0; i < WAITS; i++) {
        struct redisReply *length = receive();

        lengths[turn->partition][i] = length->integer;
        freeReplyObject(length);
    }
    cost = turn_cost(turn);
    count_calls(turn, cost);
    free_us = begin + cost;
    for (int i = 0; i < WAITS; i++)
        wake(turn->partition, (enum wait)i);
    return free_us;
}

void store_pass(int agent, enum wait wait)
{
    int partition = partition_of(agent);

    server_ask(&server, "RPUSH", keys[partition][wait], "1", NULL);
    lengths[partition][wait]++;
    wake(partition, wait);
}

void store_push(int partition, int number)
{
    int64_t begin = free_us > now_us ? free_us : now_us;
    char id[24], body[BODY_SIZE];
    struct args a = {0};

    snprintf(id, sizeof id, "j%d", number);
    write_body(body, partition, number);
    enqueue_request(&a, prefixes[partition], BEGIN_US + begin,
                    &(struct enqueue){.queue = {"default", 7},
                                      .type = {types[partition], strlen(types[partition])},
                                      .id = {id, strlen(id)},
                                      .body = {body, strlen(body)},
                                      .keep_ms = 1000,
                                      .tag = id,
                                      .delay_us = -1,
                                      .at_us = -1});
    freeReplyObject(server_call(&server, &a));
    free_us = begin + PUSH_US;
    if (is_measured())
        sums.busy_us += PUSH_US;
    lengths[partition][WAIT_QUEUE]++;
    wake(partition, WAIT_QUEUE);
}
