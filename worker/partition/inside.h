/* What the files of a partition call of each other. A section is of the file that it names; all functions are for the loop's thread. */
#pragma once

#include "worker/partition/partition.h"

enum { ALONG_MOST = 16 }; /* jobs that are settled by a claim */

/* ---- turn.c */

/* Opens the scheduler's watchers, before the loop runs. */
void turn_open(struct partition *p);

/* ---- drained.c */

/* Asks whether anything is left. If not, the worker leaves. */
void drained_ask(struct partition *p, struct args *a);

/* ---- leave.c */

/* Leaves, if the worker stops and nothing is left. */
bool leaving_if_done(struct partition *p);

/* ---- adopt.c */

void adoption_ask(struct partition *p, int64_t now);
extern const struct link_events partition_link_events;

/* ---- match.c */

/* Asks anew, on a new connection. */
void match_soon(struct partition *p);
/* Asks for a page. */
void match_ask(struct partition *p, struct args *a);
/* Hears the answer to match_request(): hands its page to hear(). */
void match_hear(struct partition *p, const struct redisReply *reply,
                void (*hear)(struct partition *p, const struct matched *page));

/* ---- beside.c */

/* Sends another claim beside the turn that is under way, for jobs without a limit: as Redis is far away, and they end faster than one claim
 * after the other brings them. */
void beside_claim(struct partition *p, struct claim_call *call);
/* Makes the claim that stands behind the peek at the queue, where jobs come one by one; false: none is to. */
bool beside_stand(struct partition *p, struct args *a);
/* Hears the answer to the claim that stood; NULL: it was lost. */
void beside_hear_standing(struct partition *p, const struct redisReply *reply);

/* ---- claim.c */

/* Returns all queues that a worker serves which is not wide. */
struct names claiming_queues(const struct partition *p);
/* Writes the claim of a turn, with what has ended where the turn does not settle by itself. */
void claiming_ask(struct partition *p, struct args *a, struct plan *plan);
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

/* ---- due.c */

void due_promote(struct partition *p, struct args *a);

/* ---- heartbeat.c */

void heartbeat_send(struct partition *p, struct args *a);

/* ---- limits.c */

/* Notes that Redis may have lost limits, or have older ones. */
void limits_are_old(struct partition *p);
/* Restores limits before anything else: writes again what Redis has lost, and learns what there is. */
void limits_restore(struct partition *p);
/* Hears that Redis has that revision of the limits, as a heartbeat says. */
void limits_hear_revision(struct partition *p, struct span newest);
/* True when limits have changed. Then a turn asks for each page of what has. */
bool limits_must_learn(const struct partition *p);
/* Asks for the next page of what has changed. */
void limits_learn(struct partition *p, struct args *a);

/* ---- precheck.c */

/* True when Redis was asked for rights and settings, and they are good. False: the answer will wake the scheduler. */
bool precheck_passes(struct partition *p);
/* Logs once what the settings gave occasion to, as the worker has begun. */
void precheck_tell_settings(struct partition *p);
/* Asks once a minute (once a lease, where that is shorter) whether the settings have become wrong. */
void precheck_again(struct partition *p, struct args *a, int64_t now);

/* ---- executors.c */

/* Tells the minds of all partitions the facts of this moment, before a mind is asked or hears an answer. Only of p they hear what a claim
 * could settle. */
void executors_look(struct partition *p);
/* Keeps as many executors as minds say for jobs with a limit, from now on. */
void worker_reserve(struct worker *w);
/* Gives executors to early jobs whose time has come near. Those that find none go back: another worker may have one. */
void worker_draw_near(struct worker *w, int64_t now);
/* Gives all early jobs of this partition back. */
void executors_recall(struct partition *p);
/* Gives prefetched jobs back that have waited for too long. */
void worker_give_back_stuck(struct worker *w, int64_t now);

/* ---- watch.c */

/* Cancels the job of this lease. */
void watch_cancel(struct partition *p, struct span token);
/* Ends what runs and was asked to end because its lease is lost; C functions on threads run on. */
void watch_end_lost(struct partition *p);

/* ---- outcome.c */

/* Decides, and logs, once how a task that has ended is settled, however often that is sent: what it was asked to end for counts more than what its
 * handler said. */
void outcome_decide(struct task *task);

/* ---- settle.c */

void settling_free(struct partition *p);
/* Notes a task that is about to go to the pool. */
void task_leased(struct task *task);
/* Ends a task that its handler holds on: `copy` is settled in its place, by what the task was asked to end for. */
void task_finished_without(struct task *task, struct task *copy);
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
bool worker_is_idle(const struct worker *w);

/* ---- request.c */

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

/* ---- record.c */

/* Hears from a claim which limits hold the types. */
void recording_count_claim(struct partition *p, const struct claim *claim);
/* Counts a task that has left the pool, decided, and will be settled. */
void task_count_end(struct task *task);
/* Counts once that a task began, if it did. */
void task_count_start(struct task *task);
/* Sends what was counted when it is time for it; at_once: all of it. */
void recording_send(struct partition *p, struct args *a, int64_t now, bool at_once);

/* ---- session.c */

/* Hears that the connection was lost, or cannot be had again; or is back. Each is logged once, and so is another reason. */
void session_lost(struct partition *p, const struct error *why);
void session_is_back(struct partition *p);
/* Says that the rights of the user are complete; or that they are to be checked. */
void session_permit(struct partition *p, bool permitted);
/* Begins anew under another id, as the old one holds no longer. */
void session_unregister(struct partition *p);
/* Notes that a request is about to be sent that registers the worker, or renews its lease. */
void session_is_registering(struct partition *p);
void session_is_renewing(struct partition *p);
/* Hears that the worker is registered: the lease goes on from when that was sent. */
void session_registered(struct partition *p, const char *id, struct span types_digest, int64_t now);
void session_renewed(struct partition *p);
/* Ends the lease; returns when it ended, by clock_boot_us(). */
int64_t session_lapse(struct partition *p);
/* Notes the mark that Redis has answered. */
void session_seen(struct partition *p, int64_t mark_us);
/* Logs once that Redis went back. True: what it has of limits may be older now. */
bool session_hear_back(struct partition *p, const struct went_back *back);
/* Hears what the answer to a registration says of the data. True: all that was there before is lost. */
bool session_hear_data(struct partition *p, const struct adopt *adopt);
/* Ends the worker when a login, permission or setting is refused before anything has worked: that is not an outage but a mistake, and so
 * are data that this version cannot read. */
bool session_is_hopeless(struct partition *p, const struct error *why);

/* ---- reasons.c */

/* Runs the scheduler when the callback that calls this returns: once, however often this is called. */
void partition_wake(struct partition *p);
/* Wakes a partition to claim; held: types that are held are checked, too. */
void partition_claim_soon(struct partition *p, bool held);
/* Wakes a partition to give back what was granted far ahead, also by claims that are under way. */
void partition_recall_soon(struct partition *p);
/* True when a recall was asked for; then it is no longer. */
bool reasons_take_recall(struct partition *p);

/* ---- begin.c */

/* Sets when early tasks are to be drawn near next; NEVER: there are none. Called before begin_tasks(). */
void begin_near(struct worker *w, int64_t near_us);
/* Begins the tasks of the loop whose time has come, and sets the timer to the next one. */
void begin_tasks(struct worker *w);
