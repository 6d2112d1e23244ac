/* weir apply: makes limits, types, queues and schedules in Redis what a file says. Both are compared in their normal form (sections.h). All is read
 * and checked before the first change; then what frees a type comes before what binds it, so that no change in between is refused, and who
 * runs it again finds only what is left to do.
 *
 *   apply_compare.c   what is to change
 *   apply_check.c     whether all of it will hold
 *   apply_write.c     the changes, in their order */
#pragma once

#include "cli/apply/sections.h"
#include "queue/limits/rate.h"

#define LIMITS_MOST (RATE_USES_MOST + 1) /* that hold a type, its own one included */

struct applying {
    struct cli *cli;
    struct weir *w;
    json_t *want, *have;
    json_t *changes; /* {"section", "name", "value", "was"}: value null: it goes; was null: it is new */
    int64_t now_us;
    bool prune;
    const char *scheduled; /* the section of the schedule that was added last */
};

/* Fills a->changes from a->want and a->have. */
void apply_compare(struct applying *a);
/* Checks what could be refused once the first change is written; the error names a line of the file. Fills a->cli->error on failure. */
WEIR_CHECKED int apply_check(const struct applying *a);
/* Writes a->changes; on failure the first ones are written. Fills a->cli->error then. */
WEIR_CHECKED int apply_write(struct applying *a);
