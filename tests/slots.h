/* Starts as the traces of workers tell them (worker/way/trace.h), in the order of their slots. Redis grants slots, so how late a busy
 * machine runs a thread does not matter here. */
#pragma once

#include <stdint.h>

#include "tests/stage.h"

struct slot {
    int64_t at_us; /* by Redis's clock */
    char type[16];
    int job; /* of the id j<number> */
};

struct slots {
    struct slot *at;
    int count;
};

/* Of the trace of that name in the stage's folder, to which several workers may write. Fails the test if a handler
 * started before its slot. */
struct slots slots_read(struct stage *s, const char *name);
void slots_free(struct slots *slots);
/* The most slots in any second, of these types, each named by its first letter, from since_us on. */
int slots_most_in_a_second(const struct slots *slots, const char *types, int64_t since_us);
/* How many jobs come after one with a greater number. */
int slots_overtaken(const struct slots *slots);
