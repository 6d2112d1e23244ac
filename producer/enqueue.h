/* What the weir command needs of enqueueing one job beyond weir.h. */
#ifndef PRODUCER_ENQUEUE_H
#define PRODUCER_ENQUEUE_H

#include <stdbool.h>

#include "weir.h"

/* weir_enqueue that also tells whether the job is new, or its id was known already. */
WEIR_CHECKED int enqueue_job(struct weir *w, const struct weir_job_spec *job, char id[WEIR_ID_SIZE],
                             bool *is_new);

#endif
