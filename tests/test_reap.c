/* reap by itself, under virtual time: heartbeats, workers that are silent, clocks that are set back. */
#include "core/clock.h"
#include "tests/scene.h"

static int64_t tick(const char *worker)
{
    int64_t taken, workers;

    must(turns_reap(worker, &taken, &workers));
    return workers;
}

WORKER_TEST(test_the_silent_are_reaped_and_the_others_live)
{
    start("dead");
    enqueue("default", "t", "a b c d");
    assert_int_equal(claim("dead", 3, 0), 3);
    pass("w", LEASE_US - 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    assert_int_equal(pass("w", 1), 3);
    expect_text("w", "ZRANGE", PREFIX "workers", "0", "-1");
    expect_list(ALONE("t"), "a b c");
    expect_counters("t", "pulled 3, back 3");
    assert_int_equal(redis_number("HGET", PREFIX "stats:t", "reaped"), 3);
    assert_true(turns_reap("dead", &(int64_t){0}, &(int64_t){0}) != 0 && turn_is_unregistered(&turns.error));
    assert_int_equal(redis_number("EXISTS", ACTIVE "dead"), 0);
    turns_check();
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

/* Of claims those count that lease jobs or take the duty; a heartbeat is none. */
WORKER_TEST(test_the_last_claim_is_known)
{
    int64_t claimed_us;

    assert_int_equal(redis_number("HEXISTS", PREFIX "about", "claimed"), 0);
    enqueue("default", "t", "a");
    turns.now_us += SECOND_US;
    assert_int_equal(claim("w", 3, 0), 1);
    claimed_us = redis_number("HGET", PREFIX "about", "claimed");
    assert_int_equal(claimed_us, turns.now_us);
    pass("w", SECOND_US);
    assert_int_equal(redis_number("HGET", PREFIX "about", "claimed"), claimed_us);
    turns.now_us += SECOND_US;
    assert_int_equal(claim("w", 2, 0), 0);
    assert_int_equal(redis_number("HGET", PREFIX "about", "claimed"), turns.now_us);
}

static bool is_of_others(const char *worker)
{
    tick(worker);
    return turns.reply->element[11]->integer;
}

/* One has the duty, one is the second, and the others need not look; nor are they needed by another group. */
WORKER_TEST(test_who_is_not_needed_is_told_so)
{
    start("v");
    start("u");
    assert_false(is_of_others("u"));
    assert_int_equal(claim("w", 1, 0), 0);
    assert_false(is_of_others("u"));
    assert_int_equal(claim("v", 1, 0), 0);
    assert_true(is_of_others("u"));
    assert_false(is_of_others("w"));
    assert_false(is_of_others("v"));
    turns.now_us += SECOND_US;
    assert_false(is_of_others("u"));
    redis_number("DEL", PREFIX "duty");
    redis_number("SADD", PREFIX "duty", "of a wrong kind");
    assert_false(is_of_others("u"));
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

static const char *reap_fault(size_t i)
{
    const struct redisReply *faults = turns.reply->element[5];

    return i < faults->elements ? faults->element[i]->str : "";
}

/* One key of a wrong kind: a worker that lives goes on to live, and what does not need that key goes back. What
 * it keeps from its lane waits in `later`. */
SCENE_TEST(test_a_heartbeat_counts_whatever_keys_hold)
{
    static const struct {
        const char *key;
        int taken, later; /* of the two jobs: t and slow */
    } cases[] = {{"lane:default!/t/", 2, 1},
                 {"ring:default!/t", 2, 1},
                 {"wait:default!/-", 2, 2},
                 {"wake:default!", 2, 2},
                 {"sleep:default!", 2, 2},
                 {"held:default!", 2, 2},
                 {"alone", 2, 2},
                 {"limits", 0, 0},
                 {"types", 0, 0},
                 {"active:dead", 0, 0},
                 {"reap", 0, 0},
                 {"dead", 2, 0},
                 {"cancelled", 2, 0},
                 {"later", 2, 0},
                 {"duty", 2, 0},
                 {"queues", 2, 0},
                 {"bell:g", 2, 0},
                 {"stats:t", 2, 0}};
    int64_t taken, workers;

    for (size_t i = 0; i < COUNT(cases); i++) {
        char key[100];

        worker_begin(state);
        start("dead");
        enqueue("default", "t", "a");
        enqueue("default", "slow", "b");
        assert_int_equal(claim("dead", 2, 0), 2);
        pass("w", LEASE_US - 1);
        snprintf(key, sizeof key, PREFIX "%s", cases[i].key);
        redis_do("DEL", key);
        redis_do(strcmp(cases[i].key, "reap") == 0 ? "SADD" : "PFADD", key, "x");
        turns.now_us++;
        must(turns_reap("w", &taken, &workers));
        assert_int_equal(redis_number("ZSCORE", PREFIX "workers", "w"), turns.now_us + LEASE_US);
        if (taken != cases[i].taken || (cases[i].taken < 2 && !strstr(reap_fault(0), key)))
            fail_msg("%s: %d taken back; %s", key, (int)taken, reap_fault(0));
        if (taken == 2 && strcmp(cases[i].key, "later") != 0)
            assert_int_equal(redis_number("ZCARD", PREFIX "later"), cases[i].later);
        redis_do("DEL", key);
        must(turns_reap("w", &taken, &workers));
        turns.now_us += 11 * SECOND_US;
        promote(cases[i].later);
        if (cases[i].later)
            turns_check();
        if (strcmp(cases[i].key, "reap") != 0) /* that says when a worker was last heard of */
            assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    }
}

/* The jobs of a worker, of which one would be dead, stay where `dead` is somebody else's. */
SCENE_TEST(test_what_cannot_be_buried_stays)
{
    static const char *const buried[][2] = {{"9.--/default!/t/", "@0,2,0;{\"id\":\"a\",\"type\":\"t\"}"},
                                            {"what is this", "{}"}};

    for (size_t i = 0; i < COUNT(buried); i++) {
        int64_t taken, workers;

        worker_begin(state);
        start("dead");
        enqueue("default", "t", "b");
        assert_int_equal(claim("dead", 1, 0), 1);
        redis_do("HSET", ACTIVE "dead", buried[i][0], buried[i][1]);
        pass("w", LEASE_US - 1);
        redis_do("SET", PREFIX "dead", "foreign");
        turns.now_us++;
        must(turns_reap("w", &taken, &workers));
        assert_int_equal(taken, 0);
        assert_string_equal(reap_fault(0), PREFIX "dead is a string, not a zset");
        redis_do("DEL", PREFIX "dead");
        must(turns_reap("w", &taken, &workers));
        assert_int_equal(taken, 2);
        assert_int_equal(workers, 1);
        expect_list(ALONE("t"), "b");
        assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
    }
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

WORKER_TEST(test_a_job_that_kills_its_workers_is_dead)
{
    char *dead;

    enqueue("default", "t", "poison");
    for (int i = 0; i < 3; i++) {
        const char *name = textf("d%d", i);

        start(name);
        assert_int_equal(claim(name, 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].interrupted, i);
        pass("w", LEASE_US + SECOND_US);
        turns_check();
    }
    assert_int_equal(claim("w", 1, 0), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_string_equal(unstamped(dead), "d2:3.-- default/t/ its worker died 3 times\n"
                                         "@0,3,0;{\"id\":\"poison\",\"type\":\"t\",\"args\":{}}");
    free(dead);
    expect_counters("t", "dead 1, back 2");
}

WORKER_TEST(test_after_an_outage_nobody_is_reaped_for_a_lease)
{
    start("v");
    assert_int_equal(tick("w"), 0); /* the first one ever */
    turns.now_us += 3600 * SECOND_US;
    assert_int_equal(tick("w"), 0);
    pass("w", LEASE_US - 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    tick("v");
    pass("w", SECOND_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    pass("w", LEASE_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    /* A gap of a little more than half a lease is an outage too. */
    start("u");
    pass("w", LEASE_US - LEASE_US / 4);
    turns.now_us += LEASE_US / 2 + 1;
    assert_int_equal(tick("w"), 0);
    turns.now_us += LEASE_US / 2;
    assert_int_equal(tick("w"), 0);
    turns.now_us += LEASE_US / 2;
    assert_int_equal(tick("w"), 1);
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

WORKER_TEST(test_a_clock_that_was_set_back_strands_nothing)
{
    start("dead");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c");
    assert_int_equal(claim("dead", 3, 0), 2);
    tick("w");
    turns.now_us -= 3600 * SECOND_US;
    assert_int_equal(tick("w"), 0);
    turns_check(); /* no deadline is more than a lease away */
    assert_int_equal(claim("w", 3, 0), 0);
    assert_int_equal(turns.claim.next_us, turns.now_us + SECOND_US - LEAD_US); /* not an hour and a second */
    pass("w", LEASE_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    expect_list(ALONE("slow"), "a");
    expect_list(LANE("slow"), "b");
    expect_list(ALONE("t"), "c");
    redis_do("SET", PREFIX "reap", "what 1");
    start("v");
    pass("w", LEASE_US - 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    /* no amnesty is longer than a lease */
    redis_do("SET", PREFIX "reap", textf("%lld 9999999999999999", (long long)turns.now_us));
    pass("w", LEASE_US + SECOND_US);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
}

/* A job of a type with one start a second waits, the clock goes back: after a heartbeat it waits a second
 * again. */
static void expect_clock_is_followed(int64_t back_us)
{
    turns.now_us -= back_us;
    tick("w");
    turns_check();
    assert_int_equal(claim("w", 3, 0), 0);
    assert_int_equal(turns.claim.next_us, turns.now_us + SECOND_US - LEAD_US);
}

SCENE_TEST(test_a_clock_set_back_before_the_first_heartbeat_strands_nothing)
{
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    start("w");
    assert_int_equal(claim("w", 3, 0), 1);
    expect_clock_is_followed(60 * SECOND_US);
    must(turns_adopt("", "w", NULL, 0, default_queue, NULL));
    turns.now_us += 7200 * SECOND_US; /* no worker for longer than the clock goes back */
    start("w");
    assert_int_equal(claim("w", 3, 0), 1);
    expect_clock_is_followed(1800 * SECOND_US);
    must(turns_adopt("", "w", NULL, 0, default_queue, NULL));
    turns.now_us -= 600 * SECOND_US; /* nor while it was set back */
    start("w");
    assert_int_equal(claim("w", 3, 0), 0);
    assert_int_equal(turns.claim.next_us, turns.now_us + SECOND_US - LEAD_US);
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

TESTS(turns_start, turns_stop)
