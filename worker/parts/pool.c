#include "worker/parts/pool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/way/way.h"

#define LACKING_US 200000 /* tasks wait that long for a thread that cannot be started, or for another */
#define NEAR_US 5000      /* an early task gets its executor so long before its time, or half of that */

/* A line has the tasks that wait for one kind of executor: threads, or the loop. */
struct line {
    struct task_list timed; /* tasks of the loop, by start time, linked both ways */
    struct task_list prefetched;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct line thread, loop;
    struct task_list early; /* by start time, linked both ways */
    struct task_list finished;
    struct task **running;        /* by thread; NULL: idle */
    struct task *afloat, *strays; /* tasks of the loop that run, and that were given up; linked both ways */
    pthread_t *threads;
    int executors, threads_most, started, idle;
    int reserved; /* executors that run no prefetched task */
    int busy_threads, busy_loop, given_up;
    int unlimited;      /* executors that run a prefetched task */
    int64_t lacking_us; /* since when tasks wait for a thread that cannot be started; 0: none do */
    bool waking;        /* a thread was called and has not come yet */
    bool stopping;
    void (*on_finished)(void *arg);
    void *arg;
};

struct seat {
    struct pool *pool;
    int number;
};

static int busy(const struct pool *p)
{
    return p->busy_threads + p->busy_loop;
}

static int timed(const struct pool *p)
{
    return p->thread.timed.count + p->loop.timed.count;
}

/* Counts the executors that are free for prefetched tasks; those that were granted to timed tasks are not. */
static int free_for_prefetched(const struct pool *p)
{
    int idle = p->executors - busy(p) - timed(p), open = p->executors - p->reserved - p->unlimited;

    return idle < open ? idle : open;
}

static void count_busy(struct pool *p, const struct task *task, int *busy_there, int n)
{
    *busy_there += n;
    if (!task->slot_us)
        p->unlimited += n;
}

/* Returns the list of this line whose head may begin now, as an executor is free for it. NULL: none. */
static struct task_list *next_of(const struct pool *p, struct line *line)
{
    if (line->timed.head && busy(p) < p->executors)
        return &line->timed;
    if (line->prefetched.head && free_for_prefetched(p) > 0)
        return &line->prefetched;
    return NULL;
}

/* True when a task is of a partition (NULL: of any). */
static bool is_of(const struct task *task, const struct conditions *of)
{
    return !of || task->conditions == of;
}

/* ---- Lists that are linked both ways */

static void link_in(struct task **head, struct task *task)
{
    task->prev = NULL;
    task->next = *head;
    if (*head)
        (*head)->prev = task;
    *head = task;
}

static void link_out(struct task **head, struct task *task)
{
    if (task->prev)
        task->prev->next = task->next;
    else
        *head = task->next;
    if (task->next)
        task->next->prev = task->prev;
}

/* Inserts a task behind those that start no later; nearly always at the end. */
static void insert_by_time(struct task_list *list, struct task *last, struct task *task)
{
    struct task *before = last;

    while (before && before->start_us > task->start_us)
        before = before->prev;
    task->prev = before;
    task->next = before ? before->next : list->head;
    if (task->next)
        task->next->prev = task;
    else
        list->tail = &task->next;
    *(before ? &before->next : &list->head) = task;
    list->count++;
}

static struct task *last_of(const struct task_list *list)
{
    return list->head ? (struct task *)((char *)list->tail - offsetof(struct task, next)) : NULL;
}

static void count_waiting(const struct task *task, int n)
{
    if (!task->slot_us)
        task->conditions->prefetched += n;
}

/* Takes the next task out of a line's list. */
static struct task *take(struct task_list *list)
{
    struct task *task = task_list_pop(list);

    count_waiting(task, -1);
    return task;
}

/* Moves all tasks of a list. */
static void take_all(struct task_list *to, struct task_list *from)
{
    while (from->head)
        task_list_push(to, take(from));
}

/* ---- Threads */

static void *thread_main(void *arg);

static void start_thread(struct pool *p)
{
    struct seat *seat = malloc(sizeof *seat);
    int failed = ENOMEM;

    if (seat) {
        *seat = (struct seat){p, p->started};
        failed = pthread_create(&p->threads[p->started], NULL, thread_main, seat);
    }
    if (failed == 0) {
        p->lacking_us = 0;
        p->started++;
        p->waking = true;
        return;
    }
    free(seat);
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
    if (p->waking || p->stopping || !next_of(p, &p->thread))
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

    while (!(list = next_of(p, &p->thread)) && !p->stopping) {
        p->idle++;
        pthread_cond_wait(&p->work, &p->lock);
        p->idle--;
        p->waking = false;
    }
    return list && !p->stopping ? take(list) : NULL;
}

/* Takes a task that has ended from its executor. */
static void hand_in(struct pool *p, struct task *task)
{
    bool first = !p->finished.head;

    task->ended = true;
    task_list_push(&p->finished, task);
    if (first || p->loop.timed.head || p->loop.prefetched.head)
        p->on_finished(p->arg);
}

static void run_one(struct pool *p, struct task *task, int seat)
{
    p->running[seat] = task;
    count_busy(p, task, &p->busy_threads, 1);
    call_one(p);
    pthread_mutex_unlock(&p->lock);
    handler_run(task);
    task->finished_us = clock_mono_us();
    pthread_mutex_lock(&p->lock);
    p->running[seat] = NULL;
    count_busy(p, task, &p->busy_threads, -1);
    if (task->stray) {
        p->given_up--;
        task_free(task);
    } else {
        hand_in(p, task);
    }
}

static void *thread_main(void *arg)
{
    struct seat seat = *(struct seat *)arg;
    struct pool *p = seat.pool;
    struct task *task;
    sigset_t all;

    free(arg);
    sigfillset(&all); /* signals are for the loop; SIGPIPE too, where a command does not read its input */
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&p->lock);
    p->waking = false;
    while ((task = wait_for_task(p)))
        run_one(p, task, seat.number);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- Made and freed */

struct pool *pool_new(int executors, int threads, void (*on_finished)(void *arg), void *arg)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->running = calloc((size_t)threads + 1, sizeof *p->running);
    p->threads = calloc((size_t)threads + 1, sizeof *p->threads);
    if (!p->running || !p->threads) {
        free(p->running);
        free(p->threads);
        free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    task_list_init(&p->thread.timed);
    task_list_init(&p->thread.prefetched);
    task_list_init(&p->loop.timed);
    task_list_init(&p->loop.prefetched);
    task_list_init(&p->early);
    task_list_init(&p->finished);
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

static void free_linked(struct task *task)
{
    while (task) {
        struct task *next = task->next;

        task_free(task);
        task = next;
    }
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    task_list_free(&p->thread.timed);
    task_list_free(&p->thread.prefetched);
    task_list_free(&p->loop.timed);
    task_list_free(&p->loop.prefetched);
    task_list_free(&p->early);
    task_list_free(&p->finished);
    free_linked(p->afloat);
    free_linked(p->strays);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->running);
    free(p->threads);
    free(p);
}

/* ---- In and out */

static void add(struct pool *p, struct task *task)
{
    struct line *line = task->handler->runner->way->run ? &p->thread : &p->loop;

    count_waiting(task, 1);
    if (task->early)
        insert_by_time(&p->early, last_of(&p->early), task);
    else if (task->slot_us && line == &p->loop)
        insert_by_time(&line->timed, last_of(&line->timed), task);
    else
        task_list_push(task->slot_us ? &line->timed : &line->prefetched, task);
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
    int64_t next_us = INT64_MAX;

    pthread_mutex_lock(&p->lock);
    while (p->early.head && p->early.head->start_us <= now_us + NEAR_US) {
        struct task *task = task_list_pop(&p->early);

        task->early = false;
        if (busy(p) + timed(p) < p->executors)
            add(p, task);
        else
            task_list_push(crowded, task);
    }
    call_one(p);
    if (p->early.head)
        next_us = p->early.head->start_us - NEAR_US / 2;
    pthread_mutex_unlock(&p->lock);
    return next_us;
}

void pool_recall(struct pool *p, const struct conditions *of, struct task *only, struct task_list *tasks)
{
    struct task_list kept;
    struct task *task;

    task_list_init(&kept);
    pthread_mutex_lock(&p->lock);
    while ((task = task_list_pop(&p->early))) {
        bool stays = task->conditions != of || (only && task != only);

        task->early = stays;
        if (stays)
            insert_by_time(&kept, last_of(&kept), task);
        else
            task_list_push(tasks, task);
    }
    task_list_append(&p->early, &kept);
    pthread_mutex_unlock(&p->lock);
}

struct task *pool_begin(struct pool *p, int64_t now_us, int64_t *next_us)
{
    struct task_list *list;
    struct task *task = NULL;

    *next_us = INT64_MAX;
    pthread_mutex_lock(&p->lock);
    list = next_of(p, &p->loop);
    if (list == &p->loop.timed && list->head->start_us > now_us) {
        *next_us = list->head->start_us;
        list = p->loop.prefetched.head && free_for_prefetched(p) > 0 ? &p->loop.prefetched : NULL;
    }
    if (list && !p->stopping) {
        task = take(list);
        link_in(&p->afloat, task);
        count_busy(p, task, &p->busy_loop, 1);
    }
    pthread_mutex_unlock(&p->lock);
    return task;
}

void pool_end(struct pool *p, struct task *task)
{
    pthread_mutex_lock(&p->lock);
    if (task->stray) {
        link_out(&p->strays, task);
        pthread_mutex_unlock(&p->lock);
        task_free(task);
        return;
    }
    link_out(&p->afloat, task);
    count_busy(p, task, &p->busy_loop, -1);
    task->finished_us = clock_mono_us();
    hand_in(p, task);
    call_one(p);
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
    task_list_append(finished, &p->finished);
    pthread_mutex_unlock(&p->lock);
}

/* Moves the first n tasks of `from` to the end of `to`. */
static void move(struct task_list *to, struct task_list *from, int n)
{
    struct task *task;

    for (; n > 0 && (task = task_list_pop(from)); n--)
        task_list_push(to, task);
}

/* Takes the prefetched tasks of a line, but for the first *stay. */
static void withdraw_prefetched(struct line *line, struct task_list *tasks, int *stay)
{
    struct task_list kept;

    task_list_init(&kept);
    move(&kept, &line->prefetched, *stay);
    *stay -= kept.count;
    take_all(tasks, &line->prefetched);
    task_list_append(&line->prefetched, &kept);
}

void pool_withdraw(struct pool *p, struct task_list *tasks)
{
    int stay;

    pthread_mutex_lock(&p->lock);
    stay = free_for_prefetched(p);
    withdraw_prefetched(&p->thread, tasks, &stay);
    withdraw_prefetched(&p->loop, tasks, &stay);
    pthread_mutex_unlock(&p->lock);
}

/* Withdraws the tasks of one partition. Others stay, in their order; by_time: the list is linked both ways. */
static void withdraw_of(struct task_list *from, bool by_time, const struct conditions *of,
                        struct task_list *tasks)
{
    struct task_list kept;
    struct task *task;

    task_list_init(&kept);
    while ((task = task_list_pop(from))) {
        bool leaves = is_of(task, of);

        if (leaves)
            count_waiting(task, -1);
        if (!leaves && by_time)
            insert_by_time(&kept, last_of(&kept), task);
        else
            task_list_push(leaves ? tasks : &kept, task);
    }
    task_list_append(from, &kept);
}

void pool_withdraw_all(struct pool *p, const struct conditions *of, struct task_list *tasks)
{
    pthread_mutex_lock(&p->lock);
    withdraw_of(&p->thread.timed, false, of, tasks);
    withdraw_of(&p->loop.timed, true, of, tasks);
    withdraw_of(&p->early, true, of, tasks);
    withdraw_of(&p->thread.prefetched, false, of, tasks);
    withdraw_of(&p->loop.prefetched, false, of, tasks);
    pthread_mutex_unlock(&p->lock);
}

void pool_retry(struct pool *p, int64_t now_us, struct task_list *tasks)
{
    pthread_mutex_lock(&p->lock);
    call_one(p);
    if (!next_of(p, &p->thread))
        p->lacking_us = 0;
    if (p->lacking_us && now_us - p->lacking_us >= LACKING_US) {
        take_all(tasks, &p->thread.timed);
        take_all(tasks, &p->thread.prefetched);
        p->lacking_us = 0;
    }
    pthread_mutex_unlock(&p->lock);
}

bool pool_give_up(struct pool *p, struct task *task)
{
    bool runs;

    pthread_mutex_lock(&p->lock);
    runs = !task->ended && !task->stray;
    if (runs) {
        task->stray = true;
        if (task->handler->runner->way->run) {
            p->given_up++;
        } else {
            link_out(&p->afloat, task);
            link_in(&p->strays, task);
            count_busy(p, task, &p->busy_loop, -1);
            call_one(p);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return runs;
}

/* ---- What runs and waits */

bool pool_is_running(struct pool *p, const struct task *task)
{
    bool runs;

    pthread_mutex_lock(&p->lock);
    runs = !task->ended && !task->stray;
    pthread_mutex_unlock(&p->lock);
    return runs;
}

static void visit_list(struct task *head, const struct conditions *of,
                       void (*visit)(struct task *task, void *arg), void *arg)
{
    for (struct task *task = head; task; task = task->next)
        if (is_of(task, of))
            visit(task, arg);
}

void pool_each(struct pool *p, const struct conditions *of, void (*visit)(struct task *task, void *arg),
               void *arg)
{
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->started; i++)
        if (p->running[i] && !p->running[i]->stray && is_of(p->running[i], of))
            visit(p->running[i], arg);
    visit_list(p->afloat, of, visit, arg);
    visit_list(p->thread.timed.head, of, visit, arg);
    visit_list(p->thread.prefetched.head, of, visit, arg);
    visit_list(p->loop.timed.head, of, visit, arg);
    visit_list(p->loop.prefetched.head, of, visit, arg);
    visit_list(p->early.head, of, visit, arg);
    visit_list(p->finished.head, of, visit, arg);
    pthread_mutex_unlock(&p->lock);
}

size_t pool_running(struct pool *p, const struct conditions *of, struct task **tasks)
{
    size_t n = 0;

    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->started; i++)
        if (p->running[i] && !p->running[i]->stray && is_of(p->running[i], of))
            tasks[n++] = p->running[i];
    for (struct task *task = p->afloat; task; task = task->next)
        if (is_of(task, of))
            tasks[n++] = task;
    pthread_mutex_unlock(&p->lock);
    return n;
}

static int64_t oldest(const struct pool *p)
{
    const struct task *thread = p->thread.prefetched.head, *loop = p->loop.prefetched.head;

    if (thread && loop)
        return thread->came_us < loop->came_us ? thread->came_us : loop->came_us;
    return thread ? thread->came_us : loop ? loop->came_us : 0;
}

struct pool_load pool_load(struct pool *p)
{
    struct pool_load load;

    pthread_mutex_lock(&p->lock);
    load = (struct pool_load){
        .running = busy(p) - p->given_up,
        .queued = timed(p) + p->thread.prefetched.count + p->loop.prefetched.count + p->early.count,
        .prefetched = p->thread.prefetched.count + p->loop.prefetched.count,
        .early = p->early.count,
        .unlimited = p->unlimited,
        .threads = p->busy_threads - p->given_up,
        .given_up = p->given_up,
        .oldest_us = oldest(p),
    };
    pthread_mutex_unlock(&p->lock);
    return load;
}

int pool_prefetched(struct pool *p, const struct conditions *of)
{
    int n;

    pthread_mutex_lock(&p->lock);
    n = of->prefetched;
    pthread_mutex_unlock(&p->lock);
    return n;
}
