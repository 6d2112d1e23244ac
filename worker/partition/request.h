/* Requests to Redis and their answers, as all files of the worker send and count them; and what the answers
 * say of the way to Redis: how far away it is, whether it refuses. */
#ifndef WORKER_PARTITION_REQUEST_H
#define WORKER_PARTITION_REQUEST_H

#include <stdint.h>

#include "core/redis/link.h"
#include "worker/mind/distance.h"

struct partition;

struct requests {
    int awaited;              /* answers under way: no other turn begins before the last has come */
    int64_t sent_us;          /* when the requests under way were sent */
    struct distance distance; /* of Redis: from the times in its answers */
    int64_t pause_until_us;   /* after an error answer: no turn before that */
    char last_error[sizeof((struct error *)0)->text]; /* that was logged; "": none since an answer was good */
};

/* A turn is about to be sent. */
void partition_begin_requests(struct partition *p, int64_t now);
/* Sends a request; its callback ends with partition_answered. It gets w, or arg. */
void partition_send(struct partition *p, struct args *a, link_reply *on_reply);
void partition_send_with(struct partition *p, struct args *a, link_reply *on_reply, void *arg);
/* Sends one that is not the turn's: the next turn does not wait for its answer. */
void partition_send_beside(struct partition *p, struct args *a, link_reply *on_reply);
/* One answer less is under way; the last one wakes the scheduler. */
void partition_answered(struct partition *p);
/* The answer is an error: logged once, and a pause. */
void partition_refused(struct partition *p, const struct error *e);
/* It is good: the next error is logged even if it is the same. */
void partition_accepted(struct partition *p);
/* Ends the pause. */
void partition_resume(struct partition *p);
/* An answer has this time of Redis's clock. A clock that was set back is followed by a heartbeat. */
void partition_hear_clock(struct partition *p, int64_t redis_us);
/* A time of Redis's clock on our monotonic one; 0: never. */
int64_t partition_local_time(const struct partition *p, int64_t redis_us);
/* How long before a time of Redis a request must leave to be there; 0: Redis is near. */
int64_t partition_lead_time(const struct partition *p);
/* How long an answer of an idle Redis is on its way; 0: Redis is near. */
int64_t partition_trip_time(const struct partition *p);
/* The same at present, with what Redis is busy with. */
int64_t partition_usual_time(const struct partition *p);

#endif
