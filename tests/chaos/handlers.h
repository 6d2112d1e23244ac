/* The handlers in C of a chaos run, on threads and on the loop: in a shared object for weir worker --load,
 * and in the run's own workers. $CHAOS_THREADS and $CHAOS_LOOP name their types, joined by commas. */
#pragma once

#include "weir.h"

/* What --load calls. */
WEIR_API int weir_register(struct weir_worker *worker);
