/* JSON that programs of others have written, read laxly: what is found in it, what its strings say. How JSON
 * is checked: tests/test_job.c. */
#include "queue/job/json.h"
#include "tests/test.h"

/* A copy that ends where its memory ends, so that a sanitizer sees a byte read behind it. */
static char *exact(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);

    memcpy(copy, text, len);
    return copy;
}

static const char *read_members(struct json *j, const char *text, size_t len, struct json_members *m)
{
    const char *end;

    json_begin(j, text, len);
    j->lax = true;
    end = json_members(j, text, m);
    return end ? json_end(j, end) : NULL;
}

static void assert_span(struct span s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.at, text, s.len);
}

TEST(what_is_kept)
{
    static const char text[] =
        "{\"a\xff\":1,\"n\":-99999999999999999999,\"\\u0069d\":\"\xed\xa0\x80\\x\x01\","
        "\"e\":[1e999,\"\\\"\\udcff\\\\\"],\"\\ud83d\":0,\"n\":2}";
    char *copy = exact(text, sizeof text - 1);
    struct json_members m;
    struct json j;

    assert_non_null(read_members(&j, copy, sizeof text - 1, &m));
    assert_int_equal(m.count, 6);
    assert_span(json_member(&m, "id"), "\"\xed\xa0\x80\\x\x01\"");
    assert_span(json_member(&m, "e"), "[1e999,\"\\\"\\udcff\\\\\"]");
    assert_span(json_member(&m, "n"), "2");
    assert_span(json_member(&m, "?"), "0");
    assert_null(json_member(&m, "i").at);
    json_members_free(&m);
    free(copy);
}

TEST(what_is_nested_too_deep)
{
    enum { LEVELS = 2 * JSON_DEPTH };
    static const char front[] = "{\"d\":", inside[] = "{\"]\":\"}\\\"\"}", rest[] = ",\"id\":\"j1\"}";
    char text[sizeof front + sizeof inside + sizeof rest + 2 * LEVELS] = "", open[LEVELS + 1] = "",
                                                               closed[LEVELS + 1] = "", *copy;
    struct json_members m;
    struct json j;
    size_t len;

    memset(open, '[', LEVELS);
    memset(closed, ']', LEVELS);
    len = (size_t)snprintf(text, sizeof text, "%s%s%s%s%s", front, open, inside, closed, rest);
    copy = exact(text, len);
    assert_non_null(read_members(&j, copy, len, &m));
    assert_span(json_member(&m, "id"), "\"j1\"");
    json_members_free(&m);
    assert_null(read_members(&j, copy, len - strlen(rest) - JSON_DEPTH, &m));
    assert_string_equal(j.fault, "the text ends too early");
    json_members_free(&m);
    free(copy);
}

/* Wherever it ends: refused, and what was whole before is found. */
TEST(what_breaks_off)
{
    static const char text[] = "{\"id\":\"j1\",\"\\ud83d\":\"\\\"\xe9\\\\\",\"n\":[1.5e3,true]}";

    for (size_t len = 1; len < sizeof text - 1; len++) {
        char *copy = exact(text, len);
        struct json_members m;
        struct json j;

        assert_null(read_members(&j, copy, len, &m));
        assert_non_null(j.fault);
        if (len < strlen("{\"id\":\"j1\""))
            assert_null(json_member(&m, "id").at);
        else
            assert_span(json_member(&m, "id"), "\"j1\"");
        json_members_free(&m);
        free(copy);
    }
}

TEST(what_a_string_says)
{
    static const struct {
        struct span string;
        const char *says;
    } cases[] = {
#define CASE(string, says) {{string, sizeof string - 1}, says}
        CASE("\"\"", ""),
        CASE("\"a\\n\\\"\\\\\\u00e9\xc3\xa9\\ud83d\\ude00\"", "a\n\"\\\xc3\xa9\xc3\xa9\xf0\x9f\x98\x80"),
        CASE("\"\\udcff \\ud83d\\n\\ud83d\\ud83d\\ude00\"", "? ?\n?\xf0\x9f\x98\x80"),
        CASE("\"\\u0000\0\\u00\\u\\x\"", "???00??"),
        CASE("\"\xff\xc3\"", "??"),
        CASE("\"\xf0\x9f\x98\"", "???"),
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *copy = exact(cases[i].string.at, cases[i].string.len);
        char text[64];
        size_t len = json_text((struct span){copy, cases[i].string.len}, text, sizeof text);

        assert_string_equal(text, cases[i].says);
        assert_int_equal(len, strlen(text));
        free(copy);
    }
}

/* Whole characters only. */
TEST(what_fits)
{
    static const char string[] = "\"a\xc3\xa9\\ud83d\\ude00b\"";
    static const size_t fits[] = {0, 0, 1, 1, 3, 3, 3, 3, 7, 8, 8};

    for (size_t size = 1; size < sizeof fits / sizeof *fits; size++) {
        char *text = malloc(size);

        assert_int_equal(json_text((struct span){string, sizeof string - 1}, text, size), fits[size]);
        assert_int_equal(strlen(text), fits[size]);
        free(text);
    }
}

TESTS(NULL, NULL)
