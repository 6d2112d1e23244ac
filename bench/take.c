/* weir take on one connection: pipelined, many in one call, and denials that are remembered. The limit is kept for each of a thousand keys, as
 * it is for clients of an inbound API, but for the last row. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "core/client/client.h"
#include "throttle/take/take.h"

#define KEYS 1000
#define HALF 500           /* commands of a pipeline that are sent at once, while the half before is served */
#define MANY 1000          /* of one weir_take_many */
#define TAKES 500000       /* in a round */
#define DENIALS 20000000   /* in a round */
#define CHECK_EVERY 100000 /* looks whether the user has stopped us */

static char targets[KEYS][16];

static int begin(struct bench *b, const char *rule, struct weir **w, struct stopwatch *watch)
{
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    *w = weir_new(b->server.url, NULL);
    for (int i = 0; i < KEYS; i++)
        snprintf(targets[i], sizeof targets[i], "api/%d", i);
    if (rc == 0 && !*w)
        rc = error_set(&b->error, WEIR_EINTERNAL, "out of memory");
    if (rc == 0 && weir_rate_set(*w, "api", rule) < 0)
        rc = error_set(&b->error, WEIR_EINTERNAL, "%.400s", weir_message(*w));
    return rc == 0 ? stopwatch_start(b, &b->server, watch) : rc;
}

static int end(struct bench *b, int rc, struct weir *w, const struct stopwatch *watch, size_t n,
               struct speed *speed)
{
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, watch, n, speed);
    weir_free(w);
    return rc;
}

static int wrong_answer(struct bench *b)
{
    return error_set(&b->error, WEIR_EINTERNAL, "take: not what the limit says");
}

/* One take of which it is known how it ends. */
static int take_one(struct bench *b, struct weir *w, const char *target, bool allowed)
{
    struct weir_take take;
    int status = weir_take(w, target, NULL, 1, 0, &take);

    if (status < 0)
        return error_set(&b->error, status, "%.400s", weir_message(w));
    return take.allowed == allowed ? 0 : wrong_answer(b);
}

static int take_many(struct bench *b, struct weir *w, struct weir_take_item items[MANY])
{
    int status = weir_take_many(w, items, MANY, NULL, 0);

    if (status < 0)
        return error_set(&b->error, status, "%.400s", weir_message(w));
    for (size_t i = 0; i < MANY; i++)
        if (items[i].status < 0 || !items[i].take.allowed)
            return wrong_answer(b);
    return bench_check(b);
}

/* ---- What a take cannot do without: the clock, its limit's rules, and the state of a gate, read and written
 */

static const char minimal[] =
    "#!lua name=weir_bench\n"
    "redis.register_function('weir_bench_take', function(KEYS, ARGV)\n"
    "    local reply, n = {}, 0\n"
    "    redis.call('TIME')\n"
    "    redis.call('HGET', KEYS[1] .. 'limits', 'api')\n"
    "    for i = 1, #ARGV do\n"
    "        local key = KEYS[1] .. 'gate:' .. ARGV[i]\n"
    "        redis.call('GET', key)\n"
    "        redis.call('SET', key, '1795000000000000 0 - - gcra:1000000/1000000/1000000 1795000000000001 0',"
    " 'PX', '1001')\n"
    "        reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4], reply[n + 5] = 1, 1000000, 999999, -1, "
    "1\n"
    "        n = n + 5\n"
    "    end\n"
    "    return reply\n"
    "end)\n";

static void call_minimal(struct args *a, size_t first, size_t keys)
{
    args_clear(a);
    for (const char *const *word = (const char *const[]){"FCALL", "weir_bench_take", "1", PREFIX, NULL};
         *word; word++)
        args_add(a, *word);
    for (size_t i = 0; i < keys; i++)
        args_add(a, targets[(first + i) % KEYS]);
}

static int send_minimal(struct bench *b, size_t calls, size_t keys, struct args *a)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < calls; i++) {
        call_minimal(a, i, keys);
        rc = redis_append(b->server.redis, a, &b->error);
    }
    return rc == 0 ? redis_flush(b->server.redis, &b->error) : rc;
}

static int receive_minimal(struct bench *b, size_t calls)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < calls; i++) {
        struct redisReply *reply;

        rc = redis_result(b->server.redis, &reply, &b->error);
        if (rc == 0)
            freeReplyObject(reply);
    }
    return rc == 0 ? bench_check(b) : rc;
}

/* So many calls are sent at once, while those before are served. */
static int run_minimal(struct bench *b, size_t calls, size_t keys, size_t n, struct speed *speed)
{
    struct stopwatch watch;
    struct args a;
    int rc = server_ask(&b->server, NULL, &b->error, "FUNCTION", "LOAD", "REPLACE", minimal, NULL);

    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    args_init(&a);
    if (rc == 0)
        rc = send_minimal(b, calls, keys, &a);
    for (size_t sent = calls * keys; rc == 0 && sent < n; sent += calls * keys) {
        rc = send_minimal(b, calls, keys, &a);
        if (rc == 0)
            rc = receive_minimal(b, calls);
    }
    if (rc == 0)
        rc = receive_minimal(b, calls);
    args_free(&a);
    return rc == 0 ? stopwatch_stop(b, &b->server, &watch, n, speed) : rc;
}

static int run_minimal_one(struct bench *b, size_t n, struct speed *speed)
{
    return run_minimal(b, HALF, 1, n, speed);
}

static int run_minimal_many(struct bench *b, size_t n, struct speed *speed)
{
    return run_minimal(b, 1, MANY, n, speed);
}

/* ---- Pipelined */

static int send_half(struct bench *b, struct weir *w, size_t first, struct args *a)
{
    struct take_question q;
    const char *why;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < HALF; i++) {
        if (take_read(&q, targets[(first + i) % KEYS], 1, &why) < 0)
            return error_set(&b->error, WEIR_EINTERNAL, "take: %s", why);
        take_request(a, w->prefix, -1, "", false);
        take_add(a, &q);
        rc = redis_append(w->redis, a, &b->error);
    }
    return rc == 0 ? redis_flush(w->redis, &b->error) : rc;
}

static int receive_half(struct bench *b, struct weir *w)
{
    struct redisReply *reply;
    struct weir_take take;
    const char *why;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < HALF; i++) {
        rc = redis_result(w->redis, &reply, &b->error);
        if (rc != 0)
            return rc;
        rc = take_reply(reply, 1, &b->error);
        if (rc == 0 && (take_answer(reply, 0, &take, &why) < 0 || !take.allowed))
            rc = wrong_answer(b);
        freeReplyObject(reply);
    }
    return rc == 0 ? bench_check(b) : rc;
}

static int run_pipelined(struct bench *b, size_t n, struct speed *speed)
{
    struct stopwatch watch;
    struct weir *w;
    struct args a;
    int rc = begin(b, NEVER_REACHED ",by=key", &w, &watch);

    args_init(&a);
    if (rc == 0)
        rc = send_half(b, w, 0, &a);
    for (size_t sent = HALF; rc == 0 && sent < n; sent += HALF) {
        rc = send_half(b, w, sent, &a);
        if (rc == 0)
            rc = receive_half(b, w);
    }
    if (rc == 0)
        rc = receive_half(b, w);
    args_free(&a);
    return end(b, rc, w, &watch, n, speed);
}

/* ---- Many in one call */

static int run_many_of(struct bench *b, size_t keys, size_t n, struct speed *speed)
{
    static struct weir_take_item items[MANY];
    struct stopwatch watch;
    struct weir *w;
    int rc = begin(b, NEVER_REACHED ",by=key", &w, &watch);

    for (size_t i = 0; i < MANY; i++)
        items[i] = (struct weir_take_item){.target = targets[i % keys]};
    for (size_t done = 0; rc == 0 && done < n; done += MANY)
        rc = take_many(b, w, items);
    return end(b, rc, w, &watch, n, speed);
}

static int run_many(struct bench *b, size_t n, struct speed *speed)
{
    return run_many_of(b, KEYS, n, speed);
}

static int run_many_of_one(struct bench *b, size_t n, struct speed *speed)
{
    return run_many_of(b, 1, n, speed);
}

/* ---- Denied */

static int run_denied(struct bench *b, size_t n, struct speed *speed)
{
    struct stopwatch watch;
    struct weir *w;
    int rc = begin(b, "1/1d,by=key", &w, &watch);

    if (rc == 0)
        rc = take_one(b, w, targets[0], true);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = take_one(b, w, targets[0], false);
        if (rc == 0 && i % CHECK_EVERY == 0)
            rc = bench_check(b);
    }
    return end(b, rc, w, &watch, n, speed);
}

int bench_take(struct bench *b)
{
    static const struct trial takes[] = {{CEILING_ONE, FIGURES, run_minimal_one, ""},
                                         {TAKE_PIPELINED, CEILING_ONE, run_pipelined, ""},
                                         {CEILING_MANY, FIGURES, run_minimal_many, ""},
                                         {TAKE_MANY, CEILING_MANY, run_many, ""},
                                         {TAKE_MANY_OF_ONE, FIGURES, run_many_of_one, ""}};
    static const struct trial denied[] = {{TAKE_DENIED, FIGURES, run_denied, ""}};
    int rc = measure_trials(b, takes, 5, bench_size(b, TAKES));

    return rc == 0 ? measure_trials(b, denied, 1, bench_size(b, DENIALS)) : rc;
}
