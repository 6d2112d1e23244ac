/* coming: which jobs a limit lets start next, against those that claims then start, under virtual time. */
#include "tests/scene_client.h"

#include "core/client/client.h"
#include "queue/inspect/find_job.h"
#include "queue/status/coming.h"
#include "queue/status/status.h"

static json_t *next; /* the last one */

static int stop_all(void **state)
{
    json_decref(next);
    return scene_stop_client(state);
}

static void look(const char *limit, int most)
{
    struct limits limits = {0};

    json_decref(next);
    if (status_limits(w, turns.now_us, &limits) < 0 ||
        coming_ask(w, turns.now_us, &limits, limits_find(&limits, limit), most, &next) < 0)
        fail_msg("%s", weir_message(w));
    limits_free(&limits);
}

static const char *said(size_t i, const char *member)
{
    return answer_text(json_array_get(next, i), member);
}

/* The ids, in order: "a b c". */
static void expect_ids(const char *ids)
{
    char text[400] = "";

    for (size_t i = 0; i < json_array_size(next); i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", said(i, "id"));
    assert_string_equal(text, ids);
}

/* Seconds from now on; -1: not known. */
static void expect_start(size_t i, double seconds)
{
    int64_t start_us = answer_int_or(json_array_get(next, i), "start", -1);

    assert_int_equal(start_us, seconds < 0 ? -1 : turns.now_us + (int64_t)(seconds * 1e6));
}

/* Each as it was said, at its time. */
static void expect_starts_as_said(void)
{
    size_t count = json_array_size(next);

    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        turns.now_us = answer_int(json_array_get(next, i), "start");
        assert_int_equal(claim("w", 1, 0), 1);
        expect_leases(said(i, "id"));
    }
}

/* Each is found by one call where it is said to stand. */
static void expect_places(void)
{
    size_t i;
    json_t *row;

    json_array_foreach(next, i, row)
    {
        struct find_place place;
        int64_t before = count_calls();
        json_t *job;

        snprintf(place.at, sizeof place.at, "%s", answer_text(row, "list"));
        snprintf(place.from, sizeof place.from, "%d",
                 (int)(answer_int(row, "of") - answer_int(row, "place")));
        assert_int_equal(find_job_near(w, turns.now_us, answer_text(row, "id"), &place, &job), 0);
        assert_int_equal(count_calls() - before, 1);
        assert_int_equal(answer_int(job, "place"), answer_int(row, "place"));
        assert_int_equal(answer_int(job, "of"), answer_int(row, "of"));
        json_decref(job);
    }
}

SCENE_TEST(test_types_take_turns)
{
    start("w");
    must(turns_rate("shared", "gcra:10/1000000/1"));
    use("t", "shared");
    use("slow", "shared");
    enqueue("default", "t", "a b c d e");
    enqueue("default", "slow", "u v w");
    assert_int_equal(claim("w", 9, 0), 1);
    look("shared", 6);
    expect_ids("b u c v d w");
    expect_start(0, 0.1);
    expect_start(5, 0.6);
    assert_string_equal(said(1, "type"), "slow");
    assert_string_equal(said(0, "queue"), "default");
    expect_places();
    expect_starts_as_said();
}

SCENE_TEST(test_jobs_cost_what_they_name)
{
    start("w");
    must(turns_rate("t", "gcra:100/1000000/10"));
    enqueue_with("t", "a b", "\"cost\":10");
    enqueue_with("t", "c", "\"cost\":4");
    enqueue("default", "t", "d e");
    assert_int_equal(claim("w", 9, 0), 1);
    look("t", 6);
    expect_ids("b c d e");
    expect_start(0, 0.1);
    expect_start(1, 0.14);
    expect_start(2, 0.15);
    expect_start(3, 0.16);
    expect_starts_as_said();
}

static void enqueue_key(const char *ids, const char *key)
{
    enqueue_with("t", ids, textf("\"key\":\"%s\"", key));
}

SCENE_TEST(test_keys_take_turns_by_weight)
{
    start("w");
    must(turns_rate("t", "gcra:10/1000000/1 gcra:100/1000000/100,by=key"));
    must(turns_weight("t", "big", 3));
    enqueue_key("a b c d e", "big");
    enqueue_key("u v w", "small");
    assert_int_equal(claim("w", 9, 0), 1);
    turns.now_us += SECOND_US / 10;
    assert_int_equal(claim("w", 1, 0), 1); /* big has two of its three starts left */
    look("t", 6);
    expect_ids("c d u e v w");
    expect_places();
    expect_starts_as_said();
}

SCENE_TEST(test_keys_whose_gates_are_closed)
{
    start("w");
    must(turns_rate("t", "gcra:1/10000000/1,by=key"));
    enqueue_key("a b", "one");
    assert_int_equal(claim("w", 9, 0), 1);
    turns.now_us += 3 * SECOND_US;
    enqueue_key("u v", "two");
    assert_int_equal(claim("w", 9, 0), 1);
    enqueue("default", "slow", "x");
    enqueue_key("c", "three");
    look("t", 9);
    expect_ids(
        "b v c"); /* what stands in the queue comes as soon as a worker claims, but nobody has looked at its gates */
    expect_start(0, 7);
    expect_start(1, 10);
    expect_start(2, 0);
    assert_string_equal(said(0, "key"), "one");
    expect_places();
}

SCENE_TEST(test_a_paused_limit_and_a_paused_queue)
{
    start("w");
    must(turns_rate("t", "gcra:1/1000000/1"));
    enqueue("default", "t", "a b c");
    enqueue("far", "t", "x");
    must(turns_pause("t", 60 * SECOND_US));
    look("t", 9);
    expect_ids("a b c x");
    expect_start(0, 60);
    expect_start(2, 62);
    redis_do("HSET", PREFIX "halted", "q/default", "1");
    look("t", 9);
    expect_ids("x");
}

SCENE_TEST(test_concurrency_says_no_time)
{
    start("w");
    must(turns_rate("t", "concurrency:2"));
    enqueue("default", "t", "a b c d");
    look("t", 9);
    expect_ids("a b c d");
    expect_start(1, 0);
    expect_start(2, -1);
    assert_int_equal(claim("w", 9, 0), 2);
    look("t", 9);
    expect_ids("c d");
    expect_start(0, -1);
}

SCENE_TEST(test_nothing_comes)
{
    must(turns_rate("t", "gcra:1/1000000/1"));
    look("t", 9);
    assert_int_equal(json_array_size(next), 0);
    enqueue("default", "slow", "a"); /* of another type */
    look("t", 9);
    assert_int_equal(json_array_size(next), 0);
}

/* A lane of large bodies is not read as a whole. */
SCENE_TEST(test_large_bodies)
{
    static char body[400000];
    size_t len;

    start("w");
    must(turns_rate("t", CLOSED_RULE));
    enqueue("default", "t", "first");
    assert_int_equal(claim("w", 1, 0), 1);
    for (int i = 0; i < 4; i++) {
        len = (size_t)snprintf(body, sizeof body, "{\"id\":\"big%d\",\"type\":\"t\",\"args\":\"", i);
        memset(body + len, 'x', sizeof body - len);
        memcpy(body + sizeof body - 3, "\"}", 3);
        push("default", body);
    }
    claim("w", 9, 0);
    look("t", 9);
    assert_in_range(json_array_size(next), 1, 2);
    assert_string_equal(said(0, "id"), "big0");
}

/* 100 queues with jobs of other types before those that are wanted, lanes of 20 types in each, sleeping gates. */
SCENE_TEST(test_whatever_waits_a_look_is_short)
{
    const char *words[21] = {"50"};
    char types[20][24];
    int64_t before;

    redis_do(
        "EVAL",
        "local P = ARGV[1]\n"
        "for t = 1, 20 do redis.call('HSET', P .. 'types', 't' .. t, '') end\n"
        "for q = 1, 100 do\n"
        "  redis.call('SADD', P .. 'queues', 'q' .. q)\n"
        "  for i = 1, 60 do redis.call('RPUSH', P .. 'queue:q' .. q, '{\"id\":\"o\",\"type\":\"o\"}') end\n"
        "  for t = 1, 20 do\n"
        "    for key = 1, 9 do redis.call('ZADD', P .. 'ring:q' .. q .. '/t' .. t, key, key) end\n"
        "    redis.call('ZADD', P .. 'sleep:q' .. q, 9, 't' .. t .. '#0/k')\n"
        "  end\n"
        "end\n",
        "0", PREFIX);
    for (int i = 0; i < 20; i++) {
        snprintf(types[i], sizeof types[i], "t%d", i + 1);
        words[i + 1] = types[i];
    }
    before = count_commands();
    must(turns_ask("coming", words, COUNT(words)));
    assert_in_range(count_commands() - before, 1, 900);
}

SCENE_TEST(test_wrong_calls_are_refused)
{
    static const char *const lines[] = {"coming",
                                        "coming 5",
                                        "coming 0 t",
                                        "coming 51 t",
                                        "coming x t",
                                        "coming 5 t/u",
                                        "coming 5 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21"};

    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(call_line(lines[i]), WEIR_EINPUT);
}

TESTS(scene_start_client, stop_all)
