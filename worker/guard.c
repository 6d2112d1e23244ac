/* The end of the lease, when the loop stands still: an asynchronous handler that blocks, a disk or a file
 * system that does not answer. Then nothing on the loop ends what runs, and others run it too. So a thread
 * checks whether the loop ticks; if it does not, the lease is over and jobs run, the process ends with 70, and
 * its children with it. The line that says so gets a second: what holds the loop may hold the log too. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/spawn.h"
#include "worker/worker.h"

#define CHECK_MS 500
#define CHECKS_MOST                                                                                          \
    4 /* checks without a tick that are allowed: after a SIGSTOP, too, the loop may first end by itself what runs */
#define LAST_WORD_US 1000000

static void *end_soon(void *arg)
{
    (void)arg;
    clock_sleep_until(clock_mono_us() + LAST_WORD_US);
    _exit(-WEIR_EINTERNAL);
}

/* Kills a command with its process group; children that stay end with the worker, alone. */
static void kill_command(struct task *task, void *arg)
{
    const struct way *way = task->handler->runner->way;

    (void)arg;
    if (way->run && way->end)
        way->end(task, true);
}

static void end_process(const struct weir_worker *w)
{
    pthread_t thread;

    pool_each(w->common.pool, NULL, kill_command, NULL);
    if (pthread_create(&thread, NULL, end_soon, NULL) == 0)
        log_line(
            LOG_LEVEL_ERROR,
            "the worker's loop stands still past the end of its lease of %g s, and others may run its jobs: "
            "exit 70; find what holds it, such as an asynchronous handler that blocks, or a disk",
            (double)w->common.options.lease_us / 1e6);
    log_flush();
    _exit(-WEIR_EINTERNAL);
}

/* True when the lease of one of the partitions is over. A lease at 0 was given up, or was never taken. */
static bool is_past_lease(const struct weir_worker *w)
{
    for (int i = 0; i < w->common.partition_count; i++) {
        const struct conditions *conditions = &w->common.partitions[i]->conditions;

        if (atomic_load(&conditions->lease_end_us) != 0 && lease_is_over(conditions))
            return true;
    }
    return false;
}

static void *guard_main(void *arg)
{
    struct weir_worker *w = arg;
    struct pollfd stop = {.fd = w->guard.fd, .events = POLLIN};
    unsigned seen = 0, ticks;
    int checks = 0;

    while (poll(&stop, 1, CHECK_MS) <= 0) {
        ticks = atomic_load(&w->guard.ticks);
        checks = ticks == seen && is_past_lease(w) ? checks + 1 : 0;
        seen = ticks;
        if (checks > CHECKS_MOST && pool_load(w->common.pool).running > 0)
            end_process(w);
    }
    return NULL;
}

/* Starts the guard's thread. Returns 0 or an errno. */
static int start(struct weir_worker *w)
{
    sigset_t all, before;
    int failed;

    if ((w->guard.fd = eventfd(0, EFD_CLOEXEC)) < 0)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&w->guard.thread, NULL, guard_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        close_fd(&w->guard.fd);
    return failed;
}

void worker_guard_open(struct weir_worker *w)
{
    int failed = start(w);

    if (failed)
        log_line(LOG_LEVEL_WARN,
                 "no thread to see that the loop does not stand still: %s; raise the limits on processes and "
                 "open files",
                 strerror(failed));
}

void worker_guard_close(struct weir_worker *w)
{
    if (w->guard.fd < 0)
        return;
    eventfd_write(w->guard.fd, 1);
    pthread_join(w->guard.thread, NULL);
    close_fd(&w->guard.fd);
}

void worker_guard_tick(struct weir_worker *w)
{
    atomic_fetch_add(&w->guard.ticks, 1);
}
