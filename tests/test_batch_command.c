/* weir batch from outside, with real workers and producers, which also die. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage_group.h"

static struct outcome o;

#define weir(...)                                                                                            \
    run_in(&o, stage.server.folder, built("weir"), __VA_ARGS__, "--redis", stage.server.url, NULL)

#define expect_says(text, part)                                                                              \
    do {                                                                                                     \
        if (!strstr(text, part))                                                                             \
            fail_msg("'%s' should say '%s'", text, part);                                                    \
    } while (0)

#define succeed(...)                                                                                         \
    do {                                                                                                     \
        weir(__VA_ARGS__);                                                                                   \
        if (o.code != 0)                                                                                     \
            fail_msg("%d: %s", o.code, o.err);                                                               \
    } while (0)

static long long field(const char *batch, const char *name)
{
    char *text = server_ask(&stage.server, "HGET", stage_key(&stage, "batch:%s", batch), name, NULL);
    long long value = atoll(text);

    free(text);
    return value;
}

static void write_jobs_with(const char *name, const char *args, int n)
{
    char *text = malloc((size_t)n * 60), *at = text;

    *at = '\0';
    for (int i = 0; i < n; i++)
        at += sprintf(at, "{\"type\":\"t\",\"args\":%s,\"n\":%d}\n", args, i);
    write_text(stage.server.folder, name, text);
    free(text);
}

static void write_jobs(const char *name, int n)
{
    write_jobs_with(name, "null", n);
}

TEST_WITH(test_command, stage_flush, NULL)
{
    succeed("batch", "list");
    assert_string_equal(o.out, "");
    expect_says(o.err, "no batches");
    succeed("batch", "list", "--json");
    assert_string_equal(o.out, "");
    write_jobs("jobs", 1000);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next", "--queue", "q");
    succeed("batch", "list");
    expect_says(o.out, "b      running  1,000  1,000     0");
    succeed("batch", "show", "b");
    expect_says(o.out, "state:      running\ntotal:      1,000\nnot begun:  1,000\nrunning:    0\n");
    expect_says(o.out, "waits for:  a worker that takes t: none does; start one\n");
    expect_says(o.out, "then:       next in queue q, when all have ended\n");
    succeed("batch", "show", "b", "--json");
    expect_says(
        o.out,
        "{\"name\":\"b\",\"state\":\"running\",\"total\":1000,\"left\":1000,\"waiting\":1000,"
        "\"running\":0,\"aside\":0,\"done\":0,\"failed\":0,\"dead\":0,\"cancelled\":0,\"rate\":0.0,"
        "\"waits_for\":{\"type\":\"t\"},\"finish_at\":null,\"at_the_earliest\":false,\"created_at\":17");
    expect_says(o.out,
                "\"ended_at\":null,\"then\":{\"type\":\"next\",\"queue\":\"q\",\"enqueued_at\":null}}\n");

    succeed("worker", "-q", "q", "--exec", "next=/bin/cat", "--exec", "t=/bin/true", "--drain", "--drain-max",
            "50s", "-c", "4");
    succeed("batch", "show", "b", "--watch");
    expect_says(o.out, "state:      ended\ntotal:      1,000\nnot begun:  0\n");
    expect_says(o.out, "done:       1,000\n");
    expect_says(o.out, "then:       next in queue q, enqueued ");
    assert_int_equal(stage_stat(&stage, "next", "done"), 1);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next", "--queue", "q");
    expect_says(o.out, "0 jobs in ");
    expect_says(o.out, "; 1,000 lines sent by an earlier run, so all was there\n");
    weir("enqueue", "--from", "jobs", "--batch", "b", "--then", "other");
    assert_int_equal(o.code, 65);
    expect_says(o.err, "batch b was sealed for --then next in queue q: it stays so; leave --then out");
    weir("enqueue", "t", "--batch", "b");
    assert_int_equal(o.code, 65);
    expect_says(o.err, "batch b is sealed");
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 1);
}

TEST_WITH(test_command_single_jobs, stage_flush, NULL)
{
    for (int i = 0; i < 3; i++)
        succeed("enqueue", "t", "--batch", "b");
    succeed("batch", "show", "b");
    expect_says(o.out, "state:      running; not sealed, so more jobs may come\ntotal:      3\n");
    succeed("batch", "seal", "b", "--then", "next");
    assert_string_equal(o.out, "batch b sealed; 3 of 3 jobs not ended\n");
    succeed("batch", "seal", "b", "--json");
    assert_string_equal(o.out, "{\"name\":\"b\",\"total\":3,\"left\":3}\n");
    succeed("worker", "--exec", "next=/bin/true", "--exec", "t=/bin/false", "--drain", "--drain-max", "1s");
}

/* Paused with a real worker: it takes nothing more of it, and all after. */
TEST_WITH(test_command_pause, stage_flush, NULL)
{
    write_jobs("jobs", 1200);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    succeed("batch", "pause", "b");
    expect_says(o.out, "batch b paused; jobs that run go on, the others wait for weir batch resume b\n");
    succeed("batch", "pause", "b");
    expect_says(o.out, "was paused already");
    stage_actor(&stage, "w", "types=t,next", "executors=4", NULL);
    await(stage_number(&stage, "LLEN", stage_key(&stage, "aside:b")) == 1200);
    succeed("batch", "show", "b");
    expect_says(o.out, "state:      paused\ntotal:      1,200\nnot begun:  1,200, 1,200 of them set aside\n");
    succeed("enqueue", "t", "7");
    await(stage_stat(&stage, "t", "done") == 1);
    succeed("batch", "resume", "b");
    assert_string_equal(o.out, "batch b resumed; 1,200 jobs put back in their queues\n");
    await(field("b", "done") == 1200);
    await(stage_stat(&stage, "next", "done") == 1);
    succeed("batch", "resume", "b");
    assert_string_equal(o.out, "batch b was not paused\n");
    succeed("batch", "pause", "b");
    assert_string_equal(o.out, "batch b has ended; nothing was changed\n");
}

TEST_WITH(test_command_cancel, stage_flush, NULL)
{
    pid_t worker;

    write_jobs("jobs", 1200);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    succeed("batch", "cancel", "b", "--dry-run");
    assert_string_equal(o.out,
                        "batch b: 1,200 jobs; those that run would go on, the others would be dropped\n");
    assert_int_equal(field("b", "sealed") > 0, 1);
    assert_int_equal(stage_number(&stage, "EXISTS", stage_key(&stage, "halted")), 0);
    succeed("batch", "cancel", "b", "--yes");
    expect_says(o.out, "batch b cancelled: 1,200 jobs; those that run go on");
    succeed("batch", "cancel", "b");
    assert_string_equal(o.out, "batch b was cancelled before; nothing was changed\n");
    weir("batch", "resume", "b");
    assert_int_equal(o.code, 65);
    expect_says(o.err, "was cancelled, which cannot be undone");
    worker = stage_actor(&stage, "w", "types=t,next", "executors=4", NULL);
    succeed("batch", "show", "b", "--watch");
    expect_says(o.out, "state:      cancelled\ntotal:      1,200\nnot begun:  0\n");
    expect_says(o.out, "cancelled:  1,200\n");
    expect_says(o.out, "then:       next in queue default, not enqueued\n");
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 0);
    assert_int_equal(stage_stat(&stage, "t", "done"), 0);
}

/* "weir batch" with these words on a terminal on which answer is typed; its exit code. text: what it shows.
 */
static int on_terminal(const char *answer, char *text, size_t size, const char *word, const char *name,
                       const char *flag)
{
    const char *words[] = {built("weir"), "batch", "--redis", stage.server.url, word, name, flag, NULL};

    return program_on_terminal(words, answer, text, size);
}

TEST_WITH(test_command_on_a_terminal, stage_flush, NULL)
{
    char text[8192];
    pid_t worker;

    write_jobs("jobs", 400);
    succeed("enqueue", "--from", "jobs", "--batch", "b");
    assert_int_equal(on_terminal("n\n", text, sizeof text, "cancel", "b", NULL), 75);
    expect_says(text, "cancel batch b, with 400 jobs that have not ended? [y/N]");
    expect_says(text, "weir: batch cancel: nothing was changed");
    assert_int_equal(field("b", "cancel"), 0);
    assert_int_equal(on_terminal("", text, sizeof text, "cancel", "b", "--dry-run"), 0);
    assert_null(strstr(text, "[y/N]"));
    worker = stage_actor(&stage, "w", "types=t", "executors=1", NULL);
    assert_int_equal(on_terminal("", text, sizeof text, "show", "b", "--watch"), 0);
    expect_says(text, "state:      ended\r\n");
    assert_int_equal(stage_end(worker), 0);
    succeed("enqueue", "t", "--batch", "c");
    assert_int_equal(on_terminal("y\n", text, sizeof text, "cancel", "c", NULL), 0);
    expect_says(text, "batch c cancelled: 1 job;");
}

/* The bar goes on until the last job has ended. */
TEST_WITH(test_command_watch, stage_flush, NULL)
{
    char text[8192], *args = "{\"wait\":\"go\"}";
    pid_t opener;
    long drawn;

    for (int i = 0; i < 4; i++)
        succeed("enqueue", "t", i < 3 ? "null" : args, "--batch", "b");
    succeed("batch", "seal", "b");
    stage_actor(&stage, "w", "types=t", "executors=1", NULL);
    await(field("b", "done") == 3);
    drawn = server_calls(&stage.server, "fcall_ro");
    opener = fork();
    if (opener == 0) {
        const char *path = textf("%s/go", stage.server.folder);

        for (int left = 3000; left > 0 && server_calls(&stage.server, "fcall_ro") < drawn + 2;
             left--) /* then the first answer is shown */
            clock_sleep_until(clock_mono_us() + 20000);
        execl("/usr/bin/touch", "touch", path, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(on_terminal("", text, sizeof text, "show", "b", "--watch"), 0);
    expect_says(text, "]  75%  ");
    expect_says(text, " left  3 of 4 ended  ");
    expect_says(text, "\r\033[Kbatch:      b\r\nstate:      ended\r\n");
    assert_int_equal(program_end(opener), 0);
}

/* Two workers, one of which is killed again and again while it settles: each job counts once, one job
 * follows. */
TEST_WITH(test_killed_workers, stage_flush, NULL)
{
    pid_t steady;

    write_jobs_with("jobs", "{\"sleep\":0.002}", 2000);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    steady = stage_actor(&stage, "steady", "types=t,next", "executors=2", "lease=5", NULL);
    for (int i = 0; i < 4 && field("b", "done") < 1500; i++) {
        pid_t victim = stage_actor(&stage, "victim", "types=t", "executors=2", "lease=1", NULL);
        long long before;

        await(stage_number(&stage, "ZCARD", stage_key(&stage, "workers")) == 2);
        before = field("b", "done");
        await(field("b", "done") > before || before == 2000);
        kill(victim, SIGKILL);
        assert_int_equal(program_end(victim), 1000 + SIGKILL);
        await(stage_number(&stage, "ZCARD", stage_key(&stage, "workers")) == 1);
    }
    await(field("b", "done") + field("b", "dead") == 2000);
    assert_int_equal(field("b", "dead"), 0);
    await(stage_stat(&stage, "next", "done") == 1);
    assert_int_equal(stage_end(steady), 0);
    assert_int_equal(field("b", "done"), 2000);
    assert_int_equal(field("b", "total"), 2000);
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 1);
}

/* The worker's connection is cut at each message in turn, so that it does not know what Redis has counted. */
TEST_WITH(test_cut_workers, stage_flush, NULL)
{
    struct proxy *proxy = proxy_start(&stage.server);
    const char *url = textf("url=%s", proxy_url(proxy));

    write_jobs("jobs", 30);
    for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++)
        for (unsigned n = 2; n <= 14; n += 2) {
            pid_t worker;

            stage_flush(NULL);
            succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
            proxy_cut_before(proxy, side, n);
            worker = stage_actor(&stage, "w", "types=t,next", "executors=3", "lease=1", url, NULL);
            await(stage_stat(&stage, "next", "done") == 1);
            assert_int_equal(field("b", "done"), 30);
            assert_int_equal(stage_end(worker), 0);
            assert_int_equal(stage_stat(&stage, "next", "enqueued"), 1);
            proxy_cut_before(proxy, side, 0);
        }
    proxy_stop(proxy);
}

/* Copies the first n lines of the file of jobs into a pipe. */
static void feed(FILE *pipe, int n)
{
    char line[200];
    FILE *jobs;

    jobs = fopen(textf("%s/jobs", stage.server.folder), "r");
    while (n-- > 0 && fgets(line, sizeof line, jobs))
        fputs(line, pipe);
    fclose(jobs);
    fflush(pipe);
}

/* The producer is killed within its bulk: the batch is not sealed, does not end, and a second run completes
 * it. */
TEST_WITH(test_killed_producer, stage_flush, NULL)
{
    const char *const words[] = {built("weir"), "enqueue", "--redis", stage.server.url, "--from", "pipe",
                                 "--batch",     "b",       "--then",  "next",           NULL};
    pid_t producer, worker;
    char path[300];
    FILE *pipe;

    write_jobs("jobs", 3000);
    snprintf(path, sizeof path, "%s/pipe", stage.server.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    pipe = fopen(path, "r+");
    worker = stage_actor(&stage, "w", "types=t,next", "executors=4", NULL);
    producer = program_start(stage.server.folder, "producer", words);
    feed(pipe, 2000);
    await(field("b", "done") == 2000);
    kill(producer, SIGKILL);
    assert_int_equal(program_end(producer), 1000 + SIGKILL);
    fclose(pipe);
    assert_int_equal(field("b", "total"), 2000);
    assert_int_equal(field("b", "sealed"), 0);
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 0);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    expect_says(o.out, "1,000 jobs in ");
    await(stage_stat(&stage, "next", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(field("b", "done"), 3000);
    assert_int_equal(field("b", "total"), 3000);
}

STAGE_TESTS(stage_start, stage_stop)
