/* What the weir command needs of enqueueing one job beyond weir.h. */
#ifndef PRODUCER_ENQUEUE_H
#define PRODUCER_ENQUEUE_H

#include "queue/enqueue.h"

/* weir_enqueue that also tells whether the job is new, and else why it is not. */
WEIR_CHECKED int enqueue_job(struct weir *w, const struct weir_job_spec *job, char id[WEIR_ID_SIZE],
                             enum enqueue_result *result);

#endif
