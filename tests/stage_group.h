/* A stage (stage.h) that a group of tests has in common; its cases may have branches. */
#ifndef TESTS_STAGE_GROUP_H
#define TESTS_STAGE_GROUP_H

#include "tests/stage.h"

extern struct stage stage;

/* Setup and teardown of the group. */
int stage_start(void **state);
int stage_stop(void **state);
/* Setup of each test: nothing in Redis. */
int stage_flush(void **state);

#endif
