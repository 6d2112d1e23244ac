#include "worker/parts/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/number.h"
#include "worker/way/way.h"

#define LACKING_US 200000 /* tasks wait that long for a thread that cannot be started, or for another */
#define NEAR_US 5000      /* an early task gets its executor so long before its time, or half of that */

/* The lists of tasks; those before RUNNING wait. A line is of one kind of executor. TIMED of the loop and EARLY are by start time. */
enum line { THREAD, LOOP };
enum { TIMED, EARLY = TIMED + 2, PREFETCHED, RUNNING = PREFETCHED + 2, FINISHED, STRAYS, LISTS };

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct task_list lists[LISTS]; /* TIMED and PREFETCHED + a line; STRAYS: given up */
    pthread_t *threads;
    int executors, threads_most, started, idle;
    int reserved; /* executors that run no prefetched task */
    int busy_threads, given_up;
    int unlimited;      /* executors that run a prefetched task */
    int64_t lacking_us; /* since when tasks wait for a thread that cannot be started; 0: none do */
    bool waking;        /* a thread was called and has not come yet */
    bool stopping;
    void (*on_finished)(void *arg);
    void *arg;
};

static int busy(const struct pool *p)
{
    return p->lists[RUNNING].count + p->given_up;
}

static int timed(const struct pool *p)
{
    return p->lists[TIMED + THREAD].count + p->lists[TIMED + LOOP].count;
}

/* Counts the executors that are free for prefetched tasks; those that were granted to timed tasks are not. */
static int free_for_prefetched(const struct pool *p)
{
    int idle = p->executors - busy(p) - timed(p), open = p->executors - p->reserved - p->unlimited;

    return idle < open ? idle : open;
}

/* Returns the prefetched tasks of a line if an executor is free for one. NULL: none. */
static struct task_list *next_prefetched(struct pool *p, enum line line)
{
    struct task_list *list = &p->lists[PREFETCHED + line];

    return list->head && free_for_prefetched(p) > 0 ? list : NULL;
}

/* Returns the list of this line whose head may begin now, as an executor is free for it. NULL: none. */
static struct task_list *next_of(struct pool *p, enum line line)
{
    struct task_list *list = &p->lists[TIMED + line];

    return list->head && busy(p) < p->executors ? list : next_prefetched(p, line);
}

/* True when a task is of a partition (NULL: of any). */
static bool is_of(const struct task *task, const struct conditions *of)
{
    return !of || task->conditions == of;
}

/* ---- Into a list, and out */

/* Inserts a task behind those that start no later; nearly always at the end. */
static void insert_by_time(struct task_list *list, struct task *task)
{
    struct task *before = list->tail;

    while (before && before->start_us > task->start_us)
        before = before->prev;
    task_list_insert(list, before, task);
}

static void count_waiting(const struct task *task, int n)
{
    if (!task->slot_us)
        atomic_fetch_add(&task->conditions->prefetched, n);
}

/* Moves the tasks of a partition (NULL: of all) that wait in a list, but for the first `stay`. Returns how many of `stay` are left. */
static int withdraw(struct task_list *from, const struct conditions *of, int stay, struct task_list *to)
{
    for (struct task *task = from->head, *next; task; task = next) {
        next = task->next;
        if (!is_of(task, of))
            continue;
        if (stay-- > 0)
            continue;
        task_list_remove(from, task);
        count_waiting(task, -1);
        task->early = false;
        task_list_push(to, task);
    }
    return stay;
}

/* Takes the next task of a list to run it. */
static struct task *begin(struct pool *p, struct task_list *list)
{
    struct task *task = task_list_pop(list);

    count_waiting(task, -1);
    p->unlimited += !task->slot_us;
    task_list_push(&p->lists[RUNNING], task);
    return task;
}

/* ---- Threads */

static void *thread_main(void *arg);

static void start_thread(struct pool *p)
{
    int failed = pthread_create(&p->threads[p->started], NULL, thread_main, p);

    if (failed == 0) {
        p->lacking_us = 0;
        p->started++;
        p->waking = true;
        return;
    }
    if (p->lacking_us)
        return;
    p->lacking_us = clock_mono_us();
    log_line(LOG_LEVEL_ERROR, "worker: cannot start a thread: %s; raise the limit on processes",
             strerror(failed));
}

/* Gets one more thread going if tasks wait and nobody is on the way. With very short tasks the threads that
 * run are faster than a wake-up: one at a time is enough, each calls the next. Called with the lock held. */
static void call_one(struct pool *p)
{
    if (p->waking || p->stopping || !next_of(p, THREAD))
        return;
    if (p->idle > 0) {
        p->waking = true;
        pthread_cond_signal(&p->work);
    } else if (p->started < p->threads_most) {
        start_thread(p);
    }
}

static struct task *wait_for_task(struct pool *p)
{
    struct task_list *list;

    while (!(list = next_of(p, THREAD)) && !p->stopping) {
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
        p->waking = false;
    }
    return list && !p->stopping ? begin(p, list) : NULL;
}

/* Takes a task that has ended from its executor. */
static void hand_in(struct pool *p, struct task *task)
{
    bool first = !p->lists[FINISHED].head;

    task_list_remove(&p->lists[RUNNING], task);
    p->unlimited -= !task->slot_us;
    task->ended = true;
    task_list_push(&p->lists[FINISHED], task);
    if (first || p->lists[TIMED + LOOP].head || p->lists[PREFETCHED + LOOP].head)
        p->on_finished(p->arg);
}

static void free_stray(struct pool *p, struct task *task)
{
    task_list_remove(&p->lists[STRAYS], task);
    task_free(task);
}

static void run_one(struct pool *p, struct task *task)
{
    p->busy_threads++;
    call_one(p);
    pthread_mutex_unlock(&p->lock);
    handler_run(task);
    task->finished_us = clock_mono_us();
    pthread_mutex_lock(&p->lock);
    p->busy_threads--;
    if (task->stray) {
        p->given_up--;
        p->unlimited -= !task->slot_us;
        free_stray(p, task);
    } else {
        hand_in(p, task);
    }
}

static void *thread_main(void *arg)
{
    struct pool *p = arg;
    struct task *task;
    sigset_t all;

    sigfillset(&all); /* signals are for the loop; SIGPIPE too, where a command does not read its input */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&p->lock);
    p->waking = false;
    while ((task = wait_for_task(p)))
        run_one(p, task);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- Made and freed */

struct pool *pool_new(int executors, int threads, void (*on_finished)(void *arg), void *arg)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    if (!(p->threads = calloc((size_t)threads + 1, sizeof *p->threads))) {
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    p->executors = executors;
    p->threads_most = threads;
    p->on_finished = on_finished;
    p->arg = arg;
    return p;
}

void pool_stop(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->started; i++)
        pthread_join(p->threads[i], NULL);
    p->started = 0;
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    for (int i = 0; i < LISTS; i++)
        task_list_free(&p->lists[i]);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p);
}

/* ---- In and out */

static void add(struct pool *p, struct task *task)
{
    enum line line = task->handler->runner->way->run ? THREAD : LOOP;

    count_waiting(task, 1);
    if (task->early)
        insert_by_time(&p->lists[EARLY], task);
    else if (task->slot_us && line == LOOP)
        insert_by_time(&p->lists[TIMED + LOOP], task);
    else
        task_list_push(&p->lists[(task->slot_us ? TIMED : PREFETCHED) + line], task);
}

void pool_add(struct pool *p, struct task_list *tasks)
{
    int64_t now_us = clock_mono_us();
    struct task *task;

    pthread_mutex_lock(&p->lock);
    while ((task = task_list_pop(tasks))) {
        task->came_us = now_us;
        add(p, task);
    }
    call_one(p);
    pthread_mutex_unlock(&p->lock);
}

int64_t pool_draw_near(struct pool *p, int64_t now_us, struct task_list *crowded)
{
    struct task_list *early = &p->lists[EARLY];
    int64_t next_us;

    pthread_mutex_lock(&p->lock);
    while (early->head && early->head->start_us <= now_us + NEAR_US) {
        struct task *task = task_list_pop(early);

        task->early = false;
        if (busy(p) + timed(p) < p->executors)
            add(p, task);
        else
            task_list_push(crowded, task);
    }
    call_one(p);
    next_us = early->head ? early->head->start_us - NEAR_US / 2 : INT64_MAX;
    pthread_mutex_unlock(&p->lock);
    return next_us;
}

void pool_recall(struct pool *p, const struct conditions *of, struct task *only, struct task_list *tasks)
{
    pthread_mutex_lock(&p->lock);
    if (only) {
        task_list_remove(&p->lists[EARLY], only);
        only->early = false;
        task_list_push(tasks, only);
    } else {
        withdraw(&p->lists[EARLY], of, 0, tasks);
    }
    pthread_mutex_unlock(&p->lock);
}

struct task *pool_begin(struct pool *p, int64_t now_us, int64_t *next_us)
{
    struct task_list *list;
    struct task *task = NULL;

    *next_us = INT64_MAX;
    pthread_mutex_lock(&p->lock);
    list = next_of(p, LOOP);
    if (list == &p->lists[TIMED + LOOP] && list->head->start_us > now_us) {
        *next_us = list->head->start_us;
        list = next_prefetched(p, LOOP);
    }
    if (list && !p->stopping)
        task = begin(p, list);
    pthread_mutex_unlock(&p->lock);
    return task;
}

void pool_end(struct pool *p, struct task *task)
{
    pthread_mutex_lock(&p->lock);
    if (task->stray) {
        free_stray(p, task);
    } else {
        task->finished_us = clock_mono_us();
        hand_in(p, task);
        call_one(p);
    }
    pthread_mutex_unlock(&p->lock);
}

void pool_reserve(struct pool *p, int executors)
{
    pthread_mutex_lock(&p->lock);
    p->reserved = executors;
    call_one(p);
    pthread_mutex_unlock(&p->lock);
}

void pool_collect(struct pool *p, struct task_list *finished)
{
    pthread_mutex_lock(&p->lock);
    task_list_append(finished, &p->lists[FINISHED]);
    pthread_mutex_unlock(&p->lock);
}

void pool_withdraw(struct pool *p, struct task_list *tasks)
{
    int stay;

    pthread_mutex_lock(&p->lock);
    stay = withdraw(&p->lists[PREFETCHED + THREAD], NULL, free_for_prefetched(p), tasks);
    withdraw(&p->lists[PREFETCHED + LOOP], NULL, stay, tasks);
    pthread_mutex_unlock(&p->lock);
}

void pool_withdraw_all(struct pool *p, const struct conditions *of, struct task_list *tasks)
{
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < RUNNING; i++)
        withdraw(&p->lists[i], of, 0, tasks);
    pthread_mutex_unlock(&p->lock);
}

void pool_retry(struct pool *p, int64_t now_us, struct task_list *tasks)
{
    pthread_mutex_lock(&p->lock);
    call_one(p);
    if (!next_of(p, THREAD))
        p->lacking_us = 0;
    if (p->lacking_us && now_us - p->lacking_us >= LACKING_US) {
        withdraw(&p->lists[TIMED + THREAD], NULL, 0, tasks);
        withdraw(&p->lists[PREFETCHED + THREAD], NULL, 0, tasks);
        p->lacking_us = 0;
    }
    pthread_mutex_unlock(&p->lock);
}

static bool is_running(const struct task *task)
{
    return !task->ended && !task->stray;
}

bool pool_give_up(struct pool *p, struct task *task)
{
    bool runs;

    pthread_mutex_lock(&p->lock);
    runs = is_running(task);
    if (runs) {
        task->stray = true;
        task_list_remove(&p->lists[RUNNING], task);
        task_list_push(&p->lists[STRAYS], task);
        if (task->handler->runner->way->run)
            p->given_up++;
        else
            p->unlimited -= !task->slot_us;
        call_one(p);
    }
    pthread_mutex_unlock(&p->lock);
    return runs;
}

/* ---- What runs and waits */

bool pool_is_running(struct pool *p, const struct task *task)
{
    bool runs;

    pthread_mutex_lock(&p->lock);
    runs = is_running(task);
    pthread_mutex_unlock(&p->lock);
    return runs;
}

void pool_each(struct pool *p, const struct conditions *of, void (*visit)(struct task *task, void *arg),
               void *arg)
{
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < STRAYS; i++)
        for (struct task *task = p->lists[i].head; task; task = task->next)
            if (is_of(task, of))
                visit(task, arg);
    pthread_mutex_unlock(&p->lock);
}

size_t pool_running(struct pool *p, const struct conditions *of, struct task **tasks)
{
    size_t n = 0;

    pthread_mutex_lock(&p->lock);
    for (struct task *task = p->lists[RUNNING].head; task; task = task->next)
        if (is_of(task, of))
            tasks[n++] = task;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static int64_t oldest(const struct pool *p)
{
    const struct task *thread = p->lists[PREFETCHED + THREAD].head, *loop = p->lists[PREFETCHED + LOOP].head;

    if (thread && loop)
        return min_i64(thread->came_us, loop->came_us);
    return thread ? thread->came_us : loop ? loop->came_us : 0;
}

struct pool_load pool_load(struct pool *p)
{
    struct pool_load load;

    pthread_mutex_lock(&p->lock);
    load = (struct pool_load){
        .running = p->lists[RUNNING].count,
        .prefetched = p->lists[PREFETCHED + THREAD].count + p->lists[PREFETCHED + LOOP].count,
        .early = p->lists[EARLY].count,
        .unlimited = p->unlimited,
        .threads = p->busy_threads - p->given_up,
        .given_up = p->given_up,
        .oldest_us = oldest(p),
    };
    load.queued = timed(p) + load.prefetched + load.early;
    pthread_mutex_unlock(&p->lock);
    return load;
}
