/* One status of those of several partitions. */
#ifndef QUEUE_STATUS_STATUS_MERGE_H
#define QUEUE_STATUS_STATUS_MERGE_H

#include "queue/status/status.h"

/* Adds what *more has to *all; both are to be freed, also after a failure. false: out of memory. */
bool status_merge(struct status *all, struct status *more);
/* Sorts its workers by process, for status_process(): the worker of that host and pid, or NULL. */
void status_sort_processes(struct status *status);
const struct worker_status *status_process(const struct status *status, const char *host, int64_t pid);
/* Of two times since when a queue is paused, as queue_status has them: the earlier one, known ones before others. */
int64_t paused_earlier(int64_t a_us, int64_t b_us);

#endif
