/* Limits that workers know of are written again when Redis has lost them, or has older ones (rate_known, rate_again): tests/plays/known.txt;
 * here very many of them, and answers as they are read. */
#include "queue/limits/known.h"

#include <inttypes.h>

#include "tests/play.h"
#include "tests/scene.h"

static struct known_limits kept; /* by a test that needs no other */

static int begin(void **state)
{
    known_limits_free(&kept);
    return turns_flush(state);
}

static int stop(void **state)
{
    known_limits_free(&kept);
    return turns_stop(state);
}

/* A page of it. */
static void learn_page(const char *birth, struct known_limits *known, const char *const *types, int count)
{
    struct args a = {0};

    rate_known_request(&a, PREFIX, turns.now_us, known, birth, (struct names){types, count});
    assert_int_equal(turns_send(&a), 0);
    assert_int_equal(rate_known_reply(turns.reply, known, &turns.error), 0);
}

/* What a worker of these types knows, all of it; birth: of the data that it knows. Returns how many pages that were. */
static int learn_of(const char *birth, struct known_limits *known, const char *const *types, int count)
{
    int pages = 0;

    do {
        learn_page(birth, known, types, count);
        pages++;
    } while (known_limits_asks_more(known) && pages < 1000);
    assert_false(known_limits_asks_more(known));
    return pages;
}

static void learn(struct known_limits *known, const char *const *types, int count)
{
    learn_of("", known, types, count);
}

static int again_page(struct known_limits *known, char written[200])
{
    struct args a = {0};
    int rc;

    rate_again_request(&a, PREFIX, turns.now_us, "worker w@host", known);
    rc = turns_send(&a);
    return rc ? rc : rate_again_reply(turns.reply, known, written, 200, &turns.error);
}

static void lose_all(void)
{
    redis_do("FLUSHALL");
    turns.now_us += SECOND_US;
}

static void rate(const char *limit, const char *rules)
{
    turns.now_us += SECOND_US;
    assert_int_equal(turns_rate(limit, rules), 0);
}

TEST_WITH(test_what_does_not_fit_is_counted, begin, NULL)
{
    enum { TYPES = 2500 };
    const char **types = numbered("t", TYPES);

    for (int i = 0; i < TYPES; i++)
        redis_do("HSET", PREFIX "limits", types[i], "gcra:5/1000000/5");
    redis_do("HSET", PREFIX "limits", "t0", "nothing that can be read");
    redis_do("HSET", PREFIX "limits", "t1", "gcra:5/1000000/5,by=key weights:1");
    for (int i = 0; i < TYPES; i++)
        redis_do("HSET", PREFIX "weights", textf("t1/%d", i), "2");
    learn(&kept, types, TYPES);
    assert_int_equal(kept.records.count, 1000);
    assert_int_equal(kept.left_out, 1499); /* t1, and those behind t1001 */
}

#define MANY 3000

/* Every tenth has a limit, and ten of them use another one, which has weights. */
static void limit_many(void)
{
    redis_do("EVAL",
             "local P = ARGV[1]\n"
             "redis.call('HSET', P .. 'limits', 'shared', 'gcra:5/1000000/5,by=key weights:1')\n"
             "for i = 1, 100 do redis.call('HSET', P .. 'weights', 'shared/k' .. i, i) end\n"
             "for i = 0, 2999 do\n"
             "  redis.call('HSET', P .. 'types', 't' .. i, i % 300 == 0 and 'use=shared' or '')\n"
             "  if i % 10 == 0 then redis.call('HSET', P .. 'limits', 't' .. i, "
             "'gcra:5/1000000/5') end\n"
             "end\n"
             "redis.call('HSET', P .. 'revisions', '*', 7)\n"
             "return 0",
             "0", PREFIX);
}

/* Each page is short, and what is on several of them is kept once. */
TEST_WITH(test_very_many_types_are_learned_page_by_page, begin, NULL)
{
    const char **types = numbered("t", MANY);
    int64_t before, most = 0;
    int pages = 0;

    limit_many();
    do {
        before = count_commands();
        learn_page("", &kept, types, MANY);
        before = count_commands() - before;
        most = before > most ? before : most;
        assert_true(kept.records.count == 0 || !known_limits_asks_more(&kept));
    } while (known_limits_asks_more(&kept) && ++pages < 100);
    print_message("%d pages, %" PRId64 " commands\n", pages, most);
    assert_in_range(pages, 3, 12);
    assert_in_range(most, 1, 150);
    assert_int_equal(kept.records.count, 300 + 10 + 1);
    assert_int_equal(kept.left_out, 0);
    assert_string_equal(kept.newest, "7");
    learn_page("", &kept, types, MANY); /* nothing is new */
    assert_int_equal(turns.reply->elements, 1);
    assert_false(known_limits_asks_more(&kept));
}

/* By what a heartbeat says. */
TEST_WITH(test_what_is_newer_is_asked_for, begin, NULL)
{
    static const struct {
        const char *known, *newest;
        bool older;
    } cases[] = {{"", "0", true},
                 {"0", "0", false},
                 {"0", "1795000000000000", true},
                 {"1795000000000000", "1795000000000000", false},
                 {"999999999999999", "1795000000000000", true},
                 {"1795000000000001", "1795000000000000", false}, /* Redis has lost data */
                 {"1795000000000000", "", true}}; /* its key cannot be read: rate_known says so */

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct known_limits known = {0};

        strcpy(known.newest, cases[i].known);
        assert_int_equal(
            known_limits_are_older(&known, (struct span){cases[i].newest, strlen(cases[i].newest)}),
            cases[i].older);
    }
}

/* The revision that is known is that of the first page. */
TEST_WITH(test_a_change_between_pages_is_learned_next, begin, NULL)
{
    const char **types = numbered("t", MANY);
    char first[24];

    limit_many();
    learn_page("", &kept, types, MANY);
    strcpy(first, kept.pages.newest);
    rate("t1", "7/1000000/7"); /* its page was read */
    assert_true(learn_of("", &kept, types, MANY) > 1);
    assert_string_equal(kept.newest, first);
    assert_int_equal(kept.records.count, 311);
    assert_true(learn_of("", &kept, types, MANY) > 1);
    assert_int_equal(kept.records.count, 312);
    assert_true(strcmp(kept.newest, first) != 0);
}

/* Then all that was known before stays known. */
TEST_WITH(test_a_loss_between_pages_forgets_nothing, begin, NULL)
{
    static const char *const births[] = {"first", ""};
    const char **types = numbered("t", MANY);

    for (size_t i = 0; i < COUNT(births); i++) {
        struct known_limits known = {0};

        lose_all();
        redis_do("HSET", PREFIX "about", "birth", "first");
        limit_many();
        learn_of(births[i], &known, types, MANY);
        rate("t1", "7/1000000/7");
        learn_page(births[i], &known, types, MANY);
        assert_true(known_limits_asks_more(&known));
        lose_all();
        if (!*births[i])
            redis_do("HSET", PREFIX "revisions", "*",
                     "8"); /* newer than what was known, older than the first page */
        learn_of(births[i], &known, types, MANY);
        assert_int_equal(known.records.count, 311);
        assert_string_equal(known.newest, "7");
        known_limits_free(&known);
    }
}

/* They come back by pages, each of which looks at some of the types: those that changed meanwhile are looked at again. */
TEST_WITH(test_many_limits_come_back_bit_by_bit, begin, NULL)
{
    enum { TYPES = 200 };
    const char **types = numbered("t", TYPES);
    char written[200];
    int calls = 0;

    for (int i = 0; i < TYPES; i++)
        redis_do("HSET", PREFIX "limits", types[i], "gcra:5/1000000/5");
    learn(&kept, types, TYPES);
    lose_all();
    redis_do("EVAL",
             "for i = 0, 2999 do redis.call('HSET', ARGV[1] .. 'types', 't' .. i, i % 3 == 0 and "
             "'use=t1' or '') end "
             "return 0",
             "0", PREFIX);
    known_limits_begin_again(&kept);
    for (; known_limits_has_more(&kept) && calls < 100; calls++) {
        int64_t before = count_commands();

        assert_int_equal(again_page(&kept, written), 0);
        assert_in_range(count_commands() - before, 1, 1300);
    }
    assert_in_range(calls, 7 * 3, 7 * 4); /* 30 limits at a time, for each 3 or 4 pages of the types */
    assert_int_equal(redis_number("HLEN", PREFIX "limits"), TYPES);
}

TEST_WITH(test_wrong_arguments_change_nothing, begin, NULL)
{
    static const char *const records[] = {
        "",
        "limit",
        "limit mail 7",
        "limit mail 7 ",
        "limit mail 7 nothing",
        "limit mail 0 gcra:5/1000000/5",
        "limit mail 99999999999999999 gcra:5/1000000/5",
        "limit mail -7 gcra:5/1000000/5",
        "limit ma/il 7 gcra:5/1000000/5",
        "limit mail 7 gcra:5/1000000/5\nk",
        "limit mail 7 gcra:5/1000000/5\nk two",
        "gate mail 7 gcra:5/1000000/5",
        "type mail x use=shared",
    };
    static const char *const keys[] = {"limits", "types", "weights", "changes", "revisions", "gate:mail#0"};
    static const char *const pages[] = {"rate_known", "rate_known _ _ 1000 1000 0_0",
                                        "rate_known _ _ x 1000 0 0 t", "rate_known _ _ 1000 -1 0 0 t"};
    const char *words[] = {"w", "0", "", "limit mail 7 gcra:5/1000000/5", ""};
    char *before = turns_digest();

    for (size_t i = 0; i < COUNT(records); i++) {
        words[4] = records[i];
        fail_if(turns_script("rate_again", words, 5) == 0, "taken: %s", records[i]);
    }
    words[1] = "x";
    assert_true(turns_script("rate_again", words, 4) != 0);
    words[1] = "0";
    assert_true(turns_script("rate_again", NULL, 0) != 0);
    for (size_t i = 0; i < COUNT(pages); i++)
        assert_true(call_line(pages[i]) != 0);
    turns_unchanged(before);
    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *key = textf(PREFIX "%s", keys[i]);

        redis_do("FLUSHALL");
        redis_do("SADD", key, "x");
        assert_true(turns_script("rate_again", words, 4) != 0);
        fail_if(!strstr(turns.error.text, key), "%s is not named: %s", key, turns.error.text);
        assert_int_equal(redis_number("DBSIZE"), 1);
    }
}

static const struct redisReply *answer(const char *lua)
{
    struct args a = {0};

    args_add(&a, "EVAL");
    args_add(&a, lua);
    args_add(&a, "0");
    assert_int_equal(turns_send(&a), 0);
    return turns.reply;
}

TEST_WITH(test_answers_are_checked, begin, NULL)
{
    static const char *const wrong[] = {"return 'x'",
                                        "return {1}",
                                        "return {{}}",
                                        "return {'1', '0', 7}",
                                        "return {'123456789012345678901234567890', 0, 0, 0}",
                                        "return {'7', 0, 0, 2}",
                                        "return {'7', 0, 0, 0, 7}",
                                        "return {'7', 0, 0, 'x'}",
                                        "return {'7', 0, 1, 1}", /* no type was asked for */
                                        "return {'7', 0, 'x', 0}",
                                        "return {'7', 0, 0, 1}"}; /* it would never end */
    static const char *const wrong_again[] = {"return 7", "return {7}", "return {'0'}", "return {'0', 7}",
                                              "return {'123456789012345678901234567890', ''}"};
    char written[8];
    struct error e;

    known_limits_ask_anew(&kept);
    for (size_t i = 0; i < COUNT(wrong); i++)
        fail_if(rate_known_reply(answer(wrong[i]), &kept, &e) == 0, "%s: taken", wrong[i]);
    assert_int_equal(rate_known_reply(answer("return {'7', 3, 0, 0, 'a', 'b'}"), &kept, &e), 0);
    assert_int_equal(kept.records.count, 2);
    assert_int_equal(kept.left_out, 3);
    assert_string_equal(kept.newest, "7");
    for (size_t i = 0; i < COUNT(wrong_again); i++)
        if (rate_again_reply(answer(wrong_again[i]), &kept, written, sizeof written, &e) == 0)
            fail_msg("%s: taken", wrong_again[i]);
    assert_int_equal(rate_again_reply(answer("return {'0', '', 'limit a', 'limit b'}"), &kept, written,
                                      sizeof written, &e),
                     0);
    assert_string_equal(written, "limit a");
}

PLAY("known")

TESTS(turns_start, stop)
