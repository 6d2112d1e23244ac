#include "throttle/algorithm/algorithm.h"

#include "core/duration.h"

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
    rule->count = max_i64(1, rule->count * thousandths / 1000);
    rule->burst = rule->count;
}

int64_t first_word_last(const struct gate *g)
{
    return g->word[0];
}

void first_word_step_back(struct gate *g, int64_t us)
{
    g->word[0] = max_i64(0, g->word[0] - us);
}

int64_t time_or_never(__int128 us)
{
    return us > GATE_NEVER ? GATE_NEVER : (int64_t)us;
}
