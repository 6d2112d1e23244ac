/* Claiming: when a turn asks for jobs, and what the answer to a claim means. */
#ifndef WORKER_PARTITION_CLAIM_H
#define WORKER_PARTITION_CLAIM_H

#include "core/script/args.h"
#include "queue/turn/turn.h"
#include "worker/mind/wide.h"
#include "worker/partition/room.h"

struct partition;
struct task_list;

#define CLAIM_FEW 2 /* jobs in a claim that come one by one */

/* Times are monotonic unless they say Redis; 0: unknown, or never. */
struct claims {
    struct claim last; /* the last answer */
    bool more;         /* there was more to take than room for it */
    int64_t more_us;   /* when it said so */
    bool lacked;  /* after the answer before the last there was no executor for what waited, or none left */
    bool starved; /* a job with a limit found no executor idle */
    int64_t next_us;             /* when a gate opens that jobs wait for */
    int64_t duty_until_us;       /* this worker is on duty: others leave waiting jobs to it; */
    int64_t duty_until_redis_us; /* the same by Redis's clock */
    int64_t second_us;           /* it is the second, and claims then after the worker on duty */
    int64_t sent_us;             /* when the last claim of a turn was sent, */
    int64_t went_us;             /* and the last of all */
    int64_t others_us; /* when a heartbeat last heard that others of the group look after its queues */
    int64_t mark_us;   /* when one last asked for a mark */
    int64_t turn;      /* how many were sent */
    bool plenty;       /* the last answer was full of jobs without a limit, and there was more */
    int beside;        /* answers under way, of claims that went beside a turn */
    bool passes;       /* the next one passes the duty on */
    bool stands;       /* a claim stands behind the peek, or has just brought jobs */
    int64_t few_us;    /* when claim_short last brought jobs: they come one by one */
    int64_t lost_us;   /* when the answer to a claim that stood was lost */
    int coming, coming_beside; /* jobs without a limit that are asked for: by the turn, by these */
    int free;                  /* executors that the last one could use */
    int64_t early_us;          /* the jobs that it grants farther ahead are early */
    double body_bytes;         /* of a job, as a rule */
};

/* After the loop has run. */
void partition_free_claims(struct partition *p);
/* All that it serves; of a worker that is not wide. */
struct names partition_queues(const struct partition *p);
/* When to claim: at once for a reason or with more to take, else when a gate is about to open, or too long
 * after the last claim. */
int64_t partition_claim_time(struct partition *p, struct room room);
/* The same if it had room. */
int64_t partition_want_time(struct partition *p, struct room room);
/* Is there no reason to claim but to see whether others do? Then a heartbeat can ask instead. A worker that serves very many queues looks at
 * some of them with each poll. */
bool partition_only_polls(struct partition *p, struct room room);
/* They do, as a heartbeat heard. */
void partition_leave_to_others(struct partition *p, int64_t redis_us);
void partition_claim(struct partition *p, struct args *a, struct room room, int64_t now);
/* Will the claim that was sent last leave no job behind? Then the next one can be waited for behind it, in the same round trip. */
bool partition_claims_all(const struct partition *p);
/* On a new connection it is not on duty, and what stood there stands no more. */
void partition_lose_duty(struct partition *p);
/* A type rests: the duty is for who can run it, if there is another worker in the group; else it comes back. */
void partition_pass_duty(struct partition *p);
/* It rests no more. */
void partition_serve_again(struct partition *p);

/* ---- What all claims have in common */

/* One that asks for nothing but so many jobs that find an executor, and so many beyond them. */
struct claim_call partition_begin_call(struct partition *p, int free, int prefetch, int64_t now);
/* How many jobs of a queue it reads at first to find that many. */
int partition_chunk(const struct partition *p, int jobs);
/* The jobs of the last answer, which was to a claim for so many without a limit. */
void partition_take_jobs(struct partition *p, int asked, struct task_list *tasks);
/* The same, and what it says of other jobs. */
void partition_hear_claim(struct partition *p, int asked, struct task_list *tasks);
/* Runs them, and empties the list. With so many executors, the answer may have come so late that others have got them:
 * those beyond go back, of the ones with a slot, or of all. All go back where none may begin. */
void partition_run_jobs(struct partition *p, int executors, bool all, struct task_list *tasks);

#endif
