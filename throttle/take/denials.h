/* Denials that are remembered: who asks again for what was denied gets the same answer without a round trip,
 * until it can change. That is when retry_after has passed, counted from before Redis was asked, and after
 * one second at the latest, so that a rule that was changed shows within a second.
 *
 * Bounded: a table of DENIALS_MOST entries in sets of four, of which the one that ends first makes room. A
 * question whose texts are longer than DENIAL_TEXT_SIZE is not remembered. For one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "weir.h"

#define DENIALS_MOST 4096
#define DENIAL_TEXT_SIZE 336

/* Questions are the same when all three are. */
struct question {
    const char *what, *more; /* a limit and a key, or a limit with its key and the rules given; never NULL */
    int64_t cost;
};

struct denials;

/* One block of memory, ended by free(). NULL: out of memory. */
struct denials *denials_new(void);
/* True when this was denied and still is: then *take is the answer. */
bool denials_find(const struct denials *d, const struct question *q, int64_t now_us, struct weir_take *take);
/* Remembers an answer that is a denial. asked_us: a time before Redis was asked. */
void denials_keep(struct denials *d, const struct question *q, int64_t asked_us,
                  const struct weir_take *take);
