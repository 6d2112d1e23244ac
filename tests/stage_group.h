/* A stage (stage.h) that a group of tests has in common; its cases may have branches. */
#pragma once

#include "tests/stage.h"

extern struct stage stage;

/* Setup and teardown of the group. */
int stage_start(void **state);
int stage_stop(void **state);
/* Setup of each test: nothing in Redis, and no worker of the test before. */
int stage_flush(void **state);
/* A test with a branch of it as s. */
#define BRANCH_TEST(name, ns)                                                                                \
    static void name##_on(struct stage *s);                                                                  \
    TEST(name)                                                                                               \
    {                                                                                                        \
        struct stage branch;                                                                                 \
                                                                                                             \
        stage_branch(&stage, ns, &branch);                                                                   \
        name##_on(&branch);                                                                                  \
        stage_close(&branch);                                                                                \
    }                                                                                                        \
    static void name##_on(struct stage *s)
