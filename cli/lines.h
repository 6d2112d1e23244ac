/* Lines of a file or of standard input, one after the other, in constant memory: of a line longer than
 * JOB_BODY_MAX its first JOB_BODY_MAX + 1 bytes are given, which no job can have, and the rest is passed
 * over. */
#pragma once

#include <signal.h>

#include "queue/job/job.h"

struct lines {
    const char *name; /* for messages */
    int fd;
    const volatile sig_atomic_t *stop;
    char *buffer;
    size_t begin, end; /* what was read and not yet given */
    bool at_end, told_idle;
    int idle_ms;         /* nothing has come for so long: it is idle; the caller may set it */
    uint64_t number;     /* of the line given last, from 1 */
    uint64_t bytes;      /* given so far */
    uint64_t size_bytes; /* of all, 0: unknown */
};

/* path "-": standard input. stop: set by a signal handler, ends the waiting for input. */
WEIR_CHECKED int lines_open(struct lines *l, const char *path, const volatile sig_atomic_t *stop,
                            struct error *e);
void lines_close(struct lines *l);

enum lines_result {
    LINES_ONE,    /* *line, without its newline, valid until the next call */
    LINES_IDLE,   /* nothing comes at the moment; said once, then the next call waits */
    LINES_END,    /* also when stopped */
    LINES_FAILED, /* *e says why */
};
enum lines_result lines_next(struct lines *l, struct span *line, struct error *e);
