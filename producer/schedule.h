/* What the weir command needs of schedules beyond weir.h. */
#pragma once

#include <stdbool.h>

#include "queue/limits/type.h"
#include "weir.h"

/* Does weir_schedule_add, and tells whether there was a schedule of that name, which is gone now. */
WEIR_CHECKED int schedule_add(struct weir *w, const char *name, const char *when, const char *zone,
                              enum weir_missed missed, const struct weir_job_spec *job, bool *replaced);

struct schedule;
/* The same of one that schedule_make has made. */
WEIR_CHECKED int schedule_store(struct weir *w, const char *name, const struct schedule *s, bool *replaced);

/* *answer: as type_pause() has it; the caller's, NULL after a failure. WEIR_ENOTFOUND: there is no such schedule. */
WEIR_CHECKED int schedule_pause(struct weir *w, const char *name, const struct pausing *how, json_t **answer);
