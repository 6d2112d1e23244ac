/* The JSON API and what is nasty: each row of the tables of serve/documents.c and serve/actions.c, with names and fields of every kind. The
 * answer is one clear error with the right status, or the thing shown as it is. */
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/test.h"
#include <jansson.h>

#include "serve/resource.h"
#include "tests/client.h"
#include "tests/http.h"
#include "tests/serving.h"

#define MIB (1024 * 1024)

/* As they stand in an address or a form. */
static const char *const nasty[] = {
    "",
    "%00",
    "a%00b",
    "%c0%af",
    "%ed%a0%80",
    "%ff",
    "\xff",
    "%22",
    "'",
    "%5c",
    "..",
    "%2e%2e%2fstatus",
    "a%2fb",
    "a%20b",
    "%0a",
    "%0d%0aX:1",
    "%e2%80%ae",
    "%",
    "%zz",
    "*",
    "@",
    "a;b",
    "%7b%7d",
    "-1",
    "+5",
    "0x10",
    "1e400",
    "1.5",
    "NaN",
    "Infinity",
    "null",
    "true",
    "9007199254740993",
    "%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E",
    "%2010",
    "%F0%9F%92%A9",
    "9223372036854775807",
    "9223372036854775808",
    "99999999999999999999999999",
    "%1b[31m",
};

static int start(void **state)
{
    serving_setup(state);
    serving_start();
    return 0;
}

static int stop(void **state)
{
    serving_end();
    return serving_teardown(state);
}

/* ---- Any answer */

/* An error is one line for people, which says no script's words. */
static bool is_clear(const char *error)
{
    size_t len = error ? strlen(error) : 0;

    for (size_t i = 0; i < len; i++)
        if ((unsigned char)error[i] < ' ')
            return false;
    return len > 0 && len < 500 && !strstr(error, "wants now");
}

static void check(const char *method, const char *path, const char *headers, const char *body)
{
    json_error_t why;
    json_t *doc;
    bool fine;

    http_request(serving.where, method, path, headers, body, &serving.reply);
    doc = json_loads(serving.reply.body, 0, &why);
    fine = serving.reply.status == 200 ? doc != NULL
           : serving.reply.status == 400 || serving.reply.status == 404 || serving.reply.status == 409 ||
                   serving.reply.status == 413
               ? is_clear(json_string_value(json_object_get(doc, "error")))
               : false;
    if (!fine || strstr(serving.reply.head, "\nX:1") ||
        strcmp(http_header(&serving.reply, "Content-Type"), "application/json") != 0)
        fail_msg("%s %.200s %.200s: %d %s", method, path, body ? body : "", serving.reply.status,
                 serving.reply.body);
    json_decref(doc);
}

/* Its path with that in place of "*", and behind the "?" what follows. */
static char *path_of(const struct resource *row, const char *name, const char *query)
{
    const char *star = strchr(row->path, '*');
    size_t before = star ? (size_t)(star - row->path) : strlen(row->path);
    char *path;

    assert_true(asprintf(&path, "%.*s%s%s%s", (int)before, row->path, star ? name : "", star ? star + 1 : "",
                         query) > 0);
    return path;
}

static void check_name(const struct resource *row, const char *method, const char *name)
{
    char *path = path_of(row, name, "");

    const char *body = strstr(path, "/pause") ? "for=1m" : "rules=1/s&for=1m";

    check(method, path, FORM, strcmp(method, "POST") == 0 ? body : NULL);
    free(path);
}

TEST_WITH(test_names, client_flush, NULL)
{
    char *const long_name = malloc(5001);

    memset(long_name, 'x', 5000);
    for (int len = 5000; len > 0; len = len == 5000 ? 512 : len == 512 ? 129 : 0) {
        long_name[len] = '\0';
        for (const struct resource *row = document_resources; row->path; row++)
            check_name(row, "GET", long_name);
        for (const struct resource *row = action_resources; row->path; row++)
            check_name(row, "POST", long_name);
    }
    for (size_t i = 0; i < COUNT(nasty); i++) {
        for (const struct resource *row = document_resources; row->path; row++)
            check_name(row, "GET", nasty[i]);
        for (const struct resource *row = action_resources; row->path; row++)
            check_name(row, "POST", nasty[i]);
    }
    free(long_name);
}

/* ---- Fields */

static void check_field(const struct resource *row, bool acts, const char *field, int len, const char *value)
{
    char *query, *path;

    assert_true(asprintf(&query, "%s%.*s=%s", acts ? "" : "?", len, field, value) > 0);
    path = path_of(row, "mail", acts ? "" : query);
    check(acts ? "POST" : "GET", path, acts ? FORM : "", acts ? query : NULL);
    free(path);
    free(query);
}

static void check_fields(const struct resource *table, bool acts, const char *value)
{
    for (const struct resource *row = table; row->path; row++) {
        size_t len;

        for (const char *field = row->fields; *field; field += len + strspn(field + len, " ")) {
            len = strcspn(field, " ");
            check_field(row, acts, field, (int)len, value);
        }
        check_field(row, acts, "nonsense", 8, value);
        if (serving.reply.status != 400 && serving.reply.status != 413)
            fail_msg("%s takes a field that it does not know: %s", row->path, serving.reply.body);
    }
}

TEST_WITH(test_fields, client_flush, NULL)
{
    char *const large = malloc(MIB + 1);

    serving_weir("rate set mail 10/s,by=key");
    serving_weir("enqueue mail --id mail");
    for (size_t i = 0; i < COUNT(nasty); i++) {
        check_fields(document_resources, false, nasty[i]);
        check_fields(action_resources, true, nasty[i]);
    }
    memset(large, 'x', MIB);
    large[8000] = '\0';
    check_fields(document_resources, false, large);
    large[8000] = 'x';
    for (size_t len = MIB; len; len = len == MIB ? 60000 : 0) {
        large[len] = '\0';
        check_fields(action_resources, true, large);
    }
    free(large);
}

TEST_WITH(test_bodies_that_are_no_fields, client_flush, NULL)
{
    static const char *const bodies[] = {
        "{",
        "[]",
        "null",
        "\"a\"",
        "{\"a\":[1]}",
        "{\"a\":{}}",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1.5}",
        "{\"a\":1e400}",
        "{\"a\":NaN}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\\u0000b\":1}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\xc0\xaf\"}",
        "{\"a\":\"\xed\xa0\x80\"}",
        "{\"a\":\"\xff\"}",
        "{\"a\":99999999999999999999999999}",
        "{\"a\":1}x",
        "\xef\xbb\xbf{\"a\":1}",
        "{\"\":1}",
        "</script>",
    };

    for (size_t i = 0; i < COUNT(bodies); i++)
        for (const struct resource *row = action_resources; row->path; row++) {
            char *path = path_of(row, "mail", "");

            check("POST", path, JSON, bodies[i]);
            if (serving.reply.status != 400)
                fail_msg("%s %s: %d %s", path, bodies[i], serving.reply.status, serving.reply.body);
            free(path);
        }
}

TESTS(start, stop)
