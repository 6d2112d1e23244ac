/* Batches of workers and producers that die. What weir batch says: transcripts/batch.txt. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/proxy.h"
#include "tests/stage_group.h"

static long long field(const char *batch, const char *name)
{
    char *text = server_ask(&stage.server, "HGET", stage_key(&stage, "batch:%s", batch), name, NULL);
    long long value = atoll(text);

    free(text);
    return value;
}

static void write_jobs(const char *args, int n)
{
    char *text = malloc((size_t)n * 60), *at = text;

    *at = '\0';
    for (int i = 0; i < n; i++)
        at += sprintf(at, "{\"type\":\"t\",\"args\":%s,\"n\":%d}\n", args, i);
    write_text(stage.server.folder, "jobs", text);
    free(text);
}

static void enqueue_jobs(void)
{
    stage_must(&stage, "enqueue --from jobs --batch b --then next");
}

/* Two workers, one of which is killed again and again while it settles: each job counts once, one job
 * follows. */
TEST_WITH(test_killed_workers, stage_flush, NULL)
{
    pid_t steady;

    write_jobs("{\"sleep\":0.002}", 2000);
    enqueue_jobs();
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

    write_jobs("null", 30);
    for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++)
        for (unsigned n = 2; n <= 14; n += 2) {
            pid_t worker;

            stage_flush(NULL);
            enqueue_jobs();
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

    write_jobs("null", 3000);
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
    enqueue_jobs();
    await(stage_stat(&stage, "next", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(field("b", "done"), 3000);
    assert_int_equal(field("b", "total"), 3000);
}

STAGE_TESTS(stage_start, stage_stop)
