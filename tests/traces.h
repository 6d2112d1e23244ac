/* Three files of traces that a group of tests writes and verify reads. */
#ifndef TESTS_TRACES_H
#define TESTS_TRACES_H

#include <stdio.h>

#include "core/error.h"
#include "tests/test.h"
#include "throttle/verify/verify.h"

#define TRACES 3

extern char trace_folder[], trace_paths[TRACES][64];
extern struct error trace_error; /* of the last call that filled it */

/* Setup and teardown of the group. */
int traces_begin(void **state);
int traces_end(void **state);

/* The three files, being written. */
struct traces {
    FILE *files[TRACES];
    size_t lines[TRACES];
};

void traces_open(struct traces *t);
void traces_close(struct traces *t);
/* A start in that file, under those rules of the limit "rate-TYPE"; it costs 1 if nothing is said. */
void traces_add(struct traces *t, int file, const char *type, int64_t slot_us, int64_t late_us,
                const char *rules);
void traces_add_cost(struct traces *t, int file, const char *type, int64_t slot_us, int64_t late_us,
                     const char *rules, int64_t cost);
/* The first file is this text. */
void traces_write(const char *text);
/* Reads and replays the first files of the three. Freed by verify_free(). */
struct verify traces_replay(int files);

#endif
