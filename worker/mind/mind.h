/* What a worker decides in one partition: when it claims, for how many jobs, how far ahead and from which queues, what goes along, and until
 * when it waits. All of it follows from what the mind has heard, from the facts of the moment and from the time, which is handed in. A mind
 * knows no loop, no socket, no thread and no clock, and allocates nothing; its queues (wide.h) are made before.
 *
 * Whoever has one writes its facts before each call, sends what a plan says, and lets it hear every answer. The worker does so in
 * worker/partition/, the simulation of doc/scale.md in bench/scale/, and tests/test_mind.c under a clock of its own.
 *
 * Each file below owns the member that stands beside it: it alone writes it. A file calls those that stand below it.
 *
 *   plan.c      beat_us, said_quiet, sent_us   what to do now, and when to decide again
 *   ask.c       claims, of what is asked   what a claim asks for
 *   hear.c      claims, of what is heard; due, distance, pause_until_us    what an answer changes
 *   when.c                                 when each thing is due
 *   room.c      capacity; pace             how many jobs a claim may bring
 *   share.c     capacity, of what is shared    executors among the partitions of a worker
 *   alone.c     alone                      jobs that run alone
 *   polls.c     polls                      how long to wait where nothing calls
 *   distance.c, wide.c                     how far away Redis is; which of several queues */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/client/partition.h"
#include "queue/turn/turn.h"
#include "worker/mind/distance.h"
#include "worker/mind/wide.h"

#define MS INT64_C(1000)
#define NEVER INT64_MAX
#define LEASE_MOST 500 /* jobs in one claim: its budget */
#define CLAIM_FEW 2    /* jobs in a claim that come one by one */
#define BESIDE_MOST 8  /* claims that go beside a turn */

/* Facts are what only the shell around the mind knows, at this moment. */
struct facts {
    /* Of the worker. */
    int running;       /* tasks that run, */
    int timed;         /* that hold an executor until their start, */
    int prefetched;    /* that wait for an executor, without a limit, */
    int early;         /* that hold no executor yet */
    int unlimited;     /* of those that run: without a limit */
    int64_t oldest_us; /* when the first of the prefetched came; 0: there is none */
    bool stopping, quiet;
    bool rests; /* all of its types rest */
    /* Of the partition. */
    bool up, registered;
    int awaited;               /* answers under way, of a turn */
    int here, here_prefetched; /* its jobs that have not ended; those of them that are prefetched */
    bool idle;                 /* nothing of it runs, waits, is to be settled or is on its way */
    int finished;              /* jobs that are to be settled */
    int64_t finished_us;       /* when the first job ended that is to be settled */
    bool urgent, soon; /* of these jobs: somebody may wait for the end of one; one is not simply done */
    bool along;        /* a claim could settle them all */
    bool learns;       /* limits have changed */
    int64_t match_us;  /* when to ask which queues there are */
};

struct room {
    int idle;           /* executors, */
    int free, prefetch; /* of these for jobs of this partition, and jobs beyond them that may wait here */
    int open;           /* of the free: not reserved for jobs with a limit */
    int unclaimed;      /* of the idle: those that no claim of another partition may fill */
    int early_more;     /* jobs that may come so far ahead that they hold no executor yet */
    bool worth_it;      /* enough for a turn of its own when there is more to take, */
    bool worth_more;    /* or for a claim beside one */
};

/* Times are monotonic unless they say Redis; 0: unknown, or never. */
struct claims {
    bool wanted;  /* there may be jobs: claim now */
    bool held;    /* the next one checks types that a gate holds, too */
    bool more;    /* there was more to take than room for it */
    bool lacked;  /* after the answer before the last there was no executor for what waited, or none left */
    bool starved; /* a job with a limit found no executor idle */
    bool plenty;  /* the last answer was full of jobs without a limit, and there was more */
    bool barren;  /* the last answer brought no job without a limit, though some were asked for */
    bool passes;  /* the next one passes the duty on */
    bool stands;  /* a claim stands behind the peek, or has just brought jobs */
    int leases;   /* jobs that the last one brought; */
    int limited;  /* of these: with a limit */
    int crowd;    /* workers that claim ahead from this Redis, as it said */
    int64_t more_us;             /* when it said that there is more */
    int64_t next_us;             /* when a gate opens that jobs wait for */
    int64_t duty_until_us;       /* this worker is on duty: others leave waiting jobs to it; */
    int64_t duty_until_redis_us; /* the same by Redis's clock */
    int64_t second_us;           /* it is the second, and claims then after the worker on duty */
    int64_t sent_us;             /* when the last claim of a turn was sent, */
    int64_t went_us;             /* and the last of all */
    int64_t others_us; /* when a heartbeat last heard that others of the group look after its queues */
    int64_t mark_us;   /* when one last asked for a mark */
    int64_t few_us;    /* when claim_short last brought jobs: they come one by one */
    int64_t lost_us;   /* when the answer to a claim that stood was lost */
    int64_t early_us;  /* the jobs that it grants farther ahead are early */
    int64_t turn;      /* how many were sent */
    int coming, coming_beside; /* jobs without a limit that are asked for: by the turn, by those beside it */
    int beside;                /* answers under way, of claims that went beside a turn */
    int free;                  /* executors that the last one could use */
    double body_bytes;         /* of a job, as a rule */
};

struct capacity {
    int reserve;          /* executors for jobs with a limit alone */
    int reserve_used;     /* the most reserved executors that were used since reserve_us */
    int64_t reserve_us;   /* when reserve_used began to be counted anew */
    int64_t unlimited_us; /* when a job without a limit was here last */
    bool hungry;          /* it would claim, had it room */
    int taken;        /* idle executors that the claim under way may use, and no other partition meanwhile */
    int64_t taken_us; /* when that claim was sent */
};

struct alone {
    bool on;               /* a claim said that a job is to run alone: nothing else is taken */
    bool runs;             /* that job is here */
    bool asked;            /* a claim asked for that job while nothing else was in flight */
    int64_t since_us;      /* when on became true */
    int64_t waited_us;     /* from since_us until the job came */
    int64_t wait_most_us;  /* how long the job is waited for; 0: as usual */
    int64_t rest_until_us; /* no other job is run alone before that */
};

/* What is known of the jobs with a time and of the schedules in Redis. */
struct due {
    int64_t at_us;    /* when the first is due; 0: none is, as far as is known */
    int64_t heard_us; /* when Redis said what at_us is */
    int64_t left_us;  /* schedules that are due are left to others: nothing is due before that */
    bool promotes;    /* this worker moved what was due last */
};

struct polls {
    int64_t workers; /* of the namespace, as far as is known */
    int64_t wait_us; /* until the next poll */
};

struct mind {
    struct minds *all; /* of the worker */
    struct facts facts;
    struct wide *wide; /* the queues that it serves, where they are several or patterns; else NULL */
    uint64_t random;   /* state of random_draw */
    struct claims claims;
    struct capacity capacity;
    struct alone alone;
    struct due due;
    struct polls polls;
    struct distance distance; /* of Redis: from the times in its answers */
    int64_t sent_us;          /* when the requests under way were sent */
    int64_t beat_us;          /* when the next heartbeat is due */
    bool said_quiet;          /* what the last heartbeat of this session said */
    int64_t pause_until_us;   /* after an error answer: no turn before that */
};

/* The pace says how fast jobs end in a worker, and whether they wait too long. */
struct pace {
    double rate;        /* jobs that end in a second: for prefetching */
    int64_t rate_us;    /* when it was measured last */
    uint64_t ended;     /* how many had ended then */
    int64_t stuck_us;   /* when prefetched jobs were given back last */
    int64_t crowded_us; /* when an early job found no executor last */
};

/* The minds of one worker share this. All but the pace is as the worker was started. */
struct minds {
    int executors, queue_count, type_count;
    int64_t lease_us;
    bool wide;          /* it serves patterns, or more queues than a claim can name */
    const int *weights; /* of the queues; NULL: they are in strict order */
    bool drain;
    bool unknown_dead; /* jobs of types that no worker runs become dead */
    struct pace pace;
    struct mind *at[PARTITIONS_MOST];
    int count;
};

/* True when it may claim at all. */
static inline bool mind_takes_jobs(const struct mind *m)
{
    return m->facts.registered && !m->facts.stopping && !m->facts.quiet;
}

/* ---- plan.c */

/* An idle worker waits for this in Redis. */
enum plan_wait { PLAN_WAIT_NOTHING, PLAN_WAIT_ON_DUTY, PLAN_WAIT_OFF_DUTY };

struct plan {
    int64_t next_us; /* when to decide again, where no turn begins */
    bool turn;       /* send all of the following at once; else nothing: */
    bool settle;     /* what has ended, as far as the claim does not */
    bool promote, beat, learn, match, drained;
    bool claims;
    /* without the names: of the worker, of queues where they are not wide, of types; and without done */
    struct claim_call claim;
    enum plan_wait wait; /* to wait for from now on; with a turn once its claim is sent */
};
/* Plans what to do now, while no answer is under way. */
struct plan plan_turn(struct mind *m, int64_t now);
/* Plans, while answers are under way, whether another claim goes beside the turn. *next_us: when to ask again. */
bool plan_beside(struct mind *m, int64_t now, struct claim_call *call, int64_t *next_us);
/* Plans a claim that stands behind the peek at the queue, where jobs come one by one; false: none is to. */
bool plan_standing(struct mind *m, int64_t now, struct claim_call *call);
/* Hears that a request is about to be sent that is no turn: its answer has a time of Redis. */
void plan_sends(struct mind *m, int64_t now);
void plan_beat_at(struct mind *m, int64_t at_us);
/* Returns how long it is to the next heartbeat. */
int64_t plan_beat_wait(struct mind *m);
/* Hears that a token has come for who is on duty, or for any. False: it is of no use here, and goes to others. */
bool plan_is_woken(struct mind *m, bool on_duty_only, int64_t now);

/* ---- ask.c */

/* Hears that there may be jobs; held: of held types, too. */
void ask_soon(struct mind *m, bool held);
/* Lets the next claim, whenever that is, check held types. */
void ask_held(struct mind *m);
/* Passes the duty on, as a type rests: it is for who can run the type, if there is another worker in the group; else it comes back. False:
 * it is not on duty. */
bool ask_passes(struct mind *m);

/* ---- hear.c */

/* Hears that it is registered on a connection: not on duty, and all is to be claimed. */
void hear_adopt(struct mind *m, int64_t workers);
/* Hears the answer to the claim of a turn. False: its job is to run alone and cannot now, as jobs of other partitions are here. */
bool hear_claim(struct mind *m, const struct claim *claim, int64_t now);
/* Hears that the claim of a turn failed: an error, or lost. */
void hear_no_claim(struct mind *m, bool lost);
/* Hears the answer to a claim beside the turn; NULL: an error, or lost. */
void hear_beside(struct mind *m, const struct claim *claim, int64_t now);
/* True when a claim has stood behind the peek. It is answered, and stands no more. */
bool hear_stood(struct mind *m);
/* Hears the answer of a claim that stood. Returns how many executors its jobs find. */
int hear_standing(struct mind *m, const struct claim *claim, int64_t now);
/* Hears that a claim that stood was declined, or lost: a turn claims, and meets the error too. */
void hear_declined(struct mind *m);
void hear_lost_standing(struct mind *m, int64_t now);
/* Hears the time of Redis's clock in an answer. A clock that was set back is followed by a heartbeat. */
void hear_clock(struct mind *m, int64_t redis_us, int64_t now);
/* Hears when something is due next by Redis's clock; -1: nothing is. */
void hear_due(struct mind *m, int64_t redis_us, int64_t due_us, int64_t now);
/* Hears that what was due was moved, or that this worker fired a schedule: then what is known of the next is old. */
void hear_promoted(struct mind *m, bool found, int64_t now);
void hear_fired(struct mind *m);
/* Hears that a schedule that is due is left to others. */
void hear_left(struct mind *m, int64_t now);
/* Hears the answer of a heartbeat. of_others: two other workers of the group look after its queues. left: the next one has more to do. */
void hear_beat(struct mind *m, const struct reaped *r, int64_t now);
/* Hears that Redis has refused something. */
void hear_refusal(struct mind *m, int64_t now);

/* ---- when.c */

bool when_is_due(const struct mind *m, int64_t now);
int64_t when_promote(const struct mind *m);
/* Returns in how many pages to ask whether anything is left, of so many types each; and in how many parts for its queues, as it may serve
 * more than it can name at once. */
int when_drained_pages(const struct mind *m);
int when_drained_types(const struct mind *m);
int when_drained_queue_pages(const struct mind *m);

/* ---- room.c */

struct room room_of(const struct mind *m, int64_t now);
/* Adapts how many executors are reserved for jobs with a limit, as a claim has brought jobs. */
void room_adapt(struct mind *m, int64_t now);
void room_reserve_none(struct mind *m);
/* Returns how many executors are reserved: as many as any of the partitions needs. */
int room_reserved(const struct minds *all);
/* Measures how fast jobs end: so many have ended up to now. */
void room_measure(struct minds *all, uint64_t ended, int64_t now);
/* Returns when prefetched jobs must go back, NEVER: none waits. They must not stay while those before them take long: another worker may
 * have an executor. */
int64_t room_stuck_time(const struct minds *all);
void room_was_stuck(struct minds *all, int64_t now);
/* Hears that an early job has found no executor. */
void room_was_crowded(struct minds *all, int64_t now);
/* Releases what a claim that was answered leaves to the other partitions. Returns how many executors there are for its jobs. */
int room_release(struct mind *m, int64_t now);

/* ---- polls.c */

void polls_hear(struct mind *m, int64_t workers);
/* True when others look after its queues, as far as it knows. */
bool polls_is_off_duty(const struct mind *m);
