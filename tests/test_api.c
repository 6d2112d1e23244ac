/* weir serve besides takes, from outside: answers that go on at a cursor, and what must be new. Requests and their answers: tests/requests/. */
#include <signal.h>

#include "core/clock.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/serving.h"
#include "tests/stage.h"

/* Does doc/api.md have that path, with a name in place of "*"? */
static bool is_documented(const char *page, const char *method, const char *path)
{
    char row[256];
    size_t len = (size_t)snprintf(row, sizeof row, "`%s ", method);

    for (; *path; path++)
        len += (size_t)snprintf(row + len, sizeof row - len, *path == '*' ? "[A-Z]+" : "%c", *path);
    for (const char *at = page; (at = strstr(at, "`")); at++) {
        const char *mine = row, *theirs = at;

        while (*mine && (*mine == *theirs || *mine == '[')) {
            if (*mine == '[') {
                theirs += strspn(theirs, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
                mine += strlen("[A-Z]+");
            } else {
                mine++;
                theirs++;
            }
        }
        if (!*mine && *theirs == '`')
            return true;
    }
    return false;
}

static void check_routes(const char *source, const char *method, size_t least)
{
    static char code[65536], page[65536];
    size_t found = 0;

    assert_true(read_text(".", source, code, sizeof code));
    assert_true(read_text("doc", "api.md", page, sizeof page));
    for (char *at = code; (at = strstr(at, "{\"/api/")); found++) {
        char path[128];

        at += strlen("{\"");
        snprintf(path, sizeof path, "%.*s", (int)strcspn(at, "\""), at);
        if (!is_documented(page, method, path))
            fail_msg("doc/api.md does not have %s %s", method, path);
    }
    assert_true(found >= least);
}

TEST(test_the_page_of_routes_has_all_of_them)
{
    check_routes("serve/documents.c", "GET", 17);
    check_routes("serve/actions.c", "POST", 16);
}

static void has_a_page(const char *path)
{
    int status = serving_status_of("GET", path, "", NULL);

    if (status != 200)
        stage_late("%s is answered with %d", path, status);
}

/* What is new has a page at once, however short ago all of it was read, and however often it was asked for in vain: but for half of
 * the time that reading it takes, which is long on a busy machine. */
TRIAL_WITH(test_a_new_name_has_a_page, NULL, NULL)
{
    serving_flush(state);
    serving_weir("status"); /* loads the functions, which takes long */
    serving_start();
    serving_refused("GET", "/limits/fresh", "", NULL, 404, "Not found");
    serving_refused("GET", "/types/young", "", NULL, 404, "Not found");
    serving_weir("rate set fresh 1/s");
    has_a_page("/limits/fresh");
    serving_weir("enqueue young");
    has_a_page("/types/young");
    serving_weir("rate set fresher 1/s");
    has_a_page("/ask?do=rate-remove&name=fresher");
    serving_end();
}

/* Asks with the cursor of each answer for the next one; how many of them did not know yet. Ends with the one that does. */
static int look_on(const char *path)
{
    char all[2048];
    int answers = 0;
    json_t *doc = NULL;

    snprintf(all, sizeof all, "%s?wait=0", path);
    for (;; answers++) {
        const char *cursor;

        http_request(serving.where, "GET", all, "", NULL, &serving.reply);
        if (serving.reply.status != 200)
            return answers;
        doc = serving_parsed();
        cursor = json_string_value(json_object_get(doc, "cursor"));
        if (cursor) {
            assert_true(json_is_null(json_object_get(doc, "state")));
            assert_true(json_integer_value(json_object_get(doc, "looked_at")) > 0);
            assert_int_equal(json_integer_value(json_object_get(doc, "of")), 400001);
            snprintf(all, sizeof all, "%s?wait=0&cursor=%s", path, cursor);
        }
        json_decref(doc);
        if (!cursor)
            return answers;
    }
}

TEST_WITH(test_one_job_is_looked_for_a_part_at_a_time, serving_flush, NULL)
{
    json_t *doc;

    serving_weir("enqueue mail --id first");
    serving_enqueue_many(400000);
    serving_start();
    assert_true(look_on("/api/jobs/first") > 0);
    assert_int_equal(serving.reply.status, 200);
    assert_non_null(strstr(serving.reply.body, "\"state\":\"waiting\""));
    assert_true(look_on("/api/jobs/first/why") > 0);
    assert_int_equal(serving.reply.status, 200);
    assert_non_null(strstr(serving.reply.body, "\"ahead\":"));
    assert_true(look_on("/api/jobs/none") > 0);
    assert_int_equal(serving.reply.status, 404);
    assert_non_null(strstr(serving.reply.body, "no such job"));
    serving_weir("job show first");
    /* Who waits hears of it at once, beside others who do. */
    assert_int_equal(serving_status_of("GET", "/api/jobs/none?wait=60", "", NULL), 404);
    doc = serving_get("/api/jobs/first/why?wait=60");
    assert_string_equal(json_string_value(json_object_get(doc, "state")), "waiting");
    json_decref(doc);
    doc = serving_get("/api/jobs?q=id:first&wait=60");
    assert_int_equal(json_array_size(json_object_get(doc, "jobs")), 1);
    json_decref(doc);
    doc = serving_get("/api/jobs?q=id:none&wait=60");
    assert_true(json_is_null(json_object_get(doc, "cursor")));
    assert_int_equal(json_integer_value(json_object_get(doc, "looked_at")), 400001);
    json_decref(doc);
    doc = serving_get("/api/jobs?q=id:none&wait=0");
    assert_true(json_is_string(json_object_get(doc, "cursor")));
    json_decref(doc);
    serving_refused("GET", "/api/jobs?wait=61", "", NULL, 400, "wait: must be 0 to 60 seconds");
    http_request(serving.where, "GET", "/jobs?q=id:none", "", NULL, &serving.reply);
    assert_non_null(strstr(serving.reply.body, "<div data-look-on>"));
    assert_non_null(strstr(serving.reply.body, "None so far."));
    serving_refused("GET", "/api/jobs/first?cursor=MCwwLG5vd2hlcmUs", "", NULL, 400,
                    "not one; take it as the page before gave it");
    serving_refused("GET", "/api/jobs/first/why?cursor=x", "", NULL, 400,
                    "not one; take it as the page before gave it");
    serving_refused("GET", "/api/jobs/first?cursor=", "", NULL, 400, "cursor");
    serving_end();
}

/* Sends that with the cursor of the answer before, "": none; returns how many jobs the answer names. */
static int64_t go_on(const char *fields, char cursor[1024])
{
    const char *next;
    json_t *doc;
    int64_t jobs;

    serving_act("/api/jobs/actions", textf("%s%s%s", fields, *cursor ? "&cursor=" : "", cursor));
    doc = serving_parsed();
    next = json_string_value(json_object_get(doc, "cursor"));
    snprintf(cursor, 1024, "%s", next ? next : "");
    jobs = json_integer_value(json_object_get(doc, "jobs"));
    json_decref(doc);
    return jobs;
}

/* One request looks at 100,000 jobs. */
TEST_WITH(test_actions_on_many_go_on_at_a_cursor, serving_flush, NULL)
{
    char cursor[1024] = "";
    int64_t jobs;

    serving_enqueue_many(101000);
    serving_start();
    jobs = go_on("action=cancel&search=type:many&dry_run=true", cursor);
    assert_in_range(jobs, 100000, 100999);
    assert_string_not_equal(cursor, "");
    assert_int_equal(go_on("action=cancel&search=type:many&dry_run=true", cursor), 101000 - jobs);
    assert_string_equal(cursor, "");
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(go_on("action=cancel&search=type:many&count=1", cursor), 1);
        assert_string_not_equal(cursor, "");
        assert_int_equal(server_number(&server, "LLEN", "weir:{0}:queue:default", NULL), 101000 - i);
    }
    serving_refused("POST", "/api/jobs/actions", FORM, "action=cancel&search=type:many&count=1&cursor=x", 400,
                    "cursor 'x': not one");
    serving_end();
}

#define CURSOR_WORD 16 /* bytes, which stand for a cursor that weir serve keeps to itself */

/* The jobs of all answers, each of which went on at the cursor of the one before; none of them names the key. */
static size_t list_without_key(const char *path)
{
    char all[256];
    size_t jobs = 0;

    snprintf(all, sizeof all, "%s", path);
    for (bool more = true; more;) {
        json_t *doc = serving_get(all);
        const char *cursor = json_string_value(json_object_get(doc, "cursor"));

        assert_null(strstr(serving.reply.body, "secret"));
        jobs += json_array_size(json_object_get(doc, "jobs"));
        more = cursor != NULL;
        if (more) {
            assert_int_equal(strlen(cursor), CURSOR_WORD);
            snprintf(all, sizeof all, "%s&cursor=%s", path, cursor);
        }
        json_decref(doc);
    }
    return jobs;
}

/* A cursor names the lane at which a search goes on, and so its key. */
TEST_WITH(test_cursors_hide_keys, serving_flush, NULL)
{
    static const char *const flags[] = {"--hide-args", NULL};
    const char *path = "/api/jobs?q=type:mail+state:parked&limit=50";
    const char *const words[] = {built("weir"), "--redis", server.url, "worker", "--exec", "mail=true", NULL};
    pid_t worker;
    char next[256];
    int jobs = 0;

    serving_weir("rate set mail 1/1h,by=key");
    serving_enqueue(&(struct weir_job_spec){.type = "mail", .key = "secret"}, 131);
    worker = program_start(serving.folder, "worker", words);
    while (server_number(&server, "LLEN", "weir:{0}:lane:default/mail/secret", NULL) < 130)
        clock_sleep_until(clock_mono_us() + 20000);
    /* A worker that stops gives back a job that has not started. */
    while (server_number(&server, "HEXISTS", "weir:{0}:stats:mail", "done", NULL) == 0)
        clock_sleep_until(clock_mono_us() + 20000);
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    serving_start();
    json_decref(serving_get(path));
    assert_true(strcspn(strstr(serving.reply.body, "\"cursor\":\"") + 10, "\"") > CURSOR_WORD);
    serving_end();
    serving_start_at(NULL, NULL, flags);
    assert_int_equal(list_without_key(path), 130);
    http_request(serving.where, "GET", "/jobs?q=type:mail+state:parked", "", NULL, &serving.reply);
    assert_null(strstr(serving.reply.body, "secret"));
    assert_int_equal(
        sscanf(strstr(serving.reply.body, "rel=\"next\""), "rel=\"next\" href=\"%255[^\"]", next), 1);
    for (char *amp = next; (amp = strstr(amp, "&amp;")) != NULL;)
        memmove(amp + 1, amp + 5, strlen(amp + 5) + 1);
    http_request(serving.where, "GET", next, "", NULL, &serving.reply);
    assert_int_equal(serving.reply.status, 200);
    for (const char *at = serving.reply.body; (at = strstr(at, "<a href=\"/jobs/")) != NULL; at++)
        jobs++;
    assert_int_equal(jobs, 50);
    assert_null(strstr(serving.reply.body, "secret"));
    serving_refused("GET", "/api/jobs?cursor=0123456789abcdef", "", NULL, 400, "not known any more");
    http_request(serving.where, "GET", "/jobs?at=0123456789abcdef", "", NULL, &serving.reply);
    assert_non_null(strstr(serving.reply.body, "not known any more"));
    serving_end();
}

TESTS(serving_setup, serving_teardown)
