/*
 * weir.h - the public interface of Weir, a distributed job queue on Redis whose workers hold every task type
 * to a global rate, exactly. C99 or newer, and C++11 or newer.
 *
 *   cc own.c $(pkg-config --cflags --libs weir)       after make install
 *
 * Three kinds of user: a producer (weir_new, weir_enqueue, weir_bulk_*), a worker process (weir_worker_*),
 * and a handler (a function of type weir_handler that a worker calls for each job). examples/own_worker.c is all
 * three in 80 lines.
 *
 * Conventions
 *   - Functions that can fail return 0, or a negative enum weir_status; weir_message() and
 *     weir_worker_message() then hold one line that says what failed, why, and what to do.
 *     The negated status is the exit code of the weir command for the same failure.
 *   - A pointer may be NULL where it says so. Elsewhere a status is WEIR_EUSAGE then, and the message names the argument;
 *     a function without a status does nothing and returns NULL or 0. A text or list that comes with its length may be NULL when that is 0.
 *   - Strings that are passed in are copied. Strings that are returned belong to the object they came from.
 *   - A struct weir and a struct weir_worker belong to one thread; handlers run on threads of the worker. Calls of two
 *     threads that meet at one struct weir fail with WEIR_EUSAGE. weir_job_client() is the client of a handler's thread.
 *   - Calls wait for Redis, and signals are left as they are: the library sets no handler, and needs none.
 *   - A struct may gain members at its end, and functions may come, under the same soname. So make a struct all zero (by = {0}, or by
 *     naming members), and compile anew to use what is new: "Structs that grow", below, is how old programs go on working.
 *   - Durations are seconds as double; names (types, queues, ids ...) are 1 to 128 of [A-Za-z0-9_.-].
 *
 * After fork()
 *   - A child may use a struct weir of its parent: its first call opens a new connection. Not one that another
 *     thread was using during the fork().
 *   - Bulks and workers remain the parent's: in a child they fail with WEIR_EUSAGE. A child makes new ones.
 *   - A child that a handler forks runs another program, or ends by _exit(). If it returns from the handler
 *     or ends the job, it is ended with 70.
 */
#ifndef WEIR_H
#define WEIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION "0.1.0"
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WEIR_CHECKED __attribute__((warn_unused_result))
#define WEIR_INLINE static inline /* stands at the end of this file */

/* Returns the version of the library that runs; WEIR_VERSION is that of this header. */
WEIR_API const char *weir_version(void);

/* Has the lines of workers' logs given to log, with arg, in place of standard error; NULL: standard error again. level: 0 error, 1 warning,
 * 2 information, 3 debug; $WEIR_LOG says up to which. line: one event without a newline, in the form of $WEIR_LOG_FORMAT, until log returns.
 * It is called on any thread, one line at a time, and must neither wait nor call Weir. */
WEIR_API void weir_set_log(void (*log)(int level, const char *line, void *arg), void *arg);

enum weir_status {
    WEIR_OK = 0,
    WEIR_EUSAGE = -64,       /* the call itself is wrong */
    WEIR_EINPUT = -65,       /* the input is wrong, or can never succeed */
    WEIR_ENOTFOUND = -66,    /* no such job, limit or batch */
    WEIR_EUNREACHABLE = -69, /* Redis does not answer */
    WEIR_EINTERNAL = -70,    /* out of memory, or a bug */
    WEIR_ENOTNOW = -75,      /* denied now, timed out, or the outcome is unknown */
    WEIR_EREFUSED = -77,     /* Redis refused the login or a permission */
    WEIR_ECONFIG = -78,      /* wrong configuration */
};

/* ---- Producing ---------------------------------------------------------------------------------------- */

/* A connection to one Redis and one namespace. */
struct weir;

/* Makes a client; connects at the first use. url: redis://[user:pass@]host:port/db, rediss:// for TLS,
 * redis+sentinel:// and redis+cluster:// for several, unix:///path or /path or ./path. It may end with
 * ?name=value&..., percent-encoded: password-file, password-command, and cacert, cacertdir, cert, key, sni, insecure,
 * as the flags --password-file, --password-command and --tls-cacert to --tls-insecure of the weir command.
 * url NULL means $REDIS_URL, else redis://127.0.0.1:6379. ns NULL means $WEIR_NAMESPACE, else "weir". A
 * malformed url or namespace is reported by the first call. Returns NULL only when out of memory. */
WEIR_API struct weir *weir_new(const char *url, const char *ns);
WEIR_API void weir_free(struct weir *w);
/* Returns the last failure of w in one line, never NULL. */
WEIR_API const char *weir_message(const struct weir *w);

/* One job. A member that is NULL or 0 takes its default, which is named first. */
struct weir_job_spec {
    const char *type;   /* required */
    const char *args;   /* null; else any JSON text */
    const char *queue;  /* "default" */
    const char *id;     /* made; an id that you give is accepted once a day */
    const char *key;    /* none; else the key that rules with by=key go by */
    int64_t cost;       /* that of its type, else 1: how many slots the job takes of each rate */
    int max_attempts;   /* 25 */
    double timeout_s;   /* none; an attempt that takes longer has failed, whatever it reports then */
    double delay_s;     /* none; else it starts that long from now at the earliest */
    double at_s;        /* none; else it starts at this time at the earliest, in seconds since 1970 */
    const char *unique; /* none. "KEY": one job of that key until it ends; "KEY:waiting": until it starts;
                                "KEY:10m": for that time */
    const char *batch;  /* none; else the job is counted there. Not for jobs of bulks */
    const char *traceparent; /* none; else a W3C trace context, handed to the handler */
    const char *meta;        /* none; else any JSON text, handed to the handler */
    const char *
        costs; /* none; else the cost by name, for rules with of=NAME: "tokens=900" or "3,tokens=900", instead of cost */
};

#define WEIR_ID_SIZE 129 /* the longest id and its NUL */

/* Enqueues one job; writes its id to id unless that is NULL. A second enqueue of an id that you gave changes
 * nothing and succeeds. When another job holds the unique key, nothing is enqueued, and id is that job's. After
 * a lost connection the job is sent again, for 15 s, and arrives once; WEIR_ENOTNOW then: it may have arrived. */
WEIR_INLINE WEIR_CHECKED int weir_enqueue(struct weir *w, const struct weir_job_spec *job,
                                          char id[WEIR_ID_SIZE]);

/* A bulk: many jobs in order, each exactly once, in chunks, with constant memory.
 *
 * With a name it is a batch that can be resumed: every call of weir_bulk_add counts one input line, Redis
 * keeps how many lines it has and a checksum over them, and a later run over the same input skips those. A
 * bulk without a name survives lost connections, not the death of its process.
 *
 * Where the namespace has partitions, a bulk without a name may hold types of all of them: order is kept in each.
 * A bulk with a name lives on one, that of its first type: a job of another partition is WEIR_EINPUT. */
struct weir_bulk;

/* Begins or resumes a bulk. batch, its name, may be NULL. The bulk borrows w until it is closed; one at a time. */
WEIR_API WEIR_CHECKED int weir_bulk_open(struct weir *w, const char *batch, struct weir_bulk **bulk);
/* Adds one job (delay_s, at_s, unique and batch are not for bulks). May send and wait. WEIR_EINPUT: this job
 * is wrong, nothing was added and the line was not counted. */
WEIR_INLINE WEIR_CHECKED int weir_bulk_add(struct weir_bulk *b, const struct weir_job_spec *job);
/* Adds one line of NDJSON: a job object, or with type not NULL the args of a job of that type. len excludes
 * the newline. queue NULL: the job's own queue, else "default". Errors as weir_bulk_add. */
WEIR_API WEIR_CHECKED int weir_bulk_add_line(struct weir_bulk *b, const char *type, const char *queue,
                                             const char *line, size_t len);
/* Counts a line of the input that carries no job, so that resuming finds its place. */
WEIR_API WEIR_CHECKED int weir_bulk_skip_line(struct weir_bulk *b, const char *line, size_t len);

struct weir_bulk_counts {
    uint64_t lines;    /* input lines given so far, skipped ones included */
    uint64_t resumed;  /* lines that an earlier run had sent */
    uint64_t accepted; /* jobs of this run that Redis has acknowledged */
};
WEIR_INLINE void weir_bulk_count(const struct weir_bulk *b, struct weir_bulk_counts *counts);
/* When the batch of b has ended, one job of this type is enqueued, with what the batch counted as its args.
 * Takes effect at weir_bulk_close; for a bulk with a name only. Where the namespace has partitions, the type must live on that
 * of the batch: weir_bulk_close answers WEIR_EINPUT. */
WEIR_API WEIR_CHECKED int weir_bulk_then(struct weir_bulk *b, const char *type);
/* Sends what is left, waits for Redis, frees b whatever happens. counts may be NULL. A named batch is then
 * sealed: all its jobs are known, and it has ended when they have. */
WEIR_INLINE WEIR_CHECKED int weir_bulk_close(struct weir_bulk *b, struct weir_bulk_counts *counts);
/* Frees b and sends nothing more; the batch can be resumed. */
WEIR_API void weir_bulk_abandon(struct weir_bulk *b);

/* No more jobs come into this batch, which was filled by weir_enqueue; then_type: see weir_bulk_then, or
 * NULL. WEIR_ENOTFOUND: no such batch. */
WEIR_API WEIR_CHECKED int weir_batch_seal(struct weir *w, const char *batch, const char *then_type);

/* Cancels a job. If it waits, is parked or scheduled, it will not run. If it runs, weir_job_is_cancelled() says so
 * to its handler. WEIR_ENOTFOUND: there is no such job; done and dead ones count as none. */
WEIR_API WEIR_CHECKED int weir_cancel(struct weir *w, const char *id);

/* ---- Schedules ---------------------------------------------------------------------------------------- */

/* Says what becomes of occurrences that passed while no worker ran. */
enum weir_missed {
    WEIR_MISSED_ONCE = 0, /* one job for all of them */
    WEIR_MISSED_SKIP = 1, /* none */
    WEIR_MISSED_ALL = 2,  /* one job for each */
};

/* Adds the schedule name, or replaces it: each occurrence enqueues one such job (id, delay_s, at_s, unique and
 * batch are not for schedules). when: cron with five fields, "@weekly" and the like, or "every 15m". zone: of the
 * tz database, such as "Europe/Berlin"; NULL: UTC. WEIR_EINPUT: when or zone cannot be read. */
WEIR_INLINE WEIR_CHECKED int weir_schedule_add(struct weir *w, const char *name, const char *when,
                                               const char *zone, enum weir_missed missed,
                                               const struct weir_job_spec *job);
/* Removes it; jobs that it has enqueued stay. WEIR_ENOTFOUND when there is none. */
WEIR_API WEIR_CHECKED int weir_schedule_remove(struct weir *w, const char *name);

/* ---- Rates -------------------------------------------------------------------------------------------- */

/* Sets the limit name to one to eight rules, joined by blanks, such as "100/1m" or
 * "10/s,burst=20 9000/1d,algorithm=sliding-log". They apply at once, to waiting jobs too. A type is held by the
 * limit of its own name. name may be "LIMIT/KEY", KEY any text: that key has these rules, without by=, in place of the
 * limit's keyed ones, until they are removed. */
WEIR_API WEIR_CHECKED int weir_rate_set(struct weir *w, const char *name, const char *rules);
/* Removes the limit, or the rules of "LIMIT/KEY". WEIR_ENOTFOUND when there is none; WEIR_EINPUT while types use it. */
WEIR_API WEIR_CHECKED int weir_rate_remove(struct weir *w, const char *name);
/* Holds type by these limits too: their names, joined by blanks. A job of it takes cost slots of each rate (0: as
 * many as before, 1 at first). WEIR_ENOTFOUND when one does not exist; WEIR_EINPUT when they do not go together, or do not live
 * on the type's partition: a type and its limits are then named alike up to their first dot. */
WEIR_API WEIR_CHECKED int weir_rate_use(struct weir *w, const char *type, const char *limits, int64_t cost);
/* Says what a job of type costs by name, for rules with of=NAME: "tokens=800" or "3,tokens=800". What is not named is 1. */
WEIR_API WEIR_CHECKED int weir_rate_costs(struct weir *w, const char *type, const char *costs);
/* Stops holding type by these limits. WEIR_ENOTFOUND when it does not use one of them. */
WEIR_API WEIR_CHECKED int weir_rate_unuse(struct weir *w, const char *type, const char *limits);
/* Keys of a limit take turns. Gives key (any text) weight turns for one of the others: 1 to 1000; 1 at first. */
WEIR_API WEIR_CHECKED int weir_rate_weight(struct weir *w, const char *limit, const char *key, int weight);
/* Pauses the limit for for_s seconds, at most ten years: no job that it holds starts. limit may be "LIMIT/KEY", KEY
 * any text, where the limit is keyed: then only that key is paused. INFINITY: until it is resumed. */
WEIR_API WEIR_CHECKED int weir_rate_pause(struct weir *w, const char *limit, double for_s);
/* Ends the pause of a limit, or of "LIMIT/KEY", and those that throttled jobs asked for. */
WEIR_API WEIR_CHECKED int weir_rate_resume(struct weir *w, const char *limit);

struct weir_take {
    int allowed;
    int never;            /* the cost is more than the limit can ever allow at once */
    int assumed;          /* Redis was away: answered as the flags say, nothing was counted */
    int64_t limit;        /* the burst; of several rules the smallest */
    int64_t remaining;    /* slots that may still be taken now; of several rules the least */
    double retry_after_s; /* -1 when allowed, or never */
    double reset_after_s; /* until the whole burst is there again */
};
#define WEIR_TAKE_PEEK 1     /* look, take nothing */
#define WEIR_TAKE_ASK 2      /* ask Redis even if it has just denied the same */
#define WEIR_TAKE_OR_ALLOW 4 /* when Redis is away: allowed, not an error; weir_message says why */
#define WEIR_TAKE_OR_DENY 8  /* when Redis is away: denied, not an error */

/* Takes cost slots (0: 1) of a limit, for anything that is not a job. target is NAME; or NAME/KEY, KEY any text, when
 * the limit's rules have ",by=", or when you give rules. rule NULL: the limit's rules; else up to eight, joined by
 * blanks, for a NAME that has no others. Returns 0 whether allowed or not: see take->allowed. A slot that was taken
 * stays taken.
 *
 * A denial is remembered in w until it can change, one second at most: asking again meanwhile costs no round
 * trip. */
WEIR_INLINE WEIR_CHECKED int weir_take(struct weir *w, const char *target, const char *rule, int64_t cost,
                                       int flags, struct weir_take *take);

/* weir_take for who can wait: in line with others that do, in the order of coming. Returns when its slot has come, which take
 * says then; or denied at once where it comes later than in most_s seconds (below 0: as long as it takes). A limit that is changed
 * meanwhile is heard of. WEIR_EUSAGE: a peek. */
WEIR_INLINE WEIR_CHECKED int weir_take_wait(struct weir *w, const char *target, const char *rule,
                                            int64_t cost, int flags, double most_s, struct weir_take *take);

/* weir_take (most_s 0) or weir_take_wait with a cost by name: "tokens=900" or "3,tokens=900"; what is not named is 1. */
WEIR_INLINE WEIR_CHECKED int weir_take_costs(struct weir *w, const char *target, const char *rule,
                                             const char *costs, int flags, double most_s,
                                             struct weir_take *take);

/* One of many takes: what you ask, and the answer. */
struct weir_take_item {
    const char *target;      /* as in weir_take */
    int64_t cost;            /* 0: 1 */
    int status;              /* 0: take is the answer; else what is wrong with this one */
    const char *why;         /* the same in words; NULL when status is 0. Static */
    const void *reserved[1]; /* NULL: what one may ask in a later version */
    const char *costs;       /* NULL; else the cost by name, such as "tokens=900", instead of cost */
    struct weir_take take;
};
/* As count calls of weir_take, one after the other, with one round trip for each thousand. Returns 0: see each
 * item's status. Else Redis could not be asked: items without an answer have the status that is returned. */
WEIR_INLINE WEIR_CHECKED int weir_take_many(struct weir *w, struct weir_take_item *items, size_t count,
                                            const char *rule, int flags);

/* Slots on lease: of all rules of a limit, concurrency too, for what is not a job. A hold lasts for its ttl, by Redis's clock, and as long again each
 * time that it is renewed: who does so at a third of that loses it only when Redis is away for the rest. What a dead holder held comes back at its end. */
struct weir_hold {
    int allowed;
    int never;            /* the cost is more than the limit can ever allow at once */
    int64_t limit;        /* the burst; of several rules the smallest */
    int64_t remaining;    /* slots that are left now; of several rules the least */
    double retry_after_s; /* -1 when allowed, or never; else when to ask again */
    char token[160];      /* names the hold: whoever has it renews and ends it; "" when not allowed */
};
/* Takes a hold for ttl_s seconds (0: 30; at most a day) on target, NAME or NAME/KEY. Of each rate cost slots are taken (0: 1), of concurrency one.
 * Waits up to most_s seconds (0: not at all; below 0: as long as it takes), in line with others and in turns with jobs. Returns 0 whether allowed or not. */
WEIR_INLINE WEIR_CHECKED int weir_hold(struct weir *w, const char *target, int64_t cost, double ttl_s,
                                       double most_s, struct weir_hold *hold);
/* The same with a cost by name, "tokens=900" or "3,tokens=900"; what is not named is 1. */
WEIR_INLINE WEIR_CHECKED int weir_hold_costs(struct weir *w, const char *target, const char *costs,
                                             double ttl_s, double most_s, struct weir_hold *hold);
/* It lasts for its ttl from now on. WEIR_ENOTFOUND: it is not held any more, so others may have its slots. */
WEIR_API WEIR_CHECKED int weir_hold_renew(struct weir *w, const char *token);
/* Gives back what it took of concurrency. spent: what it cost in truth, 0 to 10^9: the rates take the difference, or give it back; below 0: as
 * much as it took. WEIR_ENOTFOUND: it was not held any more, and nothing is settled. */
WEIR_API WEIR_CHECKED int weir_hold_end(struct weir *w, const char *token, int64_t spent);
/* The same with what it cost in truth by name, "tokens=1210"; what is not named is as much as it took. */
WEIR_API WEIR_CHECKED int weir_hold_spent(struct weir *w, const char *token, const char *spent);

/* ---- Handlers ----------------------------------------------------------------------------------------- */

/* A job that a handler runs. Valid, as all texts of it, until the handler returns. */
struct weir_job;

WEIR_API const char *weir_job_id(const struct weir_job *job);
WEIR_API const char *weir_job_type(const struct weir_job *job);
/* Returns the key, or NULL. */
WEIR_API const char *weir_job_key(const struct weir_job *job);
/* Returns the args as JSON text, byte for byte as enqueued, NUL-terminated; "null" when there are none. */
WEIR_API const char *weir_job_args(const struct weir_job *job);
/* Returns the whole job as JSON text, NUL-terminated. len, its length without the NUL, may be NULL. */
WEIR_API const char *weir_job_body(const struct weir_job *job, size_t *len);
/* Returns 1 at the first attempt. */
WEIR_API int weir_job_attempt(const struct weir_job *job);
/* Returns when the job was enqueued, in seconds since 1970, by its producer's clock: not when it was due, or when it was retried. 0:
 * unknown, as another Redis client pushed it. */
WEIR_API double weir_job_enqueued_at(const struct weir_job *job);
/* Returns the batch, or NULL. */
WEIR_API const char *weir_job_batch(const struct weir_job *job);
/* Returns the W3C trace context, or NULL. */
WEIR_API const char *weir_job_traceparent(const struct weir_job *job);
/* Says whether the handler should end: 1 when the job was cancelled, is over its time, or was given to another worker. */
WEIR_API int weir_job_is_cancelled(const struct weir_job *job);
/* A client of the worker's Redis and namespace for handlers that enqueue, take slots or ask: that of the executor's thread, which keeps it
 * until it ends. It is not to be freed, nor given to another thread. NULL: out of memory; the handler is asynchronous, and its calls must not
 * wait. */
WEIR_API struct weir *weir_job_client(const struct weir_job *job);
/* Writes one line to the worker's log, with the job's type and id. From any thread. */
WEIR_API void weir_log(const struct weir_job *job, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* Values from 4 to 63 are left for outcomes of later versions, each with a call of its own. */
enum weir_outcome { WEIR_DONE = 0, WEIR_RETRY = 1, WEIR_DEAD = 2, WEIR_THROTTLED = 3 };

/* A handler returns the result of one of these three calls, or WEIR_DONE. Any other value counts as WEIR_RETRY. The
 * reason is kept with the job; NULL: none.
 *
 * The job failed, and is tried again after after_s; below 0, above ten years or NAN: after the usual backoff. */
WEIR_API int weir_job_retry(struct weir_job *job, double after_s, const char *reason, ...) WEIR_PRINTF(3, 4);
/* The job will never succeed: it goes to the dead jobs at once. */
WEIR_API int weir_job_dead(struct weir_job *job, const char *reason, ...) WEIR_PRINTF(2, 3);
/* The provider said stop. The type's limit is paused for after_s, of a keyed limit only the job's key; the job comes
 * back to the head of its lane, and no attempt is used.
 *   after_s < 0, or NAN: the provider gave no time. 1 s, doubled each time up to 5 min, until a job is done; after 24
 *                hours without one, each throttled end uses an attempt.
 *   after_s >= 0: that long; at least 0.1 s, doubled in the same way up to 10 s, and at most pause_most_s. */
WEIR_API int weir_job_throttled(struct weir_job *job, double after_s);
/* The job's true cost, when it was not known before: when the job ends, its limits take the difference, or give it
 * back. 0 to 10^9. */
WEIR_API void weir_job_spent(struct weir_job *job, int64_t cost);
/* The same by name, for rules with of=NAME: weir_job_spent_of(job, "tokens", 1210). What is never named cost what it took. WEIR_EINPUT: it is no name,
 * or one more than 8; it counts as left out, which is logged. */
WEIR_API int weir_job_spent_of(struct weir_job *job, const char *name, int64_t slots);
/* Leaves what came of the job for weir job show and weir job wait: any JSON, at most 64 KiB, kept with the job where its type is (keep_s) and
 * when it is done. The last call counts. WEIR_EINPUT: it is no JSON, or too large; it counts as left out, which is logged. */
WEIR_API int weir_job_result(struct weir_job *job, const char *json);

/* A handler does not end the process. If it does, by exit() or pthread_exit(), its job counts as interrupted
 * and is dead at the third time; the other jobs are given back, and the process ends with 70. */
typedef int weir_handler(struct weir_job *job, void *arg);

/* An asynchronous handler runs on the worker's event loop and returns at once: while it blocks, nothing else of the
 * worker runs, and if it blocks past the end of the lease, the process ends with 70. The job lives until
 * weir_job_end. */
typedef void weir_async_handler(struct weir_job *job, void *arg);
/* Ends a job of an asynchronous handler: result is what a handler returns, such as weir_job_retry(job, ...). Call it
 * exactly once for each job, from any thread, before weir_worker_free; it frees the job. Of a job that the worker has
 * given up (over its time, its lease lost, the worker stopped) result does not count. */
WEIR_API void weir_job_end(struct weir_job *job, int result);

/* ---- Workers ------------------------------------------------------------------------------------------ */

struct weir_worker;

/* Members that are NULL or 0 take their default. */
struct weir_worker_options {
    const char *redis_url; /* as weir_new */
    const char *ns;        /* as weir_new */
    const char *queues;    /* "default"; "a,b": strict order; "a=3,b": by weight; "a,mail.*", "*": patterns, a
                             * beginning of names and one *: their queues take turns. At most 1,000 names and
                             * patterns; with weights at most 64, and no pattern */
    int executors;         /* 10: jobs that run at a time; at most 1024, without handlers on threads 65536 */
    double lease_s;        /* 30: how long a silent worker keeps its jobs */
    double grace_s;        /* 25: how long a stopping worker waits for its handlers */
    const char *trace_file; /* none; else a line for each start is appended, for weir verify */
    int drain;              /* 1: stop when nothing is left to do, except what somebody has paused */
    double drain_max_s;     /* 0: for ever; how long to drain */
    int unknown_dead;       /* 1: jobs of types that no worker has run for a minute go to the dead jobs */
    double kill_after_s;    /* 5: from TERM to KILL for a command that is over its time, or cancelled */
    int64_t dead_most;      /* 100,000: dead jobs that are kept, if more; weir dead keep overrides it */
    double dead_age_s;      /* 180 days: for how long, likewise */
    double pause_most_s;    /* 86400: the longest pause that a handler may ask for, at most ten years */
    int64_t log_done;       /* 1: a line of the log for each job that is done */
};

/* Of one type; members that are 0 take their default. */
struct weir_type_options {
    double timeout_s;       /* none: the time limit of jobs that name none */
    double backoff_first_s; /* 15 s + n^4 s and jitter before retry n; else this, doubled each time */
    double backoff_most_s;  /* none: the longest wait that doubling comes to */
    double keep_s;          /* 0: how long done jobs are remembered, for weir job show */
};

/* Makes a worker that is not yet running. Returns NULL only when out of memory; wrong options are reported by
 * weir_worker_run. */
WEIR_INLINE struct weir_worker *weir_worker_new(const struct weir_worker_options *options);
WEIR_API void weir_worker_free(struct weir_worker *worker);
/* Returns the last failure of the worker in one line, never NULL. */
WEIR_API const char *weir_worker_message(const struct weir_worker *worker);

/* A worker runs the types that it has a handler for. All handlers are set before weir_worker_run, one a type. type may be several with commas
 * between, "mail,sms": they share what runs them, such as the children of a pipe. "mail.*" and "*" are for all types that begin so, also for those that
 * come later: a name goes before a pattern, a longer pattern before a shorter one, and weir_job_type() tells which one it is. */

/* Calls handler(job, arg) for each job of type, on one of the executor threads, several at a time. */
WEIR_API WEIR_CHECKED int weir_worker_handle(struct weir_worker *worker, const char *type,
                                             weir_handler *handler, void *arg);
/* Runs command, split at the blanks that stand in no quotes and given no shell, once for each job of type: the job as JSON on its
 * standard input and in WEIR_JOB_ID, WEIR_JOB_TYPE, WEIR_JOB_ATTEMPT, WEIR_JOB_ENQUEUED_AT. Exit 0 done, 75 throttled, 65 dead,
 * others retry, also an end that is not known: a program that runs commands must neither ignore SIGCHLD nor
 * wait for any child. */
WEIR_API WEIR_CHECKED int weir_worker_exec(struct weir_worker *worker, const char *type, const char *command);
/* Starts command, which is split as by weir_worker_exec, as a child that stays and takes jobs line by line, in_flight (0: 1) at a time;
 * more children when those are full. One job a line in, as JSON; one answer a line out:
 * {"id":...,"status":"done|retry|dead|throttled","after":seconds,"reason":...,"cost":n}. */
WEIR_API WEIR_CHECKED int weir_worker_pipe(struct weir_worker *worker, const char *type, const char *command,
                                           int in_flight);
/* Sends each job of type as a POST to url: 2xx done; 429 and 503 throttled, as Retry-After says; other 4xx
 * dead, but for 408 and 425; all else retry. */
WEIR_API WEIR_CHECKED int weir_worker_http(struct weir_worker *worker, const char *type, const char *url);
/* Reads files, either of which may be NULL, for the POSTs to all endpoints: headers has lines "Name: value"; secrets one or two lines, by
 * which each POST is signed: Weir-Signature is "t=SECONDS,v1=HEX", with a v1 for each secret, the HMAC-SHA-256 of "SECONDS.BODY". They are
 * read once, at this call; WEIR_ECONFIG where everybody can read them. */
WEIR_API WEIR_CHECKED int weir_worker_http_files(struct weir_worker *worker, const char *headers,
                                                 const char *secrets);
/* Calls handler(job, arg) for each job of type on the worker's event loop. */
WEIR_API WEIR_CHECKED int weir_worker_handle_async(struct weir_worker *worker, const char *type,
                                                   weir_async_handler *handler, void *arg);
/* The worker's event loop, of libev, for the watchers of asynchronous handlers. To be used on its thread: in
 * such handlers, in callbacks of the loop, and before weir_worker_run. */
struct ev_loop;
WEIR_API struct ev_loop *weir_worker_loop(struct weir_worker *worker);
/* Sets the options of a type, of a pattern, or of several with commas between, before weir_worker_run. What is given for fewer types counts. */
WEIR_INLINE WEIR_CHECKED int weir_worker_type(struct weir_worker *worker, const char *type,
                                              const struct weir_type_options *options);
/* Loads a shared object that exports "int weir_register(struct weir_worker *worker)", which calls
 * weir_worker_handle for its types and returns 0. */
WEIR_API WEIR_CHECKED int weir_worker_load(struct weir_worker *worker, const char *file);

/* Runs jobs until stopped: 0 when all was finished or given back; WEIR_ENOTNOW when draining took too
 * long, or left jobs of paused queues or batches; WEIR_EINTERNAL when a function that cannot be stopped ran
 * over its time or its lease: end the process. */
WEIR_API WEIR_CHECKED int weir_worker_run(struct weir_worker *worker);
/* Asks the worker to stop; the second call: at once. Safe in signal handlers and from any thread. */
WEIR_API void weir_worker_stop(struct weir_worker *worker);
/* Takes no more jobs, finishes those it has, and stays. Safe in signal handlers and from any thread. */
WEIR_API void weir_worker_quiet(struct weir_worker *worker);

/* ---- Structs that grow -------------------------------------------------------------------------------- */

/* A function that takes a struct, or fills one, is told the size that its caller knows. What an older program does not know is
 * 0 for the library, and left alone in the program. A member that a newer program sets and the library does not know is WEIR_EUSAGE.
 * Programs in C and C++ call the inline functions; other languages call these, with the size that their struct has. */
WEIR_API WEIR_CHECKED int weir_enqueue_sized(struct weir *w, const struct weir_job_spec *job, size_t size,
                                             char id[WEIR_ID_SIZE]);
WEIR_API WEIR_CHECKED int weir_bulk_add_sized(struct weir_bulk *b, const struct weir_job_spec *job,
                                              size_t size);
WEIR_API void weir_bulk_count_sized(const struct weir_bulk *b, struct weir_bulk_counts *counts, size_t size);
WEIR_API WEIR_CHECKED int weir_bulk_close_sized(struct weir_bulk *b, struct weir_bulk_counts *counts,
                                                size_t size);
WEIR_API WEIR_CHECKED int weir_schedule_add_sized(struct weir *w, const char *name, const char *when,
                                                  const char *zone, enum weir_missed missed,
                                                  const struct weir_job_spec *job, size_t size);
WEIR_API WEIR_CHECKED int weir_take_sized(struct weir *w, const char *target, const char *rule, int64_t cost,
                                          int flags, struct weir_take *take, size_t size);
WEIR_API WEIR_CHECKED int weir_take_wait_sized(struct weir *w, const char *target, const char *rule,
                                               int64_t cost, int flags, double most_s, struct weir_take *take,
                                               size_t size);
WEIR_API WEIR_CHECKED int weir_take_costs_sized(struct weir *w, const char *target, const char *rule,
                                                const char *costs, int flags, double most_s,
                                                struct weir_take *take, size_t size);
WEIR_API WEIR_CHECKED int weir_take_many_sized(struct weir *w, struct weir_take_item *items, size_t size,
                                               size_t count, const char *rule, int flags);
WEIR_API WEIR_CHECKED int weir_hold_sized(struct weir *w, const char *target, int64_t cost, double ttl_s,
                                          double most_s, struct weir_hold *hold, size_t size);
WEIR_API WEIR_CHECKED int weir_hold_costs_sized(struct weir *w, const char *target, const char *costs,
                                                double ttl_s, double most_s, struct weir_hold *hold,
                                                size_t size);
WEIR_API struct weir_worker *weir_worker_new_sized(const struct weir_worker_options *options, size_t size);
WEIR_API WEIR_CHECKED int weir_worker_type_sized(struct weir_worker *worker, const char *type,
                                                 const struct weir_type_options *options, size_t size);

WEIR_INLINE int weir_enqueue(struct weir *w, const struct weir_job_spec *job, char id[WEIR_ID_SIZE])
{
    return weir_enqueue_sized(w, job, sizeof *job, id);
}

WEIR_INLINE int weir_bulk_add(struct weir_bulk *b, const struct weir_job_spec *job)
{
    return weir_bulk_add_sized(b, job, sizeof *job);
}

WEIR_INLINE void weir_bulk_count(const struct weir_bulk *b, struct weir_bulk_counts *counts)
{
    weir_bulk_count_sized(b, counts, sizeof *counts);
}

WEIR_INLINE int weir_bulk_close(struct weir_bulk *b, struct weir_bulk_counts *counts)
{
    return weir_bulk_close_sized(b, counts, sizeof *counts);
}

WEIR_INLINE int weir_schedule_add(struct weir *w, const char *name, const char *when, const char *zone,
                                  enum weir_missed missed, const struct weir_job_spec *job)
{
    return weir_schedule_add_sized(w, name, when, zone, missed, job, sizeof *job);
}

WEIR_INLINE int weir_take(struct weir *w, const char *target, const char *rule, int64_t cost, int flags,
                          struct weir_take *take)
{
    return weir_take_sized(w, target, rule, cost, flags, take, sizeof *take);
}

WEIR_INLINE int weir_take_wait(struct weir *w, const char *target, const char *rule, int64_t cost, int flags,
                               double most_s, struct weir_take *take)
{
    return weir_take_wait_sized(w, target, rule, cost, flags, most_s, take, sizeof *take);
}

WEIR_INLINE int weir_take_costs(struct weir *w, const char *target, const char *rule, const char *costs,
                                int flags, double most_s, struct weir_take *take)
{
    return weir_take_costs_sized(w, target, rule, costs, flags, most_s, take, sizeof *take);
}

WEIR_INLINE int weir_take_many(struct weir *w, struct weir_take_item *items, size_t count, const char *rule,
                               int flags)
{
    return weir_take_many_sized(w, items, sizeof *items, count, rule, flags);
}

WEIR_INLINE int weir_hold(struct weir *w, const char *target, int64_t cost, double ttl_s, double most_s,
                          struct weir_hold *hold)
{
    return weir_hold_sized(w, target, cost, ttl_s, most_s, hold, sizeof *hold);
}

WEIR_INLINE int weir_hold_costs(struct weir *w, const char *target, const char *costs, double ttl_s,
                                double most_s, struct weir_hold *hold)
{
    return weir_hold_costs_sized(w, target, costs, ttl_s, most_s, hold, sizeof *hold);
}

WEIR_INLINE struct weir_worker *weir_worker_new(const struct weir_worker_options *options)
{
    return weir_worker_new_sized(options, sizeof *options);
}

WEIR_INLINE int weir_worker_type(struct weir_worker *worker, const char *type,
                                 const struct weir_type_options *options)
{
    return weir_worker_type_sized(worker, type, options, sizeof *options);
}

#ifdef __cplusplus
}
#endif
#endif
