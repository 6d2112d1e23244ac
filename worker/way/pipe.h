/* --pipe: children that stay and take jobs line by line (worker/way/pipe.c). */
#pragma once

#include "worker/way/handler.h"

#define PIPE_IN_FLIGHT_MOST 10000

/* Jobs of type are for children that run command; in_flight (0: 1) in each at a time. Errors as handlers_add
 * and command_split. */
WEIR_CHECKED int pipe_add(struct handlers *h, const char *type, const char *command, int in_flight,
                          struct error *e);
