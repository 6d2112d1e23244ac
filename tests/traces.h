/* Three files of traces that a group of tests writes and verify reads. */
#pragma once

#include <stdio.h>

#include "core/error.h"
#include "tests/test.h"
#include "throttle/verify/verify.h"

#define TRACES 3

extern char trace_folder[], trace_paths[TRACES][64];
extern struct error trace_error; /* of the last call that filled it */

/* The three files, being written. */
struct traces {
    FILE *files[TRACES];
    size_t lines[TRACES];
};

extern struct traces traces;
extern struct verify verified; /* what the last ones came to */

/* Setup and teardown of the group. */
int traces_begin(void **state);
int traces_end(void **state);

void traces_open(void);
void traces_close(void);
/* A start in that file, under those rules of the limit "rate-TYPE"; it costs 1 if nothing is said. */
void traces_add(int file, const char *type, int64_t slot_us, int64_t late_us, const char *rules);
void traces_add_cost(int file, const char *type, int64_t slot_us, int64_t late_us, const char *rules,
                     int64_t cost);
/* The first file is this text. */
void traces_write(const char *text);
/* Reads the first files of the three, and replays them into verified. */
void replay(int files);
