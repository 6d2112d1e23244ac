/* A child that stays, on the loop: lines go to its standard input, lines come from its standard output; what
 * it writes to standard error goes to the log. This file knows no jobs.
 *
 * Nothing here waits. What is sent is buffered until the child reads it. A child that closes its input or
 * output has a moment to end by itself, and is then ended. Its process group ends with it, and it ends with
 * the worker, even one that is killed (core/spawn.h). */
#pragma once

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct child;

struct child_events {
    /* Hears a line that the child wrote, without its newline; at most CHILD_LINE_MOST bytes. */
    void (*on_line)(void *arg, const char *line, size_t len);
    /* Hears that the child has ended, and all of its lines were handed over; reason: how, one line or more. child_free() is allowed, here
     * and not in on_line. */
    void (*on_end)(void *arg, const char *reason);
};

#define CHILD_LINE_MOST (1024 * 1024)

/* Starts argv; name is that in the log. kill_after_us: from TERM to KILL. NULL and an errno: it could not be
 * started. The caller keeps name, argv and events as long as the child. */
struct child *child_start(struct ev_loop *loop, const char *name, char *const argv[], int64_t kill_after_us,
                          const struct child_events *events, void *arg, int *rc);
/* Kills the child if it still runs, without on_end(), and frees it. c may be NULL. */
void child_free(struct child *c);

/* child_line() makes room for a line of at most len bytes, newline included (NULL: out of memory); child_send() sends as many of them as there
 * are. */
char *child_line(struct child *c, size_t len);
void child_send(struct child *c, size_t len);
/* Count the bytes that were sent so far, and those that the child has taken from its standard input. */
uint64_t child_sent(const struct child *c);
uint64_t child_taken(const struct child *c);

/* Ends the standard input of the child when it has read what was sent: no more lines come. */
void child_close(struct child *c);
/* Gives it a moment to end by itself; then it is ended. */
void child_end_soon(struct child *c);
/* Ends its process group by TERM, and by KILL when that did not help in time, or (force) at once. */
void child_end(struct child *c, bool force);
/* Ends the child, and no line of it is handed over any more: why goes before the reason. */
void child_distrust(struct child *c, const char *why);
/* True when the child was closed, is being ended, or has itself closed a side: it is to be sent nothing more. */
bool child_is_ending(const struct child *c);

/* True when TERM has ended it. */
bool child_was_terminated(const struct child *c);

/* Waits for the end of the child until that time, for when the loop does not run any more. true: it has ended. */
bool child_wait(struct child *c, int64_t until_us);
int child_pid(const struct child *c);
