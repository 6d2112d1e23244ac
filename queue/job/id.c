/* Ids of jobs: 80 random bits each, in 16 letters and digits. No two are equal, also in a child after fork(). */
#include "queue/job/job.h"

#include <sys/random.h>

#include "core/forks.h"

/* Each thread fetches many random bytes at a time; a fork makes those of the child stale. */
#define ID_BYTES 10
#define IDS_AT_ONCE 200
static _Thread_local struct {
    unsigned char bytes[ID_BYTES * IDS_AT_ONCE];
    size_t left;
    unsigned forks;
} pool;

static void fill_pool(void)
{
    size_t filled = 0;

    while (filled < sizeof pool.bytes) {
        ssize_t n = getrandom(pool.bytes + filled, sizeof pool.bytes - filled, 0);

        filled += n > 0 ? (size_t)n : 0; /* it can be interrupted, nothing else */
    }
    pool.left = IDS_AT_ONCE;
    pool.forks = forks_count();
}

void job_make_id(char out[17])
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* five bits each, without i, l, o, u */
    const unsigned char *bytes;

    if (pool.left == 0 || pool.forks != forks_count())
        fill_pool();
    bytes = pool.bytes + --pool.left * ID_BYTES;
    for (int half = 0; half < 2; half++) {
        uint64_t bits = 0;

        for (int i = 0; i < 5; i++)
            bits = bits << 8 | bytes[half * 5 + i];
        for (int i = 0; i < 8; i++)
            out[half * 8 + i] = digits[bits >> (35 - 5 * i) & 31];
    }
    out[16] = '\0';
}

void job_add_seed(struct args *a)
{
    char seed[17];

    job_make_id(seed);
    args_add(a, seed);
}
