/* Which batches have jobs in this worker, and how many: when the last of them ends here, somebody may wait
 * for it. All functions are for the worker's loop. */
#pragma once

#include "worker/way/task.h"

struct batch_here;
struct batches {
    struct batch_here *head;
};

/* Counts a task that was leased with its batch. Where memory is short it is not counted. */
void batches_enter(struct batches *batches, struct task *task);
/* Takes out a task that has ended or goes back. True: it was the last one of its batch in this worker. */
bool batches_leave(struct batches *batches, struct task *task);
void batches_free(struct batches *batches);
