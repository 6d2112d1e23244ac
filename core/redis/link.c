/* link: requests go into a queue (requests.h), answers take them out; Redis answers in order.
 *
 *   IDLE -> WAITING -> ROUTING -> CONNECTING -> GREETING -> UP
 *              ^__________|____________|____________|________|  give_up()
 *
 * Whatever ends a connection is noted in l->failure; give_up() acts on it at the end of one of the link's own
 * watchers, so that no callback runs inside of a call of the user's. Requests are sent by a prepare watcher,
 * just before the loop goes to sleep. One timer stands at the next moment to look at; it may be early, never
 * late. */
#include "core/redis/link.h"

#include <assert.h>
#include <ev.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/clock.h"
#include "core/number.h"
#include "core/random.h"
#include "core/redis/master.h"
#include "core/redis/requests.h"
#include "core/redis/route.h"
#include "core/wire/credential.h"
#include "core/wire/handshake.h"
#include "core/wire/wire.h"

#define SECOND_US INT64_C(1000000)
#define CONNECT_S 5 /* for each address of the host */
#define GREETING_S 5
#define BACKOFF_FIRST_US (SECOND_US / 10)
#define BACKOFF_LAST_US (5 * SECOND_US)
#define READS_IN_A_ROW 16          /* 1 MiB; then the loop's other watchers have their turn */
#define FOLLOW_US (SECOND_US / 10) /* while the leader is not connected */

enum link_state { LINK_IDLE, LINK_WAITING, LINK_ROUTING, LINK_CONNECTING, LINK_GREETING, LINK_UP };

struct link {
    struct ev_loop *loop;
    struct redis_address address;
    const struct link_events *events;
    void *arg;

    const struct link *leader; /* NULL: it asks itself where to go */

    enum link_state state;
    int64_t until_us;     /* WAITING, ROUTING, CONNECTING: how long */
    struct error failure; /* has a status: to be given up */
    struct error refusal; /* has a status: of the library, until it is known whose */
    int failures;         /* in a row, without a good answer between */
    bool asked_again;     /* for the password, since it was up last */

    struct requests requests; /* under way */
    uint64_t loaded_at;       /* requests below this number were sent before the functions were loaded last */

    int64_t timer_us;
    struct ev_timer timer;
    struct ev_prepare prepare;
    struct ev_io io;
    struct route route;      /* of this connection */
    struct master master;    /* is that still the master? */
    struct routing *routing; /* asked for the next one: one that hangs is asked once, by all attempts */
    struct arena arena;
    struct wire wire;
};

/* ---- The timer */

/* Returns when the Sentinels are asked again: never while they are being asked. */
static int64_t recheck_us(const struct link *l)
{
    bool asks = l->address.finder == REDIS_BY_SENTINELS && !l->leader && l->state == LINK_UP;

    return asks ? master_next_us(&l->master) : INT64_MAX;
}

/* Returns when the link must be looked at again if nothing comes. */
static int64_t next_us(const struct link *l)
{
    int64_t next = recheck_us(l);

    if (l->failure.status)
        return 0;
    if (l->state >= LINK_WAITING && l->state <= LINK_CONNECTING)
        return l->until_us;
    for (size_t i = 0; i < l->requests.count; i++)
        next = min_i64(next, requests_at(&l->requests, i)->deadline_us);
    return next;
}

static void set_timer(struct link *l, int64_t at_us)
{
    int64_t left_us = at_us - clock_mono_us();

    l->timer_us = at_us;
    ev_timer_stop(l->loop, &l->timer);
    if (at_us == INT64_MAX)
        return;
    ev_timer_set(&l->timer, left_us > 0 ? (double)left_us / SECOND_US : 0, 0);
    ev_timer_start(l->loop, &l->timer);
}

/* The connection is of no more use; from now on link_is_up says so. */
static void fail(struct link *l, const struct error *why)
{
    if (l->failure.status)
        return;
    l->failure = *why;
    set_timer(l, 0);
}

/* ---- Requests */

static void push(struct link *l, const struct request *q)
{
    struct error e;

    if (!requests_push(&l->requests, q)) {
        error_set(&e, WEIR_EINTERNAL, "redis %s: out of memory for requests", l->wire.name);
        fail(l, &e);
    }
    if (wire_add(&l->wire, &q->args, &e) < 0)
        fail(l, &e);
    if (q->deadline_us < l->timer_us)
        set_timer(l, q->deadline_us);
}

static void push_steps(struct link *l, enum handshake_step first, enum handshake_step last)
{
    struct request q = {.timeout_s = GREETING_S, .deadline_us = clock_mono_us() + GREETING_S * SECOND_US};

    for (q.step = first; q.step <= last; q.step++) {
        handshake_request(&l->route.to, q.step, &q.args);
        if (q.args.count == 0)
            continue;
        push(l, &q);
        q.args = (struct args){0};
    }
    args_free(&q.args);
}

static void fail_requests(struct link *l)
{
    while (l->requests.count > 0) {
        struct request q = requests_pop(&l->requests);

        if (q.on_reply)
            q.on_reply(q.arg, NULL);
        args_free(&q.args);
    }
}

/* ---- States */

static void watch_file(struct link *l, int fd, int events)
{
    ev_io_stop(l->loop, &l->io);
    ev_io_set(&l->io, fd, events);
    ev_io_start(l->loop, &l->io);
}

static void watch(struct link *l, bool write)
{
    watch_file(l, l->wire.fd, write ? EV_READ | EV_WRITE : EV_READ);
}

static void set_state(struct link *l, enum link_state state, int64_t until_us)
{
    l->state = state;
    l->until_us = until_us;
    set_timer(l, next_us(l));
}

/* Returns a wait with full jitter, from 0 to the bound, so that a thousand workers do not come back together. */
static int64_t backoff_us(const struct link *l)
{
    int64_t bound_us = BACKOFF_FIRST_US << min_i64(l->failures, 10);

    return (int64_t)(random_fraction() * (double)min_i64(bound_us, BACKOFF_LAST_US));
}

/* A password that is refused may have changed since it was asked for: once it is asked for again at once. */
static bool asks_again(const struct link *l)
{
    return l->state == LINK_GREETING && l->failure.status == WEIR_EREFUSED && !l->asked_again &&
           credential_is_asked(&l->address);
}

static void forget_question(struct link *l)
{
    routing_drop(l->routing);
    l->routing = NULL;
}

/* Acts at the end of each watcher on what it has found. */
static void give_up_if_failed(struct link *l)
{
    struct error why = l->failure;
    bool again = asks_again(l);

    if (!why.status)
        return;
    l->failure.status = l->refusal.status = 0;
    ev_io_stop(l->loop, &l->io);
    master_forget(&l->master);
    wire_close(&l->wire);
    if (again) {
        l->asked_again = true;
        fail_requests(l);
        set_state(l, LINK_WAITING, 0);
        return;
    }
    set_state(l, LINK_WAITING, clock_mono_us() + backoff_us(l));
    l->failures++;
    fail_requests(l);
    l->events->on_down(l->arg, &why);
}

/* Goes on after a step of opening, up to the handshake. */
static void take_wire_step(struct link *l, int step, const struct error *e)
{
    if (step < 0) {
        fail(l, e);
        return;
    }
    if (step == WIRE_DIALING || step == WIRE_SHAKING)
        set_state(l, LINK_CONNECTING, clock_mono_us() + CONNECT_S * SECOND_US);
    if (step == WIRE_UP)
        set_state(l, LINK_GREETING, 0);
    watch(l, wire_wants_write(&l->wire));
}

static void begin_dialing(struct link *l)
{
    struct error e;
    int step = wire_open(&l->wire, &l->route, &e);

    take_wire_step(l, step, &e);
}

/* Whom to ask, or where it goes. */
static struct redis_address destination(const struct link *l)
{
    struct redis_address to = l->address;

    if (!l->leader)
        return to;
    to.finder = REDIS_NAMED;
    to.port = l->leader->route.to.port;
    memcpy(to.host, l->leader->route.to.host, sizeof to.host);
    return to;
}

static void begin_connecting(struct link *l)
{
    struct redis_address to = destination(l);
    struct error e;

    if (l->leader && !link_is_up(l->leader)) {
        set_state(l, LINK_WAITING, clock_mono_us() + FOLLOW_US);
    } else if (route_at_once(&to, &l->route)) {
        begin_dialing(l);
    } else if (!l->routing && routing_begin(&to, &l->routing, &e) < 0) {
        fail(l, &e);
    } else {
        set_state(l, LINK_ROUTING, clock_mono_us() + routing_limit_s(&l->address) * SECOND_US);
        watch_file(l, routing_fd(l->routing), EV_READ);
    }
}

static void take_route(struct link *l)
{
    struct watch *watch;
    struct error e;
    int status = routing_take(l->routing, &l->route, &watch, &e);

    ev_io_stop(l->loop, &l->io);
    forget_question(l);
    if (status < 0) {
        fail(l, &e);
    } else {
        master_watch(&l->master, watch);
        begin_dialing(l);
    }
}

/* Hears from the Sentinels. now: where the master is; NULL: nothing is known of that. */
static void on_master(void *arg, const struct route *now)
{
    struct link *l = arg;
    struct error e;

    if (now && !redis_address_is_same(&now->to, &l->route.to)) {
        error_set(&e, WEIR_EUNREACHABLE, "redis %s: another one is the master now", l->wire.name);
        fail(l, &e);
    }
    set_timer(l, next_us(l));
    give_up_if_failed(l);
}

static void up_if_greeted(struct link *l)
{
    if (l->state != LINK_GREETING || l->requests.count > 0 || l->failure.status)
        return;
    set_state(l, LINK_UP, 0);
    l->asked_again = false;
    l->events->on_up(l->arg);
}

static void go_on_connecting(struct link *l)
{
    struct error e;
    int step;

    ev_io_stop(l->loop, &l->io);
    step = wire_go_on(&l->wire, &e);
    take_wire_step(l, step, &e);
    if (step != WIRE_UP)
        return;
    push_steps(l, HANDSHAKE_AUTH, HANDSHAKE_PING);
    up_if_greeted(l);
}

/* ---- Answers */

static bool is_fault(const struct redisReply *reply, enum redis_fault fault)
{
    return reply->type == REDIS_REPLY_ERROR && redis_fault(reply->str) == fault;
}

static bool misses_library(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && redis_misses_library(reply->str);
}

/* Sends a request again behind the library; the first one that misses it loads it. */
static void repeat(struct link *l, struct request *q, uint64_t number)
{
    if (number >= l->loaded_at) {
        push_steps(l, HANDSHAKE_LOAD, HANDSHAKE_LOAD);
        l->loaded_at = l->requests.answered + l->requests.count;
    }
    q->repeated = true;
    push(l, q);
}

static void take_step(struct link *l, const struct request *q, const struct redisReply *reply)
{
    struct error e = {.status = 0};
    int status = handshake_reply(&l->route.to, q->step, reply, &e);

    if (handshake_wants_name(q->step, status)) {
        l->refusal = e;
        push_steps(l, HANDSHAKE_NAME, HANDSHAKE_NAME);
    } else if (q->step == HANDSHAKE_NAME) {
        fail(l, status < 0 ? &e : &l->refusal);
    } else if (status < 0) {
        fail(l, &e);
    } else {
        up_if_greeted(l);
    }
}

/* Nothing was done: the keys are elsewhere. For who asked it is a lost connection. */
static void take_redirection(struct link *l, struct request *q, const struct redisReply *reply)
{
    struct error e;

    error_set(&e, WEIR_EUNREACHABLE, "redis %s: Weir's keys are not there now (%.200s)", l->wire.name,
              reply->str);
    if (q->on_reply)
        q->on_reply(q->arg, NULL);
    args_free(&q->args);
    fail(l, &e);
}

static void take_answer(struct link *l, const struct redisReply *reply)
{
    uint64_t number = l->requests.answered;
    struct request q = requests_pop(&l->requests);
    struct error e;

    if (l->address.finder == REDIS_BY_CLUSTER && is_fault(reply, REDIS_FAULT_CLUSTER)) {
        take_redirection(l, &q, reply);
        return;
    }
    if (q.on_reply && !q.repeated && misses_library(reply)) {
        repeat(l, &q, number);
        return;
    }
    if (!q.on_reply)
        take_step(l, &q, reply);
    else
        q.on_reply(q.arg, l->refusal.status && misses_library(reply) ? NULL : reply);
    args_free(&q.args);
    if (is_fault(reply, REDIS_FAULT_READONLY)) {
        redis_fault_error(&e, reply->str);
        fail(l, &e);
    } else if (q.on_reply && reply->type != REDIS_REPLY_ERROR) {
        l->failures = 0;
    }
}

static void take_answers(struct link *l)
{
    struct redisReply *reply;
    struct error e;
    int n = 0;

    while (!l->failure.status && (n = wire_reply(&l->wire, &reply, &e)) > 0) {
        if (l->requests.count > 0) {
            take_answer(l, reply);
        } else {
            error_set(&e, WEIR_EUNREACHABLE, "redis %s: an answer that nobody asked for; check the address",
                      l->wire.name);
            fail(l, &e);
        }
    }
    if (n < 0)
        fail(l, &e);
}

static void read_all(struct link *l)
{
    struct error e;
    int n = 1;

    for (int i = 0; i < READS_IN_A_ROW && n > 0 && !l->failure.status; i++) {
        n = wire_receive(&l->wire, &e);
        if (n < 0)
            fail(l, &e);
        else if (n > 0)
            take_answers(l);
    }
}

/* ---- Watchers */

/* Writes what fits. A failure to send shows when reading, behind the answers that came before it. */
static void write_some(struct link *l)
{
    struct error e;
    bool blocked = wire_send(&l->wire, &e) > 0;

    if (blocked != ((l->io.events & EV_WRITE) != 0))
        watch(l, blocked);
}

static bool is_opening(const struct link *l)
{
    return l->state == LINK_ROUTING || l->state == LINK_CONNECTING;
}

static void go_on_opening(struct link *l)
{
    if (l->state == LINK_ROUTING)
        take_route(l);
    else
        go_on_connecting(l);
}

static void on_io(struct ev_loop *loop, struct ev_io *io, int revents)
{
    struct link *l = io->data;

    (void)loop;
    if (is_opening(l)) {
        go_on_opening(l);
    } else {
        if (revents & EV_WRITE)
            write_some(l);
        if (revents & EV_READ)
            read_all(l);
    }
    give_up_if_failed(l);
}

static void on_prepare(struct ev_loop *loop, struct ev_prepare *prepare, int revents)
{
    struct link *l = prepare->data;

    (void)loop;
    (void)revents;
    if (l->state >= LINK_GREETING && !l->failure.status && wire_wants_write(&l->wire) &&
        !(l->io.events & EV_WRITE))
        write_some(l);
}

/* Answers that have come while this process was held up count, however late. */
static void check_deadlines(struct link *l)
{
    struct error e;
    int64_t now_us = clock_mono_us();

    if (next_us(l) > now_us)
        return;
    read_all(l);
    for (size_t i = 0; i < l->requests.count && !l->failure.status; i++) {
        const struct request *q = requests_at(&l->requests, i);

        if (q->deadline_us > now_us)
            continue;
        wire_timed_out(&l->wire, q->timeout_s, &e);
        fail(l, &e);
    }
}

/* A route or connection that has come while this process was held up counts too: libev calls the timer first. */
static void check_connecting(struct link *l)
{
    struct pollfd p = {.fd = l->io.fd, .events = POLLIN | (l->io.events & EV_WRITE ? POLLOUT : 0)};
    int64_t now_us = clock_mono_us();
    struct error e;

    if (l->until_us > now_us)
        return;
    if (poll(&p, 1, 0) > 0)
        go_on_opening(l);
    if (l->failure.status || !is_opening(l) || l->until_us > now_us)
        return;
    if (l->state == LINK_ROUTING)
        routing_timed_out(l->routing, &e);
    else
        wire_timed_out(&l->wire, CONNECT_S, &e);
    fail(l, &e);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
    struct link *l = timer->data;

    (void)loop;
    (void)revents;
    if (l->failure.status == 0) {
        if (l->state == LINK_WAITING && l->until_us <= clock_mono_us())
            begin_connecting(l);
        else if (is_opening(l))
            check_connecting(l);
        else if (l->state >= LINK_GREETING)
            check_deadlines(l);
        if (l->state == LINK_UP && l->failure.status == 0 && recheck_us(l) <= clock_mono_us())
            master_ask(&l->master, &l->address);
    }
    give_up_if_failed(l);
    set_timer(l, next_us(l));
}

/* ---- For the user */

struct link *link_new(struct ev_loop *loop, const struct redis_address *address,
                      const struct link_events *events, void *arg)
{
    struct link *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    *l =
        (struct link){.loop = loop, .address = *address, .events = events, .arg = arg, .timer_us = INT64_MAX};
    if (!requests_open(&l->requests)) {
        free(l);
        return NULL;
    }
    wire_init(&l->wire, address, &l->arena);
    ev_init(&l->io, on_io);
    master_init(&l->master, loop, on_master, l);
    ev_init(&l->timer, on_timer);
    ev_prepare_init(&l->prepare, on_prepare);
    ev_set_priority(&l->prepare, EV_MINPRI + 1); /* behind those that may still send */
    l->io.data = l->timer.data = l->prepare.data = l;
    return l;
}

void link_follow(struct link *l, const struct link *leader)
{
    l->leader = l->address.finder == REDIS_NAMED ? NULL : leader;
    ev_set_priority(&l->prepare, EV_MINPRI);
}

void link_stay(struct link *l)
{
    if (l->leader && l->state == LINK_UP && !redis_address_is_same(&l->route.to, &l->leader->route.to))
        link_drop(l, "the keys are elsewhere now");
}

void link_start(struct link *l)
{
    ev_prepare_start(l->loop, &l->prepare);
    set_state(l, LINK_WAITING, 0);
}

bool link_is_up(const struct link *l)
{
    return l->state == LINK_UP && l->failure.status == 0;
}

void link_send(struct link *l, struct args *a, double timeout_s, link_reply *on_reply, void *arg)
{
    struct request q = {.args = *a, .on_reply = on_reply, .arg = arg, .timeout_s = timeout_s};

    assert(l->state == LINK_UP); /* or it was, until this run of the loop */
    *a = (struct args){0};
    q.deadline_us = clock_mono_us() + (int64_t)(timeout_s * SECOND_US);
    push(l, &q);
}

void link_drop(struct link *l, const char *why)
{
    struct error e;

    if (l->state < LINK_ROUTING)
        return;
    error_set(&e, WEIR_EUNREACHABLE, "redis %s: %s", l->wire.name, why);
    fail(l, &e);
}

void link_free(struct link *l)
{
    if (!l)
        return;
    ev_io_stop(l->loop, &l->io);
    ev_timer_stop(l->loop, &l->timer);
    ev_prepare_stop(l->loop, &l->prepare);
    l->state = LINK_IDLE;
    forget_question(l);
    master_forget(&l->master);
    wire_close(&l->wire);
    fail_requests(l);
    arena_free(&l->arena);
    requests_free(&l->requests);
    free(l);
}
