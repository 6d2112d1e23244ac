/* What an operator orders a worker. The script is worker_order. */
#pragma once

#include "core/client/client.h"

/* order: "quiet", it takes no more jobs and stays; "resume", it takes some again; "stop", it finishes and leaves. The worker hears it with its next heartbeat, a
 * quarter of its lease later at most. instance: of its row in status.h. Fills w->error on failure. */
WEIR_CHECKED int worker_order(struct weir *w, const char *instance, const char *order);
