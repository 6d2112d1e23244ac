#include "view/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queue/batch/batch.h"
#include "queue/doctor/doctor.h"
#include "queue/history/history.h"
#include "queue/status/waits.h"
#include "view/format.h"
#include "view/pause.h"
#include "view/paused_keys.h"
#include "view/rate_keys.h"
#include "view/status.h"
#include "view/text.h"
#include "view/waits.h"

#define SHOWN 10        /* types and queues named, and limits asked what became of their slots */
#define LOOKED_AT 20    /* types asked how their attempts ended: those with the most failures ever */
#define FAILURES_MOST 5 /* attempts; so many that all fail are no accident */
#define KEYS_SHOWN 3    /* of those that are paused */
#define LOST_MOST 10    /* slots, and a tenth of all */
#define FLOOD_LEAST 10  /* jobs of one key; fewer are no flood */
#define STALL_US (60 * INT64_C(1000000)) /* a job that nothing holds starts within seconds */

/* Jobs of a type or a queue may be held by one of these. From HOLD_NEVER on somebody must act. */
enum held_by {
    HOLD_NOTHING,
    HOLD_EXECUTOR,
    HOLD_LIMIT,
    HOLD_SPAN, /* a pause that ends by itself */
    HOLD_NEVER,
    HOLD_WORKER,
    HOLD_KEY,   /* all keys are paused until somebody resumes them */
    HOLD_PAUSE, /* the type itself is, or a limit of it, until somebody resumes it */
    HOLD_QUEUE,
    HOLD_BATCH,
    HOLD_COUNT
};
static const char *const hold_names[HOLD_COUNT] = {"nothing", "executor", "limit", "span",  "never",
                                                   "worker",  "key",      "pause", "queue", "batch"};

/* What waits: a type, a queue that is paused, or the jobs aside of a batch that is. */
struct row {
    const struct type_status *type;
    const struct queue_status *queue;
    json_t *batch; /* as waits_members have it */
    int64_t jobs;
    enum held_by hold;
};

struct report {
    struct weir *w;
    const struct status *status;
    struct row *rows;
    size_t row_count;
    int64_t counts[HOLD_COUNT], waiting, running;
    size_t heard; /* workers that are not silent */
    bool hide_keys;
    struct doctor found; /* what is wrong besides */
};

/* ---- What holds what */

/* Returns the hold of a pause: that one, where somebody must end it. */
static enum held_by hold_of_pause(const json_t *pause, enum held_by endless)
{
    return answer_int(pause, "until") < FORMAT_ENDLESS_US ? HOLD_SPAN : endless;
}

static enum held_by hold_of(const struct type_status *t)
{
    const json_t *waits = t->waits_for, *paused = json_object_get(waits, "paused");

    if (!waits)
        return HOLD_NOTHING;
    if (json_object_get(waits, "executors"))
        return HOLD_EXECUTOR;
    if (json_object_get(waits, "queue"))
        return HOLD_QUEUE;
    if (json_object_get(waits, "type") && paused)
        return hold_of_pause(paused, HOLD_PAUSE);
    if (json_object_get(waits, "type"))
        return HOLD_WORKER;
    if (json_is_true(json_object_get(waits, "closed")))
        return HOLD_KEY;
    if (json_object_get(waits, "rule") && paused)
        return hold_of_pause(paused, HOLD_KEY);
    if (answer_int(waits, "until") >= FORMAT_ENDLESS_US)
        return HOLD_PAUSE;
    if (json_is_true(json_object_get(waits, "never")))
        return HOLD_NEVER;
    return json_object_get(waits, "rule") || json_object_get(waits, "until") ? HOLD_LIMIT : HOLD_NEVER;
}

static void add_row(struct report *r, struct row row)
{
    r->counts[row.hold]++;
    r->rows[r->row_count++] = row;
}

/* Adds the jobs in lanes to the queue that their type waits for. */
static void add_parked(const struct status *s, int64_t *jobs)
{
    for (size_t i = 0; i < s->type_count; i++) {
        const struct type_status *t = &s->types[i];
        const struct queue_status *q =
            hold_of(t) == HOLD_QUEUE ? status_queue(s, answer_text(t->waits_for, "queue")) : NULL;

        if (q)
            jobs[q - s->queues] += t->parked + t->held;
    }
}

/* Jobs of a paused queue stand in it, or in lanes. Of a type that has some in lanes elsewhere too nobody knows in which of the paused ones. false: out of memory. */
static bool add_queues(struct report *r)
{
    const struct status *s = r->status;
    int64_t standing = 0, *jobs = calloc(s->queue_count + 1, sizeof *jobs);
    bool in_lanes = false;

    if (!jobs)
        return false;
    for (size_t i = 0; i < s->queue_count; i++)
        standing += s->queues[i].paused_us ? s->queues[i].waiting : 0;
    for (size_t i = 0; i < s->type_count; i++)
        in_lanes |= s->types[i].in_pause && s->types[i].parked + s->types[i].held > 0 &&
                    hold_of(&s->types[i]) != HOLD_QUEUE;
    add_parked(s, jobs);
    for (size_t i = 0; i < s->queue_count; i++) {
        const struct queue_status *q = &s->queues[i];

        jobs[i] += q->waiting;
        if (q->paused_us && (jobs[i] > 0 || (standing == 0 && in_lanes)))
            add_row(r,
                    (struct row){.queue = q, .jobs = jobs[i], .hold = hold_of_pause(q->pause, HOLD_QUEUE)});
    }
    free(jobs);
    return true;
}

static void add_types(struct report *r)
{
    for (size_t i = 0; i < r->status->type_count; i++) {
        const struct type_status *t = &r->status->types[i];
        enum held_by hold = hold_of(t);

        r->waiting += type_backlog(t);
        r->running += t->running;
        if (type_backlog(t) > 0 && hold != HOLD_QUEUE && !(hold == HOLD_NOTHING && t->in_pause))
            add_row(r, (struct row){.type = t, .jobs = type_backlog(t), .hold = hold});
    }
}

/* Takes a batch of which jobs are set aside. */
static int add_batch(const struct batch *b, void *arg)
{
    struct report *r = arg;
    struct row *rows = realloc(r->rows, (r->row_count + 1) * sizeof *rows);

    if (!rows)
        return error_no_memory(&r->w->error, "report");
    r->rows = rows;
    add_row(r, (struct row){.batch = waits_pause("batch", b->name, b->pause),
                            .jobs = b->aside,
                            .hold = hold_of_pause(b->pause, HOLD_BATCH)});
    return 0;
}

static int add_batches(struct report *r)
{
    int64_t aside = 0;

    for (size_t i = 0; i < r->status->type_count; i++)
        aside += r->status->types[i].aside;
    return aside > 0 ? batch_each(r->w, true, add_batch, r) : 0;
}

static const char *kind_of(const struct row *row)
{
    return row->type ? "type" : row->queue ? "queue" : "batch";
}

static const char *name_of(const struct row *row)
{
    return row->type ? row->type->name : row->queue ? row->queue->name : answer_text(row->batch, "batch");
}

/* Sorts what is stuck first, then by jobs. */
static int by_weight(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    bool stuck = x->hold >= HOLD_NEVER;

    if (stuck != (y->hold >= HOLD_NEVER))
        return stuck ? -1 : 1;
    if (x->jobs != y->jobs)
        return x->jobs > y->jobs ? -1 : 1;
    return strcmp(name_of(x), name_of(y));
}

static int read_rows(struct report *r)
{
    int status;

    r->rows = calloc(r->status->type_count + r->status->queue_count + 1, sizeof *r->rows);
    if (!r->rows)
        return error_no_memory(&r->w->error, "report");
    add_types(r);
    if (!add_queues(r))
        return error_no_memory(&r->w->error, "report");
    status = add_batches(r);
    qsort(r->rows, r->row_count, sizeof *r->rows, by_weight);
    return status;
}

/* ---- What is wrong besides */

static void judge_workers(struct report *r)
{
    const struct status *s = r->status;
    size_t silent = s->worker_count - r->heard;
    char workers[PHRASE_SIZE];

    counted((int64_t)silent, "worker", workers);
    if (silent > 0)
        doctor_add(&r->found, "workers", r->heard > 0 ? DOCTOR_WARNING : DOCTOR_WRONG,
                   r->heard > 0 ? "look at their hosts and logs; other workers take their jobs back"
                                : "look at their hosts and logs, or start others, which take their jobs back",
                   "%s of %zu silent for longer than a lease", workers, s->worker_count);
}

/* Nothing holds the jobs of a type, a worker has executors free, and yet none starts. */
static bool is_stalled(const struct report *r, const struct row *row)
{
    const struct type_status *t = row->type;

    return t && row->hold == HOLD_NOTHING && t->served && t->free > 0 && t->running == 0 &&
           t->rate_now <= 0 && t->oldest_us > 0 && r->status->now_us - t->oldest_us > STALL_US;
}

static void judge_stalls(struct report *r)
{
    char jobs[PHRASE_SIZE], span[PHRASE_SIZE];

    for (size_t i = 0, said = 0; i < r->row_count && said < SHOWN; i++) {
        const struct type_status *t = r->rows[i].type;

        if (!is_stalled(r, &r->rows[i]))
            continue;
        said++;
        doctor_add(&r->found, t->name, DOCTOR_WRONG,
                   "look at the logs of its workers (weir worker list); run weir doctor",
                   "nothing starts, although nothing holds its jobs and executors are free: %s, the first "
                   "enqueued %s ago",
                   counted(r->rows[i].jobs, "job", jobs),
                   format_span(r->status->now_us - t->oldest_us, span));
    }
}

/* Queues that a key of another kind stops. */
static void judge_stopped(struct report *r)
{
    const char *queue;
    json_t *wrong;

    json_object_foreach(r->status->stopped, queue, wrong) {
        char name[160];

        snprintf(name, sizeof name, "queue %.128s", queue);
        doctor_add(&r->found, name, DOCTOR_WRONG, "weir doctor --repair, or rename or delete that key",
                   "nothing of it starts: %s", json_string_value(wrong));
    }
}

/* A limit whose key somebody has paused. */
static void judge_paused_key(struct report *r, const json_t *row)
{
    char name[160], what[256], resume[320];

    snprintf(name, sizeof name, "limit %.128s", answer_text(row, "limit_name"));
    paused_key_resume(row, resume, sizeof resume);
    paused_key_text(row, r->status->now_us, what, sizeof what);
    doctor_add(&r->found, name, DOCTOR_WARNING, *resume ? resume : NULL, "%s", what);
}

static void judge_paused_keys(struct report *r)
{
    json_t *rows = paused_keys_document(r->status->paused_keys);
    size_t count = json_array_size(rows);
    int64_t shown = r->hide_keys ? 0 : KEYS_SHOWN, more = r->status->paused_key_count - shown;
    char keys[PHRASE_SIZE];

    for (size_t i = 0; i < count && (int64_t)i < shown; i++)
        judge_paused_key(r, json_array_get(rows, i));
    if (more > 0)
        doctor_add(&r->found, "keys", DOCTOR_WARNING, "weir rate keys NAME", "%s%s %s paused",
                   counted(more, "key", keys), shown ? " more" : "", more == 1 ? "is" : "are");
    json_decref(rows);
}

/* Reads what was recorded lately. *history stays NULL where it cannot be read, which is then said. */
static int look_back(struct report *r, const char *name, bool of_limit, json_t **history)
{
    const struct history_call call = {.name = name, .of_limit = of_limit, .slots = REPORT_MINUTES};
    int status = history_ask(r->w, r->status->now_us, &call, history);

    if (status == 0 || status == WEIR_EUNREACHABLE)
        return status;
    doctor_add(&r->found, name, DOCTOR_WARNING, "weir doctor says what is wrong", "its history: %s",
               r->w->error.text);
    return 0;
}

static int64_t sum_of(const json_t *history, const char *member)
{
    const json_t *slots = json_object_get(history, "slots");
    int64_t sum = 0;

    for (size_t i = 0; i < json_array_size(slots); i++)
        sum += answer_int(json_array_get(slots, i), member);
    return sum;
}

static int judge_type(struct report *r, const struct type_status *t)
{
    json_t *history = NULL;
    int status = look_back(r, t->name, false, &history);
    int64_t done = sum_of(history, "done"), dead = sum_of(history, "dead"),
            failed = dead + sum_of(history, "retried");
    char todo[256], n[PHRASE_SIZE];

    snprintf(todo, sizeof todo, dead > 0 ? "weir dead list --type %s" : "weir job list 'type:%s state:retry'",
             t->name);
    if (done == 0 && failed >= FAILURES_MOST)
        doctor_add(&r->found, t->name, DOCTOR_WRONG, todo, "each of %s of the last %d minutes failed",
                   counted(failed, "attempt", n), REPORT_MINUTES);
    else if (dead > 0)
        doctor_add(&r->found, t->name, DOCTOR_WARNING, todo, "%s died in the last %d minutes",
                   counted(dead, "job", n), REPORT_MINUTES);
    json_decref(history);
    return status;
}

/* Judges slots that a limit granted, and no handler began in. */
static void judge_slots(struct report *r, const char *name, const struct history_sum *sum)
{
    int64_t lost = sum->no_executor + sum->late, all = sum->granted + lost;
    char slots[32], of[32], busy[32], late[32];

    if (lost >= LOST_MOST && 10 * lost >= all)
        doctor_add(&r->found, name, DOCTOR_WARNING, "raise -c of its workers, or start more",
                   "%s of %s slots of the last %d minutes were lost: %s had no free executor, %s a late "
                   "handler",
                   grouped((uint64_t)lost, slots), grouped((uint64_t)all, of), REPORT_MINUTES,
                   grouped((uint64_t)sum->no_executor, busy), grouped((uint64_t)sum->late, late));
}

/* Names the key of a limit that has at least half of what is parked there. What cannot be read says nothing: a limit without keys has none. */
static void judge_flood(struct report *r, const char *name, const char *limit)
{
    char todo[320], jobs[32], of[32];
    const json_t *first;
    json_t *keys;
    int64_t parked, all;

    if (r->hide_keys || view_rate_keys(r->w, limit, 1, NULL, &keys, NULL) < 0)
        return;
    first = json_array_get(json_object_get(keys, "longest"), 0);
    parked = answer_int(first, "parked");
    all = answer_int(keys, "parked");
    snprintf(todo, sizeof todo, "weir rate keys %.128s; weir rate pause %.128s/KEY pauses one of them", limit,
             limit);
    if (parked >= FLOOD_LEAST && 2 * parked >= all && answer_int(keys, "key_count") > 1)
        doctor_add(&r->found, name, DOCTOR_WARNING, todo, "%s of %s waiting are of key %.60s",
                   grouped((uint64_t)parked, jobs), grouped((uint64_t)all, of), answer_text(first, "key"));
    json_decref(keys);
}

static int judge_limit(struct report *r, const char *limit)
{
    json_t *history = NULL;
    int status = look_back(r, limit, true, &history);
    struct history_sum sum = history_sum(history);
    char name[160], todo[256], jobs[PHRASE_SIZE];

    snprintf(name, sizeof name, "limit %.128s", limit);
    snprintf(todo, sizeof todo, "weir rate show %.128s; lower it with weir rate set, or let it adapt", limit);
    judge_flood(r, name, limit);
    judge_slots(r, name, &sum);
    if (sum.throttled > 0)
        doctor_add(&r->found, name, DOCTOR_WARNING, todo,
                   "the other side throttled %s in the last %d minutes", counted(sum.throttled, "job", jobs),
                   REPORT_MINUTES);
    json_decref(history);
    return status;
}

/* Judges the limits in the way, each once. */
static int judge_limits(struct report *r)
{
    const char *judged[SHOWN];
    size_t count = 0;
    int status = 0;

    for (size_t i = 0; status == 0 && i < r->row_count && count < SHOWN; i++) {
        const char *limit = r->rows[i].type ? answer_text(r->rows[i].type->waits_for, "limit_name") : "";
        bool known = !*limit;

        for (size_t j = 0; j < count && !known; j++)
            known = strcmp(judged[j], limit) == 0;
        if (known)
            continue;
        judged[count++] = limit;
        status = judge_limit(r, limit);
    }
    return status;
}

static int by_failures(const void *a, const void *b)
{
    const struct type_status *x = *(const struct type_status *const *)a,
                             *y = *(const struct type_status *const *)b;
    int64_t more = y->retried + y->dead - x->retried - x->dead;

    return more ? (more > 0 ? 1 : -1) : strcmp(x->name, y->name);
}

static int judge_types(struct report *r)
{
    const struct type_status **types = calloc(r->status->type_count + 1, sizeof *types);
    size_t count = 0;
    int status = 0;

    if (!types)
        return error_no_memory(&r->w->error, "report");
    for (size_t i = 0; i < r->status->type_count; i++)
        if (r->status->types[i].retried + r->status->types[i].dead > 0)
            types[count++] = &r->status->types[i];
    qsort(types, count, sizeof *types, by_failures);
    for (size_t i = 0; status == 0 && i < count && i < LOOKED_AT; i++)
        status = judge_type(r, types[i]);
    free(types);
    return status;
}

static int judge(struct report *r)
{
    int status;

    judge_workers(r);
    judge_stalls(r);
    judge_stopped(r);
    judge_paused_keys(r);
    status = judge_types(r);
    if (status == 0)
        status = judge_limits(r);
    return status == 0 ? doctor_glance(r->w, &r->found) : status;
}

/* ---- The document */

bool report_is_wrong(const json_t *check)
{
    return strcmp(answer_text(check, "state"), doctor_states[DOCTOR_WRONG]) == 0;
}

/* What is wrong before what may become so. */
static json_t *checks_in_order(const json_t *checks)
{
    json_t *in_order = json_array(), *check;
    size_t i;

    for (int wrong = 1; wrong >= 0; wrong--)
        json_array_foreach((json_t *)checks, i, check)
            if (report_is_wrong(check) == wrong)
                json_array_append(in_order, check);
    return in_order;
}

static const char *verdict_of(const struct report *r, const json_t *checks)
{
    if (r->waiting + r->running > 0 && r->status->worker_count > 0 && r->heard == 0)
        return "unknown";
    for (enum held_by hold = HOLD_NEVER; hold < HOLD_COUNT; hold++)
        if (r->counts[hold] > 0)
            return "stuck";
    if (report_is_wrong(json_array_get(checks, 0)))
        return "wrong";
    return r->waiting + r->running > 0 ? "flowing" : "idle";
}

static json_t *waits_of(const struct row *row)
{
    if (row->batch)
        return document_make(row->batch, waits_members);
    if (row->queue)
        return json_pack("{s:o, s:o}", "queue", text_word(row->queue->name), "paused",
                         pause_document(row->queue->pause));
    return row->type->waits_for ? document_make(row->type->waits_for, waits_members) : json_null();
}

static json_t *row_document(const struct row *row)
{
    json_t *doc = row->type    ? type_document(row->type)
                  : row->queue ? queue_document(row->queue)
                               : json_object();

    if (doc) {
        json_object_set_new(doc, kind_of(row), text_word(name_of(row)));
        json_object_set_new(doc, "jobs", json_integer(row->jobs));
        json_object_set_new(doc, "stuck", json_boolean(row->hold >= HOLD_NEVER));
        json_object_set_new(doc, "waits_for", waits_of(row));
    }
    return doc;
}

static json_t *report_document(const struct report *r)
{
    json_t *checks = checks_in_order(r->found.checks), *rows = json_array(), *holds = json_object();
    const char *verdict = verdict_of(r, checks);
    size_t shown = r->row_count < SHOWN ? r->row_count : SHOWN;

    for (size_t i = 0; i < shown; i++)
        json_array_append_new(rows, row_document(&r->rows[i]));
    for (enum held_by hold = 0; hold < HOLD_COUNT; hold++)
        json_object_set_new(holds, hold_names[hold], json_integer(r->counts[hold]));
    return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:o}", "verdict", verdict, "at",
                     json_seconds(r->status->now_us), "waiting", (json_int_t)r->waiting, "running",
                     (json_int_t)r->running, "scheduled", (json_int_t)r->status->later, "worker_count",
                     (json_int_t)r->heard, "holds", holds, "constraints", rows, "more",
                     (json_int_t)(r->row_count - shown), "checks", checks);
}

int report_of(struct weir *w, const struct status *status, bool hide_keys, json_t **doc)
{
    struct report r = {.w = w, .status = status, .hide_keys = hide_keys};
    int rc;

    *doc = NULL;
    for (size_t i = 0; i < status->worker_count; i++)
        r.heard += !status->workers[i].silent;
    rc = read_rows(&r);
    if (rc == 0)
        rc = judge(&r);
    if (rc == 0)
        rc = document_done(w, report_document(&r), doc);
    doctor_free(&r.found);
    for (size_t i = 0; i < r.row_count; i++)
        json_decref(r.rows[i].batch);
    free(r.rows);
    return rc;
}

int view_report(struct weir *w, bool hide_keys, json_t **doc)
{
    struct status status;
    int rc = status_read(w, &status);

    *doc = NULL;
    if (rc == 0)
        rc = report_of(w, &status, hide_keys, doc);
    status_free(&status);
    return rc;
}
