/* Enqueueing one job. Its id is made here, so that sending it again after a lost connection adds no second
 * job. */
#include "producer/enqueue.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/duration.h"
#include "core/given.h"
#include "producer/retry.h"
#include "queue/batch/batch.h"

#define KEEP_GIVEN_MS (24 * 3600 * 1000) /* a given id is accepted once a day */
#define KEEP_MADE_MS (60 * 1000)         /* a made one is only repeated by ourselves */
#define GIVE_UP_US (15 * 1000000) /* after that long, well within KEEP_MADE_MS, the outcome stays unknown */
#define SECONDS_MOST 4102444800.0 /* the year 2100 */

static int read_times(const struct weir_job_spec *spec, struct enqueue *job, struct error *e)
{
    if (spec->delay_s != 0 && spec->at_s != 0)
        return error_set(e, WEIR_EUSAGE, "wrong job: either a delay or a time");
    if (!(spec->delay_s >= 0 && spec->delay_s < SECONDS_MOST) ||
        !(spec->at_s >= 0 && spec->at_s < SECONDS_MOST))
        return error_set(e, WEIR_EINPUT,
                         "wrong job: its delay or time must lie between now and the year 2100");
    job->delay_us = spec->delay_s > 0 ? (int64_t)(spec->delay_s * 1e6 + 0.5) : -1;
    job->at_us = spec->at_s > 0 ? (int64_t)(spec->at_s * 1e6 + 0.5) : -1;
    return 0;
}

/* Reads "KEY", "KEY:waiting", "KEY:10m". */
static int read_unique(const char *unique, struct enqueue *job, struct error *e)
{
    size_t len = strcspn(unique, ":");
    const char *until = unique[len] ? unique + len + 1 : NULL;
    struct error why;
    int64_t us = 0;

    if (!name_is_valid(unique, len))
        return error_set(
            e, WEIR_EINPUT,
            "unique '%.60s': the key must be 1 to 128 of A-Z a-z 0-9 _ . -, then nothing, :waiting or "
            "a time such as :10m",
            unique);
    job->unique = (struct span){unique, len};
    job->lock_ms = until ? LOCK_UNTIL_START : LOCK_UNTIL_END;
    if (!until || strcmp(until, "waiting") == 0)
        return 0;
    if (duration_parse(until, &us, &why) || us < 1000 || us / 1000 > LOCK_MOST_MS)
        return error_set(e, WEIR_EINPUT,
                         "unique '%.60s': behind the key stands :waiting, or a time from :1ms to :3650d",
                         unique);
    job->lock_ms = (us + 999) / 1000;
    return 0;
}

/* Checks what job_write does not, and is not written into the body. */
static int read_extras(const struct weir_job_spec *spec, struct enqueue *job, struct error *e)
{
    int status = read_times(spec, job, e);

    if (!status && spec->unique)
        status = read_unique(spec->unique, job, e);
    if (status || !spec->batch)
        return status;
    job->batch = span_str(spec->batch);
    if (!name_is_valid(job->batch.at, job->batch.len))
        return error_set(e, WEIR_EINPUT, "batch '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         spec->batch);
    return 0;
}

/* Sends until there is an answer. A command that has surely not reached Redis is sent once. */
static int send_until_answered(struct weir *w, const struct args *a, struct span id,
                               struct redisReply **reply)
{
    int64_t end_us = clock_mono_us() + GIVE_UP_US;
    bool sent, in_doubt = false;
    int status, attempt = 0;

    do {
        retry_sleep(attempt++);
        status = client_call(w, a, reply, &sent);
        in_doubt = in_doubt || (status == WEIR_EUNREACHABLE && sent);
    } while (status == WEIR_EUNREACHABLE && in_doubt && clock_mono_us() < end_us);
    if (status == WEIR_EUNREACHABLE && in_doubt) {
        struct error why = w->error;

        return error_set(&w->error, WEIR_ENOTNOW,
                         "outcome unknown: %.300s; enqueue it again with the id %.*s, it arrives once",
                         why.text, (int)id.len, id.at);
    }
    return status;
}

/* Checks the partition: a batch has one, that of its first type. */
static int check_place(struct weir *w, const struct enqueue *job)
{
    int count, place, home, status = client_learn(w, &count);
    char batch[129];

    if (status || count == 1)
        return status;
    home = partition_home(job->type.at, job->type.len, count);
    snprintf(batch, sizeof batch, "%.*s", (int)job->batch.len, job->batch.at);
    status = batch_place(w, batch, home, &place);
    if (status || place == home)
        return status;
    return error_set(
        &w->error, WEIR_EINPUT,
        "wrong job: type %.*s lives on partition %d and batch %s on %d; a batch has one partition, that of "
        "its first type, so use another batch for it",
        (int)job->type.len, job->type.at, home, batch, place);
}

/* Sends a job; id (may be NULL) is as of enqueue_job. */
static int send_job(struct weir *w, const struct enqueue *job, char *id, enum enqueue_result *result)
{
    struct redisReply *reply = NULL;
    struct span answered;
    struct args a = {0};
    int status = job->batch.at ? check_place(w, job) : 0;

    if (!status)
        status = client_at_home(w, job->type.at, job->type.len);
    if (status)
        return status;
    enqueue_request(&a, w->prefix, -1, job);
    status = send_until_answered(w, &a, job->id, &reply);
    if (!status)
        status = enqueue_reply(reply, job, result, &answered, &w->error);
    if (!status && id)
        snprintf(id, WEIR_ID_SIZE, "%.*s", (int)answered.len, answered.at);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

int enqueue_job(struct weir *w, const struct weir_job_spec *spec, char id[WEIR_ID_SIZE],
                enum enqueue_result *result)
{
    struct text body = {0};
    struct job_view view;
    struct job_cost cost;
    char tag[17];
    struct enqueue job = {.tag = tag, .keep_ms = spec->id ? KEEP_GIVEN_MS : KEEP_MADE_MS};
    int status = read_extras(spec, &job, &w->error);

    if (!status)
        status = job_write(&body, spec, &view, &w->error);
    if (status)
        goto out;
    job_make_id(tag);
    job.queue = view.queue.at ? view.queue : (struct span){"default", strlen("default")};
    job.type = view.type;
    job.id = view.id;
    job_cost_of(&view, &cost);
    job.cost = &cost;
    job.body = (struct span){body.at, body.len};
    status = send_job(w, &job, id, result);
out:
    text_free(&body);
    return status;
}

int enqueue_keyless(struct weir *w, const struct weir_job_spec *spec, struct keyed_by *by)
{
    struct redisReply *reply = NULL;
    struct text body = {0};
    struct job_view view;
    const struct job_cost one = cost_of(1);
    struct args a = {0};
    int status = job_write(&body, spec, &view, &w->error);

    *by = (struct keyed_by){.path = ""};
    if (!status)
        status = client_at_home(w, view.type.at, view.type.len);
    if (!status) {
        fits_request(&a, w->prefix, -1, view.type, &one);
        status = client_call(w, &a, &reply, NULL);
    }
    if (!status)
        status = fits_reply(reply, view.type, by, &w->error);
    if (*by->path && !job_is_keyless((struct span){body.at, body.len}, by->path))
        *by->path = '\0';
    freeReplyObject(reply);
    args_free(&a);
    text_free(&body);
    return status;
}

int weir_enqueue_sized(struct weir *w, const struct weir_job_spec *job, size_t size, char id[WEIR_ID_SIZE])
{
    enum enqueue_result result;
    struct weir_job_spec own;

    if (GIVEN(w, PASSED(job)) < 0 || !(job = GIVEN_STRUCT(w, job, size, &own)))
        return WEIR_EUSAGE;
    return enqueue_job(w, job, id, &result);
}
