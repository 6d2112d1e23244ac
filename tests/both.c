#include "tests/both.h"

#include <hiredis/hiredis.h>

#include "core/clock.h"
#include "tests/test.h"

struct redis *both_redis(const char *to)
{
    struct redis_address address;
    struct redis *r;
    struct error e;

    fail_if(redis_address_parse(to, &address, &e) != 0, "%s: %s", to, e.text);
    r = redis_new(&address);
    assert_non_null(r);
    return r;
}

int both_call(struct redis *r, const char *verb, const char *word, size_t len, struct redisReply **reply,
              struct error *e)
{
    struct args a = {0};
    int status;

    args_add(&a, verb);
    if (word)
        args_add_bytes(&a, word, len);
    status = redis_call(r, &a, reply, NULL, e);
    args_free(&a);
    return status;
}

int both_ping(struct redis *r, struct error *e)
{
    struct redisReply *reply;
    int status = both_call(r, "PING", NULL, 0, &reply, e);

    freeReplyObject(reply);
    return status;
}

int both_try_blocking(const char *to, struct error *e)
{
    struct redis *r = both_redis(to);
    int status = both_ping(r, e);

    redis_free(r);
    return status;
}

static void on_up(void *arg)
{
    ((struct heard *)arg)->up = true;
}

static void on_down(void *arg, const struct error *why)
{
    struct heard *heard = arg;

    heard->why = *why;
    heard->down = true;
}

static const struct link_events events = {on_up, on_down};

static void on_tick(struct ev_loop *loop, ev_timer *timer, int revents)
{
    struct heard *heard = timer->data;
    int64_t now_us = clock_mono_us();

    (void)loop, (void)revents;
    if (heard->ticked_us && now_us - heard->ticked_us > heard->stood_us)
        heard->stood_us = now_us - heard->ticked_us;
    heard->ticked_us = now_us;
}

void both_open_link(struct linked *l, const char *to)
{
    struct redis_address address;
    struct error e;

    *l = (struct linked){.loop = ev_loop_new(EVFLAG_AUTO)};
    assert_int_equal(redis_address_parse(to, &address, &e), 0);
    l->link = link_new(l->loop, &address, &events, &l->heard);
    ev_timer_init(&l->tick, on_tick, 0.01, 0.01);
    l->tick.data = &l->heard;
    ev_timer_start(l->loop, &l->tick);
    link_start(l->link);
}

void both_close_link(struct linked *l)
{
    link_free(l->link);
    ev_timer_stop(l->loop, &l->tick);
    ev_loop_destroy(l->loop);
}

int both_try_link(const char *to, struct error *e)
{
    struct linked l;

    both_open_link(&l, to);
    BOTH_RUN_UNTIL(&l, l.heard.up || l.heard.down);
    *e = l.heard.why;
    both_close_link(&l);
    return e->status;
}

void both_check(const char *to, int is, const struct error *e, int status, const char *says)
{
    if (is != status || (status && !strstr(e->text, says)))
        fail_msg("%s: %d, not %d with '%s': %s", to, is, status, says, is ? e->text : "up");
    fail_if(status && (strchr(e->text, '\n') || !strstr(e->text, "; ")), "no line with advice: %s", e->text);
}

void both_come_to(const char *to, int status, const char *says)
{
    struct error e;
    int is = both_try_blocking(to, &e);

    both_check(to, is, &e, status, says);
    is = both_try_link(to, &e);
    both_check(to, is, &e, status, says);
}

void both_work(const char *to)
{
    both_come_to(to, 0, "");
}
