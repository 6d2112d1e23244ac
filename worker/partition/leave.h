/* Leaving: nothing is left here, and Redis is told. */
#pragma once

#include <stdbool.h>

#include "core/script/args.h"

struct partition;

/* Leaves Redis, as everything has ended or was given back. The last partition to leave ends the loop. */
void leaving_begin(struct partition *p);
/* Leaves, if the worker stops and nothing is left. */
bool leaving_if_done(struct partition *p);
/* Writes the request by which it leaves: all that is leased to it goes back. */
void leaving_write(struct partition *p, struct args *a);
