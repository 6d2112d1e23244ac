/* weir serve, from outside: who may ask for what, and what is hidden. */
#include <signal.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/serving.h"
#include "tests/test.h"

#define OPERATOR "oooooooooooooooooooooooo"
#define VIEWER "vvvvvvvvvvvvvvvvvvvvvvvv"
#define PRODUCER "pppppppppppppppppppppppp"

/* ---- Who may ask */

TEST_WITH(test_what_is_not_allowed_is_refused, serving_flush, NULL)
{
    static const char *const no_flags[] = {NULL};

    serving_start_at(NULL, NULL, no_flags);
    serving_refused("POST", "/api/queues/q/pause", FORM, "", 403, "--allow-actions");
    serving_refused("POST", "/api/jobs", JSON, "{\"type\":\"a\"}", 403, "--allow-enqueue");
    json_decref(serving_get("/api/status"));
    serving_end();
}

TEST_WITH(test_other_sites_are_refused, serving_flush, NULL)
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

    serving_weir("enqueue t --queue q");
    serving_start_at(NULL, "127.0.0.1:0", flags);
    for (size_t i = 0; i < COUNT(cases); i++) {
        snprintf(headers, sizeof headers, FORM "%s", cases[i].headers);
        if (serving_status_of("POST", "/api/queues/q/pause", headers, "") != cases[i].status)
            fail_msg("%s: %d %s", cases[i].headers, serving.reply.status, serving.reply.body);
    }
    serving_refused("GET", "/api/status", "Host: evil.example\r\n", NULL, 403, "--host NAME");
    serving_end();
}

/* A page of another site takes nobody's slots: it could ask for one as for a picture. */
TEST_WITH(test_takes_are_refused_to_other_sites, serving_flush, NULL)
{
    static const char *const no_flags[] = {NULL};

    serving_weir("rate set mail 1/1h");
    serving_start_at(NULL, "127.0.0.1:0", no_flags);
    while (serving_status_of("GET", "/healthz", "Host: evil.example\r\n", NULL) != 200)
        ;
    serving_refused("GET", "/take/mail", "Host: evil.example\r\n", NULL, 403, "--host NAME");
    serving_refused("GET", "/take/mail", "Origin: https://evil.example\r\n", NULL, 403, "another site");
    serving_refused("HEAD", "/take/mail", "Sec-Fetch-Site: cross-site\r\n", NULL, 403, "");
    assert_int_equal(serving_status_of("GET", "/take/mail", "Sec-Fetch-Site: none\r\n", NULL), 200);
    serving_end();
    serving_start(); /* on a unix socket a proxy asks, in the name of whoever asks it */
    while (serving_status_of("GET", "/healthz", "", NULL) != 200)
        ;
    assert_int_equal(
        serving_status_of("GET", "/take/mail", "Host: weir\r\nOrigin: https://shop.example\r\n", NULL), 429);
    serving_end();
}

/* What is no text is named, and is not "malformed" JSON. */
SERVING_TEST(test_bodies_that_are_no_text)
{
    static const struct {
        const char *path, *headers, *body;
        unsigned status;
        const char *says;
    } cases[] = {
        {"/api/jobs", JSON "Content-Encoding: gzip\r\n", "\x1f\x8b\x08", 415, "send the body uncompressed"},
        {"/api/jobs", NDJSON "Content-Encoding: br\r\n", "x", 415, "send the body uncompressed"},
        {"/api/jobs", JSON, "\x1f\x8b\x08", 400, "compressed by gzip"},
        {"/api/jobs", JSON, "\xef\xbb\xbf{\"type\":\"a\"}", 400, "byte order mark"},
        {"/api/jobs", NDJSON, "\xef\xbb\xbf{\"type\":\"a\"}\n", 400, "byte order mark"},
        {"/api/jobs", JSON, "\xff\xfe{", 400, "UTF-16"},
        {"/api/jobs", JSON, "\xfe\xff", 400, "UTF-16"},
        {"/api/queues/q/pause", FORM "Content-Encoding: deflate\r\n", "x=1", 415,
         "send the body uncompressed"},
        {"/api/queues/q/pause", JSON, "\xef\xbb\xbf{}", 400, "byte order mark"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        serving_refused("POST", cases[i].path, cases[i].headers, cases[i].body, cases[i].status,
                        cases[i].says);
    assert_int_equal(
        serving_status_of("POST", "/api/jobs", JSON "Content-Encoding: identity\r\n", "{\"type\":\"a\"}"),
        200);
}

TEST_WITH(test_hanging_up_stops_it, serving_flush, NULL)
{
    serving_start();
    kill(serving.pid, SIGHUP);
    assert_int_equal(program_end(serving.pid), 0);
    serving.pid = 0;
}

#define BEARER(token) "Authorization: Bearer " token "\r\n"
#define COOKIE(token) "Cookie: a=b; weir_token=" token "\r\n"

static void serve_with_tokens(void)
{
    const char *path = textf("%s/tokens", serving.folder);
    const char *flags[] = {"--allow-actions", "--allow-enqueue", "--token-file", path, NULL};

    write_text(serving.folder, "tokens",
               "# who may\nviewer " VIEWER "\noperator " OPERATOR " alice\nproducer\t" PRODUCER "\n");
    chmod(path, 0600);
    serving_start_at(NULL, NULL, flags);
}

TEST_WITH(test_tokens, serving_flush, NULL)
{
    static const struct {
        const char *method, *path, *headers;
        unsigned status;
    } asks[] = {
        {"GET", "/api/status", "", 401},
        {"GET", "/", "", 401},
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

    json_t *log;

    serving_weir("enqueue t --queue q");
    serve_with_tokens();
    while (serving_status_of("GET", "/healthz", "", NULL) != 200)
        ;
    for (size_t i = 0; i < COUNT(asks); i++)
        if (serving_status_of(asks[i].method, asks[i].path, asks[i].headers,
                              asks[i].method[0] == 'P' ? "" : NULL) != asks[i].status)
            fail_msg("%s %s %s: %d %s", asks[i].method, asks[i].path, asks[i].headers, serving.reply.status,
                     serving.reply.body);
    await_text(serving.folder, "serve.err", "path=/api/queues/q/pause fields=\"{}\" by=alice");
    log = serving_printed("log --json", true); /* who has the token, not who runs the server */
    assert_memory_equal(json_string_value(json_object_get(json_array_get(log, 0), "who")), "alice@", 6);
    json_decref(log);
    serving_end();
}

TEST_WITH(test_logging_in, serving_flush, NULL)
{
    serve_with_tokens();
    serving_refused("GET", "/", "", NULL, 401, "<form method=\"post\" action=\"/login\">");
    serving_refused("POST", "/login", FORM, "token=wrong", 401, "not known here");
    serving_refused("POST", "/login", FORM "Sec-Fetch-Site: cross-site\r\n", "token=" VIEWER, 403,
                    "another site");
    serving_refused("POST", "/login?token=" VIEWER, FORM, "", 400, "send it in the body");
    serving_refused("POST", "/login?x", FORM, "token=" VIEWER, 400, "send it in the body");
    assert_int_equal(serving_status_of("POST", "/login", FORM, "token=" VIEWER), 303);
    assert_string_equal(http_header(&serving.reply, "Location"), "/");
    assert_string_equal(http_header(&serving.reply, "Set-Cookie"),
                        "weir_token=" VIEWER "; Path=/; HttpOnly; SameSite=Strict");
    assert_int_equal(
        serving_status_of("POST", "/login", FORM "X-Forwarded-Proto: https\r\n", "token=" VIEWER), 303);
    assert_non_null(strstr(http_header(&serving.reply, "Set-Cookie"), "; Secure"));
    serving_end();
}

TEST_WITH(test_wrong_token_files, serving_flush, NULL)
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

    snprintf(path, sizeof path, "%s/tokens", serving.folder);
    for (size_t i = 0; i < COUNT(cases); i++) {
        write_text(serving.folder, "tokens", cases[i].text);
        chmod(path, cases[i].mode);
        run_in(&o, serving.folder, built("weir"), "serve", "--redis", server.url, "--listen", "127.0.0.1:0",
               "--token-file", path, NULL);
        if (o.code != 78 || !strstr(o.err, cases[i].says))
            fail_msg("%s: %d %s", cases[i].text, o.code, o.err);
    }
    run_in(&o, serving.folder, built("weir"), "serve", "--redis", server.url, "--token-file", "/nowhere",
           NULL);
    assert_int_equal(o.code, 78);
}

TEST_WITH(test_payloads_are_hidden, serving_flush, NULL)
{
    static const char *const flags[] = {"--hide-args", NULL};

    serving_weir("enqueue mail {\"secret\":1} --id j1");
    serving_start_at(NULL, NULL, flags);
    json_decref(serving_get("/api/jobs/j1"));
    assert_non_null(strstr(serving.reply.body, "\"body\":null"));
    assert_null(strstr(serving.reply.body, "secret"));
    http_request(serving.where, "GET", "/jobs/j1", "", NULL, &serving.reply);
    assert_null(strstr(serving.reply.body, "secret"));
    json_decref(serving_get("/api/jobs?q=type:mail"));
    assert_null(strstr(serving.reply.body, "secret"));
    serving_refused("GET", "/api/jobs?q=args.secret:1", "", NULL, 400, "payloads are hidden here");
    serving_end();
}

/* Lists and objects without anything in them are written by the same writer that hides. */
TEST_WITH(test_what_is_empty_is_hidden_as_json, serving_flush, NULL)
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

    serving_weir("rate set mail 1/1h,by=key");
    serving_start_at(NULL, NULL, flags);
    for (size_t i = 0; i < COUNT(paths); i++)
        json_decref(serving_get(paths[i]));
    assert_non_null(strstr(serving.reply.body, "\"longest\":[],\"paused_keys\":[]"));
    serving_end();
}

/* They are what stands in a payload, too. */
TEST_WITH(test_keys_are_hidden_as_payloads_are, serving_flush, NULL)
{
    static const char *const flags[] = {"--hide-args", NULL};
    static const char *const paths[] = {"/api/status",
                                        "/api/report",
                                        "/api/rates/mail",
                                        "/api/changes",
                                        "/api/rates/mail/keys",
                                        "/api/jobs?q=type:mail",
                                        "/api/jobs/j1",
                                        "/api/jobs/j1/why",
                                        "/api/dead",
                                        "/api/types/mail",
                                        "/api/dead/j2",
                                        "/limits/mail",
                                        "/keys/mail",
                                        "/jobs/j1",
                                        "/",
                                        "/api/log",
                                        "/log",
                                        "/api/jobs/j3",
                                        "/jobs/j3"};
    struct outcome o;

    serving_weir("rate set mail 1/1h,by=key");
    serving_weir("rate weight mail secret 3");
    serving_weir("rate pause mail/secret");
    serving_weir("enqueue mail 1 --id j1 --key secret --unique secret");
    serving_weir("enqueue bad 1 --id j2 --key secret --max-attempts 1");
    serving_weir("enqueue odd 1 --key secret");
    serving_weir("job cancel key:secret --type odd --yes");
    server_do(&server, "SET", "weir:{0}:finished:j3",
              "done 1795000000000000 w 1 default/t/ [\"secret\"]\n{\"id\":\"j3\",\"type\":\"t\"}");
    assert_int_equal(program_weir(&o, serving.folder, server.url, NULL,
                                  "worker --exec mail=true --exec bad=false --drain"),
                     75);
    serving_start_at(NULL, NULL, flags);
    for (size_t i = 0; i < COUNT(paths); i++) {
        http_request(serving.where, "GET", paths[i], "", NULL, &serving.reply);
        assert_int_equal(serving.reply.status, 200);
        if (strstr(serving.reply.body, "secret"))
            fail_msg("%s: %s", paths[i], serving.reply.body);
    }
    json_decref(serving_get("/api/changes"));
    assert_non_null(strstr(serving.reply.body, "\"what\":\"weight mail \""));
    json_decref(serving_get("/api/log"));
    assert_non_null(strstr(serving.reply.body, "\"what\":\"jobs cancel \""));
    json_decref(serving_get("/api/jobs/j3"));
    assert_non_null(strstr(serving.reply.body, "\"result\":null"));
    json_decref(serving_get("/api/jobs/j1/why"));
    assert_non_null(strstr(serving.reply.body, "\"gate\":\"mail#0\""));
    serving_refused("GET", "/api/jobs?q=key:secret", "", NULL, 400, "payloads are hidden here");
    serving_refused("GET", "/api/jobs?q=reason:exit", "", NULL, 400, "payloads are hidden here");
    serving_refused("GET", "/api/dead?reason=exit", "", NULL, 400, "reasons are hidden here");
    serving_refused("GET", "/api/rates/mail/keys?key=secret", "", NULL, 400, "keys are hidden here");
    serving_end();
}

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
        if (more)
            snprintf(all, sizeof all, "%s&cursor=%s", path, cursor);
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
    assert_non_null(strstr(strstr(serving.reply.body, "\"cursor\""), "secret"));
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
