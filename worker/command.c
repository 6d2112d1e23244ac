/* Runs a command for a job: one process in a process group of its own, no shell. The job as JSON goes to its
 * standard input and its metadata to the environment; its exit code decides: 0 done    75 throttled    65
 * dead    anything else, or a signal: retry. The last lines of standard error are the reason; a number as the
 * last line of standard output of a throttled job is the seconds for which its limit is paused. The command
 * has ended when its process has: a grandchild that keeps a pipe open is not waited for. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "worker/handler.h"

#define TAIL_SIZE 1024         /* of standard error, kept as the reason; of standard output, for a number */
#define SPAWN_AGAIN_US 2000000 /* after a command could not be started: out of processes, memory, files */
#define EXIT_THROTTLED 75
#define EXIT_DEAD 65

extern char **environ;

struct tail {
    char at[TAIL_SIZE];
    size_t len;
};

struct command {
    struct task *task;
    pid_t pid;
    int pidfd, in, out, err; /* -1: closed */
    size_t written;
    struct tail out_tail, err_tail;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- Starting */

struct pipes {
    int in[2], out[2], err[2];
};

static int open_pipes(struct pipes *p)
{
    *p = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    return pipe2(p->in, O_CLOEXEC) || pipe2(p->out, O_CLOEXEC) || pipe2(p->err, O_CLOEXEC);
}

static void close_pipes(struct pipes *p)
{
    int *all[] = {&p->in[0], &p->in[1], &p->out[0], &p->out[1], &p->err[0], &p->err[1]};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        close_fd(all[i]);
}

/* environ with the job's variables in front; the array alone is the caller's to free. */
static char **job_environment(char *const variables[], size_t n)
{
    size_t count = 0;
    char **env;

    while (environ[count])
        count++;
    if (!(env = calloc(count + n + 1, sizeof *env)))
        return NULL;
    memcpy(env, variables, n * sizeof *env);
    memcpy(env + n, environ, count * sizeof *env);
    return env;
}

/* In the child, which borrows our memory until it runs the program: all signals as a fresh process has them,
 * a group of its own, our pipes as 0, 1, 2, and an end when the worker ends. Returns only when it failed,
 * with errno. */
static void become(char *const argv[], char *const env[], const struct pipes *p, pid_t worker)
{
    struct sigaction fresh = {.sa_handler = SIG_DFL};

    for (int signal = 1; signal < NSIG; signal++)
        sigaction(signal, &fresh, NULL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != worker || setpgid(0, 0) != 0)
        return;
    if (dup2(p->in[0], 0) < 0 || dup2(p->out[1], 1) < 0 || dup2(p->err[1], 2) < 0)
        return;
    /* What the worker itself was started with is not the command's; an old kernel without the call keeps it.
     */
    syscall(SYS_close_range, 3, ~0U, 0);
    /* Empty: signals were blocked until here, so that no handler of ours ran. */
    sigprocmask(SIG_SETMASK, &fresh.sa_mask, NULL);
    execvpe(argv[0], argv, env);
}

/* vfork: a large worker is not copied, and unlike posix_spawn it allows PR_SET_PDEATHSIG. The thread that
 * calls it lives as long as the worker, as that needs. Returns an errno. */
static int spawn(pid_t *pid, char *const argv[], char *const env[], const struct pipes *p)
{
    volatile int failed = 0;
    pid_t worker = getpid();
    pid_t child = vfork();

    if (child == 0) {
        become(argv, env, p, worker);
        failed = errno;
        _exit(127);
    }
    if (child < 0)
        return errno;
    if (failed != 0)
        waitpid(child, NULL, 0);
    *pid = child;
    return failed;
}

static int start(struct command *c, const struct job_view *view)
{
    char id[160], type[160], attempt[64];
    char *variables[] = {id, type, attempt};
    struct pipes pipes;
    char **env = NULL;
    int rc = EMFILE;

    snprintf(id, sizeof id, "WEIR_JOB_ID=%.*s", (int)view->id.len, view->id.at);
    snprintf(type, sizeof type, "WEIR_JOB_TYPE=%.*s", (int)view->type.len, view->type.at);
    snprintf(attempt, sizeof attempt, "WEIR_JOB_ATTEMPT=%d", c->task->attempts + 1);
    if (open_pipes(&pipes) != 0) {
        rc = errno;
        goto out;
    }
    rc = ENOMEM;
    if (!(env = job_environment(variables, 3)))
        goto out;
    rc = spawn(&c->pid, c->task->handler->argv, env, &pipes);
    if (rc != 0)
        goto out;
    atomic_store(&c->task->process, c->pid);
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    c->in = pipes.in[1];
    c->out = pipes.out[0];
    c->err = pipes.err[0];
    pipes.in[1] = pipes.out[0] = pipes.err[0] = -1;
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    fcntl(c->err, F_SETFL, O_NONBLOCK);
out:
    close_pipes(&pipes);
    free(env);
    return rc;
}

/* ---- Talking to it */

static void keep_tail(struct tail *t, const char *bytes, size_t len)
{
    if (len >= sizeof t->at) {
        bytes += len - sizeof t->at;
        len = sizeof t->at;
    }
    if (t->len + len > sizeof t->at) {
        size_t drop = t->len + len - sizeof t->at;

        memmove(t->at, t->at + drop, t->len - drop);
        t->len -= drop;
    }
    memcpy(t->at + t->len, bytes, len);
    t->len += len;
}

/* Reads what is there; closes at the end. */
static void read_some(int *fd, struct tail *tail)
{
    char bytes[16 * 1024];
    ssize_t n = read(*fd, bytes, sizeof bytes);

    if (n > 0)
        keep_tail(tail, bytes, (size_t)n);
    else if (n == 0 || errno != EAGAIN)
        close_fd(fd);
}

static void read_rest(int *fd, struct tail *tail)
{
    for (int i = 0; i < 64 && *fd >= 0; i++) { /* bounded: a grandchild may write for ever */
        struct pollfd p = {.fd = *fd, .events = POLLIN};

        if (poll(&p, 1, 0) <= 0)
            break;
        read_some(fd, tail);
    }
    close_fd(fd);
}

static void write_some(struct command *c)
{
    const struct span *body = &c->task->body;
    ssize_t n = write(c->in, body->at + c->written, body->len - c->written);

    if (n > 0)
        c->written += (size_t)n;
    if (c->written == body->len || (n < 0 && errno != EAGAIN && errno != EINTR))
        close_fd(&c->in); /* a command need not read its job */
}

/* Until the process has ended. Without pidfd (an old kernel) its pipes tell. */
static void converse(struct command *c)
{
    while (c->pidfd >= 0 || c->out >= 0 || c->err >= 0) {
        struct pollfd fds[] = {{.fd = c->pidfd, .events = POLLIN},
                               {.fd = c->in, .events = POLLOUT},
                               {.fd = c->out, .events = POLLIN},
                               {.fd = c->err, .events = POLLIN}};

        if (poll(fds, 4, -1) < 0)
            continue;
        if (fds[1].revents)
            write_some(c);
        if (fds[2].revents)
            read_some(&c->out, &c->out_tail);
        if (fds[3].revents)
            read_some(&c->err, &c->err_tail);
        if (fds[0].revents)
            break;
    }
    read_rest(&c->out, &c->out_tail);
    read_rest(&c->err, &c->err_tail);
    close_fd(&c->in);
    close_fd(&c->pidfd);
}

/* ---- Ending */

/* The number that is the last line of standard output, or -1. */
static double last_number(struct tail *t)
{
    char line[64], *end;
    size_t from;
    double value;

    while (t->len > 0 && strchr(" \t\r\n", t->at[t->len - 1]))
        t->len--;
    for (from = t->len; from > 0 && t->at[from - 1] != '\n';)
        from--;
    if (t->len == from || t->len - from >= sizeof line)
        return -1;
    memcpy(line, t->at + from, t->len - from);
    line[t->len - from] = '\0';
    value = strtod(line, &end);
    return *end == '\0' && value >= 0 && value < 366 * 86400.0 ? value : -1;
}

static void end(struct command *c, int status)
{
    char reason[TAIL_SIZE + 64];
    int at, code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

    if (code >= 0)
        at = snprintf(reason, sizeof reason, "exit %d", code);
    else
        at = snprintf(reason, sizeof reason, "killed by signal %d", WTERMSIG(status));
    for (size_t i = 0; i < c->err_tail.len; i++)
        if (c->err_tail.at[i] == '\0')
            c->err_tail.at[i] = ' ';
    if (c->err_tail.len > 0)
        snprintf(reason + at, sizeof reason - (size_t)at, ": %.*s", (int)c->err_tail.len, c->err_tail.at);
    if (code == 0)
        task_finish(c->task, END_DONE, -1, NULL);
    else if (code == EXIT_THROTTLED)
        task_finish(c->task, END_THROTTLED, last_number(&c->out_tail), reason);
    else
        task_finish(c->task, code == EXIT_DEAD ? END_DEAD : END_RETRY, -1, reason);
}

void command_run(struct task *task, const struct job_view *view)
{
    struct command c = {.task = task, .pidfd = -1, .in = -1, .out = -1, .err = -1};
    siginfo_t info;
    int status, rc = start(&c, view);

    if (rc != 0) {
        /* Neither the job's fault nor its provider's: no attempt is used and no limit paused, this executor
         * rests. */
        log_line(LOG_LEVEL_ERROR, "%s: cannot run %s: %s; the job is given back", task->handler->type,
                 task->handler->argv[0], strerror(rc));
        clock_sleep_until(clock_mono_us() + SPAWN_AGAIN_US);
        task_finish(task, END_BACK, 0, NULL);
        return;
    }
    converse(&c);
    /* The number stays reserved until waitpid: command_kill must not meet another process of that number. */
    while (waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    atomic_store(&task->process, 0);
    while (waitpid(c.pid, &status, 0) < 0 && errno == EINTR)
        ;
    end(&c, status);
}

void command_kill(struct task *task, int signal)
{
    pid_t pid = atomic_load(&task->process);

    if (pid > 0)
        kill(-pid, signal);
}
