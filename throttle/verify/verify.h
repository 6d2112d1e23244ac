/* verify: were the limits kept? Reads the traces that workers wrote, puts all starts in the order of their
 * slots and replays them through the gates of throttle/gate.h, which know nothing of how the slots were
 * granted: one for each limit, rule and key, shared by all types that name the limit. Then it judges when
 * handlers started, by their own clocks, whatever their slots: no time that is shorter than the periods of a
 * rule, by twice as long as a slot is good, may hold more starts than those periods hold slots. So it says
 * which of the two failed.
 *
 * A trace is NDJSON, several workers' lines in any order of files (worker/way/trace.h shows one line of each):
 * - slot, start, ahead?, good?, type, id, key?, cost?, limits: a start. slot: the time from which it was
 * granted, by Redis's clock; ahead: how long before that time; good: for how long it is good, where that is
 * not VERIFY_GOOD_US; start: the handler's, by its worker's; limits: "limit=rules|limit=rules", as stored, ""
 * or absent for a type that has none
 * - end, type, id: the handler returned
 * - spent, slot, type, id: it spent that much and not its cost; the end line that follows says when
 * - back, slot, type, id, cost, why: a slot came back, as no handler was called: a start of that slot was none
 * - opened: a worker begins to write; one that wrote as the same before has ended
 * - lapsed: all leases of the worker were over then
 * - lost: so many lines are missing here
 *
 * by, in each but lost: which worker wrote it; without it those of a file are one. Other members are passed
 * over.
 *
 * What a trace cannot tell is taken to the advantage of those who granted:
 * - A rule that changes between two starts changed when that let most through; what is in use stays in use. A
 * rule that comes back finds what was used under it and since then, as long as a gate surely remembers it
 * (throttle/gate.lua), and when all starts of the gate say how far ahead they were granted. A rule that came and
 * went between two starts of its gate is not in the traces.
 * - Slots are granted ahead: starts under the rule before a change may lie behind it. A start that does not
 * say how far was granted up to GATE_AHEAD_US ahead.
 * - Where T is no whole number of microseconds, a start may be one of them too early.
 * - A start that spent less counts as what it spent. One that spent more counts as its cost; the rest is
 * taken when it ended, and held against starts that were granted VERIFY_SETTLE_US later: until then Redis may
 * not have known.
 * - adapt= only lowers a rate: starts are judged by the rate that was set.
 * - In flight is a job from its slot for as long as its handler ran by one clock: never longer than in truth,
 * and no matter what two machines' clocks say. A start without an end (its worker was killed) ended at the
 * same job's next start, or at the last time that its worker wrote, whichever was first. What a worker ran
 * when its leases lapsed ended then: others may have run it from then on.
 * - Where lines are missing, what was in flight had ended by then; the starts among them are not known.
 * - Clocks of machines differ by milliseconds: a handler may start before its slot, by up to
 * VERIFY_CLOCKS_US. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "throttle/limit.h"
#include "throttle/rule.h"

#define VERIFY_NAMED_MAX 20 /* violations that are named one by one */
#define VERIFY_SETTLE_US 1000000
#define VERIFY_CLOCKS_US 1000000 /* more than this between two clocks, or set back, is a fault */
#define VERIFY_GOOD_US 50000
#define VERIFY_NEVER INT64_MAX

struct verify_violation {
    const char *file;
    size_t line;
    const char *type, *limit, *key; /* key: "" at a gate without one */
    size_t index;                   /* of the rule in its limit */
    struct rule rule;
    bool started;     /* its slot may be right, but its handler started where too many had */
    int64_t early_us; /* else the gate opened that much later; VERIFY_NEVER: it cannot hold that cost */
};

/* A window has the most slots, or starts, in any time of its length, and what the rule allows in it. */
struct verify_window {
    int64_t window_us;
    int64_t most, allowed;
};
#define VERIFY_WINDOWS 3 /* a second, 100 ms, the rule's own period */

/* A use says how one gate was used. */
struct verify_use {
    uint64_t starts, violations;
    uint64_t crowded; /* handlers that started where too many had */
    size_t stretches; /* times in which one rule was in force: 1 where it never changed */
    double kept;      /* rate kept / rate set beyond the first burst; below 0: too few starts to tell */
    double gap;       /* the smallest between two slots, in T; below 0: too few */
    struct verify_window windows[VERIFY_WINDOWS];
    struct verify_window started;          /* by handlers' clocks */
    int64_t most_at_once, allowed_at_once; /* concurrency only, else 0 */
};

struct verify_rule {
    const char *limit;
    size_t index;
    struct rule rule; /* the last one */
    uint64_t starts, violations, crowded;
    size_t keys;           /* gates; 1 and "" for a rule that is not keyed */
    const char *worst_key; /* the one with most violations, else closest to what is allowed */
    struct verify_use worst;
};

/* Lateness says how long after its slot a handler started. */
struct verify_lateness {
    int64_t min_us, p50_us, p99_us, p999_us, max_us;
};

struct verify_type {
    const char *name;
    uint64_t starts, violations, crowded;
    uint64_t before_slot; /* handlers that started more than VERIFY_CLOCKS_US before their slots */
    uint64_t after_slot;  /* or after them: among the starts of later slots, which the rule does not allow */
    int64_t span_us;      /* from the first to the last of them */
    bool limited;         /* some had a slot; else there is no lateness */
    struct verify_lateness lateness;
};

/* Counts slots that came back, by why they did. */
struct verify_back {
    const char *why;
    uint64_t slots;
};
#define VERIFY_BACKS 5 /* the last one is "other" */

struct verify {
    struct verify_type *types; /* by name, after verify_replay */
    size_t type_count;
    struct verify_rule *rules; /* by limit and index */
    size_t rule_count;
    struct verify_violation named[VERIFY_NAMED_MAX]; /* the first violations and crowded starts, by slot */
    uint64_t starts, violations, crowded;            /* a start may be too early for several rules */
    uint64_t before_slot, after_slot;                /* of all types */
    struct verify_back backs[VERIFY_BACKS];
    uint64_t lost;   /* lines that the traces say are missing */
    bool torn_first; /* the trace read last begins within a line, as one that was cut */
    struct verify_input *input;
};

/* Makes v, which verify_free() frees, whatever happened. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int verify_init(struct verify *v, struct error *e);
void verify_free(struct verify *v);

/* Reads one trace; path is borrowed until verify_free. WEIR_EINPUT: the file or a line of it cannot be read.
 * A torn last line, as a killed worker leaves it, is passed over: *torn_line is its number, else 0. So is a torn first line, where
 * another follows: v->torn_first. */
WEIR_CHECKED int verify_read(struct verify *v, const char *path, size_t *torn_line, struct error *e);

/* Replays what was read. WEIR_EINTERNAL: out of memory. What was found is no failure: see v->violations of
 * slots; v->crowded, v->before_slot and v->after_slot of starts. */
WEIR_CHECKED int verify_replay(struct verify *v, struct error *e);
