#include "queue/status/status.h"

#include <stdlib.h>

#include "queue/status/status_parts.h"

/* ---- Workers */

static int read_workers(struct weir *w, void *arg)
{
    struct status_answer answer;
    struct status *all = arg, more = {0};
    int rc = status_ask_workers(w, &answer);

    if (rc == 0)
        rc = status_rows_read(w->at == 0 ? all : &more, answer.root, &w->error);
    if (rc == 0 && more.workers && !status_merge(all, &more))
        rc = error_no_memory(&w->error, "status");
    status_free(&more);
    status_answer_free(&answer);
    return rc;
}

int status_workers(struct weir *w, struct status *status)
{
    *status = (struct status){0};
    return client_look_at_all(w, read_workers, status);
}

/* What processes run in all partitions, where there are several: an executor that is busy in one is free in none. Calls go to
 * where they went before. */
static int read_processes(struct weir *w, struct status *processes)
{
    int at = w->at, rc;

    if (processes->workers || client_count(w) == 1)
        return 0;
    rc = status_workers(w, processes);
    if (rc == 0)
        status_sort_processes(processes);
    return rc == 0 ? client_at(w, at) : rc;
}

/* ---- All of it */

/* All are to be freed, also after a failure. processes: read for the first of several partitions. */
static int read_all(struct weir *w, int64_t now_us, struct status *processes, struct status *status,
                    struct limits *limits)
{
    struct status_answer answer = {.root = NULL};
    struct limits_asking asking;
    struct pages beside;
    int rc;

    limits_begin(w, now_us, limits, &asking, &beside);
    rc = status_ask(w, now_us, &beside, &answer);
    limits_end(limits);
    if (rc == 0)
        rc = status_rows_read(status, answer.root, &w->error);
    if (rc == 0)
        rc = read_processes(w, processes);
    if (rc == 0)
        rc = status_read_serving(status, answer.root, processes, &w->error);
    if (rc == 0)
        rc = status_give_types(status, answer.root, limits, &w->error);
    status_answer_free(&answer);
    return rc;
}

/* A reading has what status_read_untold() fills. */
struct reading {
    struct status *all, processes;
    struct all_limits *limits;
};

static int read_and_merge(struct weir *w, void *arg)
{
    struct reading *r = arg;
    struct limits *at = reallocarray(r->limits->at, (size_t)w->at + 1, sizeof *at);
    struct status more = {0}, *here = w->at == 0 ? r->all : &more;
    int rc;

    if (!at)
        return error_no_memory(&w->error, "status");
    r->limits->at = at;
    at[r->limits->count++] = (struct limits){0};
    rc = read_all(w, -1, &r->processes, here, &at[w->at]);
    for (size_t i = 0; i < here->type_count; i++)
        here->types[i].partition = w->at;
    if (rc == 0 && w->at > 0 && !status_merge(r->all, &more))
        rc = error_no_memory(&w->error, "status");
    status_free(&more);
    return rc;
}

int status_read_untold(struct weir *w, struct status *status, struct all_limits *limits)
{
    struct reading reading = {.all = status, .limits = limits};
    int rc;

    *status = (struct status){0};
    *limits = (struct all_limits){0};
    rc = client_look_at_all(w, read_and_merge, &reading);
    status_free(&reading.processes);
    return rc;
}

int status_read_with_limits(struct weir *w, struct status *status, struct all_limits *limits)
{
    int rc = status_read_untold(w, status, limits);

    for (size_t i = 0; rc == 0 && i < status->type_count; i++)
        rc = status_foretell(&status->types[i], limits, &w->error);
    return rc;
}

void all_limits_free(struct all_limits *limits)
{
    for (int i = 0; i < limits->count; i++)
        limits_free(&limits->at[i]);
    free(limits->at);
    *limits = (struct all_limits){0};
}

int status_read(struct weir *w, struct status *status)
{
    struct all_limits limits;
    int rc = status_read_with_limits(w, status, &limits);

    all_limits_free(&limits);
    return rc;
}

int status_limits(struct weir *w, int64_t now_us, struct limits *limits)
{
    struct status status = {0}, processes = {0};
    int rc;

    *limits = (struct limits){0};
    rc = read_all(w, now_us, &processes, &status, limits);
    status_free(&processes);
    status_free(&status);
    return rc;
}
