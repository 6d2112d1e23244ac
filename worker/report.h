/* What is said of a worker as a whole: once a minute in its log, and to systemd (core/notify.h), at most once a second: ready, once it has joined Redis; a line of what it does; and that
 * it lives. That is not said because a timer runs, but because a turn has ended since the last time, or because Redis is away, which no
 * new start would mend. */
#pragma once

#include <stdint.h>

struct weir_worker;

/* report.c alone writes what was reported. */
struct report {
    int64_t next_us;
    int64_t minute; /* since 1970, of the last line in the log */
    uint64_t turns; /* turns that had ended when systemd was last told that the worker lives */
};

/* Logs, once a minute by the clock, how many jobs of each type have ended, where any have; called at each tick. */
void worker_log_minute(struct weir_worker *w);
/* Tells systemd how the worker is; called at each tick of the loop. */
void worker_report(struct weir_worker *w);
