/* The benchmark: measures what issue and README promise, beside a ceiling taken in the same run, because a
 * machine that is shared or slow moves both.
 *
 *   main.c        options, the order of the groups, the end
 *   report.c      the figures: what is required, what was measured; table and JSON
 *   server.c      a private redis-server; crew.c: worker processes, forked
 *   ceiling.c     raw pipelined RPUSH, a minimal Lua script, turns
 *   turns.c       the scripts without a worker around them
 *   beats.c       what is sent at a steady pace
 *   throughput.c  latency.c  sparse.c  memory.c  bytes.c  pace.c  behind.c  growth.c  keys.c  take.c  unique.c  handlers.c
 *   tls.c  far.c  idle.c  look.c: the groups
 *   large.c       the large namespace of the last one
 *
 * A group measures and calls report() for each of its figures. It returns 0, or a status with b->error
 * filled. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/server.h"
#include "core/error.h"

#define PREFIX "weir:{0}:" /* of the default namespace */
#define BODY_BYTES 120     /* of a job in the rows about throughput */
#define ARGS_BYTES 118     /* of a job in the rows about memory */

enum figure {
    CEILING_PUSH,
    CEILING_PUSH_MANY,
    CEILING_LUA,
    CEILING_TURN,
    CEILING_TURN_LIMITED,
    CEILING_WAKE_P50,
    CEILING_WAKE_P99,
    CEILING_MEMORY,
    CEILING_EVALSHA,
    CEILING_COMMANDS,
    CEILING_ASLEEP,
    BULK_RATE,
    LINES_RATE,
    RUN_RATE,
    LIMITED_RATE,
    AOF_RATE,
    LATENCY_P50,
    LATENCY_P99,
    SPARSE_FLOOR_50,
    SPARSE_CPU_50,
    SPARSE_P50_50,
    SPARSE_P99_50,
    SPARSE_FLOOR_200,
    SPARSE_CPU_200,
    SPARSE_P50_200,
    SPARSE_P99_200,
    SPARSE_FLOOR_1000,
    SPARSE_CPU_1000,
    SPARSE_P50_1000,
    SPARSE_P99_1000,
    MEMORY_JOB,
    NET_BULK,
    NET_CALL,
    NET_RUN,
    NET_PACE_1000,
    NET_PACE_100,
    MEMORY_TYPE,
    PACE_KEPT,
    PACE_SECOND,
    PACE_TENTH,
    PACE_SECOND_CLOCK,
    PACE_TENTH_CLOCK,
    PACE_LATE,
    PACE_COMMANDS,
    PACE_CPU,
    MILLION_COMMANDS,
    MILLION_CPU,
    FAST_KEPT_1000,
    FAST_GAP_1000,
    FAST_KEPT_5000,
    FAST_GAP_5000,
    FLOOD_KEPT,
    FLOOD_CPU,
    FLOOD_KEPT_BURST_1,
    FLOOD_CPU_BURST_1,
    BEHIND_ALL,
    GROWTH_FREE,
    GROWTH_FREE_MANY,
    GROWTH_LIMITED,
    GROWTH_LIMITED_MANY,
    KEYS_CPU_10,
    KEYS_CPU_1000,
    KEYS_CPU_100000,
    KEYS_CPU_1000000,
    KEYS_FLOOD_CPU,
    KEYS_OPEN_WORST,
    KEYS_OPEN_CPU,
    KEYS_MEMORY,
    KEYS_MEMORY_ASLEEP,
    CEILING_ONE,
    CEILING_MANY,
    TAKE_PIPELINED,
    TAKE_MANY,
    TAKE_MANY_OF_ONE,
    TAKE_DENIED,
    PROTOCOL_ENQUEUE,
    PROTOCOL_TAKE,
    PROTOCOL_BULK,
    ENQUEUE_CALL,
    ENQUEUE_CALL_UNIQUE,
    ENQUEUE_CALL_LATER,
    PIPE_ALONE,
    PIPE_RATE,
    EXEC_ALONE,
    EXEC_RATE,
    EXEC_RATIO,
    ASYNC_MEMORY,
    TLS_RUN_PLAIN,
    TLS_RUN,
    TLS_CONNECT_PLAIN,
    TLS_CONNECT,
    FAR_RUN_0,
    FAR_RUN_1,
    FAR_RATIO_1,
    FAR_RUN_2,
    FAR_RUN_10,
    FAR_KEPT,
    IDLE_CPU_16,
    IDLE_CPU_64,
    IDLE_CLAIMS_16,
    IDLE_CLAIMS_64,
    IDLE_LONE_16,
    IDLE_LONE_64,
    LOOK_STATUS,
    LOOK_STATUS_JSON,
    LOOK_REPORT,
    LOOK_TOP,
    LOOK_OVERVIEW,
    LOOK_TYPE,
    LOOK_LIMITS,
    LOOK_LIMIT,
    LOOK_KEYS,
    LOOK_JOBS,
    LOOK_JOB_LINK,
    LOOK_JOB_RECORD,
    LOOK_JOB_ABSENT,
    LOOK_WORKERS,
    LOOK_DEAD,
    LOOK_REDIS,
    LOOK_API_STATUS,
    LOOK_API_REPORT,
    LOOK_METRICS,
    LOOK_WATCH,
    FIGURES
};

struct result {
    bool known;
    double value;
    double base; /* of the ceiling it is compared with; 0: none */
    char note[200];
};

/* What 100/s costs with the backlog of 20,000; the row about 1,000,000 is compared with it. */
struct pace_cost {
    bool known;
    double commands, cpu_us; /* per job */
};

struct bench {
    bool quick, json;
    struct server server; /* without AOF */
    char command[512];    /* build/weir */
    char redis_version[32];
    struct result results[FIGURES];
    struct pace_cost pace;
    struct error error;
};

/* ---- main.c */

/* Sleeps; an error when the user has stopped the benchmark. */
WEIR_CHECKED int bench_rest(struct bench *b, double seconds);
/* Has the user stopped it? Then an error. */
WEIR_CHECKED int bench_check(struct bench *b);
/* The full size, or a tenth of it with --quick. */
size_t bench_size(const struct bench *b, size_t full);
/* For qsort: two int64_t. */
int bench_compare_us(const void *a, const void *b);

/* ---- report.c */

void report_begin(const struct bench *b);
/* Keeps a figure and prints its row. */
void report(struct bench *b, enum figure figure, double value, double base, const char *note, ...)
    WEIR_PRINTF(5, 6);
void report_end(const struct bench *b);

/* ---- throughput.c */

#define NEVER_REACHED "1000000/s" /* a rule */
#define EXECUTORS 10

/* How fast something went: jobs in a second; CPU for each job, of Redis and of us. */
struct speed {
    double a_second, redis_us, client_us;
};
struct stopwatch {
    int64_t start_us;
    struct usage usage;
    double client_us;
};
WEIR_CHECKED int stopwatch_start(struct bench *b, struct server *s, struct stopwatch *watch);
/* The client's share is that of this process; who measures another one overwrites it. */
WEIR_CHECKED int stopwatch_stop(struct bench *b, struct server *s, const struct stopwatch *watch, size_t jobs,
                                struct speed *speed);

/* A figure and how to measure it once. A ceiling that is known is not measured again. */
struct trial {
    enum figure figure, base; /* base FIGURES: none */
    int (*run)(struct bench *b, size_t jobs, struct speed *speed);
    const char *note;
};
#define TRIALS_MOST 5
/* The median of three rounds, in which the trials take turns. */
WEIR_CHECKED int measure_trials(struct bench *b, const struct trial *trials, int count, size_t jobs);

/* Enqueues n jobs with bodies of that size with weir_bulk_add. */
WEIR_CHECKED int fill(struct bench *b, const char *url, const char *type, size_t n, size_t body_bytes);
/* The same with so many keys, in turn. */
WEIR_CHECKED int fill_keys(struct bench *b, const char *url, const char *type, size_t n, size_t body_bytes,
                           size_t keys);
/* Removes all keys, sets the limit of type (rule NULL: none), and fills its queue. */
WEIR_CHECKED int prepare(struct bench *b, struct server *s, const char *type, const char *rule, size_t n);
/* Waits until a counter of a type has reached n. */
struct crew;
WEIR_CHECKED int wait_for_count(struct bench *b, struct server *s, struct crew *crew, const char *type,
                                const char *counter, size_t n);

/* Runs the jobs of type noop with these workers, from their start until Redis has counted the last one done. */
struct crew_plan;
WEIR_CHECKED int time_crew(struct bench *b, struct server *s, const struct crew_plan *plan, size_t jobs,
                           struct speed *speed);
/* The same with one worker. */
WEIR_CHECKED int time_worker(struct bench *b, struct server *s, int executors, size_t jobs,
                             struct speed *speed);

/* ---- large.c: a namespace in which all that can be many is many */

#define LARGE_TYPES 10000
#define LARGE_QUEUE_TYPES 10 /* of a queue */
#define LARGE_NAME_SIZE 64

/* Empties Redis, and builds it. */
WEIR_CHECKED int large_build(struct bench *b);
/* Starts build/weir with these words, that end with NULL. Its output is dropped; it dies with this process. */
WEIR_CHECKED int large_start(struct bench *b, const char *const *words, pid_t *pid);
/* Waits for its end; returns its wait status. cpu_us: what it has used. */
int large_wait(pid_t pid, double *cpu_us);
/* ---- ceiling.c */

int ceiling_push(struct bench *b, size_t jobs, struct speed *speed);
int ceiling_push_many(struct bench *b, size_t jobs, struct speed *speed);
int ceiling_lua(struct bench *b, size_t jobs, struct speed *speed);
int ceiling_turn(struct bench *b, size_t jobs, struct speed *speed);
int ceiling_turn_limited(struct bench *b, size_t jobs, struct speed *speed);

/* ---- pace.c */

/* How exactly two workers keep a rate by that URL: reports it. */
WEIR_CHECKED int measure_far(struct bench *b, const char *url, const char *rule, double a_second);

/* ---- The groups */

int bench_bulk(struct bench *b);
int bench_lines(struct bench *b);
int bench_run(struct bench *b);
int bench_limited(struct bench *b);
int bench_aof(struct bench *b);
int bench_latency(struct bench *b);
int bench_sparse(struct bench *b);
int bench_memory(struct bench *b);
int bench_bytes(struct bench *b);
int bench_pace(struct bench *b);
int bench_million(struct bench *b);
int bench_fast(struct bench *b);
int bench_flood(struct bench *b);
int bench_behind(struct bench *b);
int bench_growth(struct bench *b);
int bench_keys(struct bench *b);
int bench_take(struct bench *b);
int bench_protocol(struct bench *b);
int bench_unique(struct bench *b);
int bench_pipe(struct bench *b);
int bench_exec(struct bench *b);
int bench_async(struct bench *b);
int bench_tls(struct bench *b);
int bench_far(struct bench *b);
int bench_idle(struct bench *b);
int bench_look(struct bench *b);

#endif
