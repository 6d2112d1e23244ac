/* A trace: one line of NDJSON for each start, for weir verify.
 *   {"slot":1700000000000000,"start":1700000000000123,"type":"mail","id":"...","rule":"100/1000000/10"}
 * slot: the start time that was granted, by Redis's clock (0 without a limit); start: when the handler was
 * called, by this machine's clock; rule: the limit in force. Lines are collected and written whole;
 * thread-safe. */
#ifndef WORKER_TRACE_H
#define WORKER_TRACE_H

#include "core/error.h"
#include "worker/task.h"

struct trace;

/* Opens file for appending. NULL and *e on failure. */
struct trace *trace_open(const char *file, struct error *e);
void trace_start(struct trace *trace, const struct task *task, const struct job_view *view);
/* Writes what was collected; a failure is logged once. */
void trace_flush(struct trace *trace);
void trace_close(struct trace *trace);

#endif
