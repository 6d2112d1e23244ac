/* Recording: the jobs that started and ended here are counted by type and limit, and now and then the counts go
 * to Redis beside a turn. Of jobs that run for long the start is counted when counts are sent. What is on its way when the connection is lost, or in memory when the
 * process dies, is not counted: nobody depends on it. */
#include "core/log/log.h"
#include "core/random.h"
#include "worker/partition/inside.h"

/* A record follows the last one after so long, or up to a fifth less at random, so that workers do not send together. */
#define RECORD_US (5000 * MS)
#define LOOK_US (500 * MS) /* a worker may run thousands of jobs */
#define MORE_US (100 * MS) /* a record follows one that did not send all after so long */
/* A worker that leaves sends so many records; each takes Redis 3 ms, and others are served between them. */
#define RECORDS_MOST 100

/* The number of a type; below 0: its handler was replaced, and the type has none now. */
static int type_of(const struct partition *p, const struct handler *handler)
{
    const struct handlers *now = p->worker->handlers;

    if (handler->number >= now->count || handler != now->at[handler->number])
        handler = handlers_find(now, span_str(handler->type));
    return handler ? handler->number : -1;
}

int recording_renumber(struct partition *p, const struct handlers *before)
{
    int *numbers = calloc((size_t)before->count + 1, sizeof *numbers);

    if (!numbers)
        return WEIR_EINTERNAL;
    for (int i = 0; i < before->count; i++)
        numbers[i] = type_of(p, before->at[i]);
    counts_renumber(&p->recording.counts, numbers);
    free(numbers);
    return 0;
}

/* Returns for how much of the time in which slots were lost the job had waited that took one then. Where nobody knows since when it waits:
 * all, if it waited in a lane, or if this worker had no executor for it before. */
static double waited_part(const struct partition *p, const struct claim *claim, const struct loss *loss)
{
    int64_t since_us = claim->leases[loss->lease].since_us, lost_us = claim->now_us - loss->since_us;

    if (!since_us)
        return loss->why != 'q' || p->mind.claims.lacked;
    if (since_us <= loss->since_us || lost_us <= 0)
        return 1;
    return since_us < claim->now_us ? (double)(claim->now_us - since_us) / (double)lost_us : 0;
}

static void count_loss(struct partition *p, const struct claim *claim, const struct loss *loss)
{
    enum count_lost why = loss->why == 'h' ? LOST_HELD : loss->why == 'l' ? LOST_LATE : LOST_NO_EXECUTOR;
    double part = waited_part(p, claim, loss);
    int64_t waited = (int64_t)((double)loss->thousandths * part),
            came_us = claim->now_us - (int64_t)((double)(claim->now_us - loss->since_us) * part);

    counts_lost(&p->recording.counts, loss->limit, why, &(struct count_loss){waited, came_us, claim->now_us});
    counts_lost(&p->recording.counts, loss->limit, LOST_NO_JOB,
                &(struct count_loss){loss->thousandths - waited, loss->since_us, came_us});
}

void recording_count_claim(struct partition *p, const struct claim *claim)
{
    for (size_t i = 0; i < claim->loss_count; i++)
        count_loss(p, claim, &claim->losses[i]);
    for (size_t i = 0; i + 1 < claim->limit_count; i += 2) {
        const struct handler *handler = handlers_take(p->worker->handlers, claim->limits[i]);

        if (handler)
            counts_hold(&p->recording.counts, type_of(p, handler), claim->limits[i + 1]);
    }
}

/* Returns how long a job waited for its first start; < 0: this is another one, which has waited for other things too. */
static int64_t wait_time(const struct task *task, int64_t at_us)
{
    if (!task->since_us || task->attempts + task->interrupted + task->throttled > 0)
        return -1;
    return at_us > task->since_us ? at_us - task->since_us : 0;
}

void task_count_start(struct task *task)
{
    struct partition *p = task->conditions->partition;
    int64_t begun_us = atomic_load(&task->begun_us), at_us;

    if (!begun_us || task->counted)
        return;
    task->counted = true;
    at_us = begun_us - distance_offset(&p->mind.distance);
    counts_start(
        &p->recording.counts, type_of(p, task->handler),
        &(struct count_start){at_us, task->slot_us ? task->cost : 0, wait_time(task, at_us), task->cause});
}

/* Counts that a task gives its slots back, as no handler was called. */
static void count_back(const struct task *task)
{
    struct partition *p = task->conditions->partition;

    counts_back(&p->recording.counts, type_of(p, task->handler), task->back, task->cost, task->counted);
    if (p->conditions.trace)
        trace_back(p->conditions.trace, task);
}

void task_count_end(struct task *task)
{
    struct partition *p = task->conditions->partition;
    int64_t begun_us = atomic_load(&task->begun_us);
    int type = type_of(p, task->handler);

    task_count_start(task);
    if (!begun_us && task->slot_us && atomic_load(&task->asked) != ASKED_LOST)
        count_back(task);
    if (atomic_load(&task->asked) == ASKED_LOST || task->end == END_BACK || task->end == END_INTERRUPTED)
        return;
    if (type >= 0)
        p->worker->handlers->at[type]->ended[task->end]++;
    counts_end(&p->recording.counts, type, task->end, begun_us ? task->finished_us - begun_us : -1,
               task->reason);
}

static void count_running(struct partition *p)
{
    struct task **tasks = p->worker->running;
    size_t n = pool_running(p->worker->pool, &p->conditions, tasks);

    for (size_t i = 0; i < n; i++)
        task_count_start(tasks[i]);
}

/* Hears the answer to a record. A failure stops nothing, and is logged once. */
static void on_recorded(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct span wrong;
    struct error e;

    if (reply && record_reply(reply, &wrong, &e) != 0)
        log_once(&p->worker->logged, LOG_LEVEL_WARN, "what happens here is not recorded: %s", e.text);
    else if (reply && wrong.len > 0)
        log_once(&p->worker->logged, LOG_LEVEL_WARN,
                 "what happens here is not recorded: %.*s; run weir doctor --repair", (int)wrong.len,
                 wrong.at);
    request_answered(p);
}

void recording_send(struct partition *p, struct args *a, int64_t now, bool at_once)
{
    struct recording *r = &p->recording;

    if (now < r->next_us && !at_once)
        return;
    if (now >= r->look_us || at_once) {
        r->look_us = now + LOOK_US;
        count_running(p);
    }
    if (!r->counts.some)
        return;
    r->next_us = now + RECORD_US - (int64_t)(random_fraction() * RECORD_US / 5);
    for (int sent = 0; r->counts.some && sent < (at_once ? RECORDS_MOST : 1); sent++) {
        record_request(a, p->prefix, -1);
        counts_write(&r->counts, p->worker->handlers->types, a);
        request_send(p, a, on_recorded);
    }
    if (r->counts.some)
        r->next_us = now + MORE_US;
}
