/* What the files of the mind call of each other. */
#pragma once

#include "core/number.h"
#include "worker/mind/mind.h"

/* The worker on duty claims at least so often from a queue that nobody watches. */
#define UNWATCHED_US (400 * MS)

/* ---- ask.c */

/* Makes the claim of a turn. */
struct claim_call ask_claim(struct mind *m, struct room room, int64_t now);
/* Makes a claim that asks for nothing but so many jobs that find an executor, and so many beyond them. */
struct claim_call ask_jobs(struct mind *m, int free, int prefetch, int64_t now);

/* ---- when.c: each is a time, NEVER or one in the past */

/* Returns when to claim: at once for a reason or with more to take, else when a gate is about to open, or too long after the last claim. */
int64_t when_claim(const struct mind *m, struct room room);
/* Returns when a claim is wanted, if there was room. */
int64_t when_wanted(const struct mind *m, struct room room);
/* True when there is no reason to claim but to see whether others do: then a heartbeat can ask instead. A worker that serves very many
 * queues looks at some of them with each poll. */
bool when_only_polls(const struct mind *m, struct room room);
/* Returns when to settle what has ended. claim_us: when the next claim is due, with which it may go. */
int64_t when_settle(const struct mind *m, int64_t claim_us);
int64_t when_drained(const struct mind *m);
int64_t when_match(const struct mind *m);
/* Returns when the next claim goes beside the turn; NEVER: none does. *prefetch: for so many jobs. */
int64_t when_beside(const struct mind *m, int64_t now, int *prefetch);
/* Returns when a claim may go after the last one, so that Redis meets the two apart. */
int64_t when_apart(const struct mind *m);
bool when_stands(const struct mind *m, int64_t now);
/* Returns how long a queue that nobody watches may go without a claim. */
int64_t when_unwatched(const struct mind *m);
/* Returns how many bodies are read at first for that many jobs: few where they are large. */
int when_chunk(const struct mind *m, int jobs);

/* ---- room.c */

/* True when so many workers claim ahead from this Redis that each may have less in hand than one claim could bring. */
bool room_is_in_crowd(const struct mind *m);

/* True when jobs with a limit wait for an executor, as far as the last answer shows: reserved ones are for them. */
bool room_is_wanted(const struct mind *m);

/* ---- share.c */

/* Finds this partition's share of the free executors. They go one at a time to the partition with the fewest; ties go to the one that
 * waited longest. What is prefetched is divided. */
void share_room(const struct mind *m, int64_t now, struct room *room, int *target, int *excess);
/* True when a claim under way has executors that no other partition takes. That ends: its answer may not come. */
bool share_is_taken(const struct mind *m, int64_t now);
/* Takes executors for a claim that is about to be sent. */
void share_take(struct mind *m, int executors, int64_t now);
/* Notes whether this partition would claim if it had room. Then the others leave it its share of the executors that become idle. */
void share_hunger(struct mind *m, bool hungry);
/* Counts the jobs without a limit that may be on their way here. */
int share_coming(const struct mind *m);

/* ---- alone.c */

/* Hears what a claim answered. False: its job is to run alone and cannot now, as jobs of other partitions are here. */
bool alone_hear(struct mind *m, const struct claim *claim, int64_t now);
/* Ends running alone when the job has ended, or has not come for too long, which alone_time says. Returns whether it did. */
bool alone_check(struct mind *m, int64_t now);
int64_t alone_time(const struct mind *m);
/* True when the worker has jobs of other partitions, or a claim may bring some. */
bool alone_is_elsewhere(const struct mind *m);
/* True when a claim may find a job that is to run alone. */
bool alone_is_wanted(const struct mind *m, int64_t now);
/* True when nothing may be claimed. The other one says when the next claim is while a job runs alone. */
bool alone_keeps_others(const struct mind *m);
int64_t alone_claim_time(const struct mind *m);

/* ---- polls.c */

/* Returns how long it is to the next poll of one of so many workers of the namespace; draw: at random, 0 to below 1. */
int64_t interval_of_polls(int64_t workers, double draw);
/* Returns how long it is to the next heartbeat: at least four go in a lease. */
int64_t interval_of_beats(int64_t lease_us, double draw);
/* Draws the next wait, as Redis is asked. */
void polls_draw(struct mind *m);
/* Returns how much earlier the heartbeat or the poll goes when the other does, as most of what they cost Redis is to wake up; 0 on duty, or as
 * the second. */
int64_t polls_along(const struct mind *m);
