#include "cli/top/order.h"

#include <string.h>

#include "core/client/client.h"
#include "core/duration.h"
#include "queue/inspect/job_act.h"
#include "queue/limits/rate.h"
#include "queue/queues/queues.h"
#include "view/format.h"
#include "view/jobs.h"
#include "view/rate_dry.h"
#include "view/rate_keys.h"
#include "view/workers.h"

#define KEYS_SHOWN 50
#define SAY(result, ...) snprintf((result)->said, sizeof(result)->said, __VA_ARGS__)

/* ---- Queues */

static int halt_queue(struct weir *w, const struct order *o, struct result *r, bool pause)
{
    json_t *before;
    int status = queue_pause(w, o->name, pause, &before);

    SAY(r, "queue %s %s", o->name, pause ? "paused" : "resumed");
    json_decref(before);
    return status;
}

static int pause_queue(struct weir *w, const struct order *o, struct result *r)
{
    return halt_queue(w, o, r, true);
}

static int resume_queue(struct weir *w, const struct order *o, struct result *r)
{
    return halt_queue(w, o, r, false);
}

static int count_queue(struct weir *w, const struct order *o, struct result *r)
{
    struct queue_jobs jobs = {0};
    int status = queue_count(w, -1, o->name, NULL, &jobs);

    r->count = jobs.waiting + jobs.parked;
    return status;
}

static int purge_queue(struct weir *w, const struct order *o, struct result *r)
{
    struct queue_jobs jobs = {0};
    char text[PHRASE_SIZE];
    int status = queue_purge(w, -1, o->name, NULL, o->count, &jobs);

    SAY(r, "queue %s: %s removed", o->name, counted(jobs.waiting + jobs.parked, "job", text));
    return status;
}

/* ---- Limits */

static int pause_limit(struct weir *w, const struct order *o, struct result *r)
{
    struct error why;
    int64_t for_us;

    if (duration_parse(o->text, &for_us, &why) < 0 || for_us < 1)
        return error_set(&w->error, WEIR_EINPUT, "%s: for how long? give 10m, 1h or the like", o->text);
    SAY(r, "limit %s paused for %s", o->name, o->text);
    return rate_pause(w, o->name, NULL, for_us, NULL);
}

static int resume_limit(struct weir *w, const struct order *o, struct result *r)
{
    bool was = false;
    int status = rate_pause(w, o->name, NULL, RATE_RESUME, &was);

    SAY(r, "limit %s %s", o->name, was ? "resumed" : "was not paused");
    return status;
}

static int halt_key(struct weir *w, const struct order *o, struct result *r)
{
    bool pause = o->deed == DEED_PAUSE_KEY, was = false;
    int status;

    if (!*o->text)
        return error_set(&w->error, WEIR_EINPUT, "limit %s: which key? weir rate keys lists the longest",
                         o->name);
    status = rate_pause(w, o->name, o->text, pause ? RATE_ENDLESS : RATE_RESUME, &was);
    SAY(r, "%s/%s: %s", o->name, o->text,
        pause ? "paused until it is resumed"
        : was ? "resumed"
              : "was not paused");
    return status;
}

static int forecast(struct weir *w, const struct order *o, struct result *r)
{
    return view_rate_dry(w, o->name, o->text, &r->doc);
}

static int list_keys(struct weir *w, const struct order *o, struct result *r)
{
    return view_rate_keys(w, o->name, KEYS_SHOWN, NULL, &r->doc, NULL);
}

static int set_limit(struct weir *w, const struct order *o, struct result *r)
{
    struct rate_kept kept;
    char rules[RULE_SET_TEXT_SIZE];
    int status = rate_set(w, o->name, o->text, false, &kept);

    if (status == 0) {
        rule_set_format(&kept.rules, rules);
        SAY(r, "limit %s: %.300s", o->name, rules);
    }
    return status;
}

static int remove_limit(struct weir *w, const struct order *o, struct result *r)
{
    SAY(r, "limit %s removed", o->name);
    return rate_remove(w, o->name, false);
}

/* ---- Workers */

static int order_worker(struct weir *w, const struct order *o, struct result *r, const char *order)
{
    json_t *ordered;
    int status = view_worker_orders(w, o->name, order, &ordered);

    SAY(r, "worker %s: hears it within its next heartbeat: %s", o->name, order);
    json_decref(ordered);
    return status;
}

static int quiet_worker(struct weir *w, const struct order *o, struct result *r)
{
    return order_worker(w, o, r, "quiet");
}

static int stop_worker(struct weir *w, const struct order *o, struct result *r)
{
    return order_worker(w, o, r, "stop");
}

/* ---- Dead jobs of a type */

static int find_dead(struct weir *w, const struct order *o, struct job_search *search)
{
    *search = (struct job_search){.count = 0};
    return job_search_add(search, "type", o->name, &w->error) < 0 ||
                   job_search_add(search, "state", "dead", &w->error) < 0
               ? w->error.status
               : 0;
}

static int count_dead(struct weir *w, const struct order *o, struct result *r)
{
    struct job_search search;

    if (find_dead(w, o, &search) < 0)
        return w->error.status;
    return job_actions_count(w, -1, &search, o->deed == DEED_COUNT_RETRY ? "retry" : "remove", &r->count);
}

static int move_dead(struct weir *w, const struct order *o, struct result *r)
{
    const char *action = o->deed == DEED_RETRY_DEAD ? "retry" : "remove";
    struct job_bounds most = {.looked_at = INT64_MAX, .jobs = o->count};
    struct job_search search;
    char text[PHRASE_SIZE];
    json_t *doc = NULL;
    int status = find_dead(w, o, &search);

    if (status == 0)
        status = view_job_actions(w, &search, action, NULL, &most, &doc);
    SAY(r, "%s: %s %s", o->name, counted(answer_int(doc, "jobs"), "dead job", text),
        o->deed == DEED_RETRY_DEAD ? "retried" : "removed");
    json_decref(doc);
    return status;
}

/* ---- All of them */

void order_do(struct weir *w, const struct order *order, struct result *r)
{
    static int (*const deeds[])(struct weir * w, const struct order *o,
                                struct result *r) = {[DEED_COUNT_QUEUE] = count_queue,
                                                     [DEED_COUNT_RETRY] = count_dead,
                                                     [DEED_COUNT_REMOVE] = count_dead,
                                                     [DEED_FORECAST] = forecast,
                                                     [DEED_KEYS] = list_keys,
                                                     [DEED_PAUSE_QUEUE] = pause_queue,
                                                     [DEED_RESUME_QUEUE] = resume_queue,
                                                     [DEED_PURGE_QUEUE] = purge_queue,
                                                     [DEED_PAUSE_LIMIT] = pause_limit,
                                                     [DEED_RESUME_LIMIT] = resume_limit,
                                                     [DEED_PAUSE_KEY] = halt_key,
                                                     [DEED_RESUME_KEY] = halt_key,
                                                     [DEED_SET_LIMIT] = set_limit,
                                                     [DEED_REMOVE_LIMIT] = remove_limit,
                                                     [DEED_QUIET_WORKER] = quiet_worker,
                                                     [DEED_STOP_WORKER] = stop_worker,
                                                     [DEED_RETRY_DEAD] = move_dead,
                                                     [DEED_REMOVE_DEAD] = move_dead};

    *r = (struct result){.order = *order};
    r->status = deeds[order->deed](w, order, r);
    if (r->status < 0)
        SAY(r, "%s", w->error.text);
}

void result_clear(struct result *r)
{
    json_decref(r->doc);
    *r = (struct result){.status = 0};
}
