/* Job JSON: the checker against jansson over tables and random mutations, reading, writing, ids. */
#include <jansson.h>
#include <math.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "queue/job/job_cost.h"
#include "tests/test.h"

static struct error error;

/* A text that may hold NUL bytes. */
#define BYTES(literal)                                                                                       \
    {                                                                                                        \
        literal, sizeof literal - 1                                                                          \
    }

static const struct span corpus[] = {
    BYTES("{\"id\":\"0123456789abcdef\",\"type\":\"weekly_summary\",\"args\":{\"business_id\":42,\"x\":[1,2."
          "5,-3e4,true]}}"),
    BYTES("{\"type\":\"t\",\"args\":{\"a\":\"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/"
          "\",\"b\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}}"),
    BYTES("{\"type\":\"t\",\"n\":[9223372036854775807,-9223372036854775808,1e308,1.7976931348623157e308,5e-"
          "324]}"),
    BYTES(" [ ] "),
    BYTES("{}"),
    BYTES("[[[[]]],{\"\":{}}]"),
    BYTES("\"\\b\\f\\r\\t \x7f\""),
    BYTES("null"),
    BYTES("false"),
    BYTES("-0"),
    BYTES("-0.0E-0"),
    BYTES("0"),
    BYTES("1234567890123456789"),
    BYTES("0e999999999999"),
    BYTES("\r\n\t {\"a\" : 1 , \"b\":\t[ null ] }\r\n"),
    BYTES("1e-400"),
    BYTES("0.00000000000000000001e320"),
    BYTES("{\"a\":{\"b\":{\"c\":{\"d\":[[[{\"e\":\"f\"}]]]}}},\"long name of a member\":\"and a longer text "
          "than eight\"}"),
};

/* Several a line. */
static const char *const not_json[] = {
    "",
    " ",
    "nul | nulll | True | NaN | Infinity | - | +1 | 01 | -01 | 1. | .5 | 1.e5 | 1e | 1e+ | 0x10 | 1 2",
    "[1,] | [,1] | [1 | [1 2] | {\"a\":1,} | {\"a\"} | {\"a\":} | {a:1} | {1:1} | {\"a\" 1} | {\"a\":1]",
    "[1} | 'a' | \"a | \"a\\\" | \"\\x\" | \"\\u12\" | \"\\u12g4\" | \"\\u0000\" | \"\\ud800\"",
    "\"\\ud800\\u0041\" | \"\\udc00\\ud800\" | \"\\ud800\\ud800\" | \"\t\" | \"a\nb\" | \xef\xbb\xbf{}",
    "\"\x80\" | \"\xc3\" | \"\xc0\x80\" | \"\xc1\xbf\" | \"\xe0\x9f\xbf\" | \"\xed\xa0\x80\"",
    "\"\xf0\x8f\xbf\xbf\" | \"\xf4\x90\x80\x80\" | \"\xf5\x80\x80\x80\" | \"\xff\" | \"\xe2\x82\"",
    "\"\xe2\x82 | 9223372036854775808 | -9223372036854775809 | 10000000000000000000 | 1e309 | -1e309",
    "1.7976931348623159e308 | 0.001e312 | 17976931348623159e292 | 1e99999999999999999999 | // c\n1",
    "[1]] | \v1 | \"\\ | \"\\u | { | [ | {\" | {\"a\":1",
};
static const struct span with_nul[] = {BYTES("\"\0\""), BYTES("\0"), BYTES("{}\0"), BYTES("1\0")};

/* jansson overlooks a NUL behind a number. */
static bool jansson_accepts(struct span text, size_t flags)
{
    json_error_t why;
    json_t *value = json_loadb(text.at, text.len, JSON_DECODE_ANY | flags, &why);

    json_decref(value);
    if (memchr(text.at, '\0', text.len))
        return false;
    return value != NULL;
}

/* A copy that ends where its memory ends, so that a sanitizer sees a byte read behind it. */
static bool weir_accepts(struct span text)
{
    char *exact = malloc(text.len ? text.len : 1);
    int status;

    memcpy(exact, text.at, text.len);
    status = json_check(exact, text.len, &error);
    free(exact);
    assert_true(status == 0 || status == WEIR_EINPUT);
    return status == 0;
}

static void show(struct span text)
{
    fprintf(stderr, "the text: ");
    for (size_t i = 0; i < text.len; i++)
        fprintf(stderr, text.at[i] >= ' ' && text.at[i] < 127 ? "%c" : "\\x%02x", (unsigned char)text.at[i]);
    fprintf(stderr, "\n");
}

static void refuse(struct span text)
{
    if (weir_accepts(text) || jansson_accepts(text, 0)) {
        show(text);
        fail_msg("accepted");
    }
}

TEST(test_check_tables)
{
    for (size_t i = 0; i < COUNT(corpus); i++)
        if (!weir_accepts(corpus[i]) || !jansson_accepts(corpus[i], 0)) {
            show(corpus[i]);
            fail_msg("refused: %s", error.text);
        }
    for (size_t i = 0; i < COUNT(not_json); i++)
        for (char *rest = textf("%s", not_json[i]), *text; (text = cut_text(&rest));)
            refuse(span_str(text));
    for (size_t i = 0; i < COUNT(with_nul); i++)
        refuse(with_nul[i]);
}

static void assert_as_jansson(const char *number)
{
    struct span text = {number, strlen(number)};

    if (weir_accepts(text) != jansson_accepts(text, 0)) {
        show(text);
        fail_msg("jansson does not agree");
    }
}

/* Numbers around the largest double, with the point at any place. */
TEST(test_check_large_numbers)
{
    static const char *const mantissas[] = {"17976931348623156", "17976931348623157", "17976931348623158",
                                            "17976931348623159", "17976931348623157999999999999"};
    static const char zeros[] = "00000000000000000000";

    for (size_t m = 0; m < COUNT(mantissas); m++)
        for (int n = 0; n < 20; n++)
            for (int power = 307; power <= 309; power++) {
                int digits = (int)strlen(mantissas[m]);

                assert_as_jansson(textf("0.%.*s%se%d", n, zeros, mantissas[m], power + n + 1));
                assert_as_jansson(textf("-%s%.*sE%+d", mantissas[m], n, zeros, power - n - digits + 1));
                assert_as_jansson(textf("%.*s.%se+%d", n % 16 + 1, mantissas[m], mantissas[m] + n % 16 + 1,
                                        power - n % 16));
            }
    for (int last = 0; last < 1000; last++)
        assert_as_jansson(textf("1.79769313486231580793728971405303%03de308", last));
}

static uint64_t seed;
static uint64_t rnd(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static size_t mutate(char *text, size_t len, size_t most)
{
    static const char spice[] = "{}[]:,\"\\/ue+-.0129aftn \n\t\r\x80\xc3\xa9\xed\xf0\x7f\x1f\0";
    size_t at = rnd(len + 1), other = rnd(len + 1), n;

    switch (rnd(5)) {
    case 0: /* put in */
        if (len < most) {
            memmove(text + at + 1, text + at, len - at);
            text[at] = rnd(4) ? spice[rnd(sizeof spice)] : (char)rnd(256);
            len++;
        }
        break;
    case 1: /* change */
        if (at < len)
            text[at] = rnd(4) ? spice[rnd(sizeof spice)] : (char)rnd(256);
        break;
    case 2: /* take out */
        n = rnd(3) + 1;
        if (at + n <= len) {
            memmove(text + at, text + at + n, len - at - n);
            len -= n;
        }
        break;
    case 3: /* cut off */
        if (rnd(10) == 0)
            len = at;
        break;
    case 4: /* repeat a piece of itself */
        n = rnd(12);
        if (at + n <= len && other + n <= len)
            memmove(text + other, text + at, n);
        break;
    }
    return len;
}

TEST(test_check_mutations)
{
    const char *given = getenv("WEIR_SEED");
    long rounds = 300000;

    seed = (given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 2654435761u) | 1;
    printf("WEIR_SEED=%llu\n", (unsigned long long)seed);
    for (long i = 0; i < rounds; i++) {
        const struct span *from = &corpus[rnd(COUNT(corpus))];
        char text[256];
        struct span changed = {text, from->len};

        memcpy(text, from->at, from->len);
        for (uint64_t n = rnd(4) + 1; n > 0; n--)
            changed.len = mutate(text, changed.len, sizeof text);
        /* Between its two answers lie only duplicate names, of which those deep inside are accepted here. */
        if (weir_accepts(changed) ? !jansson_accepts(changed, 0)
                                  : jansson_accepts(changed, JSON_REJECT_DUPLICATES)) {
            show(changed);
            fail_msg("jansson does not agree: %s", error.text);
        }
    }
}

TEST(test_check_depth)
{
    char text[2 * 513];

    memset(text, '[', 513);
    memset(text + 513, ']', 513);
    assert_true(weir_accepts((struct span){text + 1, 2 * 512}));
    assert_false(weir_accepts((struct span){text, 2 * 513}));
    assert_non_null(strstr(error.text, "nested too deep at byte 513"));
}

TEST(test_check_says_where)
{
    assert_false(weir_accepts((struct span)BYTES("{\"a\":tru}")));
    assert_string_equal(error.text, "not JSON: no value begins at byte 6");
}

/* ---- Reading */

static int read_text(const char *text, struct job_view *view)
{
    return job_read(text, strlen(text), view, &error);
}

static void assert_span(struct span s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.at, text, s.len);
}

TEST(test_read)
{
    struct job_view v;

    assert_int_equal(
        read_text(" { \"meta\":[1], \"key\":\"k.1\",\"timeout\":1.5 ,\"args\" : {\"a\" : 1} ,\"type\":\"t\", "
                  "\"cost\":7,\"max_attempts\":3,\"queue\":\"mail\",\"id\":\"i-1\"}\r\n",
                  &v),
        0);
    assert_span(v.id, "i-1");
    assert_span(v.type, "t");
    assert_span(v.key, "k.1");
    assert_span(v.queue, "mail");
    assert_span(v.args, "{\"a\" : 1}");
    assert_int_equal(v.cost, 7);
    assert_int_equal(v.max_attempts, 3);
    assert_int_equal(v.timeout_us, 1500000);
    assert_span(v.meta, "[1]");
    assert_null(v.traceparent.at);

    assert_int_equal(read_text("{\"type\":\"t\",\"traceparent\":\"00-1\",\"batch\":\"b\"}", &v), 0);
    assert_span(v.traceparent, "00-1");
    assert_span(v.batch, "\"b\"");
    assert_int_equal(read_text("{\"type\":\"t\",\"traceparent\":\"a\\u0041\",\"batch\":{}}", &v), 0);
    assert_null(v.traceparent.at); /* whatever others put there is no error */
    assert_span(v.batch, "{}");
    assert_int_equal(read_text("{\"type\":\"t\",\"traceparent\":7}", &v), 0);
    assert_null(v.traceparent.at);

    assert_int_equal(read_text("{\"t\\u0079pe\":\"t\"}", &v), 0);
    assert_span(v.type, "t");
    assert_null(v.id.at);
    assert_null(v.args.at);
    assert_int_equal(v.cost, 0);
    assert_int_equal(v.max_attempts, JOB_MAX_ATTEMPTS);
    assert_int_equal(v.timeout_us, 0);
}

TEST(test_read_refuses)
{
    static const char *const cases[][2] = {
        {"[] | \"type\"", "not a JSON object"},
        {"", "not a JSON object"},
        {"{\"type\":\"t\"", "not JSON: a comma or } is missing at byte 12"},
        {"{\"type\":\"t\"}{}", "something follows"},
        {"{} | {\"id\":\"a\",\"args\":{\"type\":\"t\"}}", "\"type\" is missing"},
        {"{\"type\":1}", "\"type\" must be a string"},
        {"{\"type\":\"\"} | {\"type\":\"a b\"} | {\"type\":\"a/b\"}", "\"type\" must be"},
        {"{\"type\":\"{a}\"} | {\"type\":\"\xc3\xa9\"} | {\"type\":\"\\u0061\"}", "\"type\" must be"},
        {"{\"type\":\"t\",\"id\":1} | {\"type\":\"t\",\"id\":null}", "\"id\" must be"},
        {"{\"type\":\"t\",\"queue\":\"a:b\"}", "\"queue\" must be"},
        {"{\"type\":\"t\",\"key\":7}", "\"key\" must be"},
        {"{\"type\":\"t\",\"cost\":0} | {\"type\":\"t\",\"cost\":-1}", "\"cost\" must be"},
        {"{\"type\":\"t\",\"cost\":1.0} | {\"type\":\"t\",\"cost\":1000000001}", "\"cost\" must be"},
        {"{\"type\":\"t\",\"cost\":\"1\"} | {\"type\":\"t\",\"cost\":null}", "\"cost\" must be"},
        {"{\"type\":\"t\",\"max_attempts\":0}", "\"max_attempts\" must be"},
        {"{\"type\":\"t\",\"max_attempts\":1000001}", "\"max_attempts\" must be"},
        {"{\"type\":\"t\",\"max_attempts\":1.0}", "\"max_attempts\" must be"},
        {"{\"type\":\"t\",\"max_attempts\":\"3\"}", "\"max_attempts\" must be"},
        {"{\"type\":\"t\",\"max_attempts\":[]}", "\"max_attempts\" must be"},
        {"{\"type\":\"t\",\"timeout\":0} | {\"type\":\"t\",\"timeout\":-1}", "\"timeout\" must be"},
        {"{\"type\":\"t\",\"timeout\":\"1s\"} | {\"type\":\"t\",\"timeout\":1e9}", "\"timeout\" must be"},
        {"{\"type\":\"t\",\"timeout\":1e300} | {\"type\":\"t\",\"timeout\":null}", "\"timeout\" must be"},
        {"{\"type\":\"t\",\"type\":\"t\"}", "a member comes twice at byte 13"},
        {"{\"type\":\"t\",\"t\\u0079pe\":\"u\"}", "a member comes twice"},
        {"{\"type\":\"t\",\"x\":1,\"y\":2,\"x\":3}", "a member comes twice"},
        {"{\"type\":\"t\",\"\\u00e9\":1,\"\xc3\xa9\":2}", "a member comes twice"},
        {"{\"type\":\"t\",\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "a member comes twice"},
    };
    struct job_view v;

    for (size_t i = 0; i < COUNT(cases); i++)
        for (char *rest = textf("%s", cases[i][0]), *text; (text = cut_text(&rest));)
            fail_if(read_text(text, &v) != WEIR_EINPUT || !strstr(error.text, cases[i][1]),
                    "%s: \"%s\" should say \"%s\"", text, error.text, cases[i][1]);
}

TEST(test_read_timeouts)
{
    static const struct {
        const char *text;
        int64_t us;
    } cases[] = {
        {"1", 1000000},          {"0.1", 100000},           {"1.10000000000000000000", 1100000},
        {"30", 30000000},        {"1e3", 1000000000},       {"2.5E-3", 2500},
        {"0.0000001", 1},        {"0.000001", 1},           {"1e-300", 1},
        {"3600.25", 3600250000}, {"100000000e-8", 1000000}, {"0.3", 300000},
    };
    struct job_view v;
    char text[100];

    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(text, sizeof text, "{\"type\":\"t\",\"timeout\":%s}", cases[i].text);
        assert_int_equal(read_text(text, &v), 0);
        assert_int_equal(v.timeout_us, cases[i].us);
    }
}

/* As many members as a body can hold: all different, the last twice. */
TEST(test_read_many_members)
{
    struct text t = {.at = malloc(JOB_BODY_MAX), .capacity = JOB_BODY_MAX};
    struct job_view v;
    int n = 80000;
    clock_t begin;

    t.len = (size_t)sprintf(t.at, "{\"type\":\"t\"");
    for (int i = 0; i < n; i++)
        t.len += (size_t)sprintf(t.at + t.len, ",\"m%d\":%d", i, i % 10);
    t.at[t.len] = '}';
    begin = clock();
    assert_int_equal(job_read(t.at, t.len + 1, &v, &error), 0);
    sprintf(t.at + t.len, ",\"m%d\":0}", n - 1);
    assert_int_equal(job_read(t.at, strlen(t.at), &v, &error), WEIR_EINPUT);
    assert_true((clock() - begin) / CLOCKS_PER_SEC < 2);
    sprintf(t.at + t.len, ",\"\\u006d%d\":0}", 17);
    assert_int_equal(job_read(t.at, strlen(t.at), &v, &error), WEIR_EINPUT);
    assert_non_null(strstr(error.text, "a member comes twice"));
    text_free(&t);
}

TEST(test_read_too_long)
{
    char *body = malloc(JOB_BODY_MAX + 1);
    struct job_view v;

    memset(body, ' ', JOB_BODY_MAX + 1);
    memcpy(body, "{\"type\":\"t\"}", 12);
    assert_int_equal(job_read(body, JOB_BODY_MAX, &v, &error), 0);
    assert_int_equal(job_read(body, JOB_BODY_MAX + 1, &v, &error), WEIR_EINPUT);
    assert_non_null(strstr(error.text, "1048577 bytes: at most 1048576"));
    free(body);
}

/* ---- Costs by name */

#define NAMES "a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1"

static const struct {
    const char *text, *json, *is; /* text NULL: only JSON can say it; is: as scripts take it, else why not */
} costs[] = {
    {"3", "3", "3"},
    {"plain=3", "{\"plain\":3}", "3"},
    {"tokens=900", "{\"tokens\":900}", "tokens:900"},
    {"tokens=1", "{ \"tokens\" : 1 }", "tokens:1"},
    {"tokens=0", "{\"tokens\":0}", "tokens:0"},
    {" 3, tokens=900", NULL, "3,tokens:900"},
    {"3,tokens=900,images=2", "{\"tokens\":900,\"plain\":3,\"images\":2}", "3,images:2,tokens:900"},
    {"tokens=1000000000,plain=1000000000", "{\"tokens\":1000000000,\"plain\":1000000000}",
     "1000000000,tokens:1000000000"},
    {"5," NAMES, NULL, "5,a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1"},
    {"i=1," NAMES, NULL, "h is one name too many; give up to 8"},
    {NULL, "{}", "{} says nothing; write a number, or {\"NAME\":NUMBER}"},
    {"", NULL, "must be a whole number from 1 to 1000000000, not ''"},
    {"0", NULL, "must be a whole number from 1 to 1000000000, not '0'"},
    {"plain=0", "{\"plain\":0}", "plain must be a whole number from 1 to 1000000000, not '0'"},
    {"tokens=-1", "{\"tokens\":-1}", "tokens must be a whole number from 0 to 1000000000, not '-1'"},
    {"tokens=1.5", "{\"tokens\":1.5}", "tokens must be a whole number from 0 to 1000000000, not '1.5'"},
    {"tokens=1e3", "{\"tokens\":1e3}", "tokens must be a whole number from 0 to 1000000000, not '1e3'"},
    {"tokens=1000000001", "{\"tokens\":1000000001}",
     "tokens must be a whole number from 0 to 1000000000, not '1000000001'"},
    {"tokens=99999999999999999999", NULL,
     "tokens must be a whole number from 0 to 1000000000, not '99999999999999999999'"},
    {"tokens=", NULL, "tokens must be a whole number from 0 to 1000000000, not ''"},
    {NULL, "{\"tokens\":\"1\"}", "tokens must be a whole number from 0 to 1000000000, not '\"1\"'"},
    {NULL, "{\"tokens\":null}", "tokens must be a whole number from 0 to 1000000000, not 'null'"},
    {"jobs=1", "{\"jobs\":1}", "jobs is one for each job, whatever it costs; leave it out"},
    {"Tokens=1", "{\"Tokens\":1}", "'Tokens' is no name; use 1 to 32 of a-z 0-9 _, a letter first"},
    {"9a=1", "{\"9a\":1}", "'9a' is no name; use 1 to 32 of a-z 0-9 _, a letter first"},
    {"to-kens=1", "{\"to-kens\":1}", "'to-kens' is no name; use 1 to 32 of a-z 0-9 _, a letter first"},
    {"tokens=1,tokens=1", "{\"tokens\":1,\"tokens\":1}", "tokens comes twice; give it once"},
    {NULL, "{\"tokens\":1,\"\\u0074okens\":1}", "tokens comes twice; give it once"},
    {"1,plain=1", "{\"plain\":1,\"plain\":1}", "plain comes twice; give it once"},
    {"1,", NULL, "must be a whole number from 1 to 1000000000, not ''"},
};

static void assert_cost(int status, const struct job_cost *cost, const char *is)
{
    char text[COST_TEXT_SIZE];

    if (status == 0)
        cost_write(cost, text);
    assert_int_equal(status, strchr(is, ' ') ? WEIR_EINPUT : 0);
    assert_string_equal(status ? error.text : text, is);
}

TEST(test_costs_by_name_are_read)
{
    struct job_cost cost;

    for (size_t i = 0; i < COUNT(costs); i++) {
        if (costs[i].text)
            assert_cost(cost_read(costs[i].text, COST_TAKEN, &cost, &error), &cost, costs[i].is);
        if (costs[i].json)
            assert_cost(cost_read_json(span_str(costs[i].json), COST_TAKEN, &cost, &error), &cost,
                        costs[i].is);
    }
    assert_int_equal(cost_read("0,tokens=0", COST_TRUE, &cost, &error), 0);
    assert_int_equal(cost.plain, 0);
}

TEST(test_costs_by_name_are_written)
{
    static const char *const cases[][3] = {
        {"3", "3", "3"},
        {"tokens=0", "{\"tokens\":0}", "tokens=0"},
        {"tokens=9,plain=3,images=2", "{\"plain\":3,\"images\":2,\"tokens\":9}", "3,images=2,tokens=9"}};
    char json[COST_JSON_SIZE], text[COST_TEXT_SIZE];
    struct job_cost cost = cost_of(COST_UNSAID);

    cost_write_json(&cost, json);
    assert_string_equal(json, "");
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(cost_read(cases[i][0], COST_TAKEN, &cost, &error), 0);
        cost_write_json(&cost, json);
        cost_print(&cost, text);
        assert_string_equal(json, cases[i][1]);
        assert_string_equal(text, cases[i][2]);
    }
}

TEST(test_jobs_say_costs_by_name)
{
    static const char longest[] =
        "{\"plain\":1000000000,\"a234567890123456789012345678901a\":1000000000,"
        "\"a234567890123456789012345678901b\":1000000000,\"a234567890123456789012345678901c\":1000000000,"
        "\"a234567890123456789012345678901d\":1000000000,\"a234567890123456789012345678901e\":1000000000,"
        "\"a234567890123456789012345678901f\":1000000000,\"a234567890123456789012345678901g\":1000000000,"
        "\"a234567890123456789012345678901h\":1000000000}";
    struct text t = {0};
    struct job_view v;
    struct job_cost cost;
    char body[1024];

    assert_int_equal(job_write(&t,
                               &(struct weir_job_spec){.type = "t", .id = "i", .costs = "tokens=9,plain=3"},
                               &v, &error),
                     0);
    assert_span((struct span){t.at, t.len},
                "{\"id\":\"i\",\"type\":\"t\",\"cost\":{\"plain\":3,\"tokens\":9}}");
    assert_int_equal(v.cost, 3);
    job_cost_of(&v, &cost);
    assert_cost(0, &cost, "3,tokens:9");
    assert_int_equal(job_read(t.at, t.len, &v, &error), 0);
    job_cost_of(&v, &cost);
    assert_cost(0, &cost, "3,tokens:9");
    t.len = 0;
    assert_int_equal(job_write(&t, &(struct weir_job_spec){.type = "t", .id = "i", .costs = "4"}, &v, &error),
                     0);
    assert_span((struct span){t.at, t.len}, "{\"id\":\"i\",\"type\":\"t\",\"cost\":4}");
    t.len = 0;
    snprintf(body, sizeof body, "{\"cost\":%s,\"type\":\"t\",\"id\":\"i\"}", longest);
    assert_int_equal(job_rewrite(&t, body, strlen(body), &v, &error), 0);
    snprintf(body, sizeof body, "{\"id\":\"i\",\"type\":\"t\",\"cost\":%s}", longest);
    assert_span((struct span){t.at, t.len}, body);
    assert_span(v.costs, longest);
    assert_int_equal(job_read("{\"type\":\"t\",\"cost\":{\"jobs\":1}}", 30, &v, &error), WEIR_EINPUT);
    assert_string_equal(error.text,
                        "wrong job: its cost: jobs is one for each job, whatever it costs; leave it out");
    text_free(&t);
}

/* ---- Writing */

TEST(test_write)
{
    struct text t = {0};
    struct job_view v;
    struct weir_job_spec all = {.type = "t",
                                .args = " {\"a\": [1]}\n",
                                .queue = "q",
                                .id = "i",
                                .key = "k",
                                .cost = 1000000000,
                                .max_attempts = 3,
                                .timeout_s = 1.25};

    assert_int_equal(job_write(&t, &all, &v, &error), 0);
    assert_span((struct span){t.at, t.len},
                "{\"id\":\"i\",\"type\":\"t\",\"key\":\"k\",\"cost\":1000000000,\"args\":{\"a\": [1]},"
                "\"max_attempts\":3,\"timeout\":1.250000}");
    assert_span(v.id, "i");
    assert_span(v.type, "t");
    assert_span(v.key, "k");
    assert_span(v.queue, "q");
    assert_span(v.args, "{\"a\": [1]}");
    assert_int_equal(v.cost, 1000000000);
    assert_int_equal(job_read(t.at, t.len, &v, &error), 0);
    assert_int_equal(v.timeout_us, 1250000);

    t.len = 0;
    assert_int_equal(job_write(&t, &(struct weir_job_spec){.type = "t"}, &v, &error), 0);
    assert_int_equal(t.len, strlen("{\"id\":\"0123456789abcdef\",\"type\":\"t\"}"));
    assert_int_equal(v.id.len, 16);
    assert_null(v.args.at);
    text_free(&t);
}

TEST(test_write_context)
{
    struct text t = {0};
    struct job_view v;
    struct weir_job_spec spec = {.type = "t",
                                 .args = "1",
                                 .id = "i",
                                 .key = "k",
                                 .traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                 .meta = " {\"a\": [] }\n"};

    assert_int_equal(job_write(&t, &spec, &v, &error), 0);
    assert_span(
        (struct span){t.at, t.len},
        "{\"id\":\"i\",\"type\":\"t\",\"key\":\"k\",\"traceparent\":"
        "\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\",\"meta\":{\"a\": [] },\"args\":1}");
    assert_int_equal(job_read(t.at, t.len, &v, &error), 0);
    assert_span(v.traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_span(v.meta, "{\"a\": [] }");
    text_free(&t);
}

TEST(test_write_refuses)
{
    static const struct weir_job_spec cases[] = {
        {.type = NULL},
        {.type = ""},
        {.type = "a b"},
        {.type = "t", .id = "a/b"},
        {.type = "t", .queue = ""},
        {.type = "t", .key = "\n"},
        {.type = "t", .args = ""},
        {.type = "t", .args = "{"},
        {.type = "t", .args = "1 2"},
        {.type = "t", .cost = -1},
        {.type = "t", .cost = 1000000001},
        {.type = "t", .cost = 1, .costs = "tokens=1"},
        {.type = "t", .costs = ""},
        {.type = "t", .costs = "tokens"},
        {.type = "t", .max_attempts = -1},
        {.type = "t", .max_attempts = 1000001},
        {.type = "t", .timeout_s = -1},
        {.type = "t", .timeout_s = NAN},
        {.type = "t", .timeout_s = INFINITY},
        {.type = "t", .timeout_s = 1e12},
        {.type = "t", .meta = ""},
        {.type = "t", .meta = "{} {}"},
        {.type = "t", .traceparent = "00-1"},
        {.type = "t", .traceparent = "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
        {.type = "t", .traceparent = "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01"},
    };
    struct text t = {0};

    assert_int_equal(job_write(&t, &(struct weir_job_spec){.type = "t", .id = "kept"}, NULL, &error), 0);
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(job_write(&t, &cases[i], NULL, &error), WEIR_EINPUT);
    assert_span((struct span){t.at, t.len}, "{\"id\":\"kept\",\"type\":\"t\"}");
    text_free(&t);
}

TEST(test_rewrite)
{
    static const char *const cases[][2] = {
        {"{\"id\":\"i\",\"type\":\"t\"}", "{\"id\":\"i\",\"type\":\"t\"}"},
        {"{\"id\":\"i\",\"type\":\"t\",\"args\":{\"b\" :1}}",
         "{\"id\":\"i\",\"type\":\"t\",\"args\":{\"b\" :1}}"},
        {" {\"args\" : [ 1 ], \"type\":\"t\" , \"id\":\"i\" }\r",
         "{\"id\":\"i\",\"type\":\"t\",\"args\" : [ 1 ]}"},
        {"{\"a\":1, \"id\":\"i\",\"b\":2, "
         "\"c\":3,\"type\":\"t\",\"queue\":\"q\",\"key\":\"k\",\"d\":12345678901234567890.5}",
         "{\"id\":\"i\",\"type\":\"t\",\"key\":\"k\",\"a\":1,\"b\":2, "
         "\"c\":3,\"queue\":\"q\",\"d\":12345678901234567890.5}"},
        {"{\"a\":1,\"cost\": 3 ,\"b\":2,\"type\":\"t\",\"id\":\"i\"}",
         "{\"id\":\"i\",\"type\":\"t\",\"cost\":3,\"a\":1,\"b\":2}"},
        {"{\"t\\u0079pe\":\"t\",\"i\\u0064\":\"i\",\"\\u00e9\":[]}",
         "{\"id\":\"i\",\"type\":\"t\",\"\\u00e9\":[]}"},
        {"{\"cost\":{\"tokens\": 9, \"plain\":3},\"type\":\"t\",\"id\":\"i\",\"args\":1}",
         "{\"id\":\"i\",\"type\":\"t\",\"cost\":{\"plain\":3,\"tokens\":9},\"args\":1}"},
        {"{\"cost\":{\"plain\":3},\"type\":\"t\",\"id\":\"i\"}", "{\"id\":\"i\",\"type\":\"t\",\"cost\":3}"},
    };
    struct text t = {0};
    struct job_view v;

    for (size_t i = 0; i < COUNT(cases); i++) {
        t.len = 0;
        assert_int_equal(job_rewrite(&t, cases[i][0], strlen(cases[i][0]), &v, &error), 0);
        assert_span((struct span){t.at, t.len}, cases[i][1]);
        assert_span(v.id, "i");
        assert_span(v.type, "t");
        assert_true(v.id.at > t.at && v.type.at < t.at + t.len);
    }
    t.len = 0;
    assert_int_equal(job_rewrite(&t, cases[3][0], strlen(cases[3][0]), &v, &error), 0);
    assert_span(v.queue, "q");
    assert_span(v.key, "k");
    assert_true(v.queue.at > t.at && v.queue.at < t.at + t.len);
    assert_int_equal(job_rewrite(&t, "{\"type\":\"u\"}", 12, &v, &error), 0);
    assert_int_equal(v.id.len, 16);
    assert_int_equal(t.len, strlen(cases[3][1]) + strlen("{\"id\":\"0123456789abcdef\",\"type\":\"u\"}"));
    text_free(&t);
}

/* What only a single job can be told is not passed on as if it were kept. */
TEST(test_rewrite_ignores_nothing)
{
    static const char *const refused[] = {"\"at\":1795242599", "\"in\":\"2h\"", "\"u\\u006eique\":\"k\"",
                                          "\"at_s\":1",        "\"delay_s\":1", "\"timeout_s\":1",
                                          "\"max-attempts\":3"};
    static const char inside[] = "{\"type\":\"t\",\"args\":{\"at\":1}}";
    struct text t = {0};

    for (size_t i = 0; i < COUNT(refused); i++) {
        char line[100];
        int len = snprintf(line, sizeof line, "{\"type\":\"t\",\"args\":{\"at\":1},%s}", refused[i]);

        assert_int_equal(job_rewrite(&t, line, (size_t)len, NULL, &error), WEIR_EINPUT);
        assert_non_null(strstr(error.text, "in a line would be ignored; "));
        assert_int_equal(t.len, 0);
    }
    assert_int_equal(job_rewrite(&t, inside, strlen(inside), NULL, &error), 0);
    text_free(&t);
}

/* An id that is put in can make a body too long. */
TEST(test_rewrite_too_long)
{
    size_t len = JOB_BODY_MAX - 10;
    char *line = malloc(len);
    struct text t = {0};

    memset(line, 'x', len);
    memcpy(line, "{\"type\":\"t\",\"args\":\"", 20);
    memcpy(line + len - 2, "\"}", 2);
    assert_int_equal(job_rewrite(&t, line, len, NULL, &error), WEIR_EINPUT);
    assert_int_equal(t.len, 0);
    text_free(&t);
    free(line);
}

/* Whatever is accepted stays the same to jansson, but for its order and the id. */
TEST(test_rewrite_keeps_all)
{
    for (size_t i = 0; i < COUNT(corpus); i++) {
        struct text t = {0};
        json_t *before, *after;

        if (job_rewrite(&t, corpus[i].at, corpus[i].len, NULL, &error) == 0) {
            before = json_loadb(corpus[i].at, corpus[i].len, 0, NULL);
            after = json_loadb(t.at, t.len, JSON_REJECT_DUPLICATES, NULL);
            if (!json_object_get(before, "id"))
                json_object_del(after, "id");
            assert_true(json_equal(before, after));
            json_decref(before);
            json_decref(after);
        }
        text_free(&t);
    }
}

/* ---- Ids and names */

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, 17);
}

TEST(test_ids)
{
    size_t n = 100000;
    char(*ids)[17] = malloc(n * sizeof *ids);
    char ours[17], theirs[17];
    int fd[2], end;
    pid_t child;

    for (size_t i = 0; i < n; i++) {
        job_make_id(ids[i]);
        assert_int_equal(strspn(ids[i], "0123456789abcdefghijklmnopqrstuvwxyz"), 16);
        assert_int_not_equal(memcmp(ids[i], ids[i] + 8, 8), 0);
    }
    qsort(ids, n, sizeof *ids, compare_ids);
    for (size_t i = 1; i < n; i++)
        assert_int_not_equal(memcmp(ids[i - 1], ids[i], 17), 0);
    free(ids);

    assert_int_equal(pipe(fd), 0);
    child = fork();
    if (child == 0) {
        job_make_id(ours);
        _exit(write(fd[1], ours, sizeof ours) != sizeof ours);
    }
    job_make_id(ours);
    assert_int_equal(read(fd[0], theirs, sizeof theirs), sizeof theirs);
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_string_not_equal(ours, theirs);
    close(fd[0]);
    close(fd[1]);
}

TEST(test_names)
{
    char longest[129];

    memset(longest, 'a', sizeof longest);
    assert_true(name_is_valid("a", 1));
    assert_true(name_is_valid("A-Z_0.9", 7));
    assert_true(name_is_valid(longest, 128));
    assert_false(name_is_valid(longest, 129));
    assert_false(name_is_valid("", 0));
    for (int c = 0; c < 256; c++) {
        char name = (char)c;
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                    c == '.' || c == '-';

        assert_int_equal(name_is_valid(&name, 1), fine);
    }
}

TESTS(NULL, NULL)
