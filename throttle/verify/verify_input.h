/* What verify has read, and the parts of it that its own files share: verify.c reads lines, verify_input.c
 * keeps texts and rules once, verify_replay.c orders starts and collects figures, verify_gate.c replays one
 * gate. */
#pragma once

#include <stdint.h>

#include "throttle/verify/verify.h"

/* A map leads from a hash to a number that is not 0. */
struct map {
    struct map_slot {
        uint64_t hash;
        uint32_t value; /* 0: nothing here */
    } * at;
    size_t count, size;
};
/* Returns the value at hash; 0: it is new, and is to be set at once. NULL: out of memory. */
uint32_t *map_at(struct map *m, uint64_t hash);
/* Finds an entry and adds nothing: NULL when there is none. */
uint32_t *map_find(const struct map *m, uint64_t hash);
void map_clear(struct map *m);
void map_free(struct map *m);
uint64_t text_hash(uint64_t seed, const char *text);

#define TYPE_RULES_MAX 16

struct input_rule {
    uint32_t line; /* in input->lines */
    uint32_t same; /* equal numbers: the same rule but for by= and adapt= */
    struct rule rule;
};

struct input_limits {
    size_t count;
    struct input_rule at[TYPE_RULES_MAX];
};

struct input_line {
    uint32_t limit; /* its name in texts */
    uint32_t index;
};

struct start {
    int64_t at_us; /* its slot; without a limit its start */
    int64_t start_us;
    int64_t end_us; /* by the clock of start_us; without an end line what stands for it */
    int64_t spent;  /* -1: its cost */
    uint64_t job;   /* hash of type and id */
    uint64_t line;
    uint32_t type, key, file; /* texts; key 0: none */
    uint32_t writer;          /* while its file is read: the worker */
    uint32_t limits;          /* in input->limits, from 1; 0: none */
    int32_t cost;
    int32_t ahead_us; /* how long before its slot it was granted; -1: not known, up to GATE_AHEAD_US */
    int32_t good_us;  /* how long its slot is good */
    bool ended;
    bool back; /* no handler was called: it is no start */
};

struct verify_input {
    struct start *starts;
    size_t count, capacity;
    struct map text_map;
    char **texts;          /* 0 is "" */
    uint32_t *text_limits; /* of a text that is one of limits: in limits, from 1 */
    size_t text_count, text_capacity;
    struct input_limits *limits;
    size_t limits_count;
    struct input_line *lines;
    size_t line_count;
    struct rule *rules; /* different but for by= and adapt=: those have neither */
    size_t rule_count;
    uint32_t no_value; /* the text "-": a keyed rule, a job without the key */
};

static inline int verify_out_of_memory(struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "verify: out of memory; give fewer traces at once");
}

WEIR_CHECKED int input_init(struct verify_input *input, struct error *e);
void input_free(struct verify_input *input);
/* Finds the number of the one copy of a text. */
WEIR_CHECKED int input_text(struct verify_input *input, const char *text, uint32_t *number, struct error *e);
/* Finds the number of a text of limits, which is read once; 0 for "". WEIR_EINPUT: it is none. */
WEIR_CHECKED int input_limits(struct verify_input *input, const char *text, uint32_t *number,
                              struct error *e);
/* Makes room for one more element in an array that doubles. */
WEIR_CHECKED int input_grow(void *array, size_t count, size_t *capacity, size_t size, struct error *e);

/* ---- One gate */

/* An event is a start at one of its gates. */
struct event {
    uint32_t start; /* in starts, which are ordered by slot */
    uint32_t key;   /* a text; 0: the gate has none */
    uint16_t line;
    uint16_t place; /* in its limits */
    bool failed;    /* its slot was too early */
};

struct broken {
    uint32_t start;
    uint16_t line, place;
    bool started; /* its handler's start is one too many, not its slot */
    int64_t early_us;
};

/* Lists what was found, in any order. */
struct broken_list {
    struct broken *at;
    size_t count, capacity;
};

const struct input_rule *event_rule(const struct verify_input *input, const struct event *event);

/* Replays all events of one gate; reorders them. */
WEIR_CHECKED int gate_replay(const struct verify_input *input, struct event *events, size_t n,
                             struct verify_use *use, struct broken_list *broken, struct error *e);
