/* What systemd wants to hear of a unit of Type=notify, to the socket that $NOTIFY_SOCKET names: that it is ready, what it does, that it
 * lives (sd_notify(3)). A program that does not open it, as those with libweir, says nothing. */
#pragma once

#include <stdbool.h>

/* Before there are threads. Programs that are started later do not inherit what it reads: they are not the unit. */
void notify_open(void);
bool notify_is_open(void);
/* Sends lines such as "READY=1\nSTATUS=listening". Never waits; what cannot be sent is lost. */
void notify_send(const char *lines);
