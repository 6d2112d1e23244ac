#include "core/redis/resolve.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log/quiet.h"

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
    int read_fd, write_fd; /* of a pipe; each is closed by its side */
    atomic_bool answered;
    atomic_int holders; /* who asks, and the thread; the last one frees it */
};

static void release(struct resolving *r)
{
    if (atomic_fetch_sub(&r->holders, 1) > 1)
        return;
    if (r->answer.all)
        freeaddrinfo(r->answer.all);
    free(r);
}

void resolving_drop(struct resolving *r)
{
    if (!r)
        return;
    close(r->read_fd);
    release(r);
}

static void *thread_main(void *arg)
{
    struct resolving *r = arg;

    r->answer = ask(&r->address, AI_ADDRCONFIG | AI_NUMERICSERV);
    if (r->answer.failed)
        r->answer.all = NULL;
    atomic_store(&r->answered, true);
    quiet_write(r->write_fd, "", 1);
    close(r->write_fd);
    release(r);
    return NULL;
}

static int open_pipe(struct resolving *r)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return errno;
    r->read_fd = ends[0];
    r->write_fd = ends[1];
    return 0;
}

/* Without the signals of the process, which are for other threads. Returns an errno. */
static int start_thread(struct resolving *r)
{
    sigset_t all, before;
    pthread_t thread;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, NULL, thread_main, r);
    if (!failed)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* One that has no thread. */
static void forget(struct resolving *r)
{
    if (r && r->read_fd >= 0) {
        close(r->read_fd);
        close(r->write_fd);
    }
    free(r);
}

int resolving_begin(const struct redis_address *address, struct resolving **r, struct error *e)
{
    struct resolving *new = calloc(1, sizeof *new);
    char name[NAME_SIZE];
    int failed = ENOMEM;

    if (new) {
        *new = (struct resolving){.address = *address, .read_fd = -1, .write_fd = -1, .holders = 2};
        failed = open_pipe(new);
    }
    if (!failed)
        failed = start_thread(new);
    if (!failed) {
        *r = new;
        return 0;
    }
    forget(new);
    redis_address_format(address, name, sizeof name);
    return error_set(e, WEIR_EINTERNAL,
                     "redis %s: cannot ask for the host: %s; raise the limits on threads and files", name,
                     strerror(failed));
}

int resolving_fd(const struct resolving *r)
{
    return r->read_fd;
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
