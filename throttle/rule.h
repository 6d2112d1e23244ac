/* Limits and their rules. One word for a thing:
 *
 *   limit   has a name and 1 to 8 rules; types are held by limits, and takes name one
 *   rule    one line such as 10/s: a rate, or concurrency=5
 *   rate    what a rule says of time: COUNT starts in each PERIOD. A rule of concurrency has none
 *   gate    a rule's live state: one for all jobs, or one for each key (gate.h)
 *   slot    the right to start, which a gate grants; a job takes as many as it costs
 *
 * A rule as a person writes it:
 *
 *   RULE   = RATE { "," OPTION } | "concurrency=" N [ ",by=" PATH ]
 *   RATE   = COUNT "/" [NUMBER] UNIT                 100/1m   10/s,burst=20   1/1.5s   10/s,by=args.customer
 *   UNIT   = "us" | "ms" | "s" | "m" | "h" | "d" | "w" | "mo": with 1 alone, and in a zone, else UTC
 *   OPTION = "burst=" N               gcra, token-bucket: how many may start at once after a quiet time;
 *                                     else COUNT
 *          | "algorithm=" NAME        gcra (the default), token-bucket, fixed-window, sliding-log,
 *                                     sliding-window
 *          | "offset=" DURATION       fixed-window: its windows begin that long after midnight UTC of
 *                                     1970-01-01
 *          | "zone=" ZONE             fixed-window: its windows are the days (1d), weeks from Monday (1w) or months (1mo) of a
 *                                     zone of the tz database; offset= counts from their midnight
 *          | "of=jobs"                it counts one for each job; else what the job costs
 *          | "by=" PATH               one gate for each value: key, or names into the job such as
 *                                     args.customer
 *          | "adapt=" LOW ".." HIGH   after "throttled" the rate falls, at most to LOW, and rises to HIGH
 *                                     again
 *
 * T = period / count; tau = (burst - 1) * T. Redis keeps rules in their stored form, which Lua reads
 * (throttle/rules.lua), each with ,of=jobs, ,by=PATH and ,adapt=LOW..HIGH (thousandths) behind it where they are set:
 *
 *   gcra:COUNT/PERIOD_US/BURST
 *   token-bucket:COUNT/PERIOD_US/BURST
 *   fixed-window:COUNT/PERIOD_US/OFFSET_US[/ZONE_RULE,zone=NAME]      (throttle/zone_rule.h)
 *   sliding-log:COUNT/PERIOD_US
 *   sliding-window:COUNT/PERIOD_US
 *   concurrency:N
 *
 * A blank joins the rules of a limit. A rule keeps its place, and so its gates, when others go: "-" stands for one that is gone before
 * it. Marks may follow: pause:UNTIL_US/SET_AT_US and weights:1. */
#pragma once

#include "core/duration.h"
#include "core/error.h"
#include "throttle/algorithm/state.h"

#define RULE_TEXT_SIZE 400 /* the longest rule in either form */
#define RATE_TEXT_SIZE 48  /* the longest COUNT/PERIOD */

/* Reads what a person wrote. WEIR_EINPUT: what is wrong and what would be right. */
WEIR_CHECKED int rule_parse(const char *text, struct rule *rule, struct error *e);
/* Writes the person's form, shortest: "100/1m,burst=20". */
void rule_format(const struct rule *rule, char out[RULE_TEXT_SIZE]);
/* Writes the period of a rate: "1d", "1mo". */
void rule_format_period(const struct rule *rule, char out[32]);
/* Write and read the stored form. rule_read: WEIR_EINPUT when the text is not one. */
void rule_write(const struct rule *rule, char out[RULE_TEXT_SIZE]);
WEIR_CHECKED int rule_read(const char *stored, struct rule *rule, struct error *e);
bool rule_equal(const struct rule *a, const struct rule *b);
/* Returns the most slots that any window [x, x + period) can see; doc/design-limits.md, "Algorithms", says why. Concurrency:
 * the most jobs that are in flight at any time. */
int64_t rule_most_in_period(const struct rule *rule);

#define RULES_MAX 8 /* rules of one limit */
#define RULE_SET_TEXT_SIZE (RULES_MAX * RULE_TEXT_SIZE + 64)

struct rule_set {
    struct rule at[RULES_MAX];
    size_t count;
    int64_t pause_until_us, paused_at_us; /* the limit as a whole was paused at that time; 0: never */
    bool weighted;                        /* keys have weights of their own */
};

/* Reads 1 to RULES_MAX rules that a person wrote. WEIR_EINPUT also when they do not go together. */
WEIR_CHECKED int rule_set_parse(const char *const *texts, size_t n, struct rule_set *set, struct error *e);
/* Writes the rules in the person's form, joined by a blank. */
void rule_set_format(const struct rule_set *set, char out[RULE_SET_TEXT_SIZE]);
/* Write and read the stored form with its marks. rule_set_read: WEIR_EINPUT when the text is not one. */
void rule_set_write(const struct rule_set *set, char out[RULE_SET_TEXT_SIZE]);
WEIR_CHECKED int rule_set_read(const char *stored, struct rule_set *set, struct error *e);
/* Finds the rule at that place; NULL: there is none. */
const struct rule *rule_set_at(const struct rule_set *set, int64_t place);
/* Returns the path of its keyed rules; "": none is keyed. */
const char *rule_set_path(const struct rule_set *set);
