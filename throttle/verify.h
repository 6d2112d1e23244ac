/* verify: were the rates kept? Reads the traces that workers wrote, puts each type's starts in the order of
 * their slots and replays them through gcra.c, which knows nothing of how the slots were granted.
 *
 * A trace is NDJSON, one start a line, several workers' lines in any order:
 *   {"slot":us,"start":us,"type":"mail","id":"...","rule":"100/60000000/20"}
 * slot is the time from which the start was granted, by Redis's clock; start that of the handler, by its
 * worker's; rule the stored rule it was granted under, "" or absent for a type without a limit. Other members
 * are passed over.
 *
 * Where the rule changes from one slot to the next, the replay begins anew with all of the burst: a trace
 * does not say when it was changed, so it cannot accuse anybody there. */
#ifndef THROTTLE_VERIFY_H
#define THROTTLE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>

#include "throttle/limit.h"
#include "throttle/rule.h"

#define VERIFY_NAMED_MAX 20 /* violations that are named one by one */

struct verify_violation {
    const char *file;
    size_t line;
    const char *type;
    int64_t early_us; /* the gate opened that much later */
};

/* The most slots in any window, and what the rule allows in it. */
struct verify_window {
    int64_t window_us;
    uint64_t most, allowed;
};
#define VERIFY_WINDOWS 2 /* a second, 100 ms */

/* How long after its slot a handler started. */
struct verify_lateness {
    int64_t min_us, p50_us, p99_us, p999_us, max_us;
};

struct verify_type {
    char name[LIMIT_NAME_SIZE];
    uint64_t starts, violations;
    int64_t span_us;  /* from the first to the last of them */
    bool limited;     /* had a rule, at the end or before; else nothing below is set */
    size_t stretches; /* of starts under one rule: 1 where it never changed */
    struct rule rule; /* the last one */
    double kept;      /* rate kept / rate set beyond the first burst; below 0: too few starts to tell */
    double gap;       /* the smallest between two slots, in T; below 0: too few */
    struct verify_window windows[VERIFY_WINDOWS];
    struct verify_lateness lateness;
};

struct verify {
    struct verify_type *types; /* by name, after verify_replay */
    size_t type_count;
    struct verify_violation named[VERIFY_NAMED_MAX]; /* the first violations, by type and slot */
    uint64_t starts, violations;
    struct verify_input *input;
};

/* WEIR_EINTERNAL: out of memory. Freed with verify_free, whatever happened. */
WEIR_CHECKED int verify_init(struct verify *v, struct error *e);
void verify_free(struct verify *v);

/* Reads one trace; path is borrowed until verify_free. WEIR_EINPUT: the file or a line of it cannot be read.
 * A torn last line, as a killed worker leaves it, is passed over: *torn_line is its number, else 0. */
WEIR_CHECKED int verify_read(struct verify *v, const char *path, size_t *torn_line, struct error *e);

/* Replays what was read. WEIR_EINTERNAL: out of memory. Violations are no failure: see v->violations. */
WEIR_CHECKED int verify_replay(struct verify *v, struct error *e);

#endif
