#include "core/redis/master.h"

#include "core/clock.h"

static void on_answer(struct ev_loop *loop, ev_io *io, int revents)
{
    struct master *m = io->data;
    struct watch *watch = NULL;
    struct route now = {0};
    struct error e;
    int status;

    (void)revents;
    ev_io_stop(loop, io);
    status = routing_take(m->routing, &now, &watch, &e);
    routing_drop(m->routing);
    m->routing = NULL;
    master_watch(m, watch);
    m->on_heard(m->arg, status == 0 ? &now : NULL);
    route_free(&now);
}

static void on_news(struct ev_loop *loop, ev_io *io, int revents)
{
    struct master *m = io->data;

    (void)loop, (void)revents;
    watch_hear(m->watch);
    m->on_heard(m->arg, NULL);
}

void master_init(struct master *m, struct ev_loop *loop, void (*on_heard)(void *arg, const struct route *now),
                 void *arg)
{
    m->loop = loop;
    m->on_heard = on_heard;
    m->arg = arg;
    ev_init(&m->answer, on_answer);
    ev_init(&m->news, on_news);
    m->answer.data = m->news.data = m;
}

void master_watch(struct master *m, struct watch *watch)
{
    ev_io_stop(m->loop, &m->news);
    watch_free(m->watch);
    m->watch = watch;
    m->asked_us = clock_mono_us();
    if (!watch)
        return;
    ev_io_set(&m->news, watch_fd(watch), EV_READ);
    ev_io_start(m->loop, &m->news);
}

int64_t master_next_us(const struct master *m)
{
    return m->routing ? INT64_MAX : m->asked_us + watch_rest_us(m->watch);
}

/* No password is asked for: it would be a process each time. */
void master_ask(struct master *m, const struct redis_address *address)
{
    struct redis_address where = *address;
    struct error e;

    m->asked_us = clock_mono_us();
    where.password_file[0] = where.password_command[0] = '\0';
    if (routing_begin(&where, &m->routing, &e) < 0)
        return;
    ev_io_set(&m->answer, routing_fd(m->routing), EV_READ);
    ev_io_start(m->loop, &m->answer);
}

void master_forget(struct master *m)
{
    ev_io_stop(m->loop, &m->answer);
    routing_drop(m->routing);
    m->routing = NULL;
    master_watch(m, NULL);
}
