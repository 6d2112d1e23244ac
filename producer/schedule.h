/* What the weir command needs of schedules beyond weir.h. */
#ifndef PRODUCER_SCHEDULE_H
#define PRODUCER_SCHEDULE_H

#include <stdbool.h>

#include "weir.h"

/* Does weir_schedule_add, and tells whether there was a schedule of that name, which is gone now. */
WEIR_CHECKED int schedule_add(struct weir *w, const char *name, const char *when, const char *zone,
                              enum weir_missed missed, const struct weir_job_spec *job, bool *replaced);

#endif
