/* A rule: count starts in each period, burst at once after a quiet time.
 *
 *   RULE   = COUNT "/" [NUMBER] UNIT { "," NAME "=" VALUE }        100/1m   10/s,burst=20   1/1.5s
 *   UNIT   = "us" | "ms" | "s" | "m" | "h" | "d" | "w"
 *
 * T = period / count; tau = (burst - 1) * T; without burst= it is count itself. A rule is kept in Redis in
 * its stored form, "count/period_us/burst", which the Lua side reads with one pattern. */
#ifndef THROTTLE_RULE_H
#define THROTTLE_RULE_H

#include <stdint.h>

#include "core/error.h"

struct rule {
    int64_t count;     /* 1 to 10^9 */
    int64_t period_us; /* T is at least 1 us: at most 1,000,000/s */
    int64_t burst;     /* 1 to 10^9; tau at most ten years */
};

#define RULE_TEXT_SIZE 96

/* Reads what a person wrote. WEIR_EINPUT: what is wrong and what would be right. */
WEIR_CHECKED int rule_parse(const char *text, struct rule *rule, struct error *e);
/* The person's form, shortest: "100/1m,burst=20". */
void rule_format(const struct rule *rule, char out[RULE_TEXT_SIZE]);
/* The stored form. rule_read: WEIR_EINPUT when it is not one. */
void rule_write(const struct rule *rule, char out[RULE_TEXT_SIZE]);
WEIR_CHECKED int rule_read(const char *stored, struct rule *rule, struct error *e);
/* "1m", "1.5s": a period or duration in its largest fitting unit. */
void duration_format(int64_t us, char out[32]);
/* "500ms", "10s", "1.5h": WEIR_EINPUT with what would be right. A bare number is not a duration. */
WEIR_CHECKED int duration_parse(const char *text, int64_t *us, struct error *e);
/* The most starts that any window [x, x + period) can see: count + burst - 1. */
int64_t rule_most_in_period(const struct rule *rule);

#endif
