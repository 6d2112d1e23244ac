/* What keys of weir top have done in Redis: by the calls that other commands make, on the reader's thread. */
#pragma once

#include "cli/top/snapshot.h"

enum order_kind {
    ORDER_NONE,
    ORDER_PAUSE_TYPE,
    ORDER_RESUME_TYPE,
    ORDER_PAUSE_QUEUE,
    ORDER_RESUME_QUEUE,
    ORDER_PAUSE_LIMIT, /* for ten minutes */
    ORDER_RESUME_LIMIT,
    ORDER_QUIET_WORKER,
};

#define SAID_SIZE 1024 /* of what is said about it */

struct order {
    enum order_kind kind;
    char name[TOP_NAME_SIZE];
};

struct result {
    int status;
    char said[SAID_SIZE]; /* in one line, what was done or why it was not */
};

/* Carries an order out, and fills *result. */
void order_do(struct weir *w, const struct order *order, struct result *result);
