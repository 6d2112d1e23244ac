/* What happened in a partition since it was last recorded: of each type, and at each limit that holds types. Numbers only; it
 * knows neither tasks nor Redis. Where memory is short, less is counted. */
#ifndef WORKER_PARTS_COUNTS_H
#define WORKER_PARTS_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/script/args.h"
#include "queue/job/job.h"
#include "queue/turn/record.h"

enum count_end { COUNT_DONE, COUNT_RETRIED, COUNT_DEAD, COUNT_CANCELLED, COUNT_THROTTLED, COUNT_ENDS };

struct counts {
    struct type_counts **types; /* by the number of the type; NULL: nothing of it was counted */
    int type_count;
    struct limit_counts **limits;
    int limit_count;
    int next;  /* the type at which the next write begins */
    bool some; /* something was counted */
};

/* All zero is empty; numbers of types are below type_count. */
void counts_open(struct counts *c, int type_count);
void counts_free(struct counts *c);
/* From now on these limits hold a type: "limit=rules|limit=rules", as a claim answers it. */
void counts_hold(struct counts *c, int type, struct span limits);
/* A job has started, at that time of Redis's clock; slots: of each limit of its type, 0: it has none. */
void counts_start(struct counts *c, int type, int64_t at_us, int64_t slots);
/* One has ended; run_us < 0: it had not started. reason: of a throttled one; NULL: none. */
void counts_end(struct counts *c, int type, enum count_end end, int64_t run_us, const char *reason);
/* Adds rows for record_request, some hundred counts at most, and forgets them. names: of the types. Afterwards `some` says whether
 * there are more. */
void counts_write(struct counts *c, const char *const *names, struct args *a);

#endif
