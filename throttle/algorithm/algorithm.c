#include "throttle/algorithm/algorithm.h"

#include <string.h>

#include "core/duration.h"

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

bool words_read(const char *words, int n, int64_t *number)
{
    for (int i = 0; i < n; i++) {
        if (i && *words++ != ' ')
            return false;
        if (!number_read(&words, INT64_C(1) << 53, &number[i]))
            return false;
    }
    return !*words;
}

void scale_count(struct rule *rule, int thousandths)
{
    rule->count = most(1, rule->count * thousandths / 1000);
    rule->burst = rule->count;
}

int64_t time_or_never(__int128 us)
{
    return us > GATE_NEVER ? GATE_NEVER : (int64_t)us;
}
