/* The examples from outside. That the whole demo comes out right is checked by the demo itself (make demo):
 * here, that it fails and ends as it should. */
#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/program.h"
#include "tests/server.h"
#include "tests/test.h"

static void make_week(const char *folder, const char *name, const char *seed)
{
    struct outcome o;

    run_in(&o, folder, built("examples/weekly_summary"), name, "--businesses", "3", "--seed", seed, NULL);
    assert_int_equal(o.code, 0);
}

TEST(test_weekly_summary)
{
    char folder[64];
    struct outcome o;

    folder_make(folder);
    make_week(folder, "a", "7");
    make_week(folder, "b", "7");
    make_week(folder, "c", "8");
    run_in(&o, folder, "/usr/bin/diff", "-r", "a", "b", NULL);
    assert_int_equal(o.code, 0);
    run_in(&o, folder, "/usr/bin/diff", "-rq", "a", "c", NULL);
    assert_int_equal(o.code, 1);
    run_in(&o, folder, built("examples/weekly_summary"), "a", "--week", "2026-W60", NULL);
    assert_int_equal(o.code, 64);
    run_in(&o, folder, built("examples/weekly_summary"), "a/b/c", NULL);
    assert_int_equal(o.code, 70);
    folder_remove(folder);
}

static const char week_of_one[] =
    "{\"at\":\"2026-11-16T09:00:00Z\",\"merchant\":\"Cobalt Cloud\",\"amount_cents\":123456789}\n"
    "{\"at\":\"2026-11-17T09:00:00Z\",\"merchant\":\"North Rail\",\"amount_cents\":5000}\n"
    "{\"at\":\"2026-11-17T10:00:00Z\",\"merchant\":\"North Rail\",\"amount_cents\":5001}\n"
    "{\"at\":\"2026-11-18T09:00:00Z\",\"merchant\":\"Cobalt Cloud\",\"amount_cents\":-100}\n";

static const char jobs_of_one[] =
    "{\"type\":\"weekly_summary\",\"args\":{\"business_id\":\"b000000\",\"name\":\"Dune "
    "Legal\",\"week\":\"2026-W47\","
    "\"last_week\":{\"spent_cents\":100000000,\"refunded_cents\":0,\"transactions\":9}}}\n"
    "{\"type\":\"weekly_summary\",\"args\":{\"business_id\":\"../x\",\"name\":\"x\",\"week\":\"2026-W47\","
    "\"last_week\":{\"spent_cents\":1,\"refunded_cents\":0,\"transactions\":9}}}\n"
    "{\"type\":\"weekly_summary\"}\n"
    "{\"type\":\"receipt\",\"id\":\"r1\",\"args\":{\"business_id\":\"b000000\",\"amount_cents\":5000}}\n"
    "{\"type\":\"receipt\",\"args\":[]}\n";

static const char totals_of_one[] = "Spent                1,234,667.90\n"
                                    "Refunded                     1.00\n"
                                    "Total                1,234,666.90\n"
                                    "Transactions                    4\n"
                                    "Last week            1,000,000.00\n"
                                    "Change                     +23.5%\n"
                                    "\nTop merchants\n"
                                    "1. Cobalt Cloud             1,234,566.89  in 1\n"
                                    "2. North Rail                     100.01  in 2\n";

TEST(test_handlers)
{
    char folder[64], text[4096];
    struct server s;
    struct outcome o;

    server_start(&s, false);
    folder_make(folder);
    make_week(folder, ".", "1");
    write_text(folder, "transactions/b000000.ndjson", week_of_one);
    write_text(folder, "jobs.ndjson", jobs_of_one);
    run_in(&o, folder, built("weir"), "enqueue", "--from", "jobs.ndjson", "--redis", s.url, NULL);
    assert_int_equal(o.code, 0);
    run_in(&o, folder, built("weir"), "worker", "--load", built("examples/weekly_summary_handler.so"),
           "--drain", "--redis", s.url, NULL);
    assert_int_equal(o.code, 0);
    assert_true(read_text(folder, "mail/b000000.eml", text, sizeof text));
    if (!strstr(text, totals_of_one))
        fail_msg("mail: %s", text);
    assert_non_null(strstr(text, "\nSubject: Your week 2026-W47: 1,234,667.90 spent\n"));
    assert_true(read_text(folder, "receipts.ndjson", text, sizeof text));
    assert_string_equal(text, "{\"id\":\"r1\",\"business_id\":\"b000000\",\"amount_cents\":5000}\n");
    assert_int_equal(server_number(&s, "ZCARD", "weir:{0}:dead", NULL), 3);
    folder_remove(folder);
    server_stop(&s);
}

TEST(test_own_worker)
{
    struct server s;
    struct outcome o;

    server_start(&s, false);
    run_in(&o, NULL, built("examples/own_worker"), s.url, NULL);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "hello, number 99\n"));
    assert_non_null(strstr(o.out, "\n100 greeted\n"));
    server_stop(&s);
    run_in(&o, NULL, built("examples/own_worker"), "/nonexistent/redis.sock", NULL);
    assert_int_equal(o.code, 69);
}

static int count_demo_folders(const char *folder)
{
    struct dirent *entry;
    DIR *dir = opendir(folder);
    int count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        count += strncmp(entry->d_name, "weir-demo.", 10) == 0;
    closedir(dir);
    return count;
}

TEST(test_demo_interrupted)
{
    char folder[64];
    pid_t pid;

    folder_make(folder);
    setenv("TMPDIR", folder, 1);
    pid = program_start(folder, "demo", (const char *[]){built("../examples/demo.sh"), "--rate", "10", NULL});
    await_text(folder, "demo.out", "and meanwhile");
    assert_int_equal(count_demo_folders(folder), 1);
    kill(pid, SIGINT);
    assert_int_equal(program_end(pid), 130);
    assert_int_equal(count_demo_folders(folder), 0);
    await_text(folder, "demo.err", "demo: interrupted\n");
    unsetenv("TMPDIR");
    folder_remove(folder);
}

TEST(test_demo_fails)
{
    char folder[64], path[4096], *old = getenv("PATH");
    struct outcome o;

    folder_make(folder);
    write_text(folder, "redis-server", "#!/bin/sh\nexit 1\n");
    assert_int_equal(chmod(textf("%s/redis-server", folder), 0700), 0);
    snprintf(path, sizeof path, "%s:%s", folder, old);
    old = strdup(old);
    setenv("TMPDIR", folder, 1);
    setenv("PATH", path, 1);
    run_in(&o, folder, built("../examples/demo.sh"), "--businesses", "10", NULL);
    setenv("PATH", old, 1);
    free(old);
    unsetenv("TMPDIR");
    assert_int_equal(o.code, 1);
    assert_non_null(strstr(o.err, "demo: weir dev: no Redis; see "));
    assert_int_equal(count_demo_folders(folder), 1); /* kept, to look into */
    folder_remove(folder);
    run_in(&o, NULL, built("../examples/demo.sh"), "--businesses", "0", NULL);
    assert_int_equal(o.code, 64);
}

int main(void)
{

    unsetenv("REDIS_URL");
    unsetenv("WEIR_NAMESPACE");
    setenv("BUILD", built(""), 1);
    return tests_run(NULL, NULL);
}
