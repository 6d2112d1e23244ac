/* Changes of limits, as calls of their scripts. Those that are logged end their fixed arguments with what is done and by whom. Where a script
 * answers that it must go on, what it names is added behind these. now_us < 0: Redis's time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/script/args.h"
#include "throttle/cost_words.h"
#include "throttle/rule.h"

#define RATE_USES_MOST 16 /* limits of a type: each has a rule, and a type has at most so many */
#define RATE_RESUME 0
#define RATE_ENDLESS (-1) /* until it is resumed */
#define RATE_PAUSE_LONGEST_US (3650 * INT64_C(86400000000))
#define RATE_WEIGHT_MOST 1000

struct pausing {
    int64_t for_us;        /* or RATE_ENDLESS, or RATE_RESUME: it is resumed */
    const char *reason;    /* NULL: none is given */
    bool create;           /* though nothing of that name is there yet */
    const char *create_by; /* what whoever asks is to know of `create`; NULL: nothing */
};

/* What this thread does from now on is logged as done by that name; "": by the user of this process. */
void requests_on_behalf(const char *name);
/* Logs what was done, at Redis's time; what is not printable in it becomes "?". */
#define RATE_BY_SIZE 320
/* Who does it: "user@host", or as is said on behalf of others. */
void rate_by(char by[RATE_BY_SIZE]);
void note_request(struct args *a, const char *prefix, char *what);

/* How rules are set: nothing is changed; keys lose rules of their own where the limit's go by another path, else that is refused. */
enum { RATE_DRY = 1, RATE_DROP_KEYS = 2 };
/* rules NULL: removes the limit. how: these flags. */
void rate_set_request(struct args *a, const char *prefix, int64_t now_us, const char *name,
                      const struct rule_set *rules, unsigned how);
/* use: by these limits too; else: no longer. At most RATE_USES_MOST. cost NULL: as it is. */
void rate_use_request(struct args *a, const char *prefix, int64_t now_us, const char *type, bool use,
                      const char *const *limits, size_t count, const struct job_cost *cost);
/* The weight of a key as gates have it, made by key_name; key: as the log shows it. */
void rate_weigh_request(struct args *a, const char *prefix, int64_t now_us, const char *limit,
                        const char *key, const char *made, int64_t weight);
void rate_pause_request(struct args *a, const char *prefix, int64_t now_us, const char *limit,
                        const struct pausing *how);
/* Pauses one key of a limit, any text. */
void rate_pause_key_request(struct args *a, const char *prefix, int64_t now_us, const char *limit,
                            const char *key, const struct pausing *how);
struct key_change;
/* rules: as they were read; NULL: removes them. */
void rate_set_key_request(struct args *a, const char *prefix, int64_t now_us, const struct key_change *change,
                          const struct rule_set *rules);
/* script: type_pause or queue_pause; kind: "type ", for the log; NULL: it is not logged. */
void pause_request(struct args *a, const char *script, const char *prefix, int64_t now_us, const char *kind,
                   const char *name, const struct pausing *how);
void type_remove_request(struct args *a, const char *prefix, int64_t now_us, const char *type);
/* One page of a queue; cursor begins as "0" and ends as "". Either type or limit is NULL: what changed; both:
 * all limits are meant. */
void rate_apply_request(struct args *a, const char *prefix, int64_t now_us, const char *queue,
                        const char *cursor, const char *type, const char *limit, bool resume);
