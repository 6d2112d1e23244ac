#include "tests/witness.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/clock.h"
#include "tests/stage.h"
#include "tests/test.h"

#define EVERY_US 5000

struct witness {
    pthread_t thread;
    redisContext *redis;
    atomic_bool ends;
    int64_t slack_us, lost_us;
};

static void *watch(void *arg)
{
    struct witness *w = arg;

    while (!atomic_load(&w->ends)) {
        int64_t due_us = clock_mono_us() + EVERY_US, late_us;

        clock_sleep_until(due_us);
        freeReplyObject(redisCommand(w->redis, "PING"));
        late_us = clock_mono_us() - due_us;
        if (late_us > w->slack_us)
            w->lost_us += late_us;
    }
    return NULL;
}

struct witness *witness_start(const struct server *s, int64_t slack_us)
{
    struct witness *w = calloc(1, sizeof *w);

    assert_non_null(w);
    w->slack_us = slack_us;
    w->redis = redisConnectUnix(s->socket);
    assert_true(w->redis && w->redis->err == 0);
    assert_int_equal(pthread_create(&w->thread, NULL, watch, w), 0);
    return w;
}

int64_t witness_end(struct witness *w)
{
    int64_t lost_us;

    atomic_store(&w->ends, true);
    pthread_join(w->thread, NULL);
    lost_us = w->lost_us;
    redisFree(w->redis);
    free(w);
    return lost_us;
}

void witness_expect_kept(double kept, double least, int64_t lasts_us, int64_t taken_us)
{
    double missed_us = (1 / kept - 1) * (double)lasts_us;

    if (missed_us > (1 / least - 1) * (double)lasts_us + 2 * (double)taken_us)
        stage_late("rate kept: %.4f; the machine did nothing for %lld ms", kept, (long long)taken_us / 1000);
}
