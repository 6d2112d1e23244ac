#include "tests/stage_group.h"

#include <stdlib.h>

struct stage stage;

int stage_start(void **state)
{
    stage_open(&stage, false);
    return 0;
}

int stage_stop(void **state)
{
    stage_close(&stage);
    return 0;
}

int stage_flush(void **state)
{
    stage_end_workers(&stage);
    stage_do(&stage, "FLUSHALL");
    return 0;
}
