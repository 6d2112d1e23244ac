/* What the weir command needs of enqueueing one job beyond weir.h. */
#pragma once

#include "queue/enqueue/enqueue.h"

/* Does weir_enqueue, and tells whether the job is new, and else why it is not. */
WEIR_CHECKED int enqueue_job(struct weir *w, const struct weir_job_spec *job, char id[WEIR_ID_SIZE],
                             enum enqueue_result *result);

/* Says whether that job would have nothing at the path by which the limits of its type tell jobs apart: by->path is that path, else "".
 * And which type may be meant. */
WEIR_CHECKED int enqueue_keyless(struct weir *w, const struct weir_job_spec *job, struct keyed_by *by);
