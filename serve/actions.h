/* POST below /api: what changes something. Each answers what its command prints with --json. */
#ifndef SERVE_ACTIONS_H
#define SERVE_ACTIONS_H

#include "serve/resource.h"

extern const struct resource action_resources[];

#endif
