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

static struct weir *begin(const char *rule, struct stopwatch *watch)
{
    struct weir *w = client_open(bench.server.url);

    empty();
    for (int i = 0; i < KEYS; i++)
        snprintf(targets[i], sizeof targets[i], "api/%d", i);
    client_must(w, weir_rate_set(w, "api", rule));
    *watch = stopwatch_start(&bench.server);
    return w;
}

static struct speed end(struct weir *w, const struct stopwatch *watch, size_t n)
{
    weir_free(w);
    return stopwatch_stop(&bench.server, watch, n);
}

static void must_be(bool right)
{
    if (!right)
        fail("take: not what the limit says");
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

static void send_minimal(size_t calls, size_t keys, struct args *a)
{
    for (size_t i = 0; i < calls; i++) {
        call_minimal(a, i, keys);
        must(redis_append(bench.server.redis, a, &failure));
    }
    must(redis_flush(bench.server.redis, &failure));
}

static void receive_minimal(size_t calls)
{
    for (size_t i = 0; i < calls; i++) {
        struct redisReply *reply;

        must(redis_result(bench.server.redis, &reply, &failure));
        freeReplyObject(reply);
    }
    bench_check();
}

/* So many calls are sent at once, while those before are served: of one key each, or one call of so many keys. */
static struct speed run_minimal(size_t n, int keys)
{
    size_t calls = keys == 1 ? HALF : 1, each = calls * (size_t)keys;
    struct stopwatch watch;
    struct args a = {0};

    server_ask(&bench.server, "FUNCTION", "LOAD", "REPLACE", minimal, NULL);
    watch = stopwatch_start(&bench.server);
    send_minimal(calls, (size_t)keys, &a);
    for (size_t sent = each; sent < n; sent += each) {
        send_minimal(calls, (size_t)keys, &a);
        receive_minimal(calls);
    }
    receive_minimal(calls);
    args_free(&a);
    return stopwatch_stop(&bench.server, &watch, n);
}

/* ---- Pipelined */

static void send_half(struct weir *w, size_t first, struct args *a)
{
    struct take_question q;
    const char *why;

    for (size_t i = 0; i < HALF; i++) {
        if (take_read(&q, targets[(first + i) % KEYS], 1, NULL, &why) < 0)
            fail("take: %s", why);
        take_request(a, w->prefix, -1, "", false);
        take_add(a, &q);
        must(redis_append(w->redis, a, &failure));
    }
    must(redis_flush(w->redis, &failure));
}

static void receive_half(struct weir *w)
{
    struct redisReply *reply;
    struct weir_take take;
    const char *why;

    for (size_t i = 0; i < HALF; i++) {
        must(redis_result(w->redis, &reply, &failure));
        must(take_reply(reply, 1, &failure));
        must_be(take_answer(reply, 0, &take, &why) == 0 && take.allowed);
        freeReplyObject(reply);
    }
    bench_check();
}

static struct speed run_pipelined(size_t n, int arg)
{
    struct stopwatch watch;
    struct weir *w = begin(NEVER_REACHED ",by=key", &watch);
    struct args a = {0};

    (void)arg;
    send_half(w, 0, &a);
    for (size_t sent = HALF; sent < n; sent += HALF) {
        send_half(w, sent, &a);
        receive_half(w);
    }
    receive_half(w);
    args_free(&a);
    return end(w, &watch, n);
}

/* ---- Many in one call */

static struct speed run_many(size_t n, int arg)
{
    static struct weir_take_item items[MANY];
    struct stopwatch watch;
    struct weir *w = begin(NEVER_REACHED ",by=key", &watch);

    (void)arg;
    for (int i = 0; i < MANY; i++)
        items[i] = (struct weir_take_item){.target = targets[i % KEYS]};
    for (size_t done = 0; done < n; done += MANY) {
        client_must(w, weir_take_many(w, items, MANY, NULL, 0));
        for (size_t i = 0; i < MANY; i++)
            must_be(items[i].status == 0 && items[i].take.allowed);
        bench_check();
    }
    return end(w, &watch, n);
}

/* ---- Denied */

static struct speed run_denied(size_t n, int arg)
{
    struct stopwatch watch;
    struct weir *w = begin("1/1d,by=key", &watch);
    struct weir_take take;

    (void)arg;
    client_must(w, weir_take(w, targets[0], NULL, 1, 0, &take));
    must_be(take.allowed);
    for (size_t i = 0; i < n; i++) {
        client_must(w, weir_take(w, targets[0], NULL, 1, 0, &take));
        must_be(!take.allowed);
        if (i % CHECK_EVERY == 0)
            bench_check();
    }
    return end(w, &watch, n);
}

void bench_take(void)
{
    static const struct trial takes[] = {{CEILING_ONE, FIGURES, run_minimal, 1, ""},
                                         {TAKE_PIPELINED, CEILING_ONE, run_pipelined, 0, ""},
                                         {CEILING_MANY, FIGURES, run_minimal, MANY, ""},
                                         {TAKE_MANY, CEILING_MANY, run_many, 0, ""}};
    static const struct trial denied[] = {{TAKE_DENIED, FIGURES, run_denied, 0, ""}};

    measure_trials(takes, 4, bench_size(TAKES));
    measure_trials(denied, 1, bench_size(DENIALS));
}
