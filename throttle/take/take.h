/* Slots for callers of any kind: take.lua's request and answer. One call asks for many, each of its own
 * limit. */
#pragma once

#include <signal.h>
#include <stdbool.h>

#include "core/client/client.h"
#include "core/script/args.h"
#include "throttle/cost_words.h"
#include "throttle/key.h"
#include "throttle/limit.h"

struct redisReply; /* hiredis */

#define TAKE_MOST 1000 /* questions in one call */

struct take_question {
    char name[LIMIT_NAME_SIZE];
    char key[KEY_NAMED_SIZE]; /* of key_name(); "": none */
    int64_t cost;
    char costs[COST_TEXT_SIZE]; /* by name, as cost_write has it, instead; "": none */
};

/* Makes a question of a limit's name, a key (NULL: none; one that is not a valid name stands for its hash) and a cost
 * (0: 1), or one by name as people write it (NULL: none). WEIR_EINPUT, and *why is a static text. */
WEIR_CHECKED int take_make(struct take_question *q, const char *name, size_t name_len, const char *key,
                           int64_t cost, const char *costs, const char **why);
/* Reads a question of NAME or NAME/KEY. */
WEIR_CHECKED int take_read(struct take_question *q, const char *target, int64_t cost, const char *costs,
                           const char **why);
/* Turns the rules that a person wrote, joined by blanks, into the stored form; NULL: "", the limit's own. WEIR_EINPUT. */
WEIR_CHECKED int take_rules(const char *text, char stored[RULE_SET_TEXT_SIZE], struct error *e);

/* Begins a call; then 1 to TAKE_MOST questions. */
void take_request(struct args *a, const char *prefix, int64_t now_us, const char *rules, bool peek);
void take_add(struct args *a, const struct take_question *q);
/* Checks that this is the answer to that many. */
WEIR_CHECKED int take_reply(const struct redisReply *r, size_t count, struct error *e);
/* The i-th of its answers. WEIR_ENOTFOUND: no such limit; WEIR_EINPUT, WEIR_ECONFIG: it cannot be asked so;
 * *why is a static text. */
WEIR_CHECKED int take_answer(const struct redisReply *r, size_t i, struct weir_take *out, const char **why);

/* True when the limit of the i-th question lives on another partition. Then nothing is answered, and *count is how many partitions there are. */
#define TAKE_NOWHERE "its partition does not know that it is; start a worker, and try again"
bool take_is_elsewhere(const struct redisReply *r, size_t i, int *count);

/* A caller who waits for its slot, and stands in line for it: take_wait.lua's. */
struct take_wait {
    struct take_question q;
    char rules[RULE_SET_TEXT_SIZE]; /* stored; "": the limit's own */
    char place[64], tag[24];        /* place "": not in line */
    char bell[PREFIX_SIZE + 80];    /* the list to which a time is pushed when its slot comes sooner */
    int64_t now_us;                 /* Redis's time of the last answer */
    int64_t ttl_us;                 /* 0: it takes; else it holds for so long: hold.lua's */
    const char *who;                /* who holds */
};
/* most_us: how long it may wait yet; < 0: as long as it takes. leave: it does not wait any more. */
void take_wait_request(struct args *a, const char *prefix, int64_t now_us, const struct take_wait *wait,
                       int64_t most_us, bool leave);
/* As take_answer. out->retry_after_s: allowed: when the slot starts; else when it comes, as this wait is told
 * if it is in line then. */
WEIR_CHECKED int take_wait_reply(const struct redisReply *r, struct take_wait *wait, struct weir_take *out,
                                 struct error *e);

/* weir_take for a caller who waits up to most_us (< 0: as long as it takes) in line with others who do, until
 * *stopped. Allowed: its slot has come. */
WEIR_CHECKED int take_in_line(struct weir *w, const char *target, const char *rule, int64_t cost,
                              const char *costs, int flags, int64_t most_us,
                              const volatile sig_atomic_t *stopped, struct weir_take *take);

/* Slots that are held for ttl_us, and by whom. */
struct take_lease {
    int64_t ttl_us;
    const char *who;
    char token[LIMIT_NAME_SIZE + 24]; /* "<limit>~<tag>" */
    int64_t asked_us; /* CLOCK_BOOTTIME before it was granted: it lasts so long from then at least */
};
/* The same for slots on lease, of concurrency too, and most_us 0: now or not at all. Allowed: they are held from now. */
WEIR_CHECKED int take_on_lease(struct weir *w, const char *target, int64_t cost, const char *costs,
                               int64_t most_us, const volatile sig_atomic_t *stopped,
                               struct take_lease *lease, struct weir_take *take);

/* Redis is away: what a caller who would rather have that than an error is answered. */
void take_assume(bool allowed, struct weir_take *out);
