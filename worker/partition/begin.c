/* Tasks of the loop begin at their start time to the microsecond, which libev's timers, of milliseconds, do
 * not give: one timerfd stands at the next of these times. It also wakes the scheduler
 * when an early task, of any kind, is to get an executor. */
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "worker/partition/inside.h"

static void on_time(struct ev_loop *loop, ev_io *io, int events)
{
    struct worker *w = io->data;
    uint64_t times;

    (void)loop, (void)events;
    if (read(io->fd, &times, sizeof times) > 0)
        w->begin.at_us = NEVER;
    if (w->begin.near_us <= clock_mono_us()) {
        w->begin.near_us = NEVER;
        worker_wake(w);
    }
    begin_tasks(w);
}

int begin_open(struct worker *w, struct error *e)
{
    int fd;

    w->begin.at_us = w->begin.near_us = NEVER;
    ev_io_init(&w->begin.io, on_time, -1, EV_READ);
    if ((fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) < 0)
        return error_set(e, WEIR_EINTERNAL, "worker: no timer; raise the limit on open files");
    ev_io_set(&w->begin.io, fd, EV_READ);
    w->begin.io.data = w;
    ev_io_start(w->loop, &w->begin.io);
    return 0;
}

void begin_close(struct worker *w)
{
    if (!ev_is_active(&w->begin.io))
        return;
    ev_io_stop(w->loop, &w->begin.io);
    close(w->begin.io.fd);
    w->begin.io.fd = -1;
}

static void set_time(struct worker *w, int64_t at_us)
{
    struct itimerspec at = {.it_value = {.tv_sec = at_us / 1000000, .tv_nsec = at_us % 1000000 * 1000}};

    if (at_us == w->begin.at_us)
        return;
    w->begin.at_us = at_us;
    if (at_us != NEVER)
        timerfd_settime(w->begin.io.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void begin_tasks(struct worker *w)
{
    int64_t next_us;
    struct task *task;

    if (w->begin.io.fd < 0)
        return;
    while ((task = pool_begin(w->pool, clock_mono_us(), &next_us)))
        handler_start(task);
    set_time(w, w->begin.near_us < next_us ? w->begin.near_us : next_us);
}

void begin_near(struct worker *w, int64_t near_us)
{
    w->begin.near_us = near_us;
}

void begin_task_ended(struct task *task)
{
    struct partition *p = task->conditions->partition;

    if (p->conditions.trace && atomic_load(&task->begun_us))
        trace_end(p->conditions.trace, task);
    pool_end(p->worker->pool, task);
}
