#include "core/log/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

/* The signal that goes with the errno of a write; 0: none. */
static int signal_of(int failed)
{
    return failed == EPIPE ? SIGPIPE : failed == EFBIG ? SIGXFSZ : 0;
}

static void take_signal(int number)
{
    static const struct timespec at_once;
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, number);
    while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR)
        ;
}

ssize_t quiet_write(int fd, const void *bytes, size_t len)
{
    sigset_t blocked, before, pending;
    ssize_t n;
    int failed, number;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    sigaddset(&blocked, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    sigpending(&pending);
    n = write(fd, bytes, len);
    failed = errno;
    number = n < 0 ? signal_of(failed) : 0;
    if (number && !sigismember(&pending, number))
        take_signal(number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = failed;
    return n;
}
