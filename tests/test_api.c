/* weir serve besides takes, from outside: its documents, and what it is asked to do. */
#include <signal.h>

#include "core/clock.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/serving.h"
#include "tests/stage.h"

/* An action that succeeds, and says that. */
static void serving_said(const char *path, const char *form, const char *says)
{
    serving_act(path, form);
    if (!strstr(serving.reply.body, says))
        fail_msg("%s: %s: %s", path, says, serving.reply.body);
}

/* ---- Documents */

/* Members whose values go on with time are compared by their names alone. */
static void forget_times(json_t *doc)
{
    static const char *const going_on[] = {"next_start",  "finish_at",    "start", "at",
                                           "rate_now",    "opens_at",     "text",  "tat",
                                           "lease_until", "new_finish_at"};
    const char *name;
    json_t *value;
    size_t i;

    json_array_foreach(doc, i, value)
    {
        forget_times(value);
    }
    json_object_foreach(doc, name, value)
    {
        forget_times(value);
    }
    for (i = 0; i < COUNT(going_on); i++)
        if (json_object_get(doc, going_on[i]))
            json_object_set_new(doc, going_on[i], json_null());
}

TEST_WITH(test_documents_are_those_of_the_commands, serving_flush, NULL)
{
    static const struct {
        const char *path, *line;
        bool list;
    } cases[] = {
        {"/api/status", "status --json", false},
        {"/api/report", "report --json", false},
        {"/api/queues", "queue list --json", true},
        {"/api/rates", "rate list --json", true},
        {"/api/rates/mail", "rate show mail --json", false},
        {"/api/rates/mail?rules=1%2Fs", "rate set mail 1/s --dry-run --json", false},
        {"/api/changes", "rate log --json", true},
        {"/api/log", "log --json", true},
        {"/api/jobs/j1", "job show j1 --json", false},
        {"/api/jobs/j1/why", "why j1 --json", false},
        {"/api/batches", "batch list --json", true},
        {"/api/batches/b1", "batch show b1 --json", false},
        {"/api/schedules", "schedule list --json", true},
        {"/api/schedules/nightly", "schedule show nightly --json", false},
    };

    serving_fill();
    serving_start();
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *answered = serving_get(cases[i].path), *shown = serving_printed(cases[i].line, cases[i].list);

        forget_times(answered);
        forget_times(shown);
        if (!json_equal(answered, shown))
            fail_msg("%s: %s\nweir %s: %s", cases[i].path, json_dumps(answered, 0), cases[i].line,
                     json_dumps(shown, 0));
        json_decref(answered);
        json_decref(shown);
    }
    serving_end();
}

/* What it finds of the machine varies. */
TEST_WITH(test_the_doctor, serving_flush, NULL)
{
    json_t *answered, *shown, *check;
    size_t i;

    serving_start();
    answered = serving_get("/api/doctor");
    shown = serving_printed("doctor --json", false);
    json_array_foreach(json_object_get(shown, "checks"), i, check)
    {
        const json_t *same = json_array_get(json_object_get(answered, "checks"), i);

        assert_true(json_equal(json_object_get(check, "name"), json_object_get(same, "name")));
        assert_true(json_is_string(json_object_get(same, "state")));
    }
    assert_true(i > 5);
    json_decref(answered);
    json_decref(shown);
    serving_end();
}

TEST_WITH(test_a_search_for_jobs, serving_flush, NULL)
{
    json_t *page, *shown;

    serving_fill();
    serving_start();
    page = serving_get("/api/jobs?q=type:mail+queue:slow");
    shown = serving_printed("job list type:mail queue:slow --json", true);
    assert_true(json_equal(json_object_get(page, "jobs"), shown));
    assert_int_equal(json_array_size(shown), 1);
    json_decref(page);
    json_decref(shown);
    page = serving_get("/api/jobs?limit=1");
    assert_true(json_is_string(json_object_get(page, "cursor")) ||
                json_array_size(json_object_get(page, "jobs")) == 2);
    json_decref(page);
    serving_end();
}

TEST_WITH(test_a_body_is_answered_as_it_stands, serving_flush, NULL)
{
    serving_fill();
    serving_start();
    json_decref(serving_get("/api/jobs/j1"));
    assert_non_null(strstr(serving.reply.body, "\"args\":{\"n\":12345678901234567,\"x\":1.10}"));
    assert_string_equal(http_header(&serving.reply, "Content-Type"), "application/json");
    serving_end();
}

TEST_WITH(test_dead_jobs, serving_flush, NULL)
{
    json_t *doc, *jobs;

    serving_weir("enqueue a {\"x\":1} --id d1 --max-attempts 1");
    serving_weir("enqueue b --id d2 --max-attempts 1");
    serving_weir("enqueue a --id d3 --max-attempts 1");
    serving_weir("worker --exec a=/bin/false --exec b=/bin/false --drain");
    serving_start();
    doc = serving_get("/api/dead?type=a");
    jobs = json_object_get(doc, "jobs");
    assert_int_equal(json_array_size(jobs), 2);
    assert_true(json_is_object(json_object_get(json_array_get(jobs, 0), "body")));
    assert_true(json_is_false(json_object_get(doc, "more")));
    assert_true(json_number_value(json_object_get(json_array_get(jobs, 0), "enqueued_at")) > 1e9);
    json_decref(doc);
    json_decref(serving_get("/api/dead/d3"));
    serving_said("/api/dead/d3/retry", "", "\"jobs\":1");
    serving_refused("POST", "/api/dead/d3/remove", FORM, "", 404, "not among the dead jobs");
    doc = serving_get("/api/dead?group=true");
    assert_int_equal(json_array_size(json_object_get(doc, "reasons")), 2);
    json_decref(doc);
    serving_refused("GET", "/api/dead?group=maybe", "", NULL, 400, "group");
    serving_refused("GET", "/api/dead?limit=0", "", NULL, 400, "limit: must be 1 to 1000");
    serving_refused("GET", "/api/dead?older=x", "", NULL, 400, "not a time such as 10m");
    serving_end();
}

SERVING_TEST(test_wrong_requests)
{
    static const struct {
        const char *method, *path, *headers, *body;
        unsigned status;
        const char *says;
    } asks[] = {
        {"GET", "/api", "", NULL, 404, "nothing here"},
        {"GET", "/api/", "", NULL, 404, "nothing here"},
        {"GET", "/api/statuses", "", NULL, 404, "nothing here"},
        {"GET", "/api/status/x", "", NULL, 404, "nothing here"},
        {"GET", "/api/rates/", "", NULL, 404, "nothing here"},
        {"GET", "/api/rates/none", "", NULL, 404, "limit none: there is none"},
        {"GET", "/api/rates/a%20b", "", NULL, 400, "limit"},
        {"GET", "/api/rates/a%00b", "", NULL, 404, "nothing here"},
        {"GET", "/api/rates/a%2", "", NULL, 404, "nothing here"},
        {"GET", "/api/types/none", "", NULL, 404, "type none: there is none"},
        {"GET", "/api/jobs/none", "", NULL, 404, "none"},
        {"GET", "/api/jobs?q=typ:mail", "", NULL, 400, "typ"},
        {"GET", "/api/jobs?limit=1001", "", NULL, 400, "limit: must be 1 to 1000"},
        {"GET", "/api/jobs?cursor=x", "", NULL, 400, "cursor"},
        {"GET", "/api/batches/none", "", NULL, 404, "none"},
        {"GET", "/api/history", "", NULL, 400, "give type=NAME or limit=NAME"},
        {"GET", "/api/history?type=a&minutes=121", "", NULL, 400, "minutes must be 1 to 120"},
        {"GET", "/api/status?a=%zz", "", NULL, 400, "malformed"},
        {"GET", "/api/status?a=1&a=2", "", NULL, 400, "malformed"},
        {"GET", "/assets/none", "", NULL, 404, "nothing here"},
        {"GET", "/api/queues/q/pause", "", NULL, 405, "by POST"},
        {"POST", "/api/status", FORM, "", 405, "only GET and HEAD"},
        {"POST", "/", FORM, "", 405, "only GET and HEAD"},
        {"POST", "/api/none", FORM, "", 404, "nothing here"},
        {"PUT", "/api/rates/a", FORM, "", 405, "only GET, HEAD and POST"},
        {"DELETE", "/api/rates/a", FORM, "", 405, "only GET, HEAD and POST"},
        {"POST", "/api/rates/a", FORM, "rules=%", 400, "malformed"},
        {"POST", "/api/rates/a/pause", FORM, "for=1m&key=k", 404, "limit a: there is none"},
        {"POST", "/api/rates/a/resume", FORM, "key=k", 404, "limit a: there is none"},
        {"POST", "/api/rates/a", JSON, "{\"rules\":[]}", 400, "malformed"},
        {"POST", "/api/rates/a", JSON, "{\"rules\":", 400, "malformed"},
        {"POST", "/api/rates/a", FORM, "", 400, "no rules"},
        {"POST", "/api/rates/a", FORM, "rules=x", 400, "rule"},
        {"POST", "/api/rates/a/pause", FORM, "for=0s", 400, "for how long"},
        {"POST", "/api/rates/a/pause", FORM, "for=10m", 404, "a"},
        {"POST", "/api/rates/a/remove", FORM, "", 404, "a"},
        {"POST", "/api/queues/none/resume", FORM, "", 404, "none"},
        {"POST", "/api/queues/none/purge", FORM, "", 404, "none"},
        {"POST", "/api/jobs/none/cancel", FORM, "", 404, "none"},
        {"POST", "/api/batches/none/cancel", FORM, "", 404, "none"},
        {"POST", "/api/schedules/none/remove", FORM, "", 404, "none"},
        {"POST", "/api/workers/none/stop", FORM, "", 404, "worker none: there is none that runs"},
    };

    for (size_t i = 0; i < COUNT(asks); i++)
        serving_refused(asks[i].method, asks[i].path, asks[i].headers, asks[i].body, asks[i].status,
                        asks[i].says);
}

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

SERVING_TEST(test_names_may_be_anything)
{
    serving_refused("GET", "/api/jobs/%22%3E%3Cscript%3E%1b%5b0m%ff", "", NULL, 400,
                    "\\\"><script>\\\\x1b[0m\\\\xff");
}

/* A person who is refused gets a page with links, a program JSON. */
TEST_WITH(test_browsers_get_pages, serving_flush, NULL)
{
    static const struct {
        const char *method, *path, *headers;
        unsigned status;
        bool page;
    } cases[] = {
        {"GET", "/limit/mail", "Accept: text/html,*/*;q=0.8\r\n", 404, true},
        {"GET", "/limits/50%", "Accept: text/html\r\n", 404, true},
        {"GET", "/types/none", "Accept: text/html\r\n", 404, true},
        {"GET", "/limit/mail", "Accept: */*\r\n", 404, false},
        {"GET", "/limit/mail", "", 404, false},
        {"GET", "/api/nothing", "Accept: text/html\r\n", 404, false},
        {"GET", "/api/jobs/none", "Accept: text/html\r\n", 404, false},
        {"DELETE", "/", "Accept: text/html\r\n", 405, true},
        {"GET", "/", "Accept: text/html\r\nHost: evil.example\r\n", 403, true},
        {"POST", "/api/queues/q/pause", "Accept: text/html\r\nSec-Fetch-Site: cross-site\r\n", 403, true},
        {"POST", "/api/queues/q/pause", "Sec-Fetch-Site: cross-site\r\n", 403, false},
    };

    serving_start_at(NULL, "127.0.0.1:0", serving_all_flags);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *type = cases[i].page ? "text/html; charset=utf-8" : "application/json";

        if (serving_status_of(cases[i].method, cases[i].path, cases[i].headers, NULL) != cases[i].status ||
            strcmp(http_header(&serving.reply, "Content-Type"), type) != 0 ||
            (strstr(serving.reply.body, "href=\"/limits\"") != NULL) != cases[i].page)
            fail_msg("%s %s: %d %s", cases[i].path, cases[i].headers, serving.reply.status,
                     serving.reply.body);
    }
    serving_end();
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

/* ---- Actions */

TEST_WITH(test_actions, serving_flush, NULL)
{
    json_t *doc;

    serving_fill();
    serving_start();
    serving_said("/api/queues/default/pause", "", "\"until\":null,\"reason\":\"\"},\"before\":null}\n");
    doc = serving_get("/api/queues"); /* read anew behind it */
    assert_true(json_is_number(json_object_get(json_array_get(doc, 0), "paused_since")));
    json_decref(doc);
    serving_act("/api/queues/default/resume", "");
    serving_said("/api/types/mail/pause", "for=10m&reason=INC-123",
                 "\"reason\":\"INC-123\"},\"before\":null}\n");
    doc = serving_get("/api/types/mail");
    assert_true(json_is_number(json_object_get(json_object_get(doc, "paused"), "until")));
    json_decref(doc);
    serving_said("/api/types/mail/resume", "", "\"paused\":null,\"before\":{");
    serving_act("/api/rates/mail", "rules=10%2Fs,burst=20+100%2F1h");
    doc = serving_get("/api/rates/mail");
    assert_int_equal(json_array_size(json_object_get(doc, "rules")), 2);
    json_decref(doc);
    assert_int_equal(serving_status_of("POST", "/api/rates/mail/pause", JSON, "{\"for\":\"10m\"}"), 200);
    assert_non_null(strstr(serving.reply.body, "\"reason\":\"\"},\"before\":null}\n"));
    serving_said("/api/rates/mail/resume", "", "\"paused\":null,\"before\":{");
    serving_act("/api/rates/keyed", "rules=10%2Fs,by=key");
    serving_said("/api/rates/keyed/pause", "key=a%2Fb+%22c%22",
                 "\"before\":null,\"key\":\"a/b \\\"c\\\"\"}\n");
    doc = serving_get("/api/status");
    assert_int_equal(json_integer_value(json_object_get(doc, "paused_key_count")), 1);
    json_decref(doc);
    serving_said("/api/rates/keyed/resume", "key=a%2Fb+%22c%22", "\"paused\":null,\"before\":{");
    serving_act("/api/rates/mail/remove", "");
    serving_act("/api/rates/keyed/weight", "key=big&weight=3");
    serving_refused("POST", "/api/rates/keyed/weight", FORM, "key=big&weight=0", 400, "weight");
    serving_refused("POST", "/api/rates/keyed/weight", FORM, "weight=2", 400, "key");
    serving_act("/api/types/mail/use", "limits=keyed&cost=2");
    serving_refused("POST", "/api/types/mail/use", FORM, "limits=none", 404, "none");
    serving_refused("POST", "/api/types/mail/use", FORM, "", 400, "limits=NAME");
    serving_refused("POST", "/api/types/mail/use", FORM, "limits=keyed&cost=0", 400, "cost: must be 1 to");
    serving_refused("POST", "/api/types/mail/unuse", FORM, "", 400, "rate unuse mail: which limits?");
    serving_act("/api/types/mail/unuse", "limits=keyed");
    serving_act("/api/batches/b1/pause", "for=1h&reason=INC-1");
    serving_refused("POST", "/api/batches/b3/pause", FORM, "", 404, "did you mean b1");
    serving_act("/api/batches/b1/resume", "");
    serving_weir("enqueue mail --batch b2");
    serving_refused("POST", "/api/batches/b2/seal", FORM, "queue=q", 400, "then");
    serving_said("/api/batches/b2/seal", "then=report", "{\"name\":\"b2\",\"total\":1,\"left\":1}");
    serving_said("/api/schedules/weekly",
                 "when=%40weekly&type=report&args=%7B%22n%22%3A1%7D&zone=Europe%2FBerlin&timeout=30s",
                 "\"zone\":\"Europe/Berlin\"");
    serving_refused("POST", "/api/schedules/weekly", FORM, "when=%40weekly", 400, "type=TYPE");
    serving_refused("POST", "/api/schedules/weekly", FORM, "when=daily&type=report", 400, "daily");
    serving_refused("POST", "/api/schedules/weekly", FORM, "when=%40daily&type=report&args=%7B", 400, "args");
    serving_refused("POST", "/api/schedules/weekly", FORM, "when=%40daily&type=report&cost=-1", 400, "cost");
    serving_refused("POST", "/api/schedules/weekly", FORM, "when=%40daily&type=report&cost=0", 400,
                    "cost: must be 1 to");
    serving_refused("POST", "/api/schedules/weekly", FORM,
                    "when=%40daily&type=report&max_attempts=4294967297", 400,
                    "max_attempts: must be 1 to 1000000");
    serving_refused("POST", "/api/schedules/weekly", FORM, "when=%40daily&type=report&timeout=0s", 400,
                    "timeout: must be above 0");
    serving_act("/api/jobs/j1/run", "");
    serving_refused("POST", "/api/jobs/actions", FORM, "action=cancel&search=id:j1", 400,
                    "count: of how many jobs?");
    serving_refused("POST", "/api/jobs/actions", FORM, "action=drop&search=id:j1&count=1", 400, "drop");
    serving_refused("POST", "/api/jobs/actions", FORM, "action=cancel&count=1", 400, "search");
    serving_said("/api/jobs/actions", "action=cancel&search=id:j1&dry_run=true",
                 "{\"dry_run\":true,\"action\":\"cancel\",\"jobs\":1,\"looked_at\":");
    assert_non_null(strstr(serving.reply.body, ",\"cursor\":null}\n"));
    serving_said("/api/jobs/actions", "action=cancel&search=id:j1&count=0", "\"jobs\":0");
    serving_said("/api/jobs/actions", "action=cancel&search=id:j1&count=1", "\"jobs\":1");
    serving_weir("enqueue mail --id j9");
    serving_said("/api/jobs/j9/cancel", "", "\"result\":\"removed\"");
    serving_said("/api/queues/slow/purge", "count=0", "\"waiting\":0");
    serving_said("/api/queues/slow/purge", "", "\"waiting\":1");
    serving_act("/api/batches/b1/cancel", "");
    serving_refused("POST", "/api/batches/b1/resume", FORM, "", 400, "was cancelled, which cannot be undone");
    serving_act("/api/schedules/nightly/remove", "");
    await_text(serving.folder, "serve.err", "event=action path=/api/queues/default/pause");
    await_text(serving.folder, "serve.err",
               "path=/api/rates/mail/pause fields=\"{\\\"for\\\":\\\"10m\\\"}\"");
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
    serving_refused("GET", "/api/jobs/first?cursor=0,0,nowhere,", "", NULL, 400,
                    "not one; take it as the page before gave it");
    serving_refused("GET", "/api/jobs/first/why?cursor=x", "", NULL, 400,
                    "not one; take it as the page before gave it");
    serving_refused("GET", "/api/jobs/first?cursor=", "", NULL, 400, "cursor");
    serving_end();
}

/* Who waits for a job hears how it ended, or how it is when the time is over. Others are answered meanwhile. */
TEST_WITH(test_the_end_of_a_job_is_waited_for, serving_flush, NULL)
{
    const char *words[] = {built("weir"), "worker",  "--redis",
                           server.url,    "--exec",  "mail=sh -c 'sleep 0.3; echo 1.10 > $WEIR_REPORT'",
                           "--keep",      "mail=1h", NULL};
    int64_t begun_us;
    json_t *doc;
    pid_t worker;

    serving_weir("enqueue mail --id first");
    serving_start();
    begun_us = clock_mono_us();
    doc = serving_get("/api/jobs/first?wait=300ms");
    assert_true(clock_mono_us() - begun_us >= 300000);
    assert_string_equal(json_string_value(json_object_get(doc, "state")), "waiting");
    json_decref(doc);
    worker = program_start(serving.folder, "worker", words);
    serving_status_of("GET", "/api/jobs/first?wait=60s", "", NULL);
    assert_non_null(strstr(serving.reply.body, "\"state\":\"finished\""));
    assert_non_null(strstr(serving.reply.body, "\"result\":1.10"));
    serving_refused("GET", "/api/jobs/first?wait=2m", "", NULL, 400,
                    "wait: must be 0 to 60 seconds, such as 30s");
    serving_refused("GET", "/api/jobs/first?wait=soon", "", NULL, 400, "wait: must be 0 to 60 seconds");
    kill(worker, SIGTERM);
    program_end(worker);
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

SERVING_TEST(test_workers_are_ordered)
{
    const char *words[] = {built("weir"),    "worker",  "--redis", server.url, "--exec",
                           "none=/bin/true", "--lease", "2s",      NULL};
    pid_t worker = program_start(serving.folder, "worker", words);
    json_t *doc;
    char path[256];

    await_text(serving.folder, "worker.err", "worker");
    do {
        doc = serving_get("/api/workers");
        snprintf(path, sizeof path, "/api/workers/%s/quiet",
                 json_array_size(doc) ? json_string_value(json_object_get(json_array_get(doc, 0), "name"))
                                      : "");
        clock_sleep_until(clock_mono_us() + 20000);
        json_decref(doc);
    } while (strstr(path, "//"));
    serving_said(path, "", "\"order\":\"quiet\"");
    serving_act("/api/workers/all/stop", "");
    assert_int_equal(program_end(worker), 0);
}

SERVING_TEST(test_forms_lead_back)
{
    static const struct {
        const char *path, *form, *location;
    } cases[] = {
        {"/api/queues/q/pause", "create=true&back=%2Fqueues%3Fa%3D1", "/queues?a=1"},
        {"/api/queues/q/pause", "create=true&back=https%3A%2F%2Fevil.example%2F", "/"},
        {"/api/queues/q/pause", "create=true&back=%2F%2Fevil.example%2F", "/"},
        {"/api/queues/q/pause", "create=true&back=%2F%5Cevil.example", "/"},
        {"/api/queues/q/pause", "create=true&back=%2Fa%0D%0ASet-Cookie%3A+x", "/"},
        {"/api/rates/q", "back=%2Flimits%2Fq",
         "/limits/q?problem=rate%20set%20q%3A%20no%20rules%3B%20give%20rules%3D10%2Fs"},
        {"/api/rates/q", "back=%2Fx%3Fy%3D1&rules=%3Cb%3E", NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(serving_status_of("POST", cases[i].path, FORM, cases[i].form), 303);
        if (cases[i].location)
            assert_string_equal(http_header(&serving.reply, "Location"), cases[i].location);
        else
            assert_non_null(
                strstr(http_header(&serving.reply, "Location"), "/x?y=1&problem=rule%20%27%3Cb%3E"));
    }
}

TESTS(serving_setup, serving_teardown)
