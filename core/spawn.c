#include "core/spawn.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void close_fd(int *fd)
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

/* True for a variable of a job: it is another job's, when the worker itself was started with it. */
static bool is_of_a_job(const char *variable)
{
    static const char *const begins[] = {"WEIR_JOB_", "TRACEPARENT="};

    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(variable, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

/* Returns these variables, and environ without those of a job. The caller frees the array alone. */
static char **make_environment(char *const variables[], size_t n)
{
    size_t count = 0;
    char **env;

    while (environ[count])
        count++;
    if (!(env = calloc(count + n + 1, sizeof *env)))
        return NULL;
    for (size_t i = 0; i < n; i++)
        env[i] = variables[i];
    for (size_t i = 0; i < count; i++)
        if (!is_of_a_job(environ[i]))
            env[n++] = environ[i];
    return env;
}

/* Becomes the program, in the child, which borrows our memory until then: all signals as a fresh process has them,
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

/* vfork: a large worker is not copied, and unlike posix_spawn it allows PR_SET_PDEATHSIG. Returns an errno.
 */
static int spawn(pid_t *pid, char *const argv[], char *const env[], const struct pipes *p)
{
    volatile int failed = 0;
    pid_t worker = getpid(), child;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    child = vfork();
    if (child == 0) {
        become(argv, env, p, worker);
        failed = errno;
        _exit(127);
    }
    if (child < 0)
        failed = errno;
    else if (failed != 0)
        waitpid(child, NULL, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *pid = child;
    return failed;
}

int process_start(struct process *p, char *const argv[], char *const variables[], size_t n)
{
    struct pipes pipes;
    char **env = NULL;
    int rc;

    if (open_pipes(&pipes) != 0)
        rc = errno;
    else if (!(env = make_environment(variables, n)))
        rc = ENOMEM;
    else
        rc = spawn(&p->pid, argv, env, &pipes);
    if (rc == 0) {
        *p = (struct process){p->pid, (int)syscall(SYS_pidfd_open, p->pid, 0), pipes.in[1], pipes.out[0],
                              pipes.err[0]};
        pipes.in[1] = pipes.out[0] = pipes.err[0] = -1;
        fcntl(p->in, F_SETFL, O_NONBLOCK);
        fcntl(p->out, F_SETFL, O_NONBLOCK);
        fcntl(p->err, F_SETFL, O_NONBLOCK);
    }
    close_pipes(&pipes);
    free(env);
    return rc;
}

/* ---- What it leaves */

_Static_assert(!WIFEXITED(PROCESS_END_UNKNOWN) && !WIFSIGNALED(PROCESS_END_UNKNOWN), "it is neither");

int process_wait(pid_t pid)
{
    int status;
    pid_t ended;

    while ((ended = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    return ended == pid ? status : PROCESS_END_UNKNOWN;
}

void tail_keep(struct tail *t, const char *bytes, size_t len)
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

bool process_was_terminated(int status)
{
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
           (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGTERM);
}

void process_reason(char reason[END_REASON_SIZE], int status, const struct tail *err)
{
    size_t len = err->len;
    int at;

    if (WIFEXITED(status))
        at = snprintf(reason, END_REASON_SIZE, "exit %d", WEXITSTATUS(status));
    else if (WIFSIGNALED(status))
        at = snprintf(reason, END_REASON_SIZE, "killed by signal %d", WTERMSIG(status));
    else
        at = snprintf(reason, END_REASON_SIZE,
                      "how it ended is unknown, since SIGCHLD is ignored or a handler waits for any child");
    while (len > 0 && isspace((unsigned char)err->at[len - 1]))
        len--;
    if (len == 0)
        return;
    at += snprintf(reason + at, (size_t)(END_REASON_SIZE - at), ": ");
    for (size_t i = 0; i < len; i++)
        reason[at++] = iscntrl((unsigned char)err->at[i]) ? ' ' : err->at[i];
    reason[at] = '\0';
}
