/* Recording: what happens here is counted, and sent with a turn that goes anyway. */
#pragma once

#include "queue/turn/turn.h"
#include "worker/parts/counts.h"

struct handlers;
struct partition;
struct task;

struct recording {
    struct counts counts;
    int64_t next_us; /* when counts are sent next */
    int64_t look_us; /* when running jobs are looked through for starts next */
};

/* Other handlers hold now; what was counted of types that are still there stays. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int recording_renumber(struct partition *p, const struct handlers *before);
/* Hears from a claim which limits hold the types. */
void recording_count_claim(struct partition *p, const struct claim *claim);
/* Counts a task that has left the pool, decided, and will be settled. */
void task_count_end(struct task *task);
/* Counts once that a task began, if it did. */
void task_count_start(struct task *task);
/* Sends what was counted when it is time for it; at_once: all of it. */
void recording_send(struct partition *p, struct args *a, int64_t now, bool at_once);
