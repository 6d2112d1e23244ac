/* Settling: jobs that have ended are reported to Redis. */
#pragma once

#include "core/script/args.h"
#include "worker/parts/batches.h"

struct claim_call;
struct partition;
struct redisReply;
struct worker;

enum { ALONG_MOST = 16 }; /* jobs that are settled by a claim */

struct settling {
    struct task_list finished; /* to be settled */
    struct task_list sent;     /* in the settle that is under way */
    struct batches batches;    /* of the jobs that have not ended */
    bool urgent;               /* somebody may wait for the end of one of the finished */
    bool soon;                 /* a task is not simply done */
    int here;                  /* jobs that were leased and have not ended */
};

void settling_free(struct partition *p);
/* Notes a task that is about to go to the pool. */
void task_leased(struct task *task);
/* Takes what has ended from the pool. */
void tasks_collect(struct worker *w);
/* Notes a task that has left the pool and will be settled. */
void task_finished(struct task *task);
/* Ends a task that its handler holds on: `copy` is settled in its place, by what the task was asked to end for. */
void task_finished_without(struct task *task, struct task *copy);
/* Gives tasks back to the head of their lanes at the next turn, with no attempt used. Empties the list. */
void tasks_give_back(struct task_list *tasks);
/* Forgets a task that its handler holds on and that is lost: nothing is settled. */
void task_lost(struct task *task);
/* Frees tasks whose leases are over. */
void tasks_drop(struct task_list *tasks);
/* True when nothing has ended but a few jobs of one type, of which there is no more to say than that they are done. A claim takes those
 * along: settling_go_along() has it do so, and its answer to that goes to settling_hear(). */
bool settling_may_go_along(const struct partition *p);
void settling_go_along(struct partition *p, struct claim_call *call, struct span tokens[ALONG_MOST]);
void settling_hear(struct partition *p, const struct redisReply *reply);
/* Sends what has ended, if anything has. */
void settling_send(struct partition *p, struct args *a);
/* Writes a settle as a request alone. False: nothing has ended. When it is answered, or when nobody knows whether it arrived: then it is
 * settled once more, with the same tokens, as a token settles once. */
bool settling_write(struct partition *p, struct args *a);
void settling_done(struct partition *p);
void settling_again(struct partition *p);
/* True when nothing of it runs, waits, is to be settled here or is on its way beside a turn; and the same of all partitions. */
bool settling_is_idle(const struct partition *p);
bool worker_is_idle(const struct worker *w);
