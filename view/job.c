#include "view/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/job_list.h"
#include "queue/inspect/job_wait.h"
#include "queue/inspect/why.h"
#include "view/waits.h"
#include "view/write.h"

static const struct member worker_members[] = {
    MEMBER("name", WORD), MEMBER("host", WORD), MEMBER("pid", NUMBER, .optional = true), {.name = NULL}};

static const struct member name_members[] = {MEMBER("name", WORD), {.name = NULL}};

static const struct member failure_members[] = {MEMBER("at", TIME),
                                                MEMBER("worker", INNER, .inner = name_members),
                                                MEMBER("reason", WORD),
                                                MEMBER("after", SPAN, .optional = true),
                                                MEMBER("ran", SPAN, .optional = true),
                                                {.name = NULL}};

static const struct member members[] = {
    MEMBER("id", WORD),
    MEMBER("state", WORD),
    MEMBER("queue", WORD),
    MEMBER("type", WORD),
    MEMBER("key", WORD),
    MEMBER("batch", WORD),
    MEMBER("unique", WORD),
    MEMBER("unique_until", WORD),
    MEMBER("attempts", NUMBER),
    MEMBER("max_attempts", NUMBER),
    MEMBER("interrupted", NUMBER),
    MEMBER("alone", FLAG),
    MEMBER("throttled", NUMBER),
    MEMBER("timeout", SPAN),
    MEMBER("enqueued_at", TIME),
    MEMBER("due_at", TIME, .optional = true),
    MEMBER("failed_at", TIME),
    MEMBER("failure", WORD),
    MEMBER("failures", INNER, .optional = true, .inner = failure_members),
    MEMBER("cancelled_at", TIME),
    MEMBER("queue_paused", PAUSE),
    MEMBER("batch_paused", PAUSE),
    MEMBER("batch_cancelled_at", TIME),
    MEMBER("unreadable", WORD),
    MEMBER("waits_for", INNER, .inner = waits_members),
    MEMBER("list", WORD, .optional = true),
    MEMBER("place", NUMBER, .optional = true),
    MEMBER("of", NUMBER, .optional = true),
    MEMBER("ahead", NUMBER, .optional = true),
    MEMBER("turns_before", NUMBER, .optional = true),
    MEMBER("cost", COST, .optional = true),
    MEMBER("served", FLAG, .optional = true),
    MEMBER("gates", INNER, .optional = true, .inner = gate_members),
    MEMBER("worker", INNER, .optional = true, .inner = worker_members),
    MEMBER("since", TIME, .optional = true),
    MEMBER("started_at", TIME, .optional = true),
    MEMBER("waited", SPAN, .optional = true),
    MEMBER("ran", SPAN, .optional = true),
    MEMBER("took", SPAN, .optional = true),
    MEMBER("lease_until", TIME, .optional = true),
    MEMBER("outcome", WORD, .optional = true),
    MEMBER("reason", WORD, .optional = true),
    MEMBER("start", TIME, .optional = true),
    MEMBER("at_the_earliest", FLAG, .optional = true),
    MEMBER("because", WORD, .optional = true),
    {.name = NULL},
};

/* ---- How long it took: what the times say that are kept */

static void set_span(json_t *of, const char *member, int64_t from_us, int64_t to_us)
{
    if (from_us > 0 && to_us >= from_us)
        json_object_set_new(of, member, json_integer(to_us - from_us));
}

/* To each failed attempt how long after the one before, or after it came, it failed: so long it waited and ran. */
static void time_failures(json_t *failures, int64_t came_us)
{
    for (size_t i = json_array_size(failures); i-- > 0;) {
        json_t *failure = json_array_get(failures, i);
        int64_t at_us = answer_int(failure, "at");

        set_span(failure, "after", came_us, at_us);
        came_us = at_us;
    }
}

/* Since when it has waited for its last attempt: it came, was due, or failed then. */
static int64_t waits_since(const json_t *job, int64_t until_us)
{
    const int64_t times[] = {answer_int(job, "enqueued_at"), answer_int(job, "due_at"),
                             answer_int(job, "failed_at")};
    int64_t since_us = 0;

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] > since_us && times[i] <= until_us)
            since_us = times[i];
    return since_us;
}

static void time_job(json_t *job)
{
    const char *state = answer_text(job, "state");
    int64_t now_us = answer_int(job, "now"), since_us = answer_int(job, "since"),
            came_us = answer_int(job, "enqueued_at");
    bool runs = strcmp(state, "running") == 0, kept = strcmp(state, "finished") == 0,
         dead = strcmp(state, "dead") == 0;
    int64_t start_us = runs ? since_us : answer_int(job, "started_at"), end_us = runs ? now_us : since_us;

    time_failures(json_object_get(job, "failures"), came_us);
    if (start_us > 0 && start_us <= end_us) {
        set_span(job, "waited", waits_since(job, start_us), start_us);
        set_span(job, "ran", start_us, end_us);
        if (dead)
            set_span(json_array_get(json_object_get(job, "failures"), 0), "ran", start_us, end_us);
    }
    if (kept || dead)
        set_span(job, "took", came_us, end_us);
}

json_t *job_document(json_t *job)
{
    time_job(job);
    return document_make(job, members);
}

json_t *job_document_whole(json_t *job)
{
    json_t *doc = job_document(job);

    if (json_object_get(job, "result"))
        json_object_set(doc, VIEW_RESULT, json_object_get(job, "result"));
    view_add_body(doc, found_body(job));
    return doc;
}

/* A record has its time. */
static int record_place(const json_t *doc, const char *set, const char *member, struct find_place *place)
{
    snprintf(place->from, sizeof place->from, "%" PRId64 ":0", json_us(json_object_get(doc, member)));
    return snprintf(place->at, sizeof place->at, "%s", set);
}

bool job_place(const json_t *doc, const char *state, struct find_place *place)
{
    const char *list = json_text_of(doc, "list"),
               *worker = json_text_of(json_object_get(doc, "worker"), "name");
    int len = 0;

    snprintf(place->from, sizeof place->from, "%" PRId64, json_int_of(doc, "of") - json_int_of(doc, "place"));
    if (*list)
        len = snprintf(place->at, sizeof place->at, "%s", list);
    else if (strcmp(state, "dead") == 0)
        len = record_place(doc, "dead", "since", place);
    else if (strcmp(state, "scheduled") == 0 || strcmp(state, "retry") == 0)
        len = record_place(doc, "later", "start", place);
    else if (strcmp(state, "running") == 0 && *worker)
        len = snprintf(place->at, sizeof place->at, "active:%s", worker);
    return len > 0 && len < (int)sizeof place->at;
}

static const struct member cancel_members[] = {
    MEMBER("id", WORD),
    MEMBER("result", WORD),
    MEMBER("state", WORD),
    MEMBER("queue", WORD),
    MEMBER("worker", INNER, .inner = name_members),
    {.name = NULL},
};

json_t *cancel_document(const json_t *job)
{
    return document_make(job, cancel_members);
}

/* Nobody knows yet whether it is there. */
static json_t *early_document(const json_t *job)
{
    return json_pack("{s:O, s:n, s:O, s:O, s:O}", "id", json_object_get(job, "id"), "state", "looked_at",
                     json_object_get(job, "looked_at"), "of", json_object_get(job, "of"), "cursor",
                     json_object_get(job, "next"));
}

int view_job(struct weir *w, const char *id, const char *cursor, json_t **doc)
{
    json_t *job;
    int status = find_job_part(w, -1, id, cursor, clock_mono_us() + JOB_LOOK_US, &job);

    *doc = NULL;
    if (status == 0)
        status = document_done(w, found_too_early(job) ? early_document(job) : job_document_whole(job), doc);
    json_decref(job);
    return status;
}

int view_job_wait(struct weir *w, const char *id, struct job_wait *wait, json_t **doc)
{
    int status = job_wait_look(w, id, wait);

    *doc = NULL;
    if (status < 0)
        return status;
    return document_done(
        w, found_too_early(wait->job) ? early_document(wait->job) : job_document_whole(wait->job), doc);
}

int view_why(struct weir *w, const char *id, const char *cursor, json_t **doc)
{
    json_t *why;
    int status = find_job_part(w, -1, id, cursor, clock_mono_us() + JOB_LOOK_US, &why);
    bool early = found_too_early(why);

    *doc = NULL;
    if (status == 0 && !early)
        status = why_found(w, -1, NULL, &why);
    if (status == 0)
        status = document_done(w, early ? early_document(why) : job_document(why), doc);
    json_decref(why);
    return status;
}
