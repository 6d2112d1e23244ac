/* claim and settle under limits by key. Under virtual time. */
#include "tests/play.h"
#include "tests/scene.h"

PLAY("claim_keys")

/* Lanes of 2,500 keys that sleep, two jobs in each. */
static void fill_crowd(void)
{
    redis_do("HSET", PREFIX "types", "slow", "lanes=key");
    redis_do("EVAL",
             "local P = ARGV[1]\n"
             "redis.call('SADD', P .. 'queues', 'default')\n"
             "redis.call('HSET', P .. 'stats:slow', 'enqueued', 5000, 'parked', 5000)\n"
             "for i = 1, 2500 do\n"
             "    for n = 1, 2 do\n"
             "        local args = ',\"args\":{\"b\":' .. i % 10 .. '}}'\n"
             "        local body = '{\"id\":\"' .. i .. '.' .. n .. "
             "'\",\"type\":\"slow\",\"key\":\"k' .. i .. '\"'\n"
             "        redis.call('RPUSH', P .. 'lane:default/slow/k' .. i, body .. args)\n"
             "    end\n"
             "    redis.call('ZADD', P .. 'wait:default/slow#0/k' .. i, ARGV[2], 'slow/k' .. i)\n"
             "    redis.call('ZADD', P .. 'sleep:default', ARGV[3], 'slow#0/k' .. i)\n"
             "end\n"
             "return redis.call('ZADD', P .. 'wake:default', ARGV[3], '*')",
             "0", PREFIX, "1795000000000000", "1795086400000000");
    turns_check();
}

/* A hundred times as many lanes as a claim may sort: those of the new keys start in the first claim, with
 * what comes then. */
WORKER_TEST(test_new_keys_do_not_wait_for_a_crowd_that_sleeps)
{
    must(turns_rate("slow", "1/86400000000/1,by=key"));
    fill_crowd();
    must(turns_rate("slow", "1/86400000000/1,by=args.b"));
    enqueue_with("slow", "new", "\"args\":{\"b\":11}");
    assert_int_equal(claim("w", 20, 0), 11);
    expect_text("lanes=*", "HGET", PREFIX "types", "slow");
    assert_int_equal(turns_check().parked, 4990);
}

/* The crowd is sorted a few at a time: between two of these calls a job of a new key starts, and with it those that are sorted. */
WORKER_TEST(test_new_keys_start_while_a_crowd_is_sorted)
{
    must(turns_rate("slow", "1/86400000000/1,by=key"));
    fill_crowd();
    redis_do("HSET", PREFIX "limits", "slow", "gcra:1/86400000000/1,by=args.b");
    for (int i = 0; i < 3; i++) {
        char id[16], args[40];
        int64_t asleep = redis_number("ZCARD", SLEEP);

        must(ask_line("rate_apply default 0 _ 0 slow"));
        assert_in_range(asleep - redis_number("ZCARD", SLEEP), 1, 60);
        snprintf(id, sizeof id, "new%d", i);
        snprintf(args, sizeof args, "\"args\":{\"b\":%d}", 100 + i);
        enqueue_with("slow", id, args);
        assert_in_range(claim("w", 20, 0), i == 0 ? 2 : 1, 11);
        assert_int_equal(redis_number("LLEN", QUEUE), 0);
        assert_int_equal(redis_number("EXISTS", LANE("slow") "100", LANE("slow") "101", LANE("slow") "102"),
                         0);
        turns_check();
    }
}

/* No more than one call may read: more calls go over such a page. */
SCENE_TEST(test_large_jobs_that_sleep_are_read_up_to_a_bound)
{
    size_t size = 1000000;
    char *body = malloc(size + 1);

    assert_non_null(body);
    start("w");
    must(turns_rate("slow", "1/86400000000/1,by=args.a"));
    for (int i = 0; i < 20; i++) {
        int len =
            snprintf(body, size, "{\"id\":\"%d\",\"type\":\"slow\",\"args\":{\"a\":%d,\"b\":%d,\"x\":\"", i,
                     i / 2, i / 2 + 100);

        memset(body + len, 'x', size - (size_t)len);
        strcpy(body + size - 3, "\"}}");
        push("default", body);
    }
    free(body);
    while (redis_number("EXISTS", QUEUE))
        claim("w", 20, 0);
    assert_int_equal(redis_number("ZCARD", SLEEP), 10);
    must(turns_rate("slow", "1/86400000000/1,by=args.b"));
    assert_int_equal(redis_number("EXISTS", SLEEP), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "ring:default/slow"), 10);
    turns_check();
}

TESTS(turns_start, turns_stop)
