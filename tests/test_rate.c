/* weir rate from outside, on a real Redis: what holds a gate, keys, answers by the page. What it prints else: tests/transcripts/rate*.txt. */
#include <jansson.h>

#include "core/clock.h"
#include "tests/client.h"
#include "tests/program.h"
#include "tests/test.h"

static int setup(void **state)
{
    client_start_server(state);
    setenv("REDIS_URL", server.url, 1);
    setenv("TZ", "UTC", 1);
    return 0;
}

/* Runs "weir rate" with words split at blanks. */
static struct outcome *rate(const char *line)
{
    const char *words[WORDS_MAX + 1] = {built("weir"), "rate"};
    static struct outcome o;
    char text[1024], *rest = text;
    int count = 2;

    snprintf(text, sizeof text, "%s", line);
    while (count < WORDS_MAX && rest && *rest)
        words[count++] = strsep(&rest, " ");
    program_run(&o, NULL, words);
    return &o;
}

/* It exits 0 and prints that somewhere. */
static void says(const char *line, const char *part)
{
    struct outcome *o = rate(line);

    if (o->code != 0 || !strstr(o->out, part))
        fail_msg("weir rate %s: exit %d: %s%s(not: %s)", line, o->code, o->err, o->out, part);
}

/* The i-th line of what it prints, as JSON; freed by the caller. */
static json_t *json_line(const char *line, int i)
{
    struct outcome *o = rate(line);
    char *rest = o->out, *text = NULL;
    json_t *doc;

    assert_int_equal(o->code, 0);
    for (; i >= 0 && rest; i--)
        text = strsep(&rest, "\n");
    doc = text ? json_loads(text, 0, NULL) : NULL;
    if (!doc)
        fail_msg("weir rate %s: no such line of JSON", line);
    return doc;
}

static json_t *rule_at(json_t *doc, size_t i)
{
    return json_array_get(json_object_get(doc, "rules"), i);
}

static double number(json_t *doc, const char *name)
{
    assert_true(json_is_number(json_object_get(doc, name)));
    return json_number_value(json_object_get(doc, name));
}

static void put(const char *command, const char *key, const char *a, const char *b)
{
    server_do(&server, command, textf("weir:{0}:%s", key), a, b);
}

/* A worker that is alive and has more executors than there are jobs: forecasts are exact. */
static void add_worker(const char *type)
{
    const char *info =
        textf("{\"executors\":1000,\"lease\":30,\"queues\":[\"default\"],\"types\":[\"%s\"]}", type);

    put("ZADD", "workers", textf("%lld", (long long)clock_wall_us() + 600000000), "w");
    put("HSET", "active:w", "@", info);
}

/* Jobs without costs, behind others that name theirs. */
TEST_WITH(test_a_bulk_behind_costs_is_at_the_earliest, client_flush, NULL)
{
    char path[128];
    struct outcome o;

    assert_int_equal(rate("set w3 5/s,burst=5")->code, 0);
    snprintf(path, sizeof path, "%s/jobs", server.folder);
    write_text(server.folder, "jobs", "1\n2\n");
    add_worker("w3");
    run_in(&o, NULL, built("weir"), "enqueue", "--from", path, "w3", NULL);
    assert_null(strstr(o.out, "at the earliest"));
    put("HSET", "types", "w3", "costs=own");
    run_in(&o, NULL, built("weir"), "enqueue", "--from", path, "w3", NULL);
    assert_non_null(strstr(o.out, "at the earliest"));
}

/* ---- A hold */

TEST_WITH(test_a_gate_that_is_held_says_so, client_flush, NULL)
{
    long long now_us = clock_wall_us();
    char gate[200];
    struct outcome o;
    json_t *doc;

    assert_int_equal(rate("set slog 30/1h")->code, 0);
    assert_null(strstr(rate("show slog")->out, "held"));
    snprintf(gate, sizeof gate, "%lld 0 %lld,%lld,cc - gcra:30/3600000000/30 %lld 0", now_us - 1000,
             now_us - 2000, now_us + 100000000, now_us - 1000);
    put("SET", "gate:slog#0", gate, NULL);
    run_in(&o, NULL, built("weir"), "take", "slog", "--peek", NULL);
    assert_int_equal(o.code, 75);
    says("show slog", ", 0 free now, held for a job that waits at other gates too: to be released in 1m ");
    says("show slog", "next start:  in 1m ");
    says("list", "slog            0       0  in 1m ");
    doc = json_line("show slog --json", 0);
    assert_int_equal(number(rule_at(doc, 0), "slots_left"), 0);
    assert_true(number(doc, "next_start") > (double)now_us / 1e6 + 99);
    assert_true(number(rule_at(doc, 0), "held_until") > (double)now_us / 1e6 + 99);
    json_decref(doc);
}

/* ---- Many types and many queues */

#define MANY 100

/* The commands that Redis has run since CONFIG RESETSTAT, within scripts too. */
static long long commands_run(void)
{
    char *info = server_ask(&server, "INFO", "commandstats", NULL);
    long long sum = 0;

    for (const char *at = info; (at = strstr(at, ":calls=")); at += 7)
        sum += strtoll(at + 7, NULL, 10);
    free(info);
    return sum;
}

/* No command asks for each type in each queue. */
TEST_WITH(test_types_and_queues_add_up, client_flush, NULL)
{
    static const char *const lines[][6] = {{"status"},
                                           {"rate", "list"},
                                           {"rate", "show", "lim"},
                                           {"rate", "set", "lim", "9/s"},
                                           {"rate", "use", "type1", "lim"}};

    assert_int_equal(rate("set lim 10/s")->code, 0);
    for (int i = 0; i < MANY; i++) {
        const char *type = textf("type%d", i);
        const char *queue = textf("queue%d", i);
        const char *held = textf("held:%s", queue);

        put("HSET", "types", type, "use=lim");
        put("SADD", "queues", queue, NULL);
        put("ZADD", held, "1", type);
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *const *words = lines[i];
        struct outcome o;

        server_do(&server, "CONFIG", "RESETSTAT");
        run_in(&o, NULL, built("weir"), words[0], words[1], words[2], words[3], words[4], NULL);
        assert_int_equal(o.code, 0);
        if (commands_run() >= MANY * MANY)
            fail_msg("%s %s: %lld commands", words[0], words[1] ? words[1] : "", commands_run());
    }
}

/* ---- A change reaches what waits: a worker drains 6 jobs of 3 keys, which the slow rules let out only
 * within hours */

static void run_lines(const char *lines)
{
    char copy[512], *rest = copy, *line;

    snprintf(copy, sizeof copy, "%s", lines);
    while ((line = strsep(&rest, "\n")))
        if (rate(line)->code != 0)
            fail_msg("%s: %s", line, rate(line)->err);
}

static void await_parked(int n)
{
    for (int64_t end_us = clock_mono_us() + 60000000;; clock_sleep_until(clock_mono_us() + 5000)) {
        json_t *doc = json_line("show mail --json", 0);
        int parked = (int)number(doc, "parked");

        json_decref(doc);
        if (parked == n)
            return;
        if (clock_mono_us() > end_us)
            fail_msg("%d parked, not %d", parked, n);
    }
}

TEST_WITH(test_a_change_reaches_what_waits, client_flush, NULL)
{
    static const struct {
        const char *before;
        int parked; /* when only the change can help */
        const char *change;
    } cases[] = {
        {"set mail 1/1h", 5, "set mail 1000/s"},
        {"set mail 1/1h", 5, "set mail 1/1h,burst=100"},
        {"set mail 1/1h,by=args.k", 3, "set mail 1000/s,by=args.k"},
        {"set mail 1/1h,by=args.k", 3, "set mail 1000/s"},
        {"set mail 1/1h,by=args.k 1000/s", 3, "set mail 1000/s"},
        {"set mail 1000/s\nset acct 1/1h\nuse mail acct", 5, "unuse mail acct --yes"},
        {"set mail 1000/s\nset acct 1/1h,by=args.k\nuse mail acct", 3, "unuse mail acct --yes"},
        {"set mail 2/1h,burst=2\nuse mail --cost 2", 5, "set mail 1000/s"},
        {"set mail 1000/s\npause mail 1h", 6, "resume mail"},
        {"set mail 1000/s,by=args.k\npause mail 1h", 6, "resume mail"},
        {"set mail 1000/s,by=args.k\npause mail 1h", 6, "pause mail 100ms"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const worker[] = {built("weir"), "worker", "--exec", "mail=/bin/true", "--drain", NULL};
        pid_t pid;

        server_do(&server, "FLUSHALL");
        run_lines(cases[i].before);
        for (int job = 0; job < 6; job++) {
            struct outcome o;

            run_in(&o, NULL, built("weir"), "enqueue", "mail",
                   (const char *[]){"{\"k\":0}", "{\"k\":1}", "{\"k\":2}"}[job % 3], NULL);
            assert_int_equal(o.code, 0);
        }
        pid = program_start(server.folder, "worker", worker);
        await_parked(cases[i].parked);
        run_lines(cases[i].change);
        if (program_end(pid) != 0)
            fail_msg("%s, then %s: the worker did not drain", cases[i].before, cases[i].change);
        assert_int_equal(server_number(&server, "HGET", "weir:{0}:stats:mail", "done", NULL), 6);
    }
}

int main(void)
{

    unsetenv("WEIR_NAMESPACE");
    return tests_run(setup, client_stop);
}
