/* A sink: lines that go to a file, a pipe, a socket or a terminal which may not take them. Writing never
 * waits and raises no signal. What cannot be written now is kept while there is room; then lines are dropped,
 * whole ones, and counted: a line that says how many stands where they are missing. Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SINK_MARK_SIZE 256

struct sink {
    char *lines; /* the caller's, size bytes */
    size_t size;
    /* Writes the line that says so many are missing, with its newline; returns its length. */
    size_t (*mark)(char line[SINK_MARK_SIZE], uint64_t dropped);
    int fd;
    bool is_pipe, is_socket;
    size_t written,
        to; /* lines up to to are kept, the first is not all written; written: so far are they out */
    uint64_t dropped; /* lines since the last mark */
};

/* Writes to fd from now on; a pipe or a terminal should not block, or another process that writes to it may
 * make us wait. A line that was written in part is written again. */
void sink_to(struct sink *s, int fd);
/* Keeps a line, its newline included. false: it is dropped. */
bool sink_add(struct sink *s, const char *line, size_t len);
/* Writes what can be written now. 0: all is; else the errno of what keeps it from that. */
int sink_flush(struct sink *s);
/* The first line is to be written again, from its beginning. */
void sink_rewind(struct sink *s);
/* Nothing is kept or missing any more. */
void sink_forget(struct sink *s);
/* Counts the lines that were kept and not written, or dropped. */
uint64_t sink_missing(const struct sink *s);
