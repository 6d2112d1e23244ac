/* Jobs that come one by one, beside the floor: a queue of four calls that makes no write which any queue of this
 * kind could leave out, on the same server. Between two jobs the processor forgets what a call needs, so what
 * counts is how much code and memory a call touches. The two and the bare pair of LPUSH and BLMOVE take turns. */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "bench/beats.h"

#define ROUNDS 5
#define EXECUTORS_MANY 100

static const char floor_library[] =
    "#!lua name=floor\n"
    "local function push(k, a)\n"
    "  if not redis.call('SET', 'floor:id:' .. a[1], a[1], 'NX', 'PX', 60000) then return 0 end\n"
    "  redis.call('HINCRBY', 'floor:stats', 'enqueued', 1)\n"
    "  redis.call('RPUSH', k[1], a[1])\n"
    "  return 1\n"
    "end\n"
    "local function claim(k, a)\n"
    "  local now, bodies = redis.call('TIME'), redis.call('LRANGE', k[1], 0, 9)\n"
    "  if #bodies == 0 then return bodies end\n"
    "  redis.call('HGET', 'floor:limits', 't')\n"
    "  redis.call('LTRIM', k[1], #bodies, -1)\n"
    "  for i = 1, #bodies do redis.call('HSET', 'floor:active', 'token' .. i, bodies[i]) end\n"
    "  redis.call('HINCRBY', 'floor:stats', 'pulled', #bodies)\n"
    "  return bodies\n"
    "end\n"
    "local function settle(k, a)\n"
    "  redis.call('HDEL', 'floor:active', 'token1')\n"
    "  redis.call('HINCRBY', 'floor:stats', 'done', 1)\n"
    "  return 1\n"
    "end\n"
    "redis.register_function('floor_push', push)\n"
    "redis.register_function('floor_claim', claim)\n"
    "redis.register_function('floor_settle', settle)\n";

static void receive_floor(struct samples *samples)
{
    struct server calling = bench.server;
    struct redisReply *reply;

    for (calling.redis = server_connect(&bench.server);;) {
        server_ask(&bench.server, "BLMOVE", "floor:queue", "floor:queue", "LEFT", "LEFT", "5", NULL);
        reply = server_reply(&calling, "FCALL", "floor_claim", "1", "floor:queue", NULL);
        for (size_t i = 0; i < reply->elements; i++)
            beats_receive(samples, reply->element[i]->str);
        freeReplyObject(reply);
        server_ask(&calling, "FCALL", "floor_settle", "1", "floor:queue", NULL);
    }
}

static void send_floor(struct weir *w, const char *time)
{
    (void)w;
    server_ask(&bench.server, "FCALL", "floor_push", "1", "floor:queue", time, NULL);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare_doubles);
    return values[ROUNDS / 2];
}

enum way { BARE, FLOOR, WEIR, WAYS };

struct rounds { /* of one way */
    double redis_us[ROUNDS], p50[ROUNDS], p99[ROUNDS];
};

static void run_once(enum way way, int rate, struct rounds *rounds, int round)
{
    int count = rate < 400 ? 100 : rate / 4;
    struct beats beats = {.count = bench.quick ? count : 4 * count, .every_us = 1000000 / rate};

    if (way == BARE)
        beats_bare(&beats);
    else if (way == FLOOR)
        beats_between(&beats, send_floor, receive_floor);
    else
        beats_of_worker(&beats, EXECUTORS_MANY);
    rounds->redis_us[round] = beats.redis_us;
    rounds->p50[round] = beats.p50;
    rounds->p99[round] = beats.p99;
}

void bench_sparse(void)
{
    static const struct {
        int rate;
        enum figure floor, figure, p50, p99; /* figure: Redis CPU a job */
    } rows[] = {{50, SPARSE_FLOOR_50, SPARSE_CPU_50, SPARSE_P50_50, SPARSE_P99_50},
                {200, SPARSE_FLOOR_200, SPARSE_CPU_200, SPARSE_P50_200, SPARSE_P99_200},
                {1000, SPARSE_FLOOR_1000, SPARSE_CPU_1000, SPARSE_P50_1000, SPARSE_P99_1000}};

    empty();
    server_ask(&bench.server, "FUNCTION", "LOAD", "REPLACE", floor_library, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rounds rounds[WAYS];
        double floor_us;

        for (int n = 0; n < ROUNDS * WAYS; n++)
            run_once(n % WAYS, rows[i].rate, &rounds[n % WAYS], n / WAYS);
        floor_us = median(rounds[FLOOR].redis_us);
        report(rows[i].floor, floor_us, 0, "start p50 %.3f ms, p99 %.3f", median(rounds[FLOOR].p50),
               median(rounds[FLOOR].p99));
        report(rows[i].figure, median(rounds[WEIR].redis_us), floor_us, "1 worker, 100 executors");
        report(rows[i].p50, median(rounds[WEIR].p50), median(rounds[BARE].p50), "%s", "");
        report(rows[i].p99, median(rounds[WEIR].p99), median(rounds[BARE].p99), "%s", "");
    }
}
