/* Between the parts of the checker: what is known of a run, and what happened to each start of a job in it. history.c reads it, limits.c holds
 * it against the limits, checker.c asks the rest. */
#pragma once

#include "tests/chaos/checker.h"
#include "tests/test.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define LATE_US (50 * MS)

/* A start and what became of it. */
struct start {
    const char *id;
    int job, type, worker, n;
    pid_t pid;
    int64_t at_us, ended_us; /* ended: 0: it never said so */
    char ending;
    int64_t next_us; /* the job's next start; 0: none */
    bool traced;
    int64_t slot_us;   /* monotonic; 0: not known, or it needed none */
    int64_t called_us; /* by the trace */
    int epoch, slot_cost;
};

struct answer {
    bool in, maybe, held, cancel_asked;
    int64_t cancel_us; /* when that was first asked */
    bool done;
    int64_t stopped_us; /* it must not begin after this; 0: it may */
};

struct judge {
    struct run *run;
    struct verdict *v;
    struct event *events; /* whose ids the starts have */
    struct start *starts; /* by id, then time */
    int start_count;
    struct answer *answers; /* by job */
    bool *batch_cancelled;
    int64_t wall_us; /* the machine's clock is before the monotonic one; read once, for it moves */
};

/* It must not be: counted, and printed. */
void judge_wrong(struct verdict *v, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Milliseconds since the run began, for those who read. */
long long judge_ms(const struct run *run, int64_t at_us);
FILE *judge_open(const struct run *run, const char *name);

/* ---- history.c: what handlers and actors wrote */

void judge_read_history(struct judge *j);
/* The index of the first start of that id, or of what comes behind it. */
int judge_first_of(const struct judge *j, const char *id);
bool life_says(const struct run *run, const struct life *life, const char *text);
const struct life *start_life(const struct judge *j, const struct start *s);
bool start_was_hit(const struct incident *i, const struct start *s);
int64_t start_lease_us(const struct start *s);
/* When a worker that had begun s at that time may have lost its lease by silence, before until_us; 0: it had no reason to. */
int64_t start_silent_us(const struct judge *j, const struct start *s, int64_t until_us);
/* When the worker of s was asked to end after s began; 0: it was not, before until_us. */
int64_t start_told_us(const struct judge *j, const struct start *s, int64_t until_us);
/* When the process of the handler was killed; 0: not. */
int64_t start_died_us(const struct judge *j, const struct start *s, int64_t until_us);
/* Was its own process killed, perhaps when the job had ended? */
bool start_was_killed(const struct judge *j, const struct start *s);
/* When a job was cancelled that its process ran and has not ended: the process is ended, with all that it runs; 0: none was. */
int64_t start_cancelled_us(const struct judge *j, const struct start *s, int64_t until_us);
/* Until when s counts as running, for rules of concurrency. */
int64_t start_released_us(const struct judge *j, const struct start *s);

/* ---- limits.c */

void judge_read_traces(struct judge *j);
/* A process that ended well has written down every start: what is not there was begun behind its back. */
void judge_check_traces(struct judge *j);
void judge_check_limits(struct judge *j);
/* The product's own judge, which knows all rules. */
void judge_check_verify(struct judge *j);
