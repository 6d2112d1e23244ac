/* settle, promote, adopt, reap, drained and status by themselves, under virtual time; wrong arguments of all
 * scripts of a turn, which change nothing; and answers of another shape. */
#include "core/script/script.h"
#include "tests/scene.h"

/* ---- Settle */

static void test_settle_ends_jobs_by_their_verbs(void **state)
{
    int64_t stale;

    (void)state;
    start("w");
    enqueue("default", "t", "a b c d e f");
    assert_int_equal(claim("w", 5, 0), 5);
    keep_tokens();
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    assert_int_equal(stale, 0);
    settle("w", SETTLE_RETRY, tokens[1], 7000000, NULL);
    settle("w", SETTLE_THROTTLED, tokens[2], 3000000, NULL);
    settle("w", SETTLE_BACK, tokens[3], 0, NULL);
    settle("w", SETTLE_DEAD, tokens[4], 0, "bad\nweather \x01");
    expect_counters("t", "enqueued 6, pulled 5, done 1, retried 1, back 2, dead 1, scheduled 2");
    expect_text("l w:1.-1 default/t/\n@0,0,1;{\"id\":\"c\",\"type\":\"t\",\"args\":{}}\n1795000003000000\n"
                "l w:1.-0 default/t/\n@1,0,0;{\"id\":\"b\",\"type\":\"t\",\"args\":{}}\n1795000007000000",
                "ZRANGE", PREFIX "later", "0", "-1", "WITHSCORES");
    expect_text(
        "w:1.-3 default/t/ bad weather  \n@1,0,0;{\"id\":\"e\",\"type\":\"t\",\"args\":{}}\n1795000000000000",
        "ZRANGE", PREFIX "dead", "0", "-1", "WITHSCORES");
    expect_list(LANE("t"), "d");
    expect_list(QUEUE, "f");
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1);
    turns_check();
}

/* Handlers die under the same job: the third death is one too many. */
static void test_settle_counts_interruptions(void **state)
{
    char *dead;

    (void)state;
    start("w");
    enqueue("default", "t", "poison next");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(claim("w", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].interrupted, i);
        assert_int_equal(turns.claim.leases[0].attempts, 0);
        keep_tokens();
        settle("w", SETTLE_INTERRUPTED, tokens[0], 3, i == 1 ? NULL : "exit 1: a, b");
        turns_check();
    }
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_string_equal(unstamped(dead), "w:3.-- default/t/ its handler died 3 times: exit 1: a, b\n"
                                         "@0,3,0,e1795000000000000:exit 1: a%2C b;"
                                         "{\"id\":\"poison\",\"type\":\"t\",\"args\":{}}");
    free(dead);
    expect_counters("t", "dead 1, back 2");
    expect_stale("w", SETTLE_INTERRUPTED, tokens[0]);
}

static void test_a_lease_is_settled_once_and_by_its_worker(void **state)
{
    struct span strange = {"1.xx/default/t/", 15}, done;
    int64_t stale;
    struct args a;

    (void)state;
    start("w");
    start("other");
    enqueue("default", "t", "a b c");
    claim("w", 3, 0);
    keep_tokens();
    expect_stale("other", SETTLE_DEAD, tokens[0]);
    expect_stale("nobody", SETTLE_RETRY, tokens[0]);
    expect_stale("w", SETTLE_BACK, strange);
    settle("w", SETTLE_RETRY, tokens[0], 5, NULL);
    for (int verb = SETTLE_RETRY; verb <= SETTLE_DEAD; verb++)
        expect_stale("w", (enum settle_verb)verb, tokens[0]);
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    assert_int_equal(stale, 1);
    /* Three times in one call: the first of those that are no "done" counts. */
    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    done = tokens[1];
    settle_done(&a, "t", (struct span){"", 0}, 2);
    settle_token(&a, done);
    settle_token(&a, tokens[2]);
    settle_end(&a, SETTLE_DEAD, done, 0, "x");
    settle_end(&a, SETTLE_BACK, done, 0, "x");
    must(turns_send(&a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    assert_int_equal(stale, 2);
    expect_counters("t", "done 1, dead 1, retried 1, scheduled 1");
    assert_int_equal(redis_number("HGET", PREFIX "stats:t", "stale"), 7 + SETTLE_DEAD - SETTLE_RETRY);
    assert_int_equal(turns_check().leased, 0);
}

static void test_a_lease_is_lost_with_its_worker(void **state)
{
    (void)state;
    start("w");
    start("dead");
    enqueue("default", "t", "a b");
    claim("dead", 1, 0);
    keep_tokens();
    pass("w", LEASE_US + SECOND_US);
    assert_int_equal(redis_number("EXISTS", ACTIVE "dead"), 0);
    expect_stale("dead", SETTLE_DEAD, tokens[0]);
    ask.alone = true;
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("a");
    expect_stale("dead", SETTLE_DEAD, turns.claim.leases[0].token);
    turns_check();
}

static void test_many_are_handed_back_in_order(void **state)
{
    char expected[1000] = "";
    static char many[150][200];
    struct args a;

    (void)state;
    start("w");
    enqueue_many("t", 150);
    ask.turn = 8; /* from turn 9 to turn 10 */
    for (int at = 0; at < 150; at += 75) {
        assert_int_equal(claim("w", 75, 0), 75);
        for (int i = 0; i < 75; i++)
            snprintf(many[at + i], sizeof many[0], "%.*s", (int)turns.claim.leases[i].token.len,
                     turns.claim.leases[i].token.at);
    }
    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    for (int i = 0; i < 150; i++) { /* in any order */
        const char *token = many[(i * 77 + 5) % 150];

        settle_end(&a, SETTLE_BACK, span_str(token), 0, NULL);
    }
    must(turns_send(&a));
    for (int i = 0; i < 150; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%st%d", i ? " " : "", i);
    expect_list(LANE("t"), expected);
    turns_check();
}

/* ---- Promote */

static void test_a_retry_comes_before_what_was_parked(void **state)
{
    (void)state;
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    assert_int_equal(claim("w", 3, 0), 1);
    expect_leases("a");
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[0], 2000000, NULL);
    expect_list(LANE("slow"), "b c");
    turns.now_us += 1000000;
    promote(0);
    assert_int_equal(claim("w", 3, 0), 1);
    expect_leases("b");
    assert_int_equal(turns.claim.later_us, BEGIN_US + 2000000);
    turns.now_us += 1000000;
    promote(1);
    expect_list(LANE("slow"), "a c");
    expect_counters("slow", "scheduled 0, retried 1");
    assert_int_equal(claim("w", 3, 0), 1);
    expect_leases("a");
    assert_int_equal(turns.claim.leases[0].attempts, 1);
    assert_int_equal(turns.claim.later_us, -1);
    turns_check();
}

static void test_promote_keeps_the_order_of_due_times(void **state)
{
    int64_t moved;

    (void)state;
    start("w");
    must(turns_enqueue("default", "t", "late", 3000000));
    must(turns_enqueue("default", "t", "early", 1000000));
    must(turns_enqueue("default", "t", "never", 9000000));
    enqueue("default", "t", "a b c d");
    assert_int_equal(claim("w", 3, 0), 3);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[2], 1000000, NULL);
    settle("w", SETTLE_RETRY, tokens[0], 2000000, NULL);
    settle("w", SETTLE_THROTTLED, tokens[1], 3000000, NULL);
    expect_counters("t", "enqueued 4, scheduled 6");
    turns.now_us += 3000000;
    must(turns_promote(2, &moved));
    assert_int_equal(moved, 2);
    expect_list(LANE("t"), "c");
    expect_list(QUEUE, "d early");
    promote(3);
    expect_list(LANE("t"), "a b c"); /* in the order of one call; a later call goes before it */
    expect_list(QUEUE, "d early late");
    expect_counters("t", "enqueued 6, scheduled 1");
    turns_check();
}

static void test_promote_buries_what_it_cannot_read(void **state)
{
    static const char *const records[] = {
        "",
        "x",
        "q a default t",
        "q a default\n{}",
        "q a default t more\n{}",
        "q a def*ault t\n{}",
        "l a default/t\n{}",
        "l a default/t/k/k\n{}",
        "l a de fault/t/\n{}",
        "z a default/t/\n{}",
    };
    char *dead;

    (void)state;
    start("w");
    for (size_t i = 0; i < COUNT(records); i++)
        free(redis_text("ZADD", PREFIX "later", "1", records[i]));
    must(turns_enqueue("default", "t", "good", 1000));
    turns.now_us += 1000;
    promote(COUNT(records) + 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), COUNT(records));
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    for (size_t i = 0; i < COUNT(records); i++)
        assert_non_null(strstr(dead, records[i]));
    assert_non_null(strstr(dead, " // promote: this record of `later` cannot be read\nl a de fault/t/\n{}"));
    free(dead);
    expect_list(QUEUE, "good");
}

/* ---- Adopt */

#define MANY 12000

/* A worker with that many leases, as it may have them on a loop; turns.claim has the last of them. */
static void start_big(void)
{
    static int jobs;

    start("big");
    for (int i = 0; i < MANY; i++) {
        char id[16];

        snprintf(id, sizeof id, "j%d", jobs++);
        must(turns_enqueue("default", "t", id, -1));
    }
    while (redis_number("LLEN", PREFIX "queue:default") > 0)
        claim("big", 0, 500);
}

/* Adopt as often as it is needed, first with that many tokens; returns how many calls that took. */
static int adopt_all(const char *new, const char *old, size_t running)
{
    char active[64];
    int calls = 0;

    snprintf(active, sizeof active, "%s%s", ACTIVE, old);
    do {
        int64_t before = redis_number("HLEN", active);
        size_t lost;

        must(turns_adopt(new, old, tokens, calls ? 0 : running, default_queue, &lost));
        assert_int_equal(lost, 0);
        assert_in_range(before - redis_number("HLEN", active), 1, 120);
        assert_int_equal(redis_number("EXISTS", active), turns.left > 0);
        if (calls++ % 80 == 0)
            turns_check();
    } while (turns.left > 0 && calls < 2 * MANY / 40 + 2);
    return calls;
}

/* A call gives back about 40 jobs: however many a worker had, Redis is not kept from the others. */
static void test_a_worker_with_many_leases_comes_and_leaves_bit_by_bit(void **state)
{
    int calls;

    (void)state;
    start_big();
    keep_tokens();
    calls = adopt_all("new", "big", 2);
    assert_in_range(calls, MANY / 40, MANY / 40 + 2);
    assert_int_equal(redis_number("HLEN", ACTIVE "new"), 1 + 2);
    assert_int_equal(turns_check().parked, MANY - 2);
    expect_text("new", "ZRANGE", PREFIX "workers", "0", "-1");
    calls = adopt_all("", "new", 0);
    assert_int_equal(calls, 1);
    start_big();
    calls = adopt_all("", "big", 0);
    assert_in_range(calls, 2, 2 * MANY / 40 + 2);
    assert_int_equal(turns_check().parked, 2 * MANY);
    assert_int_equal(redis_number("EXISTS", PREFIX "workers"), 0);
}

static void test_adopt_takes_over(void **state)
{
    struct span running[4];
    char *before, *after;
    size_t lost;

    (void)state;
    start("w1");
    enqueue("default", "t", "a b c d e");
    claim("w1", 5, 0);
    keep_tokens();
    running[0] = tokens[1];
    running[1] = tokens[3];
    running[2] = (struct span){"7.--/default/t/", 15};
    must(turns_adopt("w2", "w1", running, 3, default_queue, &lost));
    assert_int_equal(lost, 1);
    assert_memory_equal(turns.reply->element[11]->str, "7.--/default/t/", 15);
    expect_text(PREFIX "bell:g", "ECHO", turns.reply->element[7]->str);
    assert_int_equal(turns.reply->element[6]->integer, 1); /* so many workers are registered */
    expect_list(LANE("t"), "a c e");
    assert_int_equal(redis_number("EXISTS", ACTIVE "w1"), 0);
    assert_int_equal(redis_number("HLEN", ACTIVE "w2"), 3);
    expect_text("w2", "ZRANGE", PREFIX "workers", "0", "-1");
    expect_counters("t", "pulled 5, back 3");
    turns_check();
    before = turns_digest(); /* its answer was lost: once more */
    must(turns_adopt("w2", "w1", running, 3, default_queue, &lost));
    after = turns_digest();
    assert_string_equal(before, after);
    assert_int_equal(lost, 1);
    free(before);
    free(after);
    expect_stale("w1", SETTLE_BACK, tokens[1]);
    settle("w2", SETTLE_BACK, tokens[1], 0, NULL);
    expect_list(LANE("t"), "b a c e");
    turns_check();
}

static void test_adopt_after_being_reaped_has_lost_all(void **state)
{
    size_t lost;

    (void)state;
    start("w");
    start("slow");
    enqueue("default", "t", "a b");
    claim("slow", 2, 0);
    keep_tokens();
    pass("w", LEASE_US + SECOND_US);
    must(turns_adopt("slow2", "slow", tokens, 2, default_queue, &lost));
    assert_int_equal(lost, 2);
    expect_list(ALONE("t"), "a b");
    turns_check();
}

static void know_birth(void)
{
    snprintf(turns.birth, sizeof turns.birth, "%s", turns.reply->element[2]->str);
}

/* Whoever comes back to a Redis that has lost all hears of it, not only the first one. */
static void test_adopt_after_all_data_are_lost_says_so(void **state)
{
    char before[128];
    size_t lost;

    (void)state;
    start("w");
    know_birth();
    start("v");
    assert_string_equal(turns.reply->element[2]->str, turns.birth);
    snprintf(before, sizeof before, "%s", turns.birth);
    enqueue("default", "t", "a b");
    claim("w", 2, 0);
    keep_tokens();
    assert_int_equal(redis_number("HEXISTS", PREFIX "about", "lost"), 0);
    free(redis_text("FLUSHALL"));
    turns.now_us += SECOND_US;
    for (int times = 0; times < 2; times++) { /* its answer was lost */
        must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
        assert_int_equal(lost, 1);
        assert_string_not_equal(turns.reply->element[2]->str, before);
    }
    must(turns_adopt("v2", "v", NULL, 0, default_queue, &lost));
    assert_string_not_equal(turns.reply->element[2]->str, before);
    assert_int_equal(redis_number("HGET", PREFIX "about", "lost"), turns.now_us);
    know_birth();
    turns.now_us += SECOND_US;
    must(turns_adopt("v3", "v2", NULL, 0, default_queue, &lost));
    assert_int_equal(redis_number("HGET", PREFIX "about", "lost"), turns.now_us - SECOND_US);
    turns.birth[0] = '\0';
    turns_check();
}

static void test_who_leaves_hands_all_back_and_the_duty_on(void **state)
{
    (void)state;
    start("w");
    start("v");
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    claim("w", 1, 0);
    assert_true(turns.claim.duty_until_us > 0);
    must(turns_adopt("", "v", NULL, 0, default_queue, NULL));
    assert_int_equal(redis_number("HEXISTS", PREFIX "duty", "g"), 1); /* not its own */
    must(turns_adopt("", "w", NULL, 0, default_queue, NULL));
    assert_int_equal(redis_number("HEXISTS", PREFIX "duty", "g"), 0);
    assert_int_equal(redis_number("LLEN", PREFIX "spare:g"), 1);
    assert_int_equal(redis_number("EXISTS", ACTIVE "w", PREFIX "workers", ACTIVE), 0);
    expect_list(LANE("t"), "a b");
    must(turns_adopt("", "never-there", NULL, 0, default_queue, NULL));
    turns_check();
}

/* What a key of a wrong kind keeps stays with the old id; the rest goes, and the worker begins. */
static void test_adopt_leaves_what_cannot_go_back(void **state)
{
    size_t lost;

    (void)state;
    start("w");
    enqueue("default", "t", "a b");
    enqueue("default", "slow", "c");
    assert_int_equal(claim("w", 3, 0), 3);
    keep_tokens();
    free(redis_text("SET", LANE("t"), "foreign"));
    must(turns_adopt("w2", "w", tokens, 1, default_queue, &lost));
    assert_int_equal(lost, 0);
    assert_int_equal(turns.left, 0);
    expect_list(LANE("slow"), "c");
    assert_int_equal(redis_number("HLEN", ACTIVE "w2"), 2);
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 2); /* "@" and b */
    free(redis_text("RENAME", LANE("t"), ALONE("t")));
    assert_int_equal(pass("w2", LEASE_US), 0);
    free(redis_text("DEL", ALONE("t")));
    assert_int_equal(pass("w2", 0), 1);
    expect_list(ALONE("t"), "b");
    expect_text("w2", "ZRANGE", PREFIX "workers", "0", "-1");
    turns_check();
}

static void test_a_lease_that_cannot_be_read_is_dead(void **state)
{
    char *dead;

    (void)state;
    start("w");
    start("old");
    start("gone");
    free(redis_text("HSET", ACTIVE "old", "what is this", "{\"id\":\"a\",\"type\":\"t\"}"));
    free(redis_text("HSET", ACTIVE "gone", "1.--/de fault/t/", "{\"id\":\"b\",\"type\":\"t\"}"));
    must(turns_adopt("new", "old", NULL, 0, default_queue, NULL));
    for (int64_t passed = 0; passed <= LEASE_US + SECOND_US; passed += LEASE_US / 4) {
        pass("w", LEASE_US / 4);
        pass("new", 0);
    }
    assert_int_equal(redis_number("EXISTS", ACTIVE "gone"), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_non_null(
        strstr(dead, "old:unread1 // its lease cannot be read: what is this\n{\"id\":\"a\",\"type\":\"t\"}"));
    assert_non_null(
        strstr(dead, "its lease cannot be read: 1.--/de fault/t/\n{\"id\":\"b\",\"type\":\"t\"}"));
    free(dead);
}

static void test_adopt_keeps_a_lease_that_cannot_be_buried(void **state)
{
    (void)state;
    start("old");
    free(redis_text("HSET", ACTIVE "old", "what is this", "{}"));
    free(redis_text("SET", PREFIX "dead", "foreign"));
    must(turns_adopt("new", "old", NULL, 0, default_queue, NULL));
    expect_text("{}", "HGET", ACTIVE "old", "what is this");
    expect_text("foreign", "GET", PREFIX "dead");
}

/* ---- Append */

static int append(const char *lines, const char *first, const char *before, const char *after,
                  const char *jobs)
{
    const char *const words[] = {"b",   "",     first,     lines, before,
                                 after, "seed", "",        "1",   "t",
                                 jobs,  "1",    "default", jobs,  "{\"id\":\"x\",\"type\":\"t\"}"};

    return turns_script("append", words, COUNT(words));
}

/* A chunk goes behind what is there of the same input, and only whole. */
static void test_append_takes_the_next_chunk_only(void **state)
{
    (void)state;
    must(append("1", "0", "s0", "s1", "1"));
    must(append("1", "1", "other", "s2", "1"));
    assert_string_equal(turns.reply->element[0]->str, "at");
    assert_string_equal(turns.reply->element[2]->str, "s1");
    assert_int_equal(append("2", "1", "s1", "s2", "2"), WEIR_EINPUT);
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
    must(append("1", "1", "s1", "s2", "1"));
    assert_int_equal(redis_number("LLEN", QUEUE), 2);
}

/* ---- Promote */

/* However schedules stand between them. */
static void test_promote_moves_no_more_than_it_was_asked(void **state)
{
    int64_t moved;

    (void)state;
    free(redis_text("ZADD", PREFIX "later", "1", "s night\n"));
    for (int i = 0; i < 3; i++)
        must(turns_enqueue("default", "t", (const char *[]){"a", "b", "c"}[i], SECOND_US));
    turns.now_us += SECOND_US;
    must(turns_promote(2, &moved));
    assert_int_equal(moved, 2);
    assert_int_equal(redis_number("LLEN", QUEUE), 2);
}

static void test_promote_puts_off_what_cannot_come_to_its_lane(void **state)
{
    char *scores;

    (void)state;
    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "x");
    free(redis_text("SET", LANE("t"), "foreign"));
    turns.now_us += SECOND_US;
    promote(1);
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 1);
    scores = redis_text("ZRANGE", PREFIX "later", "+inf", "-inf", "BYSCORE", "REV", "LIMIT", "0", "1",
                        "WITHSCORES");
    assert_true(atoll(strrchr(scores, '\n') + 1) > turns.now_us);
    free(scores);
}

/* ---- Reap */

static int64_t tick(const char *worker)
{
    int64_t taken, workers;

    must(turns_reap(worker, &taken, &workers));
    return workers;
}

static void test_the_silent_are_reaped_and_the_others_live(void **state)
{
    (void)state;
    start("w");
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

/* Of claims those count that lease jobs or take the duty; a heartbeat is none. */
static void test_the_last_claim_is_known(void **state)
{
    int64_t claimed_us;

    (void)state;
    start("w");
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

static const char *reap_fault(size_t i)
{
    const struct redisReply *faults = turns.reply->element[5];

    return i < faults->elements ? faults->element[i]->str : "";
}

/* One key of a wrong kind: a worker that lives goes on to live, and what does not need that key goes back. */
static void test_a_heartbeat_counts_whatever_keys_hold(void **state)
{
    static const struct {
        const char *key;
        int taken; /* of the two jobs: t and slow */
    } cases[] = {{"lane:default!/t/", 1},
                 {"ring:default!/t", 1},
                 {"wait:default!/-", 0},
                 {"wake:default!", 0},
                 {"sleep:default!", 0},
                 {"held:default!", 0},
                 {"alone", 0},
                 {"limits", 0},
                 {"types", 0},
                 {"active:dead", 0},
                 {"reap", 0},
                 {"dead", 2},
                 {"cancelled", 2},
                 {"later", 2},
                 {"duty", 2},
                 {"queues", 2},
                 {"bell:g", 2},
                 {"stats:t", 2}};
    int64_t taken, workers;

    for (size_t i = 0; i < COUNT(cases); i++) {
        char key[100];

        scene_begin(state);
        start("w");
        start("dead");
        enqueue("default", "t", "a");
        enqueue("default", "slow", "b");
        assert_int_equal(claim("dead", 2, 0), 2);
        pass("w", LEASE_US - 1);
        snprintf(key, sizeof key, PREFIX "%s", cases[i].key);
        free(redis_text("DEL", key));
        free(redis_text(strcmp(cases[i].key, "reap") == 0 ? "SADD" : "PFADD", key, "x"));
        turns.now_us++;
        must(turns_reap("w", &taken, &workers));
        assert_int_equal(redis_number("ZSCORE", PREFIX "workers", "w"), turns.now_us + LEASE_US);
        if (taken != cases[i].taken || (cases[i].taken < 2 && !strstr(reap_fault(0), key)))
            fail_msg("%s: %d taken back; %s", key, (int)taken, reap_fault(0));
        free(redis_text("DEL", key));
        must(turns_reap("w", &taken, &workers));
        if (strcmp(cases[i].key, "reap") != 0) /* that says when a worker was last heard of */
            assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    }
}

/* Of the jobs of one worker, those that would be dead stay where `dead` is somebody else's. */
static void test_what_cannot_be_buried_stays(void **state)
{
    int64_t taken, workers;

    (void)state;
    start("w");
    start("dead");
    enqueue("default", "t", "b");
    assert_int_equal(claim("dead", 1, 0), 1);
    free(redis_text("HSET", ACTIVE "dead", "9.--/default!/t/", "@0,2,0;{\"id\":\"a\",\"type\":\"t\"}"));
    free(redis_text("HSET", ACTIVE "dead", "what is this", "{}"));
    pass("w", LEASE_US - 1);
    free(redis_text("SET", PREFIX "dead", "foreign"));
    turns.now_us++;
    must(turns_reap("w", &taken, &workers));
    assert_int_equal(taken, 1);
    assert_string_equal(reap_fault(0), PREFIX "dead is a string, not a zset");
    expect_list(ALONE("t"), "b");
    free(redis_text("DEL", PREFIX "dead"));
    must(turns_reap("w", &taken, &workers));
    assert_int_equal(taken, 2);
    assert_int_equal(workers, 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 2);
}

/* More workers than a heartbeat looks at cannot be reaped: one that can be is, two heartbeats later. */
static void test_who_cannot_be_reaped_stands_behind_the_others(void **state)
{
    int64_t taken, workers, all = 0;

    (void)state;
    start("w");
    for (int i = 0; i < 12; i++) {
        char name[16];

        snprintf(name, sizeof name, "d%d", i);
        start(name);
        must(turns_enqueue("default", i < 11 ? "t" : "slow", name, -1));
        assert_int_equal(claim(name, 1, 0), 1);
        turns.now_us++;
    }
    pass("w", LEASE_US - 13);
    free(redis_text("SET", ALONE("t"), "foreign"));
    turns.now_us += 13;
    for (int beats = 0; beats < 3; beats++, turns.now_us++) {
        must(turns_reap("w", &taken, &workers));
        all += workers;
        assert_int_equal(turns.reply->element[3]->type, REDIS_REPLY_INTEGER);
        assert_int_equal(turns.reply->element[3]->integer, 0); /* no hurry */
    }
    assert_int_equal(all, 1);
    expect_list(ALONE("slow"), "d11");
    free(redis_text("DEL", ALONE("t")));
    for (int beats = 0; beats < 2; beats++)
        must(turns_reap("w", &taken, &workers));
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 1);
    assert_int_equal(turns_check().parked, 12);
}

static void test_a_job_that_kills_its_workers_is_dead(void **state)
{
    char *dead;

    (void)state;
    start("w");
    enqueue("default", "t", "poison");
    for (int i = 0; i < 3; i++) {
        char name[16];

        snprintf(name, sizeof name, "d%d", i);
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

static void test_after_an_outage_nobody_is_reaped_for_a_lease(void **state)
{
    (void)state;
    start("w");
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
    char info[40], lease_us[24];
    const char *words[] = {worker, "", "g", lease_us, info, "", "0", "1", "default"};

    snprintf(info, sizeof info, "{\"pid\":1,\"lease\":%d.0}", lease_s);
    snprintf(lease_us, sizeof lease_us, "%lld", (long long)seconds(lease_s));
    must(turns_script("adopt", words, COUNT(words)));
}

static size_t beat(const char *worker, int lease_s)
{
    char lease_us[24];
    const char *words[] = {worker, lease_us, "3", "1000", "86400000000"};

    snprintf(lease_us, sizeof lease_us, "%lld", (long long)seconds(lease_s));
    must(turns_script("reap", words, COUNT(words)));
    return turns.reply->element[4]->elements;
}

/* Leases differ: after an outage the longest counts of those that it can have ended. */
static void test_after_an_outage_the_longest_lease_counts(void **state)
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

static void test_a_clock_that_was_set_back_strands_nothing(void **state)
{
    char far[64];

    (void)state;
    start("w");
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
    free(redis_text("SET", PREFIX "reap", "what 1"));
    start("v");
    pass("w", LEASE_US - 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "workers"), 2);
    snprintf(far, sizeof far, "%lld 9999999999999999",
             (long long)turns.now_us); /* no amnesty is longer than a lease */
    free(redis_text("SET", PREFIX "reap", far));
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

static void test_a_clock_set_back_before_the_first_heartbeat_strands_nothing(void **state)
{
    (void)state;
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
static void test_a_clock_that_was_set_back_opens_windows_in_time(void **state)
{
    static const char *const rules[] = {"fixed-window:1/3600000000/0,by=key",
                                        "sliding-window:1/3600000000,by=key"};
    static const int64_t waits_s[] = {300, 3900};
    int64_t back_us;

    (void)state;
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
static void test_a_clock_that_was_set_back_takes_retries_along(void **state)
{
    char *later, last[24];
    int ticks = 0;

    (void)state;
    start("w");
    must(turns_enqueue("default", "t", "scheduled", 8 * SECOND_US));
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[0], 7 * SECOND_US, NULL);
    settle("w", SETTLE_THROTTLED, tokens[1], 3 * SECOND_US, NULL);
    free(redis_text("ZADD", PREFIX "later", "1795000005000000", "s nightly\n"));
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
    free(redis_text("DEL", PREFIX "later"));
    free(redis_text("EVAL",
                    "for i = 1, ARGV[1] do for _, kind in ipairs({'l', 'q'}) do\n"
                    "  redis.call('ZADD', KEYS[1], string.format('%.0f', ARGV[2] + math.floor(i / 1000)), "
                    "kind .. ' x:' .. i .. ' default/t/\\n{}')\n"
                    "end end return 0",
                    "1", PREFIX "later", "3000", "1795000000000000"));
    turns.now_us -= 3600 * SECOND_US;
    do {
        tick("w");
        assert_in_range(++ticks, 1, 30);
    } while (turns.reply->element[3]->integer > 0);
    assert_true(ticks > 10);
    snprintf(last, sizeof last, "%lld", (long long)(1795000000000000 - 3600 * SECOND_US + 3));
    assert_int_equal(redis_number("ZCOUNT", PREFIX "later", "-inf", last), 3000);
    assert_int_equal(redis_number("ZCOUNT", PREFIX "later", "1795000000000000", "1795000000000003"), 3000);
    assert_int_equal(redis_number("EXISTS", PREFIX "clock"), 0);
}

static void test_many_dead_workers_are_reaped_bit_by_bit(void **state)
{
    int64_t workers = 0;

    (void)state;
    start("w");
    for (int i = 0; i < 20; i++) {
        char name[16];

        snprintf(name, sizeof name, "d%d", i);
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
static void test_a_worker_with_many_leases_is_reaped_bit_by_bit(void **state)
{
    int64_t taken = 0, workers = 0, all = 0;
    int calls = 0;

    (void)state;
    start("w");
    start_big();
    pass("w", LEASE_US - 1);
    for (turns.now_us++; workers == 0 && calls < 2 * MANY / 100; calls++) {
        must(turns_reap("w", &taken, &workers));
        assert_in_range(taken, 1, 120);
        all += taken;
        assert_int_equal(redis_number("EXISTS", ACTIVE "big"), workers == 0);
        if (calls % 80 == 0)
            turns_check();
    }
    assert_in_range(calls, MANY / 100, MANY / 100 + 2);
    assert_int_equal(all, MANY);
    assert_int_equal(turns_check().parked, MANY);
    expect_counters("t", "back 12000");
}

/* The same however many workers had them. */
static void test_many_leases_of_some_workers_are_reaped_bit_by_bit(void **state)
{
    int64_t taken = 0, workers = 0, all = 0, gone = 0;

    (void)state;
    start("w");
    start("d0");
    start("d1");
    enqueue_many("t", 1350);
    for (int i = 0; i < 3; i++)
        assert_int_equal(claim(i < 2 ? "d0" : "d1", 0, 450), 450);
    pass("w", LEASE_US - 1);
    turns.now_us++;
    for (int calls = 0; all < 1350 && calls < 20; calls++) {
        must(turns_reap("w", &taken, &workers));
        assert_in_range(taken, 1, 100);
        all += taken;
        gone += workers;
    }
    assert_int_equal(all, 1350);
    assert_int_equal(gone, 2);
    assert_int_equal(turns_check().parked, 1350);
}

/* ---- Drained, status */

static void test_drained_counts_what_a_draining_worker_waits_for(void **state)
{
    struct drained d;
    struct args a;
    char *before, *after;

    (void)state;
    start("w");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c");
    enqueue("default", "t", "d e");
    claim("w", 3, 0);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[1], SECOND_US, NULL);
    must(turns_enqueue("default", "t", "later", 2 * SECOND_US));
    enqueue("default", "t", "f");
    enqueue("low", "t", "not-mine");
    turns.now_us += SECOND_US;
    before = turns_digest();
    args_init(&a);
    drained_request(&a, PREFIX, turns.now_us, default_queue, ask.types);
    must(turns_send(&a));
    must(drained_reply(turns.reply, &d, &turns.error));
    assert_int_equal(d.waiting, 1);
    assert_int_equal(d.parked, 2);
    assert_int_equal(d.running, 2);
    assert_int_equal(d.due, 1);
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* A member of the i-th row of a list in turns.answer: of a list its first element. */
static void expect_member(const char *list, size_t i, const char *member, const char *expected)
{
    const json_t *value = json_object_get(json_array_get(json_object_get(turns.answer, list), i), member);
    char found[200] = "";

    if (json_is_array(value))
        value = json_array_get(value, 0);
    if (json_is_string(value))
        snprintf(found, sizeof found, "%s", json_string_value(value));
    else if (json_is_boolean(value))
        snprintf(found, sizeof found, "%s", json_is_true(value) ? "true" : "false");
    else
        snprintf(found, sizeof found, "%lld", (long long)json_integer_value(value));
    assert_string_equal(found, expected);
}

static bool is_in_reply(const char *piece)
{
    for (size_t i = 0; i < turns.reply->elements; i++)
        if (strstr(turns.reply->element[i]->str, piece))
            return true;
    return false;
}

static void test_status_says_what_there_is(void **state)
{
    static const char *const pieces[] = {
        "\"now\":\"1795000000000000\"",
        "\"default\":1",
        "\"until\":\"1795000030000000\"",
        "\"running\":2",
        "\"dead\":1",
        "\"later\":1",
        "\"held\":{\"odd\":true}",
    };
    static const char *const types[] = {"types", "0"}, *const of_types[] = {"\n slow", "parked 1",
                                                                            "pulled 1 "};
    const char *all = "";
    char *before, *after;

    (void)state;
    must(turns_script("status", NULL, 0)); /* of nothing at all */
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c");
    enqueue("default", "odd", "d");
    push("default", "garbage");
    must(turns_enqueue("default", "t", "later", SECOND_US));
    claim("w", 6, 0);
    enqueue("default", "t", "e");
    before = turns_digest();
    must(turns_script("status", NULL, 0));
    for (size_t i = 0; i < COUNT(pieces); i++)
        if (!is_in_reply(pieces[i]))
            fail_msg("%s is not in %s", pieces[i], turns.reply->element[0]->str);
    must(turns_script("status", types, COUNT(types)));
    for (size_t i = 0; i < COUNT(of_types); i++)
        if (!is_in_reply(of_types[i]))
            fail_msg("%s is not in %s", of_types[i], turns.reply->element[0]->str);
    must(turns_ask("rate_list", &all, 1));
    assert_int_equal(answer_int(turns.answer, "limits"), 1);
    assert_string_equal(json_string_value(json_array_get(json_object_get(turns.answer, "raw"), 0)),
                        "slow\ngcra:1/1000000/1\n1795000000000000 0 - - gcra:1/1000000/1 1795000001000000 0");
    expect_member("types", 0, "name", "slow");
    expect_member("types", 0, "parked", "1");
    expect_member("types", 0, "limits", "slow");
    expect_member("types", 1, "name", "t");
    expect_member("types", 1, "waiting", "1");
    expect_member("types", 2, "name", "odd");
    assert_string_equal(json_string_value(json_array_get(json_object_get(turns.answer, "held"), 0)), "odd");
    assert_null(json_object_get(turns.answer, "next"));
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

/* ---- Wrong arguments */

static int call_in_words(const char *call)
{
    char text[300], *rest = text;
    const char *words[20], *script;
    size_t n = 0;

    snprintf(text, sizeof text, "%s", call);
    script = strsep(&rest, " ");
    for (char *word; (word = strsep(&rest, " "));)
        words[n++] = strcmp(word, "_") == 0 ? "" : strcmp(word, "TOKEN") == 0 ? "1.--/default/t/" : word;
    return turns_script(script, words, n);
}

static void test_wrong_arguments_change_nothing(void **state)
{
    static const char *const calls[] = {
        /* the script and its words; _ is empty */
        "settle",
        "settle w gone TOKEN 0 _",
        "settle w %s%d TOKEN 0 _",
        "settle w retry",
        "settle w retry TOKEN",
        "settle w retry TOKEN 5",
        "settle w retry TOKEN _ _",
        "settle w retry TOKEN soon _",
        "settle w retry TOKEN nan _",
        "settle w retry TOKEN inf _",
        "settle w retry TOKEN -5 _",
        "settle w retry TOKEN 0.5 _",
        "settle w throttled TOKEN -2 _",
        "settle w throttled TOKEN -0.5 _",
        "settle w throttled TOKEN _ _",
        "settle w throttled TOKEN 5",
        "settle w back TOKEN -1 _",
        "settle w dead TOKEN -1 x",
        "settle w cost TOKEN",
        "settle w cost TOKEN 3",
        "settle w cost TOKEN many _",
        "settle w cost TOKEN -1 _",
        "settle w cost TOKEN 1.5 _",
        "settle w cost TOKEN nan _",
        "settle w cost @ 1 _",
        "settle w cost TOKEN 2 _ done t _ 9",
        "settle w back 1.--*x/default/t/ 0 _",
        "settle w back 1.--@5*/default/t/~ 0 _",
        "settle w back 1.--/default/t/~a:b 0 _",
        "settle w back @ 0 _",
        "settle w back 1.--/default 0 _",
        "settle w back 1.--/de:fault/t/ 0 _",
        "settle w dead _ 0 x",
        "settle w done",
        "settle w done t",
        "settle w done t _",
        "settle w done t _ 0",
        "settle w done t _ x TOKEN",
        "settle w done t _ 2 TOKEN",
        "settle w done t _ nan TOKEN",
        "settle w done t _ 1.5 TOKEN TOKEN",
        "settle w done t _ 4001 TOKEN",
        "settle w done a:t _ 1 TOKEN",
        "settle w done t b:c 1 TOKEN",
        "settle w dead TOKEN 0 x done t _ 9",
        "settle w done t _ 1 TOKEN dead TOKEN 0",
        "promote",
        "promote _",
        "promote 0",
        "promote -1",
        "promote 1001",
        "promote nan",
        "promote 1.5",
        "promote many",
        "claim",
        "claim w",
        "claim w g 1 1 0 10 0 0 0 _",
        "claim w g 1 1 0 10 0 0 0 _ 1",
        "claim w g 1 1 0 10 0 0 0 _ 0 default t",
        "claim w g 1 1 0 10 0 0 0 _ 3 default t",
        "claim w g 1 1 0 10 0 0 0 _ x default t",
        "claim w g 1 1 0 10 0 0 0 _ nan default t",
        "claim w g 1 1 0 10 0 0 0 _ 1 de:fault t",
        "claim w g 1 1 0 10 0 0 0 _ 2 default default t",
        "claim w g x 1 0 10 0 0 0 _ 1 default t",
        "claim w g 1.5 1 0 10 0 0 0 _ 1 default t",
        "claim w g -1 1 0 10 0 0 0 _ 1 default t",
        "claim w g 1 -1 0 10 0 0 0 _ 1 default t",
        "claim w g 1 nan 0 10 0 0 0 _ 1 default t",
        "claim w g 1 1 -1 10 0 0 0 _ 1 default t",
        "claim w g 1 1 inf 10 0 0 0 _ 1 default t",
        "claim w g 1 1 0 0 0 0 0 _ 1 default t",
        "claim w g 1 1 0 1001 0 0 0 _ 1 default t",
        "claim w g 1 1 0 2.5 0 0 0 _ 1 default t",
        "claim w g 1 1 0 10 soon 0 0 _ 1 default t",
        "claim w g 1 1 0 10 0 soon 0 _ 1 default t",
        "claim w g 1 1 0 10 0 210001 0 _ 1 default t",
        "claim w g 1 1 0 10 0 5000 -1 _ 1 default t",
        "claim v g 1 1 0 10 0 0 0 h 1 default t",
        "adopt",
        "adopt n w g",
        "adopt n w g 30000000 {}",
        "adopt n w g 30000000 {} _ 0 1",
        "adopt n w g 30000000 {} _ 0 0 default",
        "adopt n w g 30000000 {} _ 0 2 default",
        "adopt n w g 30000000 {} _ 0 nan default",
        "adopt n w g long {} _ 0 1 default",
        "adopt n w g 0 {} _ 0 1 default",
        "adopt n w g -1 {} _ 0 1 default",
        "adopt n w g nan {} _ 0 1 default",
        "adopt n w g 30000000 {} _ x 1 default",
        "adopt n w g 30000000 {} _ -1 1 default",
        "adopt w w g 30000000 {} _ 0 1 default",
        "adopt _ _ g 30000000 {} _ 0 1 default",
        "reap",
        "reap w",
        "reap w 30000000",
        "reap w 30000000 3 5",
        "reap w 0 3 5 9",
        "reap w -5 3 5 9",
        "reap w nan 3 5 9",
        "reap w 0.5 3 5 9",
        "reap w 30000000 0 5 9",
        "reap w 30000000 x 5 9",
        "reap w 30000000 3 -1 9",
        "reap w 30000000 3 5 x",
        "reap v 30000000 3 5 9",
        "drained",
        "drained -1 default",
        "queue_match",
        "queue_match 0 10",
        "queue_match x 10 *",
        "queue_match -1 10 *",
        "queue_match 0 0 *",
        "queue_match 0 1001 *",
        "drained x default",
        "drained 2 default",
        "drained nan default",
    };
    char *before, *after;

    (void)state;
    start("w");
    enqueue("default", "t", "a b c");
    must(turns_enqueue("default", "t", "later", 1));
    claim("w", 2, 0);
    turns.now_us += SECOND_US;
    before = turns_digest();
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (call_in_words(calls[i]) == 0)
            fail_msg("%s: not refused", calls[i]);
        if (turns.error.status != WEIR_EINPUT)
            fail_msg("%s: %s", calls[i], turns.error.text);
        after = turns_digest();
        if (strcmp(before, after) != 0)
            fail_msg("%s: has changed something", calls[i]);
        free(after);
    }
    free(before);
    turns_check();
}

/* ---- A replica that takes writes */

/* Each script that may write refuses; those that only look do not write. */
static void test_a_replica_is_written_to_by_none(void **state)
{
    char *before, *after;
    int refused = 0, others = 0, lookers = 0;

    (void)state;
    start("w");
    enqueue("default", "t", "a");
    free(redis_text("CONFIG", "SET", "replica-read-only", "no"));
    free(redis_text("REPLICAOF", "127.0.0.1", "1"));
    before = turns_digest();
    for (const struct script *s = scripts; s->name; s++) {
        bool looks = strcmp(s->role, SCRIPT_VIEWER) == 0;
        char function[64], key[64], *answer;

        snprintf(function, sizeof function, "weir_%s_%s", script_digest, s->name);
        snprintf(key, sizeof key, looks ? "%s" : "%srole:%s", PREFIX, s->role);
        answer = redis_text(looks ? "FCALL_RO" : "FCALL", function, "1", key, "");
        lookers += looks;
        if (strncmp(answer, "(error) READONLY a replica", 26) == 0)
            refused++;
        else
            others++;
        free(answer);
    }
    after = turns_digest();
    assert_string_equal(before, after);
    free(redis_text("REPLICAOF", "NO", "ONE"));
    free(redis_text("CONFIG", "SET", "replica-read-only", "yes"));
    assert_true(refused > 20 && lookers > 15);
    assert_int_equal(others, lookers);
    free(before);
    free(after);
}

/* Who may not ask whether it is one goes on. */
static void test_a_user_without_info(void **state)
{
    (void)state;
    free(redis_text("ACL", "SETUSER", "default", "-info"));
    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_text("0", "EVAL", "return redis.acl_check_cmd('INFO') and 1 or 0", "0");
    free(redis_text("ACL", "SETUSER", "default", "+info"));
}

/* Libraries share one collector. */
static void test_the_collector_takes_short_steps(void **state)
{
    (void)state;
    start("w");
    free(redis_text("FUNCTION", "LOAD",
                    "#!lua name=probe\nredis.register_function('probe', function() return "
                    "collectgarbage('setstepmul', 40) end)"));
    expect_text("40", "FCALL", "probe", "0");
    free(redis_text("FUNCTION", "DELETE", "probe"));
}

/* ---- Answers of another shape */

/* What Lua text answers. */
static const struct redisReply *answer(const char *lua)
{
    struct args a;

    args_init(&a);
    args_add(&a, "EVAL");
    args_add(&a, lua);
    args_add(&a, "0");
    must(turns_send(&a));
    return turns.reply;
}

static void test_answers_are_checked(void **state)
{
    static const char *const claims[] = {
        "return 1",
        "return 'x'",
        "return false",
        "return {}",
        "return {'1','','','0',0,{},{},{}}",
        "return {'1','','','0',0,1,{},{},{},{},{},0,0,0,{},'',{},0}",
        "return {'1','','','0',0,{},{},{},{},{},'x',0,0,0,{},'',{},0}",
        "return {'1','','','0',0,{'token','{}'},{},{},{},{},{},0,0,0,{},'',{},0}",
        "return {'1','','','0',0,{'1.1/q/t','{}'},{},{},{},{},{},0,0,0,{},'',{},0}",
        "return {'1','','','0',0,{1,'{}'},{},{},{},{},{},0,0,0,{},'',{},0}",
        "return {'1','','','0',0,{},{},{},{},{},{},0,0,0,0,'',{},0}",
        "return {'1','','','0',0,{},{},{},{},{},{},0,0}",
        "return {'1','','','0',0,{},{},{},{},{},{},0,0,0,{}}",
        "return {'1','','','0',0,{},{},{},{},{},{},0,0,0,{},'',{}}",
        "return {'1','','','0',0,{},{},{},{},{},{},0,0,0,{},'',0,0}",
        "return {{},{},{},{},{},{},{},{},{{'x'}},{},{},{},0,7,{},{},{'x'},0}",
    };
    static const char *const numbers[] = {"return 'x'", "return {1}", "return false"};
    struct adopt adopt;
    struct drained drained;
    struct promoted promoted;
    struct reaped reaped;
    struct error e;
    int64_t n;

    (void)state;
    for (size_t i = 0; i < COUNT(claims); i++)
        if ((claim_reply(answer(claims[i]), &turns.claim, &e) == 0) != (i == COUNT(claims) - 1))
            fail_msg("%s: taken", claims[i]);
    assert_int_equal(turns.claim.next_us, -1);
    assert_int_equal(claim_reply(answer("return "
                                        "{1,'','3','4',1,{'1.z@55/q/t/"
                                        "','@1,22,3;{}'},{},{'x'},{},{},{},1,77,1,{'0',63,'64','x'},'A1',"
                                        "{'a 1500 5 q 0','b 1 5 w 1','c x 5 w 0','d 0 5 w 0','e 7 5  0','f 7 "
                                        "5 w','g','',7,'h 7 5 l 0'},4}"),
                                 &turns.claim, &e),
                     0);
    assert_int_equal(turns.claim.leases[0].interrupted, 22);
    assert_int_equal(turns.claim.leases[0].slot_us, 55);
    assert_true(turns.claim.starved);
    assert_int_equal(turns.claim.look_us, 77);
    assert_true(turns.claim.alone);
    assert_int_equal(turns.claim.crowd, 4);
    assert_true(turns.claim.away == (UINT64_C(1) << 63 | 1));
    assert_int_equal(turns.claim.loss_count, 2);
    assert_int_equal(turns.claim.losses[0].thousandths, 1500);
    assert_int_equal(turns.claim.losses[0].why, 'q');
    assert_int_equal(*turns.claim.losses[1].limit.at, 'h');
    for (size_t i = 0; i < COUNT(numbers); i++) {
        assert_true(settle_reply(answer(numbers[i]), &n, &e) != 0);
        assert_true(promote_reply(answer(numbers[i]), &promoted, &e) != 0);
        assert_true(reap_reply(answer(numbers[i]), &reaped, &e) != 0);
        assert_true(drained_reply(answer(numbers[i]), &drained, &e) != 0);
        assert_true(adopt_reply(answer(numbers[i]), 1, &adopt, &e) != 0);
    }
    assert_true(adopt_reply(answer("return {'1',7,'born','',1,'d',9,'b','s','t'}"), 1, &adopt, &e) != 0);
    assert_int_equal(
        adopt_reply(answer("return {'1',7,'born','1 2 3',1,'d',9,'b',{},'t','q', 4}"), 1, &adopt, &e), 0);
    assert_int_equal(adopt.left, 7);
    assert_int_equal(adopt.workers, 9);
    assert_int_equal(adopt.back.at_us, 3);
    assert_int_equal(adopt.lost_count, 1);
    adopt_free(&adopt);
    assert_true(claim_reply(NULL, &turns.claim, &e) != 0);
    assert_true(settle_reply(NULL, &n, &e) != 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, scene_begin)
    const struct CMUnitTest tests[] = {
        TEST(settle_ends_jobs_by_their_verbs),
        TEST(settle_counts_interruptions),
        TEST(a_lease_is_settled_once_and_by_its_worker),
        TEST(a_lease_is_lost_with_its_worker),
        TEST(many_are_handed_back_in_order),
        TEST(a_retry_comes_before_what_was_parked),
        TEST(promote_keeps_the_order_of_due_times),
        TEST(promote_buries_what_it_cannot_read),
        TEST(adopt_takes_over),
        TEST(a_worker_with_many_leases_comes_and_leaves_bit_by_bit),
        TEST(adopt_after_being_reaped_has_lost_all),
        TEST(adopt_after_all_data_are_lost_says_so),
        TEST(who_leaves_hands_all_back_and_the_duty_on),
        TEST(adopt_leaves_what_cannot_go_back),
        TEST(a_lease_that_cannot_be_read_is_dead),
        TEST(adopt_keeps_a_lease_that_cannot_be_buried),
        TEST(append_takes_the_next_chunk_only),
        TEST(promote_moves_no_more_than_it_was_asked),
        TEST(promote_puts_off_what_cannot_come_to_its_lane),
        TEST(the_silent_are_reaped_and_the_others_live),
        TEST(the_last_claim_is_known),
        TEST(a_heartbeat_counts_whatever_keys_hold),
        TEST(what_cannot_be_buried_stays),
        TEST(who_cannot_be_reaped_stands_behind_the_others),
        TEST(a_job_that_kills_its_workers_is_dead),
        TEST(after_an_outage_nobody_is_reaped_for_a_lease),
        TEST(after_an_outage_the_longest_lease_counts),
        TEST(a_clock_that_was_set_back_strands_nothing),
        TEST(a_clock_set_back_before_the_first_heartbeat_strands_nothing),
        TEST(a_clock_that_was_set_back_opens_windows_in_time),
        TEST(a_clock_that_was_set_back_takes_retries_along),
        TEST(many_dead_workers_are_reaped_bit_by_bit),
        TEST(a_worker_with_many_leases_is_reaped_bit_by_bit),
        TEST(many_leases_of_some_workers_are_reaped_bit_by_bit),
        TEST(drained_counts_what_a_draining_worker_waits_for),
        TEST(status_says_what_there_is),
        TEST(wrong_arguments_change_nothing),
        TEST(a_replica_is_written_to_by_none),
        TEST(a_user_without_info),
        TEST(the_collector_takes_short_steps),
        TEST(answers_are_checked),
    };

    return cmocka_run_group_tests_name("scripts", tests, turns_start, turns_stop);
}
