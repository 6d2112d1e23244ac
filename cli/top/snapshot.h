/* What there is at a moment, as weir top shows it: read whole by one thread, and then only looked at. */
#pragma once

#include "queue/history/history.h"
#include "queue/status/status.h"

#define TOP_NAME_SIZE 129 /* of types, limits, queues and workers; each row begins with its name */

/* A limit, and the jobs that wait for it: whose types it is in the way of now. */
struct limit_row {
    char name[TOP_NAME_SIZE];
    const struct limit *limit;
    int64_t jobs, types;
    int64_t next_us; /* when the next one starts; 0: it cannot be read */
};

struct top_snapshot {
    int64_t mono_us; /* when it had been read */
    struct status status;
    json_t *report;
    struct limits *limits; /* of each partition */
    int partitions;
    struct limit_row *limit_rows;
    size_t limit_count;
};

/* Reads it; NULL: w->error says why. */
struct top_snapshot *top_snapshot_read(struct weir *w);
/* Of a status and the limits of so many partitions, which it takes; of nothing else. NULL: out of memory, and both are freed. */
struct top_snapshot *top_snapshot_of(struct status *status, struct limits *limits, int partitions);
void top_snapshot_free(struct top_snapshot *s);
/* Returns how long to wait after a reading of so many types, queues and limits that took so long, not less than interval_us: Redis has not worked for
 * longer than that. */
int64_t top_snapshot_pause(int64_t rows, int64_t took_us, int64_t interval_us);

/* ---- What has happened to one type, or at one limit */

#define PAST_MINUTES 60
struct past {
    char name[TOP_NAME_SIZE];
    bool of_limit;
    int64_t read_mono_us;
    int64_t starts[PAST_MINUTES]; /* of a limit: slots granted; the last minute goes on */
    int64_t retried, dead;        /* within them, of a type */
    struct history_sum slots;     /* of a limit */
    double kept;                  /* starts a second at a limit lately */
};

/* Fills the past from history_ask()'s answer. */
void past_fill(struct past *past, const json_t *history);

#define PASTS_MOST 128
struct pasts {
    struct past at[PASTS_MOST];
    size_t count;
};
/* NULL: it was not read. */
const struct past *pasts_find(const struct pasts *pasts, const char *name, bool of_limit);
