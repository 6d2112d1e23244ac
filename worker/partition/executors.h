/* The executors of the worker: what minds are told of them, and what minds have them do. */
#pragma once

#include <stdint.h>

struct partition;
struct worker;

/* Tells the minds of all partitions the facts of this moment, before a mind is asked or hears an answer. Only of p they hear what a claim
 * could settle. */
void executors_look(struct partition *p);
/* Keeps as many executors as minds say for jobs with a limit, from now on. */
void worker_reserve(struct worker *w);
/* Lets partitions look again that would claim, had they room. */
void worker_feed(struct worker *w);
/* Gives executors to early jobs whose time has come near. Those that find none go back: another worker may have one. */
void worker_draw_near(struct worker *w, int64_t now);
/* Gives all early jobs of this partition back. */
void executors_recall(struct partition *p);
/* Gives prefetched jobs back that have waited for too long. */
void worker_give_back_stuck(struct worker *w, int64_t now);
