/* The transitions of a turn: for each script a request function, which builds the call, and a reply function,
 * which reads and checks the answer. The scripts' headers say what they do. now_us < 0: Redis's own time.
 * What a reply function hands out points into the reply. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/script/args.h"
#include "queue/dead/dead.h"
#include "queue/job/stamp.h"

struct redisReply;

/* A list of names, of queues or types. */
struct names {
    const char *const *at;
    int count;
};

struct claim_call {
    const char *worker, *group;
    int64_t turn;
    int free;              /* idle executors */
    int prefetch;          /* jobs without a limit that may be leased beyond those */
    int chunk;             /* jobs of a queue to read at first, 1 to 1000 */
    int64_t duty_until_us; /* as the last claim answered */
    /* how far ahead slots may be granted, at most GATE_AHEAD_MOST_US; 0: as to a near worker */
    int64_t ahead_us;
    int far;                    /* to how many jobs farther than to a near worker */
    bool reserved;              /* none of the idle executors is for jobs without a limit */
    bool held;                  /* look at held types */
    bool unknown_dead;          /* types that no worker has run for a minute are dead */
    bool mark;                  /* once a second: mark the rates */
    bool alone;                 /* it may come to run a job that is to run alone */
    bool wide;                  /* it may serve more queues than the call names */
    bool told;                  /* it wants to know of each queue when it is due */
    bool elsewhere;             /* it has jobs in flight in other partitions */
    bool early;                 /* jobs that are granted far ahead hold no executor yet */
    bool parked;                /* as far as is known, jobs wait at gates */
    bool standing;              /* it waits behind a peek: what is not for claim_short is answered by nil */
    struct names queues, asked; /* those that are asked for are served where something is found there */
    const char *known;          /* to wait in each of these, as claim.lua has it */
    /* the digest of the types that it named as it began, as adopt answered it; NULL: they are named here */
    const char *digest;
    struct names types; /* that it can run; with a digest those of them that rest */
    const char *done_type;
    const struct span *
        done; /* tokens of jobs of that type that are settled with it: done, of no batch, counted in flight by no gate */
    int done_count; /* 0: it is a claim alone */
};

struct lease {
    struct span token, type, key; /* type and key: in token; a key may be empty */
    struct span body;
    struct span attrs;   /* ",b" batch and the like, see heads.lua; empty: none */
    int64_t slot_us;     /* when it may start, by Redis's clock; 0: at once, it has no gate */
    int64_t cost;        /* slots that it took of each rate */
    int64_t enqueued_us; /* by its producer's clock; 0: unknown */
    /* it waits since then: that, or later when it was scheduled, or retried from the dead; 0: unknown */
    int64_t since_us;
    int attempts, interrupted, throttled;
    bool usual; /* its attrs are known to say nothing but when it was enqueued */
};

/* A loss is slots of a limit that nobody took, in thousandths, until that lease took some; why: a letter of claim_causes.lua. */
struct loss {
    struct span limit;
    int64_t thousandths, since_us; /* by Redis's clock */
    char why;
    size_t lease;
};
enum { LOSSES_MOST = 32 }; /* of limits, in one answer; further ones are left out */

/* A claim has the answer to a claim. The next claim_reply() reuses its arrays; claim_free() frees them. */
struct claim {
    int64_t now_us;
    int64_t next_us;  /* when to look at what is parked; -1: never */
    int64_t later_us; /* when a scheduled or retried job is due; -1: never */
    int64_t duty_until_us;
    bool brief; /* claim_short has answered: a few jobs without a limit at most */
    bool more;
    bool starved;    /* a job with a limit could have started, had there been an idle executor */
    int64_t look_us; /* the second: when to look whether the worker on duty is still there; -1: it is not */
    bool alone; /* it has got a job that is to run alone, or is to get one when nothing else is in flight */
    int crowd;  /* workers that claim jobs in advance from this Redis */
    struct lease *leases;
    size_t lease_count, lease_capacity;
    char *tokens; /* of leases whose tokens the answer left out */
    size_t token_capacity;
    struct span *words; /* the lists below point here */
    size_t word_capacity;
    const struct span *
        limits; /* type, or type/key where the key has rules of its own, "limit=rules|limit=rules ...", type ... */
    const struct span *held;   /* types that wait from now on for a worker that can run them */
    const struct span *broken; /* limits whose rules cannot be read */
    const struct span *paused; /* queues that it was asked to serve, and did not */
    const struct span *faults; /* what is wrong with keys of a wrong kind */
    const struct span *dues;   /* when each queue is due that was served: claim_dues.lua */
    bool told;                 /* the queues' times are known; else next_us holds for all */
    struct span causes;        /* what let the leases start: claim_causes.lua */
    struct loss losses[LOSSES_MOST];
    size_t loss_count;
    size_t limit_count, held_count, broken_count, paused_count, fault_count, due_count;
};

/* Reads "@attempts,interrupted,throttled<attrs>;{...}", "@<stamp>{...}" or the body alone into those members of lease. */
bool lease_read_entry(struct span entry, struct lease *lease);
/* Finds one of a lease's attrs by its letter; at NULL: it is not there. */
struct span lease_attr(struct span attrs, char letter);
/* Returns when a job was enqueued, by its producer's clock; 0: unknown. */
int64_t entry_enqueued_us(struct span entry);

void claim_request(struct args *a, const char *prefix, int64_t now_us, const struct claim_call *call);
/* A claim that settles has two answers, settle's and claim's. An error is that of both. */
struct turn_replies {
    const struct redisReply *settle, *claim;
};
struct turn_replies turn_replies(const struct redisReply *reply);
WEIR_CHECKED int claim_reply(const struct redisReply *reply, struct claim *claim, struct error *e);
/* True for the answer to a claim that has changed nothing: an error, or nil, of a claim that stands. */
bool claim_is_declined(const struct redisReply *reply);
void claim_free(struct claim *claim);

/* settle_request begins; then settle_done and settle_run, for each type and batch, settle_failed and settle_end add what has
 * ended. */
void settle_request(struct args *a, const char *prefix, int64_t now_us, const char *worker);
/* Announces n tokens of jobs of that type and batch (empty: none) that are done, 1 to 4000; add them with
 * settle_token. */
void settle_done(struct args *a, const char *type, struct span batch, size_t n);
void settle_token(struct args *a, struct span token);
/* Adds n such jobs whose tokens follow one another, from the first one on. */
void settle_run(struct args *a, const char *type, struct span batch, struct span first, size_t n);
/* True when the token is the next one behind `before`: of the same turn and lane, its index greater by one. */
bool settle_follows(struct span token, struct span before);
struct job_cost;
/* Adds the true cost of a job, as far as it is said, whose end follows in this or a later settle. */
void settle_cost(struct args *a, struct span token, const struct job_cost *spent);
#define SETTLE_NO_TIME (-1) /* the delay of a throttled job whose handler gave none */
enum settle_verb {
    SETTLE_RETRY,
    SETTLE_THROTTLED,
    SETTLE_BACK,
    SETTLE_DEAD,
    SETTLE_FINISH,
    SETTLE_CANCELLED,
    SETTLE_INTERRUPTED
};
/* Says before an end of FINISH, or a cause, how long these jobs ran; 0: nothing. */
void settle_ran(struct args *a, int64_t ran_us);
/* Adds an end other than RETRY and DEAD. number: the delay in us of THROTTLED; of FINISH (done, one by itself) how long to remember
 * it, in ms; of INTERRUPTED (its handler died) after how many times the job is dead; of BACK and CANCELLED 1: it has not started,
 * and gives its slots back; else 0. reason: of INTERRUPTED; may be NULL. */
void settle_end(struct args *a, enum settle_verb verb, struct span token, int64_t number, const char *reason);
/* Announces n tokens of jobs that end by RETRY or DEAD, 1 to 4000; add them with settle_token. Behind them settle_cause says why
 * so many of them have failed, in their order: of one lane, and of DEAD either all unstarted or none. Behind that of RETRY come their
 * delays: settle_delay says that of the next n of them. */
void settle_failed(struct args *a, size_t n);
void settle_cause(struct args *a, enum settle_verb verb, bool unstarted, size_t n, const char *reason);
void settle_delay(struct args *a, size_t n, int64_t delay_us);
/* Reads the answer. stale: leases that were no longer this worker's. */
WEIR_CHECKED int settle_reply(const struct redisReply *reply, int64_t *stale, struct error *e);
/* A pause was begun by a throttled job, for the so manieth time in a row. */
struct paused {
    struct span token;
    int64_t pause_us, times;
};
/* Reads the i-th pause of the answer; false: there are no more. Called after settle_reply, as long as the reply lives. */
bool settle_paused(const struct redisReply *reply, size_t i, struct paused *paused);

void promote_request(struct args *a, const char *prefix, int64_t now_us, int most);
/* A schedule is due; see queue/schedule/schedule.h. */
struct due_schedule {
    struct span name, definition;
    int64_t due_us;
};
struct promoted {
    int64_t moved, now_us;
    int64_t later_us;         /* when the next job with a time is due, as a claim says it */
    struct span wrong;        /* with a key that keeps retried jobs from their lane; empty: nothing */
    struct due_schedule *due; /* freed by promoted_free */
    size_t due_count;
};
WEIR_CHECKED int promote_reply(const struct redisReply *reply, struct promoted *promoted, struct error *e);
void promoted_free(struct promoted *promoted);

struct adopt_call {
    const char *worker;     /* the new id; "": the old one leaves */
    const char *old_worker; /* "": none */
    const char *group;
    int64_t lease_us;
    const char *info;  /* JSON: host, pid, queues, lease_s */
    const char *birth; /* of the data, as the last answer said it; "": not known */
    int64_t seen_us;   /* the last mark that the worker was answered; 0: none */
    struct names queues;
    bool unheard; /* see below */
};
/* Begins an adopt. Then comes settle_token for each job that still runs; for what is left after an answer, the same call without. unheard:
 * the handler of no other job of the old id was called. */
void adopt_request(struct args *a, const char *prefix, int64_t now_us, const struct adopt_call *call);
/* Redis went back: what was written between from_us and to_us, at least, is lost, which was found at at_us.
 * All 0: it did not. */
struct went_back {
    int64_t from_us, to_us, at_us;
};
/* now_us of an answer is a mark (queue/state/data_loss.lua): of an adopt, of a heartbeat, of a claim that leases
 * something or takes the duty. */
struct adopt {
    int64_t now_us;
    int64_t left;      /* jobs of the old one that are still to go back, in further calls */
    struct span birth; /* of the data; another one than before: all was lost meanwhile */
    struct went_back back;
    int partitions;           /* how many the namespace has */
    struct span types_digest; /* for claims */
    int64_t workers;          /* workers that are registered, this one too */
    /* the keys bell, spare, told (of this worker, for jobs that were cancelled), and those of the queues */
    const struct span *keys;
    const struct span *lost; /* tokens that are no longer its own */
    size_t lost_count;
    struct span *words; /* owns both */
};
WEIR_CHECKED int adopt_reply(const struct redisReply *reply, int queue_count, struct adopt *adopt,
                             struct error *e);
void adopt_free(struct adopt *adopt);

struct reap_call {
    const char *worker;
    int64_t lease_us;
    int interrupted_most;
    int64_t dead_most, dead_age_us; /* with which it was started; 0: with none */
    const char *group;              /* as adopt was told */
    bool quiet;                     /* takes no more jobs, and stays */
};
void reap_request(struct args *a, const char *prefix, int64_t now_us, const struct reap_call *call);
enum { REAPED_WRONG_MOST = 9 };
enum worker_order { ORDER_NONE, ORDER_QUIET, ORDER_RESUME, ORDER_STOP };
struct reaped {
    int64_t now_us;
    struct went_back back;
    int64_t taken;           /* leases of dead workers that were taken back */
    int64_t workers;         /* dead workers that have no lease left */
    int64_t forgotten;       /* dead jobs that were forgotten, the oldest */
    struct dead_bounds kept; /* bounds of the dead jobs in this namespace; 0: not known */
    int64_t left;            /* what the next calls have to do: leases to take back, dead jobs to forget */
    enum worker_order order; /* of an operator */
    int64_t registered;      /* workers that are registered, this one too */
    struct span newest;      /* revision of the limits, as rate_known tells it; "": nobody can say */
    bool of_others;          /* two other workers of the group look after its queues */
    struct span wrong[REAPED_WRONG_MOST]; /* with keys that keep leases from going back */
    size_t wrong_count;
};
WEIR_CHECKED int reap_reply(const struct redisReply *reply, struct reaped *reaped, struct error *e);
/* A reaped job is one whose worker died while it ran. */
struct reaped_job {
    struct span id, type, attempt; /* id: empty where it cannot be read; attempt: digits */
    bool dead, interrupted;        /* dead: it was interrupted too often; interrupted: that counts */
};
/* Reads the i-th job that was taken back; false: there are no more. Called after reap_reply(), as long as the reply lives. */
bool reap_job(const struct redisReply *reply, size_t i, struct reaped_job *job);

/* Makes the call that says that the worker has heard of the cancelled job of this lease. The answer says nothing. */
void heard_request(struct args *a, const char *prefix, int64_t now_us, const char *worker, struct span token);

void drained_request(struct args *a, const char *prefix, int64_t now_us, struct names queues,
                     struct names types);
struct drained {
    int64_t waiting, parked, running, due;
    /* A worker that drains does not wait for jobs in lanes of paused queues, in paused queues, of paused batches, and of keys that are paused
     * until they are resumed. */
    int64_t paused, halted, aside, stopped;
};
WEIR_CHECKED int drained_reply(const struct redisReply *reply, struct drained *drained, struct error *e);

/* Asks for a page of the "queues" or "types" that words stand for, from a cursor on; 0: from the beginning. */
void match_request(struct args *a, const char *prefix, int64_t now_us, const char *what, uint64_t cursor,
                   int most, struct names words);
struct matched {
    uint64_t next; /* cursor; 0: that was all */
    struct span *names;
    size_t count;
};
WEIR_CHECKED int match_reply(const struct redisReply *reply, struct matched *page, struct error *e);
void matched_free(struct matched *page);

/* True for the refusal "unregistered": the worker must adopt itself anew. */
bool turn_is_unregistered(const struct error *e);
/* True for the refusal "format": this version of Weir cannot read the data. */
bool turn_is_of_another_format(const struct error *e);
