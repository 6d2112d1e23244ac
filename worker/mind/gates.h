/* The gates that jobs of some queues wait for, as claims have answered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "queue/job/job.h"

struct gate {
    int64_t opens_us; /* when it opens for what costs least; 0: not known */
    int width;        /* how many of the queues that it holds alone are due when it opens */
    int left, asked;  /* of these in this pick: not marked yet, marked */
    int64_t heard_us; /* when an answer last told of it */
    bool may_open;    /* in the next claim, for a queue that is marked for something else */
    char name[];
};

struct wait {
    struct gate *gate;
    int64_t at_us; /* not before */
};

struct gates {
    struct gate **at; /* sorted by name */
    int count;
};

/* Opens the gates. False: out of memory. */
bool gates_open(struct gates *g);
void gates_free(struct gates *g);
/* Finds a gate by its name. NULL: it is not known. */
struct gate *gates_find(const struct gates *g, struct span name);
/* True when there are as many as can be known: they must be forgotten before one is added. */
bool gates_are_full(const struct gates *g);
/* Adds a gate that is not known yet. NULL: out of memory. */
struct gate *gates_add(struct gates *g, struct span name);
void gates_forget(struct gates *g);
/* Begins a pick: no gate is asked for yet. */
void gates_begin_pick(struct gates *g);
/* Adapts to an answer that was heard now, to a claim for which a gate that is open had executors: the next pick asks for twice the queues of
 * such a gate, at most `widest`, and for half of those of a gate that is closed. */
void gates_adapt(struct gates *g, int widest, int64_t now_us);
/* Returns when the gate is open for what waits. */
int64_t gate_wait_end(const struct wait *wait);
/* Compares as memcmp, the shorter one first. */
int name_compare(struct span name, const char *other);
