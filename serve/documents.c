#include "serve/documents.h"

#include <string.h>

#include "core/clock.h"
#include "core/duration.h"
#include "queue/limits/rate_keys.h"
#include "serve/fields.h"
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

static int read_status(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_status(w, doc);
}

static int read_report(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_report(w, ask->hide_args, doc);
}

static int read_queues(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_queues(w, doc);
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

    return rules ? view_rate_dry(w, ask->names[0], rules, doc) : view_rate(w, ask->names[0], doc);
}

/* Reads the longest keys, or with key= one. */
static int read_rate_keys(struct weir *w, const struct ask *ask, json_t **doc)
{
    int64_t most = field_number(ask->fields, "top", RATE_KEYS_SHOWN);

    *doc = NULL;
    if (ask->hide_args && field_text(ask->fields, "key"))
        return error_set(&w->error, WEIR_EINPUT, "key: keys are hidden here; ask without it");
    if (most < 1 || most > RATE_KEYS_MOST)
        return error_set(&w->error, WEIR_EINPUT, "top: must be 1 to %d", RATE_KEYS_MOST);
    return view_rate_keys(w, ask->names[0], (int)most, field_text(ask->fields, "key"), doc, NULL);
}

static int read_log(struct weir *w, bool all, json_t **doc)
{
    int status = view_rate_log(w, all, doc);

    if (status < 0) {
        json_decref(*doc);
        *doc = NULL;
    }
    return status;
}

static int read_rate_log(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return read_log(w, false, doc);
}

static int read_all_log(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return read_log(w, true, doc);
}

static int read_type(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_type(w, ask->names[0], doc);
}

static int read_workers(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_workers(w, doc);
}

/* A page of those that q= is for. */
static int read_jobs(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct job_bounds most = {.looked_at = JOBS_LOOKED_AT,
                              .jobs = field_number(ask->fields, "limit", JOBS_SHOWN)};
    struct job_search search;

    *doc = NULL;
    if (most.jobs < 1 || most.jobs > JOBS_MOST)
        return error_set(&w->error, WEIR_EINPUT, "limit: must be 1 to %d", JOBS_MOST);
    if (ask_search(w, ask, "q", &search) < 0)
        return w->error.status;
    return view_jobs(w, &search, field_text(ask->fields, "cursor"), &most, doc);
}

static int read_job(struct weir *w, const struct ask *ask, json_t **doc)
{
    return ask->wait ? view_job_wait(w, ask->names[0], ask->wait, doc)
                     : view_job(w, ask->names[0], field_text(ask->fields, "cursor"), doc);
}

static int read_why(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_why(w, ask->names[0], field_text(ask->fields, "cursor"), doc);
}

static int read_batches(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_batches(w, doc);
}

static int read_batch(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_batch(w, ask->names[0], doc);
}

static int read_schedules(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_schedules(w, doc, NULL);
}

static int read_schedule(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_schedule(w, ask->names[0], doc);
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

    *doc = NULL;
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

static int read_dead_one(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_dead_one(w, ask->names[0], doc);
}

static int read_doctor(struct weir *w, const struct ask *ask, json_t **doc)
{
    (void)ask;
    return view_doctor(w, doc);
}

/* Reads the history of type=NAME or limit=NAME; hours=N in place of minutes=N. */
static int read_history(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *type, *limit;
    bool by_hours = field_text(ask->fields, "hours") != NULL;
    int most = by_hours ? HISTORY_HOURS : HISTORY_MINUTES;
    int64_t slots = field_number(ask->fields, by_hours ? "hours" : "minutes", most);

    *doc = NULL;
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
    {"/api/report", THREAD_LOOK, "", read_report},
    {"/api/status", THREAD_LOOK, "", read_status},
    {"/api/queues", THREAD_LOOK, "", read_queues},
    {"/api/rates", THREAD_LOOK, "", read_rates},
    {"/api/rates/*", THREAD_LOOK, "rules", read_rate},
    {"/api/rates/*/keys", THREAD_LOOK, "top key", read_rate_keys},
    {"/api/changes", THREAD_LOOK, "", read_rate_log},
    {"/api/log", THREAD_LOOK, "", read_all_log},
    {"/api/types/*", THREAD_LOOK, "", read_type},
    {"/api/workers", THREAD_LOOK, "", read_workers},
    {"/api/history", THREAD_LOOK, "type limit hours minutes", read_history},
    {"/api/batches", THREAD_LOOK, "", read_batches},
    {"/api/batches/*", THREAD_LOOK, "", read_batch},
    {"/api/schedules", THREAD_LOOK, "", read_schedules},
    {"/api/schedules/*", THREAD_LOOK, "", read_schedule},
    {"/api/jobs", THREAD_SEARCH, "q limit cursor wait", read_jobs},
    {"/api/jobs/*", THREAD_SEARCH, "cursor wait", read_job},
    {"/api/jobs/*/why", THREAD_SEARCH, "cursor wait", read_why},
    {"/api/dead", THREAD_SEARCH, "type queue batch reason older newer group limit", read_dead},
    {"/api/dead/*", THREAD_SEARCH, "", read_dead_one},
    {"/api/doctor", THREAD_SEARCH, "", read_doctor},
    {.path = NULL},
};
// clang-format on
