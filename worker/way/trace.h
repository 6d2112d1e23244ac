/* A trace: one line of NDJSON for each start and for some ends, for weir verify.
 *   {"slot":1700000000000000,"start":1700000000000123,"ahead":0,"type":"mail","key":"42","cost":3,"id":"...",
 *    "limits":"mail=gcra:100/60000000/20|account=concurrency:5","by":"x4q8mz1d"}
 *   {"spent":7,"slot":1700000000000000,"type":"mail","id":"...","by":"x4q8mz1d"}
 *   {"end":1700000000900123,"type":"mail","id":"...","by":"x4q8mz1d"}
 *   {"back":1700000000900123,"slot":1700000000000000,"type":"mail","id":"...","why":"no_handler","by":"x4q8mz1d"}
 *   {"opened":1700000000000000,"by":"x4q8mz1d"}
 *   {"lapsed":1700000000000000,"by":"x4q8mz1d"}
 *   {"lost":12}
 * slot: the start time that was granted, by Redis's clock (0 without a gate); ahead: how long before that
 * time, us; good: for how long the slot is good, where that is not VERIFY_GOOD_US; start: when the handler
 * was called, by this machine's clock; key and cost only where there is a key and the cost is not 1; limits:
 * those in force, as they are stored. end: when the handler returned, of jobs that a concurrency rule counts
 * and of those that spent another cost than was granted; spent says what that was. back: the slot came back, as no
 * handler was called, and why; a start of that slot was none. opened: a worker begins to
 * write here; by: which one, as others may write to the same file. lapsed: all leases of this worker were
 * over then. lost: so many lines are missing here.
 *
 * Lines are collected and written whole. What cannot be written (a full disk, a pipe that nobody reads) is
 * kept, up to 1 MiB of it; then lines are lost. No job waits for that. A file that cannot grow at all has the
 * line that says so in the place of its last one. Thread-safe. */
#pragma once

#include "core/error.h"
#include "worker/way/task.h"

struct trace;

/* Opens file for appending. NULL and *e on failure. */
struct trace *trace_open(const char *file, struct error *e);
/* Notes that the handler is about to be called. */
void trace_start(struct trace *trace, const struct task *task);
/* Notes that the handler has returned. */
void trace_end(struct trace *trace, const struct task *task);
/* Notes that no handler was called: a job that had a slot gives it back. */
void trace_back(struct trace *trace, const struct task *task);
/* Notes that all leases were over at that time of clock_boot_us(). Without a trace, or at 0, nothing is written. */
void trace_lapsed(struct trace *trace, int64_t boot_us);
/* Writes what was collected, as far as that is possible now. */
void trace_flush(struct trace *trace);
void trace_close(struct trace *trace);
