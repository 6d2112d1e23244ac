#pragma once

#include <stdint.h>

/* Draws a number from 0 to below 1: good enough to spread what would happen at once, and no secret. */
double random_fraction(void);
/* Returns any number, as a state for random_draw(). */
uint64_t random_seed(void);
/* Returns the next of the numbers from 0 to below 1 that follow from a seed, the same on every machine (splitmix64). */
static inline double random_draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}
