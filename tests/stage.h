/* The stage of a test with workers: a private Redis, a client, workers as processes of their own, and the
 * history that their handlers write.
 *
 * A worker is build/weir, or an actor: the test program itself, started again as a program that was written
 * against weir.h. An actor runs any job by what its args say (see stage.c) and appends to stage/history, each
 * line by one write:
 *
 *   EVENT ID ATTEMPT PID US      begin: the handler was called; effect: it did what it is for; US: monotonic
 *
 * The history is the judge: whatever Redis counts, a job is done when its effect stands there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/program.h"
#include "tests/server.h"
#include "tests/test.h"
#include "weir.h"

#define MS INT64_C(1000) /* in us */
#define SECOND INT64_C(1000000)
#define AWAIT_US 60000000 /* a machine that is busy with other tests */

/* Waits until condition holds; fails the test when that takes too long. */
#define await(condition)                                                                                     \
    for (int64_t end_us_ = clock_mono_us() + AWAIT_US; !(condition);                                         \
         clock_sleep_until(clock_mono_us() + 2000))                                                          \
        if (clock_mono_us() > end_us_)                                                                       \
    fail_msg("waited in vain for: %s", #condition)

struct stage {
    struct server server; /* its folder is the test's: logs, scripts, traces, history */
    struct weir *client;
    char ns[24];
    struct stage *root; /* whose server it is, when this is a branch */
};

void stage_open(struct stage *s, bool aof);
void stage_open_with(struct stage *s, bool aof, const char *const *options); /* server_start_with() */
/* On a Redis with a clock of its own: server_shift_clock. */
void stage_open_shifted(struct stage *s);
/* Another namespace on the same Redis with a folder of its own inside, so that cases can run side by side. */
void stage_branch(struct stage *root, const char *ns, struct stage *branch);
/* Its workers end, by TERM and with 0: who is not awaited before, and was not killed. Branches first. */
void stage_close(struct stage *s);
/* The set-up and the end of a cmocka test whose *state is a stage of its own; durable: with an AOF. */
int stage_setup(void **state);
int stage_setup_durable(void **state);
int stage_teardown(void **state);
/* The test has the stage as s. */
#define STAGE_TEST(name) STAGE_TEST_WITH(name, stage_setup, stage_teardown)
#define STAGE_TEST_WITH(name, setup, teardown)                                                               \
    static void name##_on(struct stage *s);                                                                  \
    TEST_WITH(name, setup, teardown)                                                                         \
    {                                                                                                        \
        name##_on(*state);                                                                                   \
    }                                                                                                        \
    static void name##_on(struct stage *s)

/* A busy machine may spoil what a test says of times. If the trial was late it is run again, on a new stage if *state is one, eight times
 * at most: what the product does wrong it does each time. */
void stage_trials(void **state, void (*trial)(void **state));
/* Within a trial: it was late, by this. The trial goes on to its end. */
void stage_late(const char *fmt, ...) WEIR_PRINTF(1, 2);
#define stage_in_time(us, most_us)                                                                           \
    do {                                                                                                     \
        int64_t us_ = (us), most_us_ = (most_us);                                                            \
        if (us_ > most_us_)                                                                                  \
            stage_late("%s:%d: " #us " is %lld us, more than %lld", __FILE__, __LINE__, (long long)us_,      \
                       (long long)most_us_);                                                                 \
    } while (0)
#define TRIAL_WITH(name, setup, teardown)                                                                    \
    static void try_##name(void **state);                                                                    \
    TEST_WITH(name, setup, teardown)                                                                         \
    {                                                                                                        \
        stage_trials(state, try_##name);                                                                     \
    }                                                                                                        \
    static void try_##name(void **state)

/* The main of a test program begins with it: an actor's life, when the program was started as one; else -1.
 */
int stage_actor_main(int argc, char **argv);
#define STAGE_TESTS(setup, teardown)                                                                         \
    int main(int argc, char **argv)                                                                          \
    {                                                                                                        \
        int actor = stage_actor_main(argc, argv);                                                            \
                                                                                                             \
        return actor >= 0 ? actor : tests_run(setup, teardown);                                              \
    }
/* Starts an actor by options such as "types=a,b" "executors=2" "lease=1", ended by NULL (see stage.c); with
 * "program=PATH" that program is the actor. Its standard error goes to folder/name.err. */
pid_t stage_actor(struct stage *s, const char *name, ...) __attribute__((sentinel));
/* Starts "weir worker" with these words, in the stage's folder. */
pid_t stage_weir(struct stage *s, const char *name, ...) __attribute__((sentinel));
/* Runs weir with the words of a line, as program_weir() has them; it must end with 0. */
void stage_must(struct stage *s, const char *line);
/* Waits until n workers are registered. */
void stage_await_workers(struct stage *s, int n);
/* Waits until the worker that was silent longest has sent n more heartbeats. */
void stage_await_heartbeats(struct stage *s, int n);
/* Waits until n connections are blocked in Redis: idle workers on duty hold two and one for each further
 * queue. */
void stage_await_blocked(struct stage *s, int n);
/* A worker that was started another way: the stage ends it, too. Returns pid. */
pid_t stage_keeps(struct stage *s, pid_t pid);
/* Ends all of its workers, as stage_close does. */
void stage_end_workers(struct stage *s);
/* TERM, and the exit code. */
int stage_end(pid_t pid);

/* A job of type "run", of id j<number>; max_attempts 0, timeout_s 0: as when nothing is said. */
void stage_run(struct stage *s, int number, const char *args, int max_attempts, double timeout_s);
/* Jobs number first to first + n - 1, of ids j<number>. args may be NULL. Fails the test if one is refused.
 */
void stage_enqueue(struct stage *s, const char *type, const char *args, int first, int n);
/* The same by the RPUSH of any Redis client, one by one. */
void stage_push(struct stage *s, const char *type, const char *args, int first, int n);
/* RPUSH of this text to the default queue. */
void stage_push_text(struct stage *s, const char *text);
/* The same of a job as a producer wrote it who enqueued it at that time. */
void stage_push_stamped(struct stage *s, int64_t enqueued_us, const char *text);
void stage_rate(struct stage *s, const char *name, const char *rule);

/* The key with the namespace's prefix; four at a time. */
const char *stage_key(struct stage *s, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* A number of that key's field, 0 if absent. */
long long stage_stat(struct stage *s, const char *type, const char *counter);
/* Logs what Redis is asked to settle, from now on; and says how many ends are in the largest settle of jobs that have failed. */
void stage_log_ends(struct stage *s);
long long stage_most_failed(struct stage *s);
/* The dead jobs, each "lane reason\nentry"; the caller's to free. */
char *stage_dead(struct stage *s);

/* Why job number `number` is dead; "" when it is not. Static. */
const char *stage_death(struct stage *s, int number);
/* It is, and that is a part of why. */
void stage_died(struct stage *s, int number, const char *why);
/* What its handler left of job number `number`, which was kept; "-": nothing, or it was not kept. Static. */
const char *stage_result(struct stage *s, int number);
/* How many lines folder/name has; 0: there is no such file. */
int stage_lines(struct stage *s, const char *name);

/* How often the log of a worker (folder/NAME.err) says that. */
int stage_says(struct stage *s, const char *name, const char *what);
/* How often anybody has peeked at a queue. */
long long stage_peeks(struct stage *s);

struct event {
    char what[8];
    int job, attempt;
    pid_t pid;
    int64_t at_us;
};
struct history {
    struct event *events;
    int count;
};
/* What was written so far; freed by history_free. */
struct history history_read(struct stage *s);
void history_free(struct history *h);
/* How many lines of this event there are; job < 0: of all jobs. */
int history_count(struct stage *s, const char *what, int job);
/* The job's event of that kind, from 0; fails the test when there are not so many. */
const struct event *history_nth(const struct history *h, const char *what, int job, int n);

/* What became of the jobs 0 to accepted - 1. */
struct verdict {
    int done;       /* with an effect */
    int twice;      /* effects beyond the first */
    int dead;       /* without an effect, among the dead jobs */
    int present;    /* neither, but somewhere in Redis */
    int lost;       /* nowhere */
    int unexpected; /* effects of jobs that nobody enqueued */
    int left;       /* whatever is still in Redis and not dead */
};
struct verdict stage_judge(struct stage *s, int accepted);
/* Waits until every job has had its effect or is dead, and nothing else is left in Redis. */
struct verdict stage_await_ended(struct stage *s, int accepted);
/* The same, and none may be dead. */
struct verdict stage_await_done(struct stage *s, int accepted);
