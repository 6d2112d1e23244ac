/* weir rate from outside, on a real Redis: what it prints, its exit codes, and what it leaves behind. */
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

static void fails(const char *line, int code, const char *err)
{
    struct outcome *o = rate(line);

    if (o->code != code || strncmp(o->err, "weir: ", 6) != 0 || !strstr(o->err, err))
        fail_msg("weir rate %s: exit %d: %s%s(not: %d %s)", line, o->code, o->err, o->out, code, err);
    assert_string_equal(o->out, "");
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

static const char *text(json_t *doc, const char *name)
{
    assert_true(json_is_string(json_object_get(doc, name)));
    return json_string_value(json_object_get(doc, name));
}

static void put(const char *command, const char *key, const char *a, const char *b)
{
    server_do(&server, command, textf("weir:{0}:%s", key), a, b);
}

/* ---- list, show */

static void add_parked(const char *type, const char *n)
{
    const char *key = textf("weir:{0}:stats:%s", type);

    put("HSETNX", "types", type, "");
    server_do(&server, "HSET", key, "enqueued", n, "parked", n);
}

/* A worker that is alive and has more executors than there are jobs: forecasts are exact. */
static void add_worker(const char *type)
{
    const char *info =
        textf("{\"executors\":1000,\"lease\":30,\"queues\":[\"default\"],\"types\":[\"%s\"]}", type);

    put("ZADD", "workers", textf("%lld", (long long)clock_wall_us() + 600000000), "w");
    put("HSET", "active:w", "@", info);
}

TEST_WITH(test_show, client_flush, NULL)
{
    struct outcome *o;

    assert_int_equal(
        rate("set mail 1/10m,burst=3 1000/1d,algorithm=fixed-window 5/s,by=key concurrency=4")->code, 0);
    assert_int_equal(rate("use sms mail --cost 2")->code, 0);
    add_parked("mail", "5");
    add_worker("mail");
    o = rate("show mail");
    assert_int_equal(o->code, 0);
    for (const char *const *part =
             (const char *const[]){
                 "limit:        mail\n"
                 "rules:        1/10m,burst=3: every 10m, burst 3, 3 free now\n"
                 "              1000/1d,algorithm=fixed-window: at most 2,000 in any 1d, 1,000 free "
                 "now\n"
                 "              5/1s,by=key: every 200ms, burst 5, for each key\n"
                 "              concurrency=4: at most 4 at once, 4 free now\n"
                 "parked:       5\n"
                 "keys asleep:  0\n"
                 "next start:   now\n"
                 "last start:   in 20m (",
                 ") at the earliest (each key has a gate of its own)\n"
                 "types:        mail: 0 waiting, 5 parked\n"
                 "              sms: 0 waiting, 0 parked, each costs 2\n",
                 NULL};
         *part; part++)
        if (!strstr(o->out, *part))
            fail_msg("not there: %s: %s", *part, o->out);
    says("show mail --verbose", "\n                at most 3 in any 10m; T 10m, tau 20m, TAT passed\n");
    says("show mail -v", "\n                at most 9 in any 1s for each key; T 200ms, tau 800ms\n");
    says("list", "  1/10m,burst=3 1000/1d,algorithm=fixed-window 5/1s,by=key concurrency=4\n");
}

TEST_WITH(test_show_as_json, client_flush, NULL)
{
    json_t *doc, *type;

    assert_int_equal(rate("set mail 1/10m,burst=3")->code, 0);
    add_parked("mail", "4");
    put("HSET", "limits", "odd", "7/s");
    doc = json_line("show mail --json", 0);
    assert_int_equal(number(doc, "parked"), 4);
    assert_true(json_is_null(json_object_get(doc, "paused_until")));
    assert_true(json_is_null(json_object_get(rule_at(doc, 0), "tat")));
    assert_int_equal(number(rule_at(doc, 0), "slots_left"), 3);
    assert_true(number(doc, "finish_at") - number(doc, "next_start") == 600);
    assert_true(number(rule_at(doc, 0), "next_start") == number(doc, "next_start"));
    type = json_object_get(json_object_get(doc, "types"), "mail");
    assert_int_equal(number(type, "cost"), 1);
    json_decref(doc);
    doc = json_line("list --json", 1);
    assert_string_equal(text(doc, "name"), "odd");
    assert_true(json_is_null(json_object_get(doc, "rules")));
    json_decref(doc);
    says("show odd", "cannot be read, and no job that it holds starts; set it again");
    says("list", "  cannot be read\n");
}

/* A keyed limit is open, and yet nothing starts: another limit of its type is closed. */
TEST_WITH(test_the_next_start_is_by_all_limits_of_a_type, client_flush, NULL)
{
    double now = (double)clock_wall_us() / 1e6;
    json_t *doc;

    assert_int_equal(rate("set keyed 10/s,by=key")->code, 0);
    assert_int_equal(rate("set acct 1/1s,burst=1")->code, 0);
    assert_int_equal(rate("use keyed acct")->code, 0);
    says("show keyed", "next start:   now\n");
    assert_int_equal(rate("pause acct 1h")->code, 0);
    doc = json_line("show keyed --json", 0);
    assert_true(number(doc, "next_start") > now + 3500);
    json_decref(doc);
    says("show keyed", "next start:   in ");
    doc = json_line("list --json", 1);
    assert_string_equal(text(doc, "name"), "keyed");
    assert_true(number(doc, "next_start") > now + 3500);
    json_decref(doc);
    assert_int_equal(rate("use other keyed")->code, 0); /* another type, which is not held by acct */
    says("show keyed", "next start:   now\n");
    add_parked("keyed", "2"); /* only the one that waits counts */
    says("show keyed", "next start:   in ");
}

/* ---- log */

TEST_WITH(test_log, client_flush, NULL)
{
    static const char *const lines[] = {"set mail 10/s",
                                        "set mail 20/1s,burst=5 concurrency=3",
                                        "pause mail 90s",
                                        "resume mail",
                                        "use sms mail --cost 2",
                                        "unuse sms mail",
                                        "remove mail"};
    static const char *const what[] = {"set mail 10/1s",
                                       "set mail 20/1s,burst=5 concurrency=3",
                                       "pause mail 1.5m",
                                       "resume mail",
                                       "use sms mail --cost 2",
                                       "unuse sms mail",
                                       "remove mail"};
    const int count = sizeof lines / sizeof *lines;
    double before = 0;

    for (int i = 0; i < count; i++)
        if (rate(lines[i])->code != 0)
            fail_msg("%s: %s", lines[i], rate(lines[i])->err);
    fails("set mail 0/s", 65, "0/s");
    for (int i = 0; i < count; i++) { /* the newest last */
        json_t *doc = json_line("log --json", i);

        assert_string_equal(text(doc, "what"), what[i]);
        assert_non_null(strchr(text(doc, "who"), '@'));
        assert_true(number(doc, "at") > before && number(doc, "at") > 1.7e9);
        before = number(doc, "at");
        json_decref(doc);
    }
    says("log", "  set mail 20/1s,burst=5 concurrency=3\n");
    put("LPUSH", "changes", "?", NULL);
    assert_int_equal(rate("log")->code, 78);
}

/* ---- --dry-run */

TEST_WITH(test_dry_run, client_flush, NULL)
{
    json_t *doc, *type;

    says("set mail 1/1m --dry-run",
         "mail: nothing was changed; now: no rules; then: 1/1m\nno job that it holds is waiting\n");
    assert_int_equal(server_number(&server, "EXISTS", "weir:{0}:limits", NULL), 0);
    assert_int_equal(rate("set mail 1/1m")->code, 0);
    add_parked("mail", "61");
    says("set mail 1/1s --dry-run", ")  in 1m");
    add_worker("mail");
    says("set mail 1/1s --dry-run", "mail: nothing was changed; now: 1/1m; then: 1/1s\n"
                                    "type  waiting  parked  last start ");
    says("set mail 1/1s --dry-run", "mail        0      61  in 1h (");
    says("set mail 1/1s --dry-run", ")  in 1m (");
    says("set mail 1/7s --dry-run", ")  in 7m (");
    says("set mail 1/1d,burst=2 --dry-run", ")  in 59d (");
    says("set mail 1/31m --dry-run", ")  in 1d 7h (");
    says("set mail 1/100ms --dry-run", ")  in 6s (");
    says("set mail 1/1s concurrency=3 --dry-run", ") at the earliest (jobs in flight must end)\n");
    doc = json_line("set mail 1/1s concurrency=3 --dry-run --json", 0);
    type = json_object_get(json_object_get(doc, "types"), "mail");
    assert_int_equal(number(type, "parked"), 61);
    assert_true(number(type, "finish_at") - number(type, "new_finish_at") == 3540);
    assert_true(json_is_false(json_object_get(type, "at_the_earliest")));
    assert_true(json_is_true(json_object_get(type, "new_at_the_earliest")));
    assert_true(json_is_null(json_object_get(type, "because")));
    assert_string_equal(text(type, "new_because"), "jobs in flight must end");
    assert_int_equal(json_array_size(json_object_get(doc, "rules")), 2);
    json_decref(doc);
    says("set mail 1/1s,by=key --dry-run", ")  not known (each key has a gate of its own)\n");
    assert_int_equal(rate("set mail 1/1m,by=key")->code, 0);
    says("set mail 1/1s,by=key --dry-run",
         " 61  not known (each key has a gate of its own)  not known (each key has a gate of its own)\n");
    assert_int_equal(rate("set mail 1/1m")->code, 0);
    fails("set mail 0/s --dry-run", 65, "0/s");
    assert_int_equal(rate("use mail --cost 1")->code, 0);
    says("show mail", "1/1m: every 1m, burst 1, 1 free now\n");
}

/* ---- Jobs with costs of their own */

static bool member(json_t *doc, const char *name)
{
    assert_true(json_is_boolean(json_object_get(doc, name)));
    return json_is_true(json_object_get(doc, name));
}

/* All that foretells w3's jobs says "at the earliest", or nothing of it does. */
static void expect_earliest(int line, bool earliest)
{
    json_t *doc, *type;
    struct outcome o;

    run_in(&o, NULL, built("weir"), "status", "--json", NULL);
    doc = json_loads(o.out, 0, NULL);
    type = json_object_get(json_object_get(doc, "types"), "w3");
    if (member(type, "at_the_earliest") != earliest)
        fail_msg("line %d: status: %s", line, o.out);
    json_decref(doc);
    run_in(&o, NULL, built("weir"), "status", NULL);
    if (!strstr(o.out, " at the earliest\n") == earliest)
        fail_msg("line %d: status: %s", line, o.out);
    doc = json_line("show w3 --json", 0);
    if (member(doc, "at_the_earliest") != earliest)
        fail_msg("line %d: show --json", line);
    json_decref(doc);
    if (!strstr(rate("show w3")->out, " at the earliest (some name their costs)\n") == earliest)
        fail_msg("line %d: show: %s", line, rate("show w3")->out);
    doc = json_line("set w3 10/s,burst=5 --dry-run --json", 0);
    type = json_object_get(json_object_get(doc, "types"), "w3");
    if (member(type, "at_the_earliest") != earliest || member(type, "new_at_the_earliest") != earliest)
        fail_msg("line %d: set --dry-run --json", line);
    json_decref(doc);
}

TEST_WITH(test_costs_of_their_own_are_at_the_earliest, client_flush, NULL)
{
    assert_int_equal(rate("set w3 5/s,burst=5")->code, 0);
    add_parked("w3", "20");
    add_worker("w3");
    put("SADD", "queues", "default", NULL);
    expect_earliest(__LINE__, false);
    put("HSET", "types", "w3", "costs=own");
    expect_earliest(__LINE__, true);
    assert_int_equal(rate("use w3 --cost 2")->code, 0);
    expect_earliest(__LINE__, true);
    put("HSET", "types", "w3", "");
    expect_earliest(__LINE__, false);
    put("RPUSH", "queue:default", "{\"id\":\"x\",\"type\":\"other\",\"cost\":4}", NULL);
    for (int i = 0; i < 20; i++)
        put("RPUSH", "queue:default", "{\"id\":\"a\",\"type\":\"w3\"}", NULL);
    expect_earliest(__LINE__, false);
    put("RPUSH", "queue:default", "{\"id\":\"b\",\"type\":\"w3\",\"cost\":4}", NULL);
    expect_earliest(__LINE__, true);
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
