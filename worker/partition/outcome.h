#pragma once

struct task;

/* Decides, and logs, once how a task that has ended is settled, however often that is sent: what it was asked to end for counts more than what its
 * handler said. */
void outcome_decide(struct task *task);
