/* Types and limits that move to another partition, so that they share one: what goes with them, what waits, and what may not move. */
#include "tests/scene.h"

#include <inttypes.h>
#include <pthread.h>
#include <unistd.h>

#include "queue/limits/rate.h"
#include "queue/turn/away.h"
#include "tests/program.h"

#define PARTITIONS 3 /* "slow" and "mail" live on 2, "t" on 0, where the scene is, "a" and "b" on 1 */
#define P0 PREFIX
#define P1 "weir:{1}:"
#define P2 "weir:{2}:"

static struct weir *w;

static int begin(void **state)
{
    w = weir_new(turns.server.url, NULL);
    if (!w || scene_begin(state) != 0)
        return -1;
    for (int p = 0; p < PARTITIONS; p++) {
        char key[32];

        snprintf(key, sizeof key, "weir:{%d}:about", p);
        free(redis_text("HSET", key, "partitions", "3", NULL));
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    weir_free(w);
    return 0;
}

static void check(int status)
{
    if (status)
        fail_msg("%s", weir_message(w));
}

static void put(const char *type, const char *id)
{
    check(weir_enqueue(w, &(struct weir_job_spec){.type = type, .id = id}, NULL));
}

static void refused(int status, int expected, const char *says)
{
    assert_int_equal(status, expected);
    if (!strstr(weir_message(w), says))
        fail_msg("%s", weir_message(w));
}

/* "t" is here, with jobs that wait and a limit of its own; "a" is elsewhere. */
static void test_a_type_goes_to_its_limit(void **state)
{
    (void)state;
    check(weir_rate_set(w, "a", "100/1s"));
    check(weir_rate_set(w, "t", "5/1h,by=key 1000/1s"));
    check(weir_rate_weight(w, "t", "big", 3));
    check(weir_rate_pause(w, "t/some one", 3600));
    put("t", "t1");
    check(weir_rate_use(w, "t", "a", 2));
    expect_text("1", "HGET", P0 "homes", "t", NULL);
    expect_text("1", "HGET", P1 "homes", "t", NULL);
    expect_text("(nil)", "HGET", P0 "limits", "t", NULL);
    expect_text("use=a cost=2", "HGET", P1 "types", "t", NULL);
    expect_text("", "HGET", P0 "types", "t", NULL);
    expect_text("3", "HGET", P1 "weights", "t/big", NULL);
    expect_text("(nil)", "HGET", P0 "weights", "t/big", NULL);
    expect_text("0", "EXISTS", P0 "key_pauses", NULL);
    {
        char *pause = redis_text("HVALS", P1 "key_pauses", NULL),
             *keys = redis_text("KEYS", P1 "gate:t#0/*", NULL);

        assert_non_null(strstr(pause, " some one"));
        assert_string_equal(keys, P1 "gate:t#0/h.c0a82df6258f5ddc3e188cbb6511580d56d9d517");
        free(pause);
        free(keys);
    }
    {
        char *limit = redis_text("HGET", P1 "limits", "t", NULL);

        assert_non_null(strstr(limit, ",by=key"));
        assert_non_null(strstr(limit, " pause:")); /* its keys may be used up */
        assert_non_null(strstr(limit, " weights:1"));
        free(limit);
    }
    expect_text("1", "HEXISTS", P0 "revisions", "home/t", NULL); /* workers learn it */
    expect_text("1", "HEXISTS", P1 "revisions", "home/t", NULL);
    expect_text("1", "HEXISTS", P1 "revisions", "limit/t", NULL);
    put("t", "t2");
    expect_text("1", "LLEN", P1 "queue:default", NULL);
    start("w");
    assert_int_equal(claim("w", 5, 0), 0);
    assert_true(turns.claim.away == 1 << 1);
    turns_check();
    {
        struct outcome o;

        program_weir(&o, NULL, turns.server.url, NULL, "doctor");
        if (strstr(o.out, "limit t is gone"))
            fail_msg("%s", o.out);
    }
}

static int64_t pause_until(const char *prefix, const char *limit)
{
    char key[64], *text, *mark;
    int64_t at;

    snprintf(key, sizeof key, "%slimits", prefix);
    text = redis_text("HGET", key, limit, NULL);
    mark = strstr(text, "pause:");
    at = mark ? atoll(mark + 6) : 0;
    free(text);
    return at;
}

static int64_t server_now_us(void)
{
    char *time = redis_text("TIME", NULL), *rest;
    int64_t us = strtoll(time, &rest, 10) * 1000000;

    us += strtoll(rest, NULL, 10);
    free(time);
    return us;
}

/* A gate that was never used is open there at once; one that is used up stays closed until it would be full again; one that is paused stays
 * so. */
static void test_no_free_burst(void **state)
{
    struct weir_take take;
    int64_t until, now;

    (void)state;
    check(weir_rate_set(w, "a", "100/1s"));
    check(weir_rate_set(w, "t", "4/1h,burst=4"));
    check(rate_move(w, "t", 1));
    assert_int_equal(pause_until(P1, "t"), 0);
    check(weir_take(w, "t", NULL, 2, 0, &take));
    assert_true(take.allowed);
    check(rate_move(w, "t", 2));
    until = pause_until(P2, "t");
    now = server_now_us();
    assert_in_range(until - now, INT64_C(1790) * 1000000, INT64_C(1801) * 1000000); /* two of four an hour */
    check(weir_take(w, "t", NULL, 1, 0, &take));
    assert_false(take.allowed);

    check(weir_rate_pause(w, "t", 36000));
    check(rate_move(w, "t", 0));
    assert_in_range(pause_until(P0, "t") - now, INT64_C(35990) * 1000000, INT64_C(36010) * 1000000);
    assert_int_equal(redis_number("EXISTS", P1 "gate:t#0", P2 "gate:t#0", NULL), 0);
}

/* All that share limits move together. */
static void test_a_group(void **state)
{
    (void)state;
    check(weir_rate_set(w, "a", "100/1s"));
    check(weir_rate_set(w, "mail", "100/1s"));
    check(weir_rate_use(w, "slow", "mail", 0)); /* on 2 */
    check(weir_rate_use(w, "t", "mail", 0));    /* comes there */
    expect_text("2", "HGET", P0 "homes", "t", NULL);
    check(weir_rate_use(w, "slow", "a", 0)); /* all go to 1 */
    expect_text("use=mail,a", "HGET", P1 "types", "slow", NULL);
    expect_text("use=mail", "HGET", P1 "types", "t", NULL);
    expect_text("1", "HEXISTS", P1 "limits", "mail", NULL);
    expect_text("0", "HLEN", P2 "limits", NULL);
    expect_text("1", "HGET", P0 "homes", "t", NULL); /* who is asked first knows it */
    for (int i = 0; i < 3; i++) {
        static const char *const types[] = {"slow", "t", "mail"};
        struct weir *other = weir_new(turns.server.url, NULL);

        assert_int_equal(weir_enqueue(other, &(struct weir_job_spec){.type = types[i]}, NULL), 0);
        assert_int_equal(redis_number("LLEN", P1 "queue:default", NULL), i + 1);
        weir_free(other);
    }
    check(weir_rate_unuse(w, "t", "mail")); /* it stays */
    expect_text("1", "HGET", P1 "homes", "t", NULL);
}

static void test_limits_of_one_type(void **state)
{
    (void)state;
    check(weir_rate_set(w, "a", "100/1s"));
    check(weir_rate_set(w, "mail", "100/1s"));
    check(weir_rate_use(w, "t", "mail a", 0));
    expect_text("use=mail,a", "HGET", P2 "types", "t", NULL);
    refused(weir_rate_use(w, "t", "a nothing", 0), WEIR_ENOTFOUND, "limit nothing");
    refused(weir_rate_use(w, "slow", "nothing", 0), WEIR_ENOTFOUND, "limit nothing"); /* it did not move */
    expect_text("(nil)", "HGET", P2 "homes", "slow", NULL);
}

static void test_what_may_not_move(void **state)
{
    (void)state;
    check(weir_rate_set(w, "a", "100/1s"));
    check(weir_rate_set(w, "t", "concurrency=2"));
    start("w");
    put("t", "t1");
    assert_int_equal(claim("w", 1, 0), 1);
    refused(weir_rate_use(w, "t", "a", 0), WEIR_EINPUT, "its jobs run");
    keep_tokens();
    settle("w", SETTLE_FINISH, tokens[0], 0, "");
    check(weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "night"}, NULL));
    refused(weir_rate_use(w, "t", "a", 0), WEIR_EINPUT, "batch night");
    expect_text("(nil)", "HGET", P0 "homes", "t", NULL);
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
    settle("w", SETTLE_FINISH, tokens[0], 0, "");
    check(weir_batch_seal(w, "night", NULL));
    check(weir_rate_use(w, "t", "a", 0));
    expect_text("1", "HGET", P0 "homes", "t", NULL);
}

/* Whoever moved it died before the limit was carried: a worker carries it. */
static void test_killed_on_the_way(void **state)
{
    int64_t left;

    (void)state;
    check(weir_rate_set(w, "t", "5/1h"));
    put("t", "t1");
    must(call_line("rate_move t 1 move me"));
    expect_text("(nil)", "HGET", P0 "limits", "t", NULL);
    expect_text("(nil)", "HGET", P1 "limits", "t", NULL);
    start("w");
    assert_int_equal(claim("w", 5, 0), 0);
    assert_true(turns.claim.away == 1 << 1);
    for (int i = 0; i < 2; i++) { /* again: nothing comes twice */
        check(away_carry(w, turns.now_us, 0, 1, &left));
        assert_int_equal(left, 0);
        expect_text("1", "HEXISTS", P1 "limits", "t", NULL);
        expect_text("1", "LLEN", P1 "queue:default", NULL);
    }
    put("t", "t2");
    expect_text("2", "LLEN", P1 "queue:default", NULL);
}

static void *carry_later(void *arg)
{
    struct weir *other = weir_new(turns.server.url, NULL);
    int64_t left;

    (void)arg;
    usleep(300000);
    if (!other || away_carry(other, -1, 0, 1, &left) != 0)
        abort();
    weir_free(other);
    return NULL;
}

/* It has left one partition and not yet arrived at the other: callers wait. */
static void test_callers_wait_on_the_way(void **state)
{
    struct weir_bulk *b;
    pthread_t thread;

    (void)state;
    check(weir_rate_set(w, "t", "5/1h"));
    must(call_line("rate_move t 1 move me"));
    pthread_create(&thread, NULL, carry_later, NULL);
    put("t", "t1");
    pthread_join(thread, NULL);
    expect_text("1", "LLEN", P1 "queue:default", NULL);

    check(rate_move(w, "t", 0));
    must(call_line("rate_move t 1 move me"));
    pthread_create(&thread, NULL, carry_later, NULL);
    check(weir_bulk_open(w, NULL, &b));
    check(weir_bulk_add(b, &(struct weir_job_spec){.type = "t"}));
    check(weir_bulk_close(b, NULL));
    pthread_join(thread, NULL);
    expect_text("2", "LLEN", P1 "queue:default", NULL);
}

/* ---- In pages: of very many types, and batches */

#define run_lua(text) free(redis_text("EVAL", "local P = ARGV[1]\n" text "return 0", "0", P0))

static const char *const t_to_1[] = {"t", "1", "move", "me"};

static const char *place(size_t i)
{
    return json_string_value(json_array_get(json_object_get(turns.answer, "next"), i));
}

/* The pages until both kinds are looked at, but for the call that moves. */
static void look_at_all(void)
{
    int rc = turns_ask("rate_move", t_to_1, COUNT(t_to_1));

    while (rc == 0 && place(0) && (*place(0) || *place(3)))
        assert_true(turns_ask_more("rate_move", t_to_1, COUNT(t_to_1), &rc));
    must(rc);
    assert_non_null(place(0));
    assert_int_equal(redis_number("HEXISTS", P0 "homes", "t"), 0);
}

static int64_t count_moved(void)
{
    int rc = 0;

    while (turns_ask_more("rate_move", t_to_1, COUNT(t_to_1), &rc))
        if (rc != 0)
            return rc;
    return (int64_t)json_array_size(json_object_get(turns.answer, "moved"));
}

static void build_many(void)
{
    run_lua(
        "redis.call('HSET', P .. 'limits', 't', 'gcra:5/1000000/5', 'deep', 'gcra:5/1000000/5')\n"
        "for i = 1, 3000 do\n"
        "  local use = i == 7 and 'use=t,deep' or i == 2000 and 'use=deep' or i % 2 == 0 and 'cost=2' or ''\n"
        "  redis.call('HSET', P .. 'types', 'n' .. i, use)\n"
        "end\n"
        "for i = 1, 700 do\n"
        "  redis.call('ZADD', P .. 'batches', i, 'b' .. i)\n"
        "  redis.call('HSET', P .. 'batch:b' .. i, 'total', '3', 'types', 'n1 3')\n"
        "end\n");
}

/* Found in whatever order the types come: n7 uses t's limit, n2000 one of n7's. */
static void test_all_are_found_page_by_page(void **state)
{
    (void)state;
    build_many();
    look_at_all();
    assert_int_equal(count_moved(), 4);
    expect_text("1\n1\n1\n1", "HMGET", P0 "homes", "t", "n7", "deep", "n2000", NULL);
    assert_int_equal(redis_number("HLEN", P0 "homes"), 4);
}

static void test_a_change_on_the_way_begins_anew(void **state)
{
    json_t *before;

    (void)state;
    build_many();
    look_at_all();
    before = json_incref(turns.answer);
    must(turns_use("n8", "use", "", (const char *const[]){"deep"}, 1));
    json_decref(turns.answer);
    turns.answer = before;
    assert_int_equal(count_moved(), 5);
    expect_text("1", "HGET", P0 "homes", "n8", NULL);
}

static void put_in_batch(const char *type, const char *batch)
{
    check(weir_enqueue(w, &(struct weir_job_spec){.type = type, .batch = batch}, NULL));
}

static void refused_for(const char *says)
{
    assert_int_equal(count_moved(), WEIR_EINPUT);
    if (!strstr(turns.error.text, says))
        fail_msg("%s", turns.error.text);
    assert_int_equal(redis_number("EXISTS", P0 "homes"), 0);
}

/* The last call is sure that no batch has got a job of them since it was looked at: a new one, one that had none, one that counts its types together. */
static void test_a_batch_on_the_way_is_noticed(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        scene_begin(state);
        free(redis_text("HSET", P0 "about", "partitions", "3", NULL));
        build_many();
        if (i == 2)
            run_lua("redis.call('HSET', P .. 'batch:b5', 'types', 'a 1 b 1 c 1 d 1 e 1 f 1 g 1 h 1 * 3',\n"
                    "  'ended', '1')\n");
        look_at_all();
        if (i == 2)
            run_lua("redis.call('HDEL', P .. 'batch:b5', 'ended')\n");
        put_in_batch("t", i == 0 ? "night" : "b5");
        refused_for(i == 0   ? "type t: batch night"
                    : i == 1 ? "type t: batch b5"
                             : "type of several: batch b5");
    }
}

/* Nor that one has not ended, which had. */
static void test_a_batch_that_goes_on_is_noticed(void **state)
{
    (void)state;
    build_many();
    run_lua(
        "redis.call('ZADD', P .. 'dead', 1, 'w1 default/t/ why\\n@1,0,0,bb5;{\"id\":\"d\",\"type\":\"t\"}')\n"
        "redis.call('HSET', P .. 'batch:b5', 'types', 't 1', 'total', '1', 'dead', '1', 'sealed', '1', "
        "'ended', '1')\n");
    look_at_all();
    {
        struct outcome o;

        program_weir(&o, NULL, turns.server.url, NULL, "dead retry --all");
    }
    expect_text("(nil)", "HGET", P0 "batch:b5", "ended", NULL);
    refused_for("type t: batch b5");
}

/* What concerns other types, and more jobs of a type that is in the batch already, is not looked at again. */
static void test_other_batches_on_the_way_do_not_matter(void **state)
{
    int rc = 0;

    (void)state;
    build_many();
    look_at_all();
    for (int i = 0; i < 3; i++) {
        put_in_batch("n4", "b5");
        put_in_batch("n8", "fresh");
        put("t", i == 0 ? "t1" : i == 1 ? "t2" : "t3");
    }
    assert_true(turns_ask_more("rate_move", t_to_1, COUNT(t_to_1), &rc));
    must(rc);
    assert_int_equal(json_array_size(json_object_get(turns.answer, "moved")), 4);
}

/* Keys that had weights leave with their jobs. */
static void test_shares_leave_with_their_lanes(void **state)
{
    static const char *const types[] = {"t"};
    int rc = 0;

    (void)state;
    start("w");
    ask.types = (struct names){types, 1};
    must(turns_rate("t", "gcra:10/1000000/1 gcra:1000/1000000/1000,by=key"));
    must(turns_weight("t", "a", 3));
    enqueue_with("t", "x", KEY("x"));
    enqueue_with("t", "a1 a2 a3 a4 a5", KEY("a"));
    enqueue_with("t", "b1 b2", KEY("b"));
    expect_in_turn("x a1 a2");
    assert_int_equal(redis_number("EXISTS", P0 "credit:default/t"), 1);
    must(turns_ask("rate_move", t_to_1, COUNT(t_to_1)));
    while (turns_ask_rest(&rc) && rc == 0)
        ;
    must(rc);
    expect_text("0", "EXISTS", P0 "weights", NULL);
    for (int i = 0; i < 20 && redis_number("EXISTS", P0 "ring:default/t"); i++) {
        assert_int_equal(claim("w", 5, 0), 0);
        turns.now_us += SECOND_US;
    }
    assert_int_equal(redis_number("EXISTS", P0 "ring:default/t", P0 "credit:default/t"), 0);
    turns_check();
}

/* Of a group that is as large as it may be, each with a limit whose keys are paused and have weights: nothing is gone through for each of them. */
static void test_very_many_limits_move_at_once(void **state)
{
    int64_t before;

    (void)state;
    run_lua("redis.call('HSET', P .. 'limits', 't', 'gcra:5/1000000/5')\n"
            "for i = 1, 100 do\n"
            "  redis.call('HSET', P .. 'limits', 'l' .. i, 'gcra:5/1000000/5,by=key weights:1')\n"
            "  redis.call('HSET', P .. 'types', 'm' .. i, i <= 90 and 'use=t,l' .. i or '')\n"
            "  redis.call('HSET', P .. 'weights', 'l' .. i .. '/k', '2')\n"
            "  redis.call('HSET', P .. 'key_pauses', 'l' .. i .. '/k', '8000000000000000/1')\n"
            "end\n"
            "for i = 1, 1000 do redis.call('SADD', P .. 'queues', 'q' .. i) end\n");
    look_at_all();
    before = count_commands();
    assert_int_equal(count_moved(), 181);
    before = count_commands() - before;
    print_message("rate_move: %" PRId64 " commands\n", before);
    assert_in_range(before, 500, 2500);
    assert_int_equal(redis_number("HLEN", P0 "weights"), 10);
    assert_int_equal(redis_number("HLEN", P0 "key_pauses"), 10);
    {
        char *record = redis_text("LRANGE", P0 "away:1", "0", "-1", NULL);

        assert_non_null(strstr(record, "\nweight l90/k 2\n"));
        assert_non_null(strstr(record, "\npause l90/k 8000000000000000/1\n"));
        free(record);
    }
}

static void test_wrong_arguments(void **state)
{
    static const char *const lines[] = {"rate_move t",
                                        "rate_move t 3 what by",
                                        "rate_move t x what by",
                                        "rate_home",
                                        "rate_move t 1 what by 0",
                                        "rate_move t 1 what by 0 7 1 0 0",
                                        "rate_move t 1 what by x 7 1 0 0 t",
                                        "rate_move t 1 what by 0 7 1 -1 0 t",
                                        "rate_move t 1 what by 0 7 1 0 x t",
                                        "rate_move t 1 what by 0 7 0 0 0 t",
                                        "rate_move t 1 what by 0 7 2 0 0 t",
                                        "rate_move t 1 what by 0 7 1 0 0 a",
                                        "rate_move t 1 what by 0 7 1 0 0 t a/b"};

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++)
        assert_int_equal(call_line(lines[i]), WEIR_EINPUT);
    assert_int_equal(call_line("rate_move slow 1 what by"), WEIR_ENOTNOW);
    free(redis_text("SET", P0 "homes", "x", NULL));
    assert_int_equal(call_line("rate_move t 1 what by"), WEIR_ECONFIG);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_type_goes_to_its_limit, begin, end),
        cmocka_unit_test_setup_teardown(test_no_free_burst, begin, end),
        cmocka_unit_test_setup_teardown(test_a_group, begin, end),
        cmocka_unit_test_setup_teardown(test_limits_of_one_type, begin, end),
        cmocka_unit_test_setup_teardown(test_what_may_not_move, begin, end),
        cmocka_unit_test_setup_teardown(test_killed_on_the_way, begin, end),
        cmocka_unit_test_setup_teardown(test_callers_wait_on_the_way, begin, end),
        cmocka_unit_test_setup_teardown(test_all_are_found_page_by_page, begin, end),
        cmocka_unit_test_setup_teardown(test_a_change_on_the_way_begins_anew, begin, end),
        cmocka_unit_test_setup_teardown(test_a_batch_on_the_way_is_noticed, begin, end),
        cmocka_unit_test_setup_teardown(test_a_batch_that_goes_on_is_noticed, begin, end),
        cmocka_unit_test_setup_teardown(test_other_batches_on_the_way_do_not_matter, begin, end),
        cmocka_unit_test_setup_teardown(test_shares_leave_with_their_lanes, begin, end),
        cmocka_unit_test_setup_teardown(test_very_many_limits_move_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_wrong_arguments, begin, end),
    };

    return cmocka_run_group_tests(tests, turns_start, turns_stop);
}
