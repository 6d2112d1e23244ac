/* weir top in a real terminal, of tmux: what is on the screen after each key, and what it leaves behind. tests/test_top.c has what
 * needs no terminal. */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/spawn.h"
#include "tests/stage.h"

static struct stage stage;
static char screen[1 << 16];

/* ---- A terminal */

/* A command of the private tmux server. */
static void tmux(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void tmux(const char *fmt, ...)
{
    char words[1024], command[1536];
    va_list values;

    va_start(values, fmt);
    vsnprintf(words, sizeof words, fmt, values);
    va_end(values);
    snprintf(command, sizeof command, "cd %s && tmux -u -S tmux -f tmux.conf %s >/dev/null 2>&1",
             stage.server.folder, words);
    if (system(command) != 0)
        fail_msg("%s", command);
}

/* What is on the screen now, with colours as escape sequences or without. */
static const char *look(bool colors)
{
    FILE *from;
    size_t len;

    from = popen(textf("tmux -u -S %s/tmux capture-pane -p %s -t t 2>/dev/null", stage.server.folder,
                       colors ? "-e" : ""),
                 "r");
    assert_non_null(from);
    len = fread(screen, 1, sizeof screen - 1, from);
    screen[len] = '\0';
    pclose(from);
    return screen;
}

/* What is waited for stays until the next key: a screen that is shown for a moment may never be seen. */
static void expect_either(const char *text, const char *other)
{
    int64_t end_us = clock_mono_us() + AWAIT_US;

    while (!strstr(look(false), text) && !strstr(screen, other)) {
        if (clock_mono_us() > end_us)
            fail_msg("waited in vain for: %s\n%s", text, screen);
        clock_sleep_until(clock_mono_us() + 10000);
    }
}

static void expect(const char *text)
{
    expect_either(text, text);
}

static void expect_gone(const char *text)
{
    int64_t end_us = clock_mono_us() + AWAIT_US;

    while (strstr(look(false), text)) {
        if (clock_mono_us() > end_us)
            fail_msg("is still there: %s\n%s", text, screen);
        clock_sleep_until(clock_mono_us() + 10000);
    }
}

/* Keys by tmux's names: "j", "Enter". */
static void press(const char *keys)
{
    tmux("send-keys -t t %s", keys);
}

static void type(const char *text)
{
    tmux("send-keys -t t -l '%s'", text);
}

/* weir top with these flags in a terminal of that size; before it and behind it a line is printed. */
static void start_with(const char *environment, const char *flags, int columns, int rows)
{
    write_text(
        stage.server.folder, "start",
        textf("cd %s; trap : INT; rm -f ended; stty -a >before; ulimit -c 0; echo earlier words; "
              "%s sh -c 'echo $$ >pid; exec %s top --interval 200ms --redis %s --namespace %s %s 2>err'; "
              "echo \"code $?\"; stty -a >after; head -n 3 err; echo 1 >ended; exec cat\n",
              stage.server.folder, environment, built("weir"), stage.server.url, stage.ns, flags));
    tmux("new-session -d -s t -x %d -y %d 'LC_ALL=C.UTF-8 sh %s/start'", columns, rows, stage.server.folder);
}

static void start(const char *flags)
{
    start_with("", flags, 100, 24);
    expect("4 queues");
}

/* It has ended, and the terminal is as it was. */
static void expect_end(const char *code)
{
    char before[4096], after[4096];

    expect(code);
    expect("earlier words");
    expect_gone("4 queues");
    await(read_text(stage.server.folder, "ended", after, sizeof after) && *after);
    assert_true(read_text(stage.server.folder, "after", after, sizeof after));
    assert_true(read_text(stage.server.folder, "before", before, sizeof before));
    assert_string_equal(strstr(before, "intr"), strstr(after, "intr")); /* behind its size */
}

static void end(void)
{
    tmux("kill-session -t t");
}

static void weir(const char *line)
{
    static struct outcome o;

    if (program_weir(&o, stage.server.folder, stage.server.url, stage.ns, line) != 0)
        fail_msg("weir %s: %s", line, o.err);
}

/* What a command prints. */
static void expect_said(const char *line, const char *text)
{
    static struct outcome o;

    program_weir(&o, stage.server.folder, stage.server.url, stage.ns, line);
    if (!strstr(o.out, text))
        fail_msg("weir %s: %s%s", line, o.out, o.err);
}

/* ---- Tests */

/* Jobs of two types that wait, one of them at a limit. */
static int begin(void **unused)
{
    stage_open(&stage, true);
    write_text(stage.server.folder, "tmux.conf", "set -g exit-empty off\n"); /* else it ends between two */
    weir("rate set mail 1/h");
    stage_enqueue(&stage, "mail", "1", 0, 20);
    stage_enqueue(&stage, "news", "1", 20, 3);
    return 0;
}

static int finish_without_tmux(void **unused)
{
    stage_close(&stage);
    return 0;
}

static int finish(void **unused)
{
    assert_int_equal(system(textf("tmux -S %s/tmux kill-server", stage.server.folder)), 0);
    return finish_without_tmux(unused);
}

/* The rows, by where their names stand. */
static bool is_above(const char *above, const char *below)
{
    const char *a, *b;

    look(false);
    a = strstr(screen, above);
    b = strstr(screen, below);
    return a && b && a < b;
}

TEST_WITH(test_it_shows_sorts_filters_and_ends, begin, finish)
{
    start("");
    expect("stuck: jobs of 2 types start only when somebody acts");
    await(is_above("\nmail ", "\nnews "));
    press("o");
    await(is_above("\nnews ", "\nmail "));
    press("/");
    type("mai");
    expect("1 of 1");
    assert_false(is_above("\nnews ", "\nmail "));
    press("Escape");
    await(is_above("\nnews ", "\nmail "));
    press("2");
    expect("1/1h");
    press("Tab");
    expect("no workers yet");
    press("4");
    expect("default");
    press("?");
    expect("any key goes back");
    press("x");
    expect_gone("any key goes back");
    press("q");
    expect_end("code 0");
}

TEST_WITH(test_queues_are_paused_and_resumed, begin, finish)
{
    start("");
    press("4");
    expect("open");
    press("p");
    expect("queue default paused");
    expect("default: 23 jobs in it; paused since ");
    expect_said("queue list", "23");
    press("r");
    expect("queue default resumed");
}

TEST_WITH(test_limits_are_paused_and_resumed, begin, finish)
{
    start("");
    expect("\nmail ");
    press("/ n e w s Enter p"); /* at once: the last ones mean what the first ones have chosen */
    expect("type news paused");
    press("/ BSpace BSpace BSpace BSpace m a i l Enter");
    press("2");
    press("p");
    expect("limit mail paused for 10m");
    expect("paused");
    press("r");
    expect("limit mail resumed");
}

/* On this Redis, with the terminal to itself; a wrong one says so as anywhere. */
TEST_WITH(test_a_command_is_run, begin, finish)
{
    start("");
    expect("\nmail ");
    press(":");
    type("rate set mail 2/1h");
    expect(":weir rate set mail 2/1h_");
    press("Enter");
    expect("Enter goes back to weir top");
    expect_said("rate list", "2/1h");
    press("Enter");
    expect("4 queues");
    press(":");
    type("rate sat");
    press("Enter");
    expect("$ weir rate sat");
    press("Enter");
    expect("4 queues");
    press("s");
    expect("$ weir schedule list");
    press("Enter");
    expect("4 queues");
    press("q");
    expect_end("code 0");
}

TEST_WITH(test_workers_are_quieted, begin, finish)
{
    pid_t worker;

    worker = stage_weir(&stage, "worker", "--exec", "news=true", "--lease", "3s", NULL);
    start("");
    press("3");
    expect("working");
    press("u");
    expect("takes no more jobs, and stays? [y/N]");
    press("n");
    expect("nothing was changed");
    press("u");
    press("y");
    expect("hears it within its next heartbeat: quiet");
    expect("quiet ");
    await_text(stage.server.folder, "worker.err", "ordered to be quiet");
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
}

TEST_WITH(test_read_only_changes_nothing, begin, finish)
{
    start("--read-only");
    press("4");
    expect("default");
    press("p");
    expect("read-only: start weir top without --read-only to pause");
    press("x");
    expect("read-only");
    expect_gone("p pause");
}

TEST_WITH(test_it_follows_the_size_of_the_terminal, begin, finish)
{
    static const int sizes[][2] = {{80, 24}, {200, 50}, {60, 10}, {1, 1}, {80, 24}};

    start("");
    expect("\nmail ");
    for (size_t i = 0; i < COUNT(sizes); i++) {
        tmux("resize-window -t t -x %d -y %d", sizes[i][0], sizes[i][1]);
        if (sizes[i][1] >= 24)
            expect(sizes[i][0] >= 200 ? "RETRY 1H" : "4 queues");
        else if (sizes[i][1] == 10)
            expect("60x10 is too small: 80x24 at least");
    }
    expect("\nmail ");
    press("q");
    expect_end("code 0");
}

TEST_WITH(test_redis_is_lost_and_found, begin, finish)
{
    start("");
    expect("stuck");
    server_kill(&stage.server);
    expect("no answer from Redis for ");
    assert_non_null(strstr(screen, "\nmail ")); /* what was known stays */
    press("4");
    expect("default"); /* keys do not wait */
    press("p");
    expect("connection refused");
    server_restart(&stage.server);
    expect("stuck: ");
    press("p");
    expect("queue default paused");
}

static pid_t pid_of_top(void)
{
    char pid[32];

    await(read_text(stage.server.folder, "pid", pid, sizeof pid) && strchr(pid, '\n'));
    return (pid_t)atoi(pid);
}

TEST_WITH(test_every_end_leaves_the_terminal_as_it_was, begin, finish)
{
    static const struct {
        int number;
        const char *code;
    } ends[] = {{SIGTERM, "code 143"},
                {SIGINT, "code 0"},
                {SIGHUP, "code 129"},
                {SIGABRT, "code 134"},
                {SIGSEGV, "code "} /* a sanitizer has its own */,
                {SIGQUIT, "code 131"}};

    for (size_t i = 0; i < COUNT(ends); i++) {
        start("");
        assert_int_equal(kill(pid_of_top(), ends[i].number), 0);
        expect_end(ends[i].code);
        end();
    }
    start("");
    press("C-c");
    expect_end("code 0");
}

/* Terminals without tmux: what is written there at one end is read at the other. */
struct line {
    int here, there;
};

static void open_lines(struct line lines[2])
{
    const struct winsize size = {.ws_row = 24, .ws_col = 80};

    for (int i = 0; i < 2; i++)
        assert_int_equal(openpty(&lines[i].here, &lines[i].there, NULL, NULL, &size), 0);
}

static void close_ends(struct line lines[2])
{
    for (int i = 0; i < 2; i++)
        close_fd(&lines[i].there);
}

/* weir top with its input from the first, its output to the second. */
static pid_t start_between(struct line lines[2])
{
    pid_t pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TERM", "xterm", 1);
    dup2(lines[0].there, STDIN_FILENO);
    dup2(lines[1].there, STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    execl(built("weir"), "weir", "top", "--redis", stage.server.url, "--namespace", stage.ns, NULL);
    _exit(127);
}

/* Until it has drawn, so that it has begun. */
static void await_drawn(int from)
{
    struct pollfd on = {.fd = from, .events = POLLIN};
    char text[256];

    assert_int_equal(poll(&on, 1, AWAIT_US / 1000), 1);
    assert_true(read(from, text, sizeof text) > 0);
}

TEST_WITH(test_it_ends_when_its_terminal_is_gone, begin, finish_without_tmux)
{
    for (int gone = 0; gone < 2; gone++) { /* its input, its output */
        struct line lines[2];
        pid_t pid;

        open_lines(lines);
        pid = start_between(lines);
        close_ends(lines);
        await_drawn(lines[1].here);
        close_fd(&lines[gone].here);
        assert_int_equal(program_end(pid), 0);
        close_fd(&lines[!gone].here);
    }
}

/* Its terminal is stopped, as Ctrl-S does: whatever writes there waits. */
TEST_WITH(test_it_ends_though_its_terminal_takes_nothing, begin, finish_without_tmux)
{
    struct line lines[2];
    pid_t pid;

    open_lines(lines);
    pid = start_between(lines);
    await_drawn(lines[1].here);
    assert_int_equal(tcflow(lines[1].there, TCOOFF), 0);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(program_end(pid), 1000 + SIGTERM);
    close_ends(lines);
    for (int i = 0; i < 2; i++)
        close_fd(&lines[i].here);
}

TEST_WITH(test_terminals_that_show_less, begin, finish)
{
    start_with("LC_ALL=C NO_COLOR=1", "", 80, 24);
    expect("4 queues");
    for (const char *at = look(true); *at; at++)
        assert_true((unsigned char)*at < 0x80);
    assert_null(strstr(screen, "\x1b[31m")); /* no colour */
    press("q");
    expect_end("code 0");
    end();
    start_with("NO_COLOR= COLUMNS=10 LINES=3", "", 80, 24);
    expect("stuck");
    await(strstr(look(true), "\x1b[31m"));
    end();
    start_with("TERM=dumb", "", 80, 24);
    expect("weir status prints the same once");
    expect("code 64");
    end();
    /* There ncurses leaves what it has allocated. */
    start_with("TERM=no-such-terminal ASAN_OPTIONS=detect_leaks=0", "", 80, 24);
    expect("nothing is known of the terminal that TERM names");
    expect("code 64");
}

int main(void)
{

    unsetenv("TMUX");
    return tests_run(NULL, NULL);
}
