/* Jobs on the wrong partition: a claim sends them away, and they are carried to where their type lives, each once, whatever dies between. */
#include "tests/scene.h"

#include <hiredis/hiredis.h>

#include "queue/turn/away.h"

#define AWAY PREFIX "away:2"
#define THERE "weir:{2}:queue:default"
#define HERE "3" /* partitions: of three "t" lives on 0, where the scene is, and "slow" on 2 */

static struct weir *w;

static int begin(void **state)
{
    w = weir_new(turns.server.url, NULL);
    return w ? scene_begin(state) : -1;
}

static int end(void **state)
{
    (void)state;
    weir_free(w);
    return 0;
}

/* From now on there are three partitions; what waits of "slow" is in the wrong place. */
static void divide(void)
{
    for (int p = 0; p < 3; p++) {
        char key[32];

        snprintf(key, sizeof key, "weir:{%d}:about", p);
        free(redis_text("HSET", key, "partitions", HERE, NULL));
    }
}

static void carry(int64_t left)
{
    int64_t found;

    if (away_carry(w, turns.now_us, 0, 2, &found) != 0)
        fail_msg("%s", weir_message(w));
    assert_int_equal(found, left);
}

static void test_from_the_queue(void **state)
{
    (void)state;
    start("w");
    enqueue("default", "t", "t1");
    enqueue("default", "slow", "s1 s2");
    enqueue("default", "t", "t2");
    push("default", "{\"args\":[],\"type\":\"slow\"}");
    divide();
    assert_int_equal(claim("w", 10, 0), 2);
    assert_true(turns.claim.away == 1 << 2);
    assert_int_equal(redis_number("LLEN", QUEUE, NULL), 0);
    assert_int_equal(redis_number("LLEN", AWAY, NULL), 3);
    expect_text("3", "HGET", PREFIX "stats:slow", "set_aside", NULL);
    turns_check();

    carry(0);
    assert_int_equal(redis_number("LLEN", AWAY, NULL), 0);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 3);
    expect_text("{\"id\":\"s1\",\"type\":\"slow\",\"args\":{}}", "LINDEX", THERE, "0", NULL);
    expect_text("0", "HGET", PREFIX "stats:slow", "set_aside", NULL);
    expect_text("3", "HGET", "weir:{2}:stats:slow", "enqueued", NULL);
    expect_text("", "HGET", "weir:{2}:types", "slow", NULL);
    expect_text("default", "SMEMBERS", "weir:{2}:queues", NULL);
    turns_check();
}

/* Parked behind a closed gate, retried, and in the lane of those that run alone. */
static void test_from_lanes(void **state)
{
    (void)state;
    start("w");
    enqueue("default", "slow", "s1");
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "it broke");
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "s2 s3 s4");
    assert_int_equal(claim("w", 10, 0), 1);
    assert_int_equal(redis_number("LLEN", LANE("slow"), NULL), 2);
    must(turns_rate("slow", ""));
    divide();
    assert_int_equal(claim("w", 10, 0), 0);
    assert_int_equal(redis_number("LLEN", AWAY, NULL), 2);
    assert_int_equal(redis_number("EXISTS", LANE("slow"), NULL), 0);
    turns_check();

    turns.now_us += SECOND_US;
    promote(1);
    assert_int_equal(claim("w", 10, 0), 0);
    assert_int_equal(redis_number("LLEN", AWAY, NULL), 3);
    start("v");
    pass("v", LEASE_US / 2); /* w dies with s2 */
    pass("v", LEASE_US);
    assert_int_equal(claim("v", 10, 0), 0);
    assert_int_equal(redis_number("LLEN", AWAY, NULL), 4);
    turns_check();
    carry(0);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 4);
}

/* A worker without a handler for the type sends it on too. */
static void test_without_a_handler(void **state)
{
    static const char *const types[] = {"t"};

    (void)state;
    start("w");
    enqueue("default", "slow", "s1 s2");
    divide();
    ask.types = (struct names){types, 1};
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(redis_number("LLEN", AWAY, NULL), 2);
    assert_int_equal(redis_number("EXISTS", PREFIX "held:default", NULL), 0);
    turns_check();
}

static void test_what_is_kept(void **state)
{
    char *entry;

    (void)state;
    start("w");
    use_secret();
    push("default", "@3,1,0,s" SECRET ",bnight,ukey;{\"id\":\"s1\",\"type\":\"slow\"}");
    free(redis_text("SET", PREFIX "unique:key", "s1", NULL));
    free(redis_text("HSET", PREFIX "batch:night", "total", "2", NULL));
    divide();
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "unique:key", NULL), 0);
    expect_text("1", "HGET", PREFIX "batch:night", "cancelled", NULL);
    carry(0);
    expect_text("s1", "GET", "weir:{2}:unique:key", NULL);
    entry = redis_text("LINDEX", THERE, "0", NULL);
    assert_true(strncmp(entry, "@3,1,0,s", 8) == 0);
    assert_non_null(strstr(entry, ",ukey;{\"id\":\"s1\",\"type\":\"slow\"}"));
    assert_null(strstr(entry, ",b"));
    free(entry);
}

/* A step, as a worker sends it; the answer is turns.reply. */
static void step_read(void)
{
    struct args a;

    args_init(&a);
    away_read_request(&a, PREFIX, turns.now_us, 2);
    must(turns_send(&a));
}

static int64_t step_arrive(void)
{
    struct args a;
    int64_t number;

    args_init(&a);
    away_arrive_request(&a, "weir:{2}:", turns.now_us, 0, turns.reply);
    must(turns_send(&a));
    must(away_arrive_reply(turns.reply, &number, &turns.error));
    return number;
}

static int64_t step_done(int64_t number)
{
    struct args a;
    int64_t left;

    args_init(&a);
    away_done_request(&a, PREFIX, turns.now_us, 2, number);
    must(turns_send(&a));
    must(away_done_reply(turns.reply, &left, &turns.error));
    return left;
}

/* The worker dies behind each step; another one begins anew, and one that was only slow repeats its own. */
static void test_killed_between_the_steps(void **state)
{
    int64_t number;

    (void)state;
    start("w");
    divide();
    for (int killed = 1; killed <= 3; killed++) {
        char body[64];

        for (int i = 0; i < 3; i++) {
            snprintf(body, sizeof body, "{\"id\":\"s%d%d\",\"type\":\"slow\"}", killed, i);
            push("default", body);
        }
        assert_int_equal(claim("w", 1, 0), 0);
        step_read();
        number = killed > 1 ? step_arrive() : 0;
        if (killed > 2)
            assert_int_equal(step_done(number), 0);
        carry(0);
        assert_int_equal(step_done(number), 0);
        assert_int_equal(redis_number("LLEN", THERE, NULL), 3 * killed);
    }
}

/* A record that comes again after later ones. */
static void test_late_repetition(void **state)
{
    struct redisReply *late;
    struct args a;

    (void)state;
    start("w");
    divide();
    push("default", "{\"id\":\"s1\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    step_read();
    late = turns.reply;
    turns.reply = NULL;
    carry(0);
    push("default", "{\"id\":\"s2\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    args_init(&a);
    away_arrive_request(&a, "weir:{2}:", turns.now_us, 0, late);
    must(turns_send(&a));
    freeReplyObject(late);
    carry(0);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 2);
}

/* Redis has lost the last number: the next ones are later all the same. */
static void test_lost_number(void **state)
{
    (void)state;
    start("w");
    divide();
    push("default", "{\"id\":\"s1\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    carry(0);
    free(redis_text("HDEL", PREFIX "about", "away", NULL));
    turns.now_us += 10;
    push("default", "{\"id\":\"s2\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    carry(0);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 2);
}

static void test_heartbeat_names_partitions(void **state)
{
    struct reap_call call = {.worker = "w", .lease_us = LEASE_US, .interrupted_most = 3, .group = "g"};
    struct reaped reaped;
    struct args a;

    (void)state;
    start("w");
    divide();
    for (int i = 0; i < 2; i++) {
        args_init(&a);
        reap_request(&a, PREFIX, turns.now_us, &call);
        must(turns_send(&a));
        must(reap_reply(turns.reply, &reaped, &turns.error));
        assert_true(reaped.away == (i ? 1 << 2 : 0));
        push("default", "{\"id\":\"s1\",\"type\":\"slow\"}");
        assert_int_equal(claim("w", 1, 0), 0);
    }
}

/* More than one call moves, among them large ones. */
static void test_many(void **state)
{
    size_t size = 300000;
    char *body = malloc(size + 64);
    int64_t left;
    int calls = 0;

    (void)state;
    start("w");
    enqueue_many("slow", 900);
    memset(body, ' ', size);
    memcpy(body, "{\"id\":\"big\",\"type\":\"slow\"", 25);
    body[size - 1] = '}';
    body[size] = '\0';
    push("default", body);
    push("default", "{\"id\":\"last\",\"type\":\"slow\"}");
    free(body);
    divide();
    for (int i = 0; i < 10 && redis_number("LLEN", QUEUE, NULL) > 0; i++)
        claim("w", 1, 0);
    assert_int_equal(redis_number("LLEN", AWAY, NULL), 902);
    do {
        if (away_carry(w, turns.now_us, 0, 2, &left) != 0)
            fail_msg("%s", weir_message(w));
        calls++;
    } while (left > 0 && calls < 20);
    assert_in_range(calls, 5, 10);
    assert_int_equal(redis_number("LLEN", THERE, NULL), 902);
    expect_text("{\"id\":\"last\",\"type\":\"slow\"}", "LINDEX", THERE, "-1", NULL);
}

static void test_wrong_arguments(void **state)
{
    static const char *const lines[] = {"away_read",
                                        "away_read x",
                                        "away_arrive 0 seed",
                                        "away_arrive x seed 1~default~slow",
                                        "away_arrive 0 seed nothing",
                                        "away_done 2",
                                        "away_done 2 x",
                                        "away_done x 2"};

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(call_line(lines[i]), WEIR_EINPUT);
    free(redis_text("SET", AWAY, "x", NULL));
    assert_int_equal(call_line("away_read 2"), WEIR_ECONFIG);
    assert_int_equal(call_line("away_done 2 1"), WEIR_ECONFIG);
}

/* Its list there is none: the claim moves nothing and says so. */
static void test_wrong_key(void **state)
{
    (void)state;
    start("w");
    enqueue("default", "slow", "s1");
    divide();
    free(redis_text("SET", AWAY, "x", NULL));
    assert_int_equal(try_claim("w", 1, 0), WEIR_ECONFIG);
    assert_int_equal(redis_number("LLEN", QUEUE, NULL), 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_from_the_queue, begin, end),
        cmocka_unit_test_setup_teardown(test_from_lanes, begin, end),
        cmocka_unit_test_setup_teardown(test_without_a_handler, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(test_killed_between_the_steps, begin, end),
        cmocka_unit_test_setup_teardown(test_late_repetition, begin, end),
        cmocka_unit_test_setup_teardown(test_lost_number, begin, end),
        cmocka_unit_test_setup_teardown(test_heartbeat_names_partitions, begin, end),
        cmocka_unit_test_setup_teardown(test_many, begin, end),
        cmocka_unit_test_setup_teardown(test_wrong_arguments, begin, end),
        cmocka_unit_test_setup_teardown(test_wrong_key, begin, end),
    };

    return cmocka_run_group_tests(tests, turns_start, turns_stop);
}
