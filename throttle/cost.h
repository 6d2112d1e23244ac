/* What a job costs: plain slots, and slots by name beside them, as rules with of=NAME count them (throttle/cost.lua). */
#ifndef THROTTLE_COST_H
#define THROTTLE_COST_H

#include <stdbool.h>
#include <stddef.h>

#include "throttle/algorithm/state.h"

#define COST_NAMES_MAX 8
#define COST_MAX INT64_C(1000000000)
#define COST_UNSAID (-1)
#define COST_TEXT_SIZE 384 /* digits, and ",NAME:DIGITS" of each name */

/* What is said of a cost: by a job, of its type, or what one cost in truth. */
struct job_cost {
    int64_t plain; /* COST_UNSAID: nothing */
    int count;
    struct {
        char name[RULE_OF_SIZE];
        int64_t slots; /* 0: it does not ask such a rule */
    } named[COST_NAMES_MAX];
};

/* Says that many plain slots and no more; COST_UNSAID: nothing. */
struct job_cost cost_of(int64_t plain);
/* True of a name that a rule may count by: [a-z][a-z0-9_]*, at most 32 characters, neither "plain" nor "jobs". */
bool cost_is_name(const char *name, size_t len);
/* Says one number more, of "plain" or a name. False: the name is none or was said before, there are too many, or n is below 0 (of plain: 1) or
 * above COST_MAX. */
bool cost_say(struct job_cost *cost, const char *name, size_t len, int64_t n);
/* Reads "3", "3,images:2,tokens:900" or "tokens:900": plain slots first, then the names in order of their bytes. False: it is none. */
bool cost_parse(const char *text, struct job_cost *cost);
/* Writes that; "" when nothing is said. */
void cost_write(const struct job_cost *cost, char out[COST_TEXT_SIZE]);
/* Returns the slots that a job takes of a rule, by what it says, else by what its type says, else 1. */
int64_t cost_at(const struct rule *rule, const struct job_cost *said, const struct job_cost *of_type);

#endif
