/* The flags of weir worker, which weir dev takes too and hands on. */
#pragma once

#include "cli/cli.h"
#include "cli/command/workers.h"

#define WORKER_FLAG_COUNT 27

struct worker_flags {
    const char *queues, *trace, *unknown, *log, *log_level, *http_header, *http_secret;
    long long executors, in_flight, dead_most;
    struct flag_values load, exec, pipe, http;
    struct flag_values timeout, backoff, keep; /* of types */
    int64_t lease_us, grace_us, drain_max_us, kill_after_us, dead_age_us, pause_most_us;
    bool drain, log_done;
    bool tried; /* programs may be missing */
    struct workers_flags others;
    struct flag table[WORKER_FLAG_COUNT + 1]; /* for cli_parse; points into this struct */
};

void worker_flags_init(struct worker_flags *f);
/* Reads the handlers of weir.conf where no flag names one, and their options, over which flags go. */
WEIR_CHECKED int worker_flags_read_handlers(struct cli *cli, struct worker_flags *f);
/* Checks that the values are in range. WEIR_EUSAGE and cli->error when not. */
WEIR_CHECKED int worker_flags_check(struct cli *cli, const struct worker_flags *f);
/* Checks all values, as a worker does when it begins, but for what depends on the machine: programs and files. */
WEIR_CHECKED int worker_flags_try(struct cli *cli, struct worker_flags *f);
/* True when any handler was given. */
bool worker_flags_have_handlers(const struct worker_flags *f);
/* Makes a worker. NULL: out of memory. */
struct weir_worker *worker_flags_make(const struct cli *cli, const struct worker_flags *f, const char *url);
/* Gives it the handlers and types that the flags name. */
WEIR_CHECKED int worker_flags_fill(struct cli *cli, struct weir_worker *worker, const struct worker_flags *f);
