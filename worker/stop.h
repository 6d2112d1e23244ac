/* Stopping: the end of what runs here. */
#ifndef WORKER_STOP_H
#define WORKER_STOP_H

struct worker;

/* Begins to stop when it was asked to, or draining takes too long, and goes on. */
void worker_check_stop(struct worker *w);

#endif
