/* What GET below /api answers. */

#include <string.h>

#include "core/clock.h"
#include "core/duration.h"
#include "queue/limits/rate_keys.h"
#include "serve/fields.h"
#include "serve/resource.h"
#include "view/batches.h"
#include "view/dead.h"
#include "view/doctor.h"
#include "view/history.h"
#include "view/job.h"
#include "view/jobs.h"
#include "view/limits.h"
#include "view/queues.h"
#include "view/rate_dry.h"
#include "view/rate_keys.h"
#include "view/report.h"
#include "view/schedules.h"
#include "view/status.h"
#include "view/workers.h"

#define DEAD_SHOWN 50
#define DEAD_MOST 1000
#define JOBS_SHOWN 50
#define JOBS_MOST 1000

static int read_all(struct weir *w, const struct ask *ask, json_t **doc)
{
    return ask->row->by.all(w, doc);
}

static int read_one(struct weir *w, const struct ask *ask, json_t **doc)
{
    return ask->row->by.one(w, ask->name, doc);
}

static int read_report(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_report(w, ask->hide_args, doc);
}

static int read_rates(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_rates(w, doc, NULL);
}

/* Reads a limit; with rules= what they would change. */
static int read_rate(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *rules = field_text(ask->fields, "rules");

    return rules ? view_rate_dry(w, ask->name, rules, doc) : view_rate(w, ask->name, doc);
}

/* Reads the longest keys, or with key= one. */
static int read_rate_keys(struct weir *w, const struct ask *ask, json_t **doc)
{
    int64_t most = field_number(ask->fields, "top", RATE_KEYS_SHOWN);

    if (ask->hide_args && field_text(ask->fields, "key"))
        return error_set(&w->error, WEIR_EINPUT, "key: keys are hidden here; ask without it");
    if (most < 1 || most > RATE_KEYS_MOST)
        return error_set(&w->error, WEIR_EINPUT, "top: must be 1 to %d", RATE_KEYS_MOST);
    return view_rate_keys(w, ask->name, (int)most, field_text(ask->fields, "key"), doc, NULL);
}

static int read_changes(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_rate_log(w, ask->row->by.word != NULL, doc);
}

/* A page of those that q= is for. */
static int read_jobs(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct job_bounds most = {.looked_at = JOBS_LOOKED_AT,
                              .jobs = field_number(ask->fields, "limit", JOBS_SHOWN)};
    struct job_search search;

    if (most.jobs < 1 || most.jobs > JOBS_MOST)
        return error_set(&w->error, WEIR_EINPUT, "limit: must be 1 to %d", JOBS_MOST);
    if (ask_search(w, ask, "q", &search) < 0)
        return w->error.status;
    return view_jobs(w, &search, field_text(ask->fields, "cursor"), &most, doc);
}

static int read_job(struct weir *w, const struct ask *ask, json_t **doc)
{
    return ask->wait ? view_job_wait(w, ask->name, ask->wait, doc)
                     : view_job(w, ask->name, field_text(ask->fields, "cursor"), doc);
}

static int read_why(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_why(w, ask->name, field_text(ask->fields, "cursor"), doc);
}

static int read_schedules(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_schedules(w, doc, NULL);
}

/* A field that is a time such as "10m" or "yesterday"; 0: it is not there. */
static int read_span(struct weir *w, const struct ask *ask, const char *name, int64_t *us)
{
    const char *text = field_text(ask->fields, name);
    struct error why;

    *us = 0;
    if (!text || (ago_parse(text, 1, clock_wall_us(), us, &why) == 0 && *us > 0))
        return 0;
    return error_set(&w->error, WEIR_EINPUT, "%s=%.60s: not a time such as 10m, 2h, 1d or today", name, text);
}

static int read_dead(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct dead_filter filter = {.reason = field_text(ask->fields, "reason")};
    int64_t most = field_number(ask->fields, "limit", DEAD_SHOWN);
    bool group = false;

    if (ask->hide_args && filter.reason)
        return error_set(&w->error, WEIR_EINPUT, "reason: reasons are hidden here; ask without it");
    if (field_name(ask->fields, "type", &filter.type, &w->error) < 0 ||
        field_name(ask->fields, "queue", &filter.queue, &w->error) < 0 ||
        field_name(ask->fields, "batch", &filter.batch, &w->error) < 0)
        return w->error.status;
    if (read_span(w, ask, "older", &filter.older_us) < 0 || read_span(w, ask, "newer", &filter.newer_us) < 0)
        return w->error.status;
    if (most < 1 || most > DEAD_MOST)
        return error_set(&w->error, WEIR_EINPUT, "limit: must be 1 to %d", DEAD_MOST);
    if (field_flag(ask->fields, "group", &group, &w->error) < 0)
        return w->error.status;
    return group ? view_dead_groups(w, &filter, (size_t)most, doc) : view_dead(w, &filter, most, doc);
}

/* Reads the history of type=NAME or limit=NAME; hours=N in place of minutes=N. */
static int read_history(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *type, *limit;
    bool by_hours = field_text(ask->fields, "hours") != NULL;
    int most = by_hours ? HISTORY_HOURS : HISTORY_MINUTES;
    int64_t slots = field_number(ask->fields, by_hours ? "hours" : "minutes", most);

    if (field_name(ask->fields, "type", &type, &w->error) < 0 ||
        field_name(ask->fields, "limit", &limit, &w->error) < 0)
        return w->error.status;
    if (!type == !limit)
        return error_set(&w->error, WEIR_EINPUT, "history: of what? give type=NAME or limit=NAME");
    if (slots < 1 || slots > most)
        return error_set(&w->error, WEIR_EINPUT, "history: %s must be 1 to %d",
                         by_hours ? "hours" : "minutes", most);
    return view_history(w,
                        &(struct history_call){.name = limit ? limit : type,
                                               .of_limit = limit != NULL,
                                               .by_hours = by_hours,
                                               .slots = (int)slots},
                        doc);
}

// clang-format off
const struct resource document_resources[] = {
    {"/api/report", THREAD_LOOK, "", read_report, {NULL}},
    {"/api/status", THREAD_LOOK, "", read_all, {.all = view_status}},
    {"/api/queues", THREAD_LOOK, "", read_all, {.all = view_queues}},
    {"/api/rates", THREAD_LOOK, "", read_rates, {NULL}},
    {"/api/rates/*", THREAD_LOOK, "rules", read_rate, {NULL}},
    {"/api/rates/*/keys", THREAD_LOOK, "top key", read_rate_keys, {NULL}},
    {"/api/changes", THREAD_LOOK, "", read_changes, {.word = NULL}},
    {"/api/log", THREAD_LOOK, "", read_changes, {.word = "all"}},
    {"/api/types/*", THREAD_LOOK, "", read_one, {.one = view_type}},
    {"/api/workers", THREAD_LOOK, "", read_all, {.all = view_workers}},
    {"/api/history", THREAD_LOOK, "type limit hours minutes", read_history, {NULL}},
    {"/api/batches", THREAD_LOOK, "", read_all, {.all = view_batches}},
    {"/api/batches/*", THREAD_LOOK, "", read_one, {.one = view_batch}},
    {"/api/schedules", THREAD_LOOK, "", read_schedules, {NULL}},
    {"/api/schedules/*", THREAD_LOOK, "", read_one, {.one = view_schedule}},
    {"/api/jobs", THREAD_SEARCH, "q limit cursor wait", read_jobs, {NULL}},
    {"/api/jobs/*", THREAD_SEARCH, "cursor wait", read_job, {NULL}},
    {"/api/jobs/*/why", THREAD_SEARCH, "cursor wait", read_why, {NULL}},
    {"/api/dead", THREAD_SEARCH, "type queue batch reason older newer group limit", read_dead, {NULL}},
    {"/api/dead/*", THREAD_SEARCH, "", read_one, {.one = view_dead_one}},
    {"/api/doctor", THREAD_SEARCH, "", read_all, {.all = view_doctor}},
    {.path = NULL},
};
// clang-format on
