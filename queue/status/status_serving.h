/* Which types the workers that are alive take, and how many executors they have for them. */
#ifndef QUEUE_STATUS_STATUS_SERVING_H
#define QUEUE_STATUS_STATUS_SERVING_H

#include "core/client/answer.h"
#include "queue/status/status.h"

/* Fills `served`, `resting`, `free` and `executors` of the types of *status, by the answer that its rows were read from. processes: the workers of all
 * partitions, sorted by status_sort_processes(), whose executors may be busy elsewhere; without rows: there is one partition. */
WEIR_CHECKED int status_read_serving(struct status *status, const json_t *root,
                                     const struct status *processes, struct error *e);

/* True when a queue is one of these names and patterns, "queues" of a worker. */
bool status_is_served(const json_t *words, const char *queue);

#endif
