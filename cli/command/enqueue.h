/* weir enqueue: the flags that one job and a bulk share. */
#pragma once

#include <limits.h>

#include "cli/cli.h"

#define NOT_GIVEN LLONG_MIN

struct enqueue_flags {
    const char *type;  /* operand; NULL: each line of a bulk names its own */
    const char *queue; /* NULL: "default", or what a line says */
    const char *batch;
    /* one job */
    const char *args, *id, *at, *key, *cost, *unique, *traceparent, *meta;
    int64_t in_us, timeout_us; /* -1: not given */
    long long max_attempts;    /* NOT_GIVEN */
    /* a bulk */
    const char *from, *then;
    bool skip_invalid;
};

/* Checks that args, which may be NULL, are JSON. */
WEIR_CHECKED int enqueue_check_args(struct cli *cli, const char *args);
/* weir enqueue --from: cli/command/bulk.c */
WEIR_CHECKED int enqueue_bulk(struct cli *cli, struct weir *w, const struct enqueue_flags *f);
