#include "throttle/take/denials.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define WAYS 4
#define SETS (DENIALS_MOST / WAYS) /* a power of two */
#define LONGEST_US INT64_C(1000000)

struct denial {
    uint64_t hash;
    int64_t cost, asked_us, until_us; /* until_us 0: empty */
    struct weir_take take;
    char texts[DENIAL_TEXT_SIZE]; /* what, NUL, more, NUL */
};

struct denials {
    uint64_t seed; /* so that nobody can choose keys that all fall into one set */
    struct denial at[SETS][WAYS];
};

struct denials *denials_new(void)
{
    struct denials *d = calloc(1, sizeof *d);

    if (d && getrandom(&d->seed, sizeof d->seed, GRND_NONBLOCK) < 0)
        d->seed = (uintptr_t)d;
    return d;
}

/* FNV-1a, then a multiplication that brings all bits to the top. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t hash_question(const struct denials *d, const struct question *q)
{
    return hash_text(hash_text(d->seed ^ (uint64_t)q->cost, q->what), q->more);
}

static size_t set_of(uint64_t hash)
{
    return hash >> 40 & (SETS - 1);
}

static bool is_of(const struct denial *one, const struct question *q, uint64_t hash)
{
    return one->until_us && one->hash == hash && one->cost == q->cost && strcmp(one->texts, q->what) == 0 &&
           strcmp(one->texts + strlen(q->what) + 1, q->more) == 0;
}

/* The answer as it is when some of its time has passed. */
static void grow_older(struct weir_take *take, double passed_s)
{
    take->reset_after_s = take->reset_after_s > passed_s ? take->reset_after_s - passed_s : 0;
    if (!take->never)
        take->retry_after_s -= passed_s;
}

bool denials_find(const struct denials *d, const struct question *q, int64_t now_us, struct weir_take *take)
{
    uint64_t hash = hash_question(d, q);
    const struct denial *set = d->at[set_of(hash)];

    for (int i = 0; i < WAYS; i++) {
        if (set[i].until_us <= now_us || !is_of(&set[i], q, hash))
            continue;
        *take = set[i].take;
        grow_older(take, (double)(now_us - set[i].asked_us) / 1e6);
        return true;
    }
    return false;
}

/* The place of this question, else the one that ends first. */
static struct denial *find_place(struct denials *d, const struct question *q, uint64_t hash)
{
    struct denial *set = d->at[set_of(hash)], *soonest = set;

    for (int i = 0; i < WAYS; i++) {
        if (is_of(&set[i], q, hash))
            return &set[i];
        if (set[i].until_us < soonest->until_us)
            soonest = &set[i];
    }
    return soonest;
}

/* Rounded down: never longer than the denial stands. */
static int64_t lasts_us(const struct weir_take *take)
{
    if (take->never || take->retry_after_s * 1e6 >= LONGEST_US)
        return LONGEST_US;
    return (int64_t)(take->retry_after_s * 1e6);
}

void denials_keep(struct denials *d, const struct question *q, int64_t asked_us, const struct weir_take *take)
{
    size_t what_size = strlen(q->what) + 1, more_size = strlen(q->more) + 1;
    uint64_t hash = hash_question(d, q);
    struct denial *one;

    if (what_size + more_size > DENIAL_TEXT_SIZE)
        return;
    one = find_place(d, q, hash);
    one->hash = hash;
    one->cost = q->cost;
    one->asked_us = asked_us;
    one->until_us = asked_us + lasts_us(take);
    one->take = *take;
    memcpy(one->texts, q->what, what_size);
    memcpy(one->texts + what_size, q->more, more_size);
}
