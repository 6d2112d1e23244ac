/* What keys of weir top have done in Redis: by the calls that other commands make, on the reader's thread. */
#ifndef CLI_TOP_ORDER_H
#define CLI_TOP_ORDER_H

#include "cli/top/sight.h"

enum deed {
    DEED_NONE,
    /* These change nothing. */
    DEED_COUNT_QUEUE,  /* the jobs that a purge would remove */
    DEED_COUNT_RETRY,  /* the dead jobs of a type that a retry would move */
    DEED_COUNT_REMOVE, /* the dead jobs of a type */
    DEED_FORECAST,     /* when jobs would start under other rules */
    DEED_KEYS,         /* of a limit: the longest, and those that are paused */
    /* These do. */
    DEED_PAUSE_QUEUE,
    DEED_RESUME_QUEUE,
    DEED_PURGE_QUEUE,
    DEED_PAUSE_LIMIT,
    DEED_RESUME_LIMIT,
    DEED_PAUSE_KEY,
    DEED_RESUME_KEY,
    DEED_SET_LIMIT,
    DEED_REMOVE_LIMIT,
    DEED_QUIET_WORKER,
    DEED_STOP_WORKER,
    DEED_RETRY_DEAD,
    DEED_REMOVE_DEAD,
};
#define DEED_CHANGES DEED_PAUSE_QUEUE

#define LINE_SIZE 512  /* of what is typed */
#define SAID_SIZE 1024 /* of what is said about it */

struct order {
    enum deed deed;
    char name[TOP_NAME_SIZE];
    char text[LINE_SIZE]; /* rules, for how long, or which key */
    int64_t count;        /* purge, retry, remove: not more jobs, as that many were shown */
};

struct result {
    struct order order;
    int status;
    char said[SAID_SIZE]; /* in one line, what was done or why it was not */
    int64_t count;        /* of a count */
    json_t *doc;          /* DEED_FORECAST: view/rate_dry.h; DEED_KEYS: view/rate_keys.h; NULL: it failed */
};

/* Fills *result, which is to be freed by result_clear. */
void order_do(struct weir *w, const struct order *order, struct result *result);
void result_clear(struct result *result);

#endif
