/* The benchmark: measures what issue and README promise, beside a ceiling taken in the same run, because a
 * machine that is shared or slow moves both.
 *
 *   main.c        options, the order of the groups, the end
 *   report.c      the figures: what is required, what was measured
 *   server.c      a private redis-server; crew.c: worker processes, forked
 *   ceiling.c     raw pipelined RPUSH, a minimal Lua script
 *   turns.c       the scripts without a worker around them
 *   beats.c       what is sent at a steady pace
 *   throughput.c  latency.c  memory.c  bytes.c  pace.c  behind.c  growth.c  keys.c  take.c  unique.c  handlers.c
 *   tls.c  far.c  idle.c  look.c: the groups
 *   large.c       the large namespace of the last one
 *
 * A group is a process of its own. It calls report() for each of its figures. Where something fails it ends, and with it end its workers and its servers.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/server.h"
#include "weir.h"

#define PREFIX "weir:{0}:" /* of the default namespace */
#define BODY_BYTES 120     /* of a job in the rows about throughput */
#define ARGS_BYTES 118     /* of a job in the rows about memory */

enum figure {
#define FREE(name, ...) name,
#define ASKED(name, ...) name,
#include "bench/figures.h"
#undef FREE
#undef ASKED
    FIGURES
};

struct result {
    bool known;
    double value;
    double base; /* of the ceiling it is compared with; 0: none */
    char note[200];
};

extern struct bench {
    bool quick;
    struct server server; /* without AOF */
    char command[512];    /* build/weir */
    char redis_version[32];
    struct result *results; /* of each figure; shared with the groups */
} bench;

/* ---- main.c */

/* Sleeps. */
void bench_rest(double seconds);
/* Ends the group when the user has stopped the benchmark. */
void bench_check(void);
/* The full size, or a tenth of it with --quick. */
size_t bench_size(size_t full);
/* For qsort: two int64_t. */
int bench_compare_us(const void *a, const void *b);
/* A client of libweir, and what its call has returned. */
struct weir *client_open(const char *url);
void client_must(struct weir *w, int rc);

/* ---- report.c */

void report_begin(void);
/* Keeps a figure and prints its row. */
void report(enum figure figure, double value, double base, const char *note, ...) WEIR_PRINTF(4, 5);
void report_end(void);

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
struct stopwatch stopwatch_start(struct server *s);
/* The client's share is that of this process; who measures another one overwrites it. */
struct speed stopwatch_stop(struct server *s, const struct stopwatch *watch, size_t jobs);

/* A figure and how to measure it once. A ceiling that is known is not measured again. */
struct trial {
    enum figure figure, base; /* base FIGURES: none */
    struct speed (*run)(size_t jobs, int arg);
    int arg;
    const char *note;
};
#define TRIALS_MOST 5
/* The median of three rounds, in which the trials take turns. */
void measure_trials(const struct trial *trials, int count, size_t jobs);

/* Removes all keys. */
void empty(void);
/* Enqueues n jobs with bodies of that size with weir_bulk_add. */
void fill(const char *url, const char *type, size_t n, size_t body_bytes);
/* The same with so many keys, in turn. */
void fill_keys(const char *url, const char *type, size_t n, size_t body_bytes, size_t keys);
/* Removes all keys, sets the limit of type (rule NULL: none), and fills its queue. */
void prepare(struct server *s, const char *type, const char *rule, size_t n);
/* Waits until a counter of a type has reached n. */
struct crew;
void wait_for_count(struct server *s, struct crew *crew, const char *type, const char *counter, size_t n);

/* Runs the jobs of type noop with these workers, from their start until Redis has counted the last one done. */
struct crew_plan;
struct speed time_crew(struct server *s, const struct crew_plan *plan, size_t jobs);
/* The same with one worker. */
struct speed time_worker(struct server *s, int executors, size_t jobs);

/* ---- ceiling.c */

struct speed ceiling_push(size_t jobs, int arg);
struct speed ceiling_lua(size_t jobs, int arg);

/* ---- pace.c */

/* How exactly two workers keep a rate by that URL: reports it. */
void measure_far(const char *url, const char *rule, double a_second);

/* ---- The groups */

void bench_bulk(void);
void bench_lines(void);
void bench_run(void);
void bench_limited(void);
void bench_aof(void);
void bench_latency(void);
void bench_sparse(void);
void bench_memory(void);
void bench_bytes(void);
void bench_pace(void);
void bench_million(void);
void bench_fast(void);
void bench_flood(void);
void bench_queues(void);
void bench_behind(void);
void bench_growth(void);
void bench_keys(void);
void bench_take(void);
void bench_protocol(void);
void bench_unique(void);
void bench_pipe(void);
void bench_exec(void);
void bench_async(void);
void bench_tls(void);
void bench_far(void);
void bench_idle(void);
void bench_look(void);
