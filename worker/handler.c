#include "worker/handler.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "worker/trace.h"

struct weir_job {
    struct task *task;
    const struct job_view *view;
    char id[129], type[129], key[129];
    char *args; /* made when asked for */
};

/* ---- The table */

void handlers_free(struct handlers *h)
{
    for (int i = 0; i < h->count; i++) {
        for (char **word = h->at[i].argv; word && *word; word++)
            free(*word);
        free(h->at[i].argv);
    }
    free(h->at);
    free(h->types);
    memset(h, 0, sizeof *h);
}

const struct handler *handlers_find(const struct handlers *h, struct span type)
{
    for (int i = 0; i < h->count; i++)
        if (strlen(h->at[i].type) == type.len && memcmp(h->at[i].type, type.at, type.len) == 0)
            return &h->at[i];
    return NULL;
}

/* A new row for type, or NULL and *e. */
static struct handler *add(struct handlers *h, const char *type, struct error *e)
{
    struct handler *at;

    if (!type || !name_is_valid(type, strlen(type))) {
        error_set(e, WEIR_EUSAGE, "handler: '%.64s' is no type; use 1 to 128 of A-Z a-z 0-9 _ . -",
                  type ? type : "");
        return NULL;
    }
    if (handlers_find(h, (struct span){type, strlen(type)})) {
        error_set(e, WEIR_EUSAGE, "handler: type %s has a handler already", type);
        return NULL;
    }
    at = realloc(h->at, (size_t)(h->count + 1) * sizeof *at);
    if (at)
        h->at = at;
    free(h->types);
    h->types = at ? calloc((size_t)h->count + 1, sizeof *h->types) : NULL;
    if (!h->types) {
        error_set(e, WEIR_EINTERNAL, "handler: out of memory");
        return NULL;
    }
    at = &h->at[h->count++];
    *at = (struct handler){0};
    strcpy(at->type, type);
    for (int i = 0; i < h->count; i++)
        h->types[i] = h->at[i].type;
    return at;
}

int handlers_add(struct handlers *h, const char *type, weir_handler *function, void *arg, struct error *e)
{
    struct handler *row;

    if (!function)
        return error_set(e, WEIR_EUSAGE, "handler: no function given for type %.64s", type ? type : "");
    if (!(row = add(h, type, e)))
        return e->status;
    row->function = function;
    row->arg = arg;
    return 0;
}

/* Splits at blanks; NULL when out of memory. */
static char **split(const char *command)
{
    char **argv = calloc(strlen(command) / 2 + 2, sizeof *argv);
    size_t count = 0;

    while (argv && *(command += strspn(command, " \t\n"))) {
        size_t len = strcspn(command, " \t\n");

        if (!(argv[count++] = strndup(command, len)))
            return NULL;
        command += len;
    }
    return argv;
}

/* Is there such a program, by its path or in $PATH? */
static bool can_run(const char *program)
{
    const char *path = getenv("PATH");
    char file[4096];

    if (strchr(program, '/'))
        return access(program, X_OK) == 0;
    while (path && *path) {
        size_t len = strcspn(path, ":");

        snprintf(file, sizeof file, "%.*s/%s", (int)len, path, program);
        if (access(file, X_OK) == 0)
            return true;
        path += len + (path[len] == ':');
    }
    return false;
}

int handlers_add_command(struct handlers *h, const char *type, const char *command, struct error *e)
{
    struct handler *row;

    if (!command || command[strspn(command, " \t\n")] == '\0')
        return error_set(e, WEIR_EUSAGE, "handler: no command given for type %.64s; use TYPE=COMMAND",
                         type ? type : "");
    if (!(row = add(h, type, e)))
        return e->status;
    if (!(row->argv = split(command)))
        return error_set(e, WEIR_EINTERNAL, "handler: out of memory");
    if (!can_run(row->argv[0]))
        return error_set(e, WEIR_ECONFIG, "handler %s: %s: no such program; name one in $PATH or by its path",
                         type, row->argv[0]);
    return 0;
}

/* ---- Running one */

static void copy_name(char out[129], struct span name)
{
    memcpy(out, name.at ? name.at : "", name.len);
    out[name.len] = '\0';
}

static void call_function(struct task *task, const struct job_view *view)
{
    static const enum task_end ends[] = {[WEIR_DONE] = END_DONE,
                                         [WEIR_RETRY] = END_RETRY,
                                         [WEIR_DEAD] = END_DEAD,
                                         [WEIR_THROTTLED] = END_THROTTLED};
    struct weir_job job = {.task = task, .view = view};
    int outcome;

    copy_name(job.id, view->id);
    copy_name(job.type, view->type);
    copy_name(job.key, view->key);
    outcome = task->handler->function(&job, task->handler->arg);
    task->end = outcome >= 0 && outcome <= WEIR_THROTTLED ? ends[outcome] : END_RETRY;
    free(job.args);
}

/* The worker and claim.lua may read JSON differently: a job whose id or type they do not agree on is not run.
 * The key is not compared: that of the lease may be a value in args, or a hash, depending on the limits of
 * that time. */
static int check(struct task *task, struct job_view *view)
{
    const char *type = task->handler->type;
    struct error e;

    if (job_read(task->body.at, task->body.len, view, &e) != 0) {
        task_finish(task, END_DEAD, -1, e.text);
        return -1;
    }
    if (!view->id.at || view->type.len != strlen(type) || memcmp(view->type.at, type, view->type.len) != 0) {
        task_finish(task, END_DEAD, -1, "unreadable: its id or type is not what Redis read");
        return -1;
    }
    return 0;
}

void handler_run(struct task *task, struct trace *trace)
{
    struct job_view view;

    if (check(task, &view) != 0)
        return;
    if (task->start_us > 0)
        clock_sleep_until(task->start_us);
    if (trace)
        trace_start(trace, task, &view);
    if (task->handler->function)
        call_function(task, &view);
    else
        command_run(task, &view);
    if (trace)
        trace_end(trace, task, &view);
}

/* ---- What a handler sees of its job */

const char *weir_job_id(const struct weir_job *job)
{
    return job->id;
}

const char *weir_job_type(const struct weir_job *job)
{
    return job->type;
}

const char *weir_job_key(const struct weir_job *job)
{
    return job->view->key.at ? job->key : NULL;
}

const char *weir_job_args(const struct weir_job *job)
{
    struct weir_job *mutable = (struct weir_job *)job; /* the copy is made at the first call */

    if (!job->view->args.at)
        return "null";
    if (!job->args)
        mutable->args = strndup(job->view->args.at, job->view->args.len);
    return job->args ? job->args : "null";
}

const char *weir_job_body(const struct weir_job *job, size_t *len)
{
    if (len)
        *len = job->task->body.len;
    return job->task->body.at;
}

int weir_job_attempt(const struct weir_job *job)
{
    return job->task->attempts + 1;
}

static void finish(struct weir_job *job, enum task_end end, double after_s, const char *fmt, va_list args)
{
    char reason[1024];

    vsnprintf(reason, sizeof reason, fmt, args);
    task_finish(job->task, end, after_s, reason);
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
    task_finish(job->task, END_THROTTLED, after_s, NULL);
    return WEIR_THROTTLED;
}

void weir_job_spent(struct weir_job *job, int64_t cost)
{
    job->task->spent = cost < 0 ? 0 : cost > JOB_COST_MOST ? JOB_COST_MOST : cost;
}
