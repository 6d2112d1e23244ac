#include "serve/actions.h"

#include <inttypes.h>
#include <string.h>

#include "core/duration.h"
#include "producer/schedule.h"
#include "queue/inspect/cancel.h"
#include "queue/limits/rate.h"
#include "queue/limits/type.h"
#include "queue/schedule/schedule.h"
#include "serve/fields.h"
#include "view/batches.h"
#include "view/dead.h"
#include "view/job.h"
#include "view/jobs.h"
#include "view/limits.h"
#include "view/pause.h"
#include "view/queues.h"
#include "view/schedules.h"
#include "view/text.h"
#include "view/workers.h"

/* ---- Queues, types */

/* Reads for=, reason= and create= of a pause: without for= it is until somebody resumes it. */
static int read_pausing(struct weir *w, const struct ask *ask, struct pausing *how)
{
    const char *span = field_text(ask->fields, "for");
    struct error why;

    *how = (struct pausing){.for_us = RATE_ENDLESS, .reason = field_text(ask->fields, "reason")};
    if (span && (duration_parse(span, &how->for_us, &why) < 0 || how->for_us < 1))
        return error_set(&w->error, WEIR_EINPUT, "pause %.128s: for how long? give for=10m", ask->names[0]);
    return field_flag(ask->fields, "create", &how->create, &w->error);
}

typedef int pause_verb(struct weir *w, const char *name, const struct pausing *how, json_t **answer);

static int do_pause(struct weir *w, const struct ask *ask, pause_verb *verb, json_t **doc)
{
    struct pausing how;
    json_t *answer = NULL;
    int status = read_pausing(w, ask, &how);

    *doc = NULL;
    if (status == 0)
        status = verb(w, ask->names[0], &how, &answer);
    if (status == 0)
        status = document_done(w, pausing_document(ask->names[0], answer), doc);
    json_decref(answer);
    return status;
}

static int do_resume(struct weir *w, const struct ask *ask, pause_verb *verb, json_t **doc)
{
    json_t *answer;
    int status = verb(w, ask->names[0], &(struct pausing){.for_us = RATE_RESUME}, &answer);

    *doc = NULL;
    if (status == 0)
        status = document_done(w, pausing_document(ask->names[0], answer), doc);
    json_decref(answer);
    return status;
}

static int do_queue_pause(struct weir *w, const struct ask *ask, json_t **doc)
{
    return do_pause(w, ask, queue_pause, doc);
}

static int do_queue_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    return do_resume(w, ask, queue_pause, doc);
}

static int do_type_pause(struct weir *w, const struct ask *ask, json_t **doc)
{
    return do_pause(w, ask, type_pause, doc);
}

static int do_type_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    return do_resume(w, ask, type_pause, doc);
}

static int wrong_count(struct weir *w)
{
    return error_set(&w->error, WEIR_EINPUT, "count: must be a whole number up to %" PRId64,
                     FIELD_NUMBER_MOST);
}

/* Not more jobs than whoever asks has seen: count=, else those that are there now. */
static int do_queue_purge(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *queue = ask->names[0], *type;
    struct queue_jobs jobs;
    int64_t most;

    *doc = NULL;
    if (field_name(ask->fields, "type", &type, &w->error) < 0)
        return w->error.status;
    if (queue_count(w, -1, queue, type, &jobs) < 0)
        return w->error.status;
    most = field_number(ask->fields, "count", jobs.waiting + jobs.parked);
    if (most < 0)
        return wrong_count(w);
    if (queue_purge(w, -1, queue, type, most, &jobs) < 0)
        return w->error.status;
    return document_done(w, queue_purge_document(queue, type, false, &jobs), doc);
}

/* ---- Limits */

static int do_rate_set(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *rules = field_text(ask->fields, "rules");
    char dropped[RULE_PATH_SIZE];
    struct rule_set kept;

    *doc = NULL;
    if (!rules)
        return error_set(&w->error, WEIR_EINPUT, "rate set %.128s: no rules; give rules=10/s", ask->names[0]);
    if (rate_set(w, ask->names[0], rules, false, &kept, dropped) < 0)
        return w->error.status;
    return document_done(w, rate_set_document(ask->names[0], &kept, dropped), doc);
}

/* key=: only that one. */
static int change_pause(struct weir *w, const struct ask *ask, const struct pausing *how, json_t **doc)
{
    const char *key = field_text(ask->fields, "key");
    json_t *answer;
    int status = rate_pause(w, ask->names[0], key, how, &answer);

    *doc = NULL;
    if (status == 0)
        status = document_done(w, pausing_key_document(ask->names[0], key, answer), doc);
    json_decref(answer);
    return status;
}

static int do_rate_pause(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct pausing how;

    *doc = NULL;
    if (read_pausing(w, ask, &how) < 0)
        return w->error.status;
    return change_pause(w, ask, &how, doc);
}

static int do_rate_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    return change_pause(w, ask, &(struct pausing){.for_us = RATE_RESUME}, doc);
}

static json_t *done_document(const char *name, const char *action)
{
    return json_pack("{s:o, s:s}", "name", text_word(name), "action", action);
}

static int do_type_remove(struct weir *w, const struct ask *ask, json_t **doc)
{
    *doc = NULL;
    if (type_remove(w, ask->names[0]) < 0)
        return w->error.status;
    return document_done(w, done_document(ask->names[0], "remove"), doc);
}

static int do_rate_remove(struct weir *w, const struct ask *ask, json_t **doc)
{
    *doc = NULL;
    if (rate_remove(w, ask->names[0], false) < 0)
        return w->error.status;
    return document_done(w, done_document(ask->names[0], "remove"), doc);
}

/* Reads a number from 1 to most; 0: nobody has given it. */
static int read_count(struct weir *w, const struct ask *ask, const char *name, int64_t most, int64_t *count)
{
    *count = field_number(ask->fields, name, 0);
    if (!field_text(ask->fields, name) || (*count >= 1 && *count <= most))
        return 0;
    return error_set(&w->error, WEIR_EINPUT, "%s: must be 1 to %lld", name, (long long)most);
}

static int change_use(struct weir *w, const struct ask *ask, bool use, json_t **doc)
{
    const char *limits = field_text(ask->fields, "limits");
    int64_t cost;

    *doc = NULL;
    if (read_count(w, ask, "cost", JOB_COST_MOST, &cost) < 0)
        return w->error.status;
    if (!limits && cost == 0)
        return error_set(&w->error, WEIR_EINPUT, "rate %s %.128s: which limits? give limits=NAME",
                         use ? "use" : "unuse", ask->names[0]);
    if (rate_use(w, ask->names[0], use, limits ? limits : "", cost) < 0)
        return w->error.status;
    return document_done(w, done_document(ask->names[0], use ? "use" : "unuse"), doc);
}

static int do_type_use(struct weir *w, const struct ask *ask, json_t **doc)
{
    return change_use(w, ask, true, doc);
}

static int do_type_unuse(struct weir *w, const struct ask *ask, json_t **doc)
{
    return change_use(w, ask, false, doc);
}

static int do_rate_weight(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *key = field_text(ask->fields, "key");
    int64_t weight = field_number(ask->fields, "weight", -1);

    *doc = NULL;
    if (!key || weight < 1 || weight > RATE_WEIGHT_MOST)
        return error_set(&w->error, WEIR_EINPUT, "rate weight %.128s: give key=KEY, and weight=1 to %d",
                         ask->names[0], RATE_WEIGHT_MOST);
    if (weir_rate_weight(w, ask->names[0], key, (int)weight) < 0)
        return w->error.status;
    return document_done(w, done_document(ask->names[0], "weight"), doc);
}

/* ---- Jobs */

static int do_job_cancel(struct weir *w, const struct ask *ask, json_t **doc)
{
    json_t *job;
    int status = cancel_job(w, -1, ask->names[0], field_text(ask->fields, "unique"), &job);

    *doc = NULL;
    if (status == 0)
        rate_note(w, "job cancel %s", ask->names[0]);
    if (status == 0)
        status = document_done(w, cancel_document(job), doc);
    json_decref(job);
    return status;
}

static int do_job_run(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_job_run(w, ask->names[0], doc);
}

/* To all that search= is for, and to no more jobs than count= says: with dry_run=true it says how many there are. One request looks at so
 * many jobs; that of a form, which is answered with 303 and no cursor, at all. */
static int do_jobs(struct weir *w, const struct ask *ask, json_t **doc)
{
    bool form = field_text(ask->fields, "back") != NULL;
    struct job_bounds most = {.looked_at = form ? INT64_MAX : JOBS_LOOKED_AT,
                              .jobs = field_number(ask->fields, "count", -1)};
    const char *action = field_text(ask->fields, "action");
    const char *cursor = field_text(ask->fields, "cursor");
    struct job_search search;
    bool dry;

    *doc = NULL;
    if (field_flag(ask->fields, "dry_run", &dry, &w->error) < 0)
        return w->error.status;
    if (!action)
        return error_set(&w->error, WEIR_EINPUT, "action: which one? give cancel, run, retry or remove");
    if (ask_search(w, ask, "search", &search) < 0)
        return w->error.status;
    if (dry) {
        most.jobs = JOB_BOUND_MOST;
        return view_job_actions_dry(w, &search, action, cursor, &most, doc);
    }
    if (!field_text(ask->fields, "count"))
        return error_set(&w->error, WEIR_EINPUT, "count: of how many jobs? with dry_run=true it is answered");
    if (most.jobs < 0)
        return wrong_count(w);
    return view_job_actions(w, &search, action, cursor, &most, doc);
}

static int do_dead_retry(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *into;

    *doc = NULL;
    if (field_name(ask->fields, "into", &into, &w->error) < 0)
        return w->error.status;
    return view_dead_move(w, "retry", ask->names[0], into, doc);
}

static int do_dead_remove(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_dead_move(w, "remove", ask->names[0], NULL, doc);
}

/* ---- Batches, schedules */

static int do_batch_pause(struct weir *w, const struct ask *ask, json_t **doc)
{
    return do_pause(w, ask, batch_pause, doc);
}

static int do_batch_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct batch_change change;

    *doc = NULL;
    if (batch_resume(w, ask->names[0], &change) < 0)
        return w->error.status;
    if (change.was == BATCH_CANCELLED)
        return batch_was_cancelled(ask->names[0], &w->error);
    return document_done(w, batch_change_document(ask->names[0], "resume", &change), doc);
}

static int do_batch_cancel(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct batch_change change;

    *doc = NULL;
    if (batch_cancel(w, ask->names[0], false, &change) < 0)
        return w->error.status;
    return document_done(w, batch_change_document(ask->names[0], "cancel", &change), doc);
}

static int do_batch_seal(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *then, *queue;
    struct batch_sealed sealed;

    *doc = NULL;
    if (field_name(ask->fields, "then", &then, &w->error) < 0 ||
        field_name(ask->fields, "queue", &queue, &w->error) < 0)
        return w->error.status;
    if (queue && !then)
        return error_set(&w->error, WEIR_EINPUT, "queue: is for the job that follows; give then=TYPE");
    if (batch_seal(w, ask->names[0], queue ? queue : "default", then, &sealed))
        return w->error.status;
    rate_note(w, "batch seal %s", ask->names[0]);
    return document_done(w,
                         json_pack("{s:s, s:I, s:I}", "name", ask->names[0], "total",
                                   (json_int_t)sealed.total, "left", (json_int_t)sealed.left),
                         doc);
}

static int read_schedule(struct weir *w, const struct ask *ask, struct weir_job_spec *job,
                         enum weir_missed *missed)
{
    const char *policy = field_text(ask->fields, "missed"), *span = field_text(ask->fields, "timeout");
    int64_t timeout_us = 0, cost, attempts;

    if (read_count(w, ask, "cost", JOB_COST_MOST, &cost) < 0 ||
        read_count(w, ask, "max_attempts", JOB_ATTEMPTS_MOST, &attempts) < 0)
        return w->error.status;
    *job = (struct weir_job_spec){.type = field_text(ask->fields, "type"),
                                  .args = field_text(ask->fields, "args"),
                                  .queue = field_text(ask->fields, "queue"),
                                  .key = field_text(ask->fields, "key"),
                                  .cost = cost,
                                  .max_attempts = (int)attempts};
    *missed = WEIR_MISSED_ONCE;
    if (!job->type || !field_text(ask->fields, "when"))
        return error_set(&w->error, WEIR_EINPUT, "schedule add %.128s: give when=CRON and type=TYPE",
                         ask->names[0]);
    if (policy && !missed_read(policy, missed))
        return error_set(&w->error, WEIR_EINPUT, "missed: must be once, skip or all");
    if (span && duration_parse(span, &timeout_us, &w->error) < 0)
        return w->error.status;
    if (span && timeout_us == 0)
        return error_set(&w->error, WEIR_EINPUT, "timeout: must be above 0");
    job->timeout_s = (double)timeout_us / 1e6;
    return 0;
}

static int do_schedule_add(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct weir_job_spec job;
    enum weir_missed missed;
    struct schedule_row row = {.status = 0};
    bool replaced;
    int status = read_schedule(w, ask, &job, &missed);

    *doc = NULL;
    if (status == 0)
        status = schedule_add(w, ask->names[0], field_text(ask->fields, "when"),
                              field_text(ask->fields, "zone"), missed, &job, &replaced);
    if (status == 0)
        rate_note(w, "schedule add %s", ask->names[0]);
    if (status == 0)
        status = schedule_find(w, ask->names[0], &row);
    if (status == 0)
        status = document_done(w, schedule_document(&row), doc);
    schedule_free(&row.s);
    return status;
}

static int do_schedule_pause(struct weir *w, const struct ask *ask, json_t **doc)
{
    return do_pause(w, ask, schedule_pause, doc);
}

static int do_schedule_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    return do_resume(w, ask, schedule_pause, doc);
}

static int do_schedule_run(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct schedule_row row;
    char id[WEIR_ID_SIZE];
    int status = schedule_find(w, ask->names[0], &row);

    *doc = NULL;
    if (status == 0 && row.status != 0) {
        w->error = row.why;
        status = row.status;
    }
    if (status == 0)
        status = schedule_enqueue(w, &row.s, id);
    schedule_free(&row.s);
    if (status == 0)
        rate_note(w, "schedule run %s", ask->names[0]);
    return status == 0 ? document_done(w, json_pack("{s:s}", "id", id), doc) : status;
}

static int do_schedule_remove(struct weir *w, const struct ask *ask, json_t **doc)
{
    *doc = NULL;
    if (weir_schedule_remove(w, ask->names[0]) < 0)
        return w->error.status;
    rate_note(w, "schedule remove %s", ask->names[0]);
    return document_done(w, done_document(ask->names[0], "remove"), doc);
}

/* ---- Workers: a name, or HOST:PID */

static int order_worker(struct weir *w, const struct ask *ask, const char *order, json_t **doc)
{
    int status = view_worker_orders(w, ask->names[0], order, doc);

    if (status < 0) {
        json_decref(*doc);
        *doc = NULL;
    }
    return status;
}

static int do_worker_quiet(struct weir *w, const struct ask *ask, json_t **doc)
{
    return order_worker(w, ask, "quiet", doc);
}

static int do_worker_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    return order_worker(w, ask, "resume", doc);
}

static int do_worker_stop(struct weir *w, const struct ask *ask, json_t **doc)
{
    return order_worker(w, ask, "stop", doc);
}

const struct resource action_resources[] = {
    {"/api/types/*/pause", THREAD_CHANGE, "for reason create", do_type_pause},
    {"/api/types/*/resume", THREAD_CHANGE, "", do_type_resume},
    {"/api/types/*/remove", THREAD_CHANGE, "", do_type_remove},
    {"/api/types/*/use", THREAD_CHANGE, "limits cost", do_type_use},
    {"/api/types/*/unuse", THREAD_CHANGE, "limits", do_type_unuse},
    {"/api/queues/*/pause", THREAD_CHANGE, "for reason create", do_queue_pause},
    {"/api/queues/*/resume", THREAD_CHANGE, "", do_queue_resume},
    {"/api/queues/*/purge", THREAD_CHANGE, "type count", do_queue_purge},
    {"/api/rates/*", THREAD_CHANGE, "rules", do_rate_set},
    {"/api/rates/*/pause", THREAD_CHANGE, "for reason key", do_rate_pause},
    {"/api/rates/*/resume", THREAD_CHANGE, "key", do_rate_resume},
    {"/api/rates/*/remove", THREAD_CHANGE, "", do_rate_remove},
    {"/api/rates/*/weight", THREAD_CHANGE, "key weight", do_rate_weight},
    {"/api/jobs/actions", THREAD_SEARCH, "action search count dry_run cursor", do_jobs},
    {"/api/jobs/*/cancel", THREAD_CHANGE, "unique", do_job_cancel},
    {"/api/jobs/*/run", THREAD_CHANGE, "", do_job_run},
    {"/api/dead/*/retry", THREAD_CHANGE, "into", do_dead_retry},
    {"/api/dead/*/remove", THREAD_CHANGE, "", do_dead_remove},
    {"/api/batches/*/pause", THREAD_CHANGE, "for reason create", do_batch_pause},
    {"/api/batches/*/resume", THREAD_CHANGE, "", do_batch_resume},
    {"/api/batches/*/cancel", THREAD_CHANGE, "", do_batch_cancel},
    {"/api/batches/*/seal", THREAD_CHANGE, "then queue", do_batch_seal},
    {"/api/schedules/*", THREAD_CHANGE, "when type args zone missed queue key cost max_attempts timeout",
     do_schedule_add},
    {"/api/schedules/*/pause", THREAD_CHANGE, "for reason", do_schedule_pause},
    {"/api/schedules/*/resume", THREAD_CHANGE, "", do_schedule_resume},
    {"/api/schedules/*/run", THREAD_CHANGE, "", do_schedule_run},
    {"/api/schedules/*/remove", THREAD_CHANGE, "", do_schedule_remove},
    {"/api/workers/*/quiet", THREAD_CHANGE, "", do_worker_quiet},
    {"/api/workers/*/resume", THREAD_CHANGE, "", do_worker_resume},
    {"/api/workers/*/stop", THREAD_CHANGE, "", do_worker_stop},
    {.path = NULL},
};
