/* Enqueueing one job. Its id is made here, so that sending it again after a lost connection adds no second
 * job. */
#include "producer/enqueue.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "core/client.h"
#include "core/clock.h"
#include "producer/retry.h"
#include "queue/enqueue.h"

#define KEEP_GIVEN_MS (24 * 3600 * 1000) /* a given id is accepted once a day */
#define KEEP_MADE_MS (60 * 1000)         /* a made one is only repeated by ourselves */
#define GIVE_UP_US (15 * 1000000) /* after that long, well within KEEP_MADE_MS, the outcome stays unknown */
#define SECONDS_MOST 4102444800.0 /* the year 2100 */

/* Checks what job_write does not: the times. */
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

/* Sends until there is an answer. Without any doubt that a command could have reached Redis it is sent once.
 */
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

static int send_job(struct weir *w, const struct enqueue *job, bool *is_new)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    enqueue_request(&a, w->prefix, -1, job);
    status = send_until_answered(w, &a, job->id, &reply);
    if (!status)
        status = enqueue_reply(reply, is_new, &w->error);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

int enqueue_job(struct weir *w, const struct weir_job_spec *spec, char id[WEIR_ID_SIZE], bool *is_new)
{
    struct text body = {0};
    struct job_view view;
    char tag[17];
    struct enqueue job = {.tag = tag, .keep_ms = spec->id ? KEEP_GIVEN_MS : KEEP_MADE_MS};
    int status = read_times(spec, &job, &w->error);

    if (!status)
        status = job_write(&body, spec, &view, &w->error);
    if (status)
        goto out;
    job_make_id(tag);
    job.queue = view.queue.at ? view.queue : (struct span){"default", strlen("default")};
    job.type = view.type;
    job.id = view.id;
    job.cost = view.cost;
    job.body = (struct span){body.at, body.len};
    status = send_job(w, &job, is_new);
    if (!status && id) {
        memcpy(id, view.id.at, view.id.len);
        id[view.id.len] = '\0';
    }
out:
    text_free(&body);
    return status;
}

int weir_enqueue(struct weir *w, const struct weir_job_spec *job, char id[WEIR_ID_SIZE])
{
    bool is_new;

    return enqueue_job(w, job, id, &is_new);
}
