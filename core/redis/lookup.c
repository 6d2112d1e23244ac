#include "core/redis/lookup.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/wire/endpoint.h"
#include "core/wire/handshake.h"
#include "core/wire/wire.h"

/* A server is asked from the connect to its answer. */
struct asked {
    struct redis_address to;
    struct wire wire;
    bool opening; /* not yet connected */
    int awaited;  /* answers that are missing, the login's too; 0: done */
    struct redisReply *replies[LOOKUP_QUESTIONS];
    struct error error; /* why there is none */
};

struct lookup {
    const struct args *questions;
    int question_count;
    struct asked *asked;
    int count, open;
    int64_t end_us;
};

static void end_one(struct lookup *l, struct asked *q)
{
    wire_close(&q->wire);
    q->awaited = 0;
    l->open--;
}

/* Now that it is connected. */
static int send_questions(struct lookup *l, struct asked *q)
{
    struct args a = {0};
    int status = 0;

    q->opening = false;
    handshake_request(&q->to, HANDSHAKE_AUTH, &a);
    if (a.count > 0) {
        status = wire_add(&q->wire, &a, &q->error);
        q->awaited++;
    }
    args_free(&a);
    for (int i = 0; !status && i < l->question_count; i++)
        status = wire_add(&q->wire, &l->questions[i], &q->error);
    return status;
}

/* 1: all answers are there. */
static int take_replies(const struct lookup *l, struct asked *q)
{
    struct redisReply *reply;
    int n = 1;

    while (q->awaited > 0 && (n = wire_reply(&q->wire, &reply, &q->error)) != 0) {
        if (n < 0)
            return n;
        q->awaited--;
        if (q->awaited == l->question_count)
            n = handshake_reply(&q->to, HANDSHAKE_AUTH, reply, &q->error) < 0 ? q->error.status : n;
        else if (reply->type == REDIS_REPLY_ERROR)
            n = redis_fault_error(&q->error, reply->str);
        if (n > 0 && q->awaited < l->question_count)
            q->replies[l->question_count - 1 - q->awaited] = reply;
        else
            freeReplyObject(reply);
        if (n < 0)
            return n;
    }
    return q->awaited == 0;
}

/* Does what it can without waiting. Below 0: no answer will come; 1: it has come. */
static int go_on(struct lookup *l, struct asked *q)
{
    int n;

    if (q->opening) {
        n = wire_go_on(&q->wire, &q->error);
        if (n != WIRE_UP)
            return n < 0 ? n : 0;
        n = send_questions(l, q);
        if (n < 0)
            return n;
    }
    n = wire_send(&q->wire, &q->error);
    if (n >= 0)
        n = wire_receive(&q->wire, &q->error);
    return n <= 0 ? n : take_replies(l, q);
}

static void begin_one(struct lookup *l, struct asked *q)
{
    struct route route;
    int n = route_direct(&q->to, &route, &q->error);

    wire_init(&q->wire, &q->to, NULL);
    q->opening = true;
    q->awaited = l->question_count;
    l->open++;
    if (n == 0)
        n = wire_open(&q->wire, &route, &q->error);
    if (n < 0)
        end_one(l, q);
}

static void wait_for_any(struct lookup *l)
{
    struct pollfd fds[SEEDS_MOST];
    int64_t left_us = l->end_us - clock_mono_us();
    int n = 0;

    for (int i = 0; i < l->count; i++)
        if (l->asked[i].awaited > 0)
            fds[n++] =
                (struct pollfd){.fd = l->asked[i].wire.fd,
                                .events = wire_wants_write(&l->asked[i].wire) ? POLLIN | POLLOUT : POLLIN};
    poll(fds, (nfds_t)n, left_us > 0 ? (int)(left_us / 1000) + 1 : 0);
}

/* The sockets do not block: each is simply tried. */
static void try_all(struct lookup *l)
{
    int64_t rest_us = clock_mono_us() + LOOKUP_REST_MS * INT64_C(1000);

    for (int i = 0; i < l->count; i++) {
        struct asked *q = &l->asked[i];
        int n = q->awaited > 0 ? go_on(l, q) : 0;

        if (n < 0)
            end_one(l, q);
        l->open -= n > 0;
        if (n > 0 && rest_us < l->end_us)
            l->end_us = rest_us;
    }
}

static void ask_all(struct lookup *l)
{
    l->end_us = clock_mono_us() + LOOKUP_MS * INT64_C(1000);
    for (int i = 0; i < l->count; i++)
        begin_one(l, &l->asked[i]);
    while (l->open > 0 && clock_mono_us() < l->end_us) {
        wait_for_any(l);
        try_all(l);
    }
    for (int i = 0; i < l->count; i++)
        if (l->asked[i].awaited > 0) {
            wire_timed_out(&l->asked[i].wire, LOOKUP_MS / 1000.0, &l->asked[i].error);
            end_one(l, &l->asked[i]);
        }
}

/* Hands the answers on. */
static int tell(struct lookup *l, lookup_answer *on_answer, void *arg, struct error *e)
{
    int answers = 0;

    for (int i = 0; i < l->count; i++) {
        struct asked *q = &l->asked[i];

        if (q->error.status) {
            *e = q->error;
        } else {
            answers++;
            on_answer(arg, &q->to, q->replies, &q->wire);
        }
        wire_close(&q->wire);
        for (int k = 0; k < LOOKUP_QUESTIONS; k++)
            freeReplyObject(q->replies[k]);
    }
    return answers > 0 ? answers : e->status;
}

int lookup(const struct redis_address *address, const struct redis_address *login,
           const struct args *questions, int count, lookup_answer *on_answer, void *arg, struct error *e)
{
    struct lookup l = {
        .questions = questions, .question_count = count, .asked = calloc(SEEDS_MOST, sizeof *l.asked)};
    int n;

    if (!l.asked)
        return error_set(e, WEIR_EINTERNAL, "redis: out of memory for a connection");
    while (l.count < SEEDS_MOST && redis_address_seed(address, l.count, &l.asked[l.count].to)) {
        struct redis_address *to = &l.asked[l.count++].to;

        memcpy(to->user, login->user, sizeof to->user);
        memcpy(to->password, login->password, sizeof to->password);
    }
    ask_all(&l);
    n = tell(&l, on_answer, arg, e);
    free(l.asked);
    return n;
}
