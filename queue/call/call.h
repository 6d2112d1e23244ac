/* The protocol (doc/protocol.md) as weir serve speaks it: the same functions of Redis as other programs call, by the same documents. */
#pragma once

#include "core/client/client.h"
#include "queue/job/job.h"

#define CALL_TEXT_MOST (2 * 1024 * 1024) /* bytes of bulk; TEXT_MOST of call_produce.lua is the same */

/* Calls a verb with a document, wherever its names live, and appends the answer to *answer. The refusal of Redis itself is an error; *lost
 * tells then whether the call may have been done. */
WEIR_CHECKED int call_verb(struct weir *w, const char *verb, struct span document, struct text *answer,
                           bool *lost);
