#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scale/scale.h"
#include "core/script/script.h"
#include "queue/enqueue/enqueue.h"

/* What a call costs Redis, by doc/scale.md; of the sums of what they do, not of a cold cache. */
#define CLAIM_US 60
#define LEASE_EACH_US 8
#define SETTLE_US 20
#define SETTLE_EACH_US 2
#define BEAT_US 60
#define ADOPT_US 80
#define PUSH_US 45
#define WAIT_US 5

static struct server server;
static struct error error;
static int64_t free_us; /* when it is done with what has come */
static const char *const queue_name[] = {"default"}, *const type_name[] = {TYPE};

static struct {
    int *agents, *epochs;
    size_t first, count, capacity;
} waiting[WAITS];
static const char *const keys[WAITS] = {PREFIX "bell:" GROUP, PREFIX "spare:" GROUP, PREFIX "queue:default"};
static long long lengths[WAITS];

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

void row_free(struct task_row *row)
{
    for (struct task *task; (task = row_pop(row));)
        free(task);
}

void turn_free(struct turn *turn)
{
    freeReplyObject(turn->adopted);
    freeReplyObject(turn->settled);
    freeReplyObject(turn->beaten);
    freeReplyObject(turn->claimed);
    row_free(&turn->held);
    free(turn);
}

/* ---- Redis */

void store_open(struct error *e)
{
    must(server_start(&server, false, e), e);
}

void store_close(void)
{
    server_stop(&server);
    for (int i = 0; i < WAITS; i++) {
        free(waiting[i].agents);
        free(waiting[i].epochs);
    }
}

/* A call by itself loads the functions. */
static void warm_up(void)
{
    struct redisReply *reply;
    struct args a;

    args_init(&a);
    fits_request(&a, PREFIX, BEGIN_US, (struct span){TYPE, strlen(TYPE)}, 1);
    must(redis_call(server.redis, &a, &reply, NULL, &error), &error);
    freeReplyObject(reply);
    args_free(&a);
}

static void set_limit(void)
{
    char rules[64];
    struct args a;
    struct redisReply *reply;

    snprintf(rules, sizeof rules, "gcra:%d/1000000/%d", (int)plan.rate, plan.burst);
    args_init(&a);
    script_begin(&a, "rate_set", PREFIX, BEGIN_US);
    args_add(&a, TYPE);
    args_add(&a, rules);
    args_add(&a, "0");
    args_add(&a, "set");
    args_add(&a, "sim");
    must(redis_call(server.redis, &a, &reply, NULL, &error), &error);
    freeReplyObject(reply);
    args_free(&a);
}

static void fill(int jobs)
{
    struct redisReply *reply;
    struct args a;
    char body[64];

    args_init(&a);
    for (int n = 0; n < jobs; n += 1000) {
        args_clear(&a);
        args_add(&a, "RPUSH");
        args_add(&a, keys[WAIT_QUEUE]);
        for (int i = n; i < n + 1000 && i < jobs; i++) {
            snprintf(body, sizeof body, "{\"id\":\"j%d\",\"type\":\"" TYPE "\"}", i);
            args_add(&a, body);
        }
        must(redis_call(server.redis, &a, &reply, NULL, &error), &error);
        freeReplyObject(reply);
    }
    lengths[WAIT_QUEUE] = jobs;
    args_free(&a);
}

void store_reset(int jobs)
{
    must(server_ask(&server, NULL, &error, "FLUSHALL", NULL), &error);
    memset(lengths, 0, sizeof lengths);
    for (int i = 0; i < WAITS; i++)
        waiting[i].first = waiting[i].count = 0;
    free_us = 0;
    warm_up();
    if (plan.burst > 0)
        set_limit();
    fill(jobs);
}

/* ---- Who waits */

static void add_waiting(enum wait wait, int agent, int epoch)
{
    size_t end = waiting[wait].first + waiting[wait].count++;

    if (end == waiting[wait].capacity) {
        waiting[wait].capacity = end ? 2 * end : 64;
        waiting[wait].agents = realloc(waiting[wait].agents, waiting[wait].capacity * sizeof(int));
        waiting[wait].epochs = realloc(waiting[wait].epochs, waiting[wait].capacity * sizeof(int));
        if (!waiting[wait].agents || !waiting[wait].epochs)
            abort();
    }
    waiting[wait].agents[end] = agent;
    waiting[wait].epochs[end] = epoch;
}

/* A token goes to the one that waits longest; who peeks at a queue leaves it as it is. */
static void wake(enum wait wait)
{
    while (lengths[wait] > 0 && waiting[wait].count > 0) {
        size_t first = waiting[wait].first++;

        waiting[wait].count--;
        if (wait != WAIT_QUEUE) {
            must(server_ask(&server, NULL, &error, "LPOP", keys[wait], NULL), &error);
            lengths[wait]--;
        }
        events_add(free_us + way(), EVENT_WAKE, waiting[wait].agents[first], waiting[wait].epochs[first],
                   (void *)(intptr_t)wait);
    }
    if (waiting[wait].count == 0)
        waiting[wait].first = 0;
}

void store_wait(int agent, int epoch, enum wait wait)
{
    free_us = (free_us > now_us ? free_us : now_us) + WAIT_US;
    if (is_measured())
        sums.busy_us += WAIT_US, sums.calls++;
    add_waiting(wait, agent, epoch);
    wake(wait);
}

void store_forget(int agent)
{
    for (int i = 0; i < WAITS; i++) {
        size_t kept = waiting[i].first;

        for (size_t k = waiting[i].first; k < waiting[i].first + waiting[i].count; k++)
            if (waiting[i].agents[k] != agent) {
                waiting[i].agents[kept] = waiting[i].agents[k];
                waiting[i].epochs[kept++] = waiting[i].epochs[k];
            }
        waiting[i].count = kept - waiting[i].first;
    }
}

void store_stall(int64_t for_us)
{
    free_us = (free_us > now_us ? free_us : now_us) + for_us;
}

/* ---- Calls */

static void send(struct args *a)
{
    must(redis_append(server.redis, a, &error), &error);
    args_clear(a);
}

/* NULL: this worker was silent for a lease, and is not registered any more. */
static struct redisReply *receive(void)
{
    struct redisReply *reply;
    int rc = redis_result(server.redis, &reply, &error);

    if (rc != 0 && !turn_is_unregistered(&error))
        must(rc, &error);
    return reply;
}

static void send_settle(struct args *a, const struct turn *turn, int64_t at_us)
{
    int done = 0;

    settle_request(a, PREFIX, at_us, turn->worker);
    for (const struct task *task = turn->settles.head; task; task = task->next)
        done += !task->back;
    if (done > 0)
        settle_done(a, TYPE, (struct span){"", 0}, (size_t)done);
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
    adopt_request(a, PREFIX, at_us,
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
    struct claim_call claim = turn->claim;
    struct args a;

    args_init(&a);
    if (turn->adopts)
        send_adopt(&a, turn, at_us);
    if (turn->settles.count > 0)
        send_settle(&a, turn, at_us);
    if (turn->beats) {
        reap_request(
            &a, PREFIX, at_us,
            &(struct reap_call){
                .worker = turn->worker, .lease_us = LEASE_US, .interrupted_most = 3, .group = GROUP});
        send(&a);
    }
    if (turn->claims) {
        claim.worker = turn->worker;
        claim.group = GROUP;
        claim.queues = (struct names){queue_name, 1};
        claim.types = (struct names){type_name, 1};
        claim_request(&a, PREFIX, at_us, &claim);
        send(&a);
    }
    for (int i = 0; i < WAITS; i++) {
        args_add(&a, "LLEN");
        args_add(&a, keys[i]);
        send(&a);
    }
    args_free(&a);
}

static int64_t cost_of(const struct turn *turn)
{
    const struct redisReply *leases =
        turn->claimed && turn->claimed->elements > 5 ? turn->claimed->element[5] : NULL;
    int64_t cost =
        (turn->adopts ? ADOPT_US : 0) + (turn->beats ? BEAT_US : 0) + (turn->claims ? CLAIM_US : 0);

    if (turn->settles.count > 0)
        cost += SETTLE_US + SETTLE_EACH_US * turn->settles.count;
    return cost + (leases ? LEASE_EACH_US * (int64_t)(leases->elements / 2) : 0);
}

static void count_calls(const struct turn *turn, int64_t cost)
{
    if (!is_measured())
        return;
    sums.turns++;
    sums.busy_us += cost;
    sums.claims += turn->claims;
    sums.calls += turn->adopts + turn->beats + turn->claims + (turn->settles.count > 0);
}

int64_t store_turn(struct turn *turn)
{
    int64_t begin = free_us > now_us ? free_us : now_us, cost;

    send_all(turn, BEGIN_US + begin);
    if (turn->adopts)
        turn->adopted = receive();
    if (turn->settles.count > 0)
        turn->settled = receive();
    if (turn->beats)
        turn->beaten = receive();
    if (turn->claims)
        turn->claimed = receive();
    for (int i = 0; i < WAITS; i++) {
        struct redisReply *length = receive();

        lengths[i] = length->integer;
        freeReplyObject(length);
    }
    cost = cost_of(turn);
    count_calls(turn, cost);
    free_us = begin + cost;
    for (int i = 0; i < WAITS; i++)
        wake((enum wait)i);
    return free_us;
}

void store_pass(enum wait wait)
{
    must(server_ask(&server, NULL, &error, "RPUSH", keys[wait], "1", NULL), &error);
    lengths[wait]++;
    wake(wait);
}

void store_push(int number)
{
    int64_t begin = free_us > now_us ? free_us : now_us;
    char id[24], body[64];
    struct redisReply *reply;
    struct args a;

    snprintf(id, sizeof id, "j%d", number);
    snprintf(body, sizeof body, "{\"id\":\"j%d\",\"type\":\"" TYPE "\"}", number);
    args_init(&a);
    enqueue_request(&a, PREFIX, BEGIN_US + begin,
                    &(struct enqueue){.queue = {"default", 7},
                                      .type = {TYPE, strlen(TYPE)},
                                      .id = {id, strlen(id)},
                                      .body = {body, strlen(body)},
                                      .keep_ms = 1000,
                                      .tag = id,
                                      .delay_us = -1,
                                      .at_us = -1});
    must(redis_call(server.redis, &a, &reply, NULL, &error), &error);
    freeReplyObject(reply);
    args_free(&a);
    free_us = begin + PUSH_US;
    if (is_measured())
        sums.busy_us += PUSH_US;
    lengths[WAIT_QUEUE]++;
    wake(WAIT_QUEUE);
}
