/* Passwords that are asked for at each connect: from a file, from a command; one that changes; and that none is
 * shown. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/both.h"
#include "tests/stage_group.h"

#define SECRET "open-sesame-17"

static const char *folder(void)
{
    return stage.server.folder;
}

/* The user app with that password, its connections closed. */
static void set_password(const char *password)
{
    char *answer;

    answer = server_ask(&stage.server, "ACL", "SETUSER", "app", "reset", "on", textf(">%s", password), "~*",
                        "&*", "+@all", NULL);
    assert_string_equal(answer, "OK");
    free(answer);
    stage_do(&stage, "CLIENT", "KILL", "USER", "app");
}

/* An executable script of the shell, for --password-command. */
static void write_script(const char *name, const char *lines)
{
    write_text(folder(), name, textf("#!/bin/sh\ncd %s\n%s", folder(), lines));
    assert_int_equal(chmod(textf("%s/%s", folder(), name), 0700), 0);
}

static int set_up(void **state)
{
    stage_start(state);
    set_password(SECRET);
    write_text(folder(), "password", SECRET "\n");
    write_script("ask", "echo " SECRET "\n");
    write_script("fails", "echo " SECRET "; echo no network here >&2; exit 3\n");
    return 0;
}

/* "unix://app@/SOCKET?NAME=FOLDER/FILE"; four at a time. */
static const char *asking(const char *parameter, const char *file)
{
    static char made[4][400];
    static unsigned next;
    char *at = made[next++ % 4];

    snprintf(at, sizeof made[0], "unix://app@%s?%s=%s/%s", stage.server.socket, parameter, folder(), file);
    return at;
}

/* How often the script has been run that adds a line to "runs". */
static int runs(void)
{
    char text[4096];
    int n = 0;

    if (!read_text(folder(), "runs", text, sizeof text))
        return 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        n++;
    return n;
}

static void forget_runs(void)
{
    write_text(folder(), "runs", "");
}

/* ---- Files */

TEST(from_a_file)
{
    both_work(asking("password-file", "password"));
    write_text(folder(), "bare", SECRET);
    both_work(asking("password-file", "bare"));
    setenv("CREDENTIALS_DIRECTORY", folder(), 1);
    both_work(textf("unix://app@%s?password-file=password", stage.server.socket));
    unsetenv("CREDENTIALS_DIRECTORY");
}

/* A pipe, as a shell gives it for <(...), can be read once, and each connect asks. */
TEST(from_a_pipe)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    assert_int_equal(write(fds[1], SECRET "\n", sizeof SECRET), sizeof SECRET);
    close(fds[1]);
    for (int i = 0; i < 3; i++)
        both_work(textf("unix://app@%s?password-file=/dev/fd/%d", stage.server.socket, fds[0]));
    close(fds[0]);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0); /* another pipe by the same name */
    close(fds[1]);
    both_come_to(textf("unix://app@%s?password-file=/dev/fd/%d", stage.server.socket, fds[0]), WEIR_ECONFIG,
                 "is empty");
    close(fds[0]);
}

TEST(unusable_files)
{
    char lines[9000];

    write_text(folder(), "empty", "");
    write_text(folder(), "newline", "\n");
    write_text(folder(), "two", SECRET "\n\n");
    memset(lines, 'x', sizeof lines);
    lines[sizeof lines - 1] = '\0';
    write_text(folder(), "long", lines);
    both_come_to(asking("password-file", "none"), WEIR_ECONFIG, "/none: cannot be read: No such file");
    both_come_to(asking("password-file", "."), WEIR_ECONFIG, "cannot be read: Is a directory");
    both_come_to(asking("password-file", "empty"), WEIR_ECONFIG, "is empty");
    both_come_to(asking("password-file", "newline"), WEIR_ECONFIG, "is empty");
    both_come_to(asking("password-file", "long"), WEIR_ECONFIG, "longer than any password");
    both_come_to(asking("password-file", "two"), WEIR_EREFUSED, "check user and password");
    lines[8191] = '\0';
    write_text(folder(), "long", lines);
    both_come_to(asking("password-file", "long"), WEIR_EREFUSED, "check user and password");
}

/* ---- Commands */

TEST(from_a_command)
{
    both_work(asking("password-command", "ask"));
    both_work(textf("unix://app@%s?password-command=cat%%20%s/password", stage.server.socket, folder()));
}

/* No shell reads the words; what only one could read is refused: tests/test_core.c. */
TEST(no_shell)
{
    set_password("$HOME;x");
    both_work(textf("unix://app@%s?password-command=echo%%20'$HOME;x'", stage.server.socket));
    set_password(SECRET);
}

TEST(failing_commands)
{
    write_script("silent", "exit 0\n");
    write_script("nul", "printf 'a\\0b'\n");
    write_script("floods",
                 "head -c 300000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero | tr '\\0' y >&2\n");
    write_script("dies", "kill -9 $$\n");
    write_text(folder(), "plain", "echo x\n");
    both_come_to(asking("password-command", "none"), WEIR_ECONFIG, "cannot be run: No such file");
    both_come_to(asking("password-command", "plain"), WEIR_ECONFIG, "cannot be run: Permission denied");
    both_come_to(asking("password-command", "fails"), WEIR_EUNREACHABLE, "exit 3: no network here");
    both_come_to(asking("password-command", "dies"), WEIR_EUNREACHABLE, "killed by signal 9");
    both_come_to(asking("password-command", "silent"), WEIR_ECONFIG, "is empty");
    both_come_to(asking("password-command", "nul"), WEIR_ECONFIG, "NUL");
    both_come_to(asking("password-command", "floods"), WEIR_ECONFIG, "longer than any password");
}

struct attempt {
    char to[400];
    struct error e;
};

static void *try_on_thread(void *arg)
{
    struct attempt *attempt = arg;

    attempt->e.status = both_try_blocking(attempt->to, &attempt->e);
    return NULL;
}

/* It is killed after ten seconds, and what it has started. The loop goes on meanwhile. */
TEST(a_command_that_hangs)
{
    char pids[256], *rest;
    struct attempt attempt;
    struct linked l;
    pthread_t thread;

    write_script("hangs", "sleep 600 & echo $! >>hung; echo half; wait\n");
    snprintf(attempt.to, sizeof attempt.to, "%s", asking("password-command", "hangs"));
    assert_int_equal(pthread_create(&thread, NULL, try_on_thread, &attempt), 0);
    both_open_link(&l, attempt.to);
    BOTH_RUN_UNTIL(&l, l.heard.down);
    pthread_join(thread, NULL);
    both_check(attempt.to, attempt.e.status, &attempt.e, WEIR_EUNREACHABLE,
               "not done after 10 s, and killed");
    both_check(attempt.to, l.heard.why.status, &l.heard.why, WEIR_EUNREACHABLE,
               "not done after 10 s, and killed");
    assert_true(l.heard.stood_us < 8000000); /* of ten seconds */
    assert_true(read_text(folder(), "hung", pids, sizeof pids));
    for (char *pid = strtok_r(pids, "\n", &rest); pid; pid = strtok_r(NULL, "\n", &rest))
        await(!is_running(atoi(pid)));
    both_close_link(&l);
}

/* One that leaves a child behind, which keeps its pipes. */
TEST(a_command_with_a_child)
{
    write_script("leaves", "sleep 20 & echo " SECRET "\n");
    both_work(asking("password-command", "leaves"));
}

TEST(no_child_is_left)
{
    struct error e;

    for (int i = 0; i < 20; i++)
        assert_int_equal(both_try_blocking(asking("password-command", i % 2 ? "ask" : "fails"), &e),
                         i % 2 ? 0 : WEIR_EUNREACHABLE);
    kill(stage.server.pid, 0);
    for (int status; waitpid(-1, &status, WNOHANG) > 0;)
        fail_msg("a child was not waited for: %#x", (unsigned)status);
}

/* ---- One that changes */

/* The command says the old password once more; it is asked again at once. */
TEST(asked_again)
{
    const char *to = asking("password-command", "changes");
    struct error e;

    write_script("changes", "echo x >>runs\n[ $(wc -l <runs) = 1 ] && echo old || echo " SECRET "\n");
    forget_runs();
    assert_int_equal(both_try_blocking(to, &e), 0);
    assert_int_equal(runs(), 2);
    forget_runs();
    assert_int_equal(both_try_link(to, &e), 0);
    assert_int_equal(runs(), 2);
}

TEST(asked_once_more_only)
{
    const char *to = asking("password-command", "wrong");
    struct error e;

    write_script("wrong", "echo x >>runs\necho " SECRET "-not\n");
    forget_runs();
    assert_int_equal(both_try_blocking(to, &e), WEIR_EREFUSED);
    assert_null(strstr(e.text, SECRET));
    assert_int_equal(runs(), 2);
    forget_runs();
    assert_int_equal(both_try_link(to, &e), WEIR_EREFUSED);
    assert_null(strstr(e.text, SECRET));
    assert_int_equal(runs(), 2);
}

/* Connections of the worker; a worker whose password is refused goes on, and works again when it is right. */
TEST(a_worker_goes_on)
{
    pid_t pid;
    const char *url = textf("url=%s", asking("password-file", "password"));

    pid = stage_actor(&stage, "goes-on", url, "lease=2", NULL);
    stage_await_workers(&stage, 1);
    stage_enqueue(&stage, "mark", NULL, 0, 20);
    set_password("another-secret");
    await_text(folder(), "goes-on.err", "refused");
    stage_enqueue(&stage, "mark", NULL, 20, 20);
    write_text(folder(), "password", "another-secret\n");
    stage_await_done(&stage, 40);
    assert_int_equal(stage_end(pid), 0);
    set_password(SECRET);
    write_text(folder(), "password", SECRET "\n");
}

/* Jobs that are commands beside a password that is one: each child is waited for by its own. */
TEST(a_worker_with_commands)
{
    struct outcome o;

    for (int i = 0; i < 3; i++)
        stage_enqueue(&stage, "run", "1", 100 + i, 1);
    run_in(&o, folder(), built("weir"), "worker", "--exec", "run=sleep 0.1", "--drain", "--redis",
           textf("%s", asking("password-command", "ask")), "--namespace", stage.ns, NULL);
    assert_int_equal(o.code, 0);
    assert_int_equal(stage_stat(&stage, "run", "done"), 3);
}

/* ---- What is shown */

/* The worker's arguments and its log; a file of the stage's is "NAME.err". */
static void shows_none(pid_t pid, const char *log)
{
    char text[16384];
    ssize_t len;
    int fd;

    fd = open(textf("/proc/%d/cmdline", (int)pid), O_RDONLY | O_CLOEXEC);
    len = read(fd, text, sizeof text);
    close(fd);
    assert_true(len > 0);
    assert_null(memmem(text, (size_t)len, SECRET, strlen(SECRET)));
    assert_true(read_text(folder(), log, text, sizeof text));
    assert_null(strstr(text, SECRET));
}

TEST(nothing_is_shown)
{
    char url[400];
    pid_t pid;

    snprintf(url, sizeof url, "unix://app:" SECRET "@%s", stage.server.socket);
    pid = stage_weir(&stage, "in-url", "--exec", "mark=true", "--redis", url, NULL);
    stage_await_workers(&stage, 1);
    set_password("another-secret"); /* lost, and refused */
    await_text(folder(), "in-url.err", "refused");
    shows_none(pid, "in-url.err");
    set_password(SECRET);
    stage_await_workers(&stage, 1);
    assert_int_equal(stage_end(pid), 0);

    snprintf(url, sizeof url, "unix://app@%s", stage.server.socket);
    pid = stage_weir(&stage, "in-file", "--exec", "mark=true", "--redis", url, "--password-file",
                     "./password", NULL);
    await_text(folder(), "in-file.err", "keeps no AOF");
    shows_none(pid, "in-file.err");
    assert_int_equal(stage_end(pid), 0);
}

STAGE_TESTS(set_up, stage_stop)
