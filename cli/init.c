#include "cli/init.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const int passed_on[] = {SIGTERM, SIGINT, SIGTSTP, SIGHUP, SIGALRM, SIGPWR, SIGQUIT, SIGUSR1, SIGUSR2};
#define PASSED_ON (sizeof passed_on / sizeof *passed_on)

/* Waits for all that have ended; true when the child has, with its exit code. */
static bool reap(pid_t child, int *code)
{
    bool ended = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != child)
            continue;
        *code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        ended = true;
    }
    return ended;
}

static _Noreturn void stay(pid_t child, const sigset_t *signals)
{
    int code = -WEIR_EINTERNAL;

    for (;;) {
        int number = sigwaitinfo(signals, NULL);

        if (number == SIGCHLD && reap(child, &code))
            _exit(code);
        if (number > 0 && number != SIGCHLD)
            kill(child, number);
    }
}

int init_stay_behind(struct error *e)
{
    sigset_t signals, before;
    pid_t child;

    if (getpid() != 1)
        return 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    for (size_t i = 0; i < PASSED_ON; i++)
        sigaddset(&signals, passed_on[i]);
    sigprocmask(SIG_BLOCK, &signals, &before);
    child = fork();
    if (child < 0)
        return error_set(e, WEIR_EINTERNAL, "worker: cannot fork: %s; raise the limit on processes",
                         strerror(errno));
    if (child > 0)
        stay(child, &signals);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return 0;
}
