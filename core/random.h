#ifndef CORE_RANDOM_H
#define CORE_RANDOM_H

/* At random, from 0 to below 1: good enough to spread what would happen at once, and no secret. */
double random_fraction(void);

#endif
