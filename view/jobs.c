#include "view/jobs.h"

#include "view/job.h"

static const struct member worker_members[] = {MEMBER("name", WORD), {.name = NULL}};

static const struct member members[] = {
    MEMBER("id", WORD),
    MEMBER("state", WORD),
    MEMBER("type", WORD),
    MEMBER("queue", WORD),
    MEMBER("key", WORD),
    MEMBER("batch", WORD),
    MEMBER("enqueued_at", TIME),
    MEMBER("attempts", NUMBER),
    MEMBER("interrupted", NUMBER),
    MEMBER("throttled", NUMBER),
    MEMBER("failed_at", TIME),
    MEMBER("reason", WORD),
    MEMBER("cancelled_at", TIME),
    MEMBER("list", WORD, .optional = true),
    MEMBER("place", NUMBER, .optional = true),
    MEMBER("of", NUMBER, .optional = true),
    MEMBER("start", TIME, .optional = true),
    MEMBER("since", TIME, .optional = true),
    MEMBER("outcome", WORD, .optional = true),
    MEMBER("worker", INNER, .optional = true, .inner = worker_members),
    {.name = NULL},
};

json_t *jobs_document(const json_t *jobs)
{
    return document_list(jobs, members);
}

static json_t *cursor_of(const json_t *page)
{
    json_t *next = json_object_get(page, "next");

    return next ? json_incref(next) : json_null();
}

int view_jobs(struct weir *w, const struct job_search *s, const char *cursor, const struct job_bounds *most,
              json_t **doc)
{
    json_t *page;
    int status = job_list_page(w, -1, s, cursor, most, &page);

    *doc = NULL;
    if (status == 0)
        status = document_done(w,
                               json_pack("{s:o, s:O, s:O, s:o}", "jobs",
                                         jobs_document(json_object_get(page, "jobs")), "looked_at",
                                         json_object_get(page, "looked_at"), "of",
                                         json_object_get(page, "of"), "cursor", cursor_of(page)),
                               doc);
    json_decref(page);
    return status;
}

int view_job_actions(struct weir *w, const struct job_search *s, const char *action, const char *cursor,
                     const struct job_bounds *most, json_t **doc)
{
    int status = job_actions(w, -1, s, action, cursor, most, doc);

    job_actions_note(w, s, action, answer_int(*doc, "jobs"));
    if (status == 0) {
        json_object_set_new(*doc, "cursor", cursor_of(*doc));
        json_object_del(*doc, "next");
    }
    return status;
}

json_t *job_actions_dry_document(const char *action, const json_t *counts)
{
    return json_pack("{s:b, s:s, s:O, s:O*}", "dry_run", 1, "action", action, "jobs",
                     json_object_get(counts, "jobs"), "batch", json_object_get(counts, "batch"));
}

int view_job_actions_dry(struct weir *w, const struct job_search *s, const char *action, const char *cursor,
                         const struct job_bounds *most, json_t **doc)
{
    json_t *page, *made;
    int status = job_actions_count_page(w, -1, s, action, cursor, most, &page);

    *doc = NULL;
    if (status == 0) {
        made = job_actions_dry_document(action, page);
        json_object_set(made, "looked_at", json_object_get(page, "looked_at"));
        json_object_set_new(made, "cursor", cursor_of(page));
        status = document_done(w, made, doc);
    }
    json_decref(page);
    return status;
}

int view_job_run(struct weir *w, const char *id, json_t **doc)
{
    json_t *job, *made;
    int status = job_run(w, -1, id, &job);

    *doc = NULL;
    if (status == 0) {
        made = job_document(job);
        json_object_set(made, "was", json_object_get(job, "was"));
        json_object_set(made, "result", json_object_get(job, "result"));
        status = document_done(w, made, doc);
    }
    json_decref(job);
    return status;
}
