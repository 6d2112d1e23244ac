/* Answers of administrative scripts: what answer() writes in Lua is what core/client/answer.h reads. */
#include <hiredis/hiredis.h>

#include "core/client/answer.h"
#include "core/script/script.h"
#include "tests/client.h"
#include "tests/library.h"
#include "tests/test.h"

static const char functions[] =
    "script('empty', function() return answer{} end)\n"
    "script('numbers', function() return answer{time = us(1795245182374117), most = us(2 ^ 53), beyond = "
    "'9007199254740993',\n"
    "    count = 7, below = -7, half = 0.5, word = 'x7', none = ''} end)\n"
    "script('shapes', function() return answer{list = {1, 2}, nothing = {}, yes = true, absent = nil} end)\n"
    "script('text', function(ARGV) return answer{word = ARGV[2], list = {{deep = ARGV[2]}}, other = "
    "'z\\195\\188'} end)\n"
    "script('array', function() return {1, 2} end)\n"
    "script('word', function() return 'not JSON' end)\n"
    "script('list', function() return '[1]' end)\n"
    "script('refusal', function() return refuse('refusal: no') end)\n"
    "late.said = {line = 40, names = 'us', given = function() return us end,\n"
    "    text = [==[return function(word) return P .. us(now) .. word end ]==]}\n"
    "late.late = {line = 50, names = 'said, answer', given = function() return late_value('said'), answer "
    "end,\n"
    "    text = [==[return function(ARGV) return answer{word = said(ARGV[2])} end ]==]}\n"
    "script('late', late_script('late'))\n";

static struct error e;

static int set_up(void **state)
{
    static const char *const none[] = {NULL};

    client_start_redis(state);
    library_load(&server, none, functions);
    return 0;
}

/* The answer of a function that is given that word, at that time; its status is in e. */
static json_t *ask_at(int64_t now_us, const char *prefix, const char *function, const char *word, size_t len)
{
    struct redisReply *reply = NULL;
    json_t *answer = NULL;
    struct args a = {0};

    e = (struct error){0};
    library_begin(&a, function, prefix, now_us);
    args_add_bytes(&a, word, len);
    if (redis_call(redis, &a, &reply, NULL, &e) == 0)
        e.status = answer_read(reply, function, &answer, &e);
    freeReplyObject(reply);
    args_free(&a);
    return answer;
}

static json_t *ask(const char *function, const char *word, size_t len)
{
    return ask_at(0, PREFIX, function, word, len);
}

/* What is compiled at its first call sees the prefix and the time of each call, and so does what it uses. */
TEST(test_late_files)
{
    json_t *first = ask_at(7, "a:", "late", "x", 1), *second = ask_at(8, "b:", "late", "y", 1);

    assert_string_equal(answer_text(first, "word"), "a:7x");
    assert_string_equal(answer_text(second, "word"), "b:8y");
    json_decref(first);
    json_decref(second);
}

TEST(test_numbers_are_exact)
{
    json_t *answer = ask("numbers", "", 0);

    assert_int_equal(answer_int(answer, "time"), 1795245182374117);
    assert_int_equal(answer_int(answer, "most"), INT64_C(1) << 53);
    assert_int_equal(answer_int(answer, "count"), 7);
    assert_int_equal(answer_int_or(answer, "below", 1), -7);
    assert_int_equal(answer_int_or(answer, "beyond", -1), -1);
    assert_int_equal(answer_int_or(answer, "half", -1), -1);
    assert_int_equal(answer_int_or(answer, "word", -1), -1);
    assert_int_equal(answer_int_or(answer, "none", -1), -1);
    assert_int_equal(answer_int_or(answer, "absent", -1), -1);
    assert_string_equal(answer_text(answer, "word"), "x7");
    assert_string_equal(answer_text(answer, "count"), "");
    assert_string_equal(answer_text(answer, "absent"), "");
    json_decref(answer);
}

TEST(test_lists_and_what_is_empty)
{
    json_t *answer = ask("shapes", "", 0), *nothing = ask("empty", "", 0);

    assert_int_equal(json_array_size(json_object_get(answer, "list")), 2);
    assert_int_equal(json_array_size(json_object_get(answer, "nothing")), 0);
    assert_int_equal(json_array_size(json_object_get(answer, "absent")), 0);
    assert_true(json_is_true(json_object_get(answer, "yes")));
    assert_true(json_is_object(nothing));
    json_decref(answer);
    json_decref(nothing);
}

static void check_text(const char *word, size_t len)
{
    json_t *answer = ask("text", word, len);
    json_t *deep = json_array_get(json_object_get(answer, "list"), 0);
    const json_t *values[] = {json_object_get(answer, "word"), json_object_get(deep, "deep")};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(json_string_length(values[i]), len);
        assert_memory_equal(json_string_value(values[i]), word, len);
    }
    assert_string_equal(answer_text(answer, "other"), "z\303\274");
    json_decref(answer);
}

TEST(test_strings_keep_all_bytes)
{
    char bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    check_text("", 0);
    check_text("plain / \"quoted\"\n", 17);
    check_text("gr\303\274n \360\237\220\237", 10);
    check_text(bytes, sizeof bytes);
    check_text("\303", 1);
    check_text("\303\274\377", 3);
    check_text("\302\200\355\240\200", 5);
}

TEST(test_what_is_no_document_is_refused)
{
    static const char *const functions_[] = {"array", "word", "list"};

    for (int i = 0; i < 3; i++) {
        assert_null(ask(functions_[i], "", 0));
        assert_int_equal(e.status, WEIR_EINTERNAL);
        assert_non_null(strstr(e.text, ": unexpected answer from Redis; is another version at work?"));
        assert_int_equal(strncmp(e.text, functions_[i], strlen(functions_[i])), 0);
    }
    assert_null(ask("refusal", "", 0));
    assert_int_equal(e.status, WEIR_EINPUT);
    assert_string_equal(e.text, "refusal: no");
}

/* The whole way, by the client of a command. */
TEST(test_a_client_asks)
{
    struct weir *client = weir_new(server.url, NULL), *wrong = weir_new("unix:///nowhere", NULL);
    json_t *answer;
    struct args a = {0};

    script_begin(&a, "status", client->prefix, 1795245182374117);
    assert_int_equal(client_ask(client, "status", &a, &answer), 0);
    assert_int_equal(answer_int(answer, "now"), 1795245182374117);
    json_decref(answer);
    script_begin(&a, "status", client->prefix, 1795245182374117);
    assert_int_equal(client_ask(wrong, "status", &a, &answer), WEIR_EUNREACHABLE);
    assert_null(answer);
    weir_free(client);
    weir_free(wrong);
}

TESTS(set_up, client_stop)
