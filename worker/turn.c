/* One turn is one round trip: what has ended is settled, what is due is promoted, a heartbeat, and a claim
 * for the executors that are free, all written at once. next_look() says when the next one is; one timer
 * follows it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/clock.h"
#include "core/log.h"
#include "worker/worker.h"

#define MS 1000LL
#define NEVER INT64_MAX
/* Slots are granted up to 5 ms ahead: looking half of that before a gate opens leaves half for being late,
 * and at high rates makes one turn of many slots. */
#define LEAD_US (2500LL)
#define SETTLE_DELAY_US (10 * MS) /* what has ended waits that long for a turn that is due anyway */
#define SETTLE_MOST 2000          /* jobs in one settle */
#define SETTLE_SOON 500           /* so many do not wait */
#define HUNGRY_US                                                                                            \
    (MS / 2) /* with more to take than executors: how long to wait for half of them to be free */
#define POLL_DUTY_US (1000 * MS) /* hints may be lost: the worker on duty looks at least that often, */
#define POLL_US (1500 * MS)      /* the others about that often: they take over from one that died */
#define DRAINED_US (50 * MS)
#define PAUSE_US (1000 * MS) /* after an error answer */
#define PROMOTE_MOST 200
#define PREFETCH_S                                                                                           \
    0.008 /* jobs without a limit are leased for that long in advance at the rate they end here */
#define PREFETCH_MOST 1000        /* two budgets of a claim: one runs while the next is under way */
#define LEASE_MOST 500            /* in one claim: its budget */
#define OFFSET_US (2000 * MS)     /* how long the quickest answer tells of Redis's clock */
#define OFFSET_STEP_US (100 * MS) /* no answer takes that long more than another */
#define STUCK_US (250 * MS)       /* prefetched jobs that no executor got to in that time are given back */
#define LOOK_BYTES (2 * 1024 * 1024)
#define INTERRUPTED_MOST 3
#define KEPT_MOST 1000

static struct names queue_names(struct weir_worker *w)
{
    return (struct names){w->queues, w->queue_count};
}

static struct names type_names(const struct weir_worker *w)
{
    return (struct names){w->handlers.types, w->handlers.count};
}

static bool takes_jobs(struct weir_worker *w)
{
    return w->adopted && !w->stopping_us && !atomic_load(&w->quiet) && w->handlers.count > 0;
}

/* ---- How much there is room for */

struct room {
    int free, prefetch;
    bool worth_it; /* enough for a turn of its own when there is more to take */
};

static struct room room_of(struct weir_worker *w)
{
    struct pool_load load = pool_load(w->pool);
    int target = (int)fmin(w->rate * PREFETCH_S, PREFETCH_MOST);
    int taken = load.running + load.queued;
    int excess = taken > w->executors ? taken - w->executors : 0;
    struct room room = {.free = taken < w->executors ? w->executors - taken : 0,
                        .prefetch = target > excess ? (int)fmin(target - excess, LEASE_MOST) : 0};

    room.worth_it = room.free >= (w->executors + 1) / 2 || (target > 0 && excess <= target / 2);
    return room;
}

bool worker_has_room(struct weir_worker *w)
{
    return takes_jobs(w) && room_of(w).free > 0;
}

static void measure_rate(struct weir_worker *w, int64_t now)
{
    double seconds = (double)(now - w->rate_us) / 1e6;

    if (seconds < 0.0002)
        return;
    w->rate += 0.3 * ((double)w->ended / seconds - w->rate);
    w->rate_us = now;
    w->ended = 0;
}

void worker_give_back(struct weir_worker *w, struct task_list *tasks)
{
    for (struct task *task = tasks->head; task; task = task->next)
        task_finish(task, END_BACK, 0, NULL);
    task_list_append(&w->finished, tasks);
}

/* Prefetched jobs must not sit here while those before them take long. */
static void give_back_stuck(struct weir_worker *w, int64_t now)
{
    struct pool_load load = pool_load(w->pool);
    struct task_list stuck;

    if (load.queued == 0 || load.begun != w->begun) {
        w->begun = load.begun;
        w->stuck_us = now;
        return;
    }
    if (now - w->stuck_us < STUCK_US)
        return;
    task_list_init(&stuck);
    pool_withdraw(w->pool, &stuck, false);
    worker_give_back(w, &stuck);
    w->rate = 0;
    w->stuck_us = now;
}

/* ---- Settling */

static double random_unit(void)
{
    uint32_t r = 0;

    if (getrandom(&r, sizeof r, GRND_NONBLOCK) < 0)
        r = (uint32_t)clock_mono_us();
    return r / 4294967296.0;
}

/* After the n-th failed attempt: 15 s + (n - 1)^4 s and up to 10 n s more at random, so that what failed
 * together does not come back together. 25 attempts take about 17 days. */
static int64_t retry_delay_us(int n)
{
    return (int64_t)((15 + pow(n - 1, 4) + random_unit() * 10 * n) * 1e6);
}

/* What the handler asked for, ten years at most. */
static int64_t asked_delay_us(const struct task *task)
{
    return (int64_t)(fmin(task->after_s, 3650 * 86400.0) * 1e6);
}

/* 1 s, doubled each time up to 5 min. */
static int64_t throttled_delay_us(int n)
{
    return (int64_t)(fmin(pow(2, n), 300) * 1e6);
}

static void tell(const struct task *task, const struct job_view *view, const char *what)
{
    log_line(LOG_LEVEL_INFO, "%s %.*s: attempt %d: %s%s%s", task->handler->type, (int)view->id.len,
             view->id.at ? view->id.at : "", task->attempts + 1, what, task->reason ? ": " : "",
             task->reason ? task->reason : "");
}

/* A failed job: again, or not any more. */
static void settle_failed(struct args *a, struct task *task)
{
    struct job_view view = {.max_attempts = JOB_MAX_ATTEMPTS};
    struct error e;
    char what[64];
    int64_t delay_us;

    if (job_read(task->body.at, task->body.len, &view, &e) != 0 || task->end == END_DEAD) {
        tell(task, &view, "dead");
        settle_end(a, SETTLE_DEAD, task->token, 0, task->reason ? task->reason : "failed for good");
        return;
    }
    if (task->attempts + 1 >= view.max_attempts) {
        char reason[1200];

        snprintf(reason, sizeof reason, "failed %d times: %s", task->attempts + 1,
                 task->reason ? task->reason : "");
        tell(task, &view, "dead, its last attempt");
        settle_end(a, SETTLE_DEAD, task->token, 0, reason);
        return;
    }
    delay_us = task->after_s >= 0 ? asked_delay_us(task) : retry_delay_us(task->attempts + 1);
    snprintf(what, sizeof what, "failed, again in %.1f s", (double)delay_us / 1e6);
    tell(task, &view, what);
    settle_end(a, SETTLE_RETRY, task->token, delay_us, NULL);
}

static void settle_one(struct args *a, struct task *task)
{
    int64_t delay_us;

    switch (task->end) {
    case END_DONE: /* with the others of its type */
        break;
    case END_BACK:
        settle_end(a, SETTLE_BACK, task->token, 0, NULL);
        break;
    case END_THROTTLED:
        delay_us = task->after_s >= 0 ? asked_delay_us(task) : throttled_delay_us(task->throttled);
        settle_end(a, SETTLE_THROTTLED, task->token, delay_us, NULL);
        break;
    case END_RETRY:
    case END_DEAD:
        settle_failed(a, task);
        break;
    }
}

static void settle_done_of(struct args *a, const struct task_list *list, const struct handler *handler)
{
    size_t n = 0;

    for (const struct task *task = list->head; task; task = task->next)
        n += task->handler == handler && task->end == END_DONE;
    if (n == 0)
        return;
    settle_done(a, handler->type, n);
    for (const struct task *task = list->head; task; task = task->next)
        if (task->handler == handler && task->end == END_DONE)
            settle_token(a, task->token);
}

/* Adds what has ended as one settle call in a; moves it to settling. False: nothing. */
static bool add_settle(struct weir_worker *w, struct args *a)
{
    struct task *task;

    while (w->settling.count < SETTLE_MOST && (task = task_list_pop(&w->finished))) {
        if (task->lost)
            task_free(task);
        else
            task_list_push(&w->settling, task);
    }
    if (!w->settling.head)
        return false;
    settle_request(a, w->prefix, -1, w->id);
    for (int i = 0; i < w->handlers.count; i++)
        settle_done_of(a, &w->settling, &w->handlers.at[i]);
    for (task = w->settling.head; task; task = task->next)
        settle_one(a, task);
    return true;
}

/* ---- Answers */

static void answered(struct weir_worker *w)
{
    if (--w->awaited == 0)
        worker_look(w);
}

void worker_refused(struct weir_worker *w, const struct error *e)
{
    if (turn_is_unregistered(e)) {
        w->adopted = false; /* reaped, or Redis lost its memory: begin anew under another id */
        return;
    }
    if (strcmp(w->last_error, e->text) != 0) {
        snprintf(w->last_error, sizeof w->last_error, "%.255s", e->text);
        log_line(LOG_LEVEL_ERROR, "%s; trying again every second", e->text);
    }
    w->pause_until_us =
        clock_mono_us() + (int64_t)fmin(PAUSE_US, (double)w->lease_us / 8); /* heartbeats wait too */
}

static void on_settled(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct task *task;
    struct error e;
    int64_t stale;

    if (!reply) {
        /* Nobody knows whether it was settled: again, with the same tokens; a token settles once. */
        task_list_append(&w->settling, &w->finished);
        task_list_append(&w->finished, &w->settling);
    } else if (settle_reply(reply, &stale, &e) != 0) {
        worker_refused(w, &e);
        task_list_append(&w->settling, &w->finished);
        task_list_append(&w->finished, &w->settling);
    } else {
        if (stale > 0)
            log_line(LOG_LEVEL_WARN,
                     "settle: %" PRId64
                     " leases were no longer ours: given to others, or settled just before the "
                     "connection was lost",
                     stale);
        while ((task = task_list_pop(&w->settling)))
            task_free(task);
    }
    answered(w);
}

static void on_promoted(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct error e;
    int64_t moved;

    if (reply && promote_reply(reply, &moved, &e) != 0)
        worker_refused(w, &e);
    answered(w);
}

static void on_reaped(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    int64_t taken, workers;
    struct error e;

    if (reply && reap_reply(reply, &taken, &workers, &e) != 0)
        worker_refused(w, &e);
    else if (reply && workers > 0)
        log_line(LOG_LEVEL_WARN,
                 "reap: %" PRId64 " workers were silent for a lease; %" PRId64 " jobs taken back", workers,
                 taken);
    answered(w);
}

static void on_drained(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct drained d;
    struct error e;

    if (reply && drained_reply(reply, &d, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply && d.waiting + d.parked + d.running + d.due == 0) {
        if (!w->finished.head && !w->more)
            worker_leave(w);
    } else if (reply && clock_mono_us() - w->drained_us > 5000 * MS) {
        log_line(LOG_LEVEL_INFO,
                 "draining: %" PRId64 " waiting, %" PRId64 " parked, %" PRId64 " running, %" PRId64 " due",
                 d.waiting, d.parked, d.running, d.due);
        w->drained_us = clock_mono_us();
    }
    answered(w);
}

/* The text as a string that lives as long as the worker; *added (may be NULL) tells whether it is new. NULL:
 * out of memory, or too many: names come from outside. */
static const char *keep_text(struct weir_worker *w, struct span text, bool *added)
{
    struct kept_text *kept;

    if (added)
        *added = false;
    for (kept = w->kept; kept; kept = kept->next)
        if (strlen(kept->text) == text.len && memcmp(kept->text, text.at, text.len) == 0)
            return kept->text;
    if (w->kept_count == KEPT_MOST || !(kept = malloc(sizeof *kept + text.len + 1)))
        return NULL;
    kept->next = w->kept;
    memcpy(kept->text, text.at, text.len);
    kept->text[text.len] = '\0';
    w->kept = kept;
    w->kept_count++;
    if (added)
        *added = true;
    return kept->text;
}

static bool same(struct span a, struct span b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* What to add to a time of Redis's clock for our monotonic one. How long an answer was on its way is not
 * known; the quickest of the last seconds was hardly any time. Longer than that the two clocks could drift
 * apart. */
static int64_t clock_offset(struct weir_worker *w, int64_t redis_us, int64_t now)
{
    int64_t offset_us = now - redis_us;

    if (!w->offset_since_us || offset_us > w->offset_us + OFFSET_STEP_US) /* Redis's clock was set back */
        w->offset_us = w->offset_before_us = offset_us;
    if (now - w->offset_since_us > OFFSET_US) {
        w->offset_before_us = w->offset_us;
        w->offset_us = offset_us;
        w->offset_since_us = now;
    }
    if (offset_us < w->offset_us)
        w->offset_us = offset_us;
    return w->offset_us < w->offset_before_us ? w->offset_us : w->offset_before_us;
}

/* The tasks of a claim, in its order. */
static int make_tasks(struct weir_worker *w, const struct claim *claim, int64_t offset_us,
                      struct task_list *tasks)
{
    const struct handler *handler = NULL;
    const char *rule = NULL;
    struct span type = {"", 0};

    for (size_t i = 0; i < claim->lease_count; i++) {
        const struct lease *lease = &claim->leases[i];
        struct task *task = task_new(lease);

        if (!task)
            return -1;
        if (!same(lease->type, type)) {
            type = lease->type;
            handler = handlers_find(&w->handlers, type);
            rule = NULL;
            for (size_t r = 0; w->trace && r + 1 < claim->rule_count; r += 2)
                if (same(claim->rules[r], type))
                    rule = keep_text(w, claim->rules[r + 1], NULL);
        }
        task->handler = handler;
        task->rule = rule;
        if (lease->slot_us > claim->now_us)
            task->start_us = lease->slot_us + offset_us;
        w->body_bytes += 0.01 * ((double)lease->body.len - w->body_bytes);
        task_list_push(tasks, task);
    }
    return 0;
}

/* Once for each name. */
static void tell_once(struct weir_worker *w, const struct span *names, size_t count, const char *what)
{
    char text[512];
    bool added;

    for (size_t i = 0; i < count; i++) {
        int len = snprintf(text, sizeof text, what, (int)names[i].len, names[i].at);

        keep_text(w, (struct span){text, (size_t)len}, &added);
        if (added)
            log_line(LOG_LEVEL_WARN, "%s", text);
    }
}

/* A time of Redis's clock on our monotonic one; 0: never. */
static int64_t local_time(int64_t redis_us, int64_t offset_us)
{
    return redis_us <= 0 ? 0 : redis_us + offset_us;
}

static void on_claimed(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    int64_t offset_us, now = clock_mono_us();
    struct task_list tasks;
    struct error e;

    task_list_init(&tasks);
    if (!reply) {
        answered(w); /* what it leased under this id is handed back when the next id is adopted */
        return;
    }
    if (claim_reply(reply, &w->claim, &e) != 0) {
        worker_refused(w, &e);
        answered(w);
        return;
    }
    offset_us = clock_offset(w, w->claim.now_us, now);
    if (make_tasks(w, &w->claim, offset_us, &tasks) != 0)
        link_drop(w->link, "out of memory"); /* the next adopt hands back what did not fit */
    w->last_error[0] = '\0';
    w->more = w->claim.more;
    w->hungry_us = w->more ? now : 0;
    w->next_us = local_time(w->claim.next_us, offset_us);
    w->later_us = local_time(w->claim.later_us, offset_us);
    w->duty_until_redis_us = w->claim.duty_until_us;
    w->duty_until_us = local_time(w->claim.duty_until_us, offset_us);
    tell_once(w, w->claim.aside, w->claim.aside_count,
              "jobs of type %.*s wait for a worker that has a handler for it");
    tell_once(w, w->claim.broken, w->claim.broken_count,
              "limit %.*s has a rule that cannot be read: its jobs wait; set it with weir rate set");
    if (w->stopping_us || w->leaving || now - w->looked_us > w->lease_us)
        worker_give_back(w, &tasks); /* on its way out, or back from an absence that cost it its leases */
    else if (tasks.head)
        pool_add(w->pool, &tasks);
    answered(w);
}

/* ---- What goes into a turn */

static void send(struct weir_worker *w, struct args *a, link_reply *on_reply)
{
    w->awaited++;
    link_send(w->link, a, REQUEST_TIMEOUT_S, on_reply, w);
}

/* Queues by weight: at each turn another order, in which a queue comes first as often as its weight says. */
static void shuffle_queues(struct weir_worker *w)
{
    for (int first = 0; first < w->queue_count - 1; first++) {
        int sum = 0, at = first;

        for (int i = first; i < w->queue_count; i++)
            sum += w->weights[i];
        for (double draw = random_unit() * sum; at < w->queue_count - 1 && (draw -= w->weights[at]) >= 0;)
            at++;
        const char *name = w->queues[at];
        int weight = w->weights[at];

        w->queues[at] = w->queues[first];
        w->weights[at] = w->weights[first];
        w->queues[first] = name;
        w->weights[first] = weight;
    }
}

static void add_claim(struct weir_worker *w, struct args *a, struct room room, int64_t now)
{
    int most = (int)fmax(16, fmin(1000, LOOK_BYTES / fmax(64, w->body_bytes)));
    int look = room.free + room.prefetch;
    struct claim_call call = {
        .worker = w->id,
        .group = w->group,
        .turn = ++w->turn,
        .free = room.free,
        .prefetch = room.prefetch,
        .look = look < 16     ? 16
                : look > most ? most
                              : look,
        .duty_until_us = w->duty_until_redis_us,
        .held = w->look_held,
        .unknown_dead = w->unknown_dead,
        .mark = now - w->mark_us >= 1000 * MS,
    };

    if (w->weighted)
        shuffle_queues(w);
    call.queues = queue_names(w);
    call.types = type_names(w);
    if (call.mark)
        w->mark_us = now;
    w->looked_us = now;
    w->look_now = w->look_held = w->more = false;
    claim_request(a, w->prefix, -1, &call);
}

/* Is it time to claim: told to, more to take, a gate about to open, or too long since the last look? */
static int64_t claim_time(struct weir_worker *w, struct room room)
{
    bool on_duty = w->duty_until_us != 0;
    int64_t at = w->looked_us + (on_duty ? POLL_DUTY_US : POLL_US);

    if (!takes_jobs(w) || room.free + room.prefetch < 1)
        return NEVER;
    if (w->look_now)
        return 0;
    if (w->more && (room.worth_it || room.free > 0))
        return room.worth_it ? 0 : w->hungry_us + HUNGRY_US;
    if (on_duty && w->next_us && w->next_us - LEAD_US < at)
        at = w->next_us - LEAD_US;
    if (on_duty && w->later_us && w->later_us < at)
        at = w->later_us;
    return at;
}

static int64_t settle_time(const struct weir_worker *w)
{
    if (!w->finished.head)
        return NEVER;
    if (w->finished.count >= SETTLE_SOON || w->stopping_us)
        return 0;
    return w->finished.head->finished_us + SETTLE_DELAY_US;
}

bool worker_is_idle(struct weir_worker *w)
{
    struct pool_load load = pool_load(w->pool);

    return load.running + load.queued == 0 && !w->finished.head && !w->settling.head;
}

/* A draining worker that has nothing to do asks whether there is anything left. */
static int64_t drained_time(struct weir_worker *w)
{
    return w->drain && takes_jobs(w) && !w->more && worker_is_idle(w) ? w->looked_us + DRAINED_US : NEVER;
}

/* When must the worker look again? */
static int64_t next_look(struct weir_worker *w, struct room room)
{
    int64_t times[] = {claim_time(w, room), settle_time(w), w->tick_us, drained_time(w)};
    int64_t at = NEVER;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] < at)
            at = times[i];
    return at > w->pause_until_us ? at : w->pause_until_us;
}

static void begin_turn(struct weir_worker *w, struct room room, int64_t now)
{
    struct args a;

    args_init(&a);
    w->awaited++; /* until all is sent */
    if (add_settle(w, &a))
        send(w, &a, on_settled);
    if (w->later_us && w->later_us <= now && takes_jobs(w)) {
        promote_request(&a, w->prefix, -1, PROMOTE_MOST);
        send(w, &a, on_promoted);
    }
    if (w->tick_us <= now) {
        reap_request(&a, w->prefix, -1, w->id, w->lease_us, INTERRUPTED_MOST);
        send(w, &a, on_reaped);
        w->tick_us = now + w->lease_us / 4;
    }
    if (claim_time(w, room) <= now || (drained_time(w) <= now && room.free > 0)) {
        bool drained = drained_time(w) <= now;

        add_claim(w, &a, room, now);
        send(w, &a, on_claimed);
        if (drained) {
            drained_request(&a, w->prefix, -1, queue_names(w), type_names(w));
            send(w, &a, on_drained);
        }
    }
    args_free(&a);
    answered(w);
}

static void look_at(struct weir_worker *w, int64_t at, int64_t now)
{
    ev_now_update(w->loop);
    ev_timer_stop(w->loop, &w->timer);
    ev_timer_set(&w->timer, at > now ? (double)(at - now) / 1e6 : 0, 0);
    ev_timer_start(w->loop, &w->timer);
}

void worker_look(struct weir_worker *w)
{
    struct room room;
    int64_t now, at;
    int before = w->finished.count;

    pool_collect(w->pool, &w->finished);
    w->ended += (uint64_t)(w->finished.count - before);
    trace_flush(w->trace);
    if (w->awaited > 0 || !link_is_up(w->link) || w->leaving)
        return;
    now = clock_mono_us();
    if (!w->adopted) {
        if (now < w->pause_until_us)
            look_at(w, w->pause_until_us, now);
        else
            worker_adopt(w);
        return;
    }
    measure_rate(w, now);
    give_back_stuck(w, now);
    if (w->stopping_us && worker_is_idle(w)) {
        worker_leave(w);
        return;
    }
    room = room_of(w);
    at = next_look(w, room);
    if (at <= now) {
        begin_turn(w, room, now);
        return;
    }
    if (takes_jobs(w) && room.free > 0 && !w->more)
        waking_wait(w->waking, w->duty_until_us != 0);
    if (pool_load(w->pool).queued > 0 && at > now + STUCK_US)
        at = now + STUCK_US;
    look_at(w, at, now);
}
