/* What has happened, by minutes and hours: record.lua writes it, history.lua reads it, at a time of the test's own. */
#include "tests/scene.h"

#include <time.h>

#include "queue/history/history.h"
#include "queue/turn/record.h"
#include "tests/proxy.h"

#define MINUTE_US (60 * SECOND_US)
#define HOUR_US (60 * MINUTE_US)
#define OF_T PREFIX "minutes:t/t"

static struct weir *w;
static json_t *history; /* of the last look */

static int begin(void **state)
{
    w = weir_new(turns.server.url, NULL);
    return w ? scene_begin(state) : -1;
}

static int end(void **state)
{
    json_decref(history);
    history = NULL;
    weir_free(w);
    return 0;
}

/* What is being recorded. */
static struct args a;

static void begin_rows(enum record_what what, const char *name)
{
    record_request(&a, PREFIX, turns.now_us);
    record_row(&a, what, span_str(name));
}

/* Returns what is wrong with a key of theirs; "": nothing. */
static const char *end_rows(void)
{
    struct span wrong;

    must(turns_send(&a));
    must(record_reply(turns.reply, &wrong, &turns.error));
    return textf("%.*s", (int)wrong.len, wrong.at);
}

/* One row with one count. Returns what is wrong with its key; "": nothing. */
static const char *count(enum record_what what, const char *name, char code, int64_t n)
{
    begin_rows(what, name);
    record_count(&a, code, n);
    return end_rows();
}

static void counts(enum record_what what, const char *name, char code, int64_t n)
{
    assert_string_equal(count(what, name, code, n), "");
}

static int try_look(const char *name, bool of_limit, bool by_hours, int slots)
{
    json_decref(history);
    return history_ask(w, turns.now_us, &(struct history_call){name, of_limit, by_hours, slots}, &history);
}

static void look(const char *name, bool of_limit, bool by_hours, int slots)
{
    fail_if(try_look(name, of_limit, by_hours, slots) != 0, "%s", weir_message(w));
}

/* The slots, as JSON without their times. */
static void expect_slots(const char *expected)
{
    json_t *slots = json_deep_copy(json_object_get(history, "slots")), *slot;
    size_t i;
    char *text;

    json_array_foreach(slots, i, slot)
        json_object_del(slot, "at");
    text = json_dumps(slots, JSON_SORT_KEYS | JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(slots);
}

static int64_t at_of(size_t slot)
{
    return answer_int(json_array_get(json_object_get(history, "slots"), slot), "at");
}

TEST_WITH(test_counts_add_up_by_minutes_and_hours, begin, end)
{
    int64_t minute_us = turns.now_us / MINUTE_US * MINUTE_US;

    counts(RECORD_TYPE, "t", 's', 3);
    counts(RECORD_TYPE, "t", 's', 4);
    counts(RECORD_TYPE, "t", 'd', 1);
    turns.now_us += MINUTE_US;
    counts(RECORD_TYPE, "t", 'x', 2);
    look("t", false, false, 10);
    expect_slots("[{\"done\":1,\"starts\":7},{\"dead\":2}]");
    assert_int_equal(at_of(0), minute_us);
    assert_int_equal(at_of(1), minute_us + MINUTE_US);
    assert_int_equal(answer_int(history, "step"), MINUTE_US);
    assert_null(json_object_get(history, "starts_now"));
    look("t", false, false, 1);
    expect_slots("[{\"dead\":2}]");
    look("t", false, true, 10);
    expect_slots("[{\"dead\":2,\"done\":1,\"starts\":7}]");
    assert_int_equal(at_of(0), turns.now_us / HOUR_US * HOUR_US);
    look("t", true, false, 10); /* a limit of the same name is another thing */
    expect_slots("[]");
}

TEST_WITH(test_histograms_and_reasons, begin, end)
{
    begin_rows(RECORD_TYPE, "t");
    record_bucket(&a, 'R', record_bucket_of(5000000000000), 1);
    record_bucket(&a, 'R', record_bucket_of(1001), 2);
    record_bucket(&a, 'R', record_bucket_of(1000), 3);
    record_bucket(&a, 'A', record_bucket_of(67108864000), 5);
    record_bucket(&a, 'K', 1, 0);
    record_bucket(&a, 'E', 0, 7);
    record_row(&a, RECORD_TYPE, span_str("t"));
    record_bucket(&a, 'R', record_bucket_of(1), 1);
    record_row(&a, RECORD_LIMIT, span_str("t"));
    record_count(&a, 'g', 9);
    record_count(&a, 'n', 1);
    record_count(&a, 'e', 2);
    record_count(&a, 'h', 3);
    record_count(&a, 'l', 4);
    record_reason(&a, "429 Slow down; a=b", 2);
    record_reason(&a, "", 1);
    end_rows();
    look("t", false, false, 1);
    expect_slots(
        "[{\"run\":[[1,4],[2,2],[2147483648,1]],\"wait\":{\"executor\":[[1,7]],\"rate\":[[67108864,5]]}}]");
    look("t", true, false, 1);
    expect_slots("[{\"granted\":9,\"throttled\":{\"\":1,\"429 Slow down; a=b\":2},"
                 "\"wasted\":{\"held\":3,\"late\":4,\"no_executor\":2,\"no_job\":1}}]");
    assert_int_equal(history_sum(history).granted, 9);
    assert_int_equal(history_sum(history).throttled, 3);
    assert_int_equal(history_sum(history).late, 4);
}

TEST_WITH(test_few_reasons_are_kept, begin, end)
{
    for (int i = 0; i < 20; i++) {
        begin_rows(RECORD_LIMIT, "t");
        record_reason(&a, textf("why%d", i % 10), 1);
        end_rows();
    }
    look("t", true, false, 1);
    expect_slots(
        "[{\"throttled\":{\"other\":4,\"why0\":2,\"why1\":2,\"why2\":2,\"why3\":2,\"why4\":2,\"why5\":2,"
        "\"why6\":2,\"why7\":2}}]");
}

/* Each slot is used again after its round; what is older is not shown as new, and the key does not grow. */
TEST_WITH(test_rings_wrap, begin, end)
{
    for (int i = 0; i < 200; i++) {
        counts(RECORD_TYPE, "t", 's', i + 1);
        turns.now_us += MINUTE_US;
    }
    turns.now_us -= MINUTE_US;
    look("t", false, false, 1000);
    assert_int_equal(json_array_size(json_object_get(history, "slots")), HISTORY_MINUTES);
    assert_int_equal(answer_int(json_array_get(json_object_get(history, "slots"), 0), "starts"), 81);
    assert_int_equal(at_of(HISTORY_MINUTES - 1), turns.now_us / MINUTE_US * MINUTE_US);
    for (int i = 0; i < 100; i++) {
        turns.now_us += HOUR_US;
        counts(RECORD_TYPE, "t", 's', 1);
    }
    look("t", false, true, 1000);
    assert_int_equal(json_array_size(json_object_get(history, "slots")), HISTORY_HOURS);
    look("t", false, false, 1000);
    assert_int_equal(json_array_size(json_object_get(history, "slots")), 2); /* this hour, and the last one */
    assert_true(redis_number("HLEN", OF_T) <= HISTORY_MINUTES + HISTORY_HOURS + 1); /* and all */
}

/* What is later than now is not shown; when its time comes, it counts again. */
TEST_WITH(test_a_clock_that_is_set_back, begin, end)
{
    counts(RECORD_TYPE, "t", 's', 5);
    turns.now_us -= 3 * MINUTE_US;
    look("t", false, false, 10);
    expect_slots("[]");
    counts(RECORD_TYPE, "t", 's', 1);
    look("t", false, false, 10);
    expect_slots("[{\"starts\":1}]");
    turns.now_us += 3 * MINUTE_US;
    look("t", false, false, 10);
    expect_slots("[{\"starts\":1},{\"starts\":5}]");
}

static void add_start(int64_t ago_us, int64_t n)
{
    record_start(&a, (turns.now_us - ago_us) / 100000, n);
}

TEST_WITH(test_starts_of_the_last_minute, begin, end)
{
    const json_t *starts;

    turns.now_us = turns.now_us / SECOND_US * SECOND_US + 950000;
    for (int pass = 0; pass < 2; pass++) {
        begin_rows(RECORD_STARTS, "mail");
        add_start(0, 1);
        add_start(300000, 2);
        add_start(2 * SECOND_US, 3);
        add_start(30 * SECOND_US, 4);
        add_start(MINUTE_US + SECOND_US, 5);
        add_start(-5 * SECOND_US, 6);
        end_rows();
    }
    look("mail", true, false, 1);
    starts = json_object_get(history, "starts_now");
    assert_int_equal(json_array_size(starts), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *start = json_array_get(starts, i);
        const int64_t agos[] = {30 * SECOND_US, 2 * SECOND_US, 300000, 0};

        assert_int_equal(answer_int_at(start, 0), (turns.now_us - agos[i]) / 100000 * 100000);
        assert_int_equal(answer_int_at(start, 1), 2 * (4 - (int)i));
    }
    turns.now_us += 40 * SECOND_US;
    look("mail", true, false, 1);
    assert_int_equal(json_array_size(json_object_get(history, "starts_now")), 3);
    turns.now_us += 120 * SECOND_US;
    look("mail", true, false, 1);
    assert_int_equal(json_array_size(json_object_get(history, "starts_now")), 0);
}

/* By seconds, beside the starts of the same seconds. */
TEST_WITH(test_slots_wasted_in_the_last_minute, begin, end)
{
    int64_t second = turns.now_us / SECOND_US;
    char expected[200], *text;

    for (int pass = 0; pass < 2; pass++) {
        begin_rows(RECORD_STARTS, "mail");
        record_start(&a, 10 * (second - 2), 1);
        record_lost(&a, 'n', second - 2, 3);
        record_lost(&a, 'e', second - 1, 1);
        record_lost(&a, 'h', second - 1, 2);
        record_lost(&a, 'l', second - 70, 9);
        end_rows();
    }
    look("mail", true, false, 1);
    snprintf(expected, sizeof expected,
             "[[%ld000000,\"no_job\",6],[%ld000000,\"no_executor\",2],[%ld000000,\"held\",4]]",
             (long)second - 2, (long)second - 1, (long)second - 1);
    text = json_dumps(json_object_get(history, "wasted_now"), JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    assert_int_equal(json_array_size(json_object_get(history, "starts_now")), 1);
    look("mail", false, false, 1);
    assert_null(json_object_get(history, "wasted_now"));
}

TEST_WITH(test_keys_expire, begin, end)
{
    struct span wrong;
    char hour[24];

    record_request(&a, PREFIX, -1);
    record_row(&a, RECORD_TYPE, span_str("t"));
    record_count(&a, 's', 1);
    record_row(&a, RECORD_STARTS, span_str("t"));
    record_start(&a, (int64_t)time(NULL) * 10, 1);
    must(turns_send(&a));
    must(record_reply(turns.reply, &wrong, &turns.error));
    assert_in_range(redis_number("PTTL", OF_T), 259000000, 259200000);
    assert_in_range(redis_number("PTTL", PREFIX "ribbon:t"), 100000, 120000);
    assert_int_equal(redis_number("PERSIST", OF_T), 1);
    turns.now_us = -1;
    counts(RECORD_TYPE, "t", 's', 1);
    assert_int_equal(redis_number("PTTL", OF_T), -1);
    snprintf(hour, sizeof hour, "h%ld", (long)time(NULL) / 3600 % HISTORY_HOURS);
    redis_do("HSET", OF_T, hour, "1 s1"); /* another hour begins */
    counts(RECORD_TYPE, "t", 's', 1);
    assert_in_range(redis_number("PTTL", OF_T), 259000000, 259200000);
}

TEST_WITH(test_foreign_keys_and_slots, begin, end)
{
    redis_do("SET", OF_T, "mine");
    redis_do("RPUSH", PREFIX "ribbon:t", "mine");
    assert_string_equal(count(RECORD_TYPE, "t", 's', 1), OF_T " is a string, not a hash");
    assert_int_equal(try_look("t", false, false, 1), WEIR_ECONFIG);
    assert_non_null(strstr(weir_message(w), OF_T " is a string"));
    counts(RECORD_LIMIT, "t", 'g', 1); /* holds up no other */
    look("t", true, false, 1);
    expect_slots("[{\"granted\":1}]");
    assert_int_equal(json_array_size(json_object_get(history, "starts_now")), 0);
    redis_do("DEL", OF_T);
    counts(RECORD_TYPE, "t", 's', 1);
    redis_do("HSET", OF_T, "m0", "what", "m1", "", "x", "1");
    for (int i = 0; i < HISTORY_MINUTES; i++)
        redis_do("HSET", OF_T, textf("m%d", i), textf("%ld s1x zz5 ?? =3 s2", turns.now_us / MINUTE_US));
    look("t", false, false, HISTORY_MINUTES);
    expect_slots("[{\"starts\":2}]");
}

TEST_WITH(test_wrong_counts_change_nothing, begin, end)
{
    static const char *const rows[][3] = {
        {"t", "a/b", " s1"},   {"x", "t", " s1"},      {"t", "t", " g1"},
        {"l", "t", " s1"},     {"t", "t", "s1"},       {"t", "t", " s1 "},
        {"t", "t", " s-1"},    {"t", "t", " s1.5"},    {"t", "t", " sx"},
        {"t", "t", " s"},      {"t", "t", " Ra1 R01"}, {"l", "t", " :a1"},
        {"l", "t", " :a/b=1"}, {"s", "t", " x1"},      {"s", "t", " x=1"},
        {"s", "t", " -5=1"},   {"s", "t", " 5"},       {"t", "t", " s9999999999999999"},
    };
    const char *words[6] = {"t", "t", " s1"};

    for (size_t i = 0; i < COUNT(rows); i++) {
        memcpy(words + 3, rows[i], sizeof rows[i]);
        if (turns_script("record", words, COUNT(words)) != WEIR_EINPUT)
            fail_msg("%s %s%s: %s", rows[i][0], rows[i][1], rows[i][2], turns.error.text);
    }
    assert_int_equal(redis_number("DBSIZE"), 0);
}

TEST_WITH(test_wrong_arguments_change_nothing, begin, end)
{
    expect_refused(
        WORDS("record | t | t t", "history",
              "history | t | t t m | x t m 1 | t a/b m 1 | t t x 1 | t t m 0 | t t m x | t t m 1 more"));
    assert_int_equal(redis_number("DBSIZE"), 0);
}

/* Of three partitions "t" lives on 0, and "slow" on 2. */
TEST_WITH(test_what_lives_elsewhere_is_passed_over, begin, end)
{
    redis_do("HSET", PREFIX "about", "partitions", "3");
    redis_do("HSET", "weir:{2}:about", "partitions", "3");
    counts(RECORD_TYPE, "slow", 's', 1);
    assert_int_equal(redis_number("EXISTS", PREFIX "minutes:t/slow"), 0);
    counts(RECORD_TYPE, "t", 's', 1);
    look("slow", false, false, 1); /* asked where it lives */
    expect_slots("[]");
    look("t", false, false, 1);
    expect_slots("[{\"starts\":1}]");
}

/* Several are asked for at once; one that was lost or refused is asked for again. */
TEST_WITH(test_several_in_one_round_trip, begin, end)
{
    enum { MOST = HISTORY_AT_ONCE };
    struct proxy *proxy = proxy_start(&turns.server);
    struct weir *far = weir_new(proxy_url(proxy), NULL);
    struct history_call calls[MOST];
    json_t *histories[MOST];
    int64_t took_us;
    int before;

    counts(RECORD_TYPE, "t", 's', 3);
    counts(RECORD_LIMIT, "t", 'g', 5);
    for (int i = 0; i < MOST; i++)
        calls[i] = (struct history_call){.name = "t", .of_limit = i % 2, .slots = 1};
    calls[7].name = "none";
    for (int i = 0; i < 4; i++) {
        assert_int_equal(client_ping(far, &took_us), 0);
        if (i == 1)
            redis_do("FUNCTION", "FLUSH", NULL);
        if (i == 2)
            proxy_cut_before(proxy, PROXY_REPLIES, 5);
        if (i == 3)
            redis_do("SET", PREFIX "minutes:t/none", "x");
        calls[7].of_limit = false;
        before = proxy_trips(proxy);
        assert_int_equal(history_ask_each(far, turns.now_us, calls, MOST, histories), 0);
        if (i == 0)
            assert_int_equal(proxy_trips(proxy) - before, 1);
        for (int k = 0; k < MOST; k++) {
            const json_t *slots = json_object_get(histories[k], "slots"), *slot = json_array_get(slots, 0);

            if (k == 7)
                assert_int_equal(json_is_object(histories[k]), i != 3);
            else
                assert_int_equal(answer_int(slot, k % 2 ? "granted" : "starts"), k % 2 ? 5 : 3);
            json_decref(histories[k]);
        }
    }
    weir_free(far);
    proxy_stop(proxy);
}

/* The doctor knows the keys. */
TEST_WITH(test_the_doctor_is_content, begin, end)
{
    counts(RECORD_TYPE, "t", 's', 1);
    counts(RECORD_LIMIT, "t", 'g', 1);
    turns_check();
}

TESTS(turns_start, turns_stop)
