/* A chaos run: a Redis that keeps all (appendfsync always) with a clock of its own, workers, producers and an
 * operator; they are started again when they end. Load and faults go by the plan. Then all faults end, and
 * what is left has to finish. What happened is written down here and in the run's folder, for the checker. */
#pragma once

#include "tests/chaos/plan.h"
#include "tests/server.h"
#include "weir.h"

/* The life of one process of a worker: "<worker>.<n>" in the history. */
struct life {
    int worker, n;
    pid_t pid;
    int64_t begun_us, ended_us; /* ended: not later than it did; 0: not yet */
    int code;                   /* as program_end says */
    bool asked;                 /* to end, by a signal of ours */
};

/* A fault that happened. */
struct incident {
    enum fault_kind kind;
    int worker, n;          /* of the life that it hit; worker < 0: all */
    pid_t pid;              /* of the child that was killed */
    int64_t from_us, to_us; /* to: 0 while it lasts */
    int64_t sure_us;        /* from then on it is surely in force */
    int64_t shift_us;       /* of Redis's clock, from then on */
};

/* A fault that lasts. */
struct lasting {
    const struct fault *fault; /* NULL: none */
    int incident;
    pid_t pid; /* that it was done to */
};
#define LASTING_MOST 32

struct running {
    struct proxy *proxy; /* NULL: none */
    pid_t pid;           /* 0: it does not run */
    int n;
    int64_t restart_at_us;
    int64_t waited_us; /* for the processor, since it was started */
};

struct run {
    struct plan plan;
    struct server server;
    struct weir *client; /* for before and after the faults */
    int64_t begun_us;
    struct running workers[PLAN_WORKERS], producers[PLAN_PRODUCERS], operator;
    bool producer_ended[PLAN_PRODUCERS];
    int endpoint_socket, endpoint_port;
    pid_t endpoint;
    bool redis_stopped;
    int64_t shift_us, most_shift_us;
    struct life *lives;
    int life_count;
    struct incident *incidents;
    int incident_count;
    struct lasting lasting[LASTING_MOST];
    int next_fault;     /* of the plan */
    int64_t drained_us; /* how long it took to finish when the faults were over */
    int starved_ms;     /* the longest time in which this process did not get the processor */
};

/* Fail the test when something cannot be started. */
void run_open(struct run *run, uint64_t seed, int seconds);
/* Load and faults. */
void run_load(struct run *run);
/* Waits until all jobs have ended, dead ones retried. false: something is stuck; *what (the
 * caller's to free) says what. */
bool run_finish(struct run *run, char **what);
/* All workers end by TERM; the number of those that did not end well. */
int run_end_workers(struct run *run);
/* keep: the folder stays. */
void run_close(struct run *run, bool keep);

/* How far the machine's clock is before the monotonic one now: read many times, for a process may have to wait between two reads. */
int64_t run_wall_ahead(void);

/* Room for one element behind count of them; the new array. */
void *run_more(void *array, int count, size_t size);

/* ---- Between run.c and faults.c */

struct life *run_life(struct run *run, int worker);
struct incident *run_incident(struct run *run, enum fault_kind kind, int worker);
void run_start_endpoint(struct run *run);

/* Begins what is due of the plan, and ends what has lasted long enough. */
void faults_go_on(struct run *run, int64_t now_us);
/* Some have not ended. */
bool faults_last(const struct run *run);
