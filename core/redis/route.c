#include "core/redis/route.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log/quiet.h"
#include "core/redis/cluster.h"
#include "core/redis/lookup.h"
#include "core/redis/sentinel.h"
#include "core/wire/credential.h"
#include "core/wire/resolve.h"

#define RESOLVE_S 5

bool route_at_once(const struct redis_address *address, struct route *r)
{
    *r = (struct route){.to = *address};
    return address->finder == REDIS_NAMED && !address->tls && !credential_is_asked(address) &&
           resolve_at_once(address, &r->all);
}

int route_find(const struct redis_address *address, struct route *r, struct watch **watch, struct error *e)
{
    struct redis_address to = *address;
    int status = 0;

    *watch = NULL;
    if (credential_is_asked(address))
        status = credential_ask(&to, e);
    if (!status && address->finder == REDIS_BY_SENTINELS)
        status = sentinel_find(address, &to, watch, e);
    else if (!status && address->finder == REDIS_BY_CLUSTER)
        status = cluster_find(&to, &to, e);
    if (!status)
        status = route_direct(&to, r, e);
    if (status) {
        watch_free(*watch);
        *watch = NULL;
    }
    return status;
}

/* ---- On a thread */

struct routing {
    struct redis_address address;
    struct route route;
    struct watch *watch;
    struct error error;    /* 0: it was found */
    int read_fd, write_fd; /* of a pipe; each is closed by its side */
    atomic_bool answered;
    atomic_int holders; /* who asks, and the thread; the last one frees it */
};

static void release(struct routing *r)
{
    if (atomic_fetch_sub(&r->holders, 1) > 1)
        return;
    route_free(&r->route);
    watch_free(r->watch);
    free(r);
}

void routing_drop(struct routing *r)
{
    if (!r)
        return;
    close(r->read_fd);
    release(r);
}

static void *thread_main(void *arg)
{
    struct routing *r = arg;

    if (route_find(&r->address, &r->route, &r->watch, &r->error) == 0)
        r->error.status = 0;
    atomic_store(&r->answered, true);
    quiet_write(r->write_fd, "", 1);
    close(r->write_fd);
    release(r);
    return NULL;
}

static int open_pipe(struct routing *r)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return errno;
    r->read_fd = ends[0];
    r->write_fd = ends[1];
    return 0;
}

/* Without the signals of the process, which are for other threads. Returns an errno. */
static int start_thread(struct routing *r)
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
static void forget(struct routing *r)
{
    if (r && r->read_fd >= 0) {
        close(r->read_fd);
        close(r->write_fd);
    }
    free(r);
}

int routing_begin(const struct redis_address *address, struct routing **r, struct error *e)
{
    struct routing *new = calloc(1, sizeof *new);
    char name[REDIS_NAME_SIZE];
    int failed = ENOMEM;

    if (new) {
        *new = (struct routing){.address = *address, .read_fd = -1, .write_fd = -1, .holders = 2};
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

int routing_fd(const struct routing *r)
{
    return r->read_fd;
}

int routing_take(struct routing *r, struct route *route, struct watch **watch, struct error *e)
{
    assert(atomic_load(&r->answered));
    *e = r->error;
    if (e->status)
        return e->status;
    *route = r->route;
    *watch = r->watch;
    r->watch = NULL;
    r->route.all = NULL;
    r->route.tls = NULL;
    return 0;
}

int routing_limit_s(const struct redis_address *address)
{
    return RESOLVE_S + (address->password_command[0] ? CREDENTIAL_COMMAND_S : 0) +
           (address->finder == REDIS_NAMED ? 0 : RESOLVE_S + LOOKUP_MS / 1000);
}

int routing_timed_out(const struct routing *r, struct error *e)
{
    char name[REDIS_NAME_SIZE];

    redis_address_format(&r->address, name, sizeof name);
    return error_set(
        e, WEIR_EUNREACHABLE,
        "redis %s: its name is not resolved within %d s; see whether the name server answers, or "
        "write the address in numbers",
        name, routing_limit_s(&r->address));
}
