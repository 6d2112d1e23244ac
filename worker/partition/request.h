/* Requests to Redis and their answers, as all files of the worker send and count them; and what it
 * means that Redis refuses one. */
#pragma once

#include "core/redis/link.h"

struct partition;
struct span;

/* Sends a request; its callback ends with request_answered. It gets w, or arg. */
void request_send(struct partition *p, struct args *a, link_reply *on_reply);
void request_send_with(struct partition *p, struct args *a, link_reply *on_reply, void *arg);
/* Sends a request that is not the turn's: the next turn does not wait for its answer. */
void request_send_beside(struct partition *p, struct args *a, link_reply *on_reply);
/* Counts one answer less under way; the last one wakes the scheduler. */
void request_answered(struct partition *p);
/* Hears that the answer is an error: it is logged once, and a pause follows. */
void request_refused(struct partition *p, const struct error *e);
/* Logs once that a key of another kind keeps jobs from running. wrong: what is wrong with it. */
void request_log_fault(struct partition *p, struct span wrong);
/* Notes that an answer is good: the next error is logged even if it is the same as the last. */
void request_accepted(struct partition *p);
