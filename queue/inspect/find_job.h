/* Where a job is and what is known of it, by its id: of find_job.lua's pages. Nothing says where a job
 * stands, as any client may put one into a queue, so all places are gone through, page by page, each short
 * for Redis. A job that moves meanwhile may be passed over: they are gone through twice before it counts as
 * not there. */
#ifndef QUEUE_INSPECT_FIND_JOB_H
#define QUEUE_INSPECT_FIND_JOB_H

#include "queue/job/job.h"
#include "queue/turn/turn.h"
#include "throttle/limit.h"

struct weir;

enum job_state {
    JOB_WAITING,   /* in a queue: no worker has looked at it yet */
    JOB_PARKED,    /* in its lane: it was denied */
    JOB_RUNNING,   /* leased to a worker */
    JOB_SCHEDULED, /* enters its queue later */
    JOB_RETRY,     /* failed, and enters its lane again later */
    JOB_DEAD,
    JOB_ASIDE,    /* a claim met it while its batch was paused */
    JOB_FINISHED, /* it was to be remembered for a while */
};
/* "waiting" and the like. */
const char *job_state_name(enum job_state state);

#define PLACE_SIZE (3 * LIMIT_NAME_SIZE + 16)

struct found_job {
    int64_t now_us;
    enum job_state state;
    char queue[LIMIT_NAME_SIZE], type[LIMIT_NAME_SIZE], key[LIMIT_NAME_SIZE]; /* key: "" also: unknown */
    bool alone;       /* it runs, or is to run, alone in its worker: another one died while it ran */
    int64_t attempts; /* that were used up */
    int interrupted, throttled;
    char batch[LIMIT_NAME_SIZE], lock[LIMIT_NAME_SIZE]; /* "": none */
    bool lock_until_start;                              /* not until it ends */
    int64_t failed_us;                                  /* its last failure; 0: none is known */
    char failure[1024];                                 /* why; cut where it does not fit, as all of these */
    char *entry;                                        /* as it stands there; owns body */
    struct span body;                                   /* as it was enqueued */
    char wrong[160];                                    /* why a worker cannot read it; "": it can */
    char place[PLACE_SIZE];                             /* waiting, parked, aside: the list in which it is */
    int64_t before, length;                             /* the same: jobs before it there, and all */
    int64_t at_us; /* scheduled, retry: when it is due; dead, finished: since when; running: the time of its
                      slot, 0: none was needed */
    int64_t lease_us;                        /* running: when its lease ends unless its worker speaks up */
    char worker[LIMIT_NAME_SIZE], host[256]; /* running; finished: the worker */
    int64_t pid;
    char *header;      /* scheduled, retry: of its record */
    char *token;       /* running */
    char outcome[16];  /* finished: "done" */
    char reason[1400]; /* dead: as long as a worker makes it */

    int64_t cancelled_us;    /* it was cancelled then, and nobody who can end it has met it; 0: it was not */
    bool held;               /* waiting, parked: no worker that looked can run its type */
    int64_t queue_paused_us; /* since when its queue is; 0: it is not */
    int64_t batch_paused_us; /* the same of its batch */
    int64_t batch_cancelled_us;
};

/* The same of a job, "held" when it is. */
const char *found_job_word(const struct found_job *found);

/* now_us < 0: Redis's time. WEIR_ENOTFOUND: it is in no place. Fills w->error on failure; free with
 * found_job_free, also then. */
WEIR_CHECKED int find_job(struct weir *w, int64_t now_us, const char *id, struct found_job *out);
void found_job_free(struct found_job *found);

/* The entries of the next page, 1 to 1000, of which the last had so many bytes: a page of large jobs must not
 * keep Redis longer than one of small ones. */
int page_next(int entries, int64_t bytes);
#define PAGE_FIRST 50

#endif
