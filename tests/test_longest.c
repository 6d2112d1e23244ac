/* Keys by their backlog: which lanes are noted as they grow, and what rate_keys finds; and one key that is paused, under claims. Under
 * virtual time. */
#include "queue/limits/rate_request.h"
#include "tests/scene.h"

#define NOTED PREFIX "longest:slow"

/* Jobs of one key come, and are parked. */
static void park(const char *queue, const char *key, int jobs)
{
    static int ids;

    for (int i = 0; i < jobs; i++)
        push(queue, textf("{\"id\":\"j%d\",\"type\":\"slow\",\"key\":\"%s\"}", ids++, key));
    while (redis_number("EXISTS", PREFIX "queue:default", PREFIX "queue:other") > 0)
        claim("w", 10, 0);
}

/* All keys are closed, but for what claims lease at first. */
static void close_keys(void)
{
    start("w");
    must(turns_rate("slow", CLOSED_RULE ",by=key"));
    must(turns_pause("slow", 86400 * SECOND_US));
}

/* "a 40, b 20", and a star where that is a sample; most: of them. */
static void expect_keys(int most, const char *expected)
{
    char text[2000] = "", *end = text;
    const json_t *keys;

    must(turns_ask("rate_keys", (const char *[]){"slow", textf("%d", most), ""}, 3));
    keys = json_object_get(turns.answer, "keys");
    for (size_t i = 0; i < json_array_size(keys); i++)
        end += snprintf(end, (size_t)(text + sizeof text - end), "%s%s %s", i ? ", " : "",
                        answer_text(json_array_get(keys, i), "text"),
                        answer_text(json_array_get(keys, i), "parked"));
    if (json_is_true(json_object_get(turns.answer, "sample")))
        strcpy(end, "*");
    assert_string_equal(text, expected);
}

SCENE_TEST(test_a_lane_is_noted_as_it_grows)
{
    close_keys();
    park("default", "few", 15);
    assert_int_equal(redis_number("EXISTS", NOTED), 0);
    park("default", "few", 1);
    expect_text("default/few\n16", "ZRANGE", NOTED, "0", "-1", "WITHSCORES");
    park("default", "few", 15); /* not twice as many yet */
    expect_text("16", "ZSCORE", NOTED, "default/few");
    park("default", "few", 1);
    expect_text("32", "ZSCORE", NOTED, "default/few");
    park("default", "many", 300);
    expect_text("default/few\ndefault/many", "ZRANGE", NOTED, "0", "-1");
    expect_keys(10, "many 300, few 32");
    turns_check();
}

/* All keys are there while they are few; nobody need be long for that. */
SCENE_TEST(test_few_keys_are_all_found)
{
    close_keys();
    park("default", "a", 2);
    park("default", "b", 3);
    park("default", "c", 1);
    assert_int_equal(redis_number("EXISTS", NOTED), 0);
    expect_keys(10, "b 3, a 2, c 1");
    expect_keys(2, "b 3, a 2");
    assert_int_equal(answer_int(turns.answer, "key_count"), 3);
    assert_int_equal(answer_int(turns.answer, "parked"), 6);
    must(turns_ask("rate_keys", (const char *[]){"slow", "1", "c"}, 3));
    expect_text("c", "ECHO", answer_text(json_array_get(json_object_get(turns.answer, "keys"), 0), "text"));
    assert_int_equal(json_array_size(json_object_get(turns.answer, "keys")), 1);
}

/* So many keys: the longest are found among them, and what is noted stays bounded. */
SCENE_TEST(test_the_longest_of_many_keys)
{
    close_keys();
    for (int i = 0; i < 300; i++)
        park("default", textf("k%03d", i), i < 120 ? 16 : 1);
    park("default", "long", 70);
    park("default", "longer", 140);
    assert_int_equal(redis_number("ZCARD", NOTED), 100);
    expect_keys(2, "longer 140, long 70*");
    assert_true(answer_int(turns.answer, "key_count") >= 290);
}

/* Each sleeps at the gate of its key, and more do than one look finds. */
WORKER_TEST(test_a_sample_of_keys_that_sleep)
{
    must(turns_rate("slow", CLOSED_RULE ",by=key"));
    for (int i = 0; i < 200; i++)
        park("default", textf("k%03d", i), 2);
    claim("w", 10, 0);
    must(turns_ask("rate_keys", (const char *[]){"slow", "10", ""}, 3));
    assert_int_equal(answer_int(turns.answer, "key_count"), 200);
    assert_int_equal(answer_int(turns.answer, "parked"), 200);
    assert_true(json_is_true(json_object_get(turns.answer, "sample")));
}

/* Others were long once: they keep nobody out. */
SCENE_TEST(test_lanes_that_have_shrunk_leave)
{
    close_keys();
    park("default", "a", 20);
    for (int i = 0; i < 99; i++)
        redis_do("ZADD", NOTED, "1000000", textf("default/gone%d", i));
    redis_do("ZADD", NOTED, "1000000", "default/a");
    park("default", "b", 40); /* was counted just now */
    expect_text("(nil)", "ZSCORE", NOTED, "default/b");
    turns.now_us += 11 * SECOND_US;
    park("default", "c", 16);
    expect_text("default/c\n16\ndefault/a\n20", "ZRANGE", NOTED, "0", "-1", "WITHSCORES");
    park("default", "b", 24);
    expect_keys(10, "b 64, a 20, c 16");
}

/* A key may have lanes in several queues, and in some that are to run alone; it is counted once. */
SCENE_TEST(test_a_key_in_several_queues)
{
    close_keys();
    ask.queues = NAMES("default", "other");
    park("default", "a", 20);
    park("other", "a", 17);
    park("other", "b", 30);
    park("default", "b", 3);
    expect_text("other/a\ndefault/a\nother/b", "ZRANGE", NOTED, "0", "-1");
    expect_keys(10, "a 37, b 33");
    assert_int_equal(answer_int(turns.answer, "key_count"), 4); /* lanes */
}

SCENE_TEST(test_a_key_of_another_kind_stops_nothing)
{
    close_keys();
    redis_do("SET", NOTED, "x");
    park("default", "a", 40);
    expect_keys(10, "a 40");
    expect_text("x", "GET", NOTED);
}

SCENE_TEST(test_wrong_arguments)
{
    assert_int_equal(turns_ask("rate_keys", (const char *[]){"slow", "101", ""}, 3), WEIR_EINPUT);
    assert_int_equal(turns_ask("rate_keys", (const char *[]){"slow", "1"}, 2), WEIR_EINPUT);
    assert_int_equal(turns_ask("rate_keys", (const char *[]){"slow", "1", "a b"}, 3), WEIR_EINPUT);
    assert_int_equal(turns_ask("rate_keys", (const char *[]){"slow", "1", "", "x"}, 4), WEIR_EINPUT);
    assert_int_equal(turns_ask("rate_keys", (const char *[]){"slow", "1", "", "0", "0", "2", "slow"}, 7),
                     WEIR_EINPUT);
    assert_int_equal(
        turns_ask("rate_keys", (const char *[]){"slow", "1", "", "-", "0", "0", "slow", "-1"}, 8),
        WEIR_EINPUT);
    must(turns_ask("rate_keys", (const char *[]){"slow", "1", ""}, 3));
    expect_text("slow", "ECHO", answer_text(turns.answer, "missing"));
    must(turns_rate("slow", "1/1000000/1"));
    assert_int_equal(turns_ask("rate_keys", (const char *[]){"slow", "1", ""}, 3), WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "limit slow: has no keys"));
}

/* ---- A key that is paused */

static const json_t *row_of(const char *key)
{
    must(turns_ask("rate_keys", (const char *[]){"slow", "1", key}, 3));
    return json_array_get(json_object_get(turns.answer, "keys"), 0);
}

WORKER_TEST(test_a_paused_key_holds_only_its_jobs)
{
    must(turns_rate("slow", "gcra:100/1000000/100,by=key"));
    must(turns_pause_key("slow", "a", -1));
    enqueue_with("slow", "a1 a2", "\"key\":\"a\"");
    enqueue_with("slow", "b1 b2", "\"key\":\"b\"");
    expect_leased("w", 10, "b1 b2");
    assert_non_null(json_object_get(row_of("a"), "paused"));
    expect_text("8000000000000000", "ECHO", answer_text(row_of("a"), "next_start"));
    turns.now_us += 3600 * SECOND_US;
    expect_leased("w", 10, "");
    must(turns_pause_key("slow", "a", 0));
    expect_leased("w", 10, "a1 a2");
    assert_null(json_object_get(row_of("a"), "paused"));
    turns_check();
}

/* Its gate is open, its limit is not. */
WORKER_TEST(test_a_key_of_a_paused_limit_starts_when_that_ends)
{
    must(turns_rate("slow", "gcra:100/1000000/100,by=key"));
    must(turns_pause("slow", 60 * SECOND_US));
    expect_text(textf("%lld", (long long)turns.now_us + 60 * SECOND_US), "ECHO",
                answer_text(row_of("a"), "next_start"));
}

/* A pause that begins in an hour, by now, ends as long after now as it was to last. */
WORKER_TEST(test_a_pause_goes_back_with_the_clock)
{
    must(turns_rate("slow", "gcra:100/1000000/100,by=key"));
    must(turns_pause_key("slow", "a", 9 * SECOND_US));
    turns.now_us -= 3600 * SECOND_US;
    must(turns_ask("rate_keys", (const char *[]){"slow", "1", ""}, 3));
    expect_text(
        textf("%lld", (long long)turns.now_us + 9 * SECOND_US), "ECHO",
        answer_text(json_object_get(json_object_get(json_object_get(turns.answer, "paused_keys"), "slow/a"),
                                    "paused"),
                    "until"));
}

/* Heartbeats move it, so it ends by the clock that was set back. */
WORKER_TEST(test_the_pause_of_a_type_goes_back_with_the_clock)
{
    enqueue("default", "slow", "a");
    heartbeat("w");
    must(turns_pausing("type_pause", "slow", 9 * SECOND_US));
    turns.now_us -= 3600 * SECOND_US;
    heartbeat("w");
    assert_int_equal(claim("w", 1, 0), 0);
    turns.now_us += 9 * SECOND_US;
    heartbeat("w");
    expect_leased("w", 1, "a");
}

/* What was granted far ahead is to come back. */
WORKER_TEST(test_workers_hear_of_a_paused_key)
{
    must(turns_rate("slow", "gcra:100/1000000/1,by=key"));
    enqueue_with("slow", "a1 a2", "\"key\":\"a\"");
    claim("w", 10, 0);
    redis_do("DEL", PREFIX "told:w");
    must(turns_pause_key("slow", "a", -1));
    expect_text("*", "LRANGE", PREFIX "told:w", "0", "-1");
}

/* A pause of the limit ends, that of its key does not; a provider's longer pause is kept. */
WORKER_TEST(test_a_pause_of_the_limit_leaves_that_of_its_key)
{
    must(turns_rate("slow", "gcra:100/1000000/100,by=key"));
    must(turns_pause_key("slow", "a", 5 * SECOND_US));
    must(turns_pause("slow", 3600 * SECOND_US));
    enqueue_with("slow", "a1", "\"key\":\"a\"");
    enqueue_with("slow", "b1", "\"key\":\"b\"");
    expect_leased("w", 10, "");
    must(turns_pause("slow", 0));
    expect_leased("w", 10, "b1");
    turns.now_us += 5 * SECOND_US;
    expect_leased("w", 10, "a1");
}

/* Beside a key that is paused until it is resumed another one waits for its rate. */
/* Counts the jobs that a draining worker waits for, and those that only a person can start. */
static void expect_drained(int64_t parked, int64_t stopped)
{
    struct drained d;
    struct args a = {0};

    drained_request(&a, PREFIX, turns.now_us, default_queue, ask.types);
    must(turns_send(&a));
    must(drained_reply(turns.reply, &d, &turns.error));
    assert_int_equal(d.parked, parked);
    assert_int_equal(d.stopped, stopped);
}

WORKER_TEST(test_drained_tells_paused_keys_apart)
{
    must(turns_rate("slow", CLOSED_RULE ",by=key"));
    must(turns_pause_key("slow", "a", -1));
    must(turns_pause_key("slow", "nobody", -1));
    enqueue_with("slow", "a1 a2", "\"key\":\"a\"");
    enqueue_with("slow", "b1 b2", "\"key\":\"b\"");
    expect_leased("w", 10, "b1");
    claim("w", 10, 0);
    expect_drained(1, 2);
}

WORKER_TEST(test_drained_tells_paused_types_apart)
{
    enqueue("default", "slow", "a b");
    must(turns_pausing("type_pause", "slow", 10 * SECOND_US));
    assert_int_equal(claim("w", 10, 10), 0);
    expect_drained(2, 0);
    must(turns_pausing("type_pause", "slow", RATE_ENDLESS));
    expect_drained(0, 2);
    must(turns_pausing("type_pause", "slow", RATE_RESUME));
    claim("w", 10, 10);
    expect_leases("a b");
}

TESTS(turns_start, turns_stop)
