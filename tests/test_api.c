/* weir serve besides takes, from outside: documents, actions, jobs, events; who may ask for them; what goes on meanwhile. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/clock.h"
#include "tests/client.h"
#include "tests/http.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/stage.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define LISTENING "serve: listening on "
#define FORM "Content-Type: application/x-www-form-urlencoded\r\n"
#define JSON "Content-Type: application/json\r\n"
#define NDJSON "Content-Type: application/x-ndjson\r\n"
#define OPERATOR "oooooooooooooooooooooooo"
#define VIEWER "vvvvvvvvvvvvvvvvvvvvvvvv"
#define PRODUCER "pppppppppppppppppppppppp"

static char folder[64];
static char where[96]; /* a socket, or a port of 127.0.0.1 */
static pid_t serving;  /* 0: not running */

/* ---- Starting and stopping */

static void end_leftover(void)
{
    if (serving > 0) {
        kill(serving, SIGKILL);
        waitpid(serving, NULL, 0);
    }
    serving = 0;
}

/* url NULL: that of the server. listen NULL: a unix socket. flags end with NULL. */
static void serve_at(const char *url, const char *listen, const char *const *flags)
{
    const char *words[WORDS_MAX] = {built("weir"), "serve", "--redis", url ? url : server.url, "--listen"};
    char socket[128], log[4096];
    int n = 5;

    snprintf(where, sizeof where, "%s/serve.sock", folder);
    snprintf(socket, sizeof socket, "unix:%s", where);
    words[n++] = listen ? listen : socket;
    while (*flags)
        words[n++] = *flags++;
    serving = program_start(folder, "serve", words);
    await_text(folder, "serve.err", LISTENING);
    if (!listen)
        return;
    assert_true(read_text(folder, "serve.err", log, sizeof log));
    assert_int_equal(sscanf(strstr(log, "127.0.0.1:"), "127.0.0.1:%7[0-9]", where), 1);
}

static const char *const no_flags[] = {NULL};
static const char *const all_flags[] = {"--allow-actions", "--allow-enqueue", NULL};

static void serve(void)
{
    serve_at(NULL, NULL, all_flags);
}

static void end_serve(void)
{
    int code;

    kill(serving, SIGTERM);
    code = program_end(serving);
    serving = 0;
    assert_int_equal(code, 0);
}

static int setup(void **state)
{
    (void)state;
    folder_make(folder);
    return client_start(state);
}

static int teardown(void **state)
{
    (void)state;
    end_leftover();
    client_stop(state);
    folder_remove(folder);
    return 0;
}

static int flush(void **state)
{
    (void)state;
    end_leftover();
    return client_flush(state);
}

/* ---- Asking */

static struct http_reply reply;

static json_t *parsed(void)
{
    json_t *doc = json_loads(reply.body, 0, NULL);

    if (!doc)
        fail_msg("no JSON: %d %s", reply.status, reply.body);
    return doc;
}

/* The caller's. */
static json_t *get(const char *path)
{
    http_request(where, "GET", path, "", NULL, &reply);
    if (reply.status != 200)
        fail_msg("%s: %d %s", path, reply.status, reply.body);
    return parsed();
}

static unsigned status_of(const char *method, const char *path, const char *headers, const char *body)
{
    http_request(where, method, path, headers, body, &reply);
    return (unsigned)reply.status;
}

/* An action that succeeds. */
static void act(const char *path, const char *form)
{
    if (status_of("POST", path, FORM, form) != 200)
        fail_msg("%s %s: %d %s", path, form, reply.status, reply.body);
}

static void refused(const char *method, const char *path, const char *headers, const char *body,
                    unsigned status, const char *says)
{
    if (status_of(method, path, headers, body) != status || !strstr(reply.body, says))
        fail_msg("%s %s: %d %s", method, path, reply.status, reply.body);
}

static void weir(const char *line)
{
    struct outcome o;

    if (program_weir(&o, folder, server.url, NULL, line) != 0)
        fail_msg("%s: %d %s", line, o.code, o.err);
}

/* What a command prints with --json: a document, or one a line, which make a list. */
static json_t *printed(const char *line, bool list)
{
    json_t *doc = list ? json_array() : NULL;
    struct outcome o;
    char *rest;

    if (program_weir(&o, folder, server.url, NULL, line) > 1) /* 1 is a verdict of weir report */
        fail_msg("%s: %d %s", line, o.code, o.err);
    for (char *one = strtok_r(o.out, "\n", &rest); one; one = strtok_r(NULL, "\n", &rest)) {
        json_t *next = json_loads(one, 0, NULL);

        assert_non_null(next);
        if (list)
            json_array_append_new(doc, next);
        else
            doc = next;
    }
    return doc;
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

static void fill(void)
{
    weir("rate set mail 1/1h");
    weir("enqueue mail {\"n\":12345678901234567,\"x\":1.10} --id j1 --batch b1");
    weir("enqueue mail --id j2 --queue slow");
    weir("queue pause slow");
    weir("schedule add nightly @daily mail");
}

static void test_documents_are_those_of_the_commands(void **state)
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
        {"/api/jobs/j1", "job show j1 --json", false},
        {"/api/jobs/j1/why", "why j1 --json", false},
        {"/api/batches", "batch list --json", true},
        {"/api/batches/b1", "batch show b1 --json", false},
        {"/api/schedules", "schedule list --json", true},
        {"/api/schedules/nightly", "schedule show nightly --json", false},
    };

    (void)state;
    fill();
    serve();
    for (size_t i = 0; i < COUNT(cases); i++) {
        json_t *answered = get(cases[i].path), *shown = printed(cases[i].line, cases[i].list);

        forget_times(answered);
        forget_times(shown);
        if (!json_equal(answered, shown))
            fail_msg("%s: %s\nweir %s: %s", cases[i].path, json_dumps(answered, 0), cases[i].line,
                     json_dumps(shown, 0));
        json_decref(answered);
        json_decref(shown);
    }
    end_serve();
}

/* What it finds of the machine varies. */
static void test_the_doctor(void **state)
{
    json_t *answered, *shown, *check;
    size_t i;

    (void)state;
    serve();
    answered = get("/api/doctor");
    shown = printed("doctor --json", false);
    json_array_foreach(json_object_get(shown, "checks"), i, check)
    {
        const json_t *same = json_array_get(json_object_get(answered, "checks"), i);

        assert_true(json_equal(json_object_get(check, "name"), json_object_get(same, "name")));
        assert_true(json_is_string(json_object_get(same, "state")));
    }
    assert_true(i > 5);
    json_decref(answered);
    json_decref(shown);
    end_serve();
}

static void test_a_search_for_jobs(void **state)
{
    json_t *page, *shown;

    (void)state;
    fill();
    serve();
    page = get("/api/jobs?q=type:mail+queue:slow");
    shown = printed("job list type:mail queue:slow --json", true);
    assert_true(json_equal(json_object_get(page, "jobs"), shown));
    assert_int_equal(json_array_size(shown), 1);
    json_decref(page);
    json_decref(shown);
    page = get("/api/jobs?limit=1");
    assert_true(json_is_string(json_object_get(page, "cursor")) ||
                json_array_size(json_object_get(page, "jobs")) == 2);
    json_decref(page);
    end_serve();
}

static void test_a_body_is_answered_as_it_stands(void **state)
{
    (void)state;
    fill();
    serve();
    json_decref(get("/api/jobs/j1"));
    assert_non_null(strstr(reply.body, "\"args\":{\"n\":12345678901234567,\"x\":1.10}"));
    assert_string_equal(http_header(&reply, "Content-Type"), "application/json");
    end_serve();
}

static void test_dead_jobs(void **state)
{
    json_t *doc, *jobs;

    (void)state;
    weir("enqueue a {\"x\":1} --id d1 --max-attempts 1");
    weir("enqueue b --id d2 --max-attempts 1");
    weir("enqueue a --id d3 --max-attempts 1");
    weir("worker --exec a=/bin/false --exec b=/bin/false --drain");
    serve();
    doc = get("/api/dead?type=a");
    jobs = json_object_get(doc, "jobs");
    assert_int_equal(json_array_size(jobs), 2);
    assert_true(json_is_object(json_object_get(json_array_get(jobs, 0), "body")));
    assert_true(json_is_false(json_object_get(doc, "more")));
    assert_true(json_number_value(json_object_get(json_array_get(jobs, 0), "enqueued_at")) > 1e9);
    json_decref(doc);
    json_decref(get("/api/dead/d3"));
    act("/api/dead/d3/retry", "");
    assert_non_null(strstr(reply.body, "\"jobs\":1"));
    refused("POST", "/api/dead/d3/remove", FORM, "", 404, "not among the dead jobs");
    refused("GET", "/api/dead?limit=0", "", NULL, 400, "limit: must be 1 to 1000");
    refused("GET", "/api/dead?older=x", "", NULL, 400, "not a time such as 10m");
    end_serve();
}

static void test_wrong_requests(void **state)
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
        {"GET", "/events", "", NULL, 400, "which page"},
        {"GET", "/events?page=http://x/", "", NULL, 400, "which page"},
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

    (void)state;
    serve();
    for (size_t i = 0; i < COUNT(asks); i++)
        refused(asks[i].method, asks[i].path, asks[i].headers, asks[i].body, asks[i].status, asks[i].says);
    end_serve();
}

/* Does doc/api.md have a row for that path, with a name in place of "*"? */
static bool is_documented(const char *page, const char *method, const char *path)
{
    char row[256];
    size_t len = (size_t)snprintf(row, sizeof row, "| `%s ", method);

    for (; *path; path++)
        len += (size_t)snprintf(row + len, sizeof row - len, *path == '*' ? "[A-Z]+" : "%c", *path);
    for (const char *at = page; (at = strstr(at, "| `")); at++) {
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
            fail_msg("doc/api.md has no row for %s %s", method, path);
    }
    assert_true(found >= least);
}

static void test_the_page_of_routes_has_all_of_them(void **state)
{
    (void)state;
    check_routes("serve/documents.c", "GET", 17);
    check_routes("serve/actions.c", "POST", 16);
}

static void test_names_may_be_anything(void **state)
{
    (void)state;
    serve();
    refused("GET", "/api/jobs/%22%3E%3Cscript%3E%1b%5b0m%ff", "", NULL, 400,
            "\\\"><script>\\\\x1b[0m\\\\xff");
    end_serve();
}

/* A person who is refused gets a page with links, a program JSON. */
static void test_browsers_get_pages(void **state)
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

    (void)state;
    serve_at(NULL, "127.0.0.1:0", all_flags);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *type = cases[i].page ? "text/html; charset=utf-8" : "application/json";

        if (status_of(cases[i].method, cases[i].path, cases[i].headers, NULL) != cases[i].status ||
            strcmp(http_header(&reply, "Content-Type"), type) != 0 ||
            (strstr(reply.body, "href=\"/limits\"") != NULL) != cases[i].page)
            fail_msg("%s %s: %d %s", cases[i].path, cases[i].headers, reply.status, reply.body);
    }
    end_serve();
}

static void has_a_page(const char *path)
{
    int status = status_of("GET", path, "", NULL);

    if (status != 200)
        stage_late("%s is answered with %d", path, status);
}

/* What is new has a page at once, however short ago all of it was read, and however often it was asked for in vain: but for half of
 * the time that reading it takes, which is long on a busy machine. */
static void try_test_a_new_name_has_a_page(void **state)
{
    flush(state);
    weir("status"); /* loads the functions, which takes long */
    serve();
    refused("GET", "/limits/fresh", "", NULL, 404, "Not found");
    refused("GET", "/types/young", "", NULL, 404, "Not found");
    weir("rate set fresh 1/s");
    has_a_page("/limits/fresh");
    weir("enqueue young");
    has_a_page("/types/young");
    weir("rate set fresher 1/s");
    has_a_page("/ask?do=rate-remove&name=fresher");
    end_serve();
}
STAGE_TRIALS(test_a_new_name_has_a_page)

/* ---- Actions */

static void test_actions(void **state)
{
    json_t *doc;

    (void)state;
    fill();
    serve();
    act("/api/queues/default/pause", "");
    assert_string_equal(reply.body, "{\"name\":\"default\",\"paused\":true,\"was_paused_since\":null}\n");
    doc = get("/api/queues"); /* read anew behind it */
    assert_true(json_is_number(json_object_get(json_array_get(doc, 0), "paused_since")));
    json_decref(doc);
    act("/api/queues/default/resume", "");
    act("/api/rates/mail", "rules=10%2Fs,burst=20+100%2F1h");
    doc = get("/api/rates/mail");
    assert_int_equal(json_array_size(json_object_get(doc, "rules")), 2);
    json_decref(doc);
    assert_int_equal(status_of("POST", "/api/rates/mail/pause", JSON, "{\"for\":\"10m\"}"), 200);
    assert_string_equal(reply.body, "{\"name\":\"mail\",\"paused_for\":600.0}\n");
    act("/api/rates/mail/resume", "");
    assert_string_equal(reply.body, "{\"name\":\"mail\",\"was_paused\":true}\n");
    act("/api/rates/keyed", "rules=10%2Fs,by=key");
    act("/api/rates/keyed/pause", "key=a%2Fb+%22c%22");
    assert_string_equal(reply.body, "{\"name\":\"keyed\",\"paused_for\":null,\"key\":\"a/b \\\"c\\\"\"}\n");
    doc = get("/api/status");
    assert_int_equal(json_integer_value(json_object_get(doc, "paused_key_count")), 1);
    json_decref(doc);
    act("/api/rates/keyed/resume", "key=a%2Fb+%22c%22");
    assert_non_null(strstr(reply.body, "\"was_paused\":true"));
    act("/api/rates/mail/remove", "");
    act("/api/batches/b1/pause", "");
    act("/api/batches/b1/resume", "");
    act("/api/jobs/j1/run", "");
    refused("POST", "/api/jobs/actions", FORM, "action=cancel&search=id:j1", 400, "count: of how many jobs?");
    refused("POST", "/api/jobs/actions", FORM, "action=drop&search=id:j1&count=1", 400, "drop");
    refused("POST", "/api/jobs/actions", FORM, "action=cancel&count=1", 400, "search");
    act("/api/jobs/actions", "action=cancel&search=id:j1&dry_run=true");
    assert_non_null(strstr(reply.body, "{\"dry_run\":true,\"action\":\"cancel\",\"jobs\":1,\"looked_at\":"));
    assert_non_null(strstr(reply.body, ",\"cursor\":null}\n"));
    act("/api/jobs/actions", "action=cancel&search=id:j1&count=0");
    assert_non_null(strstr(reply.body, "\"jobs\":0"));
    act("/api/jobs/actions", "action=cancel&search=id:j1&count=1");
    assert_non_null(strstr(reply.body, "\"jobs\":1"));
    act("/api/jobs/j1/cancel", "");
    act("/api/queues/slow/purge", "count=0");
    assert_non_null(strstr(reply.body, "\"waiting\":0"));
    act("/api/queues/slow/purge", "");
    assert_non_null(strstr(reply.body, "\"waiting\":1"));
    act("/api/batches/b1/cancel", "");
    refused("POST", "/api/batches/b1/resume", FORM, "", 400, "was cancelled, which cannot be undone");
    act("/api/schedules/nightly/remove", "");
    await_text(folder, "serve.err", "event=action path=/api/queues/default/pause");
    await_text(folder, "serve.err", "path=/api/rates/mail/pause fields=\"{\\\"for\\\":\\\"10m\\\"}\"");
    end_serve();
}

static void fill_queue_with(const struct weir_job_spec *job, int jobs)
{
    struct weir_bulk *bulk;

    assert_int_equal(weir_bulk_open(w, NULL, &bulk), 0);
    for (int i = 0; i < jobs; i++)
        assert_int_equal(weir_bulk_add(bulk, job), 0);
    assert_int_equal(weir_bulk_close(bulk, NULL), 0);
}

static void fill_queue(int jobs)
{
    fill_queue_with(&(struct weir_job_spec){.type = "many"}, jobs);
}

/* Asks with the cursor of each answer for the next one; how many of them did not know yet. Ends with the one that does. */
static int look_on(const char *path)
{
    char all[2048];
    int answers = 0;
    json_t *doc = NULL;

    snprintf(all, sizeof all, "%s", path);
    for (;; answers++) {
        const char *cursor;

        http_request(where, "GET", all, "", NULL, &reply);
        if (reply.status != 200)
            return answers;
        doc = parsed();
        cursor = json_string_value(json_object_get(doc, "cursor"));
        if (cursor) {
            assert_true(json_is_null(json_object_get(doc, "state")));
            assert_true(json_integer_value(json_object_get(doc, "looked_at")) > 0);
            assert_int_equal(json_integer_value(json_object_get(doc, "of")), 400001);
            snprintf(all, sizeof all, "%s?cursor=%s", path, cursor);
        }
        json_decref(doc);
        if (!cursor)
            return answers;
    }
}

static void test_one_job_is_looked_for_a_part_at_a_time(void **state)
{
    (void)state;
    weir("enqueue mail --id first");
    fill_queue(400000);
    serve();
    assert_true(look_on("/api/jobs/first") > 0);
    assert_int_equal(reply.status, 200);
    assert_non_null(strstr(reply.body, "\"state\":\"waiting\""));
    assert_true(look_on("/api/jobs/first/why") > 0);
    assert_int_equal(reply.status, 200);
    assert_non_null(strstr(reply.body, "\"ahead\":"));
    assert_true(look_on("/api/jobs/none") > 0);
    assert_int_equal(reply.status, 404);
    assert_non_null(strstr(reply.body, "no such job"));
    weir("job show first");
    refused("GET", "/api/jobs/first?cursor=0,0,nowhere,", "", NULL, 400,
            "not one; take it as the page before gave it");
    refused("GET", "/api/jobs/first/why?cursor=x", "", NULL, 400,
            "not one; take it as the page before gave it");
    refused("GET", "/api/jobs/first?cursor=", "", NULL, 400, "cursor");
    end_serve();
}

/* Sends that with the cursor of the answer before, "": none; returns how many jobs the answer names. */
static int64_t go_on(const char *fields, char cursor[1024])
{
    char all[2048];
    const char *next;
    json_t *doc;
    int64_t jobs;

    snprintf(all, sizeof all, "%s%s%s", fields, *cursor ? "&cursor=" : "", cursor);
    act("/api/jobs/actions", all);
    doc = parsed();
    next = json_string_value(json_object_get(doc, "cursor"));
    snprintf(cursor, 1024, "%s", next ? next : "");
    jobs = json_integer_value(json_object_get(doc, "jobs"));
    json_decref(doc);
    return jobs;
}

/* One request looks at 100,000 jobs. */
static void test_actions_on_many_go_on_at_a_cursor(void **state)
{
    char cursor[1024] = "";
    int64_t jobs;

    (void)state;
    fill_queue(101000);
    serve();
    jobs = go_on("action=cancel&search=type:many&dry_run=true", cursor);
    assert_in_range(jobs, 100000, 100999);
    assert_string_not_equal(cursor, "");
    assert_int_equal(go_on("action=cancel&search=type:many&dry_run=true", cursor), 101000 - jobs);
    assert_string_equal(cursor, "");
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(go_on("action=cancel&search=type:many&count=1", cursor), 1);
        assert_string_not_equal(cursor, "");
        assert_int_equal(server_number(&server, "HLEN", "weir:{0}:cancelled", NULL), i);
    }
    refused("POST", "/api/jobs/actions", FORM, "action=cancel&search=type:many&count=1&cursor=x", 400,
            "cursor 'x': not one");
    end_serve();
}

static void test_workers_are_ordered(void **state)
{
    const char *words[] = {built("weir"),    "worker",  "--redis", server.url, "--exec",
                           "none=/bin/true", "--lease", "2s",      NULL};
    pid_t worker = program_start(folder, "worker", words);
    json_t *doc;
    char path[256];

    (void)state;
    serve();
    await_text(folder, "worker.err", "worker");
    do {
        doc = get("/api/workers");
        snprintf(path, sizeof path, "/api/workers/%s/quiet",
                 json_array_size(doc) ? json_string_value(json_object_get(json_array_get(doc, 0), "name"))
                                      : "");
        clock_sleep_until(clock_mono_us() + 20000);
        json_decref(doc);
    } while (strstr(path, "//"));
    act(path, "");
    assert_non_null(strstr(reply.body, "\"order\":\"quiet\""));
    act("/api/workers/all/stop", "");
    assert_int_equal(program_end(worker), 0);
    end_serve();
}

static void test_forms_lead_back(void **state)
{
    static const struct {
        const char *path, *form, *location;
    } cases[] = {
        {"/api/queues/q/pause", "back=%2Fqueues%3Fa%3D1", "/queues?a=1"},
        {"/api/queues/q/pause", "back=https%3A%2F%2Fevil.example%2F", "/"},
        {"/api/queues/q/pause", "back=%2F%2Fevil.example%2F", "/"},
        {"/api/queues/q/pause", "back=%2F%5Cevil.example", "/"},
        {"/api/queues/q/pause", "back=%2Fa%0D%0ASet-Cookie%3A+x", "/"},
        {"/api/rates/q", "back=%2Flimits%2Fq",
         "/limits/q?problem=rate%20set%20q%3A%20no%20rules%3B%20give%20rules%3D10%2Fs"},
        {"/api/rates/q", "back=%2Fx%3Fy%3D1&rules=%3Cb%3E", NULL},
    };

    (void)state;
    serve();
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(status_of("POST", cases[i].path, FORM, cases[i].form), 303);
        if (cases[i].location)
            assert_string_equal(http_header(&reply, "Location"), cases[i].location);
        else
            assert_non_null(strstr(http_header(&reply, "Location"), "/x?y=1&problem=rule%20%27%3Cb%3E"));
    }
    end_serve();
}

/* ---- Who may ask */

static void test_what_is_not_allowed_is_refused(void **state)
{
    (void)state;
    serve_at(NULL, NULL, no_flags);
    refused("POST", "/api/queues/q/pause", FORM, "", 403, "--allow-actions");
    refused("POST", "/api/jobs", JSON, "{\"type\":\"a\"}", 403, "--allow-enqueue");
    json_decref(get("/api/status"));
    end_serve();
}

static void test_other_sites_are_refused(void **state)
{
    static const struct {
        const char *headers;
        unsigned status;
    } cases[] = {
        {"Host: localhost:1\r\nOrigin: http://localhost:1\r\n", 200},
        {"Host: localhost:1\r\nOrigin: http://localhost:2\r\n", 403},
        {"Host: localhost:1\r\nOrigin: https://evil.example\r\n", 403},
        {"Host: localhost:1\r\nOrigin: null\r\n", 403},
        {"Host: localhost:1\r\nSec-Fetch-Site: same-origin\r\nOrigin: null\r\n", 200},
        {"Host: localhost:1\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"Host: localhost:1\r\nSec-Fetch-Site: same-site\r\n", 403},
        {"Host: 127.0.0.1:1\r\n", 200},
        {"Host: [::1]:1\r\n", 200},
        {"Host: weir.internal\r\n", 200},
        {"Host: evil.example\r\n", 403},
        {"Host: localhost.evil.example\r\n", 403},
        {"Host: 127.0.0.1.evil.example:80\r\n", 403},
        {"Host: [::1].evil.example\r\n", 403},
        {"Host: [::1\r\n", 403},
    };
    static const char *const flags[] = {"--allow-actions", "--host", "weir.internal", NULL};
    char headers[512];

    (void)state;
    serve_at(NULL, "127.0.0.1:0", flags);
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(headers, sizeof headers, FORM "%s", cases[i].headers);
        if (status_of("POST", "/api/queues/q/pause", headers, "") != cases[i].status)
            fail_msg("%s: %d %s", cases[i].headers, reply.status, reply.body);
    }
    refused("GET", "/api/status", "Host: evil.example\r\n", NULL, 403, "--host NAME");
    assert_int_equal(status_of("GET", "/take/none", "Host: evil.example\r\n", NULL), 404); /* as ever */
    end_serve();
}

#define BEARER(token) "Authorization: Bearer " token "\r\n"
#define COOKIE(token) "Cookie: a=b; weir_token=" token "\r\n"

static void serve_with_tokens(void)
{
    char path[128];
    const char *flags[] = {"--allow-actions", "--allow-enqueue", "--token-file", path, NULL};

    snprintf(path, sizeof path, "%s/tokens", folder);
    write_text(folder, "tokens",
               "# who may\nviewer " VIEWER "\noperator " OPERATOR " alice\nproducer\t" PRODUCER "\n");
    chmod(path, 0600);
    serve_at(NULL, NULL, flags);
}

static void test_tokens(void **state)
{
    static const struct {
        const char *method, *path, *headers;
        unsigned status;
    } asks[] = {
        {"GET", "/api/status", "", 401},
        {"GET", "/", "", 401},
        {"GET", "/events?page=/", "", 401},
        {"GET", "/api/status", BEARER(VIEWER), 200},
        {"GET", "/", BEARER(VIEWER), 200},
        {"GET", "/", COOKIE(VIEWER), 200},
        {"GET", "/api/status", BEARER(OPERATOR), 200},
        {"GET", "/api/status", BEARER(PRODUCER), 403},
        {"GET", "/api/status", BEARER("vvvvvvvvvvvvvvvvvvvvvvv"), 401},
        {"GET", "/api/status", BEARER("vvvvvvvvvvvvvvvvvvvvvvvvv"), 401},
        {"GET", "/api/status", BEARER("vvvvvvvvvvvvvvvvvvvvvvvV"), 401},
        {"GET", "/api/status", BEARER(""), 401},
        {"GET", "/api/status", "Authorization: Basic dnY6dnY=\r\n", 401},
        {"GET", "/api/status?token=" VIEWER, "", 401},
        {"POST", "/api/queues/q/pause", "", 401},
        {"POST", "/api/queues/q/pause", BEARER(VIEWER), 403},
        {"POST", "/api/queues/q/pause", BEARER(PRODUCER), 403},
        {"POST", "/api/queues/q/pause", BEARER(OPERATOR), 200},
        {"POST", "/api/jobs", BEARER(OPERATOR), 403},
        {"POST", "/api/jobs", BEARER(PRODUCER), 400},
        {"GET", "/take/none", "", 404},
        {"GET", "/healthz", "", 200},
        {"GET", "/assets/style.css", "", 200},
    };

    (void)state;
    serve_with_tokens();
    while (status_of("GET", "/healthz", "", NULL) != 200)
        ;
    for (size_t i = 0; i < COUNT(asks); i++)
        if (status_of(asks[i].method, asks[i].path, asks[i].headers, asks[i].method[0] == 'P' ? "" : NULL) !=
            asks[i].status)
            fail_msg("%s %s %s: %d %s", asks[i].method, asks[i].path, asks[i].headers, reply.status,
                     reply.body);
    await_text(folder, "serve.err", "path=/api/queues/q/pause fields=\"{}\" by=alice");
    end_serve();
}

static void test_logging_in(void **state)
{
    (void)state;
    serve_with_tokens();
    refused("GET", "/", "", NULL, 401, "<form method=\"post\" action=\"/login\">");
    refused("POST", "/login", FORM, "token=wrong", 401, "not known here");
    refused("POST", "/login", FORM "Sec-Fetch-Site: cross-site\r\n", "token=" VIEWER, 403, "another site");
    assert_int_equal(status_of("POST", "/login", FORM, "token=" VIEWER), 303);
    assert_string_equal(http_header(&reply, "Location"), "/");
    assert_string_equal(http_header(&reply, "Set-Cookie"),
                        "weir_token=" VIEWER "; Path=/; HttpOnly; SameSite=Strict");
    assert_int_equal(status_of("POST", "/login", FORM "X-Forwarded-Proto: https\r\n", "token=" VIEWER), 303);
    assert_non_null(strstr(http_header(&reply, "Set-Cookie"), "; Secure"));
    end_serve();
}

static void test_wrong_token_files(void **state)
{
    static const struct {
        const char *text;
        mode_t mode;
        const char *says;
    } cases[] = {
        {"viewer " VIEWER "\n", 0644, "everybody can read it; chmod o-r it"},
        {"", 0600, "no token in it"},
        {"viewer short\n", 0600, ":1: not a token"},
        {"viewer\n", 0600, ":1: not a token"},
        {"\n# x\nking " VIEWER "\n", 0600, ":3: not a role"},
        {"viewer,king " VIEWER "\n", 0600, ":1: not a role"},
        {"viewer vvvvvvvvvvvvvvvvvvvvv;\n", 0600, ":1: not a token"},
    };
    char path[128];
    struct outcome o;

    (void)state;
    snprintf(path, sizeof path, "%s/tokens", folder);
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_text(folder, "tokens", cases[i].text);
        chmod(path, cases[i].mode);
        run_in(&o, folder, built("weir"), "serve", "--redis", server.url, "--listen", "127.0.0.1:0",
               "--token-file", path, NULL);
        if (o.code != 78 || !strstr(o.err, cases[i].says))
            fail_msg("%s: %d %s", cases[i].text, o.code, o.err);
    }
    run_in(&o, folder, built("weir"), "serve", "--redis", server.url, "--token-file", "/nowhere", NULL);
    assert_int_equal(o.code, 78);
}

static void test_payloads_are_hidden(void **state)
{
    static const char *const flags[] = {"--hide-args", NULL};

    (void)state;
    weir("enqueue mail {\"secret\":1} --id j1");
    serve_at(NULL, NULL, flags);
    json_decref(get("/api/jobs/j1"));
    assert_non_null(strstr(reply.body, "\"body\":null"));
    assert_null(strstr(reply.body, "secret"));
    http_request(where, "GET", "/jobs/j1", "", NULL, &reply);
    assert_null(strstr(reply.body, "secret"));
    json_decref(get("/api/jobs?q=type:mail"));
    assert_null(strstr(reply.body, "secret"));
    refused("GET", "/api/jobs?q=args.secret:1", "", NULL, 400, "payloads are hidden here");
    end_serve();
}

/* Lists and objects without anything in them are written by the same writer that hides. */
static void test_what_is_empty_is_hidden_as_json(void **state)
{
    static const char *const flags[] = {"--hide-args", NULL};
    static const char *const paths[] = {"/api/status",
                                        "/api/report",
                                        "/api/queues",
                                        "/api/rates",
                                        "/api/changes",
                                        "/api/workers",
                                        "/api/jobs",
                                        "/api/dead",
                                        "/api/batches",
                                        "/api/schedules",
                                        "/api/history?type=mail",
                                        "/api/rates/mail/keys"};

    (void)state;
    weir("rate set mail 1/1h,by=key");
    serve_at(NULL, NULL, flags);
    for (size_t i = 0; i < COUNT(paths); i++)
        json_decref(get(paths[i]));
    assert_non_null(strstr(reply.body, "\"longest\":[],\"paused_keys\":[]"));
    end_serve();
}

/* They are what stands in a payload, too. */
static void test_keys_are_hidden_as_payloads_are(void **state)
{
    static const char *const flags[] = {"--hide-args", NULL};
    static const char *const paths[] = {
        "/api/status",           "/api/report",  "/api/rates/mail",  "/api/changes", "/api/rates/mail/keys",
        "/api/jobs?q=type:mail", "/api/jobs/j1", "/api/jobs/j1/why", "/api/dead",    "/api/types/mail",
        "/api/dead/j2",          "/limits/mail", "/keys/mail",       "/jobs/j1",     "/"};
    struct outcome o;

    (void)state;
    weir("rate set mail 1/1h,by=key");
    weir("rate weight mail secret 3");
    weir("rate pause mail/secret");
    weir("enqueue mail 1 --id j1 --key secret --unique secret");
    weir("enqueue bad 1 --id j2 --key secret --max-attempts 1");
    assert_int_equal(
        program_weir(&o, folder, server.url, NULL, "worker --exec mail=true --exec bad=false --drain"), 75);
    serve_at(NULL, NULL, flags);
    for (size_t i = 0; i < COUNT(paths); i++) {
        http_request(where, "GET", paths[i], "", NULL, &reply);
        assert_int_equal(reply.status, 200);
        if (strstr(reply.body, "secret"))
            fail_msg("%s: %s", paths[i], reply.body);
    }
    json_decref(get("/api/changes"));
    assert_non_null(strstr(reply.body, "\"what\":\"weight mail \""));
    json_decref(get("/api/jobs/j1/why"));
    assert_non_null(strstr(reply.body, "\"gate\":\"mail#0\""));
    refused("GET", "/api/jobs?q=key:secret", "", NULL, 400, "payloads are hidden here");
    refused("GET", "/api/jobs?q=reason:exit", "", NULL, 400, "payloads are hidden here");
    refused("GET", "/api/dead?reason=exit", "", NULL, 400, "reasons are hidden here");
    refused("GET", "/api/rates/mail/keys?key=secret", "", NULL, 400, "keys are hidden here");
    end_serve();
}

/* The jobs of all answers, each of which went on at the cursor of the one before; none of them names the key. */
static size_t list_without_key(const char *path)
{
    char all[256];
    size_t jobs = 0;

    snprintf(all, sizeof all, "%s", path);
    for (bool more = true; more;) {
        json_t *doc = get(all);
        const char *cursor = json_string_value(json_object_get(doc, "cursor"));

        assert_null(strstr(reply.body, "secret"));
        jobs += json_array_size(json_object_get(doc, "jobs"));
        more = cursor != NULL;
        if (more)
            snprintf(all, sizeof all, "%s&cursor=%s", path, cursor);
        json_decref(doc);
    }
    return jobs;
}

/* A cursor names the lane at which a search goes on, and so its key. */
static void test_cursors_hide_keys(void **state)
{
    static const char *const flags[] = {"--hide-args", NULL};
    const char *path = "/api/jobs?q=type:mail+state:parked&limit=50";
    const char *const words[] = {built("weir"), "--redis", server.url, "worker", "--exec", "mail=true", NULL};
    pid_t worker;
    char next[256];
    int jobs = 0;

    (void)state;
    weir("rate set mail 1/1h,by=key");
    fill_queue_with(&(struct weir_job_spec){.type = "mail", .key = "secret"}, 131);
    worker = program_start(folder, "worker", words);
    while (server_number(&server, "LLEN", "weir:{0}:lane:default/mail/secret", NULL) < 130)
        clock_sleep_until(clock_mono_us() + 20000);
    /* A worker that stops gives back a job that has not started. */
    while (server_number(&server, "HEXISTS", "weir:{0}:stats:mail", "done", NULL) == 0)
        clock_sleep_until(clock_mono_us() + 20000);
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    serve();
    json_decref(get(path));
    assert_non_null(strstr(strstr(reply.body, "\"cursor\""), "secret"));
    end_serve();
    serve_at(NULL, NULL, flags);
    assert_int_equal(list_without_key(path), 130);
    http_request(where, "GET", "/jobs?q=type:mail+state:parked", "", NULL, &reply);
    assert_null(strstr(reply.body, "secret"));
    assert_int_equal(sscanf(strstr(reply.body, "rel=\"next\""), "rel=\"next\" href=\"%255[^\"]", next), 1);
    for (char *amp = next; (amp = strstr(amp, "&amp;")) != NULL;)
        memmove(amp + 1, amp + 5, strlen(amp + 5) + 1);
    http_request(where, "GET", next, "", NULL, &reply);
    assert_int_equal(reply.status, 200);
    for (const char *at = reply.body; (at = strstr(at, "<a href=\"/jobs/")) != NULL; at++)
        jobs++;
    assert_int_equal(jobs, 50);
    assert_null(strstr(reply.body, "secret"));
    refused("GET", "/api/jobs?cursor=0123456789abcdef", "", NULL, 400, "not known any more");
    http_request(where, "GET", "/jobs?at=0123456789abcdef", "", NULL, &reply);
    assert_non_null(strstr(reply.body, "not known any more"));
    end_serve();
}

/* ---- Jobs */

static long long waiting(const char *queue)
{
    char key[160];

    snprintf(key, sizeof key, "weir:{0}:queue:%s", queue);
    return server_number(&server, "LLEN", key, NULL);
}

static void test_one_job(void **state)
{
    static const struct {
        const char *body;
        const char *says;
    } wrong[] = {
        {"", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"{}", "type is missing"},
        {"{\"type\":\"a b\"}", "its type must be 1 to 128"},
        {"{\"type\":\"a\",\"typo\":1}", "\\\"typo\\\" is not a member of a job"},
        {"{\"type\":\"a\",\"cost\":0}", "\\\"cost\\\" must be a whole number"},
        {"{\"type\":\"a\",\"in\":\"x\"}", "\\\"in\\\" must be a number of seconds"},
        {"{\"type\":\"a\",\"in\":1,\"at\":1}", "either a delay or a time"},
        {"{\"type\":\"a\",\"type\":\"b\"}", "not JSON"},
        {"{\"type\":\"a\"} {\"type\":\"b\"}", "not JSON"},
    };

    (void)state;
    serve();
    for (size_t i = 0; i < COUNT(wrong); i++)
        refused("POST", "/api/jobs", JSON, wrong[i].body, 400, wrong[i].says);
    assert_int_equal(
        status_of("POST", "/api/jobs", JSON,
                  "{\"id\":\"j1\",\"type\":\"mail\",\"args\":{\"n\":12345678901234567},\"queue\":\"q\","
                  "\"key\":\"k\",\"cost\":2,\"max_attempts\":3,\"timeout\":\"10m\",\"batch\":\"b\","
                  "\"unique\":\"u\",\"meta\":{\"x\":1}}"),
        200);
    assert_string_equal(reply.body, "{\"id\":\"j1\",\"new\":true}\n");
    json_decref(get("/api/jobs/j1"));
    assert_non_null(strstr(reply.body, "\"args\":{\"n\":12345678901234567}"));
    assert_non_null(strstr(reply.body, "\"unique\":\"u\""));
    assert_int_equal(
        status_of("POST", "/api/jobs", JSON, "{\"id\":\"j1\",\"type\":\"mail\",\"queue\":\"q\"}"), 200);
    assert_string_equal(reply.body, "{\"id\":\"j1\",\"new\":false}\n"); /* asked again, it is there once */
    assert_int_equal(waiting("q"), 1);
    assert_int_equal(status_of("POST", "/api/jobs", JSON, "{\"type\":\"mail\",\"unique\":\"u\"}"), 200);
    assert_string_equal(reply.body, "{\"id\":\"j1\",\"new\":false,\"locked\":true}\n");
    assert_int_equal(status_of("POST", "/api/jobs", JSON, "{\"type\":\"mail\",\"in\":\"1h\",\"id\":\"j2\"}"),
                     200);
    json_decref(get("/api/jobs/j2"));
    assert_non_null(strstr(reply.body, "\"state\":\"scheduled\""));
    end_serve();
}

static void test_lines(void **state)
{
    static const char wrong[] = "{\"type\":\"a\"}\n{\"type\":\"b c\"}\n\n{\"args\":1}\nx\n{\"type\":\"a\"}";

    (void)state;
    serve();
    refused("POST", "/api/jobs", NDJSON, wrong, 400, "3 wrong lines, and nothing was sent");
    assert_non_null(strstr(reply.body, "{\"line\":2,\"error\":\"wrong job:"));
    assert_non_null(strstr(reply.body, "{\"line\":4,\"error\":\"wrong job: \\\"type\\\" is missing\"}"));
    assert_non_null(strstr(reply.body, "{\"line\":5,\"error\":\"not a JSON object"));
    assert_int_equal(waiting("default"), 0);
    assert_int_equal(status_of("POST", "/api/jobs?skip_invalid=true", NDJSON, wrong), 200);
    assert_non_null(
        strstr(reply.body, "{\"lines\":6,\"resumed\":0,\"accepted\":2,\"invalid\":3,\"blank\":1,"));
    assert_int_equal(waiting("default"), 2);
    assert_int_equal(status_of("POST", "/api/jobs?type=mail&queue=q", NDJSON, "{\"a\":1}\n2\n"), 200);
    assert_int_equal(waiting("q"), 2);
    refused("POST", "/api/jobs", NDJSON, "\n \n", 400, "no job in it");
    refused("POST", "/api/jobs?then=x", NDJSON, "{\"type\":\"a\"}", 400, "give the jobs a batch");
    refused("POST", "/api/jobs?batches=x", NDJSON, "{\"type\":\"a\"}", 400, "batches: unknown");
    refused("POST", "/api/jobs?batch=a%20b", NDJSON, "{\"type\":\"a\"}", 400, "not a valid name");
    end_serve();
}

#define MANY 20000

/* MANY lines; the caller's. */
static char *many_lines(void)
{
    char *text = malloc(MANY * 40), *at = text;

    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "{\"type\":\"mail\",\"args\":%d}\n", i);
    return text;
}

/* The connection is lost, or weir serve is killed, in the midst of a named batch: the same request again takes what is
 * left. */
static void test_a_named_batch_arrives_exactly_once(void **state)
{
    struct proxy *proxy = proxy_start(&server);
    char *lines = many_lines();

    (void)state;
    for (unsigned cut = 6; cut < 10; cut++) {
        char path[64];
        int fd;

        free(server_ask(&server, "FLUSHALL", NULL));
        serve_at(proxy_url(proxy), NULL, all_flags);
        json_decref(get("/api/queues")); /* the functions are there */
        snprintf(path, sizeof path, "/api/jobs?batch=b%u", cut);
        proxy_kill_before(proxy, PROXY_REPLIES, cut, serving);
        fd = http_open(where);
        dprintf(fd, "POST %s HTTP/1.1\r\nHost: localhost\r\n" NDJSON "Content-Length: %zu\r\n\r\n", path,
                strlen(lines));
        (void)http_send(fd, lines, strlen(lines));
        waitpid(serving, NULL, 0);
        serving = 0;
        close(fd);
        serve_at(NULL, NULL, all_flags);
        assert_int_equal(status_of("POST", path, NDJSON, lines), 200);
        assert_int_equal(waiting("default"), MANY);
        assert_int_equal(status_of("POST", path, NDJSON, lines), 200);
        assert_non_null(strstr(reply.body, "\"resumed\":20000,\"accepted\":0"));
        assert_int_equal(waiting("default"), MANY);
        end_serve();
    }
    free(lines);
    proxy_stop(proxy);
}

static void test_a_body_that_is_too_large(void **state)
{
    char *large = malloc(2 * 1024 * 1024 + 1);
    int fd;

    (void)state;
    memset(large, ' ', 2 * 1024 * 1024);
    large[2 * 1024 * 1024] = '\0';
    serve();
    fd = http_open(where);
    dprintf(fd, "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\n" JSON "Content-Length: 99999999999\r\n\r\n");
    assert_true(http_receive(fd, false, &reply)); /* before its body */
    assert_int_equal(reply.status, 413);
    close(fd);
    fd = http_open(where);
    dprintf(fd,
            "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\n" JSON "Transfer-Encoding: chunked\r\n\r\n%zx\r\n",
            strlen(large));
    assert_true(http_send(fd, large, strlen(large)));
    dprintf(fd, "\r\n0\r\n\r\n");
    assert_true(http_receive(fd, false, &reply));
    assert_int_equal(reply.status, 413);
    close(fd);
    refused("POST", "/api/rates/a", FORM, large, 413, "too large");
    end_serve();
    free(large);
}

/* What a proxy and we could take for different requests is refused, and nothing behind it is done. */
static void test_a_body_of_two_lengths(void **state)
{
    int fd;

    (void)state;
    serve();
    fd = http_open(where);
    dprintf(fd, "POST /api/queues/a/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                "4\r\nTransfer-Encoding: chunked\r\n\r\n"
                "0\r\n\r\nPOST /api/queues/b/pause HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert_true(http_receive(fd, false, &reply));
    assert_int_equal(reply.status, 400);
    assert_false(http_receive(fd, false, &reply));
    close(fd);
    json_decref(get("/api/queues"));
    assert_null(strstr(reply.body, "paused_since\":1"));
    end_serve();
}

/* Heads of a megabyte, no head at all, versions, methods: each is answered, and what follows is answered too. */
static void test_strange_requests(void **state)
{
    static const struct {
        const char *begin, *fill, *end;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", "a", "\r\n\r\n", 431},
        {"GET / HTTP/1.1\r\nHost: localhost\r\n", "X: a\r\n", "\r\n", 431},
        {"GET /jobs?q=", "a", " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414},
        {"GET / HTTP/1.0\r\n\r\n", "", "", 200},
        {"GET /events?page=/ HTTP/1.0\r\n\r\n", "", "", 200},
        {"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "", 200},
        {"HEAD /events?page=/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "", 200},
        {"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "", 405},
        {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", "", "", 400},
        {"GET /jobs/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", "", "", 404},
    };

    (void)state;
    serve();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int fd = http_open(where);
        bool sent = http_send(fd, cases[i].begin, strlen(cases[i].begin));

        for (size_t n = 0; *cases[i].fill && sent && n < (1 << 20); n += strlen(cases[i].fill))
            sent = http_send(fd, cases[i].fill, strlen(cases[i].fill));
        (void)(sent &&
               http_send(fd, cases[i].end, strlen(cases[i].end))); /* it may be answered before its end */
        if (!http_receive(fd, true, &reply) || reply.status != cases[i].status)
            fail_msg("%s: %d %s", cases[i].begin, reply.status, reply.head);
        close(fd);
        json_decref(get("/api/status"));
    }
    end_serve();
}

/* Hundreds of clients that send their heads byte by byte hold up nobody. */
static void try_test_slow_clients(void **state)
{
    static const char head[] = "GET /api/status HTTP/1.1\r\nHost: localhost\r\n";
    int slow[900];

    (void)state;
    weir("rate set api 1000/1h");
    serve();
    for (size_t i = 0; i < COUNT(slow); i++)
        slow[i] = http_open(where);
    for (size_t k = 0; k < 10; k++) {
        int64_t began_us = clock_mono_us();

        for (size_t i = 0; i < COUNT(slow); i++)
            assert_true(http_send(slow[i], head + k, 1));
        assert_int_equal(status_of("GET", "/take/api", "", NULL), 200);
        assert_int_equal(status_of("GET", "/", "", NULL), 200);
        stage_in_time(clock_mono_us() - began_us, 2000000);
    }
    for (size_t i = 0; i < COUNT(slow); i++)
        close(slow[i]);
    end_serve();
}
STAGE_TRIALS(test_slow_clients)

/* ---- Events */

/* Reads until that has come. */
static void await_bytes(int fd, const char *text)
{
    static char seen[1 << 20];
    size_t len = 0;

    do {
        ssize_t n = read(fd, seen + len, sizeof seen - 1 - len);

        if (n <= 0)
            fail_msg("%s did not come: %.*s", text, (int)len, seen);
        len += (size_t)n;
        seen[len] = '\0';
    } while (!strstr(seen, text));
}

static int open_stream(const char *page)
{
    int fd = http_open(where);

    dprintf(fd, "GET /events?page=%s HTTP/1.1\r\nHost: localhost\r\n\r\n", page);
    return fd;
}

static void test_events(void **state)
{
    char byte;
    int first, second;

    (void)state;
    serve();
    first = open_stream("/");
    second = open_stream("/");
    await_bytes(first, "Content-Type: text/event-stream");
    await_bytes(first, "<main");
    weir("enqueue a_new_type --queue a_new_queue");
    await_bytes(first, "a_new_queue");
    await_bytes(second, "a_new_queue");
    close(second); /* is no harm */
    end_serve();
    while (read(first, &byte, 1) > 0)
        ;
    close(first);
}

/* Who looks is told when Redis is gone, and gets the page by itself when it is back. tests/pages has it stall, too. */
static void test_events_say_that_redis_is_away(void **state)
{
    int stream;

    (void)state;
    serve();
    stream = open_stream("/");
    await_bytes(stream, "<main");
    server_kill(&server);
    await_bytes(stream, "event: away\ndata: ");
    refused("GET", "/", "", NULL, 503, "http-equiv=\"refresh\"");
    assert_non_null(strstr(reply.body, "data-away"));
    server_restart(&server);
    weir("enqueue a_job --queue afterwards");
    await_bytes(stream, "afterwards");
    close(stream);
    end_serve();
}

/* Nobody looks for what is not there every two seconds, nor any longer when it is gone. */
static void test_events_of_what_is_not_there(void **state)
{
    static const char *const pages[] = {"/jobs/nobody", "/types/nobody", "/limits/nobody", "/batches/nobody",
                                        "/nowhere"};
    char path[64], byte;
    int stream;

    (void)state;
    serve();
    for (size_t i = 0; i < COUNT(pages); i++) {
        snprintf(path, sizeof path, "/events?page=%s", pages[i]);
        refused("GET", path, "", NULL, 404, "{\"error\":\"no such page\"}");
    }
    weir("rate set mail 1/1h");
    stream = open_stream("/limits/mail");
    await_bytes(stream, "<main");
    weir("rate remove mail --yes");
    await_bytes(stream, " data-gone>");
    while (read(stream, &byte, 1) > 0)
        ;
    close(stream);
    end_serve();
}

static void test_not_too_many_look(void **state)
{
    int fds[257];

    (void)state;
    serve();
    for (int i = 0; i < 256; i++) {
        fds[i] = open_stream("/");
        await_bytes(fds[i], "text/event-stream");
    }
    refused("GET", "/events?page=/", "", NULL, 503, "too many are looking");
    for (int i = 0; i < 256; i++)
        close(fds[i]);
    json_decref(get("/api/status"));
    end_serve();
}

/* ---- What goes on meanwhile */

static long long calls(void)
{
    return server_calls(&server, "fcall_ro") + server_calls(&server, "fcall");
}

static void test_many_readers_ask_redis_once(void **state)
{
    int fds[200];
    long before, one;
    int64_t began_us;

    (void)state;
    fill();
    serve();
    before = calls();
    json_decref(get("/api/rates/mail"));
    one = calls() - before;
    json_decref(get("/api/rates"));
    before = calls();
    began_us = clock_mono_us();
    for (size_t i = 0; i < COUNT(fds); i++) {
        fds[i] = http_open(where);
        dprintf(fds[i], "GET /api/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    }
    for (size_t i = 0; i < COUNT(fds); i++) {
        assert_true(http_receive(fds[i], false, &reply));
        assert_int_equal(reply.status, 200);
        close(fds[i]);
    }
    /* An answer is fresh for a second: of 200 a few. */
    assert_in_range(calls() - before, 1, (3 + (clock_mono_us() - began_us) / 1000000) * one + 10);
    end_serve();
}

/* Redis is 20 ms away, and a check of all of it takes many calls: takes do not wait for it, nor for half a body. */
static void test_takes_wait_for_nothing_else(void **state)
{
    struct proxy *proxy = proxy_start(&server);
    int doctor, half;

    (void)state;
    fill();
    weir("rate set api 1000/1h");
    serve_at(proxy_url(proxy), NULL, all_flags);
    json_decref(get("/api/doctor"));
    while (status_of("GET", "/take/api", "", NULL) != 200)
        ;
    proxy_delay(proxy, PROXY_REPLIES, 20000);
    clock_sleep_until(clock_mono_us() + 1000000); /* the answer of before is not fresh any more */
    half = http_open(where);
    dprintf(half, "POST /api/jobs HTTP/1.1\r\nHost: localhost\r\n" NDJSON
                  "Content-Length: 1000000\r\n\r\n{\"type\":");
    doctor = http_open(where);
    dprintf(doctor, "GET /api/doctor HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (int i = 0; i < 3; i++)
        assert_int_equal(status_of("GET", "/take/api", "", NULL), 200);
    assert_int_equal(recv(doctor, &reply, 1, MSG_DONTWAIT), -1); /* three takes later */
    assert_true(http_receive(doctor, false, &reply));
    assert_int_equal(reply.status, 200);
    close(doctor);
    close(half);
    end_serve();
    proxy_stop(proxy);
}

static void test_redis_away(void **state)
{
    (void)state;
    serve();
    json_decref(get("/api/status"));
    server_kill(&server);
    clock_sleep_until(clock_mono_us() + 1000000); /* as above */
    refused("GET", "/api/status", "", NULL, 503, "error");
    refused("GET", "/", "", NULL, 503, "Redis does not answer");
    refused("POST", "/api/queues/q/pause", FORM, "", 503, "error");
    refused("POST", "/api/jobs", NDJSON, "{\"type\":\"a\"}", 503, "error");
    server_restart(&server);
    act("/api/queues/q/pause", "");
    json_decref(get("/api/status"));
    end_serve();
}

/* Who waits when it ends is answered. */
static void test_the_end(void **state)
{
    int waits[3];

    (void)state;
    serve();
    json_decref(get("/api/status"));
    act("/api/queues/q/pause", ""); /* what was read is not fresh any more */
    kill(server.pid, SIGSTOP);
    for (size_t i = 0; i < COUNT(waits); i++) {
        waits[i] = http_open(where);
        dprintf(waits[i], "GET /api/%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                i == 0   ? "status"
                : i == 1 ? "queues"
                         : "rates");
    }
    for (size_t i = 0; i < COUNT(waits); i++)
        http_await_read(waits[i]);
    clock_sleep_until(clock_mono_us() + 100000); /* the first is under way */
    kill(serving, SIGTERM);
    clock_sleep_until(clock_mono_us() + 50000);
    kill(server.pid, SIGCONT);
    for (size_t i = 0; i < COUNT(waits); i++) {
        assert_true(http_receive(waits[i], false, &reply));
        assert_int_equal(reply.status, i == 0 ? 200 : 503);
        close(waits[i]);
    }
    assert_int_equal(program_end(serving), 0);
    serving = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_documents_are_those_of_the_commands, flush),
        cmocka_unit_test_setup(test_the_doctor, flush),
        cmocka_unit_test_setup(test_a_search_for_jobs, flush),
        cmocka_unit_test_setup(test_a_body_is_answered_as_it_stands, flush),
        cmocka_unit_test_setup(test_dead_jobs, flush),
        cmocka_unit_test_setup(test_wrong_requests, flush),
        cmocka_unit_test(test_the_page_of_routes_has_all_of_them),
        cmocka_unit_test_setup(test_names_may_be_anything, flush),
        cmocka_unit_test_setup(test_browsers_get_pages, flush),
        cmocka_unit_test(test_a_new_name_has_a_page),
        cmocka_unit_test_setup(test_actions, flush),
        cmocka_unit_test_setup(test_one_job_is_looked_for_a_part_at_a_time, flush),
        cmocka_unit_test_setup(test_actions_on_many_go_on_at_a_cursor, flush),
        cmocka_unit_test_setup(test_workers_are_ordered, flush),
        cmocka_unit_test_setup(test_forms_lead_back, flush),
        cmocka_unit_test_setup(test_what_is_not_allowed_is_refused, flush),
        cmocka_unit_test_setup(test_other_sites_are_refused, flush),
        cmocka_unit_test_setup(test_tokens, flush),
        cmocka_unit_test_setup(test_logging_in, flush),
        cmocka_unit_test_setup(test_wrong_token_files, flush),
        cmocka_unit_test_setup(test_payloads_are_hidden, flush),
        cmocka_unit_test_setup(test_what_is_empty_is_hidden_as_json, flush),
        cmocka_unit_test_setup(test_keys_are_hidden_as_payloads_are, flush),
        cmocka_unit_test_setup(test_cursors_hide_keys, flush),
        cmocka_unit_test_setup(test_one_job, flush),
        cmocka_unit_test_setup(test_lines, flush),
        cmocka_unit_test_setup(test_a_named_batch_arrives_exactly_once, flush),
        cmocka_unit_test_setup(test_a_body_that_is_too_large, flush),
        cmocka_unit_test_setup(test_a_body_of_two_lengths, flush),
        cmocka_unit_test_setup(test_strange_requests, flush),
        cmocka_unit_test_setup(test_slow_clients, flush),
        cmocka_unit_test_setup(test_events, flush),
        cmocka_unit_test_setup(test_events_say_that_redis_is_away, flush),
        cmocka_unit_test_setup(test_events_of_what_is_not_there, flush),
        cmocka_unit_test_setup(test_not_too_many_look, flush),
        cmocka_unit_test_setup(test_many_readers_ask_redis_once, flush),
        cmocka_unit_test_setup(test_takes_wait_for_nothing_else, flush),
        cmocka_unit_test_setup(test_redis_away, flush),
        cmocka_unit_test_setup(test_the_end, flush),
    };

    cmocka_set_test_filter(getenv("WEIR_TEST"));
    return cmocka_run_group_tests(tests, setup, teardown);
}
