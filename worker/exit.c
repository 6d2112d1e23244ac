/* A handler that ends the process, by exit() or, on a thread, by pthread_exit(): not before each worker of
 * the process has settled what has ended and given back the rest, on its own thread and over a connection of
 * its own, since the loop may be in the middle of anything. The job whose handler did it counts as
 * interrupted, so that it does so three times at most. Then the process ends with 70. */
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/worker.h"

#define GIVE_BACK_US 10000000 /* how long a loop that hangs, or Redis, may delay the end */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `running`; held from exit() on */
static struct weir_worker *running;
static atomic_bool ending;
static struct task *culprit; /* set before ending; NULL: nobody knows */

static void log_exit(void)
{
    int jobs = 0;

    for (struct weir_worker *w = running; w; w = w->at_exit.next) {
        struct pool_load load = pool_load(w->common.pool);

        jobs += load.running + load.queued;
    }
    if (culprit)
        task_log(LOG_LEVEL_ERROR, culprit,
                 "its handler (%s) ended the process by exit() or pthread_exit(): exit 70; %d other jobs are "
                 "given "
                 "back",
                 culprit->handler->runner->way->name, jobs - 1);
    else
        log_line(LOG_LEVEL_ERROR, "exit() was called while the worker ran: exit 70; %d jobs are given back",
                 jobs);
}

/* ---- On the worker's thread */

static void settle_culprit(struct partition *p)
{
    struct task *task;

    if (!culprit || culprit->conditions != &p->conditions || !(task = task_copy(culprit)))
        return;
    task_finish(task, END_INTERRUPTED, -1, "it ended the process of its worker");
    task_finished(task);
}

static int settle_all(struct partition *p, struct redis *redis, struct args *a, struct error *e)
{
    struct redisReply *reply;
    int rc = 0;

    settling_again(p); /* what is on its way, too */
    while (rc == 0 && settling_write(p, a)) {
        if ((rc = redis_call(redis, a, &reply, NULL, e)) == 0)
            freeReplyObject(reply);
        settling_done(p);
    }
    return rc;
}

static int leave(struct partition *p, struct redis *redis, struct args *a, struct error *e)
{
    struct redisReply *reply;
    struct adopt adopt = {0};
    int rc;

    do {
        leaving_write(p, a);
        if ((rc = redis_call(redis, a, &reply, NULL, e)) != 0)
            break;
        rc = adopt_reply(reply, p->worker->options.queue_count, &adopt, e);
        adopt_free(&adopt);
        freeReplyObject(reply);
    } while (rc == 0 && adopt.left > 0);
    return rc;
}

static int give_back(struct partition *p, struct error *e)
{
    struct redis_address address = partition_address(p);
    struct redis *redis = redis_new(&address);
    struct args a = {0};
    int rc;

    if (!redis)
        rc = error_set(e, WEIR_EINTERNAL, "out of memory");
    else if ((rc = settle_all(p, redis, &a, e)) == 0)
        rc = leave(p, redis, &a, e);
    args_free(&a);
    redis_free(redis);
    return rc;
}

static void end_partition(struct partition *p)
{
    struct error e;

    settle_culprit(p);
    if (p->session.id[0] && give_back(p, &e) != 0)
        log_line(LOG_LEVEL_ERROR, "jobs could not be given back (%s); they return when their lease ends",
                 e.text);
    trace_flush(p->conditions.trace);
}

static void end_worker(struct weir_worker *w)
{
    tasks_collect(&w->common);
    for (int pass = 0; pass < 2; pass++) /* the first pass is for partitions whose Redis answers */
        for (int i = 0; i < w->common.partition_count; i++)
            if (link_is_up(w->common.partitions[i]->link) == (pass == 0))
                end_partition(w->common.partitions[i]);
    atomic_store(&w->at_exit.gone, true);
}

void worker_check_exit(struct weir_worker *w)
{
    if (!atomic_load(&ending))
        return;
    end_worker(w);
    for (;;)
        pause(); /* the process ends */
}

/* ---- On the thread that called exit() */

static void await_gone(struct weir_worker *w, int64_t until_us)
{
    while (!atomic_load(&w->at_exit.gone) && clock_mono_us() < until_us)
        clock_sleep_until(clock_mono_us() + 1000);
}

static void on_exit_of_process(void)
{
    int64_t until_us = clock_mono_us() + GIVE_BACK_US;

    pthread_mutex_lock(&lock);
    if (!running) {
        pthread_mutex_unlock(&lock);
        return;
    }
    culprit = handler_current();
    log_exit();
    atomic_store(&ending, true);
    for (struct weir_worker *w = running; w; w = w->at_exit.next)
        if (pthread_equal(w->at_exit.thread, pthread_self()))
            end_worker(w);
        else
            worker_call_loop(&w->common);
    for (struct weir_worker *w = running; w; w = w->at_exit.next)
        await_gone(w, until_us);
    log_flush();
    _exit(-WEIR_EINTERNAL);
}

/* ---- Which workers run */

/* Forgets the workers in a child of fork(): they are the parent's, another thread of which may have held the lock. */
static void in_child(void)
{
    static const pthread_mutex_t open = PTHREAD_MUTEX_INITIALIZER;

    lock = open;
    running = NULL;
    atomic_store(&ending, false);
}

static void watch(void)
{
    atexit(on_exit_of_process);
    pthread_atfork(NULL, NULL, in_child);
}

void worker_exit_open(struct weir_worker *w)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch);
    w->at_exit.thread = pthread_self();
    pthread_mutex_lock(&lock);
    w->at_exit.next = running;
    running = w;
    pthread_mutex_unlock(&lock);
}

void worker_exit_close(struct weir_worker *w)
{
    struct weir_worker **at = &running;

    atomic_store(&w->at_exit.gone, true); /* an exit() that holds the lock does not wait for it */
    pthread_mutex_lock(&lock);
    while (*at != w)
        at = &(*at)->at_exit.next;
    *at = w->at_exit.next;
    pthread_mutex_unlock(&lock);
}
