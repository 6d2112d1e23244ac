/* Commands as handlers (--exec): how they are throttled and ended. What they get, and their reasons: sessions/exec.txt. */
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/clock_shift.h"
#include "tests/proxy.h"
#include "tests/stage.h"

static void write_script(struct stage *s, const char *name, const char *lines)
{
    char text[1024];

    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", lines);
    write_text(s->server.folder, name, text);
    snprintf(text, sizeof text, "%s/%s", s->server.folder, name);
    assert_int_equal(chmod(text, 0755), 0);
}

/* A worker that runs jobs of type "run" by this script. */
static pid_t start_leased(struct stage *s, const char *lines, const char *lease)
{
    write_script(s, "script", lines);
    return stage_weir(s, "worker", "--exec", "run=./script", "-c", "2", "--lease", lease, NULL);
}

/* With a lease that does not end while a machine stands still. */
static pid_t start_script(struct stage *s, const char *lines)
{
    return start_leased(s, lines, "30s");
}

/* ---- What its end means */

/* Exit 75, and a number as the last line: comes back after so long, as the same attempt. */
STAGE_TEST(throttled_by_exit_code)
{
    char tries[256];
    long long at[3];
    int attempt[3];

    start_script(s, "echo $WEIR_JOB_ATTEMPT $(date +%s%N) >>tries\n"
                    "[ $(wc -l <tries) -gt 2 ] && exit 0\n"
                    "echo come back in; echo 0.3; exit 75");
    stage_push(s, "run", NULL, 0, 1);
    await(stage_stat(s, "run", "done") == 1);
    read_text(s->server.folder, "tries", tries, sizeof tries);
    assert_int_equal(sscanf(tries, "%d %lld %d %lld %d %lld", &attempt[0], &at[0], &attempt[1], &at[1],
                            &attempt[2], &at[2]),
                     6);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(attempt[i], 1);
        if (i > 0)
            assert_in_range(at[i] - at[i - 1], 300 * 1000000LL, 14000 * 1000000LL); /* not of a retry: 15 s */
    }
}

#ifndef __SANITIZE_THREAD__ /* which makes a fork of vfork: the child's errno does not come back */
/* It was there at the start. No attempt is used: it is not the job's fault. */
STAGE_TEST(command_goes_missing)
{
    start_script(s, "exit 0");
    stage_push(s, "run", NULL, 0, 1);
    await(stage_stat(s, "run", "done") == 1);
    assert_int_equal(unlink(textf("%s/script", s->server.folder)), 0);
    stage_push(s, "run", NULL, 1, 1);
    await(stage_stat(s, "run", "back") >= 1);
    assert_int_equal(stage_judge(s, 2).present, 1);
    assert_int_equal(stage_stat(s, "run", "retried"), 0);
}
#endif

/* ---- How it ends */

/* A grandchild that lives on with the pipes open is not waited for. */
STAGE_TEST(grandchild_keeps_the_pipes)
{
    int64_t start_us = clock_mono_us();
    pid_t grandchild;

    start_script(s, "setsid sleep 1000 &\necho $! >pid; echo reason >&2; exit 65");
    stage_push(s, "run", NULL, 0, 1);
    await(stage_stat(s, "run", "dead") == 1);
    assert_in_range(clock_mono_us() - start_us, 0, 60 * SECOND);
    grandchild = await_pid(s->server.folder, "pid");
    assert_true(is_running(grandchild));
    kill(grandchild, SIGKILL);
}

/* A service manager tells the whole group to stop: the command ends by that, and its job uses no attempt. */
STAGE_TEST(term_ends_the_command_too)
{
    static const char *const scripts[] = {"echo $$ >pid0\nexec sleep 1000",
                                          "trap 'exit 143' TERM\necho $$ >pid1\nsleep 1000 & wait"};

    stage_run(s, 0, NULL, 1, 0);
    for (int i = 0; i < 2; i++) {
        pid_t worker = start_script(s, scripts[i]), command;

        command = await_pid(s->server.folder, i == 0 ? "pid0" : "pid1");
        kill(worker, SIGTERM);
        kill(command, SIGTERM);
        assert_int_equal(program_end(worker), 0);
        assert_int_equal(stage_stat(s, "run", "back"), i + 1);
        assert_int_equal(stage_stat(s, "run", "dead"), 0);
    }
}

/* The second signal: commands are ended, their jobs given back with no attempt used. */
STAGE_TEST(second_term_ends_commands)
{
    pid_t worker, command;

    signal(SIGHUP, SIG_DFL); /* under nohup it is ignored, and a worker leaves it so */
    worker = start_script(s, "echo $$ >pid\nexec sleep 1000");
    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    kill(worker, SIGHUP); /* its terminal was closed */
    await_text(s->server.folder, "worker.err", "stopping: 1 jobs run to their end");
    assert_true(is_running(command));
    assert_int_equal(stage_end(worker), 0);
    await(!is_running(command));
    assert_int_equal(stage_judge(s, 1).present, 1);
    assert_int_equal(stage_number(s, "EXISTS", stage_key(s, "workers")), 0);
    assert_int_equal(stage_stat(s, "run", "back"), 1);
    assert_int_equal(stage_stat(s, "run", "retried"), 0);
}

/* The grace is over, and a command that does not go by TERM is killed, with its children. */
STAGE_TEST(grace_is_the_longest_wait)
{
    pid_t worker, command, child;
    int64_t start_us;

    write_script(s, "stay",
                 "trap '' TERM\nsleep 1000 &\necho $! >child; echo $$ >pid\nwhile :; do sleep 0.1; done");
    worker = stage_weir(s, "worker", "--exec", "run=./stay", "--grace", "300ms", NULL);
    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    child = await_pid(s->server.folder, "child");
    start_us = clock_mono_us();
    assert_int_equal(stage_end(worker), 0);
    assert_in_range(clock_mono_us() - start_us, 300 * MS, 20 * SECOND); /* the usual grace: 25 s */
    await(!is_running(command) && !is_running(child));
    assert_int_equal(stage_judge(s, 1).present, 1);
}

#define STAY_THE_FIRST_TIME "mkdir first 2>&- || exit 0\necho $$ >pid\nexec sleep 1000"

/* Killed with no chance to say so: its commands go with it, and the job runs again elsewhere. */
STAGE_TEST(command_ends_with_its_worker)
{
    pid_t worker = start_leased(s, STAY_THE_FIRST_TIME, "1s"), command;

    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    kill(worker, SIGKILL);
    assert_int_equal(program_end(worker), 1000 + SIGKILL);
    await(!is_running(command));
    worker = stage_weir(s, "next", "--exec", "run=./script", "--lease", "1s", NULL);
    await(stage_stat(s, "run", "done") == 1);
}

/* Its lease went to another while it was stopped: the command is told to end, and nothing is settled. */
STAGE_TEST(command_of_a_lost_lease)
{
    pid_t away = start_leased(s, STAY_THE_FIRST_TIME, "1s"), heir, command;

    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    kill(away, SIGSTOP);
    heir = stage_weir(s, "heir", "--exec", "run=./script", "--lease", "1s", NULL);
    await(stage_stat(s, "run", "done") == 1);
    assert_true(is_running(command));
    kill(away, SIGCONT);
    await(!is_running(command));
    stage_await_workers(s, 2);
    await_text(s->server.folder, "worker.err", "1 jobs that run here are ended");
    assert_int_equal(stage_end(away), 0);
    assert_int_equal(stage_end(heir), 0);
    assert_int_equal(stage_stat(s, "run", "done"), 1);
    assert_int_equal(stage_judge(s, 0).left, 0);
}

/* A worker that is cut off while its job is cancelled hears of it when it is back. */
STAGE_TEST(cancelled_while_cut_off)
{
    pid_t worker = start_script(s, "echo $$ >pid.new; mv pid.new pid; exec sleep 60"), command;

    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    kill(worker, SIGSTOP);
    stage_do(s, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    assert_int_equal(weir_cancel(s->client, "j0"), 0);
    kill(worker, SIGCONT);
    await(stage_stat(s, "run", "cancelled") == 1);
    await(!is_running(command));
    await_log(s->server.folder, "run j0: cancelled: asked to end");
}

/* ---- Time, and being told */

/* TERM to the whole group, and KILL to what stays. */
STAGE_TEST(over_its_time)
{
    pid_t command, child;

    write_script(s, "stay",
                 "trap '' TERM\nsleep 1000 &\necho $! >child; echo $$ >pid\necho the last words >&2\n"
                 "while :; do sleep 0.1; done");
    stage_weir(s, "worker", "--exec", "run=./stay", "--timeout", "run=400ms", "--kill-after", "300ms",
               "--backoff", "run=100s..1h", NULL);
    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    child = await_pid(s->server.folder, "child");
    await(stage_stat(s, "run", "retried") == 1);
    assert_false(is_running(command));
    await(!is_running(child));
    await_log(s->server.folder, "run j0: over its time of 0.4 s: asked to end");
    await_text(s->server.folder, "worker.err", "over its time of 0.4 s: killed by signal 9: the last words");
}

STAGE_TEST(cancelled)
{
    pid_t command, child;

    start_script(s, "sleep 1000 &\necho $! >child; echo $$ >pid\nwait");
    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    child = await_pid(s->server.folder, "child");
    assert_int_equal(weir_cancel(s->client, "j0"), 0);
    await(stage_stat(s, "run", "cancelled") == 1);
    await(!is_running(command) && !is_running(child));
    assert_int_equal(stage_stat(s, "run", "retried"), 0);
    assert_int_equal(stage_judge(s, 0).left, 0);
}

/* Silence for longer than the lease: the command is ended before anybody else can have finished with the job,
 * and nothing of it is settled. The worker goes on when it is back, and its trace says when the lease was
 * over. */
STAGE_TEST(ended_with_the_lease)
{
    struct proxy *p = proxy_start(&s->server);
    pid_t worker, command;

    stage_rate(s, "run", "concurrency=1");
    write_script(s, "script", "mkdir first 2>&- || exit 0\ntrap '' TERM\necho $$ >pid\nsleep 1000");
    worker = stage_weir(s, "worker", "--redis", textf("%s", proxy_url(p)), "--exec", "run=./script",
                        "--lease", "1s", "--kill-after", "200ms", "--trace", "trace", NULL);
    stage_push(s, "run", NULL, 0, 1);
    command = await_pid(s->server.folder, "pid");
    proxy_blackhole(p, true);
    await(!is_running(command));
    await_text(s->server.folder, "trace", ",\"ahead\":0,\"type\":\"run\"");
    await_text(s->server.folder, "trace", "\n{\"lapsed\":");
    await_text(s->server.folder, "worker.err", "silent for longer than the lease of 1 s: 1 jobs");
    proxy_blackhole(p, false);
    await(stage_stat(s, "run", "done") == 1);
    assert_int_equal(stage_stat(s, "run", "retried"), 0);
    assert_int_equal(stage_judge(s, 0).left, 0);
    assert_int_equal(stage_end(worker), 0);
    proxy_stop(p);
}

static double due_in_days(struct stage *s, const char *id)
{
    char *text =
        server_ask(&s->server, "EVAL",
                   "for _, r in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
                   "if r:find(ARGV[1], 1, true) then return redis.call('ZSCORE', KEYS[1], r) end end",
                   "1", stage_key(s, "later"), id, NULL);
    double due_us = atof(text);

    free(text);
    return (due_us - (double)clock_wall_us()) / 86400e6;
}

/* n^4 seconds, and never more than ten years. */
STAGE_TEST(after_hundreds_of_attempts)
{
    static const struct {
        int attempts;
        double days;
    } cases[] = {{50, 72}, {300, 3650}, {400, 3650}, {1744, 3650}, {999998, 3650}};
    enum { CASES = COUNT(cases) };

    start_script(s, "exit 1");
    stage_do(s, "HSET", stage_key(s, "about"), "secret", "ours");
    for (int i = 0; i < CASES; i++) {
        stage_push_text(s, textf("@%d,0,0,sours;{\"id\":\"j%d\",\"type\":\"run\",\"max_attempts\":1000000}",
                                 cases[i].attempts, i));
    }
    await(stage_stat(s, "run", "retried") == CASES);
    for (int i = 0; i < CASES; i++) {
        double days;
        const char *id = textf("\"j%d\"", i);

        days = due_in_days(s, id);
        if (days < cases[i].days - 1 || days > cases[i].days + 1)
            fail_msg("after %d attempts: again in %g days", cases[i].attempts, days);
    }
}

static long refusals(struct stage *s)
{
    char *info = server_ask(&s->server, "INFO", "commandstats", NULL), *at = strstr(info, "cmdstat_fcall:");
    long n = at && (at = strstr(at, "failed_calls=")) ? atol(strchr(at, '=') + 1) : 0;

    free(info);
    return n;
}

/* When it comes again is decided once, and told once, however often Redis refuses to hear it. */
STAGE_TEST(decided_once)
{
    char err[8192], *told;

    start_script(s, "exit 1");
    stage_do(s, "SET", stage_key(s, "later"), "mine");
    stage_push(s, "run", NULL, 0, 1);
    await(refusals(s) >= 4);
    stage_do(s, "DEL", stage_key(s, "later"));
    await(stage_stat(s, "run", "retried") == 1);
    assert_true(read_log(s->server.folder, err, sizeof err));
    told = strstr(err, "run j0: failed, again in ");
    assert_non_null(told);
    assert_null(strstr(strchr(told, '\n'), "failed"));
    assert_float_equal(atof(strstr(told, " in ") + 4), due_in_days(s, "\"j0\"") * 86400, 5);
}

/* A job that Redis refuses to settle holds back none of those that are settled with it. */
STAGE_TEST(one_refused_among_others)
{
    stage_do(s, "SET", stage_key(s, "later"), "mine");
    stage_push(s, "run", NULL, 0, 5);
    write_script(s, "script", "case $WEIR_JOB_ID in\nj0) exit 1;;\nj1) exit 65;;\nesac\nsleep 0.2");
    stage_weir(s, "worker", "--exec", "run=./script", "-c", "5", "--lease", "1s", NULL);
    await(stage_stat(s, "run", "done") == 3 && stage_stat(s, "run", "dead") == 1);
    assert_int_equal(stage_stat(s, "run", "retried"), 0);
    stage_do(s, "DEL", stage_key(s, "later"));
    await(stage_stat(s, "run", "retried") == 1);
    assert_int_equal(stage_judge(s, 5).present, 1);
}

/* A line for each done job where that is wanted, and one a minute of all that have ended, whichever handler has run them. */
STAGE_TEST(what_is_done_is_logged)
{
    const char *clock = textf("%s/clock", s->server.folder);
    char log[65536];
    int64_t begin_us;
    pid_t worker;

    write_text(s->server.folder, "w.conf",
               "[handler ru*]\nexec = true\n[handler other,bad,idle]\nexec = false\n");
    begin_us = 60 * SECOND -
               clock_wall_us() % (60 * SECOND); /* a minute of the worker's clock begins with the test */
    clock_shift_set(clock, begin_us);
    clock_shift_enter(clock);
    signal(SIGHUP, SIG_DFL);
    stage_push(s, "run", NULL, 0, 3);
    stage_push(s, "other", NULL, 3, 1);
    worker = stage_weir(s, "worker", "--config", "w.conf", "--log-done", NULL);
    clock_shift_leave();
    stage_run(s, 4, NULL, 1, 0);
    await(stage_stat(s, "run", "done") == 4 && stage_stat(s, "other", "retried") == 1);
    usleep(300000); /* some ticks of the worker, none of which ends its first minute */
    assert_true(read_log(s->server.folder, log, sizeof log));
    assert_null(strstr(log, "in the last minute"));
    await_log(s->server.folder, "run j2: done in ");
    kill(worker, SIGHUP);
    await_log(s->server.folder, "read anew");
    clock_shift_set(clock, begin_us + 61 * SECOND);
    await_log(s->server.folder, "in the last minute, 2 types: other 1 retried; run 4 done");
    clock_shift_set(clock, begin_us + 122 * SECOND);
    stage_push(s, "run", NULL, 5, 1);
    await(stage_stat(s, "run", "done") == 5);
    clock_shift_set(clock, begin_us + 183 * SECOND);
    await_log(s->server.folder, "in the last minute, 1 type: run 1 done");
}

/* ---- Process 1 */

/* Of the one child of a process that is there for it. */
static pid_t child_of(pid_t parent)
{
    char text[64] = "";

    await(read_text("/proc", textf("%d/task/%d/children", (int)parent, (int)parent), text, sizeof text) &&
          atoi(text) > 0);
    return atoi(text);
}

static bool are_there_namespaces(void)
{
    struct outcome o;

    run_in(&o, NULL, "/usr/bin/unshare", "-r", "-p", "-f", "/bin/true", NULL);
    return o.code == 0;
}

/* ---- Nobody reads its log */

static pid_t start_unread(struct stage *s)
{
    write_script(s, "script",
                 "[ $WEIR_JOB_ID = j0 ] && exec sleep 1000\n"
                 "printf %0900d 0 >&2\nexit 1");
    return stage_keeps(
        s, program_start(s->server.folder, "worker",
                         (const char *[]){"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>unread", built("weir"),
                                          "worker", "--redis", s->server.url, "--exec", "run=./script", "-c",
                                          "3", "--lease", "1s", "--grace", "0s", NULL}));
}

/* It goes on, hears TERM, and its last words do not keep it. */
STAGE_TEST(standard_error_that_nobody_reads)
{
    enum { JOBS = 150 }; /* of 1 KB each: a pipe has room for 64 of them */
    pid_t worker;
    int unread;
    const char *path = textf("%s/unread", s->server.folder);

    assert_int_equal(mkfifo(path, 0600), 0);
    unread = open(path, O_RDWR | O_CLOEXEC);
    worker = start_unread(s);
    stage_push(s, "run", NULL, 0, JOBS + 1);
    await(stage_stat(s, "run", "retried") == JOBS);
    server_kill(&s->server);
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 69); /* j0 could not be given back */
    server_restart(&s->server);
    close(unread);
}

/* Orphans are waited for, the codes of commands come through, TERM stops, and the exit code is the worker's.
 */
STAGE_TEST(process_one)
{
    const char *const words[] = {"/usr/bin/unshare", "-r",           "-p",      "-f",
                                 built("weir"),      "worker",       "--redis", s->server.url,
                                 "--exec",           "run=./script", NULL};
    pid_t outside, init;
    char count[64];

    if (!are_there_namespaces()) {
        print_message("no namespaces here: not looked at\n");
        return;
    }
    write_script(s, "script", "(setsid sh -c 'sleep 0.05; echo >>orphans' &)\nexit 3");
    outside = program_start(s->server.folder, "worker", words);
    stage_push(s, "run", NULL, 0, 20);
    await(stage_stat(s, "run", "retried") == 20);
    init = child_of(outside);
    await(read_text(s->server.folder, "orphans", count, sizeof count) && strlen(count) == 20);
    /* The worker is its only child. */
    snprintf(count, sizeof count, "%d/task/%d/children", (int)init, (int)init);
    {
        char children[256];

        await(read_text("/proc", count, children, sizeof children) &&
              strchr(children, ' ') == strrchr(children, ' '));
    }
    kill(init, SIGTERM);
    assert_int_equal(program_end(outside), 0);
    await_text(s->server.folder, "worker.err", "stopping: 0 jobs run");
}

/* It hears of its child's end all the same. */
STAGE_TEST(process_one_with_ignored_children)
{
    const char *const words[] = {
        "/usr/bin/unshare", "-r",     "-p",      "-f",          "/usr/bin/env", "--ignore-signal=CHLD",
        built("weir"),      "worker", "--redis", s->server.url, "--exec",       "run=/bin/true",
        "--drain",          NULL};

    if (!are_there_namespaces()) {
        print_message("no namespaces here: not looked at\n");
        return;
    }
    stage_push(s, "run", NULL, 0, 1);
    assert_int_equal(program_end(program_start(s->server.folder, "worker", words)), 0);
    assert_int_equal(stage_stat(s, "run", "done"), 1);
}

TESTS(NULL, NULL)
