/* Claiming: when a turn asks for jobs, and what the answer to a claim means. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/number.h"
#include "worker/partition/inside.h"

#define LATE_US (50 * MS) /* how long a slot is good, or two round trips */

/* ---- The answer */

/* True when a name is "type/key" of a lease. */
static bool is_key_of(struct span name, const struct lease *lease)
{
    bool has_key = memchr(name.at, '/', name.len) != NULL;

    return has_key && span_is(span_cut(&name, '/'), lease->type) && span_is(name, lease->key);
}

/* Returns the limits of a lease as the answer says them, for the trace: those of its key, else those of its type. */
static struct span limits_of(const struct claim *claim, const struct lease *lease)
{
    struct span found = {"", 0};

    for (size_t i = 0; i + 1 < claim->limit_count; i += 2) {
        if (is_key_of(claim->limits[i], lease))
            return claim->limits[i + 1];
        if (span_is(claim->limits[i], lease->type))
            found = claim->limits[i + 1];
    }
    return found;
}

/* Returns how long a slot is good. A job that begins later would begin among those of later slots. */
static int64_t slot_life(const struct partition *p)
{
    return max_i64(2 * distance_trip(&p->mind.distance), LATE_US);
}

struct cause_run {
    enum record_cause cause;
    long left;
};

/* Reads what let the next lease start from causes such as "Q3A10": a letter, and for how many leases it holds. */
static enum record_cause next_cause(struct span *causes, struct cause_run *run)
{
    while (run->left == 0 && causes->len > 0) {
        char *end;

        run->cause = record_cause_of(*causes->at);
        run->left = strtol(causes->at + 1, &end, 10); /* the reply ends with a NUL */
        causes->len -= (size_t)(end - causes->at);
        causes->at = end;
    }
    run->left -= run->left > 0;
    return run->cause;
}

/* Makes the tasks of a claim, in its order. */
static int make_tasks(struct partition *p, const struct claim *claim, struct task_list *tasks)
{
    struct handler *handler = NULL;
    struct span type = {"", 0}, limits = {"", 0}, causes = claim->causes;
    struct cause_run run = {CAUSE_EXECUTOR, 0};
    int64_t offset_us = distance_offset(&p->mind.distance);
    bool early = false;

    for (size_t i = 0; i < claim->lease_count; i++) {
        const struct lease *lease = &claim->leases[i];
        struct task *task;

        if (!span_is(lease->type, type)) {
            type = lease->type;
            handler = handlers_take(p->worker->handlers, type);
        }
        if (p->conditions.trace)
            limits = limits_of(claim, lease);
        if (!handler || !(task = task_new(lease, handler, &p->conditions, limits)))
            return -1;
        if (lease->slot_us > claim->now_us)
            task->start_us = lease->slot_us + offset_us;
        if (lease->slot_us) {
            task->ahead_us = lease->slot_us > claim->now_us ? lease->slot_us - claim->now_us : 0;
            task->good_us = slot_life(p);
            task->late_us = lease->slot_us + offset_us + task->good_us;
        }
        task->cause = next_cause(&causes, &run);
        task->early = task->ahead_us > p->mind.claims.early_us;
        early |= task->early;
        task_leased(task);
        task_list_push(tasks, task);
    }
    if (early)
        waking_listen(p->waking);
    return 0;
}

/* Each name is logged once, and none of our own types, which only rest. */
void claiming_log_waiting(struct partition *p)
{
    for (size_t i = 0; i < p->answer.held_count; i++)
        if (!handlers_word(p->worker->handlers, p->answer.held[i]))
            log_once(&p->worker->logged, LOG_LEVEL_WARN,
                     "jobs of type %.*s wait for a worker that has a handler for it",
                     (int)p->answer.held[i].len, p->answer.held[i].at);
    for (size_t i = 0; i < p->answer.broken_count; i++)
        log_once(&p->worker->logged, LOG_LEVEL_WARN,
                 "limit %.*s has a rule that cannot be read: its jobs wait; set it with weir rate set",
                 (int)p->answer.broken[i].len, p->answer.broken[i].at);
    for (size_t i = 0; i < p->answer.fault_count; i++)
        request_log_fault(p, p->answer.faults[i]);
}

/* Gives tasks back beyond so many, of those with a slot or of all: the answer came so late that other jobs have got the executors. */
static void give_back_beyond(int executors, bool all, struct task_list *tasks)
{
    struct task_list back = {0};

    for (struct task *task = tasks->head, *next; task; task = next) {
        next = task->next;
        if ((!all && (!task->slot_us || task->early)) || executors-- > 0)
            continue;
        task_list_remove(tasks, task);
        task_list_push(&back, task);
    }
    tasks_give_back(&back);
}

void claiming_take_jobs(struct partition *p, struct task_list *tasks)
{
    *tasks = (struct task_list){0};
    recording_count_claim(p, &p->answer);
    if (make_tasks(p, &p->answer, tasks) != 0)
        link_drop(p->link, "out of memory"); /* the next adopt hands back what did not fit */
}

/* True when jobs may begin: not while the worker leaves, or when it is back from an absence that cost it its leases. */
static bool may_begin(const struct partition *p)
{
    return !p->worker->stop.since_us && !p->leaving && p->session.registered &&
           !lease_is_over(&p->conditions);
}

void claiming_run_jobs(struct partition *p, int executors, bool all, struct task_list *tasks)
{
    if (may_begin(p))
        give_back_beyond(executors, all, tasks);
    else
        tasks_give_back(tasks);
    if (tasks->head)
        pool_add(p->worker->pool, tasks);
}

static void log_alone(const struct claim *claim, struct task *first)
{
    struct error e;

    if (claim->lease_count > 1)
        log_line(LOG_LEVEL_INFO,
                 "%zu jobs run together and nothing beside them: their worker died while they ran",
                 claim->lease_count);
    else if (first && job_read(first->body.at, first->body.len, &first->view, &e) == 0)
        task_log(LOG_LEVEL_INFO, first, "runs alone: its worker died while it ran");
}

static void hear_claim_of_turn(struct partition *p, int executors, int64_t now)
{
    const struct claim *claim = &p->answer;
    bool marked = claim->lease_count > 0 || claim->duty_until_us > p->mind.claims.duty_until_redis_us;
    bool fits = hear_claim(&p->mind, claim, now);
    struct task_list tasks;

    claiming_take_jobs(p, &tasks);
    claiming_log_waiting(p);
    request_accepted(p);
    if (p->mind.alone.runs)
        log_alone(claim, tasks.head);
    if (marked)
        session_seen(p, claim->now_us);
    waking_pause(p->waking, claim->paused, claim->paused_count);
    if (!fits)
        tasks_give_back(&tasks);
    claiming_run_jobs(p, executors, false, &tasks);
    executors_look(p);
    room_adapt(&p->mind, now);
    worker_reserve(p->worker);
    partition_wake(p); /* tasks of the loop can begin */
}

void claiming_refused(struct partition *p, const struct error *e)
{
    request_refused(p, e);
    if (e->status == WEIR_EINTERNAL) /* the claim may have leased jobs, and nobody knows which */
        session_unregister(p);
}

/* Hears the answer to a claim. If it was lost, what the claim leased is handed back when the next id is adopted. */
static void on_claimed(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    int64_t now = clock_mono_us();
    struct error e;
    int executors;

    executors_look(p);
    executors = room_release(&p->mind, now);
    worker_feed(p->worker);
    if (reply && claim_reply(reply, &p->answer, &e) == 0) {
        hear_claim_of_turn(p, executors, now);
    } else {
        hear_no_claim(&p->mind, !reply);
        worker_reserve(p->worker);
        if (reply)
            claiming_refused(p, &e);
    }
    request_answered(p);
}

/* Hears the answer to a claim that settles. */
static void on_turned(void *arg, const struct redisReply *reply)
{
    struct turn_replies replies = turn_replies(reply);

    settling_hear(arg, replies.settle);
    on_claimed(arg, replies.claim);
}

/* ---- The question */

struct names claiming_queues(const struct partition *p)
{
    const struct options *o = &p->worker->options;

    return (struct names){(const char *const *)o->queues, o->wide ? 0 : o->queue_count};
}

/* Lists the words whose handlers rest: jobs of their types may not come now. */
static struct names resting_words(struct partition *p)
{
    const struct handlers *h = p->worker->handlers;
    struct names resting = {h->resting, 0};

    for (int i = 0; p->worker->resting > resting.count && i < h->word_count; i++)
        if (runner_rests(h->words[i]->runner))
            h->resting[resting.count++] = h->words[i]->type;
    return resting;
}

void claiming_pass_duty(struct partition *p)
{
    if (ask_passes(&p->mind))
        partition_wake(p);
}

void claiming_serve_again(struct partition *p)
{
    wide_claim_all(p->mind.wide);
    partition_claim_soon(p, true);
}

void claiming_name_call(struct partition *p, struct claim_call *call)
{
    call->worker = p->session.id;
    call->group = p->adoption.group;
    if (call->queues.count + call->asked.count == 0) /* the mind picks those of a turn */
        call->queues = claiming_queues(p);
    call->digest = p->session.types_digest;
    call->types = resting_words(p);
}

void claiming_ask(struct partition *p, struct args *a, struct plan *plan)
{
    struct claim_call *call = &plan->claim;
    struct span done[ALONG_MOST];

    claiming_name_call(p, call);
    call->unknown_dead = p->worker->options.unknown_dead && call->types.count == 0;
    if (!plan->settle)
        settling_go_along(p, call, done);
    claim_request(a, p->prefix, -1, call);
    request_send(p, a, call->done_count > 0 ? on_turned : on_claimed);
}
