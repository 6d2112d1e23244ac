/* Being process 1, as in a container: whoever loses its parent becomes a child of ours, and must be waited
 * for; and signals are ignored unless there is a handler. */
#pragma once

#include "core/error.h"

/* Returns at once unless this is process 1. Else it goes on in a child, and process 1 stays behind: it passes
 * signals on to that child, waits for whatever ends, and ends as the child does. */
WEIR_CHECKED int init_stay_behind(struct error *e);
