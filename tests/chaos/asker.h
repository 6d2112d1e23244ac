/* Redis as its clients find it: a thread that asks it all the time. A busy machine may keep it from its processor, and its disk
 * from writing what it waits for. One in a process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STARVED_LEAST_US 20000 /* leases are seconds */

void asker_start(const char *socket);
void asker_stop(void);
/* When an answer took that long; each is told once. false: there is none. Not while Redis was away. */
bool asker_take(int64_t *from_us, int64_t *to_us);
