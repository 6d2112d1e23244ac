#include "queue/inspect/why.h"

#include <stdio.h>
#include <string.h>

#include "core/client/client.h"
#include "core/client/reply.h"
#include "core/script/script.h"
#include "queue/inspect/status.h"

/* A look at one job that waits. */
struct look {
    struct weir *w;
    int64_t now_us; /* as it was given */
    struct why *out;
    struct limits limits;
    char lane[PLACE_SIZE]; /* its lane, where it is or will be */
    int64_t lane_length;
    int64_t before;                   /* lanes of other keys that have their turn before its own */
    bool elsewhere;                   /* other queues have jobs that may be of its type */
    bool keyed;                       /* it has keyed gates */
    struct gate gates[WHY_GATES_MAX]; /* as they are now, those of its key too */
    size_t gate_count;
};

/* The jobs of its type before it. */
struct line {
    int64_t jobs, slots, least, most; /* least, most: slots of the cheapest and the dearest */
};

/* Sends a and frees it; *reply is the caller's. */
static int call(struct look *look, struct args *a, struct redisReply **reply)
{
    int status = client_call(look->w, a, reply, NULL);

    args_free(a);
    return status;
}

/* ---- Its gates */

static const char *text_of(const struct redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? r->str : "";
}

static int64_t opening(int64_t us)
{
    return us < 0 ? GATE_NEVER : us;
}

/* For the forecast. A state that cannot be read counts as never used. */
static void add_gate(struct look *look, const struct rule *rule, const char *state)
{
    struct gate *g = &look->gates[look->gate_count++];
    struct error ignored;

    gate_init(g, rule);
    (void)!gate_read(g, state, look->out->now_us, &ignored);
}

/* row: limit, index, state, opens, paused until, held until. */
static void read_gate(struct look *look, const struct redisReply *row)
{
    struct why_gate *g = &look->out->gates[look->out->gate_count];
    int64_t index = reply_int(row->element[1], -2), opens_us = reply_int(row->element[3], -2);
    const struct limit *limit;

    *g = (struct why_gate){.kind = index == -1 ? WHY_PAUSE : WHY_UNREADABLE, .index = (int)index};
    snprintf(g->limit, sizeof g->limit, "%s", text_of(row->element[0]));
    g->opens_us = opening(opens_us);
    g->pause_until_us = reply_int(row->element[4], 0);
    g->held_until_us = reply_int(row->element[5], 0);
    look->out->gate_count++;
    limit = limits_find(&look->limits, g->limit);
    if (index < 0 || !limit || !limit->readable || index >= (int64_t)limit->set.count)
        return;
    g->kind = WHY_GATE;
    g->rule = limit->set.at[index];
    g->unfit = opens_us == -2;
    look->keyed |= *g->rule.by != '\0';
    add_gate(look, &g->rule, text_of(row->element[2]));
}

/* The one that opens last; of those that nobody knows of the first. */
static int find_holder(const struct why *why)
{
    int64_t last_us = why->now_us;
    int holder = -1;

    for (size_t i = 0; i < why->gate_count; i++)
        if (why->gates[i].opens_us > last_us) {
            last_us = why->gates[i].opens_us;
            holder = (int)i;
        }
    return holder;
}

static int read_why(struct look *look, const struct redisReply *r)
{
    struct why *why = look->out;
    const struct redisReply *gates;
    const int64_t in_lane = why->job.state == JOB_PARKED;

    if (reply_array(r, 11, "why", &look->w->error) < 0)
        return look->w->error.status;
    why->now_us = reply_int(r->element[0], 0);
    snprintf(look->lane, sizeof look->lane, "%s", text_of(r->element[2]));
    look->lane_length = reply_int(r->element[3], 0);
    why->cost = reply_int(r->element[4], 1);
    why->job.held = reply_int(r->element[5], 0) != 0;
    why->served = reply_int(r->element[6], 0) != 0;
    look->elsewhere = reply_int(r->element[7], 0) != 0;
    why->turns = in_lane ? reply_int(r->element[8], -1) : -1;
    look->before = reply_int(r->element[9], 0);
    gates = r->element[10];
    for (size_t i = 0; gates->type == REDIS_REPLY_ARRAY && i < gates->elements; i++)
        if (gates->element[i]->elements >= 6 && why->gate_count < WHY_GATES_MAX)
            read_gate(look, gates->element[i]);
    if (look->keyed)
        snprintf(why->job.key, sizeof why->job.key, "%s", text_of(r->element[1]));
    why->limited = why->gate_count > 0;
    why->holder = find_holder(why);
    return 0;
}

static int ask_why(struct look *look)
{
    const struct found_job *job = &look->out->job;
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "why", look->w->prefix, look->now_us);
    args_add(&a, job->place);
    args_add(&a, job->type);
    args_add_bytes(&a, job->body.at, job->body.len);
    status = call(look, &a, &reply);
    if (status == 0)
        status = read_why(look, reply);
    if (reply)
        freeReplyObject(reply);
    return status;
}

static int ask_limits(struct look *look)
{
    int status = limits_ask(look->w, look->now_us, "", &look->limits);

    return status == 0 ? status_learn(look->w, look->now_us, &look->limits) : status;
}

/* ---- The jobs before it */

#define AHEAD_MOST 1000 /* entries asked for at once; fewer are looked at where they are large */

static int read_ahead(struct look *look, const struct redisReply *r, struct line *line, int64_t *looked_at)
{
    int64_t jobs, least, most;

    if (reply_array(r, 5, "ahead", &look->w->error) < 0)
        return look->w->error.status;
    jobs = reply_int(r->element[0], 0);
    least = reply_int(r->element[2], 0);
    most = reply_int(r->element[3], 0);
    *looked_at = reply_int(r->element[4], 0);
    if (jobs == 0)
        return 0;
    line->least = line->jobs == 0 || least < line->least ? least : line->least;
    line->most = most > line->most ? most : line->most;
    line->jobs += jobs;
    line->slots += reply_int(r->element[1], 0);
    return 0;
}

/* Counts those of its type among the first n of a list. */
static int count_ahead(struct look *look, const char *place, int64_t n, struct line *line)
{
    int64_t looked_at = 1;
    int status = 0;

    for (int64_t first = 0; status == 0 && first < n && looked_at > 0; first += looked_at) {
        int64_t last = first + AHEAD_MOST < n ? first + AHEAD_MOST : n;
        struct redisReply *reply = NULL;
        struct args a;

        args_init(&a);
        script_begin(&a, "ahead", look->w->prefix, look->now_us);
        args_add(&a, place);
        args_add_int(&a, first);
        args_add_int(&a, last - 1);
        args_add(&a, look->out->job.type);
        status = call(look, &a, &reply);
        if (status == 0)
            status = read_ahead(look, reply, line, &looked_at);
        if (reply)
            freeReplyObject(reply);
    }
    return status;
}

/* Those of its lane, and where its type has no keys those of the queue before it. */
static int count_line(struct look *look, struct line *line)
{
    const struct found_job *job = &look->out->job;
    bool waits = job->state == JOB_WAITING;
    int status = count_ahead(look, look->lane, waits ? look->lane_length : job->before, line);

    if (status == 0 && waits && !look->keyed)
        status = count_ahead(look, job->place, job->before, line);
    look->out->ahead = line->jobs;
    return status;
}

/* ---- When it starts */

/* Its type as Redis has it; one that no worker has met yet has the limit of its own name at most. */
static struct limit_type *type_of(struct look *look, struct limit_type *unmet)
{
    struct limit_type *type = limits_type(&look->limits, look->out->job.type);

    if (type)
        return type;
    *unmet = (struct limit_type){.cost = 1, .limits = &look->out->gates[0].limit};
    snprintf(unmet->name, sizeof unmet->name, "%s", look->out->job.type);
    unmet->limit_count = look->out->gate_count > 0;
    return unmet;
}

/* Is a gate in the way that does not open by time: must others end before so many jobs have started, or can
 * they never? */
static bool needs_an_end(const struct look *look, int64_t jobs)
{
    const struct why *why = look->out;

    for (size_t i = 0; i < why->gate_count; i++)
        if (why->gates[i].opens_us == GATE_NEVER)
            return true;
    for (size_t i = 0; i < look->gate_count; i++)
        if (look->gates[i].rule.algorithm == ALGORITHM_CONCURRENCY &&
            gate_nth_start(&look->gates[i], why->now_us, jobs, 1) == GATE_NEVER)
            return true;
    return false;
}

/* When the n-th job of that cost starts, by the rates of its key too. */
static void pass_keys(struct look *look, int64_t n, int64_t cost)
{
    struct why *why = look->out;

    for (size_t i = 0; i < look->gate_count; i++) {
        const struct gate *g = &look->gates[i];
        int64_t at_us = 0;

        if (*g->rule.by && g->rule.algorithm != ALGORITHM_CONCURRENCY)
            at_us = gate_nth_start(g, why->now_us, n, cost);
        if (at_us > why->start_us)
            why->start_us = at_us;
    }
}

/* It is the last of n jobs of its key that each cost so many slots. At the gates for all keys one job at
 * least of each lane before its own comes first too. */
static int foretell(struct look *look, int64_t n, int64_t cost)
{
    struct why *why = look->out;
    struct limit_type unmet, *type = type_of(look, &unmet);
    int64_t all = n + (look->keyed ? look->before : 0);
    struct forecast forecast;

    type->parked = type->parked < all ? type->parked : all;
    type->waiting = all - type->parked;
    type->cost = cost;
    type->held = false;
    if (forecast_type(&look->limits, type, NULL, &forecast, &look->w->error) < 0)
        return look->w->error.status;
    why->because |= forecast.because;
    why->start_us = forecast.last_us == GATE_NEVER ? why->now_us : forecast.last_us;
    pass_keys(look, n, cost);
    if (why->start_us <= why->now_us && needs_an_end(look, why->ahead + 1))
        why->start_us = GATE_NEVER;
    return 0;
}

static int look_ahead(struct look *look)
{
    struct why *why = look->out;
    struct line line = {0};
    struct limit_type unmet;
    bool equal;
    int status = ask_limits(look);

    if (status == 0)
        status = ask_why(look);
    if (status != 0 || why->job.held || !why->limited)
        return status;
    status = count_line(look, &line);
    if (status != 0)
        return status;
    equal = (line.jobs == 0 || (line.least == why->cost && line.most == why->cost)) &&
            (look->before == 0 || !type_of(look, &unmet)->own_costs);
    why->because = (look->keyed ? LATER_KEYS : 0u) | (look->elsewhere ? LATER_OTHERS : 0u) |
                   (equal ? 0u : LATER_COSTS) | (why->served ? 0u : LATER_NO_WORKER);
    if (equal)
        return foretell(look, line.jobs + 1, why->cost);
    return foretell(look, line.slots + why->cost, 1); /* slot by slot: not later than job by job */
}

/* It does not start before somebody resumes its queue or batch, or not at all. */
static bool is_halted(const struct found_job *job)
{
    return *job->wrong || job->queue_paused_us || job->batch_paused_us || job->batch_cancelled_us ||
           job->cancelled_us;
}

int why_read(struct weir *w, int64_t now_us, const char *id, struct why *out)
{
    struct look look = {.w = w, .now_us = now_us, .out = out};
    int status;

    *out = (struct why){.holder = -1, .start_us = GATE_NEVER};
    status = find_job(w, now_us, id, &out->job);
    out->now_us = out->job.now_us;
    if (status == 0 && (out->job.state == JOB_WAITING || out->job.state == JOB_PARKED) && *out->job.type)
        status = look_ahead(&look);
    if (is_halted(&out->job)) {
        out->start_us = GATE_NEVER;
        out->because |= LATER_QUEUE_PAUSED;
    }
    for (size_t i = 0; i < look.gate_count; i++)
        gate_free(&look.gates[i]);
    limits_free(&look.limits);
    return status;
}

void why_free(struct why *why)
{
    found_job_free(&why->job);
}
