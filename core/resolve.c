#include "core/resolve.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAME_SIZE 300

/* What getaddrinfo said: 0 and the addresses, or its error and errno. */
struct answer {
    int failed, error;
    struct addrinfo *all;
};

static struct answer ask(const struct redis_address *address, int flags)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct answer answer = {.all = NULL};
    char port[24];

    snprintf(port, sizeof port, "%d", address->port);
    answer.failed = getaddrinfo(address->host, port, &hints, &answer.all);
    answer.error = errno;
    return answer;
}

static int judge(const struct redis_address *address, const struct answer *answer, struct error *e)
{
    char name[NAME_SIZE];

    if (!answer->failed)
        return 0;
    redis_address_format(address, name, sizeof name);
    return error_set(e, WEIR_EUNREACHABLE, "redis %s: cannot find the host: %s; check its name", name,
                     answer->failed == EAI_SYSTEM ? strerror(answer->error) : gai_strerror(answer->failed));
}

bool resolve_at_once(const struct redis_address *address, struct addrinfo **all)
{
    struct answer answer = {.all = NULL};

    if (address->host[0])
        answer = ask(address, AI_NUMERICHOST | AI_NUMERICSERV);
    *all = answer.failed ? NULL : answer.all;
    return !answer.failed;
}

int resolve(const struct redis_address *address, struct addrinfo **all, struct error *e)
{
    struct answer answer;

    if (resolve_at_once(address, all))
        return 0;
    answer = ask(address, AI_ADDRCONFIG | AI_NUMERICSERV);
    *all = answer.failed ? NULL : answer.all;
    return judge(address, &answer, e);
}

/* ---- On a thread */

struct resolving {
    struct redis_address address;
    struct answer answer;
    int fd;
    atomic_bool answered;
    atomic_int holders; /* who asks, and the thread; the last one frees it */
};

void resolving_drop(struct resolving *r)
{
    if (!r || atomic_fetch_sub(&r->holders, 1) > 1)
        return;
    if (r->answer.all)
        freeaddrinfo(r->answer.all);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

static void *thread_main(void *arg)
{
    struct resolving *r = arg;

    r->answer = ask(&r->address, AI_ADDRCONFIG | AI_NUMERICSERV);
    if (r->answer.failed)
        r->answer.all = NULL;
    atomic_store(&r->answered, true);
    eventfd_write(r->fd, 1);
    resolving_drop(r);
    return NULL;
}

/* Without the signals of the process, which are for other threads. Returns an errno. */
static int start_thread(struct resolving *r)
{
    sigset_t all, before;
    pthread_t thread;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&r->holders, 2);
    failed = pthread_create(&thread, NULL, thread_main, r);
    if (failed)
        atomic_store(&r->holders, 1);
    else
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

int resolving_begin(const struct redis_address *address, struct resolving **r, struct error *e)
{
    struct resolving *new = calloc(1, sizeof *new);
    char name[NAME_SIZE];
    int failed = ENOMEM;

    if (new) {
        new->address = *address;
        new->holders = 1;
        new->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        failed = new->fd < 0 ? errno : start_thread(new);
    }
    if (!failed) {
        *r = new;
        return 0;
    }
    resolving_drop(new);
    redis_address_format(address, name, sizeof name);
    return error_set(e, WEIR_EINTERNAL,
                     "redis %s: cannot ask for the host: %s; raise the limits on threads and files", name,
                     strerror(failed));
}

int resolving_fd(const struct resolving *r)
{
    return r->fd;
}

int resolving_take(struct resolving *r, struct addrinfo **all, struct error *e)
{
    assert(atomic_load(&r->answered));
    *all = r->answer.all;
    r->answer.all = NULL;
    return judge(&r->address, &r->answer, e);
}

int resolving_timed_out(const struct resolving *r, double seconds, struct error *e)
{
    char name[NAME_SIZE];

    redis_address_format(&r->address, name, sizeof name);
    return error_set(
        e, WEIR_EUNREACHABLE,
        "redis %s: its name is not resolved within %g s; see whether the name server answers, or "
        "write the address in numbers",
        name, seconds);
}
