/* Steering a large namespace (large.c): each command that changes something, where 1,000 groups of workers have the duty, a batch has all jobs,
 * and dead jobs, jobs for later, those set aside and schedules are very many. A row is the longest call of Redis of all its commands, and its
 * script. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "bench/bench.h"
#include "core/client/client.h"
#include "core/clock.h"
#include "queue/limits/known.h"
#include "queue/limits/rate.h"
#include "queue/turn/turn.h"

#define ROUNDS                                                                                               \
    3 /* the one whose longest call is the shortest counts, as the machine may be busy with something else */
#define BULK_JOBS 20000
#define KNOWN 1000 /* types of a worker */

/* ---- What is many, besides. Each script gets the time, and how many. */

#define SCRIPT                                                                                               \
    "local P, now, n, call = 'weir:{0}:', tonumber(ARGV[1]), tonumber(ARGV[2]), redis.call\n"                \
    "local function us(t) return string.format('%d', t) end\n"

static const char groups[] = SCRIPT
    "for i = 1, n / 100 do\n"
    "  local w, till = 'g' .. i, us(now + 600000000)\n"
    "  call('ZADD', P .. 'workers', till, w)\n"
    "  call('HSET', P .. 'active:' .. w, '@', '{\"instance\":\"j' .. i .. '\",\"host\":\"h\",\"pid\":' .. i "
    ".. '}',\n"
    "    '1.a/q1/t1/', '{}')\n"
    "  call('HSET', P .. 'duty', 'd' .. i, w .. ' ' .. till .. ' q' .. i)\n"
    "end\n"
    "call('HSET', P .. 'batch:all', 'total', us(10 * n), 'types', '* ' .. us(10 * n), 'created', us(now))\n"
    "call('ZADD', P .. 'batches', us(now), 'all')\n"
    "call('HSET', P .. 'limits', 'wide', 'gcra:1000/1000000/1000')\n"
    "for i = 1, n / 20, 2 do call('HSET', P .. 'types', 't' .. i, 'use=wide') end\n"
    "for i = 1, n / 10 do call('ZADD', P .. 'later', us(now + 8e9 + i), 's s' .. i .. '\\n') end\n"
    "for i = 1, n / 10 do call('HSET', P .. 'schedules', 's' .. i, '{}') end\n";

static const char dead[] =
    SCRIPT "for i = 1, n do\n"
           "  call('ZADD', P .. 'dead', us(now - i), 'w' .. i .. ' q' .. i % 1000 .. '/t' .. i % 10000 .. '/ "
           "exit 1\\n' ..\n"
           "    '@25,0,0;{\"id\":\"d' .. i .. '\",\"type\":\"t' .. i % 10000 .. '\"}')\n"
           "end\n";

static const char later[] = SCRIPT
    "for i = 1, n do\n"
    "  call('ZADD', P .. 'later', us(now + 3600000000 + i), 'q x' .. i .. ' q' .. i % 1000 .. ' t1\\n' ..\n"
    "    '{\"id\":\"l' .. i .. '\",\"type\":\"t1\"}')\n"
    "end\n";

static const char aside[] = SCRIPT "call('HDEL', P .. 'batch:all', 'cancel', 'sealed')\n"
                                   "call('HSET', P .. 'halted', 'b/all', 'paused ' .. us(now))\n"
                                   "for i = 1, n do\n"
                                   "  call('RPUSH', P .. 'aside:all', 'q' .. i % 1000 .. '/t' .. i % 10000 "
                                   ".. '/\\n@0,0,0,ball;{\"id\":\"a' .. i ..\n"
                                   "    '\",\"type\":\"t' .. i % 10000 .. '\"}')\n"
                                   "end\n";

static const char fresh_batch[] = SCRIPT "call('HDEL', P .. 'batch:all', 'cancel', 'sealed')\n"
                                         "call('HDEL', P .. 'halted', 'b/all')\n";

static const char long_queue[] =
    SCRIPT "for i = 1, n do\n"
           "  call('RPUSH', P .. 'queue:q7', '{\"id\":\"p' .. i .. '\",\"type\":\"t' .. i % 100 .. '\"}')\n"
           "end\n";

static const char leases[] =
    SCRIPT "call('ZADD', P .. 'workers', us(now + 600000000), 'gone')\n"
           "call('HSET', P .. 'active:gone', '@', '{\"instance\":\"gone\"}')\n"
           "for i = 1, n * 0.6 do\n"
           "  call('HSET', P .. 'active:gone', i .. '.a/q' .. i % 1000 .. '/t' .. i % 10000 .. '/',\n"
           "    '{\"id\":\"r' .. i .. '\",\"type\":\"t' .. i % 10000 .. '\"}')\n"
           "end\n";

static int run_script(struct bench *b, const char *script)
{
    char now[24], many[24];

    snprintf(now, sizeof now, "%lld", (long long)clock_wall_us());
    snprintf(many, sizeof many, "%zu", bench_size(b, 100000));
    return server_ask(&b->server, NULL, &b->error, "EVAL", script, "0", now, many, NULL);
}

/* ---- Steps that are no commands */

static int call(struct bench *b, struct args *a, struct redisReply **reply)
{
    int rc = redis_call(b->server.redis, a, reply, NULL, &b->error);

    args_free(a);
    return rc;
}

static int learn(struct bench *b, struct known_limits *known)
{
    static char names[KNOWN][8];
    static const char *types[KNOWN];
    int rc = 0;

    for (int i = 0; i < KNOWN; i++) {
        snprintf(names[i], sizeof names[i], "t%d", 5 * i);
        types[i] = names[i];
    }
    do {
        struct redisReply *reply = NULL;
        struct args a;

        args_init(&a);
        rate_known_request(&a, PREFIX, -1, known, "", (struct names){types, KNOWN});
        rc = call(b, &a, &reply);
        if (rc == 0)
            rc = rate_known_reply(reply, known, &b->error);
        freeReplyObject(reply);
    } while (rc == 0 && known_limits_asks_more(known));
    return rc;
}

/* The limits are lost, those of other workers for good. */
static int restore(struct bench *b)
{
    struct known_limits known = {0};
    char written[100];
    int rc = learn(b, &known);

    if (rc == 0)
        rc = server_ask(&b->server, NULL, &b->error, "COPY", PREFIX "limits", "limits", "REPLACE", NULL);
    if (rc == 0)
        rc = server_ask(&b->server, NULL, &b->error, "DEL", PREFIX "limits", PREFIX "revisions", NULL);
    known_limits_begin_again(&known);
    while (rc == 0 && known_limits_has_more(&known)) {
        struct redisReply *reply = NULL;
        struct args a;

        args_init(&a);
        rate_again_request(&a, PREFIX, -1, "bench", &known);
        rc = call(b, &a, &reply);
        if (rc == 0)
            rc = rate_again_reply(reply, &known, written, sizeof written, &b->error);
        freeReplyObject(reply);
    }
    known_limits_free(&known);
    if (rc == 0)
        rc = server_ask(&b->server, NULL, &b->error, "COPY", "limits", PREFIX "limits", "REPLACE", NULL);
    return rc;
}

static int leave(struct bench *b)
{
    static const char *const queues[] = {"q1"};
    static const struct adopt_call going = {
        .worker = "", .old_worker = "gone", .group = "d1", .info = "{}", .birth = "", .queues = {queues, 1}};
    struct adopt adopt = {.left = 1};
    int rc = 0;

    while (rc == 0 && adopt.left > 0) {
        struct redisReply *reply = NULL;
        struct args a;

        args_init(&a);
        adopt_request(&a, PREFIX, -1, &going);
        rc = call(b, &a, &reply);
        if (rc == 0)
            rc = adopt_reply(reply, 1, &adopt, &b->error);
        if (rc == 0)
            adopt_free(&adopt);
        freeReplyObject(reply);
    }
    return rc;
}

static int enqueue(struct bench *b)
{
    return fill(b, b->server.url, "t5", bench_size(b, BULK_JOBS), BODY_BYTES);
}

/* ---- The rows */

#define STEPS_MOST 6

struct step {
    const char *before; /* a script; NULL: none */
    const char *words[6];
    int (*act)(struct bench *b); /* instead of words */
};

static const struct row {
    enum figure figure;
    struct step steps[STEPS_MOST];
} rows[] = {
    {STEER_LIMIT,
     {{.words = {"rate", "set", "wide", "2000/s"}},
      {.words = {"rate", "set", "t5", "20/1h"}},
      {.words = {"rate", "set", "once", "20/1h,by=key"}},
      {.words = {"rate", "remove", "once", "--yes"}}}},
    {STEER_TYPE,
     {{.words = {"rate", "use", "t5", "shared", "--cost", "2"}},
      {.words = {"rate", "unuse", "t5", "shared", "--yes"}}}},
    {STEER_PAUSE, {{.words = {"rate", "pause", "wide", "10m"}}, {.words = {"rate", "resume", "wide"}}}},
    {STEER_KEY,
     {{.words = {"rate", "pause", "keyed/k"}},
      {.words = {"rate", "resume", "keyed/k"}},
      {.words = {"rate", "weight", "keyed", "k", "3"}}}},
    {STEER_BATCH,
     {{fresh_batch, .words = {"batch", "pause", "all"}},
      {aside, .words = {"batch", "resume", "all"}},
      {aside, .words = {"batch", "cancel", "all", "--yes"}}}},
    {STEER_QUEUE,
     {{.words = {"queue", "pause", "q7"}},
      {.words = {"queue", "resume", "q7"}},
      {long_queue, .words = {"queue", "purge", "q7", "--type", "t7", "--yes"}},
      {.words = {"queue", "purge", "q7", "--yes"}}}},
    {STEER_DEAD,
     {{dead, .words = {"dead", "remove", "--all", "--yes"}}, {dead, .words = {"dead", "retry", "--all"}}}},
    {STEER_JOB,
     {{later, .words = {"job", "run", "state:scheduled"}},
      {later, .words = {"job", "cancel", "state:scheduled", "--yes"}},
      {.words = {"job", "run", "type:t5 queue:q5"}},
      {.words = {"job", "cancel", "queue:q5 state:waiting", "--yes"}},
      {dead, .words = {"job", "retry", "type:t9"}},
      {.words = {"job", "remove", "state:dead", "--yes"}}}},
    {STEER_WORKER, {{.words = {"worker", "quiet", "all"}}, {.words = {"worker", "stop", "all"}}}},
    {STEER_SCHEDULE,
     {{.words = {"schedule", "add", "s1", "@daily", "t1"}},
      {.words = {"schedule", "remove", "s1", "--yes"}}}},
    {STEER_ADOPT, {{leases, .act = leave}}},
    {STEER_BULK, {{.act = enqueue}}},
    {STEER_AGAIN, {{.act = restore}}},
};

static int run_command(struct bench *b, const char *const *words)
{
    double cpu_us;
    pid_t pid;
    int rc = large_start(b, words, &pid), status = rc == 0 ? large_wait(pid, &cpu_us) : 0;

    if (rc == 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        return error_set(&b->error, WEIR_EINTERNAL, "weir %s %s failed (wait status %#x)", words[0], words[1],
                         status);
    return rc;
}

static int take_step(struct bench *b, const struct step *step)
{
    int rc = bench_check(b);

    if (rc == 0 && step->before)
        rc = run_script(b, step->before);
    if (rc == 0)
        rc = large_forget_calls(b);
    if (rc != 0)
        return rc;
    return step->act ? step->act(b) : run_command(b, step->words);
}

static int run_round(struct bench *b, const struct row *row, struct large_call *longest)
{
    int rc = 0;

    longest->ms = 0;
    for (const struct step *s = row->steps; rc == 0 && s < row->steps + STEPS_MOST && (s->act || s->words[0]);
         s++) {
        struct large_call one;

        rc = take_step(b, s);
        if (rc == 0)
            rc = large_longest(b, &one);
        if (rc == 0 && one.ms > longest->ms)
            *longest = one;
    }
    return rc;
}

static int measure(struct bench *b, const struct row *row)
{
    struct large_call least = {.ms = 1e9};
    int rc = 0;

    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        struct large_call longest;

        rc = run_round(b, row, &longest);
        if (rc == 0 && longest.ms < least.ms)
            least = longest;
    }
    if (rc == 0)
        report(b, row->figure, least.ms, 0, "%s", least.name);
    return rc;
}

int bench_steer(struct bench *b)
{
    int rc = large_build(b);

    if (rc == 0)
        rc = run_script(b, groups);
    if (rc == 0) /* the functions of Weir are loaded */
        rc = run_command(b, (const char *const[]){"rate", "list", NULL});
    for (size_t i = 0; rc == 0 && i < sizeof rows / sizeof *rows; i++)
        rc = measure(b, &rows[i]);
    return rc;
}
