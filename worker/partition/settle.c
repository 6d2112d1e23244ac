/* Settling: what has ended, reported to Redis all at once, each job with its end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/duration.h"
#include "core/log/log.h"
#include "worker/partition/inside.h"

#define SETTLE_MOST 2000          /* jobs in one settle */
#define COSTLY_MOST 500           /* units; units_of() */
#define RUN_LEAST 6               /* tokens that follow one another; fewer are named one by one */
#define COSTLY_BYTES (512 * 1024) /* of their bodies, or one that is larger: Redis moves them */

/* True when a task is done, and settled with the others of its type and batch. */
static bool is_plain(const struct task *task)
{
    return task->end == END_DONE && !task->unique && task->handler->keep_us == 0;
}

/* True when the handler of a task was called; else it gives its slots back. */
static bool was_called(const struct task *task)
{
    return atomic_load(&task->begun_us) != 0;
}

/* How long its handler ran; 0: it was not called. */
static int64_t ran_us(const struct task *task)
{
    int64_t begun_us = atomic_load(&task->begun_us);

    return begun_us ? task->finished_us - begun_us : 0;
}

/* The same in two digits, so that those stay together which failed alike. */
static int64_t about_ran_us(const struct task *task)
{
    int64_t us = ran_us(task), unit = MS;

    while (us / unit >= 100)
        unit *= 10;
    return us <= 0 ? 0 : us < unit ? unit : us / unit * unit;
}

static int64_t delay_us(const struct task *task)
{
    return (int64_t)(task->after_s * 1e6);
}

static void settle_one(struct args *a, const struct task *task)
{
    switch (task->end) {
    case END_DONE:
        if (is_plain(task))
            break;
        settle_ran(a, task->handler->keep_us > 0 ? ran_us(task) : 0);
        settle_end(a, SETTLE_FINISH, task->token, (task->handler->keep_us + MS - 1) / MS, task->result);
        break;
    case END_INTERRUPTED:
        settle_end(a, SETTLE_INTERRUPTED, task->token, INTERRUPTED_MOST, task->reason);
        break;
    case END_CANCELLED:
        settle_end(a, SETTLE_CANCELLED, task->token, !was_called(task), NULL);
        break;
    case END_BACK:
        settle_end(a, SETTLE_BACK, task->token, !was_called(task), NULL);
        break;
    case END_THROTTLED:
        settle_end(a, SETTLE_THROTTLED, task->token, task->after_s >= 0 ? delay_us(task) : SETTLE_NO_TIME,
                   NULL);
        break;
    case END_RETRY:
    case END_DEAD:
        break; /* settle_all_failed() */
    }
}

static bool has_failed(const struct task *task)
{
    return task->end == END_RETRY || task->end == END_DEAD;
}

static const char *reason_of(const struct task *task)
{
    return task->reason ? task->reason : task->end == END_DEAD ? "failed for good" : "";
}

/* Returns what stands in a token behind its head: its lane, and gates. */
static struct span lane_of(struct span token)
{
    const char *at = memchr(token.at, '/', token.len);

    return at ? (struct span){at, token.len - (size_t)(at - token.at)} : (struct span){token.at, 0};
}

static int compare_spans(struct span a, struct span b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* Compares why two failed tasks have failed, their lanes, and about how long they ran. */
static int compare_causes(const struct task *a, const struct task *b)
{
    int order = (int)a->end - (int)b->end;

    if (order == 0 && a->end == END_DEAD)
        order = (int)was_called(a) - (int)was_called(b);
    if (order == 0)
        order = compare_spans(lane_of(a->token), lane_of(b->token));
    if (order == 0)
        order = (about_ran_us(a) > about_ran_us(b)) - (about_ran_us(a) < about_ran_us(b));
    return order ? order : strcmp(reason_of(a), reason_of(b));
}

/* Sorts those together that have their cause in common, and of these the ones that are to be retried at one time. */
static int compare_failed(const void *a, const void *b)
{
    const struct task *x = *(const struct task *const *)a, *y = *(const struct task *const *)b;
    int order = compare_causes(x, y);

    if (order == 0)
        order = (x->after_s > y->after_s) - (x->after_s < y->after_s);
    return order ? order : compare_spans(x->token, y->token);
}

/* Says of n failed tasks that are to be retried for one cause when. */
static void settle_delays(struct args *a, const struct task *const *failed, size_t n)
{
    size_t first = 0;

    for (size_t i = 1; i <= n; i++)
        if (i == n || delay_us(failed[i]) != delay_us(failed[first])) {
            settle_delay(a, i - first, delay_us(failed[first]));
            first = i;
        }
}

/* Says why the first of n failed tasks have failed which have that in common. Returns how many these are. */
static size_t settle_alike(struct args *a, const struct task *const *failed, size_t n)
{
    const struct task *first = failed[0];
    size_t alike = 1;

    while (alike < n && compare_causes(failed[alike], first) == 0)
        alike++;
    settle_ran(a, about_ran_us(first));
    settle_cause(a, first->end == END_RETRY ? SETTLE_RETRY : SETTLE_DEAD, !was_called(first), alike,
                 reason_of(first));
    if (first->end == END_RETRY)
        settle_delays(a, failed, alike);
    return alike;
}

static void settle_all_failed(struct args *a, const struct task *tasks, const struct task *end)
{
    const struct task *failed[SETTLE_MOST];
    size_t n = 0;

    for (const struct task *task = tasks; task != end; task = task->next)
        if (has_failed(task))
            failed[n++] = task;
    if (n == 0)
        return;
    qsort(failed, n, sizeof *failed, compare_failed);
    settle_failed(a, n);
    for (size_t i = 0; i < n; i++)
        settle_token(a, failed[i]->token);
    for (size_t i = 0; i < n;)
        i += settle_alike(a, failed + i, n - i);
}

/* True when a task is to be settled together with `first`. */
static bool goes_with(const struct task *task, const struct task *first)
{
    return !task->written && task->handler == first->handler && is_plain(task) &&
           span_is(task->batch, first->batch);
}

/* Counts the tasks from `first` to `end` whose tokens follow one another; *behind: the task after them. */
static size_t length_of_run(struct task *first, const struct task *end, struct task **behind)
{
    struct task *last = first;
    size_t n = 1;

    for (;
         last->next != end && goes_with(last->next, first) && settle_follows(last->next->token, last->token);
         n++)
        last = last->next;
    *behind = last->next;
    return n;
}

/* Settles the done tasks of the type and batch of `first`, which is the first: runs by their first token. */
static void settle_done_like(struct args *a, struct task *first, const struct task *end)
{
    struct task *task, *behind;
    size_t n, single = 0;

    for (task = first; task != end; task = behind) {
        behind = task->next;
        if (!goes_with(task, first))
            continue;
        n = length_of_run(task, end, &behind);
        if (n < RUN_LEAST) {
            single += n;
            continue;
        }
        settle_run(a, first->handler->type, first->batch, task->token, n);
        for (; task != behind; task = task->next)
            task->written = true;
    }
    if (single > 0)
        settle_done(a, first->handler->type, first->batch, single);
    for (task = first; single > 0 && task != end; task = task->next)
        if (goes_with(task, first)) {
            settle_token(a, task->token);
            task->written = true;
        }
}

static struct settling *settling_of(const struct task *task)
{
    return &task->conditions->partition->settling;
}

void tasks_collect(struct worker *w)
{
    struct task_list ended = {0};
    struct task *task;

    pool_collect(w->pool, &ended);
    w->ended += (uint64_t)ended.count;
    log_gather();
    while ((task = task_list_pop(&ended))) {
        handler_hear_end(task);
        outcome_decide(task);
        task_finished(task);
    }
    log_gathered();
}

/* Does the end of a task let others start: is a job in flight less, or are slots given back? */
static bool makes_room(const struct task *task)
{
    bool counted =
        task->key.at + task->key.len < task->token.at + task->token.len; /* gates are named behind its key */

    return counted || (task->slot_us && !was_called(task)) ||
           (task_settles_up(task) && (task->spent_of || task->spent < task->cost));
}

void settling_free(struct partition *p)
{
    task_list_free(&p->settling.finished);
    task_list_free(&p->settling.sent);
    batches_free(&p->settling.batches);
}

void task_leased(struct task *task)
{
    settling_of(task)->here++;
    batches_enter(&settling_of(task)->batches, task);
}

/* True when the task was the last one of its batch here. */
static bool leave(struct task *task)
{
    settling_of(task)->here--;
    return batches_leave(&settling_of(task)->batches, task);
}

/* What is left of a task that has left is settled. */
static void push_finished(struct task *task, bool urgent)
{
    struct settling *s = settling_of(task);

    task_count_end(task);
    s->urgent |= urgent || makes_room(task) || task->end == END_THROTTLED;
    s->soon |= !is_plain(task);
    task_list_push(&s->finished, task);
}

void task_lost(struct task *task)
{
    leave(task);
}

void tasks_drop(struct task_list *tasks)
{
    for (struct task *task = tasks->head; task; task = task->next)
        leave(task);
    task_list_free(tasks);
}

void task_finished_without(struct task *task, struct task *copy)
{
    outcome_decide(copy);
    task_count_start(task);
    copy->counted = true;
    atomic_store(&copy->begun_us, atomic_load(&task->begun_us));
    push_finished(copy, leave(task));
}

void task_finished(struct task *task)
{
    push_finished(task, leave(task));
}

/* ---- All of them */

static void log_stale(int64_t stale)
{
    if (stale > 0)
        log_line(LOG_LEVEL_WARN,
                 "settle: %" PRId64
                 " leases were no longer ours: given to others, settled just before the connection was "
                 "lost, or gone with Redis's data",
                 stale);
}

static struct task *find_settling(const struct partition *p, struct span token)
{
    struct task *task = p->settling.sent.head;

    while (task && !span_is(task->token, token))
        task = task->next;
    return task;
}

/* Each pause is one line, of the job that began it. */
static void log_pauses(const struct partition *p, const struct redisReply *reply)
{
    struct paused paused;

    for (size_t i = 0; settle_paused(reply, i, &paused); i++) {
        const struct task *task = find_settling(p, paused.token);
        char pause[32];

        if (!task)
            continue;
        duration_format((paused.pause_us + MS - 1) / MS * MS, pause);
        task_log(LOG_LEVEL_INFO, task, "throttled, %" PRId64 " in a row: a pause of %s%s%.*s%s%s",
                 paused.times, pause, task->key.len > 0 ? " for key " : "", (int)task->key.len, task->key.at,
                 task->reason ? ": " : "", task->reason ? task->reason : "");
    }
}

void settling_again(struct partition *p)
{
    task_list_append(&p->settling.sent, &p->settling.finished);
    task_list_append(&p->settling.finished, &p->settling.sent);
}

void settling_done(struct partition *p)
{
    task_list_free(&p->settling.sent);
}

static void on_settled_alone(void *arg, const struct redisReply *reply)
{
    struct task *task = arg;
    struct partition *p = task->conditions->partition;
    struct error e;
    int64_t stale;
    int rc = reply ? settle_reply(reply, &stale, &e) : WEIR_EUNREACHABLE;

    if (rc == 0)
        log_pauses(p, reply);
    task_list_remove(&p->settling.sent, task);
    if (rc == 0) {
        log_stale(stale);
        task_free(task);
    } else {
        if (reply)
            request_refused(p, &e);
        task_list_push(&p->settling.finished, task);
    }
    request_answered(p);
}

/* Writes a settle of the tasks from `first` to `end`. */
static void write_settle(struct partition *p, struct args *a, struct task *first, const struct task *end)
{
    struct task *task;

    settle_request(a, p->prefix, -1, p->session.id);
    for (task = first; task != end; task = task->next)
        if (task_settles_up(task))
            task_settle_cost(task, a);
    for (task = first; task != end; task = task->next)
        if (is_plain(task) && !task->written)
            settle_done_like(a, task, end);
    for (task = first; task != end; task = task->next)
        settle_one(a, task);
    settle_all_failed(a, first, end);
}

static void settle_alone(struct partition *p, struct task *task)
{
    struct args a = {0};

    task->written = false;
    write_settle(p, &a, task, task->next);
    request_send_with(p, &a, on_settled_alone, task);
}

/* One job whose keys are somebody else's, say, holds back no other: each is sent alone. */
static void on_settle_refused(struct partition *p, const struct error *e)
{
    if (p->settling.sent.count == 1 || e->status == WEIR_EREFUSED || turn_is_unregistered(e)) {
        request_refused(p, e);
        settling_again(p);
        return;
    }
    for (struct task *task = p->settling.sent.head; task; task = task->next)
        settle_alone(p, task);
}

void settling_hear(struct partition *p, const struct redisReply *reply)
{
    struct error e;
    int64_t stale;

    if (!reply) {
        settling_again(p); /* nobody knows whether it was settled */
    } else if (settle_reply(reply, &stale, &e) != 0) {
        on_settle_refused(p, &e);
    } else {
        log_stale(stale);
        log_pauses(p, reply);
        settling_done(p);
    }
}

static void on_settled(void *arg, const struct redisReply *reply)
{
    settling_hear(arg, reply);
    request_answered(arg);
}

/* True when the task waits in its queue again, once it is settled. */
static bool goes_back(const struct task *task)
{
    return task->end == END_BACK || task->end == END_INTERRUPTED || task->end == END_THROTTLED;
}

/* What this end costs Redis beyond that of a job that is simply done, in units of 2 to 20 us. A reason of its own, of 1 KB, costs most. before: what
 * is settled before it; NULL: nothing. */
static int units_of(const struct task *task, const struct task *before)
{
    if (has_failed(task))
        return before && has_failed(before) && compare_causes(task, before) == 0 ? 1 : 4;
    return is_plain(task) ? 2 * (makes_room(task) || task_settles_up(task)) : 4;
}

/* Takes what has ended, as much as goes into one settle. false: nothing has. */
static bool begin_settling(struct partition *p)
{
    const struct task *before = NULL;
    size_t bytes = 0;
    int costly = 0;

    while (p->settling.finished.head && p->settling.sent.count < SETTLE_MOST && costly < COSTLY_MOST) {
        struct task *task = p->settling.finished.head;
        size_t moved = is_plain(task) ? 0 : task->body.len + (task->result ? strlen(task->result) : 0);

        if (moved > 0 && bytes > 0 && bytes + moved > COSTLY_BYTES)
            break;
        task_list_pop(&p->settling.finished);
        task->written = false;
        if (atomic_load(&task->asked) == ASKED_LOST) {
            task_free(task);
        } else {
            task_list_push(&p->settling.sent, task);
            if (p->mind.wide && goes_back(task))
                wide_give_back(p->mind.wide, task->token);
            costly += units_of(task, before);
            bytes += moved;
            before = task;
        }
    }
    p->settling.urgent &= p->settling.finished.head != NULL;
    p->settling.soon &= p->settling.finished.head != NULL;
    return p->settling.sent.head != NULL;
}

bool settling_write(struct partition *p, struct args *a)
{
    if (!begin_settling(p))
        return false;
    write_settle(p, a, p->settling.sent.head, NULL);
    return true;
}

void settling_send(struct partition *p, struct args *a)
{
    if (settling_write(p, a))
        request_send(p, a, on_settled);
}

/* True when there is no more to say of the task than that it is done. */
static bool goes_along(const struct task *task, const struct handler *handler)
{
    return is_plain(task) && task->handler == handler && task->batch.len == 0 && !task_settles_up(task) &&
           !makes_room(task) && atomic_load(&task->asked) != ASKED_LOST;
}

bool settling_may_go_along(const struct partition *p)
{
    const struct task_list *finished = &p->settling.finished;

    if (!finished->head || finished->count > ALONG_MOST || p->settling.sent.head)
        return false;
    for (const struct task *task = finished->head; task; task = task->next)
        if (!goes_along(task, finished->head->handler))
            return false;
    return true;
}

void settling_go_along(struct partition *p, struct claim_call *call, struct span tokens[ALONG_MOST])
{
    begin_settling(p);
    call->done_type = p->settling.sent.head->handler->type;
    for (const struct task *task = p->settling.sent.head; task; task = task->next)
        tokens[call->done_count++] = task->token;
    call->done = tokens;
}

void tasks_give_back(struct task_list *tasks)
{
    struct task *task;

    while ((task = task_list_pop(tasks))) {
        task_finish(task, END_BACK, 0, NULL);
        task_finished(task);
        partition_wake(task->conditions->partition);
    }
}

bool settling_is_idle(const struct partition *p)
{
    return p->settling.here == 0 && !p->settling.finished.head && !p->settling.sent.head &&
           p->mind.claims.beside == 0;
}

bool worker_is_idle(const struct worker *w)
{
    for (int i = 0; i < w->partition_count; i++)
        if (!settling_is_idle(w->partitions[i]))
            return false;
    return true;
}
