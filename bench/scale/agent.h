/* What the files of an agent share. An agent is one partition of a worker, and the agents of a worker share its executors. What they decide is
 * worker/mind/, as in a real one: each function that does as a file of worker/partition/ or worker/parts/ does names it. Each serves one queue and
 * one type. Their clock is the simulation's. */
#pragma once

#include "bench/scale/scale.h"
#include "core/number.h"

#define UP_US (3600 * SECOND) /* its machine has been up for so long when a run begins */

/* Where a task of an agent is. */
enum { RUNNING, TIMED, EARLY, PREFETCHED, FINISHED, SENT, ROWS };

struct worker {
    int first; /* of its agents */
    struct minds all;
    int running, unlimited; /* of them without a limit */
    uint64_t ended;
};
struct agent {
    struct worker *worker;
    char id[ID_SIZE], old[ID_SIZE];
    int life;  /* a number that changes when it is killed, */
    int epoch; /* and when its link is cut */
    bool up, registered, in_flight, waits[WAITS];
    bool gives_back, frees_slots; /* among the finished are such that go back; with slots */
    int64_t timer_us;
    struct mind mind;
    struct task_row rows[ROWS];
    long long starts;
};
extern struct worker *workers;
extern struct agent *agents;
extern int agent_ids; /* the next one registers by this number */

#define EACH_AGENT(a, w)                                                                                     \
    struct agent *a = agents + (w)->first;                                                                   \
    a < agents + (w)->first + world.partitions;                                                              \
    a++

/* ---- executors.c */

int64_t clock_us(void);
/* The mind of an agent, with the facts of now. */
struct mind *agent_look(int i);
/* A task has come; its time is near; its time has come; it has ended, or goes back. */
void agent_add(int i, struct task *task);
void agent_near(int i, struct task *task);
void agent_begin(int i, struct task *task);
void agent_end(int i, struct task *task);
void agent_finish(struct agent *a, struct task *task, bool back);
void agents_feed(const struct worker *w);

/* ---- link.c */

/* Looks what to do. */
void agent_decide(int i);
void agent_answer(int i, struct turn *turn);
void agent_answer_beside(int i, struct turn *turn);
void agent_answer_standing(int i, struct turn *turn);
void agent_woken(int i, enum wait wait);
