#include "queue/inspect/cancel.h"

#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/client/reply.h"
#include "core/script/script.h"

#define LOOKS 20 /* it may move between a look and what is then done to it */

/* One attempt to cancel. */
struct attempt {
    struct weir *w;
    int64_t now_us;
    const char *id;
    bool marked; /* by this call */
    bool over;   /* out->result is what was done */
    struct cancel *out;
};

static int number_of(const struct redisReply *reply, bool *yes, struct error *e)
{
    if (reply->type != REDIS_REPLY_INTEGER)
        return reply_array(reply, SIZE_MAX, "cancel", e);
    *yes = reply->integer == 1;
    return 0;
}

/* Sends a, begun by begin_call, and frees it. *yes: it was done. */
static int end_call(struct attempt *at, struct args *a, bool *yes)
{
    struct redisReply *reply = NULL;
    int status = client_call(at->w, a, &reply, NULL);

    args_free(a);
    if (status == 0)
        status = number_of(reply, yes, &at->w->error);
    if (reply)
        freeReplyObject(reply);
    return status;
}

static void begin_call(struct attempt *at, struct args *a, const char *verb)
{
    args_init(a);
    script_begin(a, "cancel", at->w->prefix, at->now_us);
    args_add(a, at->id);
    args_add(a, verb);
}

static int mark(struct attempt *at)
{
    struct args a;
    bool ignored;

    begin_call(at, &a, "mark");
    at->marked = true;
    return end_call(at, &a, &ignored);
}

static int unmark(struct attempt *at)
{
    struct args a;
    bool ignored;

    if (!at->marked)
        return 0;
    begin_call(at, &a, "unmark");
    at->marked = false;
    return end_call(at, &a, &ignored);
}

static int tell(struct attempt *at)
{
    struct args a;

    at->out->result = CANCEL_TOLD;
    begin_call(at, &a, "tell");
    args_add(&a, at->out->job.worker);
    args_add(&a, at->out->job.token);
    return end_call(at, &a, &at->over);
}

/* The record in which it stands, byte for byte: its header, and its entry behind it. */
static int take(struct attempt *at)
{
    const struct found_job *job = &at->out->job;
    size_t head = strlen(job->header), len = (size_t)(job->body.at - job->entry) + job->body.len;
    char *record = malloc(head + 1 + len);
    struct args a;

    if (!record)
        return error_set(&at->w->error, WEIR_EINTERNAL, "cancel: out of memory; free some and try again");
    memcpy(record, job->header, head);
    record[head] = '\n';
    memcpy(record + head + 1, job->entry, len);
    at->out->result = CANCEL_REMOVED;
    begin_call(at, &a, "take");
    args_add_bytes(&a, record, head + 1 + len);
    free(record);
    return end_call(at, &a, &at->over);
}

/* The mark stays. In a lane others may wait behind it, and for longer than they need. */
static int keep(struct attempt *at)
{
    struct args a;
    bool ignored;

    begin_call(at, &a, "keep");
    args_add(&a, at->out->job.queue);
    args_add(&a, at->out->job.type);
    args_add(&a, at->out->job.batch);
    args_add(&a, at->out->job.place);
    return end_call(at, &a, &ignored);
}

/* Once it is marked, one more look: only who was still there then will meet a claim that sees it. */
static int wait_for_claim(struct attempt *at)
{
    if (!at->marked && at->out->job.cancelled_us == 0)
        return mark(at);
    at->out->result = at->marked ? CANCEL_MARKED : CANCEL_BEFORE;
    at->over = true;
    return keep(at);
}

static int refuse(struct attempt *at, const char *why)
{
    int status = unmark(at);

    return status ? status : error_set(&at->w->error, WEIR_EINPUT, "job %s: %s", at->id, why);
}

static int cancel_found(struct attempt *at)
{
    switch (at->out->job.state) {
    case JOB_WAITING:
    case JOB_PARKED:
    case JOB_ASIDE:
        return wait_for_claim(at);
    case JOB_RUNNING:
        return tell(at);
    case JOB_SCHEDULED:
    case JOB_RETRY:
        return take(at);
    case JOB_DEAD:
        return refuse(at, "is dead already and will not run; weir dead remove takes it away");
    case JOB_FINISHED:
        return refuse(at, "has finished already; there is nothing to cancel");
    }
    return 0;
}

/* No look has found it. */
static int cancel_missing(struct attempt *at, const char *lock)
{
    struct args a;
    int status;

    if (at->marked)
        return refuse(at, "has ended meanwhile; there is nothing to cancel");
    if (!lock)
        return at->w->error.status;
    at->out->result = CANCEL_UNLOCKED;
    begin_call(at, &a, "unlock");
    args_add(&a, lock);
    status = end_call(at, &a, &at->over);
    if (status == 0 && !at->over)
        status = error_set(&at->w->error, WEIR_ENOTFOUND,
                           "job %s: no such job here, and it does not hold the unique key %.130s; check both",
                           at->id, lock);
    return status;
}

int cancel_job(struct weir *w, int64_t now_us, const char *id, const char *lock, struct cancel *out)
{
    struct attempt at = {.w = w, .now_us = now_us, .id = id, .out = out};
    int status = 0;

    *out = (struct cancel){.result = CANCEL_REMOVED};
    if (lock && !name_is_valid(lock, strlen(lock)))
        return error_set(&w->error, WEIR_EINPUT,
                         "unique key '%.60s': not a name; use 1 to 128 of A-Z a-z 0-9 _ . -", lock);
    for (int look = 0; look < LOOKS && status == 0 && !at.over; look++) {
        found_job_free(&out->job);
        status = find_job(w, now_us, id, &out->job);
        status = status == 0                ? cancel_found(&at)
                 : status == WEIR_ENOTFOUND ? cancel_missing(&at, lock)
                                            : status;
    }
    if (status == 0 && !at.over)
        return error_set(&w->error, WEIR_ENOTNOW, "job %s: it moves too fast to be cancelled; try again", id);
    return status;
}

void cancel_free(struct cancel *cancel)
{
    found_job_free(&cancel->job);
}

int weir_cancel(struct weir *w, const char *id)
{
    struct cancel cancel;
    int status = cancel_job(w, -1, id, NULL, &cancel);

    cancel_free(&cancel);
    return status;
}
