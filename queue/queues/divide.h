/* divide: how many partitions a namespace has. That is set before its first use, and stays. */
#pragma once

#include "core/client/client.h"

/* Has the namespace be of so many partitions, 1 to PARTITIONS_MOST. *was: it was so already. What died on the way is repeated by the same call.
 * WEIR_ECONFIG: it has another number, or is in use with one. */
WEIR_CHECKED int divide(struct weir *w, int count, bool *was);
