#include "tests/chaos/asker.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"
#include "tests/chaos/run.h"

#define ASK_EVERY_US 5000

struct wait {
    int64_t from_us, to_us;
};

static struct {
    pthread_t thread;
    pthread_mutex_t lock;
    atomic_bool ends;
    const char *socket;
    struct wait *waits; /* asker_take() has told the first `told` of them */
    int count, told;
} asker = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(int64_t from_us, int64_t to_us)
{
    pthread_mutex_lock(&asker.lock);
    asker.waits = run_more(asker.waits, asker.count, sizeof *asker.waits);
    asker.waits[asker.count++] = (struct wait){from_us, to_us};
    pthread_mutex_unlock(&asker.lock);
}

static void ask_once(redisContext *redis)
{
    int64_t from_us = clock_mono_us(), to_us;
    void *answer = redisCommand(redis, "PING");

    to_us = clock_mono_us();
    if (answer && to_us - from_us >= STARVED_LEAST_US)
        note(from_us, to_us);
    freeReplyObject(answer);
}

static void *ask(void *unused)
{
    redisContext *redis = NULL;
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE); /* of a Redis that was killed between two questions */
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    for (; !atomic_load(&asker.ends); clock_sleep_until(clock_mono_us() + ASK_EVERY_US)) {
        if (!redis)
            redis = redisConnectUnix(asker.socket);
        if (redis && !redis->err)
            ask_once(redis);
        if (redis && redis->err) {
            redisFree(redis);
            redis = NULL;
        }
    }
    redisFree(redis);
    return unused;
}

void asker_start(const char *socket)
{
    asker.socket = socket;
    if (pthread_create(&asker.thread, NULL, ask, NULL) != 0)
        abort();
}

void asker_stop(void)
{
    atomic_store(&asker.ends, true);
    pthread_join(asker.thread, NULL);
    free(asker.waits);
}

bool asker_take(int64_t *from_us, int64_t *to_us)
{
    bool some;

    pthread_mutex_lock(&asker.lock);
    some = asker.told < asker.count;
    if (some) {
        *from_us = asker.waits[asker.told].from_us;
        *to_us = asker.waits[asker.told++].to_us;
    }
    pthread_mutex_unlock(&asker.lock);
    return some;
}
