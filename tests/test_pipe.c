/* Children that stay (--pipe): how they die and end, and what becomes of the jobs that were in them. What they get, and what their answers
 * mean: sessions/pipe.txt. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"

/* tests/handlers/child.py does with a job what its args say. */
static void put_child(struct stage *s, const char *name)
{
    const char *path = textf("%s/%s", s->server.folder, name);
    char source[512];

    unlink(path);
    assert_int_equal(symlink(textf("%s/tests/handlers/child.py", getcwd(source, sizeof source)), path), 0);
}

static int open_stage(void **state)
{
    stage_setup(state);
    put_child(*state, "child.py");
    return 0;
}

#define PIPE_TEST(name) STAGE_TEST_WITH(name, open_stage, stage_teardown)

/* One that TERM does not end. */
static void put_deaf_child(struct stage *s)
{
    write_text(s->server.folder, "deaf.py",
               "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
               "exec(open('child.py').read())\n");
}

/* A worker whose jobs of type "run" go to such children. */
static pid_t start_worker(struct stage *s, const char *executors, const char *in_flight)
{
    return stage_weir(s, "worker", "--pipe", "run=python3 child.py", "-c", executors, "--in-flight",
                      in_flight, "--kill-after", "500ms", NULL);
}

static void push(struct stage *s, int number, const char *args)
{
    stage_run(s, number, args, 0, 0);
}

static void assert_told(struct stage *s, const char *text)
{
    await_log(s->server.folder, text);
}

static bool was_told(struct stage *s, const char *text)
{
    char log[65536];

    return read_log(s->server.folder, log, sizeof log) && strstr(log, text);
}

PIPE_TEST(a_job_larger_than_a_pipe)
{
    char *args = malloc(900001);

    start_worker(s, "8", "8");
    memset(args, '7', 900000);
    memcpy(args, "{\"x\":\"", 6);
    memcpy(args + 899998, "\"}", 3);
    for (int i = 0; i < 8; i++)
        push(s, i, args);
    free(args);
    await(stage_stat(s, "run", "done") == 8);
    assert_int_equal(stage_lines(s, "pids"), 1);
}

/* A result is kept byte for byte where the job is done and its type is kept; where it is not, the log says so once. */
PIPE_TEST(a_result)
{
    char log[65536], open[601] = "", closed[601] = "";

    memset(open, '[', sizeof open - 1);
    memset(closed, ']', sizeof closed - 1);
    stage_weir(s, "worker", "--pipe", "run,other=python3 child.py", "--keep", "run=1h", NULL);
    push(s, 0, "{\"answer\":{\"status\":\"done\",\"result\":{\"sent\":[1,null]}}}");
    push(s, 1, "{\"say\":\"{\\\"id\\\":\\\"j1\\\",\\\"result\\\":1.10,\\\"status\\\":\\\"done\\\"}\\n\"}");
    push(s, 2, "{\"answer\":{\"status\":\"done\",\"result\":null}}");
    push(s, 3, "{\"answer\":{\"status\":\"dead\",\"result\":1}}");
    push(s, 4,
         "{\"say\":\"{\\\"id\\\":\\\"j4\\\",\\\"result\\\":\\\"\\\\x\\\",\\\"status\\\":\\\"done\\\"}\\n\"}");
    stage_push(s, "other", "{\"answer\":{\"status\":\"done\",\"result\":1}}", 5, 2);
    push(s, 7,
         textf("{\"say\":\"{\\\"id\\\":\\\"j7\\\",\\\"result\\\":%s%s,\\\"status\\\":\\\"done\\\"}\\n\"}",
               open, closed));
    await(stage_stat(s, "run", "done") == 5 && stage_stat(s, "run", "dead") == 1);
    await(stage_stat(s, "other", "done") == 2);
    assert_string_equal(stage_result(s, 0), "{\"sent\": [1, null]}");
    assert_string_equal(stage_result(s, 1), "1.10");
    for (int i = 2; i <= 7; i++)
        assert_string_equal(stage_result(s, i), "-");
    assert_told(s, "wrong result: not JSON: an unknown escape");
    assert_told(s, "wrong result: not JSON: nested too deep at byte 513; it counts as left out");
    assert_told(s, "left a result, and jobs of its type are not kept: --keep other=1d keeps both");
    assert_true(read_log(s->server.folder, log, sizeof log));
    assert_null(strstr(strstr(log, "left a result") + 1, "left a result"));
}

/* ---- Several at a time */

/* Full children first, and no more of them than the executors can fill. */
PIPE_TEST(children_on_demand)
{
    start_worker(s, "5", "2");
    push(s, 0, "{}");
    await(stage_stat(s, "run", "done") == 1);
    assert_int_equal(stage_lines(s, "pids"), 1);
    for (int i = 1; i <= 12; i++)
        push(s, i, "{\"sleep\":0.1}");
    await(stage_stat(s, "run", "done") == 13);
    assert_int_equal(stage_lines(s, "pids"), 3);
}

/* ---- Its end */

/* What it had not read is not counted as interrupted: it never met the child. */
PIPE_TEST(lines_not_taken_are_given_back)
{
    char args[20001];

    memset(args, '7', sizeof args - 1);
    memcpy(args, "{\"exit\":1,\"once\":\"died\",\"x\":\"", 29);
    memcpy(args + sizeof args - 3, "\"}", 3);
    for (int i = 0; i < 20; i++)
        push(s, i, args);
    start_worker(s, "20", "20");
    await(stage_stat(s, "run", "done") == 20);
    assert_int_equal(stage_stat(s, "run", "back"), 20);
    /* Python reads a few of these lines ahead. */
    assert_told(s, "died with ");
    assert_false(was_told(s, "died with 20 jobs"));
}

/* Jobs are not handed to what does not work: none is harmed, and the other types go on. */
PIPE_TEST(a_child_that_does_not_start)
{
    write_text(s->server.folder, "broken.py", "import sys\nsys.exit('no module named sms')\n");
    stage_push(s, "sms", NULL, 0, 30);
    stage_weir(s, "worker", "--pipe", "sms=python3 broken.py", "--exec", "other=/bin/true", "-c", "10",
               "--in-flight", "10", "--unknown", "dead", NULL);
    for (int deaths = 1; deaths <= 3; deaths++)
        await(stage_stat(s, "sms", "back") >= 10 * deaths);
    stage_push(s, "other", NULL, 100, 20);
    await(stage_stat(s, "other", "done") == 20);
    assert_int_equal(stage_stat(s, "sms", "dead"), 0);
    assert_int_equal(stage_judge(s, 30).present, 30);
    assert_true(was_told(s, "died with 0 jobs: exit 1: no module named sms"));
    assert_false(was_told(s, "wait for a worker that has a handler"));
    put_child(s, "broken.py");
    await(stage_stat(s, "sms", "done") == 30);
    assert_int_equal(stage_number(s, "ZCARD", stage_key(s, "dead")), 0);
}

/* While its only type rests, a worker does not look at its queue again and again. */
PIPE_TEST(nobody_peeks_for_a_type_that_rests)
{
    stage_push(s, "sms", NULL, 0, 1);
    stage_weir(s, "worker", "--pipe", "sms,tel=false", "-c", "2", NULL);
    for (int deaths = 1; deaths <= 5; deaths++) {
        await(stage_stat(s, "sms", "back") >= deaths);
        stage_push(s, "sms", NULL, deaths, 1); /* it stays in the queue as long as the rest lasts */
    }
    assert_in_range(stage_peeks(s), 0, 50);
}

#ifndef __SANITIZE_THREAD__ /* which makes a fork of vfork: the child's errno does not come back */
/* A program that is gone: as if it did not start. */
PIPE_TEST(a_program_that_goes_missing)
{
    char path[160];

    snprintf(path, sizeof path, "%s/handler", s->server.folder);
    write_text(s->server.folder, "handler", "#!/bin/sh\nexec python3 child.py\n");
    assert_int_equal(chmod(path, 0755), 0);
    stage_weir(s, "worker", "--pipe", "run=./handler", NULL);
    push(s, 0, "{\"answer\":{\"status\":\"done\"},\"exit\":0}");
    stage_await_workers(s, 1);
    assert_int_equal(unlink(path), 0);
    push(s, 1, "{}");
    assert_told(s, "run : cannot run ./handler: No such file or directory; its jobs are given back");
    write_text(s->server.folder, "handler", "#!/bin/sh\nexec python3 child.py\n");
    assert_int_equal(chmod(path, 0755), 0);
    await(stage_stat(s, "run", "done") == 1);
}
#endif

/* Types that were named together have the same children, and options of their own. */
PIPE_TEST(types_share_their_children)
{
    stage_weir(s, "worker", "--pipe", "run,sms,tel=python3 child.py", "-c", "1", "--timeout", "*=200ms",
               "--timeout", "sms,tel=1m", "--backoff", "*=1m..1m", "--backoff", "run,tel=10ms..10ms", NULL);
    stage_push(s, "sms", "{\"sleep\":0.4}", 0, 1);
    stage_push(s, "tel", "{}", 1, 1);
    await(stage_stat(s, "sms", "done") == 1 && stage_stat(s, "tel", "done") == 1);
    assert_int_equal(stage_lines(s, "pids"), 1);
    stage_run(s, 2, "{\"sleep\":1000}", 1, 0);
    await(stage_stat(s, "run", "dead") == 1);
    stage_push(s, "tel", "{\"exit\":1,\"once\":\"fault\"}", 3, 1);
    await(stage_stat(s, "tel", "done") == 2);
}

/* Both rest while their program is not there, and both go on. */
PIPE_TEST(types_rest_together)
{
    stage_weir(s, "worker", "--pipe", "run,sms=python3 child.py", "-c", "1", NULL);
    push(s, 0, "{\"exit\":1,\"once\":\"fault\"}");
    stage_push(s, "sms", "{}", 1, 1);
    await(stage_stat(s, "run", "done") == 1 && stage_stat(s, "sms", "done") == 1);
    assert_told(s, "run,sms : child ");
}

/* With all that it has started. */
PIPE_TEST(its_group_ends_with_it)
{
    pid_t worker = start_worker(s, "1", "1"), grandchild;

    push(s, 0, "{\"fork\":1,\"exit\":1,\"once\":\"crashed\"}");
    await(stage_stat(s, "run", "done") == 1);
    grandchild = await_pid(s->server.folder, "grandchild");
    assert_int_equal(stage_end(worker), 0);
    await(!is_running(grandchild));
}

PIPE_TEST(standard_error_goes_to_the_log)
{
    char args[8192];

    start_worker(s, "1", "1");
    push(s, 0, "{\"err\":\"one\\ntw\\u001bo\\nthree\"}");
    assert_told(s, "run : one\n");
    assert_told(s, "run : tw\\u001bo\n");
    memset(args, 'x', sizeof args);
    memcpy(args, "{\"err\":\"four", 12);
    memcpy(args + sizeof args - 5, "\\n\"}", 5);
    push(s, 1, args);
    assert_told(s, "run : threefourxxx");
    push(s, 2, "{\"err\":\"five\\n\"}");
    assert_told(s, "run : five\n");
}

/* ---- Time, and stopping */

/* TERM does not help against a child that ignores it; its other job runs again, and ends well. */
PIPE_TEST(a_job_over_its_time)
{
    pid_t child;

    put_deaf_child(s);
    stage_weir(s, "worker", "--pipe", "run=python3 deaf.py", "-c", "2", "--in-flight", "2", "--kill-after",
               "300ms", NULL);
    stage_run(s, 0, "{\"sleep\":1000}", 1, 2);
    child = await_pid(s->server.folder, "sleeping");
    push(s, 1, "{}");
    await(stage_stat(s, "run", "dead") == 1 && stage_stat(s, "run", "done") == 1);
    stage_died(s, 0, "over its time of 2 s: killed by signal 9");
    assert_false(is_running(child));
    assert_int_equal(stage_lines(s, "pids"), 2);
}

/* TERM: the jobs in it end; then it reads the end of its input and ends by itself. */
PIPE_TEST(stopping_lets_it_end)
{
    pid_t worker = start_worker(s, "4", "2");

    for (int i = 0; i < 4; i++)
        push(s, i, "{\"sleep\":0.3}");
    await(stage_lines(s, "sleeping") == 2);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_stat(s, "run", "done"), 4);
    assert_int_equal(stage_lines(s, "ended"), 2);
    assert_false(was_told(s, "died"));
}

/* Over its time before the child has read it. */
PIPE_TEST(a_job_that_was_never_read)
{
    write_text(s->server.folder, "slow.py", "import time\ntime.sleep(1000)\n");
    stage_weir(s, "worker", "--pipe", "run=python3 slow.py", "-c", "2", "--in-flight", "2", NULL);
    stage_run(s, 0, "{}", 1, 0.3);
    await(stage_stat(s, "run", "dead") == 1);
    stage_died(s, 0, "over its time of 0.3 s: killed by signal 15");
}

/* The grace is over: the child is killed, its jobs are where they were. */
PIPE_TEST(stopping_does_not_wait_for_ever)
{
    int64_t start_us;
    pid_t worker, child;

    put_deaf_child(s);
    worker = stage_weir(s, "worker", "--pipe", "run=python3 deaf.py", "-c", "2", "--in-flight", "2",
                        "--grace", "300ms", "--kill-after", "300ms", NULL);
    push(s, 0, "{\"sleep\":1000}");
    push(s, 1, "{}");
    child = await_pid(s->server.folder, "sleeping");
    start_us = clock_mono_us();
    assert_int_equal(stage_end(worker), 0);
    assert_in_range(clock_mono_us() - start_us, 300 * MS, 20 * SECOND); /* the usual grace: 25 s */
    assert_false(is_running(child));
    assert_int_equal(stage_judge(s, 2).present, 2);
    assert_int_equal(stage_stat(s, "run", "retried") + stage_stat(s, "run", "dead"), 0);
}

/* A service manager tells the whole group to stop: the child ends by that, and no job of its was interrupted. */
PIPE_TEST(term_ends_the_child_too)
{
    pid_t worker = start_worker(s, "1", "1"), child;

    push(s, 0, "{\"sleep\":1000}");
    child = await_pid(s->server.folder, "sleeping");
    kill(worker, SIGTERM);
    assert_told(s, "stopping");
    kill(child, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    assert_int_equal(stage_stat(s, "run", "back"), 1);
    assert_false(was_told(s, "interrupted"));
}

PIPE_TEST(children_end_with_their_worker)
{
    pid_t worker = start_worker(s, "1", "1"), child;

    push(s, 0, "{\"sleep\":1000}");
    child = await_pid(s->server.folder, "sleeping");
    kill(worker, SIGKILL);
    assert_int_equal(program_end(worker), 1000 + SIGKILL);
    await(!is_running(child));
}

TESTS(NULL, NULL)
