/* What happened in a partition since it was last recorded: of each type, and at each limit that holds types. Numbers only. Where memory is short, less is counted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/script/args.h"
#include "queue/job/job.h"
#include "queue/turn/record.h"
#include "worker/way/task.h"

/* doc/design-operations.md says when slots count as lost, and why. */
enum count_lost { LOST_NO_JOB, LOST_NO_EXECUTOR, LOST_HELD, LOST_LATE, LOST_WHYS };

/* All zero at first. */
struct counts {
    struct type_counts **types; /* by the number of the type; NULL: nothing of it was counted */
    int type_count;
    struct limit_counts **limits;
    int limit_count;
    int next_limit, next_type; /* the next write begins with these */
    bool some;                 /* something was counted */
};

/* The types have other numbers: numbers[i] is that of the one that was i; below 0: it is gone, and so are its counts. */
void counts_renumber(struct counts *c, const int *numbers);
void counts_free(struct counts *c);
/* Notes which limits hold a type from now on: "limit=rules|limit=rules", as a claim answers it. */
void counts_hold(struct counts *c, int type, struct span limits);
struct count_start {
    int64_t at_us;   /* by Redis's clock */
    int64_t slots;   /* of each limit of its type; 0: it has none */
    int64_t wait_us; /* since it was enqueued; < 0: not known, or not its first start */
    enum record_cause cause;
};
void counts_start(struct counts *c, int type, const struct count_start *start);
/* Counts an end; run_us < 0: the job had not started. reason: of a throttled one; NULL: none. */
void counts_end(struct counts *c, int type, enum task_end end, int64_t run_us, const char *reason);
struct count_loss {
    int64_t thousandths;      /* of slots that nobody took */
    int64_t from_us, till_us; /* they were lost between these times, by Redis's clock */
};
void counts_lost(struct counts *c, struct span name, enum count_lost why, const struct count_loss *loss);
/* Counts a job that gives its slots back; counted: its start was counted. What its limits lose next was lost by that, where it came too
 * late. */
void counts_back(struct counts *c, int type, enum record_back why, int64_t slots, bool counted);
/* Adds rows for record_request, some hundred counts at most, and forgets them. names: of the types. Afterwards `some` says whether
 * there are more. */
void counts_write(struct counts *c, const char *const *names, struct args *a);
