#include "throttle/algorithm/algorithms.h"

#include <string.h>

static const struct algorithm_ops *const algorithms[ALGORITHM_COUNT] = {
    [ALGORITHM_GCRA] = &gcra_ops,
    [ALGORITHM_TOKEN_BUCKET] = &token_bucket_ops,
    [ALGORITHM_FIXED_WINDOW] = &fixed_window_ops,
    [ALGORITHM_SLIDING_LOG] = &sliding_log_ops,
    [ALGORITHM_SLIDING_WINDOW] = &sliding_window_ops,
    [ALGORITHM_CONCURRENCY] = &concurrency_ops,
};

const struct algorithm_ops *algorithm_of(enum algorithm algorithm)
{
    return algorithms[algorithm];
}

bool algorithm_find(const char *name, enum algorithm *algorithm)
{
    for (int i = 0; i < ALGORITHM_COUNT; i++)
        if (strcmp(algorithms[i]->name, name) == 0) {
            *algorithm = (enum algorithm)i;
            return true;
        }
    return false;
}
