/* A gate in C: one rule's live state, whatever its algorithm. Finishing times, plan, verify and tests use it;
 * the gates that grant are Lua's (throttle/gate.lua), and both do the same arithmetic.
 *
 * Times are whole microseconds. A gate never looks at a clock: whoever asks says when. The starts of one gate
 * never go back: after a take at s, gate_start answers s or later. */
#pragma once

#include "throttle/cost.h"
#include "throttle/rule.h"

/* Makes a gate that was never used. Freed with gate_free. */
void gate_init(struct gate *g, const struct rule *rule);
void gate_free(struct gate *g);
/* *Makes a copy, a gate of its own. WEIR_EINTERNAL: out of memory; then there is nothing to free. */
WEIR_CHECKED int gate_copy(struct gate *copy, const struct gate *g);

/* Lets each job take of a gate whose rule counts slots by name what it says, else its type, whatever cost is asked of the functions below; of other
 * gates it changes nothing. */
void gate_price(struct gate *g, const struct job_cost *said, const struct job_cost *of_type);

/* Costs are slots of what the rule counts (cost_at); a job of 0 does not ask the gate, but for a pause.
 *
 * True when a job of that cost could ever start. */
bool gate_fits(const struct gate *g, int64_t cost);
/* Returns the earliest time from now_us on at which a job of that cost may start. GATE_NEVER: the cost is more than the gate can hold, or
 * it counts what is in flight and is full. */
int64_t gate_start(const struct gate *g, int64_t now_us, int64_t cost);
/* Returns how many jobs of that cost may start at s_us, 0 to most. */
int64_t gate_count(const struct gate *g, int64_t s_us, int64_t most, int64_t cost);
/* Starts k jobs of that cost at s_us, which gate_start and gate_count allowed. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int gate_take(struct gate *g, int64_t s_us, int64_t k, int64_t cost);
/* Lets jobs give back what they take from now on. Called before a take. */
void gate_remember(struct gate *g, int64_t now_us);
/* Gives back slots that a job granted at s_us did not need, as far as they still count. */
void gate_give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots);
/* Charges slots: they are taken now though the gate may be full. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int gate_charge(struct gate *g, int64_t now_us, int64_t slots);
/* Ends a job that was in flight; only concurrency cares. */
void gate_release(struct gate *g);
/* Changes the rule: what is in use stays in use, rounded up, at most what the new one can hold, and what it was under the rule until now is
 * remembered (gate.lua). WEIR_EINTERNAL: out of memory, and g is to be freed. */
WEIR_CHECKED int gate_change(struct gate *g, const struct rule *rule, int64_t now_us);
/* Changes the rule at a time that nobody knows, from from_us on and by to_us: what is in use is the least that it can be. Under a rule that
 * was in force before that is what is remembered of it, while it surely is and when all starts were taken in the order in which they were
 * granted; else nothing. No former state is forgotten. */
WEIR_CHECKED int gate_change_between(struct gate *g, const struct rule *rule, int64_t from_us, int64_t to_us,
                                     bool in_order);
/* Moves the gate's times back, as the clock has stepped back by us microseconds. */
void gate_step_back(struct gate *g, int64_t us);
/* Returns when the gate is as if never used, not before now_us. Concurrency: GATE_NEVER while jobs are in flight. */
int64_t gate_resets(const struct gate *g, int64_t now_us);

/* Returns when the n-th (from 1) of a backlog starts when each start is taken as early as allowed from now_us on: exact and by formula,
 * however large n is. GATE_NEVER as for gate_start, and beyond all time. g is not changed. */
int64_t gate_nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t cost);

/* Several gates at one common start: the earliest time at which all let a job of that cost start; and up to k
 * jobs start there, *taken of them: at all gates or at none. WEIR_EINTERNAL: out of memory. */
int64_t gates_start(const struct gate *gates, size_t count, int64_t now_us, int64_t cost);
WEIR_CHECKED int gates_take(struct gate *gates, size_t count, int64_t s_us, int64_t k, int64_t cost,
                            int64_t *taken);

/* Reads the state that gate.lua keeps ("" or NULL: never used) into g, which gate_init has made with the rule
 * that holds now, and puts right what loading there puts right: a clock that stepped back, another rule.
 * WEIR_EINPUT: it is no state that this version reads, g is then closed for a period. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int gate_read(struct gate *g, const char *state, int64_t now_us, struct error *e);
