/* What POST below /api does. Each answers what its command prints with --json. */

#include <inttypes.h>
#include <string.h>

#include "core/duration.h"
#include "producer/schedule.h"
#include "queue/inspect/cancel.h"
#include "queue/limits/key_rules.h"
#include "queue/limits/rate.h"
#include "queue/limits/type.h"
#include "queue/schedule/schedule.h"
#include "serve/fields.h"
#include "serve/resource.h"
#include "view/batches.h"
#include "view/dead.h"
#include "view/job.h"
#include "view/jobs.h"
#include "view/key_rules.h"
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

    *how = (struct pausing){.for_us = RATE_ENDLESS,
                            .reason = field_text(ask->fields, "reason"),
                            .create_by = "create=true pauses one that is yet to come"};
    if (span && (duration_parse(span, &how->for_us, &why) < 0 || how->for_us < 1))
        return error_set(&w->error, WEIR_EINPUT, "pause %.128s: for how long? give for=10m", ask->name);
    return field_flag(ask->fields, "create", &how->create, &w->error);
}

/* Of what the row pauses; of a limit with key= only that one. */
static int change_pause(struct weir *w, const struct ask *ask, const struct pausing *how, json_t **doc)
{
    const char *key = field_text(ask->fields, "key");
    json_t *answer;
    int status = ask->row->by.pause ? ask->row->by.pause(w, ask->name, how, &answer)
                                    : rate_pause(w, ask->name, key, how, &answer);

    if (status == 0)
        status = document_done(w, pausing_key_document(ask->name, key, answer), doc);
    json_decref(answer);
    return status;
}

static int do_pause(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct pausing how;

    return read_pausing(w, ask, &how) < 0 ? w->error.status : change_pause(w, ask, &how, doc);
}

static int do_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    return change_pause(w, ask, &(struct pausing){.for_us = RATE_RESUME}, doc);
}

static int wrong_count(struct weir *w)
{
    return error_set(&w->error, WEIR_EINPUT, "count: must be a whole number up to %" PRId64,
                     FIELD_NUMBER_MOST);
}

/* Not more jobs than whoever asks has seen: count=, else those that are there now. */
static int do_queue_purge(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *queue = ask->name, *type;
    struct queue_jobs jobs;
    int64_t most;

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

/* Changes the rules of one key of a limit. */
static int change_key(struct weir *w, const struct key_change *change, json_t **doc)
{
    json_t *answer;
    int status = key_rules_change(w, change, &answer);

    if (status == 0)
        status = document_done(w, key_change_document(change, answer), doc);
    json_decref(answer);
    return status;
}

/* Reads for=, else= and if-revision= of the rules of a key. */
static int set_key(struct weir *w, const struct ask *ask, const char *key, const char *rules, json_t **doc)
{
    const char *span = field_text(ask->fields, "for"), *then = field_text(ask->fields, "else");
    struct key_change change = {.limit = ask->name,
                                .key = key,
                                .rules = rules,
                                .for_us = RATE_ENDLESS,
                                .closes = then,
                                .revision = field_number(ask->fields, "if-revision", -1)};
    struct error why;

    if (span && (duration_parse(span, &change.for_us, &why) < 0 || change.for_us < 1))
        return error_set(&w->error, WEIR_EINPUT, "rate set %.128s: for how long? give for=10m", ask->name);
    if (then && strcmp(then, "closed") != 0)
        return error_set(&w->error, WEIR_EINPUT,
                         "else: must be closed; without it the rules of the limit hold then");
    return change_key(w, &change, doc);
}

static int do_rate_set(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *rules = field_text(ask->fields, "rules"), *key = field_text(ask->fields, "key");
    char dropped[RULE_PATH_SIZE];
    struct rule_set kept;

    if (!rules)
        return error_set(&w->error, WEIR_EINPUT, "rate set %.128s: no rules; give rules=10/s", ask->name);
    if (key)
        return set_key(w, ask, key, rules, doc);
    if (rate_set(w, ask->name, rules, 0, &kept, dropped, NULL) < 0)
        return w->error.status;
    return document_done(w, rate_set_document(ask->name, &kept, dropped), doc);
}

static json_t *done_document(const char *name, const char *action)
{
    return json_pack("{s:o, s:s}", "name", text_word(name), "action", action);
}

static int do_remove(struct weir *w, const struct ask *ask, json_t **doc)
{
    if (ask->row->by.remove(w, ask->name) < 0)
        return w->error.status;
    return document_done(w, done_document(ask->name, "remove"), doc);
}

static int do_rate_remove(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *key = field_text(ask->fields, "key");

    return key ? change_key(w,
                            &(struct key_change){
                                .limit = ask->name, .key = key, .for_us = RATE_ENDLESS, .revision = -1},
                            doc)
               : do_remove(w, ask, doc);
}

/* Reads a number from 1 to most; 0: nobody has given it. */
static int read_count(struct weir *w, const struct ask *ask, const char *name, int64_t most, int64_t *count)
{
    *count = field_number(ask->fields, name, 0);
    if (!field_text(ask->fields, name) || (*count >= 1 && *count <= most))
        return 0;
    return error_set(&w->error, WEIR_EINPUT, "%s: must be 1 to %lld", name, (long long)most);
}

static int do_use(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *limits = field_text(ask->fields, "limits"), *verb = ask->row->by.word;
    const char *cost = field_text(ask->fields, "cost");

    if (!limits && !cost)
        return error_set(&w->error, WEIR_EINPUT, "rate %s %.128s: which limits? give limits=NAME", verb,
                         ask->name);
    if (rate_use(w, ask->name, strcmp(verb, "use") == 0, limits ? limits : "", cost) < 0)
        return w->error.status;
    return document_done(w, done_document(ask->name, verb), doc);
}

static int do_rate_weight(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *key = field_text(ask->fields, "key");
    int64_t weight = field_number(ask->fields, "weight", -1);

    if (!key || weight < 1 || weight > RATE_WEIGHT_MOST)
        return error_set(&w->error, WEIR_EINPUT, "rate weight %.128s: give key=KEY, and weight=1 to %d",
                         ask->name, RATE_WEIGHT_MOST);
    if (weir_rate_weight(w, ask->name, key, (int)weight) < 0)
        return w->error.status;
    return document_done(w, done_document(ask->name, "weight"), doc);
}

/* ---- Jobs */

static int do_job_cancel(struct weir *w, const struct ask *ask, json_t **doc)
{
    json_t *job;
    int status = cancel_job(w, -1, ask->name, field_text(ask->fields, "unique"), &job);

    if (status == 0)
        rate_note(w, "job cancel %s", ask->name);
    if (status == 0)
        status = document_done(w, cancel_document(job), doc);
    json_decref(job);
    return status;
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

static int do_dead(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *into;

    if (field_name(ask->fields, "into", &into, &w->error) < 0)
        return w->error.status;
    return view_dead_move(w, ask->row->by.word, ask->name, into, doc);
}

/* ---- Batches, schedules */

static int do_batch_resume(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct batch_change change;

    if (batch_resume(w, ask->name, &change) < 0)
        return w->error.status;
    if (change.was == BATCH_CANCELLED)
        return batch_was_cancelled(ask->name, &w->error);
    return document_done(w, batch_change_document(ask->name, "resume", &change), doc);
}

static int do_batch_cancel(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct batch_change change;

    if (batch_cancel(w, ask->name, false, &change) < 0)
        return w->error.status;
    return document_done(w, batch_change_document(ask->name, "cancel", &change), doc);
}

static int do_batch_seal(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *then, *queue;
    struct batch_sealed sealed;

    if (field_name(ask->fields, "then", &then, &w->error) < 0 ||
        field_name(ask->fields, "queue", &queue, &w->error) < 0)
        return w->error.status;
    if (queue && !then)
        return error_set(&w->error, WEIR_EINPUT, "queue: is for the job that follows; give then=TYPE");
    if (batch_seal(w, ask->name, queue ? queue : "default", then, &sealed))
        return w->error.status;
    rate_note(w, "batch seal %s", ask->name);
    return document_done(w,
                         json_pack("{s:s, s:I, s:I}", "name", ask->name, "total", (json_int_t)sealed.total,
                                   "left", (json_int_t)sealed.left),
                         doc);
}

static int read_schedule(struct weir *w, const struct ask *ask, struct weir_job_spec *job,
                         enum weir_missed *missed)
{
    const char *policy = field_text(ask->fields, "missed"), *span = field_text(ask->fields, "timeout");
    int64_t timeout_us = 0, attempts;

    if (read_count(w, ask, "max_attempts", JOB_ATTEMPTS_MOST, &attempts) < 0)
        return w->error.status;
    *job = (struct weir_job_spec){.type = field_text(ask->fields, "type"),
                                  .args = field_text(ask->fields, "args"),
                                  .queue = field_text(ask->fields, "queue"),
                                  .key = field_text(ask->fields, "key"),
                                  .costs = field_text(ask->fields, "cost"),
                                  .max_attempts = (int)attempts};
    *missed = WEIR_MISSED_ONCE;
    if (!job->type || !field_text(ask->fields, "when"))
        return error_set(&w->error, WEIR_EINPUT, "schedule add %.128s: give when=CRON and type=TYPE",
                         ask->name);
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

    if (status == 0)
        status = schedule_add(w, ask->name, field_text(ask->fields, "when"), field_text(ask->fields, "zone"),
                              missed, &job, &replaced);
    if (status == 0)
        rate_note(w, "schedule add %s", ask->name);
    if (status == 0)
        status = schedule_find(w, ask->name, &row);
    if (status == 0)
        status = document_done(w, schedule_document(&row), doc);
    schedule_free(&row.s);
    return status;
}

static int do_schedule_run(struct weir *w, const struct ask *ask, json_t **doc)
{
    struct schedule_row row;
    char id[WEIR_ID_SIZE];
    int status = schedule_find(w, ask->name, &row);

    if (status == 0 && row.status != 0) {
        w->error = row.why;
        status = row.status;
    }
    if (status == 0)
        status = schedule_enqueue(w, &row.s, id);
    schedule_free(&row.s);
    if (status == 0)
        rate_note(w, "schedule run %s", ask->name);
    return status == 0 ? document_done(w, json_pack("{s:s}", "id", id), doc) : status;
}

static int do_schedule_remove(struct weir *w, const struct ask *ask, json_t **doc)
{
    if (weir_schedule_remove(w, ask->name) < 0)
        return w->error.status;
    rate_note(w, "schedule remove %s", ask->name);
    return document_done(w, done_document(ask->name, "remove"), doc);
}

static int do_one(struct weir *w, const struct ask *ask, json_t **doc)
{
    return ask->row->by.one(w, ask->name, doc);
}

static int do_hold_end(struct weir *w, const struct ask *ask, json_t **doc)
{
    const char *spent = field_text(ask->fields, "spent");

    if ((spent ? weir_hold_spent(w, ask->name, spent) : weir_hold_end(w, ask->name, -1)) < 0)
        return w->error.status;
    rate_note(w, "hold end %s", ask->name);
    return document_done(w, done_document(ask->name, "end"), doc);
}

/* Orders it to a worker: a name, or HOST:PID. */
static int do_order(struct weir *w, const struct ask *ask, json_t **doc)
{
    return view_worker_orders(w, ask->name, ask->row->by.word, doc);
}

// clang-format off
const struct resource action_resources[] = {
    {"/api/types/*/pause", THREAD_CHANGE, "for reason create", do_pause, {.pause = type_pause}},
    {"/api/types/*/resume", THREAD_CHANGE, "", do_resume, {.pause = type_pause}},
    {"/api/types/*/remove", THREAD_CHANGE, "", do_remove, {.remove = type_remove}},
    {"/api/types/*/use", THREAD_CHANGE, "limits cost", do_use, {.word = "use"}},
    {"/api/types/*/unuse", THREAD_CHANGE, "limits", do_use, {.word = "unuse"}},
    {"/api/queues/*/pause", THREAD_CHANGE, "for reason create", do_pause, {.pause = queue_pause}},
    {"/api/queues/*/resume", THREAD_CHANGE, "", do_resume, {.pause = queue_pause}},
    {"/api/queues/*/purge", THREAD_CHANGE, "type count", do_queue_purge, {NULL}},
    {"/api/rates/*", THREAD_CHANGE, "rules key for else if-revision", do_rate_set, {NULL}},
    {"/api/rates/*/pause", THREAD_CHANGE, "for reason key", do_pause, {.pause = NULL}},
    {"/api/rates/*/resume", THREAD_CHANGE, "key", do_resume, {.pause = NULL}},
    {"/api/rates/*/remove", THREAD_CHANGE, "key", do_rate_remove, {.remove = weir_rate_remove}},
    {"/api/rates/*/weight", THREAD_CHANGE, "key weight", do_rate_weight, {NULL}},
    {"/api/holds/*/end", THREAD_CHANGE, "spent", do_hold_end, {NULL}},
    {"/api/jobs/actions", THREAD_SEARCH, "action search count dry_run cursor", do_jobs, {NULL}},
    {"/api/jobs/*/cancel", THREAD_CHANGE, "unique", do_job_cancel, {NULL}},
    {"/api/jobs/*/run", THREAD_CHANGE, "", do_one, {.one = view_job_run}},
    {"/api/dead/*/retry", THREAD_CHANGE, "into", do_dead, {.word = "retry"}},
    {"/api/dead/*/remove", THREAD_CHANGE, "", do_dead, {.word = "remove"}},
    {"/api/batches/*/pause", THREAD_CHANGE, "for reason create", do_pause, {.pause = batch_pause}},
    {"/api/batches/*/resume", THREAD_CHANGE, "", do_batch_resume, {NULL}},
    {"/api/batches/*/cancel", THREAD_CHANGE, "", do_batch_cancel, {NULL}},
    {"/api/batches/*/seal", THREAD_CHANGE, "then queue", do_batch_seal, {NULL}},
    {"/api/schedules/*", THREAD_CHANGE, "when type args zone missed queue key cost max_attempts timeout", do_schedule_add, {NULL}},
    {"/api/schedules/*/pause", THREAD_CHANGE, "for reason", do_pause, {.pause = schedule_pause}},
    {"/api/schedules/*/resume", THREAD_CHANGE, "", do_resume, {.pause = schedule_pause}},
    {"/api/schedules/*/run", THREAD_CHANGE, "", do_schedule_run, {NULL}},
    {"/api/schedules/*/remove", THREAD_CHANGE, "", do_schedule_remove, {NULL}},
    {"/api/workers/*/quiet", THREAD_CHANGE, "", do_order, {.word = "quiet"}},
    {"/api/workers/*/resume", THREAD_CHANGE, "", do_order, {.word = "resume"}},
    {"/api/workers/*/stop", THREAD_CHANGE, "", do_order, {.word = "stop"}},
    {.path = NULL},
};
// clang-format on
