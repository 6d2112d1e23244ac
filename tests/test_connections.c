/* What connections cost: functions are loaded when a call has missed them, and never before. */
#include "core/clock.h"
#include "core/script/script.h"
#include "queue/status/status.h"
#include "tests/proxy.h"
#include "tests/scene.h"
#include "tests/stage.h"

enum { WORKERS = 16 };

/* A number of INFO; name: with the colon, or the "=" of a command's calls. */
static long long info(struct stage *s, const char *section, const char *name)
{
    char *text = server_ask(&s->server, "INFO", section, NULL);
    const char *at = strstr(text, name);
    long long value = at ? atoll(at + strlen(name)) : 0;

    free(text);
    return value;
}

static long long bytes_in(struct stage *s)
{
    return info(s, "stats", "total_net_input_bytes:");
}

static long long loads(struct stage *s)
{
    return server_calls(&s->server, "function|load");
}

STAGE_TEST(test_one_enqueue_sends_little)
{
    long long begin;

    stage_must(s, "enqueue mark");
    assert_int_equal(loads(s), 1);
    begin = bytes_in(s);
    stage_must(s, "enqueue mark");
    assert_in_range(bytes_in(s) - begin, 100, 1000);
    stage_must(s, "status");
    stage_must(s, "rate set mark 5/s");
    assert_int_equal(loads(s), 1);
}

static char *ids_of_workers(struct stage *s)
{
    return server_ask(&s->server, "ZRANGE", stage_key(s, "workers"), "0", "-1", NULL);
}

/* So many are registered, none of them by an id of before. */
static bool all_have_new_ids(struct stage *s, const char *before)
{
    char *now = ids_of_workers(s), *rest = now;
    int fresh = 0;

    for (const char *id; (id = strsep(&rest, "\n")) && *id;)
        fresh += !strstr(before, id);
    free(now);
    return fresh == WORKERS;
}

/* 64 of them would send less than 100 KB. */
STAGE_TEST(test_workers_that_reconnect_send_little)
{
    long long begin, clients, sent;
    int64_t idle_us;
    char *before;

    for (int i = 0; i < WORKERS; i++) {
        stage_weir(s, textf("worker%d", i), "--exec", "mark=true", "--executors", "1", NULL);
    }
    stage_await_workers(s, WORKERS);
    stage_await_blocked(s, WORKERS);
    before = ids_of_workers(s);
    clients = info(s, "clients", "connected_clients:");
    assert_in_range(loads(s), 1, WORKERS); /* who misses them at once loads them: one of them counts */
    stage_do(s, "CONFIG", "RESETSTAT");
    begin = bytes_in(s);
    idle_us = clock_mono_us();
    stage_do(s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    while (!all_have_new_ids(s, before) || info(s, "clients", "connected_clients:") < clients)
        clock_sleep_until(clock_mono_us() + 50000); /* what is asked here counts too */
    sent = bytes_in(s) - begin;
    idle_us = clock_mono_us() - idle_us;
    print_message("%d workers that reconnect send %lld bytes\n", WORKERS, sent);
    assert_in_range(sent, 1000,
                    WORKERS * 100000 / 64 +
                        idle_us / 100); /* of 10 KB a second at most, what is asked meanwhile */
    assert_int_equal(loads(s), 0);
    free(before);
}

TEST(test_the_library_is_bare)
{
    assert_null(strstr(script_library, "\n--"));
    assert_null(strstr(script_library, "\n "));
    assert_null(strstr(script_library, " -- "));
    assert_null(strstr(script_library, " \n"));
    assert_non_null(strstr(script_library, "'weir doctor --repair once more'")); /* a text is no comment */
}

/* A line of a file of the source, from 1. */
static void read_line(const char *file, int number, char *line, int size)
{
    FILE *in = fopen(file, "r");

    assert_non_null(in);
    while (number-- > 0)
        assert_non_null(fgets(line, size, in));
    fclose(in);
}

/* A fault is put into a line of the library: what people read names the line of the file. */
STAGE_TEST(test_an_error_names_file_and_line)
{
    static const char sound[] = "local function ahead(ARGV)\n", faulty[] = "local function ahead() x()\n";
    char *text = strdup(script_library), *at = strstr(text, sound), *answer, function[64], line[200];
    const char *file;
    struct error e;
    int number;

    assert_non_null(at);
    memcpy(at, faulty, sizeof faulty - 1);
    memmove(at + sizeof faulty - 1, at + sizeof sound - 1, strlen(at + sizeof sound - 1) + 1);
    stage_do(s, "FUNCTION", "LOAD", "REPLACE", text);
    snprintf(function, sizeof function, "weir_%s_ahead", script_digest);
    answer = server_ask(&s->server, "FCALL_RO", function, "1", "p:", "", NULL);
    file = script_place(answer, &number);
    if (!file)
        fail_msg("%s", answer);
    assert_string_equal(file, "queue/inspect/ahead.lua");
    read_line(file, number, line, sizeof line);
    assert_string_equal(line, sound);
    assert_int_equal(redis_fault_error(&e, answer + strlen("(error) ")), WEIR_EINTERNAL);
    snprintf(line, sizeof line, "unexpected error in queue/inspect/ahead.lua:%d: ERR ", number);
    assert_non_null(strstr(e.text, line));
    free(answer);
    free(text);
}

/* The first line and the last one of each file, and lines of none. */
TEST(test_places)
{
    char text[100];
    int line;

    for (const struct script_place *p = script_places; p->file; p++) {
        snprintf(text, sizeof text, "ERR user_function:%d: script: weir_%s_x", p->before + 1, script_digest);
        assert_string_equal(script_place(text, &line), p->file);
        assert_int_equal(line, 1);
        if (!p[1].file)
            break;
        snprintf(text, sizeof text, "user_function:%d: weir_%s_x", p[1].before, script_digest);
        assert_string_equal(script_place(text, &line), p->file);
    }
    assert_null(script_place("ERR user_function:7: script: weir_0123456789ab_x", &line));
    snprintf(text, sizeof text, "ERR script: weir_%s_x", script_digest);
    assert_null(script_place(text, &line));
    snprintf(text, sizeof text, "user_function:1: weir_%s_x", script_digest);
    assert_null(script_place(text, &line)); /* #!lua */
}

/* Who asks a Redis that does not answer waits for it once, and says for how long: each connection more is a wait more. */
STAGE_TEST(test_silence_is_waited_for_once)
{
    static const char *const lines[] = {"status",        "report",     "rate list",      "rate show mark",
                                        "rate log",      "why 1",      "job list",       "queue list",
                                        "batch list",    "dead list",  "rate keys mark", "doctor",
                                        "schedule list", "job show 1", "enqueue mark"};
    enum { COMMANDS = sizeof lines / sizeof *lines };
    struct proxy *links[COMMANDS + 1];
    struct weir *w;
    struct limits limits;
    pid_t pids[COMMANDS];

    stage_must(s, "rate set mark 1/s");
    for (int i = 0; i < COMMANDS + 1; i++)
        links[i] = proxy_start(&s->server);
    w = weir_new(proxy_url(links[COMMANDS]), s->ns);
    assert_non_null(w);
    assert_int_equal(status_limits(w, -1, &limits), 0); /* this one falls silent on the way */
    limits_free(&limits);
    for (int i = 0; i < COMMANDS + 1; i++)
        proxy_blackhole(links[i], true);
    for (int i = 0; i < COMMANDS; i++) {
        char text[64], name[24], *rest = text;
        const char *words[8] = {built("weir")};
        int n = 1;

        snprintf(text, sizeof text, "%s", lines[i]);
        while ((words[n] = strsep(&rest, " ")))
            n++;
        words[n++] = "--redis";
        words[n++] = proxy_url(links[i]);
        words[n] = NULL;
        snprintf(name, sizeof name, "silent%d", i);
        pids[i] = program_start(s->server.folder, name, words);
    }
    assert_int_equal(status_limits(w, -1, &limits), WEIR_EUNREACHABLE);
    limits_free(&limits);
    assert_int_equal(proxy_accepted(links[COMMANDS]), 1);
    for (int i = 0; i < COMMANDS; i++) {
        char name[24], said[2000];

        assert_int_equal(program_end(pids[i]), 69);
        snprintf(name, sizeof name, "silent%d.err", i);
        assert_true(read_text(s->server.folder, name, said, sizeof said));
        if (!strstr(said, "no answer within 5 s") || proxy_accepted(links[i]) != 1)
            fail_msg("%s: %d connections: %s", lines[i], proxy_accepted(links[i]), said);
    }
    weir_free(w);
    for (int i = 0; i < COMMANDS + 1; i++)
        proxy_stop(links[i]);
}

STAGE_TESTS(NULL, NULL)
