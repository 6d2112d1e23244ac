/* What a worker has counted, sent to the slots of queue/state/minutes.lua: the request and the reply of record.lua, and the codes of
 * what is counted. now_us < 0: Redis's own time. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/script/args.h"
#include "queue/job/job.h"

struct redisReply;

enum record_what { RECORD_TYPE, RECORD_LIMIT, RECORD_STARTS };

/* A cause is what let a job start, which had waited for it last. */
enum record_cause {
    CAUSE_EXECUTOR, /* a claim was missing: of a worker with an executor to spare */
    CAUSE_RATE,
    CAUSE_KEY,
    CAUSE_CONCURRENCY,
    CAUSE_PAUSE,
    CAUSES
};

/* A job gave its slots back, as its handler was not called, for one of these reasons. */
enum record_back {
    BACK_NOT_BEGUN,  /* nor was it to be: its worker stops, it was cancelled, another worker is to run it */
    BACK_LATE,       /* its slot was over */
    BACK_NO_HANDLER, /* it could not be */
    BACK_WRONG_JOB,
    BACKS
};

/* Histograms count by powers of two of milliseconds. */
enum { RECORD_BUCKETS = 32 };
/* So many bytes of a reason are kept, in whole characters: escaped they are three times as many at most. */
enum { RECORD_REASON_MOST = 24 };

void record_request(struct args *a, const char *prefix, int64_t now_us);
/* Begins a row, of a type or limit; what follows are its counts, each once. */
void record_row(struct args *a, enum record_what what, struct span name);
/* Adds a count to the row: of a type or limit by its code, of a histogram with its bucket, of starts by the tenth of a second since 1970. 0
 * is left out. */
void record_count(struct args *a, char code, int64_t count);
void record_bucket(struct args *a, char code, int bucket, int64_t count);
void record_start(struct args *a, int64_t tenth, int64_t count);
/* Adds slots lost in a second since 1970, by the code that counts them of a limit. */
void record_lost(struct args *a, char code, int64_t second, int64_t count);
/* Adds all that a histogram counts, in whole milliseconds, and takes them from *us. */
void record_spent(struct args *a, char code, int64_t *us);
/* Adds jobs that were throttled for that reason, at a limit; "?" stands for what is no printable UTF-8. */
void record_reason(struct args *a, const char *reason, int64_t count);

enum record_cause record_cause_of(char letter);

int record_bucket_of(int64_t us);

/* Reads the reply. wrong: what is wrong with the first key that was passed over; empty: none was. It points into the reply. */
WEIR_CHECKED int record_reply(const struct redisReply *reply, struct span *wrong, struct error *e);
