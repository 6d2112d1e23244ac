/* Ids of jobs: 80 random bits each, in 16 letters and digits. No two are equal, also in a child after fork(). */
#include "queue/job/job.h"

#include <endian.h>
#include <string.h>
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

/* Writes eight digits of the low 40 bits, five bits each. */
static void write_half(char out[8], uint64_t bits)
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* without i, l, o, u */

    for (int i = 7; i >= 0; i--, bits >>= 5)
        out[i] = digits[bits & 31];
}

void job_make_id(char out[17])
{
    const unsigned char *bytes;
    uint64_t first, last; /* eight of the ten bytes each, of which the first and the last five count */

    if (pool.left == 0 || pool.forks != forks_count())
        fill_pool();
    bytes = pool.bytes + --pool.left * ID_BYTES;
    memcpy(&first, bytes, sizeof first);
    memcpy(&last, bytes + ID_BYTES - sizeof last, sizeof last);
    write_half(out, le64toh(first));
    write_half(out + 8, le64toh(last) >> 24);
    out[16] = '\0';
}

void job_add_seed(struct args *a)
{
    char seed[17];

    job_make_id(seed);
    args_add(a, seed);
}
