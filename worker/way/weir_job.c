#include "worker/way/weir_job.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/forks.h"
#include "core/log/log.h"
#include "queue/job/json.h"
#include "worker/way/way.h"

static void copy_name(char out[129], struct span name)
{
    memcpy(out, name.at ? name.at : "", name.len);
    out[name.len] = '\0';
}

void weir_job_init(struct weir_job *job, struct task *task)
{
    *job = (struct weir_job){.task = task, .forks = forks_count()};
    copy_name(job->id, task->view.id);
    copy_name(job->key, task->view.key);
}

void weir_job_clear(struct weir_job *job)
{
    free(job->args);
    free(job->traceparent);
}

void weir_job_check_fork(const struct handler *handler, unsigned forks)
{
    if (forks == forks_count())
        return;
    runner_log(LOG_LEVEL_ERROR, handler->runner,
               "its handler (%s) called fork(), and the child came back from it: the child ends with 70; it "
               "must run another program, or end by _exit()",
               handler->runner->way->name);
    _exit(-WEIR_EINTERNAL);
}

void weir_job_finish(struct weir_job *job, int result)
{
    static const enum task_end ends[] = {[WEIR_DONE] = END_DONE,
                                         [WEIR_RETRY] = END_RETRY,
                                         [WEIR_DEAD] = END_DEAD,
                                         [WEIR_THROTTLED] = END_THROTTLED};

    weir_job_check_fork(job->task->handler, job->forks);
    job->task->end = result >= 0 && result <= WEIR_THROTTLED ? ends[result] : END_RETRY;
}

static pthread_key_t client_key;
static pthread_once_t client_once = PTHREAD_ONCE_INIT;
static bool client_has_key;

static void free_client(void *client)
{
    weir_free(client);
}

static void make_client_key(void)
{
    client_has_key = pthread_key_create(&client_key, free_client) == 0;
}

struct weir *weir_job_client(const struct weir_job *job)
{
    const struct runner *runner = job ? job->task->handler->runner : NULL;
    struct weir *client;

    pthread_once(&client_once, make_client_key);
    if (!runner || !runner->way->run || !client_has_key)
        return NULL;
    client = pthread_getspecific(client_key);
    if (!client && (client = client_new(runner->host.address, runner->host.prefix)) &&
        pthread_setspecific(client_key, client) != 0) {
        weir_free(client);
        client = NULL;
    }
    return client;
}

void task_enqueued(const struct task *task, char text[ENQUEUED_SIZE])
{
    text[0] = '\0';
    if (task->enqueued_us)
        snprintf(text, ENQUEUED_SIZE, "%" PRId64 ".%02d", task->enqueued_us / 1000000,
                 (int)(task->enqueued_us / 10000 % 100));
}

/* Writes a member at `at` and returns its length; 0: there is no value, or the body has that member. */
static size_t put_member(char *at, const struct task *task, const char *name, const char *value)
{
    if (!*value || json_find(task->body.at, task->body.len, name).at)
        return 0;
    return (size_t)sprintf(at, "\"%s\":%s,", name, value);
}

struct span task_front(const struct task *task, char front[FRONT_SIZE])
{
    const char *open = memchr(task->body.at, '{', task->body.len);
    char number[24], enqueued[ENQUEUED_SIZE];
    size_t len = 1;

    snprintf(number, sizeof number, "%d", task->attempts + 1);
    task_enqueued(task, enqueued);
    len += put_member(front + len, task, "attempt", number);
    len += put_member(front + len, task, "enqueued_at", enqueued);
    front[0] = '{';
    front[len > 1 ? len : 0] = '\0';
    if (len == 1)
        return task->body;
    return (struct span){open + 1, (size_t)(task->body.at + task->body.len - open - 1)};
}

/* ---- What a handler reads */

/* Copies a text at the first call, and returns that copy from then on. */
static const char *text_once(char **copy, struct span text)
{
    if (text.at && !*copy)
        *copy = strndup(text.at, text.len);
    return *copy;
}

const char *weir_job_id(const struct weir_job *job)
{
    return job ? job->id : NULL;
}

const char *weir_job_type(const struct weir_job *job)
{
    return job ? job->task->handler->type : NULL;
}

const char *weir_job_key(const struct weir_job *job)
{
    return job && job->task->view.key.at ? job->key : NULL;
}

const char *weir_job_args(const struct weir_job *job)
{
    const char *args = job ? text_once(&((struct weir_job *)job)->args, job->task->view.args) : NULL;

    return args || !job ? args : "null";
}

const char *weir_job_body(const struct weir_job *job, size_t *len)
{
    if (len)
        *len = job ? job->task->body.len : 0;
    return job ? job->task->body.at : NULL;
}

int weir_job_attempt(const struct weir_job *job)
{
    return job ? job->task->attempts + 1 : 0;
}

double weir_job_enqueued_at(const struct weir_job *job)
{
    return job ? (double)job->task->enqueued_us / 1e6 : 0;
}

const char *weir_job_batch(const struct weir_job *job)
{
    return job && job->task->batch.len > 0 ? job->task->batch.at : NULL;
}

const char *weir_job_traceparent(const struct weir_job *job)
{
    return job ? text_once(&((struct weir_job *)job)->traceparent, job->task->view.traceparent) : NULL;
}

int weir_job_is_cancelled(const struct weir_job *job)
{
    return job && atomic_load(&job->task->asked) != ASKED_NOTHING;
}

void weir_log(const struct weir_job *job, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    if (!job || !fmt)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    task_log(LOG_LEVEL_INFO, job->task, "%s", text);
}

/* ---- What a handler says */

static void finish(struct weir_job *job, enum task_end end, double after_s, const char *fmt, va_list args)
{
    char *reason = NULL;

    if (!job)
        return;
    if (fmt && vasprintf(&reason, fmt, args) < 0)
        reason = NULL;
    task_finish(job->task, end, after_s, reason);
    free(reason);
}

int weir_job_retry(struct weir_job *job, double after_s, const char *reason, ...)
{
    va_list args;

    va_start(args, reason);
    finish(job, END_RETRY, after_s, reason, args);
    va_end(args);
    return WEIR_RETRY;
}

int weir_job_dead(struct weir_job *job, const char *reason, ...)
{
    va_list args;

    va_start(args, reason);
    finish(job, END_DEAD, -1, reason, args);
    va_end(args);
    return WEIR_DEAD;
}

int weir_job_throttled(struct weir_job *job, double after_s)
{
    if (job)
        task_finish(job->task, END_THROTTLED, after_s, NULL);
    return WEIR_THROTTLED;
}

int weir_job_result(struct weir_job *job, const char *json)
{
    return job && json ? task_result(job->task, span_str(json)) : WEIR_EUSAGE;
}

void weir_job_spent(struct weir_job *job, int64_t cost)
{
    if (job)
        task_spent(job->task, "plain", strlen("plain"), cost);
}

int weir_job_spent_of(struct weir_job *job, const char *name, int64_t slots)
{
    return job && name ? task_spent(job->task, name, strlen(name), slots) : WEIR_EUSAGE;
}
