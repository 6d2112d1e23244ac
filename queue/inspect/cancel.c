#include "queue/inspect/cancel.h"

#include <string.h>

#include "core/given.h"
#include "core/script/script.h"

#define LOOKS 20 /* it may move between a look and what is then done to it */

/* One attempt to cancel. */
struct attempt {
    struct weir *w;
    int64_t now_us;
    const char *id;
    json_t *job;   /* as the last look found it */
    bool marked;   /* by this call */
    int marked_at; /* that partition */
    const char *result;
    bool over; /* that is what was done */
};

static void begin_call(struct attempt *at, struct args *a, const char *verb)
{
    args_init(a);
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

static int mark(struct attempt *at, bool marked)
{
    struct args a;
    bool ignored;

    if (marked)
        at->marked_at = at->w->at;
    else if (client_at(at->w, at->marked_at) < 0)
        return at->w->error.status;
    begin_call(at, &a, marked ? "mark" : "unmark");
    at->marked = marked;
    return end_call(at, &a, &ignored);
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

/* The mark stays. In a lane others may wait behind it, and for longer than they need. */
static int keep(struct attempt *at)
{
    static const char *const words[] = {"queue", "type", "batch", "list"};
    struct args a;
    bool ignored;

    begin_call(at, &a, "keep");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add_member(at, &a, words[i]);
    return end_call(at, &a, &ignored);
}

/* It has gone to another partition since it was marked: the mark goes too. */
static int follow(struct attempt *at)
{
    int here = at->w->at, status = mark(at, false);

    if (status == 0)
        status = client_at(at->w, here);
    return status == 0 ? mark(at, true) : status;
}

/* Once it is marked, one more look: only who was still there then will meet a claim that sees it. */
static int wait_for_claim(struct attempt *at)
{
    if (at->marked && at->marked_at != at->w->at)
        return follow(at);
    if (!at->marked && !json_object_get(at->job, "cancelled_at"))
        return mark(at, true);
    at->result = at->marked ? "marked" : "already";
    at->over = true;
    return keep(at);
}

static int refuse(struct attempt *at, const char *why)
{
    int status = at->marked ? mark(at, false) : 0;

    return status ? status : error_set(&at->w->error, WEIR_EINPUT, "job %s: %s", at->id, why);
}

static int cancel_found(struct attempt *at)
{
    const char *state = answer_text(at->job, "state");

    if (strcmp(state, "running") == 0)
        return tell(at);
    if (strcmp(state, "scheduled") == 0 || strcmp(state, "retry") == 0)
        return take(at);
    if (strcmp(state, "moving") == 0)
        return 0; /* the next look finds it where it has come */
    if (strcmp(state, "dead") == 0)
        return refuse(at, "is dead already and will not run; weir dead remove takes it away");
    if (strcmp(state, "finished") == 0)
        return refuse(at, "has finished already; there is nothing to cancel");
    return wait_for_claim(at);
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

    if (at->marked)
        return refuse(at, "has ended meanwhile; there is nothing to cancel");
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
    if (lock && !name_is_valid(lock, strlen(lock)))
        return error_set(&w->error, WEIR_EINPUT,
                         "unique key '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -", lock);
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
