/* Limits are changed and a batch is halted where something waits in very many queues: each call is short, what the first one writes holds from then on,
 * and heartbeats finish what nobody else does. Judged by what Redis counts, not by time. */
#include <fnmatch.h>
#include <inttypes.h>

#include "tests/scene.h"

/* Runs a script's text over the keys of this namespace: what would take many calls to build. */
#define build(text) redis_do("EVAL", "local P = ARGV[1]\n" text "return 0", "0", PREFIX)
#define STR_(x) #x
#define STR(x) STR_(x)

#define WAITS 1000
#define IN_PAGES 5 /* calls, at least */

/* Each queue is served by a group of workers of its own, of which the one on duty runs a job. */
static void serve_many_queues(void)
{
    build("for i = 1, " STR(
        WAITS) " do\n"
               "  redis.call('HSET', P .. 'duty', 'g' .. i, 'w' .. i .. ' 8000000000000000 q' .. i)\n"
               "  redis.call('HSET', P .. 'active:w' .. i, '@', '{}', '1.a/q' .. i .. '/t/', '{}')\n"
               "end\n");
}

/* Workers that were told to give back what they were granted far ahead. */
static int64_t count_told(void)
{
    return redis_number("EVAL", "return #redis.call('KEYS', ARGV[1] .. 'told:*')", "0", PREFIX);
}

/* How often Redis has gone through all groups to ring their bells: a thousand groups take a millisecond. */
static int64_t count_rings(void)
{
    static const char name[] = "cmdstat_hgetall:calls=";
    char *info = redis_text("INFO", "commandstats"), *at = strstr(info, name);
    int64_t count = at ? strtoll(at + strlen(name), NULL, 10) : 0;

    free(info);
    return count;
}

/* In each queue t waits at a gate of the limit shared and u at its own, and a lane sleeps. */
static void wait_in_many_queues(void)
{
    build("redis.call('HSET', P .. 'limits', 'shared', 'gcra:5/1000000/5', 'u', 'gcra:5/1000000/5')\n"
          "redis.call('HSET', P .. 'types', 't', 'use=shared', 'u', '')\n"
          "redis.call('HSET', P .. 'batch:b', 'total', '3', 'types', '* 3')\n"
          "for i = 1, " STR(WAITS) " do\n"
                                   "  local q = 'q' .. i\n"
                                   "  redis.call('SADD', P .. 'queues', q)\n"
                                   "  redis.call('ZADD', P .. 'ring:' .. q .. '/t', 1, '')\n"
                                   "  redis.call('ZADD', P .. 'wait:' .. q .. '/shared#0', 1, 't')\n"
                                   "  redis.call('ZADD', P .. 'wake:' .. q, 9e15, 'shared#0', 9e15, 'u#0')\n"
                                   "  redis.call('ZADD', P .. 'sleep:' .. q, 9e15, 'x#0/k')\n"
                                   "end\n");
}

/* Queues in which that gate is due. */
static int64_t count_due_at(const char *gate)
{
    return redis_number(
        "EVAL",
        "local n = 0\n"
        "for i = 1, " STR(WAITS) " do\n"
                                 "  local at = redis.call('ZSCORE', ARGV[1] .. 'wake:q' .. i, ARGV[2])\n"
                                 "  if at and tonumber(at) < 8e15 then n = n + 1 end\n"
                                 "end\n"
                                 "return n",
        "0", PREFIX, gate);
}

static const struct order {
    const char *call, *key, *field, *holds; /* what the first call has written */
    const char *gate;                       /* that becomes due in all queues */
    int64_t others;                         /* queues in which the gate of another limit does */
    int64_t told;                           /* workers that are told to give back what they were granted */
} orders[] = {
    {"rate_pause shared 60000000 _ pause me", "limits", "shared", "* pause:*", "shared#0", 0, WAITS},
    {"rate_set shared gcra:7/1000000/7 0 set me", "limits", "shared", "gcra:7/*", "shared#0", 0, 0},
    {"rate_set shared gcra:7/1000000/7,by=key 0 set me", "limits", "shared", "gcra:7/*", "shared#0", 0,
     WAITS},
    {"rate_set shared concurrency:3 0 set me", "limits", "shared", "concurrency:3", "shared#0", 0, WAITS},
    {"rate_use t unuse _ unuse me shared", "types", "t", "", "-", 0, WAITS},
    {"batch_pause b _ _ 1 pause me", "halted", "b/b", "paused *", "shared#0", WAITS, WAITS},
};

/* The first call: what it writes holds from then on. */
static void order_first(const struct order *o)
{
    char *holds;

    must(ask_line(o->call));
    holds = redis_text("HGET", textf(PREFIX "%s", o->key), o->field);
    fail_if(fnmatch(o->holds, holds, 0) != 0, "%s: %s %s is %s", o->call, o->key, o->field, holds);
    free(holds);
}

/* Queues are woken, types leave gates, lanes that sleep are named, and workers told, some a call. */
SCENE_TEST(test_a_change_is_made_in_short_calls)
{
    for (const struct order *o = orders; o < orders + COUNT(orders); o++) {
        int64_t before, now, most = 0, asleep = 0;
        int calls = 0, rc = 0;

        scene_begin(state);
        wait_in_many_queues();
        serve_many_queues();
        before = count_commands();
        order_first(o);
        do {
            asleep += (int64_t)json_array_size(json_object_get(turns.answer, "asleep"));
            now = count_commands();
            most = now - before > most ? now - before : most;
            before = now;
            calls++;
        } while (calls < 100 && turns_ask_rest(&rc) && rc == 0);
        must(rc);
        print_message("%s: %d calls, %" PRId64 " commands\n", o->call, calls, most);
        assert_in_range(calls, IN_PAGES, 20);
        assert_in_range(most, 1, 2500);
        assert_in_range(asleep, WAITS, WAITS + WAITS / 2);
        assert_int_equal(count_due_at(o->gate), WAITS);
        assert_int_equal(count_due_at("u#0"), o->others);
        assert_int_equal(count_told(), o->told);
        assert_int_equal(redis_number("EXISTS", PREFIX "opened", PREFIX "at:shared#*", PREFIX "at:*"), 0);
    }
}

/* Who made the change died after its first call: heartbeats wake the other queues. */
SCENE_TEST(test_heartbeats_finish_a_change)
{
    for (const struct order *o = orders; o < orders + COUNT(orders); o++) {
        worker_begin(state);
        wait_in_many_queues();
        serve_many_queues();
        order_first(o);
        assert_int_equal(redis_number("EXISTS", PREFIX "opened"), 1);
        for (int i = 0; i < 20 && redis_number("EXISTS", PREFIX "opened"); i++)
            heartbeat("w");
        assert_int_equal(redis_number("EXISTS", PREFIX "opened", PREFIX "at:shared#*", PREFIX "at:*"), 0);
        if (strcmp(o->gate, "-") != 0)
            assert_int_equal(count_due_at(o->gate), WAITS);
        else /* where t waits behind others, its turn comes with them */
            assert_int_equal(count_due_at("shared#0") + count_due_at("-"), WAITS);
    }
}

SCENE_TEST(test_a_pause_of_a_queue_tells_workers_bit_by_bit)
{
    int64_t before;
    int rc = 0;

    serve_many_queues();
    build("redis.call('HSET', P .. 'duty', 'idle', 'wi 8000000000000000 q1')\n"
          "redis.call('HSET', P .. 'active:wi', '@', '{}')\n");
    before = count_commands();
    must(ask_line("queue_pause q1 _ _ 1 pause tests"));
    assert_in_range(count_commands() - before, 1, 1500);
    assert_in_range(count_told(), 100, WAITS / 2);
    while (turns_ask_rest(&rc) && rc == 0)
        ;
    must(rc);
    assert_int_equal(count_told(), WAITS); /* but not the one that runs nothing */
}

#define SPREAD 300 /* queues and types */

/* Jobs that were set aside come from very many queues and types: few a call, and each call rings once. */
SCENE_TEST(test_a_batch_of_very_many_queues_resumes_bit_by_bit)
{
    int64_t before, rings, after;
    int calls = 0;

    serve_many_queues();
    build("redis.call('HSET', P .. 'batch:b', 'total', '600', 'types', '* 600')\n"
          "redis.call('HSET', P .. 'halted', 'b/b', 'paused 1')\n"
          "for i = 0, 599 do\n"
          "  local at = i % " STR(SPREAD) "\n"
                                          "  redis.call('RPUSH', P .. 'aside:b', 'q' .. at .. '/t' .. at .. "
                                          "'/\\n@0,0,0,bb;{\"id\":\"j' .. i .. "
                                          "'\",\"type\":\"t' .. at .. '\"}')\n"
                                          "end\n");
    do {
        before = count_commands();
        rings = count_rings();
        must(ask_line("batch_resume b 500 seed"));
        after = count_commands();
        assert_in_range(count_rings() - rings, 0, 1);
        assert_in_range(after - before, 1, 1500);
        assert_in_range(answer_int(turns.answer, "returned"), 1, 100);
    } while (answer_int(turns.answer, "aside") > 0 && ++calls < 100);
    assert_int_equal(redis_number("EXISTS", PREFIX "aside:b"), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "queue:q7"), 2);
}

/* Jobs of very many lanes are put first, and retried jobs come back into as many: each call rings once. */
SCENE_TEST(test_very_many_lanes_ring_once)
{
    int64_t rings, moved;

    serve_many_queues();
    build("for i = 1, 50 do\n"
          "  local name = 'q' .. i .. '/t/'\n"
          "  redis.call('SADD', P .. 'queues', 'q' .. i)\n"
          "  redis.call('HSET', P .. 'types', 't', '')\n"
          "  for j = 1, 2 do redis.call('RPUSH', P .. 'lane:' .. name, '{\"id\":\"' .. i .. '-' .. j .. "
          "'\",\"type\":\"t\"}') end\n"
          "  redis.call('ZADD', P .. 'ring:q' .. i .. '/t', 1, '')\n"
          "  redis.call('ZADD', P .. 'wait:q' .. i .. '/-', 1, 't')\n"
          "  redis.call('ZADD', P .. 'wake:q' .. i, 1, '-')\n"
          "  redis.call('ZADD', P .. 'later', 1, 'l ' .. i .. ' ' .. name .. '\\n{\"id\":\"r' .. i .. "
          "'\",\"type\":\"t\"}')\n"
          "end\n");
    rings = count_rings();
    must(ask_line("job_act run 500 500 seed 1 state parked"));
    assert_int_equal(count_rings() - rings, 1);
    rings = count_rings();
    must(turns_promote(100, &moved));
    assert_int_equal(moved, 50);
    assert_int_equal(count_rings() - rings, 1);
}

/* What is counted is not described. */
SCENE_TEST(test_very_many_jobs_are_counted)
{
    int64_t before;

    build(
        "for i = 1, 1000 do\n"
        "  redis.call('ZADD', P .. 'later', 8000000000000000 + i, 'q ' .. i .. ' q t\\n{\"id\":\"j' .. i .. "
        "'\",\"type\":\"t\"}')\n"
        "end\n");
    before = count_commands();
    must(ask_line("job_list count 500 1 1 state scheduled"));
    assert_in_range(count_commands() - before, 1, 150);
    assert_in_range(answer_int(turns.answer, "matched"), 490, 500);
}

/* Jobs that a purge removes end together, of however many types they are. */
SCENE_TEST(test_a_queue_of_very_many_types_is_purged)
{
    int64_t before;

    build(
        "redis.call('SADD', P .. 'queues', 'q')\n"
        "for i = 1, 400 do\n"
        "  redis.call('RPUSH', P .. 'queue:q', '{\"id\":\"j' .. i .. '\",\"type\":\"t' .. i % 100 .. '\"}')\n"
        "end\n");
    before = count_commands();
    must(ask_line("queue_purge q remove _ 400"));
    before = count_commands() - before;
    print_message("queue_purge: %" PRId64 " commands\n", before);
    assert_in_range(before, 1, 300);
    assert_int_equal(answer_int(turns.answer, "waiting"), 400);
    assert_int_equal(redis_number("HGET", PREFIX "stats:t7", "cancelled"), 4);
}

/* From Redis 7.2 on time stands still within a script. */
static bool does_time_pass(void)
{
    return redis_number("EVAL",
                        "local from = redis.call('TIME')\n"
                        "for i = 1, 10000 do redis.call('PING') end\n"
                        "local till = redis.call('TIME')\n"
                        "return (till[1] == from[1] and till[2] == from[2]) and 0 or 1",
                        "0") == 1;
}

/* A page that takes long ends before so many jobs have ended as it may take; the next one goes on behind it. The type of these jobs is found by
 * decoding them, which takes longer than a call may on any machine. */
SCENE_TEST(test_the_clock_ends_a_call)
{
    static const char *const words[] = {"q", "remove", "", "1000"};
    int rc;

    if (!does_time_pass())
        skip();
    build("redis.call('SADD', P .. 'queues', 'q')\n"
          "for i = 1, 1000 do\n"
          "  redis.call('RPUSH', P .. 'queue:q', '{\"args\":[' .. ('1,'):rep(80) .. '1],\"id\":\"j' .. i .. "
          "'\",\"type\":\"t\"}')\n"
          "end\n");
    turns.now_us = -1;
    must(turns_ask("queue_purge", words, COUNT(words)));
    assert_in_range(answer_int(turns.answer, "waiting"), 50, 999);
    while (turns_ask_more("queue_purge", words, COUNT(words), &rc))
        must(rc);
    assert_int_equal(redis_number("EXISTS", PREFIX "queue:q"), 0);
    assert_int_equal(redis_number("HGET", PREFIX "stats:t", "cancelled"), 1000);
}

TESTS(turns_start, turns_stop)
