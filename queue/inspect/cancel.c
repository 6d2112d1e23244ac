#include "queue/inspect/cancel.h"

#include <string.h>

#include "core/given.h"
#include "core/script/script.h"
#include "queue/inspect/job_act.h"
#include "throttle/limit.h"

#define LOOKS 20 /* it may move between a look and what is then done to it */

/* An attempt to cancel looks for the job, and acts where it stands. */
struct attempt {
    struct weir *w;
    int64_t now_us;
    const char *id;
    json_t *job; /* as the last look found it */
    const char *result;
    bool over; /* that is what was done */
};

static void begin_call(struct attempt *at, struct args *a, const char *verb)
{
    *a = (struct args){0};
    script_begin(a, "cancel", at->w->prefix, at->now_us);
    args_add(a, at->id);
    args_add(a, verb);
}

/* Sends a, begun by begin_call, and frees it. *done: it was. */
static int end_call(struct attempt *at, struct args *a, bool *done)
{
    json_t *answer;
    int status = client_ask(at->w, "cancel", a, &answer);

    *done = json_is_true(json_object_get(answer, "done"));
    json_decref(answer);
    return status;
}

static void add_member(struct attempt *at, struct args *a, const char *name)
{
    const json_t *value = json_object_get(at->job, name);

    args_add_bytes(a, json_is_string(value) ? json_string_value(value) : "", json_string_length(value));
}

static int tell(struct attempt *at)
{
    struct args a;

    at->result = "told";
    begin_call(at, &a, "tell");
    args_add(&a, answer_text(json_object_get(at->job, "worker"), "name"));
    add_member(at, &a, "token");
    return end_call(at, &a, &at->over);
}

/* The record in which it stands, byte for byte: its header, and its entry behind it. */
static int take(struct attempt *at)
{
    struct args a;

    at->result = "removed";
    begin_call(at, &a, "take");
    add_member(at, &a, "header");
    add_member(at, &a, "entry");
    return end_call(at, &a, &at->over);
}

/* Where it waits, or close to that. */
static int leave(struct attempt *at)
{
    struct job_acted acted;
    int status = job_act_there(at->w, at->now_us, at->id, "cancel", at->job, &acted);

    at->result = acted.marked > 0 ? "marked" : acted.done > 0 ? "removed" : "already";
    at->over = acted.done + acted.left > 0;
    json_decref(acted.first);
    return status;
}

static int refuse(struct attempt *at, const char *why)
{
    return error_set(&at->w->error, WEIR_EINPUT, "job %s: %s", at->id, why);
}

static int cancel_found(struct attempt *at)
{
    const char *state = answer_text(at->job, "state");

    if (strcmp(state, "running") == 0)
        return tell(at);
    if (strcmp(state, "scheduled") == 0 || strcmp(state, "retry") == 0)
        return take(at);
    if (strcmp(state, "dead") == 0)
        return refuse(at, "is dead already and will not run; weir dead remove takes it away");
    if (strcmp(state, "finished") == 0)
        return refuse(at, "has finished already; there is nothing to cancel");
    return leave(at);
}

/* Where it holds the lock, the lock is free then. */
static int unlock(struct attempt *at, const char *lock)
{
    int status = client_at(at->w, 0);

    if (status < 0)
        return status;
    do {
        struct args a;

        begin_call(at, &a, "unlock");
        args_add(&a, lock);
        status = end_call(at, &a, &at->over);
    } while (!at->over && client_at_next(at->w, &status));
    return status;
}

/* No look has found it. */
static int cancel_missing(struct attempt *at, const char *lock)
{
    int status;

    if (!lock)
        return at->w->error.status;
    at->result = "unlocked";
    at->job = json_pack("{s:s}", "id", at->id);
    status = unlock(at, lock);
    if (status == 0 && !at->over)
        status = error_set(&at->w->error, WEIR_ENOTFOUND,
                           "job %s: no such job here, and it does not hold the unique key %.130s; check both",
                           at->id, lock);
    return status;
}

static int look(struct attempt *at, const char *lock)
{
    int status;

    json_decref(at->job);
    status = find_job(at->w, at->now_us, at->id, &at->job);
    return status == 0 ? cancel_found(at) : status == WEIR_ENOTFOUND ? cancel_missing(at, lock) : status;
}

int cancel_job(struct weir *w, int64_t now_us, const char *id, const char *lock, json_t **job)
{
    struct attempt at = {.w = w, .now_us = now_us, .id = id};
    int status = 0;

    *job = NULL;
    if (lock && limit_name_check("unique key", lock, &w->error) < 0)
        return w->error.status;
    for (int looks = 0; looks < LOOKS && status == 0 && !at.over; looks++)
        status = look(&at, lock);
    if (status == 0 && !at.over)
        status =
            error_set(&w->error, WEIR_ENOTNOW, "job %s: it moves too fast to be cancelled; try again", id);
    if (status == 0) {
        json_object_set_new(at.job, "result", json_string(at.result));
        *job = json_incref(at.job);
    }
    json_decref(at.job);
    return status;
}

int weir_cancel(struct weir *w, const char *id)
{
    json_t *job;
    int status;

    if (GIVEN(w, PASSED(id)) < 0)
        return WEIR_EUSAGE;
    status = cancel_job(w, -1, id, NULL, &job);
    json_decref(job);
    return status;
}
