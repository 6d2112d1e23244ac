/* Jobs into Redis: the request/reply pairs of enqueue.lua (one job) and append.lua (a chunk of a batch), and
 * of the look at how far a batch is. */
#pragma once

#include "core/script/args.h"
#include "queue/job/job_cost.h"
#include "queue/job/stamp.h"
#include "throttle/limit.h"

struct redisReply; /* hiredis */

/* A job holds its unique key until its end, its start, or for a time. */
#define LOCK_UNTIL_END 0
#define LOCK_UNTIL_START (-1)
#define LOCK_MOST_MS INT64_C(315360000000) /* ten years */

/* One job. due: delay_us from now, or at at_us; both -1: at once. */
struct enqueue {
    struct span queue, type, id, body;
    const struct job_cost *cost; /* that of body; NULL, or nothing said: none */
    int64_t keep_ms;             /* how long its id is remembered */
    const char *tag;             /* random, of this call: a name */
    int64_t delay_us, at_us;
    struct span batch, unique; /* names; at NULL: none */
    int64_t lock_ms;           /* for so long, or one of the above */
};
enum enqueue_result {
    ENQUEUE_NEW,
    ENQUEUE_KNOWN, /* its id was, from another call; nothing was changed */
    ENQUEUE_HELD,  /* another job holds its unique key; nothing was changed */
};
void enqueue_request(struct args *a, const char *prefix, int64_t now_us, const struct enqueue *job);
/* id: the job's; of ENQUEUE_HELD the other one's, in r. */
WEIR_CHECKED int enqueue_reply(const struct redisReply *r, const struct enqueue *job,
                               enum enqueue_result *result, struct span *id, struct error *e);

/* By what the limits of a type tell its jobs apart; "": by nothing. */
struct keyed_by {
    char path[RULE_PATH_SIZE], limit[LIMIT_NAME_SIZE];
    char likely[LIMIT_NAME_SIZE]; /* the type that may be meant, where nobody has known this one; "" */
};
/* Asks whether a job of that type and cost could ever start. WEIR_EINPUT: it never fits the limit that the error names. */
void fits_request(struct args *a, const char *prefix, int64_t now_us, struct span type,
                  const struct job_cost *cost);
WEIR_CHECKED int fits_reply(const struct redisReply *r, struct span type, struct keyed_by *by,
                            struct error *e);

/* A batch has taken so many lines of its input, with that checksum over them. A new batch: 0 and CHECKSUM_NONE. */
#define CHECKSUM_NONE UINT64_C(0xcbf29ce484222325) /* FNV-1a's beginning */
struct batch_state {
    uint64_t lines, sum;
};

/* A chunk has so many jobs of this type or queue. */
struct name_count {
    struct span name;
    uint64_t count;
};

struct append {
    const char *batch;
    int64_t keep_ms; /* how long an unnamed bulk is remembered after this chunk; 0: a batch with a name,
                        which counts its jobs */
    struct batch_state before, after;
    const struct name_count *types, *queues;
    size_t type_count, queue_count;
    char head[STAMP_HEAD_LEN +
              1]; /* of each entry: set by append_request; of a batch with a name append.lua writes it */
};
/* The jobs are then added with append_job: those of the first queue first. */
void append_request(struct args *a, const char *prefix, int64_t now_us, struct append *chunk);
void append_job(struct args *a, const struct append *chunk, struct span body);
/* *accepted: the chunk was the next one, and is in; else *state is how far the batch is. */
WEIR_CHECKED int append_reply(const struct redisReply *r, struct batch_state *state, bool *accepted,
                              struct error *e);

void batch_request(struct args *a, const char *prefix, const char *batch);
WEIR_CHECKED int batch_reply(const struct redisReply *r, struct batch_state *state, struct error *e);
