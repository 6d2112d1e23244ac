/* How a status is read, what its files share:
 *
 *   status_answer.c    what status.lua answers, a page a call, as one document
 *   status_rows.c      its rows of queues, types (status_type.c) and workers
 *   status_serving.c   which types the workers that are alive take, and how many executors they have for them
 *   status_outlook.c   what limits say of the types: which hold them (status_backlog.c: what was seen of the jobs that wait)
 *   status_merge.c     one status of those of several partitions */
#pragma once

#include "core/client/pages.h"
#include "queue/status/status.h"

struct status_answer {
    json_t *
        root; /* the members of all pages; a worker has "info", what it says of itself, and "types": an array or absent */
    json_t *list_text,
        *list; /* the types that a worker said last, as text and read: most workers say the same */
};
/* Asks the partition that calls go to for all of it, and walks `beside` at the same time. status_answer_free also after a failure, which
 * is in w->error. */
WEIR_CHECKED int status_ask(struct weir *w, int64_t now_us, const struct pages *beside,
                            struct status_answer *answer);
/* Asks for workers alone, and for what is on each page. */
WEIR_CHECKED int status_ask_workers(struct weir *w, struct status_answer *answer);
void status_answer_free(struct status_answer *answer);

/* Fills *status with the rows of an answer's root. Sorted by name. status_free also after a failure. */
WEIR_CHECKED int status_rows_read(struct status *status, const json_t *root, struct error *e);
/* Fills *type with what a row says. */
void status_type_read(struct type_status *type, const char *name, const json_t *row, int64_t now_us);
/* How many a second there were since the mark before last, which is one to two seconds old while they come; count: of them all now. */
double status_rate(const json_t *marks, int64_t count, int64_t now_us);

/* Fills `served`, `resting`, `free` and `executors` of the types of *status, by the root that its rows were read from. processes: the workers of all
 * partitions, sorted by status_sort_processes(), whose executors may be busy elsewhere; without rows: there is one partition. */
WEIR_CHECKED int status_read_serving(struct status *status, const json_t *root,
                                     const struct status *processes, struct error *e);
/* True when a queue is one of these names and patterns, "queues" of a worker. */
bool status_is_served(const json_t *words, const char *queue);

/* Gives all limits of a partition the types of *status, and notes which of these are limited; root: what these were read from. limits_free also after a failure. */
WEIR_CHECKED int status_give_types(struct status *status, const json_t *root, struct limits *limits,
                                   struct error *e);
/* Fills type->backlog, where there is anything to say, by its other members. false: out of memory. */
WEIR_CHECKED bool status_read_backlog(struct type_status *type, const json_t *root);

/* Adds what *more has to *all; both are to be freed, also after a failure. false: out of memory. */
bool status_merge(struct status *all, struct status *more);
/* Sorts its workers by process, for status_process(): the worker of that host and pid, or NULL. */
void status_sort_processes(struct status *status);
const struct worker_status *status_process(const struct status *status, const char *host, int64_t pid);
/* Of two times since when a queue is paused, as queue_status has them: the earlier one, known ones before others. */
int64_t paused_earlier(int64_t a_us, int64_t b_us);
