/* A server that answers what a test has written down, whatever is true: a Sentinel or a node of a cluster that is broken, or lies.
 * It listens on a port of 127.0.0.1, on a thread. */
#pragma once

#include <stddef.h>

struct fake;

struct fake_line {
    const char *command; /* the command begins so, its words joined by blanks; NULL: each */
    const char *answer;  /* the bytes; "": none, ever; NULL: the connection is closed */
    int times;           /* that often, then the lines behind this one; 0: always */
};

/* The lines are borrowed and end with one whose command is NULL. */
struct fake *fake_start(const struct fake_line *lines);
int fake_port(const struct fake *f);
/* From now on these. */
void fake_say(struct fake *f, const struct fake_line *lines);
/* How many commands that begin so have come. */
int fake_heard(struct fake *f, const char *command);
void fake_stop(struct fake *f);
