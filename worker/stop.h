/* Stopping: the end of what runs here. */
#pragma once

struct worker;

/* Begins to stop when it was asked to, or draining takes too long, and goes on. */
void worker_check_stop(struct worker *w);
