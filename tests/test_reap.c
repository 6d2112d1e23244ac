/* reap by itself, under virtual time: heartbeats, workers that are silent, clocks that are set back. */
#include "core/clock.h"
#include "tests/play.h"
#include "tests/scene.h"

static int64_t tick(const char *worker)
{
    int64_t taken, workers;

    must(turns_reap(worker, &taken, &workers));
    return workers;
}

/* Heartbeats of a worker, until one of them has forgotten a queue that nobody needs. Returns when that one was sent at the earliest. */
static int64_t forget_by(const char *worker)
{
    int64_t end_us = clock_mono_us() + 60 * SECOND_US, sent_us = 0;

    while (redis_number("SISMEMBER", PREFIX "queues", "unneeded")) {
        sent_us = clock_mono_us();
        assert_true(sent_us < end_us);
        tick(worker);
    }
    return sent_us;
}

/* Many workers have a heartbeat each second: by Redis's clock one of them does what is to be done for all. */
SCENE_TEST(test_what_is_done_for_all_is_done_once_a_second)
{
    int64_t took_us = INT64_MAX, begin_us = 0;
    bool kept = false;

    turns.now_us = -1;
    start("w");
    start("v");
    for (int trial = 0; took_us > SECOND_US / 2 && trial < 8; trial++) {
        redis_number("SADD", PREFIX "queues", "unneeded");
        begin_us = forget_by("w");
        redis_number("SADD", PREFIX "queues", "unneeded");
        tick("v");
        kept = redis_number("SISMEMBER", PREFIX "queues", "unneeded");
        took_us = clock_mono_us() - begin_us;
    }
    assert_true(took_us <= SECOND_US / 2 && kept);
    forget_by("v");
    assert_true(clock_mono_us() - begin_us > SECOND_US / 2);
}

static const char *newest_revision(void)
{
    tick("w");
    return turns.reply->element[10]->str;
}

WORKER_TEST(test_a_heartbeat_says_when_limits_changed)
{
    char *changed;

    assert_string_equal(newest_revision(), "0");
    must(turns_rate("mail", "gcra:1/1000000/1"));
    changed = redis_text("HGET", PREFIX "revisions", "*");
    assert_string_equal(newest_revision(), changed);
    free(changed);
    redis_number("DEL", PREFIX "revisions");
    redis_number("SADD", PREFIX "revisions", "of a wrong kind");
    assert_string_equal(newest_revision(), "");
}

/* More workers than a heartbeat looks at cannot be reaped: one that can be is, two heartbeats later. */
WORKER_TEST(test_who_cannot_be_reaped_stands_behind_the_others)
{
    int64_t taken, workers, all = 0;

    for (int i = 0; i < 12; i++) {
        const char *name = textf("d%d", i);

        start(name);
        must(turns_enqueue("default", i < 11 ? "t" : "slow", name, -1));
        assert_int_equal(claim(name, 1, 0), 1);
        turns.now_us++;
    }
    pass("w", LEASE_US - 13);
    redis_do("MSET", ALONE("t"), "foreign", PREFIX "later", "foreign");
    turns.now_us += 13;
    for (int beats = 0; beats < 3; beats++, turns.now_us++) {
        must(turns_reap("w", &taken, &workers));
        all += workers;
        assert_int_equal(turns.reply->element[3]->type, REDIS_REPLY_INTEGER);
        assert_int_equal(turns.reply->element[3]->integer, 0); /* no hurry */
    }
    assert_int_equal(all, 1);
    expect_list(ALONE("slow"), "d11");
    redis_do("DEL", ALONE("t"), PREFIX "later");
    for (int beats = 0; beats < 2; beats++)
        must(turns_reap("w", &taken, &workers));
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    assert_int_equal(turns_check().parked, 12);
}

static int64_t seconds(int64_t s)
{
    return s * SECOND_US;
}

/* A worker with a lease of its own, as it begins, and its heartbeat; returns how many it reaped. */
static void start_with_lease(const char *worker, int lease_s)
{
    must(turns_script("adopt", WORDS(worker, "", "g", textf("%lld", (long long)seconds(lease_s)),
                                     textf("{\"pid\":1,\"lease\":%d.0}", lease_s), "", "0", "1", "default")));
}

static size_t beat(const char *worker, int lease_s)
{
    must(turns_script("reap",
                      WORDS(worker, textf("%lld", (long long)seconds(lease_s)), "3", "1000", "86400000000")));
    return turns.reply->element[4]->elements;
}

/* Leases differ: after an outage the longest counts of those that it can have ended. */
SCENE_TEST(test_after_an_outage_the_longest_lease_counts)
{
    static const struct {
        int64_t away_s;
        int amnesty_s;
    } cases[] = {{3600, 600}, {-3600, 600}, {301, 600}, {299, 10}, {6, 10}, {4, 0}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        int left_s = cases[i].amnesty_s;
        size_t reaped = 0;

        scene_begin(state);
        start_with_lease("short", 10);
        start_with_lease("long", 600);
        start_with_lease("dead", 10);
        beat("long", 600);
        beat("short", 10);
        turns.now_us += seconds(cases[i].away_s);
        assert_int_equal(beat("short", 10), 0);
        for (; left_s > 2; left_s -= 2) {
            turns.now_us += seconds(2);
            assert_int_equal(beat("short", 10), 0);
            assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 3);
        }
        if (cases[i].away_s != 299) /* within the lease of "long" it need not be heard of */
            beat("long", 600);
        for (int k = 0; k < 6; k++, turns.now_us += seconds(2))
            reaped += beat("short", 10);
        assert_int_equal(reaped, 1);
        assert_int_equal(redis_number("EXISTS", ACTIVE "long", ACTIVE "dead"), 1);
    }
}

/* Windows of an hour by the clock: one that goes back by less may open sooner than what it goes back by. */
SCENE_TEST(test_a_clock_that_was_set_back_opens_windows_in_time)
{
    static const char *const rules[] = {"fixed-window:1/3600000000/0,by=key",
                                        "sliding-window:1/3600000000,by=key"};
    static const int64_t waits_s[] = {300, 3900};
    int64_t back_us;

    for (size_t i = 0; i < COUNT(rules); i++) {
        scene_begin(NULL);
        turns.now_us += 3600 * SECOND_US - turns.now_us % (3600 * SECOND_US);
        start("w");
        must(turns_rate("slow", rules[i]));
        turns.now_us += 3000 * SECOND_US;
        enqueue_with("slow", "a b", "\"key\":\"k\"");
        assert_int_equal(claim("w", 2, 0), 1);
        tick("w");
        back_us = turns.now_us -= 3300 * SECOND_US;
        tick("w");
        turns_check();
        while (claim("w", 2, 0) == 0) {
            assert_in_range(turns.claim.next_us, turns.now_us, turns.now_us + 7200 * SECOND_US);
            turns.now_us = turns.claim.next_us + LEAD_US;
        }
        expect_leases("b");
        assert_in_range(turns.now_us, back_us, back_us + waits_s[i] * SECOND_US);
    }
}

/* Retries wait so long, scheduled jobs for a time of day. */
WORKER_TEST(test_a_clock_that_was_set_back_takes_retries_along)
{
    char *later;
    int ticks = 0;

    must(turns_enqueue("default", "t", "scheduled", 8 * SECOND_US));
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    settle("w", SETTLE_RETRY, tokens[0], 7 * SECOND_US, NULL);
    settle("w", SETTLE_THROTTLED, tokens[1], 3 * SECOND_US, NULL);
    redis_do("ZADD", PREFIX "later", "1795000005000000", "s nightly\n");
    turns.now_us -= 3600 * SECOND_US;
    tick("w");
    later = redis_text("ZRANGE", PREFIX "later", "0", "-1", "WITHSCORES");
    assert_non_null(strstr(later, "\"b\",\"type\":\"t\",\"args\":{}}\n1794996403000000\nl "));
    assert_non_null(strstr(later, "\"a\",\"type\":\"t\",\"args\":{}}\n1794996407000000\ns "));
    assert_non_null(strstr(later, "s nightly\n\n1795000005000000\nq "));
    assert_non_null(strstr(later, "\"scheduled\",\"type\":\"t\",\"args\":{}}\n1795000008000000"));
    free(later);
    claim("w", 0, 0);
    assert_int_equal(turns.claim.later_us, turns.now_us + 3 * SECOND_US);

    /* Very many, a page with each heartbeat, among scheduled jobs of the same times. */
    redis_do("DEL", PREFIX "later");
    redis_do("EVAL",
             "for i = 1, ARGV[1] do for _, kind in ipairs({'l', 'q'}) do\n"
             "  redis.call('ZADD', KEYS[1], string.format('%.0f', ARGV[2] + math.floor(i / 1000)), "
             "kind .. ' x:' .. i .. ' default/t/\\n{}')\n"
             "end end return 0",
             "1", PREFIX "later", "3000", "1795000000000000");
    turns.now_us -= 3600 * SECOND_US;
    do {
        tick("w");
        assert_in_range(++ticks, 1, 30);
    } while (turns.reply->element[3]->integer > 0);
    assert_true(ticks > 10);
    assert_int_equal(redis_number("ZCOUNT", PREFIX "later", "-inf",
                                  textf("%lld", (long long)(1795000000000000 - 3600 * SECOND_US + 3))),
                     3000);
    assert_int_equal(redis_number("ZCOUNT", PREFIX "later", "1795000000000000", "1795000000000003"), 3000);
    assert_int_equal(redis_number("EXISTS", PREFIX "clock"), 0);
}

WORKER_TEST(test_many_dead_workers_are_reaped_bit_by_bit)
{
    int64_t workers = 0;

    for (int i = 0; i < 20; i++) {
        const char *name = textf("d%d", i);

        start(name);
        must(turns_enqueue("default", "t", name, -1));
        claim(name, 1, 0);
    }
    pass("w", LEASE_US - 1);
    for (turns.now_us++; workers < 20;) {
        int64_t some = tick("w");

        assert_in_range(some, 1, 8);
        workers += some;
    }
    assert_int_equal(turns_check().parked, 20);
}

/* A call takes back about 100 leases: however many a worker had, Redis is not kept from the others. */
WORKER_TEST(test_a_worker_with_many_leases_is_reaped_bit_by_bit)
{
    int64_t taken = 0, workers = 0, all = 0;
    int calls = 0;

    start_big();
    pass("w", LEASE_US - 1);
    for (turns.now_us++; workers == 0 && calls < 2 * BIG_LEASES / 100; calls++) {
        must(turns_reap("w", &taken, &workers));
        assert_in_range(taken, 1, 120);
        all += taken;
        assert_int_equal(redis_number("EXISTS", ACTIVE "big"), workers == 0);
        if (calls % 80 == 0)
            turns_check();
    }
    assert_in_range(calls, BIG_LEASES / 100, BIG_LEASES / 100 + 2);
    assert_int_equal(all, BIG_LEASES);
    assert_int_equal(turns_check().parked, BIG_LEASES);
    expect_counters("t", "back 12000");
}

/* The same however many workers had them. */
WORKER_TEST(test_many_leases_of_some_workers_are_reaped_bit_by_bit)
{
    int64_t taken = 0, workers = 0, all = 0, gone = 0;

    start("d0");
    start("d1");
    enqueue_many("t", 1290);
    for (int i = 0; i < 3; i++)
        assert_int_equal(claim(i < 2 ? "d0" : "d1", 0, 430), 430);
    pass("w", LEASE_US - 1);
    turns.now_us++;
    for (int calls = 0; all < 1290 && calls < 20; calls++) {
        must(turns_reap("w", &taken, &workers));
        assert_in_range(taken, 1, 100);
        all += taken;
        gone += workers;
    }
    assert_int_equal(all, 1290);
    assert_int_equal(gone, 2);
    assert_int_equal(turns_check().parked, 1290);
}

PLAY("reap")

TESTS(turns_start, turns_stop)
