/* Batches: what is known of them, and what is done to one as a whole; the pairs of the scripts batch_*.lua.
 * How their jobs come in is in queue/enqueue/enqueue.h, how they end in ends.lua. now_us < 0: Redis's own time. */
#pragma once

#include "core/client/answer.h"
#include "core/script/args.h"
#include "queue/job/job.h"
#include "queue/limits/rate_request.h"
#include "throttle/limit.h"

struct redisReply;
struct weir;

enum batch_phase {
    BATCH_RUNNING,   /* open: more jobs may come; or sealed: no more do, and some have not ended */
    BATCH_PAUSED,    /* its jobs are set aside as workers meet them */
    BATCH_CANCELLED, /* its jobs are dropped as workers meet them, or all have ended since */
    BATCH_ENDED,
};

/* Returns "running", "paused" and so on. */
const char *batch_phase_name(enum batch_phase phase);

#define BATCH_TYPES_MOST 8 /* that it counts apart */

struct batch_type {
    char name[LIMIT_NAME_SIZE];
    int64_t jobs; /* that it was given */
};

struct batch {
    char name[LIMIT_NAME_SIZE];
    enum batch_phase phase;
    int64_t now_us;
    int64_t total;                 /* jobs it was given */
    int64_t done, dead, cancelled; /* those that have ended */
    int64_t left;                  /* those that have not */
    int64_t failed;                /* attempts */
    int64_t running;               /* -1: not counted */
    int64_t aside;
    int64_t halted_us; /* since when it is paused or cancelled; 0: it is not */
    json_t *pause;     /* as queue/state/reasons.lua describes it; NULL: it is not paused */
    int64_t created_us, sealed_us, ended_us, fired_us;  /* 0: not yet */
    char queue[LIMIT_NAME_SIZE], type[LIMIT_NAME_SIZE]; /* of the job that follows when it has ended; "" */
    double rate; /* jobs that ended in a second, of the last one or two */
    struct batch_type types[BATCH_TYPES_MOST];
    size_t type_count;

    /* What batch_forecast tells: */
    int64_t finish_us; /* when its last job starts, or ends at that rate; -1: that cannot be told */
    unsigned because;  /* what may make it later: enum forecast_because */
    bool at_rate;      /* it is the rate that tells */
    json_t *waits_for; /* what the type waits for that starts last (queue/status/waits.h); NULL: nothing */
};

/* Reads one batch, with what runs, for batch_free. WEIR_ENOTFOUND: there is none. Fill w->error on failure, as all that follows. */
WEIR_CHECKED int batch_read(struct weir *w, const char *name, struct batch *out);
/* Gives all to take, the oldest first, without what runs; aside: of those of which jobs are set aside, 100 in each partition. Anything but 0 of take ends that and is returned. */
WEIR_CHECKED int batch_each(struct weir *w, bool aside, int (*take)(const struct batch *b, void *arg),
                            void *arg);

/* When the last job of one that batch_read has read starts by the limits, or ends at its present rate: the
 * later of the two; and what it waits for. batch_free frees what is read of one, after a failure too. */
WEIR_CHECKED int batch_forecast(struct weir *w, struct batch *b);
void batch_free(struct batch *b);

/* *answer: as type_pause() has it, with "was" of the batch: "ended", "cancelled": nothing was changed; the caller's, NULL after a failure.
 * WEIR_ENOTFOUND: there is none, and how->create does not say that it is meant, or there are several partitions. */
WEIR_CHECKED int batch_pause(struct weir *w, const char *name, const struct pausing *how, json_t **answer);

/* What a batch was when it was to be cancelled or resumed, and how many jobs that concerns. */
struct batch_change {
    enum batch_phase was; /* BATCH_RUNNING: open or sealed */
    int64_t left;         /* had not ended */
    int64_t aside;        /* resume: jobs set aside that have returned, cancel: that were dropped */
};
/* dry: only asks. Nothing is changed of one that was BATCH_CANCELLED or BATCH_ENDED. */
WEIR_CHECKED int batch_cancel(struct weir *w, const char *name, bool dry, struct batch_change *change);
/* Broken off, it is to be called again. left is not filled. */
WEIR_CHECKED int batch_resume(struct weir *w, const char *name, struct batch_change *change);

/* Seals a batch: no more jobs come. type (may be NULL) is that of the job that follows in that queue. create: a batch that is not there
 * is begun, without jobs. */
void batch_seal_request(struct args *a, const char *prefix, int64_t now_us, const char *name, bool create,
                        const char *queue, const char *type);
struct batch_sealed {
    int64_t total, left;
};
WEIR_CHECKED int batch_seal_reply(const struct redisReply *r, const char *name, struct batch_sealed *sealed,
                                  struct error *e);
WEIR_CHECKED int batch_seal(struct weir *w, const char *name, const char *queue, const char *type,
                            struct batch_sealed *sealed);

/* Fills out from what batch.row() answers, at that time; for batch_free. */
void batch_row(const json_t *row, int64_t now_us, struct batch *out);

/* Finds the partition of a batch, which is p from now on unless it has another; p < 0: only looks. *place < 0: it has none. */
WEIR_CHECKED int batch_place(struct weir *w, const char *name, int p, int *place);
