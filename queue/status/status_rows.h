/* The rows of a status: what stands in status.lua's answer of queues, types and workers. What follows from it is status_serving.h and
 * status_outlook.h. */
#ifndef QUEUE_STATUS_STATUS_ROWS_H
#define QUEUE_STATUS_STATUS_ROWS_H

#include "queue/status/status_answer.h"

/* Fills *status with the rows of an answer (the root of status_answer.h). Sorted by name. status_free also after a failure. */
WEIR_CHECKED int status_rows_read(struct status *status, const json_t *root, struct error *e);

#endif
