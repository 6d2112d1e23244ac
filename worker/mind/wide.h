/* The queues of a worker that serves several: which of them the next claim serves. A worker is wide if it serves patterns, or more queues than
 * one claim can name.
 *
 * Words are in strict order, or in one that is drawn by weight for each claim; the queues of one pattern take turns: a claim serves those where
 * something is due, as far as is known, and the one that got an executor goes behind the others. In those that no claim named for a while it asks
 * for jobs, which a foreign client may have pushed, and for what waits there beside what is known, as a bell may have been lost.
 *
 * Claims answer when each queue is due that they served, and which gates its jobs wait for. Hundreds of queues may wait at one gate: when it
 * opens, one of them is due, and its answer says when the gate opens next, for all of them. Two are due in the claim after one that has left
 * the gate open, then four. So a queue is served too often rather than too late. What is known may still be wrong, where a bell was lost: of
 * the queues that wait at a gate one is served every 0.4 s, and each queue where something waits every few seconds.
 *
 * Times are monotonic, in us. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "queue/turn/turn.h"

#define WIDE_CLAIM 64     /* queues that one claim serves */
#define WIDE_ASKED 500    /* queues in which one claim asks for jobs */
#define WIDE_PEEKS 8      /* queues with a name that are watched, each by a connection */
#define WIDE_QUEUES 10000 /* queues that one worker serves */

struct wide;

/* Makes it of words, which are borrowed: names and patterns, each once. NULL: out of memory, as is false of others. */
struct wide *wide_new(const char *const *words, int count);
void wide_free(struct wide *w);
/* Returns how many of the words are names. */
int wide_names(const struct wide *w);

/* Learns a queue that Redis knows: it is served from now on, if a word stands for it. False: it would be one too many. */
bool wide_learn(struct wide *w, struct span queue);
/* Forgets the queues that were not learnt since the last call, as all that Redis knows were. */
void wide_forget_others(struct wide *w);
/* True once wide_forget_others() was called: before, queues may be missing. */
bool wide_is_complete(const struct wide *w);
/* Hears that a bell has named these queues, with blanks between them; "*": any. */
void wide_ring(struct wide *w, struct span queues);
/* Hears that a job was pushed into a queue. */
void wide_push(struct wide *w, struct span queue);
/* Hears that a leased job of this token goes back to its queue, which is due. */
void wide_give_back(struct wide *w, struct span token);
/* Lets all queues be claimed from, with the held types of all. NULL: nothing is done. */
void wide_claim_all(struct wide *w);
void wide_hold_all(struct wide *w);

/* Draws the order in which the next claim serves the words: each comes first as often as its weight says. */
void wide_draw(struct wide *w, const int *weights, uint64_t *random);
/* Picks the queues for the next claim: those where something is due by now, and some that no claim has served for long. The names live until
 * the next pick. */
struct names wide_pick(struct wide *w, int64_t now_us, int64_t stale_us);
/* Return the last pick, and the queues in which its claim only asks whether anything has come or waits there beside what is known of
 * each: those that were last named before stale_us; of a worker that is not wide all others. */
struct names wide_picked(const struct wide *w);
struct names wide_asked(const struct wide *w, const char **known);
/* True if held types must be checked in a queue of the last pick. It is told once. */
bool wide_take_held(struct wide *w);

struct wide_answer {
    const struct claim *claim;
    int free;          /* executors that it could use */
    bool on_duty;      /* else what is due is for another worker */
    int64_t next_us;   /* when something is due there; 0: never */
    int64_t offset_us; /* from Redis's clock to when a claim must go for that time */
    int64_t now_us;
};
/* Hears what the claim of the last pick has answered. */
void wide_hear(struct wide *w, const struct wide_answer *answer);

/* Return when the first queue is due, INT64_MAX: never; and when the queue was last named that has waited longest for that, INT64_MAX: there
 * is none. */
int64_t wide_due(struct wide *w);
int64_t wide_oldest(struct wide *w);
/* Return how many queues there are, and the names of some: `most` at most from the first-th on, in no order that means anything. */
int wide_count(const struct wide *w);
int wide_page(const struct wide *w, int first, const char *names[], int most);
