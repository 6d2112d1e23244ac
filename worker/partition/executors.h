/* The executors of the worker: what minds are told of them, and what minds have them do. */
#ifndef WORKER_PARTITION_EXECUTORS_H
#define WORKER_PARTITION_EXECUTORS_H

#include <stdint.h>

struct partition;
struct worker;

/* Tells the minds of all partitions the facts of this moment: before a mind is asked, or hears an answer. What a claim could settle is told
 * of this one alone. */
void partition_look(struct partition *p);
/* As many executors as minds say are kept from now on for jobs with a limit. */
void worker_reserve(struct worker *w);
/* Partitions that would claim, had they room, look again. */
void worker_feed(struct worker *w);
/* Early jobs whose time has come near hold executors from now on. Those that find none go back: another worker
 * may have one. */
void worker_draw_near(struct worker *w, int64_t now);
/* All early jobs of this partition go back. */
void partition_recall(struct partition *p);
/* Prefetched jobs that have waited for too long go back. */
void worker_give_back_stuck(struct worker *w, int64_t now);

#endif
