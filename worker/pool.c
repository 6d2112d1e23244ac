#include "worker/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "worker/handler.h"

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct task_list timed, prefetched, finished;
    struct task **running; /* by thread; NULL: idle */
    pthread_t *threads;
    int executors, started, idle, busy;
    uint64_t begun;
    bool waking; /* a thread was called and has not come yet */
    bool stopping;
    struct trace *trace;
    void (*on_finished)(void *arg);
    void *arg;
};

struct seat {
    struct pool *pool;
    int number;
};

static bool has_work(const struct pool *p)
{
    return p->timed.head || p->prefetched.head;
}

static void *thread_main(void *arg);

/* Gets one more thread going if tasks wait and nobody is on the way. With very short tasks the threads that
 * run are faster than a wake-up: one at a time is enough, each calls the next. Called with the lock held. */
static void call_one(struct pool *p)
{
    if (p->waking || !has_work(p))
        return;
    if (p->idle > 0) {
        p->waking = true;
        pthread_cond_signal(&p->work);
    } else if (p->started < p->executors) {
        struct seat *seat = malloc(sizeof *seat);

        if (!seat)
            return;
        *seat = (struct seat){p, p->started};
        if (pthread_create(&p->threads[p->started], NULL, thread_main, seat) != 0) {
            free(seat);
            if (p->started == 0)
                log_line(LOG_LEVEL_ERROR, "worker: cannot start a thread; raise the limit on processes");
            return;
        }
        p->started++;
        p->waking = true;
    }
}

static struct task *wait_for_task(struct pool *p)
{
    struct task *task;

    while (!has_work(p) && !p->stopping) {
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
        p->waking = false;
    }
    task = task_list_pop(p->timed.head ? &p->timed : &p->prefetched);
    if (task)
        call_one(p);
    return task;
}

static void *thread_main(void *arg)
{
    struct seat seat = *(struct seat *)arg;
    struct pool *p = seat.pool;
    struct task *task;
    sigset_t all;
    bool first;

    free(arg);
    sigfillset(&all); /* signals are for the loop; a command that does not read its input is no SIGPIPE */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&p->lock);
    p->waking = false;
    while ((task = wait_for_task(p))) {
        p->running[seat.number] = task;
        p->busy++;
        p->begun++;
        pthread_mutex_unlock(&p->lock);
        handler_run(task, p->trace);
        task->finished_us = clock_mono_us();
        pthread_mutex_lock(&p->lock);
        p->running[seat.number] = NULL;
        p->busy--;
        first = !p->finished.head;
        task_list_push(&p->finished, task);
        if (first)
            p->on_finished(p->arg);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct pool *pool_new(int executors, struct trace *trace, void (*on_finished)(void *arg), void *arg)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->running = calloc((size_t)executors, sizeof *p->running);
    p->threads = calloc((size_t)executors, sizeof *p->threads);
    if (!p->running || !p->threads) {
        free(p->running);
        free(p->threads);
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    task_list_init(&p->timed);
    task_list_init(&p->prefetched);
    task_list_init(&p->finished);
    p->executors = executors;
    p->trace = trace;
    p->on_finished = on_finished;
    p->arg = arg;
    return p;
}

static void free_tasks(struct task_list *list)
{
    struct task *task;

    while ((task = task_list_pop(list)))
        task_free(task);
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    free_tasks(&p->timed);
    free_tasks(&p->prefetched);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    free_tasks(&p->finished);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->running);
    free(p->threads);
    free(p);
}

void pool_add(struct pool *p, struct task_list *tasks)
{
    struct task *task;

    pthread_mutex_lock(&p->lock);
    while ((task = task_list_pop(tasks)))
        task_list_push(task->slot_us ? &p->timed : &p->prefetched, task);
    call_one(p);
    pthread_mutex_unlock(&p->lock);
}

void pool_collect(struct pool *p, struct task_list *finished)
{
    pthread_mutex_lock(&p->lock);
    task_list_append(finished, &p->finished);
    pthread_mutex_unlock(&p->lock);
}

void pool_withdraw(struct pool *p, struct task_list *tasks, bool all)
{
    struct task_list kept;
    struct task *task;

    task_list_init(&kept);
    pthread_mutex_lock(&p->lock);
    if (all)
        task_list_append(tasks, &p->timed);
    for (int stay = all ? 0 : p->executors - p->busy - p->timed.count; stay > 0; stay--)
        if ((task = task_list_pop(&p->prefetched)))
            task_list_push(&kept, task);
    task_list_append(tasks, &p->prefetched);
    task_list_append(&p->prefetched, &kept);
    pthread_mutex_unlock(&p->lock);
}

void pool_each(struct pool *p, void (*visit)(struct task *task, void *arg), void *arg)
{
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->started; i++)
        if (p->running[i])
            visit(p->running[i], arg);
    for (struct task *task = p->timed.head; task; task = task->next)
        visit(task, arg);
    for (struct task *task = p->prefetched.head; task; task = task->next)
        visit(task, arg);
    for (struct task *task = p->finished.head; task; task = task->next)
        visit(task, arg);
    pthread_mutex_unlock(&p->lock);
}

struct pool_load pool_load(struct pool *p)
{
    struct pool_load load;

    pthread_mutex_lock(&p->lock);
    load = (struct pool_load){p->busy, p->timed.count + p->prefetched.count, p->begun};
    pthread_mutex_unlock(&p->lock);
    return load;
}
