/* Claiming: a claim is sent as the mind asks, and its jobs are run. */
#pragma once

#include <stdbool.h>

#include "core/script/args.h"
#include "queue/turn/turn.h"

struct error;
struct partition;
struct plan;
struct task_list;

/* Returns all queues that a worker serves which is not wide. */
struct names claiming_queues(const struct partition *p);
/* Writes the claim of a turn, with what has ended where the turn does not settle by itself. */
void claiming_ask(struct partition *p, struct args *a, struct plan *plan);
/* Passes the duty on, as a type rests: it is for who can run the type, if there is another worker in the group; else it comes back. */
void claiming_pass_duty(struct partition *p);
/* Claims again, as a type rests no more. */
void claiming_serve_again(struct partition *p);

/* ---- What all claims have in common */

/* Gives the call the names that the mind does not know. */
void claiming_name_call(struct partition *p, struct claim_call *call);
/* Hears that a claim was refused, or that its answer cannot be read. */
void claiming_refused(struct partition *p, const struct error *e);
/* Takes the jobs of the last answer. */
void claiming_take_jobs(struct partition *p, struct task_list *tasks);
/* Logs what the last answer says of types that wait, of limits, queues and keys. */
void claiming_log_waiting(struct partition *p);
/* Runs jobs, and empties the list. With so many executors, the answer may have come so late that others have got them: those beyond go
 * back, of the ones with a slot, or of all. All go back where none may begin. */
void claiming_run_jobs(struct partition *p, int executors, bool all, struct task_list *tasks);
