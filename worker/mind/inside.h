/* What the files of the mind call of each other. */
#ifndef WORKER_MIND_INSIDE_H
#define WORKER_MIND_INSIDE_H

#include "core/number.h"
#include "worker/mind/mind.h"

/* The worker on duty claims so often from a queue that nobody watches. */
#define UNWATCHED_US (400 * MS)

/* ---- ask.c */

/* The claim of a turn. */
struct claim_call ask_claim(struct mind *m, struct room room, int64_t now);
/* One that asks for nothing but so many jobs that find an executor, and so many beyond them. */
struct claim_call ask_jobs(struct mind *m, int free, int prefetch, int64_t now);

/* ---- when.c: each is a time, NEVER or one in the past */

/* At once for a reason or with more to take, else when a gate is about to open, or too long after the last claim. */
int64_t when_claim(const struct mind *m, struct room room);
/* The same if it had room. */
int64_t when_wanted(const struct mind *m, struct room room);
/* Is there no reason to claim but to see whether others do? Then a heartbeat can ask instead. A worker that serves very many queues looks at
 * some of them with each poll. */
bool when_only_polls(const struct mind *m, struct room room);
/* Of what has ended. claim_us: when the next claim is due, with which it may go. */
int64_t when_settle(const struct mind *m, int64_t claim_us);
int64_t when_drained(const struct mind *m);
int64_t when_match(const struct mind *m);
/* The next claim beside the turn; NEVER: there is none. *prefetch: for so many. */
int64_t when_beside(const struct mind *m, int64_t now, int *prefetch);
/* After the last claim: so that Redis meets the two apart. */
int64_t when_apart(const struct mind *m);
bool when_stands(const struct mind *m, int64_t now);
/* How long a queue may go without a claim that nobody watches. */
int64_t when_unwatched(const struct mind *m);
/* So many bodies are read at first for that many jobs: few where they are large. */
int when_chunk(const struct mind *m, int jobs);

/* ---- room.c */

/* Is it one of so many that claim ahead from this Redis that each may have less in hand than one claim could bring? */
bool room_is_in_crowd(const struct mind *m);

/* ---- share.c */

/* Of the free executors its share, and what is prefetched divided. */
void share_room(const struct mind *m, int64_t now, struct room *room, int *target, int *excess);
/* Has a claim under way executors that no other partition takes? Not for ever: its answer may not come. */
bool share_is_taken(const struct mind *m, int64_t now);
/* A claim is about to be sent, for those executors. */
void share_take(struct mind *m, int executors, int64_t now);
/* Would it claim, had it room? Then the others leave it its share of the executors that become idle. */
void share_hunger(struct mind *m, bool hungry);
/* Jobs without a limit that may be on their way here. */
int share_coming(const struct mind *m);

/* ---- alone.c */

/* What a claim answered. False: its job is to run alone and cannot now, as jobs of other partitions are here. */
bool alone_hear(struct mind *m, const struct claim *claim, int64_t now);
/* Ends it when the job has ended, or has not come for too long, which alone_time says. Returns whether it did. */
bool alone_check(struct mind *m, int64_t now);
int64_t alone_time(const struct mind *m);
/* Has the worker jobs of other partitions, or may a claim bring some? */
bool alone_is_elsewhere(const struct mind *m);
/* May a claim find one? */
bool alone_is_wanted(const struct mind *m, int64_t now);
/* Must nothing be claimed? And while it is on, when the next claim is. */
bool alone_keeps_others(const struct mind *m);
int64_t alone_claim_time(const struct mind *m);

/* ---- polls.c */

/* Redis is asked: the next wait is another one. */
void polls_draw(struct mind *m);
/* How much earlier the heartbeat or the poll goes when the other does; on duty, or as the second: 0. */
int64_t polls_along(const struct mind *m);

#endif
