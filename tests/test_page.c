/* The pages of weir serve as they are rendered: each with data and without, what they escape, and what they show to whom. How a browser shows
 * them: tests/pages/. */
#include <hiredis/hiredis.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/utf8.h"
#include "queue/job/stamp.h"
#include "queue/turn/record.h"
#include "serve/page/html.h"
#include "serve/page/page.h"
#include "serve/page/parts.h"
#include "tests/stage_group.h"

#define TYPES_MANY 1500

/* ---- A page as text; until the next one */

static char shown[8 << 20];
static struct page_request usual;

/* Nothing in Redis, and a page that may not act. */
static int begin(void **state)
{
    usual = (struct page_request){0};
    return stage_flush(state);
}

static unsigned render(const char *path, const char *query)
{
    struct page_request r = usual;
    struct text out = {0};
    struct error e = {0};
    unsigned status;

    r.path = path;
    r.query = query;
    status = page_render(stage.client, &r, &out, &e);
    assert_true(out.len < sizeof shown);
    memcpy(shown, out.at, out.len);
    shown[out.len] = '\0';
    assert_int_equal(strlen(shown), out.len);
    text_free(&out);
    return status;
}

static int count_of(const char *text)
{
    int count = 0;

    for (const char *at = strstr(shown, text); at; at = strstr(at + 1, text))
        count++;
    return count;
}

#define assert_shows(text)                                                                                   \
    do {                                                                                                     \
        if (!strstr(shown, text))                                                                            \
            fail_msg("not there: %s\n%s", text, shown);                                                      \
    } while (0)
#define assert_hides(text) assert_null(strstr(shown, text))

/* What every page must be: whole, without scripts or styles in it, each element ended. */
static void check_shape(void)
{
    static const char *const elements[] = {"main", "table", "tbody", "tr", "td", "section",
                                           "form", "svg",   "ul",    "dl", "div"};

    for (size_t i = 0; i < COUNT(elements); i++) {
        const char *begin = textf("<%s>", elements[i]);

        if (count_of(begin) + count_of(textf("<%s ", elements[i])) != count_of(textf("</%s>", elements[i])))
            fail_msg("%s is not ended\n%s", begin, shown);
    }
    assert_int_equal(count_of("<script"), count_of("<script src=\"/assets/page.js\""));
    assert_hides(" style=");
    assert_hides("<style");
    assert_hides(" onclick");
    assert_hides("javascript:");
}

/* The page of an address has that status, and a page's shape. It shows each of these texts, and none of those behind a '!'. */
#define page(status, ...) expect_page(status, (const char *const[]){__VA_ARGS__, NULL})
static void expect_page(unsigned status, const char *const *words)
{
    const char *query = strchr(words[0], '?');
    unsigned given = render(textf("%.*s", (int)strcspn(words[0], "?"), words[0]), query ? query + 1 : NULL);

    if (given != status)
        fail_msg("%s: %u, not %u\n%s", words[0], given, status, shown);
    check_shape();
    for (const char *const *word = words + 1; *word; word++)
        if ((strstr(shown, **word == '!' ? *word + 1 : *word) != NULL) != (**word != '!'))
            fail_msg("%s: not so: %s\n%s", words[0], *word, shown);
}

/* ---- The writer */

static void check_escaped(const char *bytes, size_t len, const char *expected)
{
    struct html h = {.failed = false};

    html_span(&h, (struct span){bytes, len});
    html(&h, "%r", "");
    assert_false(h.failed);
    assert_int_equal(h.out.len, strlen(expected));
    assert_memory_equal(h.out.at, expected, h.out.len);
    html_free(&h);
}

TEST(html_escapes_what_comes_from_outside)
{
#define check(bytes, expected) check_escaped(bytes, sizeof bytes - 1, expected)
    check("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;");
    check("\" onload=\"x' &amp;", "&quot; onload=&quot;x&#39; &amp;amp;");
    check("a\0b", "a\\x00b");
    check("\xff\xfe<", "\\xff\\xfe&lt;");
    check("\xc0\xbc", "\\xc0\\xbc"); /* an overlong "<" */
    check("\x1b[31m", "\\x1b[31m");
    check("evil\xe2\x80\xaegpj.exe", "evil\\u202Egpj.exe"); /* turns what follows */
    check("a\xe2\x80\x8b"
          "b\xef\xbb\xbf",
          "a\\u200Bb\\uFEFF");
    check("\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xf0\x9f\x90\x9f",
          "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xf0\x9f\x90\x9f");
    check("two\nlines\tand", "two\nlines\tand");
#undef check
}

TEST(html_takes_values)
{
    struct html h = {.failed = false};

    html(&h, "<a href=\"/x/%u\">%s %d %i %n 100%%%r</a>", "a/b?c=\"d\" e", "<b>", -3, (int64_t)-1234567,
         (int64_t)-1234567, "<br>");
    html(&h, "%n", INT64_MIN);
    assert_true(text_add(&h.out, "", 1, &(struct error){0}) == 0);
    assert_string_equal(h.out.at,
                        "<a href=\"/x/a%2Fb%3Fc%3D%22d%22%20e\">&lt;b&gt; -3 -1234567 -1,234,567 100%<br></a>"
                        "-9,223,372,036,854,775,808");
    html_free(&h);
}

TEST(queries_are_decoded)
{
    char out[8];

    assert_true(query_value("a=1&q=x%20y%2Bz&b=", "q", out, sizeof out));
    assert_string_equal(out, "x y+z");
    assert_true(query_value("q=a+b", "q", out, sizeof out));
    assert_string_equal(out, "a b");
    assert_true(query_value("q=1234567890", "q", out, sizeof out)); /* cut */
    assert_string_equal(out, "1234567");
    assert_true(query_value("q=%4", "q", out, sizeof out));
    assert_string_equal(out, "%4");
    assert_true(query_value("q=a%00b", "q", out, sizeof out)); /* ends there */
    assert_string_equal(out, "a");
    assert_false(query_value("qq=1", "q", out, sizeof out));
    assert_false(query_value(NULL, "q", out, sizeof out));
    assert_int_equal(query_number("from=200", "from", 0), 200);
    assert_int_equal(query_number("from=-1", "from", 7), 7);
    assert_int_equal(query_number("from=99999999999999999999", "from", 7), 7);
}

/* ---- Pages */

TEST_WITH(pages_render_without_data, begin, NULL)
{
    static const char *const paths[] = {"/",     "/limits",  "/batches", "/schedules", "/log",
                                        "/jobs", "/workers", "/dead",    "/redis"};

    for (size_t i = 0; i < COUNT(paths); i++) {
        assert_true(page_is(paths[i]));
        page(200, paths[i], "<!DOCTYPE html>", "aria-current=\"page\"");
    }
    page(200, "/", "No worker is alive.", "No jobs yet");
}

TEST_WITH(names_that_are_nowhere_are_not_found, begin, NULL)
{
    static const char *const paths[] = {"/types/none", "/limits/none", "/jobs/none", "/batches/none"};

    for (size_t i = 0; i < COUNT(paths); i++)
        page(404, paths[i], "Not found");
}

/* ---- One limit, one type, one job */

TEST_WITH(a_limit_shows_its_rules_and_what_others_would_do, begin, NULL)
{
    stage_rate(&stage, "mail", "10/s");
    stage_enqueue(&stage, "mail", "{}", 1, 300);
    page(200, "/limits/mail", "at most 19 in any 1s", "not reported by the workers yet", "set mail 10/1s",
         "data-stops=\"[{&quot;rules&quot;:&quot;1/1s&quot;,&quot;ends&quot;:[", "in 29s",
         "!Nothing is changed yet.");
    page(200, "/limits/mail?rules=20%2Fs", "Nothing is changed yet.", "in 14s");
    page(200, "/limits/mail?rules=%22%3Eno", "Not a rule:", "value=\"&quot;&gt;no\"");
}

TEST_WITH(a_batch_says_why_it_is_paused, begin, NULL)
{
    stage_must(&stage, "batch pause b --create --reason <INC-1>");
    page(200, "/batches/b", "<dt>paused</dt>", "since <time", "&lt;INC-1&gt;", "! until <time");
    stage_must(&stage, "batch pause b --for 1h");
    page(200, "/batches/b", " until <time", "!INC-1");
}

/* As a worker sends it, now. */
static void record_some(void)
{
    struct redisReply *reply;
    struct args a = {0};
    struct span wrong;
    bool sent;

    record_request(&a, stage.client->prefix, -1);
    record_row(&a, RECORD_TYPE, span_str("mail"));
    record_count(&a, 's', 120);
    record_count(&a, 'd', 117);
    record_count(&a, 'x', 3);
    record_bucket(&a, 'R', 7, 120);
    record_bucket(&a, 'A', 10, 90);
    record_bucket(&a, 'E', 2, 30);
    record_row(&a, RECORD_LIMIT, span_str("mail"));
    record_count(&a, 'g', 120);
    record_count(&a, 'n', 7);
    record_reason(&a, "<429>", 2);
    record_row(&a, RECORD_STARTS, span_str("mail"));
    record_start(&a, clock_wall_us() / 100000, 5);
    record_lost(&a, 'n', clock_wall_us() / 1000000 - 9, 6);
    record_lost(&a, 'e', clock_wall_us() / 1000000 - 8, 1);
    assert_int_equal(client_call(stage.client, &a, &reply, &sent), 0);
    assert_int_equal(record_reply(reply, &wrong, &(struct error){0}), 0);
    assert_int_equal(wrong.len, 0);
    freeReplyObject(reply);
    args_free(&a);
}

TEST_WITH(a_type_shows_what_was_recorded, begin, NULL)
{
    record_some();
    stage_enqueue(&stage, "mail", "{}", 1, 1);
    page(200, "/types/mail", "90 waited for a rate", "30 for an executor", "117 done", "half within");
    page(200, "/types/mail?by=hours", "117 done");
    page(200, "/", "<h2>Ends <small>by hour</small></h2>", "117 done",
         "120 starts; 99 of 100 had waited at most ", "1.1s");
}

TEST_WITH(a_limit_shows_starts_and_wasted_slots, begin, NULL)
{
    record_some();
    stage_rate(&stage, "mail", "10/s");
    page(200, "/limits/mail", "<rect class=\"start\"");
    assert_hides("not reported by the workers yet"); /* some started just now */
    assert_shows("120 granted");
    assert_shows("7 wasted: no job waited");
    assert_shows(">wasted: no job<");
    assert_shows(">wasted: no executor<");
    assert_hides("wasted: late");
    assert_shows("<rect class=\"s-held\"");
    assert_shows("5 started, 7 slots were wasted: no job waited, 6; no executor was free, 1.");
}

TEST_WITH(a_limit_shows_what_starts_next, begin, NULL)
{
    stage_rate(&stage, "mail", "1/1h");
    stage_enqueue(&stage, "mail", "{}", 1, 3);
    page(200, "/limits/mail", "The next 3 starts");
    assert_int_equal(count_of("<td class=\"wide\" data-label=\"type\"><span><a href=\"/types/mail\">"), 3);
    assert_shows("href=\"/jobs/j1?at=queue%3Adefault&amp;from=2\"");
    assert_shows("href=\"/jobs/j3?at=queue%3Adefault&amp;from=0\"");
    assert_hides("No job that it holds waits");
    stage_rate(&stage, "sms", "1/1h,by=args.to");
    stage_enqueue(&stage, "sms", "{}", 4, 1);
    page(200, "/limits/sms", "not known</span> <small>no worker takes them<");
}

/* A lane's name has the key of its jobs. */
TEST_WITH(links_to_jobs_hide_keys, begin, NULL)
{
    stage_do(&stage, "SADD", stage_key(&stage, "queues"), "default");
    stage_do(&stage, "ZADD", stage_key(&stage, "wake:default"), "1", "-");
    stage_do(&stage, "ZADD", stage_key(&stage, "wait:default/-"), "1", "mail");
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "s3cret" : "", *entry = i ? "{\"id\":\"of-key\",\"type\":\"mail\"}"
                                                        : "{\"id\":\"of-none\",\"type\":\"mail\"}";

        stage_do(&stage, "ZADD", stage_key(&stage, "ring:default/mail"), "1", key);
        stage_do(&stage, "RPUSH", stage_key(&stage, "lane:default/mail/%s", key), entry);
    }
    page(200, "/jobs", "href=\"/jobs/of-key?at=lane%3Adefault%2Fmail%2Fs3cret&amp;from=0\"");
    usual.hide_args = true;
    page(200, "/jobs", "!s3cret", "href=\"/jobs/of-key\"",
         "href=\"/jobs/of-none?at=lane%3Adefault%2Fmail%2F&amp;from=0\"");
}

TEST_WITH(a_type_without_records_says_so, begin, NULL)
{
    stage_enqueue(&stage, "mail", "{}", 1, 3);
    page(200, "/types/mail", "Nothing was recorded yet", "3 waiting");
    page(200, "/types/mail?by=hours", "by minute");
}

TEST_WITH(a_job_shows_where_it_is_and_what_it_is, begin, NULL)
{
    stage_rate(&stage, "mail", "10/s");
    stage_enqueue(&stage, "mail", "{\"to\":\"<b>\\u202e\"}", 1, 2);
    page(200, "/jobs/j2", "&lt;b&gt;", "2 of 2", "!method=\"post\"");
    usual.hide_args = true;
    page(200, "/jobs/j2", "!&lt;b&gt;", "Hidden");
}

/* A lease and a process are those of a job that runs. */
/* A rule without a slot says so, whoever has paused nothing. */
TEST_WITH(a_rule_is_open_while_it_has_slots, begin, NULL)
{
    long long now_us = clock_wall_us();

    stage_rate(&stage, "mail", "1/1h,burst=1");
    page(200, "/limits/mail", "</i>open", "!</i>closed");
    stage_do(&stage, "SET", stage_key(&stage, "gate:mail#0"),
             textf("%lld 0 - - gcra:1/3600000000/1 %lld 0", now_us, now_us + 3600000000));
    page(200, "/limits/mail", "</i>closed");
}

TEST_WITH(a_job_that_is_done_has_no_lease, begin, NULL)
{
    stage_do(&stage, "SET", stage_key(&stage, "finished:k"),
             "done 1795000000000000 wk 1 default/t/ {}\n@1,0,0,;{\"id\":\"k\",\"type\":\"t\",\"args\":7}");
    page(200, "/jobs/k", "<bdi>wk</bdi>", "!process", "!lease");
}

#define NASTY "\"><script>alert(1)</script>\xff' \xe2\x80\xae"

/* A foreign client may push anything. */
TEST_WITH(what_others_push_is_shown_as_text, begin, NULL)
{
    static const char *const paths[] = {"/",        "/limits", "/batches",    "/schedules",
                                        "/workers", "/dead",   "/types/mail", ("/jobs/" NASTY)};
    char *long_text = malloc(20001);

    memset(long_text, '<', 20000);
    long_text[20000] = '\0';
    stage_push_text(&stage, "{\"id\":\"j1\",\"type\":\"mail\",\"key\":\"" NASTY "\",\"args\":\"" NASTY "\"}");
    stage_push_text(&stage, NASTY);
    stage_push_text(&stage, long_text);
    stage_do(&stage, "HSET", stage_key(&stage, "schedules"), NASTY, NASTY);
    stage_do(&stage, "HSET", stage_key(&stage, "limits"), NASTY, NASTY);
    stage_do(&stage, "HSET", stage_key(&stage, "types"), NASTY, NASTY);
    stage_do(&stage, "SADD", stage_key(&stage, "queues"), NASTY);
    stage_do(&stage, "LPUSH", stage_key(&stage, "changes"),
             "{\"at\":1,\"by\":\"<i>\",\"what\":\"set mail <i>\"}");
    usual.actions = true;
    for (size_t i = 0; i < COUNT(paths); i++) {
        render(paths[i], "problem="
                         "%22%3E%3Cscript%3E&like=%22%3E%3Cscript%3E&q=%3Cscript%3E");
        check_shape();
        assert_hides("<script>");
        assert_hides("\xff");
        assert_hides("\xe2\x80\xae");
        assert_hides("<i>");
    }
    free(long_text);
}

/* ---- Nastiness of each kind, wherever a foreign client can put it */

/* Elements and attributes are ours; addresses lead nowhere else; no byte of a text turns or hides others. */
static size_t check_attribute(const char *at)
{
    size_t len = strcspn(at, "= />\"'<\n"), value_len;
    bool leads = strncmp(at, "href=", 5) == 0 || strncmp(at, "action=", 7) == 0;
    const char *value = at + len + 2;

    if (len == 0 || strncmp(at, "on", 2) == 0 || strncmp(at, "style", 5) == 0 ||
        strncmp(at, "srcdoc", 6) == 0)
        fail_msg("a wrong attribute: %.100s", at);
    if (at[len] != '=')
        return len;
    if (at[len + 1] != '"')
        fail_msg("an attribute without quotes: %.100s", at);
    value_len = strcspn(value, "\"");
    if (leads && (!strchr("/?#", *value) || value[1] == '/'))
        fail_msg("it leads elsewhere: %.100s", at);
    return len + 2 + value_len + 1;
}

static const char *check_tag(const char *at)
{
    static const char elements[] = " html head meta title link script noscript body header main footer nav "
                                   "section form label input button select option output "
                                   "details summary svg path rect table thead tbody tr th td dl dt dd ul ol "
                                   "li div span p a b i small bdi code pre br time h1 h2 h3 ";
    size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789");
    const char *name = textf(" %.*s ", (int)len, at);

    if (strncmp(at, "!DOCTYPE html>", 14) == 0)
        return at + 14;
    if (len == 0 || !strstr(elements, name))
        fail_msg("a wrong element: <%.100s", at);
    for (at += len; *at == ' ' || *at == '\n';)
        at += 1 + check_attribute(at + 1);
    if (*at == '/')
        at++;
    if (*at != '>')
        fail_msg("a tag without end: %.100s", at);
    return at + 1;
}

static void check_markup(void)
{
    const char *end = shown + strlen(shown);

    for (const char *at = shown; at < end;) {
        size_t len = utf8_printable(at, (size_t)(end - at));

        if (*at == '<') {
            at = check_tag(at + 1 + (at[1] == '/'));
            continue;
        }
        if (len == 0 && *at != '\n' && *at != '\t')
            fail_msg("a byte %02x: %.100s", (unsigned char)*at, at);
        if (len == 3 && memcmp(at, "\xe2\x80\xae", 3) == 0)
            fail_msg("a mark that turns text: %.100s", at);
        at += len ? len : 1;
    }
}

static redisContext *pusher;

static void push(const char *verb, const char *key, struct span field, struct span value)
{
    redisReply *reply = redisCommand(pusher, "%s %s %b %b", verb, stage_key(&stage, "%s", key), field.at,
                                     field.len, value.at, value.len);

    if (!reply || reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s %s: %s", verb, key, reply ? reply->str : "no answer");
    freeReplyObject(reply);
}

/* Fills in, for each %, the nastiness as it may stand in a text of JSON. */
static struct span fill_in(const char *form, struct span nasty)
{
    static struct text made[4];
    static unsigned next;
    struct text *t = &made[next++ % 4];
    struct error e;

    t->len = 0;
    for (; *form; form++)
        for (size_t i = 0; i < (*form == '%' ? nasty.len : 1); i++) {
            char c = *form == '%' ? nasty.at[i] : *form;
            bool escapes = *form == '%' && ((unsigned char)c < 0x20 || c == '"' || c == '\\');

            assert_int_equal(
                text_add(t, escapes ? textf("\\u%04x", (unsigned char)c) : &c, escapes ? 6 : 1, &e), 0);
        }
    return (struct span){t->at, t->len};
}

static void push_everywhere(struct span nasty, bool short_enough)
{
    push("RPUSH", "queue:default", span_str("-"),
         fill_in("{\"id\":\"evil\",\"type\":\"mail\",\"key\":\"%\",\"args\":{\"%\":\"%\"}}", nasty));
    push("RPUSH", "queue:default", nasty, nasty);
    push("SADD", "queues", span_str("default"), span_str("default"));
    push("ZADD", "dead", span_str("1763900100000000"),
         fill_in("dead1 default/mail/ %\n{\"id\":\"dead1\",\"type\":\"mail\",\"args\":\"%\"}", nasty));
    push("LPUSH", "changes", span_str("-"),
         fill_in("{\"at\":1,\"by\":\"%\",\"what\":\"set mail %\"}", nasty));
    push("HSET", "schedules", span_str("spec"),
         fill_in("{\"spec\":\"%\",\"zone\":\"%\",\"job\":{\"type\":\"%\",\"args\":\"%\"}}", nasty));
    push("HSET", "active:w", span_str("@"),
         fill_in("{\"host\":\"%\",\"pid\":1,\"executors\":1,\"queues\":[\"%\"],\"types\":[\"%\"]}", nasty));
    push("ZADD", "workers", span_str("9000000000000000"), span_str("w"));
    if (!short_enough)
        return;
    push("HSET", "types", nasty, nasty);
    push("HSET", "limits", nasty, nasty);
    push("HSET", "schedules", nasty, nasty);
    push("SADD", "queues", nasty, nasty);
    push("ZADD", "batches", span_str("1"), nasty);
    push("ZADD", "workers", span_str("9000000000000000"), nasty);
}

/* All places of a query. */
static void make_query(char *query, size_t size, struct span nasty)
{
    static const char *const names[] = {"q",   "like", "problem", "type", "reason", "rules",
                                        "key", "name", "back",    "by",   "from",   "at"};
    size_t len = (size_t)snprintf(query, size, "do=purge");

    for (size_t i = 0; i < COUNT(names); i++) {
        len += (size_t)snprintf(query + len, size - len, "&%s=", names[i]);
        for (size_t k = 0; k < nasty.len && k < 300; k++)
            len += (size_t)snprintf(query + len, size - len, "%%%02X", (unsigned char)nasty.at[k]);
    }
}

static void check_pages(struct span nasty, bool short_enough)
{
    static const char *const paths[] = {"/",        "/limits",    "/limits/mail", "/keys/mail", "/types/mail",
                                        "/jobs",    "/jobs/evil", "/jobs/dead1",  "/batches",   "/schedules",
                                        "/workers", "/dead",      "/redis",       "/ask"};
    static const char *const of_names[] = {"/types/", "/limits/", "/keys/", "/jobs/", "/batches/", "/"};
    char query[16384];

    make_query(query, sizeof query, nasty);
    for (size_t i = 0; i < COUNT(paths); i++)
        for (int with = 0; with < 2; with++) {
            assert_int_not_equal(render(paths[i], with ? query : NULL), 500);
            assert_true(strlen(shown) < (1 << 20)); /* a text of a megabyte is cut */
            check_markup();
            assert_int_equal(count_of("<script"), count_of("<script src=\"/assets/page.js\""));
        }
    for (size_t i = 0; short_enough && i < COUNT(of_names); i++) {
        assert_int_not_equal(render(textf("%s%.*s", of_names[i], (int)nasty.len, nasty.at), query), 500);
        check_markup();
    }
}

/* As a browser does, which looks on: a busy machine may find nothing at first. */
static unsigned render_job(const char *path)
{
    char query[2000] = "";
    const char *early;
    unsigned status;

    do {
        status = render(path, *query ? query : NULL);
        early = strstr(shown, "data-look-on");
        if (early)
            snprintf(query, sizeof query, "%.*s", (int)strcspn(strchr(strstr(early, "href="), '?') + 1, "\""),
                     strchr(strstr(early, "href="), '?') + 1);
    } while (early);
    return status;
}

TEST_WITH(nastiness_of_each_kind_is_shown_as_it_is, begin, NULL)
{
    static char large[1 << 20];
    static const struct {
        const char *bytes;
        size_t len;
        const char *shown; /* in the payload */
    } kinds[] = {
#define kind(bytes, shown) {bytes, sizeof bytes - 1, shown}
        kind("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        kind("\"><img src=x onerror=alert(1)>", "&gt;&lt;img src=x onerror=alert(1)&gt;"),
        kind("' onmouseover='alert(1)", "&#39; onmouseover=&#39;alert(1)"),
        kind("</title></main></pre>--><!--", "&lt;/title&gt;&lt;/main&gt;&lt;/pre&gt;--&gt;&lt;!--"),
        kind("javascript:alert(1)//", "javascript:alert(1)//"),
        kind("//evil.example/x/../../rates/mail", "//evil.example/x/../../rates/mail"),
        kind("%s%n%d&#60;&lt;%3Cb%3E", "%s%n%d&amp;#60;&amp;lt;%3Cb%3E"),
        kind("\xe2\x80\xaegnp\xe2\x80\x8b\xef\xbb\xbf", "\\u202Egnp\\u200B\\uFEFF"),
        kind("\xff\xfe\xc0\xbc\xed\xa0\x80", "\\xff\\xfe\\xc0\\xbc\\xed\\xa0\\x80"),
        kind("\x1b[31m\r\n\x7f", "\\x7f"),
        kind("a\0<b>", "&lt;b&gt;"),
        {large, sizeof large, "&lt;&lt;&lt;&lt;"},
#undef kind
    };

    memset(large, '<', sizeof large);
    pusher = redisConnectUnix(stage.server.socket);
    usual.actions = true;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct span nasty = {kinds[i].bytes, kinds[i].len};

        stage_do(&stage, "FLUSHALL");
        stage_rate(&stage, "mail", "1/1h,by=key");
        push_everywhere(nasty, nasty.len < 400);
        check_pages(nasty, nasty.len < 400);
        if (render_job("/jobs/evil") != 200)
            fail_msg("kind %zu: %s", i, strstr(shown, "<main"));
        assert_shows(kinds[i].shown);
    }
    redisFree(pusher);
}

#define TEN "0123456789"

TEST_WITH(jobs_are_found_by_a_search, begin, NULL)
{
    stage_enqueue(&stage, "mail", "{\"n\":1}", 1, 60);
    stage_enqueue(&stage, "other", "{\"secret\":\"s3cret\"}", 61, 1);
    page(200, "/jobs?q=type%3Aother", "href=\"/jobs/j61?at=queue%3Adefault&amp;from=0\"", "!href=\"/jobs/j1",
         "!/ask?", "data-label=\"args\"><span><bdi>{&quot;secret&quot;:&quot;s3cret&quot;}</bdi>");
    stage_enqueue(&stage, "long", "{\"of\":\"" TEN TEN TEN TEN TEN TEN TEN TEN TEN "<b>" TEN "\"}", 62, 1);
    page(200, "/jobs?q=type%3Along", TEN "&lt;b&gt;...</bdi>");
    page(200, "/jobs?q=type%3Amail");
    assert_int_equal(count_of("href=\"/jobs/j"), 50);
    assert_shows("Go on");
    page(200, "/jobs?q=size%3A%3Cb%3E", "Not a search:");
    usual.hide_args = true;
    page(200, "/jobs?q=args.secret%3As3cret", "--hide-args", "!j61");
    page(200, "/jobs?q=type%3Aother", "j61", "!s3cret");
    usual.hide_args = false;
    usual.actions = true;
    page(200, "/jobs?q=type%3Amail", "/ask?do=jobs-cancel&amp;name=type%3Amail&amp;back=");
    page(200, "/ask?do=jobs-cancel&name=type%3Amail&back=%2Fjobs", "<b>60 jobs</b>",
         "name=\"count\" value=\"60\"", "name=\"search\" value=\"type:mail\"");
}

/* More than a page looks at, in one queue. */
#define MANY_PUSHES "400"
static void push_many(void)
{
    static const char push[] =
        "local jobs = {}\n"
        "for i = 1, 1000 do jobs[i] = '{\"id\":\"many\",\"type\":\"mail\"}' end\n"
        "redis.call('SADD', KEYS[1], 'default')\n"
        "for i = 1, tonumber(ARGV[1]) do redis.call('RPUSH', KEYS[2], unpack(jobs)) end";

    stage_do(&stage, "EVAL", push, "2", stage_key(&stage, "queues"), stage_key(&stage, "queue:default"),
             MANY_PUSHES);
}

/* Follows "Go on" until it is not there; how often. The status of the last page in *status. */
static int follow(const char *path, unsigned *status)
{
    const char *link;
    int links = 0;

    for (*status = render(path, NULL); (link = strstr(shown, "rel=\"next\"")); links++) {
        assert_int_equal(*status, 200);
        assert_shows("data-look-on");
        link = strchr(link, '?') + 1;
        *status = render(path, textf("%.*s", (int)strcspn(link, "\""), link));
    }
    return links;
}

TEST_WITH(a_job_is_looked_for_page_by_page, begin, NULL)
{
    unsigned status;

    push_many();
    stage_enqueue(&stage, "mail", "{\"n\":1}", 1, 1);
    page(200, "/jobs/j1"); /* at the tail */
    assert_hides("data-look-on");
    stage_do(&stage, "LPUSH", stage_key(&stage, "queue:default"),
             "{\"id\":\"first\",\"type\":\"mail\",\"args\":\"its payload\"}");
    page(200, "/jobs/first", "<p class=\"pager\"><span>looked at ",
         " of about 400,002</span> <a rel=\"next\" href=\"/jobs/first?cursor=", "!its payload");
    assert_true(follow("/jobs/first", &status) > 0);
    assert_int_equal(status, 200);
    assert_shows("its payload");
    assert_true(follow("/jobs/none", &status) > 0);
    assert_int_equal(status, 404);
    assert_shows("no such job");
    check_shape();
}

TEST_WITH(a_cursor_may_come_from_anybody, begin, NULL)
{
    static const char *const wrong[] = {
        "cursor=x", "cursor=MCwwLG5vd2hlcmUs", "cursor=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        "cursor=MCwwLGFjdGl2ZTp3LDk5OTk5OTk5OTk5OTk5OTk5OTk5", "cursor=MCw5OQ"};
    char lengthy[20000] = "cursor=0,0,";

    stage_enqueue(&stage, "mail", "{\"n\":1}", 1, 1);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        page(400, textf("/jobs/j1?%s", wrong[i]), "not one; take it as the page before gave it",
             "!<script>alert");
    }
    memset(lengthy + strlen(lengthy), 'a', sizeof lengthy - strlen(lengthy) - 1);
    page(400, textf("/jobs/j1?%s", lengthy), "cursor: too long");
    page(200, "/jobs/j1?cursor=");
    page(404, "/jobs/j1?cursor=MCwwLHF1ZXVlOmFub3RoZXIsMTc"); /* of another namespace */
    assert_shows("look again without the cursor");
    page(200, "/jobs?q=type%3Amail&at=MCwwLG5vd2hlcmUs", "not one; take it as the page before gave it");
    page(200, "/jobs/j1?at=queue%3Adefault&from=0&cursor=x"); /* it is there */
}

/* A search that goes on among queues of long names has a long cursor. */
TEST_WITH(a_search_goes_on_among_long_names, begin, NULL)
{
    char queue[120], query[20000];
    const char *at;

    for (int i = 0; i < 60; i++) {
        snprintf(queue, sizeof queue, "%0100d", i);
        stage_do(&stage, "SADD", stage_key(&stage, "queues"), queue);
        stage_do(&stage, "RPUSH", stage_key(&stage, "queue:%s", queue), "{\"id\":\"a\",\"type\":\"t\"}",
                 "{\"id\":\"b\",\"type\":\"t\"}");
    }
    page(200, "/jobs");
    assert_int_equal(count_of("href=\"/jobs/"), 50);
    at = strstr(shown, "&amp;at=");
    assert_non_null(at);
    snprintf(query, sizeof query, "q=&%.*s", (int)strcspn(at + 5, "\""), at + 5);
    assert_true(strlen(query) > 2000);
    page(200, textf("/jobs?%s", query));
    assert_int_equal(count_of("href=\"/jobs/"), 50);
}

/* What is done to all that match stands before them; where nothing matches there is nothing to do, nor what their states do not allow. */
TEST_WITH(all_that_match_are_acted_on_above_them, begin, NULL)
{
    static const struct {
        const char *query;
        bool runs, retries;
    } searches[] = {
        {"q=type%3Amail", true, true},
        {"q=state%3Awaiting", true, false},
        {"q=state%3Awaiting%2Cdead", true, true},
        {"q=state%3Adead", false, false}, /* there is none */
        {"q=type%3Anobody", false, false},
        {"q=", false, false},
    };

    stage_enqueue(&stage, "mail", "{\"n\":1}", 1, 3);
    usual.actions = true;
    for (size_t i = 0; i < COUNT(searches); i++) {
        const char *buttons;

        page(200, textf("/jobs?%s", searches[i].query));
        buttons = strstr(shown, "All that match:");
        assert_int_equal(strstr(shown, "do=jobs-run") && strstr(shown, "do=jobs-cancel"), searches[i].runs);
        assert_int_equal(strstr(shown, "do=jobs-retry") && strstr(shown, "do=jobs-remove"),
                         searches[i].retries);
        assert_int_equal(buttons && buttons < strstr(shown, "<table"), searches[i].runs);
    }
}

static void bury(const char *tag, const char *head)
{
    stage_do(&stage, "ZADD", stage_key(&stage, "dead"), "1763900100000000",
             textf("%s default/mail/ no luck\n%s{\"id\":\"%s\",\"type\":\"mail\"}", tag, head, tag));
}

TEST_WITH(dead_jobs_show_when_they_were_enqueued, begin, NULL)
{
    char head[STAMP_HEAD_LEN + 1];

    bury("foreign", "");
    page(200, "/dead");
    assert_int_equal(count_of("<time data-at="), 1);
    stamp_head(INT64_C(1763900000050000), head);
    bury("ours", head);
    page(200, "/dead", "data-label=\"enqueued\"><time data-at=\"1763900000050\"");
    assert_int_equal(count_of("<time data-at="), 3);
}

/* What is shown is what the question counts, whatever stands in the reason. */
TEST_WITH(all_dead_that_match_are_acted_on, begin, NULL)
{
    static const char record[] = "quoted default/mail/ say \"no\\\n{\"id\":\"quoted\",\"type\":\"mail\"}";

    bury("plain", "");
    stage_do(&stage, "ZADD", stage_key(&stage, "dead"), "1763900100000001", record);
    usual.actions = true;
    page(200, "/dead", "/ask?do=jobs-retry&amp;name=state%3Adead&amp;back=");
    page(200, "/ask?do=jobs-retry&name=state%3Adead", "<b>2 jobs</b>", "!danger");
    page(200, "/dead?type=mail&reason=%22no%5C",
         "href=\"/jobs/quoted?at=dead&amp;from=1763900100000001%3A0\"", "!href=\"/jobs/plain",
         "name=state%3Adead%20type%3Amail%20reason%3A%22%5C%22no%5C%5C%22&amp;back=");
    page(200, "/ask?do=jobs-remove&name=state%3Adead%20type%3Amail%20reason%3A%22%5C%22no%5C%5C%22",
         "<b>1 job</b>", "danger main");
    page(200, "/dead?reason=other", "!All that match");
    page(200, "/dead?newer=2021-11-28T09:00:00.5%2B01:00", "newer=2021-11-28T08%3A00%3A00Z");
    usual.actions = false;
    page(200, "/dead", "!All that match");
}

TEST_WITH(the_dead_are_grouped_by_reason, begin, NULL)
{
    const char *const ids[] = {"a1", "b2", "c"};

    for (size_t i = 0; i < COUNT(ids); i++)
        stage_do(&stage, "ZADD", stage_key(&stage, "dead"), textf("176390010000000%zu", i),
                 textf("w:%s default/mail/ %s <is> gone\n{\"id\":\"%s\",\"type\":\"mail\"}", ids[i], ids[i],
                       ids[i]));
    page(200, "/dead", "<a href=\"/dead?type=mail&amp;reason=%23%20%3Cis%3E%20gone\"># &lt;is&gt; gone</a>");
    page(200, "/dead?type=mail&reason=%23%20%3Cis%3E%20gone", "href=\"/jobs/a1?", "href=\"/jobs/b2?",
         "!href=\"/jobs/c?", "!By reason");
    usual.actions = true;
    page(200, "/ask?do=jobs-retry&name=state%3Adead%20type%3Amail%20reason%3A%22%23%20%3Cis%3E%20gone%22",
         "<b>2 jobs</b>", "data-label=\"reason\"># &lt;is&gt; gone</td>"); /* what is retried is named */
    page(200, "/dead?newer=300w",
         "<a href=\"/dead?type=mail&amp;reason=%23%20%3Cis%3E%20gone&amp;newer=300w\">",
         "do=jobs-remove&amp;name=state%3Adead%20type%3Amail%20died%3A%3C300w%20reason%3A%22%23%20%3Cis%3E%20"
         "gone%22&amp;back=");
    stage_enqueue(&stage, "mail", "{}", 1, 1);
    stage_do(&stage, "HSET", stage_key(&stage, "stats:mail"), "dead", "3");
    page(200, "/types/mail", "<a href=\"/dead?type=mail\">dead jobs</a>",
         "<a href=\"/dead?type=mail&amp;reason=%23%20%3Cis%3E%20gone\">");
    page(200, "/dead?newer=1s", "No dead job is like that.");
    page(200, "/dead?older=soon", "<b>Not a search:</b> search died:&gt;soon: ");
    usual.actions = false;
    usual.hide_args = true;
    page(200, "/dead", "!By reason", "!gone");
}

TEST_WITH(asking_says_what_and_how_many, begin, NULL)
{
    stage_enqueue(&stage, "mail", "{}", 1, 3);
    page(404, "/ask?do=purge&name=default&back=%2F"); /* not allowed */
    usual.actions = true;
    page(200, "/ask?do=purge&name=default&back=%2F%3Flike%3Dx", "<b>3 jobs</b>",
         "action=\"/api/queues/default/purge\"", "name=\"back\" value=\"/?like=x\"");
    page(200, "/ask?do=purge&name=default&back=%2F%2Fevil.example", "!evil.example");
    page(200, "/ask?do=purge&name=default&back=%2F%5Cevil.example", "!evil.example");
    page(404, "/ask?do=nothing&name=x");
    page(404, "/ask?do=rate-remove&name=none");
}

TEST_WITH(what_is_no_page_is_not_found, begin, NULL)
{
    assert_false(page_is("/nothing"));
    page(404, "/<script>", "&lt;script&gt;");
}

TEST_WITH(the_overview_shows_types_and_queues, begin, NULL)
{
    stage_rate(&stage, "mail", "10/s");
    stage_enqueue(&stage, "mail", "{}", 1, 12);
    stage_enqueue(&stage, "report", "{}", 13, 1);
    page(200, "/", "href=\"/types/mail\"", "12 waiting",
         "waits for <bdi>a worker that takes mail: none does; start one");
    page(200, "/?like=rep", "href=\"/types/report\"", "!href=\"/types/mail\"");
}

TEST_WITH(actions_stand_only_where_they_are_allowed, begin, NULL)
{
    stage_enqueue(&stage, "mail", "{}", 1, 1);
    page(200, "/", "!method=\"post\"", "!/ask?");
    usual.actions = true;
    page(200, "/?like=a%22b&problem=x", "action=\"/api/queues/default/pause\"",
         "name=\"back\" value=\"/?like=a%22b\"",
         "href=\"/ask?do=purge&amp;name=default&amp;back=%2F%3Flike%3Da%2522b\"");
}

TEST_WITH(a_problem_is_shown_as_text, begin, NULL)
{
    page(200, "/?problem=%3Cimg%20src%3Dx%3E", "<b>Not done:</b> &lt;img src=x&gt;");
}

TEST(a_page_without_redis_says_so)
{
    struct page_request r = {.path = "/"};
    struct weir *w = weir_new("unix:///nonexistent/redis.sock", NULL);
    struct text out = {0};
    struct error e;

    assert_int_equal(page_render(w, &r, &out, &e), 503);
    assert_non_null(memmem(out.at, out.len, "Redis does not answer", 21));
    text_free(&out);
    weir_free(w);
}

/* Redis answers, and what stands there is not ours: it is not away. */
TEST_WITH(a_foreign_key_is_told, begin, NULL)
{
    stage_do(&stage, "SET", stage_key(&stage, "limits"), "x");
    page(502, "/limits", "This cannot be shown", "somebody else&#39;s", "!does not answer", "!data-away");
}

TEST_WITH(what_was_read_is_used_again, begin, NULL)
{
    usual.cache = page_cache_new();
    stage_enqueue(&stage, "mail", "{}", 1, 1);
    page(200, "/", "!/types/late");
    stage_enqueue(&stage, "late", "{}", 2, 1);
    page_cache_renew(stage.client, usual.cache); /* nothing is due: it was read in a moment */
    page(200, "/", "!/types/late");
    page_cache_drop(usual.cache);
    page(200, "/", "/types/late");
    page_cache_free(usual.cache);
    usual.cache = NULL;
}

/* The more types, the longer it is kept: what a reading costs stays a hundredth of the time. Such a page says how old it is. */
TEST_WITH(more_types_are_read_more_rarely, begin, NULL)
{
    struct page_reading reading;

    usual.cache = page_cache_new();
    page(200, "/", "!as of");
    for (int i = 0; i < TYPES_MANY; i++)
        stage_do(&stage, "HSET", stage_key(&stage, "types"), textf("t%d", i), "");
    page_cache_drop(usual.cache);
    page(200, "/", "as of <time");
    assert_int_equal(page_cache_read(stage.client, usual.cache, &reading), 0);
    assert_true(reading.keep_us >= TYPES_MANY * 1500);
    assert_true(reading.age_us < reading.keep_us);
    stage_enqueue(&stage, "late", "{}", 2, 1);
    assert_int_equal(page_cache_read(stage.client, usual.cache, &reading), 0);
    assert_int_equal(reading.status->type_count, TYPES_MANY);
    page_cache_free(usual.cache);
    usual.cache = NULL;
}

static int foretold_types(const struct status *status)
{
    int count = 0;

    for (size_t i = 0; i < status->type_count; i++)
        count += status->types[i].foretold;
    return count;
}

/* Of many types only those that a page shows are foretold, and each once. */
TEST_WITH(shown_types_are_foretold, begin, NULL)
{
    struct page_reading reading;

    for (int i = 0; i < 300; i++)
        stage_do(&stage, "HSET", stage_key(&stage, "types"), textf("t%d", i), "");
    usual.cache = page_cache_new();
    page(200, "/limits");
    assert_int_equal(page_cache_read(stage.client, usual.cache, &reading), 0);
    assert_int_equal(foretold_types(reading.status), 0);
    page(200, "/types/t7");
    assert_int_equal(foretold_types(reading.status), 1);
    page(200, "/");
    assert_in_range(foretold_types(reading.status), 100, 101);
    page_cache_free(usual.cache);
    usual.cache = NULL;
}

TEST(assets_are_in_the_binary)
{
    assert_string_equal(page_asset("style.css")->type, "text/css; charset=utf-8");
    assert_non_null(strstr(page_asset("page.js")->text, "visibilitychange"));
    assert_non_null(strstr(page_asset("icon.svg")->text, "<svg"));
    assert_null(page_asset("../page.c"));
}

STAGE_TESTS(stage_start, stage_stop)
