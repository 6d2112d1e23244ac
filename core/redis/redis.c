/* The blocking connection. Each public call first makes sure of a connection that is worth sending on: when
 * nothing is under way it may be opened, or opened anew when the peer has gone since the last call; nobody's
 * command is then in doubt. Whatever goes wrong later closes it and is the caller's to judge. */
#include "core/redis/redis.h"

#include <assert.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "core/forks.h"
#include "core/redis/route.h"
#include "core/redis/sentinel.h"
#include "core/wire/credential.h"
#include "core/wire/handshake.h"
#include "core/wire/wire.h"

#define CONNECT_S 5 /* for each address of the host */
#define REQUEST_S 5 /* without a byte of progress */
/* No Sentinel is asked again for so long where none answers: the caller waits for that. */
#define UNANSWERED_US 30000000
#define ELSEWHERE_S 5 /* so long a command is sent again to who holds the keys */
#define ELSEWHERE_EVERY_US 50000

struct redis {
    struct redis_address address;
    struct route route;  /* of this connection */
    struct watch *watch; /* of the Sentinels; NULL: none */
    int64_t asked_us;    /* when they were asked */
    struct wire wire;
    unsigned forks;
    size_t awaited;   /* answers under way */
    atomic_bool used; /* by a call that has not returned */
    bool sent;        /* a byte of what is under way has left */
    bool missed;      /* a call has missed the library since it was loaded last */
    bool plain;       /* whatever Redis is */
    bool silent;      /* it was waited for in vain, and not reached since */
};

struct redis *redis_new(const struct redis_address *address)
{
    struct redis *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->address = *address;
    r->forks = forks_count();
    wire_init(&r->wire, address, NULL);
    return r;
}

struct redis *redis_new_plain(const struct redis *r)
{
    struct redis *other = redis_new(&r->address);

    if (other)
        other->plain = true;
    return other;
}

struct redis *redis_new_slot(const struct redis *r, int slot)
{
    struct redis_address address = r->address;

    address.slot = slot;
    return redis_new(&address);
}

bool redis_is_silent(const struct redis *r)
{
    return r->silent;
}

bool redis_is_clustered(const struct redis *r)
{
    return r->address.finder == REDIS_BY_CLUSTER;
}

static void watch_with(struct redis *r, struct watch *watch)
{
    watch_free(r->watch);
    r->watch = watch;
    r->asked_us = clock_mono_us();
}

static void close_connection(struct redis *r)
{
    wire_close(&r->wire);
    watch_with(r, NULL);
    r->awaited = 0;
}

/* After a fork() the connection, and the answers on it, are the parent's: nothing is sent or read there. */
static void leave_to_parent(struct redis *r)
{
    if (r->forks == forks_count())
        return;
    r->forks = forks_count();
    close_connection(r);
}

void redis_free(struct redis *r)
{
    if (!r)
        return;
    close_connection(r);
    free(r);
}

static int64_t in_seconds_us(int seconds)
{
    return clock_mono_us() + seconds * INT64_C(1000000);
}

/* Waits for any of these events until end_us, which was so many seconds away; 0 or WEIR_EUNREACHABLE. */
static int wait_until(struct redis *r, short events, int64_t end_us, int seconds, struct error *e)
{
    struct pollfd p = {.fd = r->wire.fd, .events = events};
    int64_t left_us;
    int n;

    do {
        left_us = end_us - clock_mono_us();
        n = left_us > 0 ? poll(&p, 1, (int)((left_us + 999) / 1000)) : 0;
    } while ((n < 0 && errno == EINTR) || (n == 0 && left_us > 0));
    r->silent = n == 0;
    return n == 0 ? wire_timed_out(&r->wire, seconds, e) : 0; /* any other failure shows at the next call */
}

/* Sends all that was added. */
static int send_all(struct redis *r, struct error *e)
{
    int more;

    while ((more = wire_send(&r->wire, e)) > 0) {
        r->sent = true;
        more = wait_until(r, POLLOUT, in_seconds_us(REQUEST_S), REQUEST_S, e);
        if (more < 0)
            return more;
    }
    r->sent = r->sent || more == 0;
    return more;
}

/* Waits for the next answer, whatever it is. */
static int receive_one(struct redis *r, struct redisReply **reply, struct error *e)
{
    int n;

    while ((n = wire_reply(&r->wire, reply, e)) == 0) {
        n = wire_receive(&r->wire, e);
        if (n == 0)
            n = wait_until(r, POLLIN, in_seconds_us(REQUEST_S), REQUEST_S, e);
        if (n < 0)
            return n;
    }
    return n < 0 ? n : 0;
}

/* ---- Opening */

static int connect_blocking(struct redis *r, struct error *e)
{
    int64_t end_us = 0;
    struct watch *watch;
    int n = route_find(&r->address, &r->route, &watch, e);

    watch_with(r, watch);
    if (n == 0)
        n = wire_open(&r->wire, &r->route, e);
    while (n >= 0 && n != WIRE_UP) {
        if (n == WIRE_DIALING || n == WIRE_SHAKING)
            end_us = in_seconds_us(CONNECT_S);
        n = wait_until(r, wire_wants_write(&r->wire) ? POLLIN | POLLOUT : POLLIN, end_us, CONNECT_S, e);
        if (n == 0)
            n = wire_go_on(&r->wire, e);
    }
    return n < 0 ? n : 0;
}

static int send_steps(struct redis *r, enum handshake_step first, enum handshake_step last, struct args *a,
                      struct error *e)
{
    int status = 0;

    for (enum handshake_step step = first; !status && step <= last; step++) {
        handshake_request(&r->route.to, step, a);
        status = a->count > 0 ? wire_add(&r->wire, a, e) : 0;
    }
    /* A Redis that closed may have said why before. */
    if (!status && send_all(r, e) < 0 && !wire_has_news(&r->wire))
        status = e->status;
    return status;
}

static int receive_step(struct redis *r, enum handshake_step step, struct error *e)
{
    struct redisReply *reply;
    int status = receive_one(r, &reply, e);

    if (!status) {
        status = handshake_reply(&r->route.to, step, reply, e);
        freeReplyObject(reply);
    }
    return status;
}

/* Puts the name of who refused the functions in place of its refusal, if it can be had. */
static void ask_name(struct redis *r, struct args *a, struct error *refusal)
{
    struct error e;

    if (send_steps(r, HANDSHAKE_NAME, HANDSHAKE_NAME, a, &e) == 0 &&
        receive_step(r, HANDSHAKE_NAME, &e) == WEIR_ECONFIG)
        *refusal = e;
}

static int receive_steps(struct redis *r, enum handshake_step first, enum handshake_step last, struct args *a,
                         struct error *e)
{
    int status = 0;

    for (enum handshake_step step = first; !status && step <= last; step++) {
        handshake_request(&r->route.to, step, a);
        if (a->count == 0)
            continue;
        status = receive_step(r, step, e);
        if (handshake_wants_name(step, status))
            ask_name(r, a, e);
    }
    return status;
}

static int shake_hands(struct redis *r, enum handshake_step first, enum handshake_step last, struct error *e)
{
    struct args a = {0};
    int status;

    status = send_steps(r, first, last, &a, e);
    if (!status)
        status = receive_steps(r, first, last, &a, e);
    args_free(&a);
    r->sent = false;
    if (status)
        close_connection(r);
    return status;
}

static int connect_and_greet(struct redis *r, struct error *e)
{
    bool asks = !r->plain || r->address.finder == REDIS_BY_SENTINELS;
    int status;

    r->silent = false;
    status = connect_blocking(r, e);
    if (status)
        close_connection(r);
    return status ? status : shake_hands(r, HANDSHAKE_AUTH, asks ? HANDSHAKE_PING : HANDSHAKE_SELECT, e);
}

/* Another Redis is the master now, say the Sentinels. A Redis that came back, or was cut off, may still think that it is, and
 * what it is told then is lost. */
static bool was_replaced(struct redis *r)
{
    struct redis_address now = r->address;
    struct watch *watch;
    struct error e;
    int status;

    if (r->address.finder != REDIS_BY_SENTINELS)
        return false;
    if (r->watch)
        watch_hear(r->watch);
    if (clock_mono_us() < r->asked_us + (r->watch ? watch_rest_us(r->watch) : UNANSWERED_US))
        return false;
    status = sentinel_find(&r->address, &now, &watch, &e);
    watch_with(r, watch);
    return status == 0 && !redis_address_is_same(&now, &r->route.to);
}

/* Makes sure of a connection. A password that is refused may have changed since it was asked for. */
static int open_connection(struct redis *r, struct error *e)
{
    int status;

    leave_to_parent(r);
    if (r->wire.fd >= 0 && r->awaited == 0 && (wire_is_stale(&r->wire) || was_replaced(r)))
        close_connection(r);
    if (r->wire.fd >= 0)
        return 0;
    status = connect_and_greet(r, e);
    if (status == WEIR_EREFUSED && credential_is_asked(&r->address))
        status = connect_and_greet(r, e);
    return status;
}

int redis_load_scripts(struct redis *r, struct error *e)
{
    int status = r->missed ? open_connection(r, e) : 0;

    assert(r->awaited == 0);
    if (!status && r->missed)
        status = shake_hands(r, HANDSHAKE_LOAD, HANDSHAKE_LOAD, e);
    r->missed &= status != 0;
    return status;
}

/* ---- Commands */

/* A connection is of one thread. Two that use it at a time are told so, before they take each other's answers. */
static int enter(struct redis *r, struct error *e)
{
    if (atomic_exchange(&r->used, true))
        return error_set(
            e, WEIR_EUSAGE,
            "Redis: two threads use one struct weir at a time; give each its own, by weir_new()");
    leave_to_parent(r);
    return 0;
}

static int leave(struct redis *r, int status)
{
    atomic_store(&r->used, false);
    return status;
}

static int append(struct redis *r, const struct args *a, struct error *e)
{
    int status = open_connection(r, e);

    if (!status)
        status = wire_add(&r->wire, a, e);
    if (!status && r->awaited++ == 0)
        r->sent = false;
    return status;
}

int redis_append(struct redis *r, const struct args *a, struct error *e)
{
    int status = enter(r, e);

    return status ? status : leave(r, append(r, a, e));
}

static int flush(struct redis *r, struct error *e)
{
    int status = r->wire.fd >= 0 ? send_all(r, e) : 0;

    if (status)
        close_connection(r);
    return status;
}

int redis_flush(struct redis *r, struct error *e)
{
    int status = enter(r, e);

    return status ? status : leave(r, flush(r, e));
}

/* The next answer as it is; *reply is set on success only. */
static int take_answer(struct redis *r, struct redisReply **reply, struct error *e)
{
    int status;

    if (r->awaited == 0)
        return error_set(e, WEIR_EUNREACHABLE, "Redis: connection lost before the answer; try again");
    status = flush(r, e);
    if (status)
        return status;
    status = receive_one(r, reply, e);
    if (status)
        close_connection(r);
    else
        r->awaited--;
    return status;
}

/* True when a server that does not hold the keys now has refused the call, with nothing done. */
static bool is_elsewhere(const struct redis *r, const struct redisReply *reply)
{
    enum redis_fault fault = reply->type == REDIS_REPLY_ERROR ? redis_fault(reply->str) : REDIS_FAULT_OTHER;

    return (fault == REDIS_FAULT_CLUSTER && r->address.finder == REDIS_BY_CLUSTER) ||
           (fault == REDIS_FAULT_READONLY && r->address.finder != REDIS_NAMED);
}

/* Makes an error of an error reply, and frees it. */
static int judge(struct redis *r, struct redisReply **reply, struct error *e)
{
    int status;

    if ((*reply)->type != REDIS_REPLY_ERROR)
        return 0;
    if (is_elsewhere(r, *reply))
        status =
            error_set(e, WEIR_EUNREACHABLE, "redis %s: Weir's keys are not there now (%.200s); try again",
                      r->wire.name, (*reply)->str);
    else
        status = redis_fault_error(e, (*reply)->str);
    r->missed |= redis_misses_library((*reply)->str);
    freeReplyObject(*reply);
    *reply = NULL;
    if (status == WEIR_EUNREACHABLE)
        close_connection(r);
    return status;
}

int redis_result(struct redis *r, struct redisReply **reply, struct error *e)
{
    int status;

    *reply = NULL;
    if ((status = enter(r, e)))
        return status;
    status = take_answer(r, reply, e);
    return leave(r, status ? status : judge(r, reply, e));
}

bool redis_await(const struct redis *r, int64_t until_us)
{
    struct pollfd p = {.fd = r->wire.fd, .events = POLLIN};
    int64_t left_us = until_us - clock_mono_us();
    struct timespec t = {.tv_sec = left_us / 1000000, .tv_nsec = left_us % 1000000 * 1000};

    return left_us > 0 && ppoll(&p, 1, &t, NULL) > 0;
}

/* Sends one command and takes its answer. An idle connection that is found dead before a byte has left is
 * opened anew. */
static int exchange_once(struct redis *r, const struct args *a, struct redisReply **reply, struct error *e)
{
    bool was_open;
    int status;

    do {
        was_open = r->wire.fd >= 0;
        status = append(r, a, e);
        if (!status)
            status = take_answer(r, reply, e);
    } while (status == WEIR_EUNREACHABLE && was_open && !r->sent);
    return status;
}

/* Sends the call here; one that misses its function is sent again behind the library. */
static int exchange_here(struct redis *r, const struct args *a, struct redisReply **reply, struct error *e)
{
    int status = exchange_once(r, a, reply, e);

    if (status || (*reply)->type != REDIS_REPLY_ERROR || !redis_misses_library((*reply)->str))
        return status;
    freeReplyObject(*reply);
    *reply = NULL;
    r->missed = true;
    status = redis_load_scripts(r, e);
    return status ? status : exchange_once(r, a, reply, e);
}

/* Sends the call to whoever holds the keys. */
static int exchange(struct redis *r, const struct args *a, struct redisReply **reply, struct error *e)
{
    int64_t end_us = in_seconds_us(ELSEWHERE_S);
    int status = exchange_here(r, a, reply, e);

    while (!status && is_elsewhere(r, *reply) && clock_mono_us() < end_us) {
        freeReplyObject(*reply);
        *reply = NULL;
        close_connection(r);
        clock_sleep_until(clock_mono_us() + ELSEWHERE_EVERY_US);
        status = exchange_here(r, a, reply, e);
    }
    return status;
}

int redis_call(struct redis *r, const struct args *a, struct redisReply **reply, bool *sent, struct error *e)
{
    int status;

    *reply = NULL;
    if (sent)
        *sent = false;
    if ((status = enter(r, e)))
        return status;
    if (r->awaited > 0)
        return leave(
            r, error_set(e, WEIR_EUSAGE,
                         "Redis: a bulk of another thread uses this struct weir; give each thread its own"));
    r->sent = false;
    status = exchange(r, a, reply, e);
    if (sent)
        *sent = status && r->sent;
    return leave(r, status ? status : judge(r, reply, e));
}
