#include "tests/program.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/test.h"

#define RUN_LIMIT_US 600000000 /* run.sh ends a whole program after 900 s */
#define TEXT_LIMIT_US 60000000 /* a machine that is busy with other tests */
#define LOOK_EVERY_US 2000

static char *next_path(void)
{
    static char paths[8][512];
    static unsigned next;

    return paths[next++ % 8];
}

const char *sourced(const char *name)
{
    char *path = next_path();

    assert_non_null(getcwd(path, 400));
    return strcat(strcat(path, "/tests/"), name);
}

const char *built(const char *name)
{
    char *path = next_path();
    ssize_t len = readlink("/proc/self/exe", path, 400);

    path[len > 0 ? len : 0] = '\0';
    for (int up = 0; up < 2; up++) /* build/tests/test_x */
        *strrchr(path, '/') = '\0';
    strcat(strcat(path, "/"), name);
    return path;
}

static pid_t launch(const char *folder, int out, int err, const char *const *words)
{
    pid_t parent = getpid(), pid = fork();

    if (pid)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || (folder && chdir(folder) < 0))
        _exit(126);
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(words[0], (char **)words);
    _exit(127);
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int program_end(pid_t pid)
{
    int64_t limit_us = clock_mono_us() + RUN_LIMIT_US;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (clock_mono_us() > limit_us) {
            kill(pid, SIGKILL);
            fail_msg("process %d does not end", (int)pid);
        }
        clock_sleep_until(clock_mono_us() + LOOK_EVERY_US);
    }
    return code_of(status);
}

static void take_text(int fd, char *text, size_t size)
{
    ssize_t len = pread(fd, text, size - 1, 0);

    text[len > 0 ? len : 0] = '\0';
    close(fd);
}

void program_run(struct outcome *o, const char *folder, const char *const *words)
{
    int out = memfd_create("out", MFD_CLOEXEC), err = memfd_create("err", MFD_CLOEXEC);

    o->code = program_end(launch(folder, out, err, words));
    take_text(out, o->out, sizeof o->out);
    take_text(err, o->err, sizeof o->err);
}

int program_weir(struct outcome *o, const char *folder, const char *url, const char *ns, const char *line)
{
    const char *words[WORDS_MAX + 1] = {built("weir")}, *const flags[] = {"--redis", url, "--namespace", ns};
    char text[1024], *rest = text;
    int count = 1;

    snprintf(text, sizeof text, "%s", line);
    while (count < WORDS_MAX && rest && *rest) {
        char *word = strsep(&rest, " ");

        for (char *at = word; (at = strchr(at, '~'));)
            *at = ' ';
        words[count++] = word;
    }
    for (int i = 0; i < 4 && count + 1 < WORDS_MAX; i += 2)
        if (flags[i + 1]) {
            words[count++] = flags[i];
            words[count++] = flags[i + 1];
        }
    program_run(o, folder, words);
    return o->code;
}

void program_misuses(const char *folder, const char *url, const char *ns, const struct misuse *m)
{
    for (; m->line; m++) {
        struct outcome o;

        if (program_weir(&o, folder, url, ns, m->line) != m->code || !strstr(o.err, m->says))
            fail_msg("weir %s: exit %d (not %d) and: %s(not: %s)", m->line, o.code, m->code, o.err, m->says);
        if (strncmp(o.err, "weir: ", 6) != 0 || strchr(o.err, '\n') != o.err + strlen(o.err) - 1)
            fail_msg("weir %s: not one line that begins with 'weir: ': %s", m->line, o.err);
        if (*o.out)
            fail_msg("weir %s: prints to standard output: %s", m->line, o.out);
    }
}

void run_in(struct outcome *o, const char *folder, const char *word, ...)
{
    const char *words[WORDS_MAX + 1] = {word};
    va_list args;

    va_start(args, word);
    for (int i = 1; i <= WORDS_MAX && words[i - 1]; i++)
        words[i] = va_arg(args, const char *);
    va_end(args);
    program_run(o, folder, words);
}

static int open_in(const char *folder, const char *name, const char *ending, int flags)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    return open(path, flags | O_CLOEXEC, 0666);
}

pid_t program_start(const char *folder, const char *name, const char *const *words)
{
    int out = open_in(folder, name, ".out", O_RDWR | O_CREAT | O_TRUNC);
    int err = open_in(folder, name, ".err", O_RDWR | O_CREAT | O_TRUNC);
    pid_t pid = launch(folder, out, err, words);

    close(out);
    close(err);
    return pid;
}

/* Else the answer stands in what was printed, wherever the terminal was when it came. */
static void no_echo(void)
{
    struct termios mode;

    if (tcgetattr(STDIN_FILENO, &mode) == 0) {
        mode.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(STDIN_FILENO, TCSANOW, &mode);
    }
}

int program_on_terminal(const char *const *words, const char *answer, char *text, size_t size)
{
    size_t len = 0;
    int fd, status;
    ssize_t n;
    pid_t pid = forkpty(&fd, NULL, NULL, NULL);

    assert_true(pid >= 0);
    if (pid == 0) {
        no_echo();
        setenv("TERM", "xterm", 1);
        unsetenv("NO_COLOR");
        execv(words[0], (char **)words);
        _exit(127);
    }
    assert_int_equal(write(fd, answer, strlen(answer)), strlen(answer));
    while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(fd);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool read_text(const char *folder, const char *name, char *text, size_t size)
{
    int fd = open_in(folder, name, "", O_RDONLY);

    *text = '\0';
    if (fd < 0)
        return false;
    take_text(fd, text, size);
    return true;
}

bool is_running(pid_t pid)
{
    char name[32], stat[512];

    snprintf(name, sizeof name, "%d/stat", (int)pid);
    return read_text("/proc", name, stat, sizeof stat) && !strstr(stat, ") Z ");
}

pid_t await_pid(const char *folder, const char *name)
{
    char text[64];

    await_text(folder, name, "\n");
    read_text(folder, name, text, sizeof text);
    return atoi(text);
}

void write_text(const char *folder, const char *name, const char *text)
{
    int fd = open_in(folder, name, "", O_WRONLY | O_CREAT | O_TRUNC);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        fail_msg("cannot write %s/%s: %s", folder, name, strerror(errno));
    close(fd);
}

/* The value behind " name=" in a line of logfmt, its quotes off; returns where it ends in to. */
static char *copy_value(const char *line, const char *end, const char *name, char *to)
{
    const char *at = memmem(line, (size_t)(end - line), name, strlen(name));
    bool quoted;

    if (!at)
        return to;
    at += strlen(name);
    quoted = *at == '"';
    at += quoted;
    for (; at < end && *at != (quoted ? '"' : ' '); at++) {
        if (quoted && *at == '\\' && (at[1] == '"' || at[1] == '\\'))
            at++;
        *to++ = *at;
    }
    return to;
}

bool read_log(const char *folder, char *text, size_t size)
{
    char *log = malloc(size), *to = text;

    if (!log || !read_text(folder, "worker.err", log, size)) {
        free(log);
        return false;
    }
    for (const char *line = log, *end; (end = strchr(line, '\n')); line = end + 1) {
        if (strncmp(line, "time=", 5) != 0)
            continue;
        to = copy_value(line, end, " type=", to);
        *to++ = ' ';
        to = copy_value(line, end, " job=", to);
        memcpy(to, ": ", 2);
        to = copy_value(line, end, " msg=", to + 2);
        *to++ = '\n';
    }
    *to = '\0';
    free(log);
    return true;
}

void await_log(const char *folder, const char *text)
{
    int64_t limit_us = clock_mono_us() + TEXT_LIMIT_US;
    static char found[65536];

    while (!read_log(folder, found, sizeof found) || !strstr(found, text)) {
        if (clock_mono_us() > limit_us)
            fail_msg("%s: no '%s' in the log, but: %s", folder, text, found);
        clock_sleep_until(clock_mono_us() + LOOK_EVERY_US);
    }
}

void await_text(const char *folder, const char *name, const char *text)
{
    int64_t limit_us = clock_mono_us() + TEXT_LIMIT_US;
    char found[16384];

    while (!read_text(folder, name, found, sizeof found) || !strstr(found, text)) {
        if (clock_mono_us() > limit_us)
            fail_msg("%s/%s: no '%s' in it, but: %s", folder, name, text, found);
        clock_sleep_until(clock_mono_us() + LOOK_EVERY_US);
    }
}

void folder_make(char folder[64])
{
    const char *parent = getenv("WEIR_TEST_FOLDER");

    snprintf(folder, 64, "%s/weir-test.XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        fail_msg("%s: %s", folder, strerror(errno));
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

void folder_remove(const char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
