/* A worker's options: read, checked, defaults put in. Nothing changes them afterwards. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/client/client.h"
#include "worker/way/handler.h"

#define QUEUES_MOST 1000 /* names and patterns of queues */

struct type_options;
struct options {
    struct redis_address address;
    char prefix[PREFIX_SIZE];        /* of all keys */
    const char *queues[QUEUES_MOST]; /* names and patterns, in order */
    int weights[QUEUES_MOST];        /* of the queues, if weighted */
    int queue_count;
    bool weighted; /* by weight; else in strict order */
    bool wide;     /* more than one claim can name, or patterns */
    int executors;
    int64_t lease_us;
    int64_t grace_us;               /* for what runs when the worker stops */
    int64_t kill_after_us;          /* from TERM to KILL */
    int64_t pause_most_us;          /* that a handler may ask for */
    int64_t dead_most, dead_age_us; /* dead jobs that are kept; 0: as the namespace says */
    bool unknown_dead;              /* jobs of types that no worker runs become dead */
    bool log_done;                  /* a line for each job that is done */
    bool drain;                     /* end when nothing is left */
    int64_t drain_max_us;           /* that draining may take; 0: any */
    char *trace_file;               /* NULL: no trace */
    struct type_options *types;     /* of types that may have no handler yet */
    int type_count;
    char *queue_names; /* owns what queues points to */
};

/* Reads options into a struct that is all zero. On failure, too, options_free() frees what it holds. */
WEIR_CHECKED int options_read(struct options *o, const struct weir_worker_options *given, struct error *e);
/* types: one type or pattern, or several with commas between. */
WEIR_CHECKED int options_add_type(struct options *o, const char *types, const struct weir_type_options *given,
                                  struct error *e);
/* Gives each handler the options of its type. Types and patterns that have options become words of the handler whose pattern takes them. */
WEIR_CHECKED int options_spread(const struct options *o, struct handlers *handlers, struct error *e);
void options_free(struct options *o);
