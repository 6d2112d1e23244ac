#include "worker/way/pipe_child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/log/quiet.h"
#include "core/spawn.h"

#define READ_SIZE (64 * 1024) /* what a pipe holds; an event reads no more, so that others get their turn */
#define REST_READS                                                                                           \
    64 /* reads of what an ended process left; another process that holds the pipe may write for ever */
#define ERR_LINE_MOST 1000 /* bytes of a line of standard error that go to the log */

struct buffer {
    char *at;
    size_t from, to, capacity; /* the bytes from `from` to `to` are not yet taken */
};

struct child {
    struct ev_loop *loop;
    const char *name;
    const struct child_events *events;
    void *arg;
    struct process process;
    ev_io ended_io, in_io, out_io, err_io;
    ev_timer timer; /* runs while it may still end by itself, or by TERM */
    int64_t kill_after_us;
    struct buffer in, out;
    uint64_t sent, taken; /* bytes; taken is known once it has ended */
    char err_line[ERR_LINE_MOST];
    size_t err_len;
    struct tail err_tail;
    char why[128]; /* why it is not trusted any more; "": it is */
    bool ending, closing, termed, reaped, terminated;
};

/* ---- Buffers */

/* Makes room for `more` bytes at the end. false: out of memory. */
static bool buffer_reserve(struct buffer *b, size_t more)
{
    size_t capacity = b->capacity ? b->capacity : READ_SIZE;
    char *grown;

    if (b->to + more <= b->capacity)
        return true;
    if (b->from > 0) {
        memmove(b->at, b->at + b->from, b->to - b->from);
        b->to -= b->from;
        b->from = 0;
    }
    while (capacity < b->to + more)
        capacity *= 2;
    if (capacity == b->capacity)
        return true;
    if (!(grown = realloc(b->at, capacity)))
        return false;
    b->at = grown;
    b->capacity = capacity;
    return true;
}

static void buffer_take(struct buffer *b, size_t n)
{
    b->from += n;
    if (b->from == b->to)
        b->from = b->to = 0;
}

/* ---- Ending */

static void signal_group(struct child *c, int signal)
{
    if (!c->reaped)
        kill(-c->process.pid, signal);
}

void child_end_soon(struct child *c)
{
    if (ev_is_active(&c->timer))
        return;
    ev_now_update(c->loop);
    ev_timer_set(&c->timer, (double)c->kill_after_us / 1e6, 0);
    ev_timer_start(c->loop, &c->timer);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop, (void)events;
    child_end(timer->data, ((struct child *)timer->data)->termed);
}

static void close_side(struct child *c, ev_io *io, int *fd)
{
    ev_io_stop(c->loop, io);
    close_fd(fd);
}

void child_end(struct child *c, bool force)
{
    c->ending = true;
    if (c->termed && !force)
        return;
    ev_timer_stop(c->loop, &c->timer);
    c->termed = true;
    signal_group(c, force ? SIGKILL : SIGTERM);
    if (!force)
        child_end_soon(c);
}

void child_distrust(struct child *c, const char *why)
{
    if (c->why[0])
        return;
    snprintf(c->why, sizeof c->why, "%s", why);
    child_end(c, false);
}

bool child_is_ending(const struct child *c)
{
    return c->ending;
}

static void stop_watchers(struct child *c)
{
    ev_io_stop(c->loop, &c->ended_io);
    ev_timer_stop(c->loop, &c->timer);
    close_side(c, &c->in_io, &c->process.in);
    close_side(c, &c->out_io, &c->process.out);
    close_side(c, &c->err_io, &c->process.err);
}

/* Kills what is left of the process group, then waits for the child: until waitpid() its number cannot be another process's. Returns its
 * status. */
static int reap(struct child *c)
{
    int status;

    signal_group(c, SIGKILL);
    status = process_wait(c->process.pid);
    c->reaped = true;
    c->terminated = process_was_terminated(status);
    return status;
}

/* ---- What it writes */

static void hand_over(struct child *c)
{
    char *newline;

    while (c->out.from < c->out.to && !c->why[0]) {
        char *line = c->out.at + c->out.from;
        size_t len = c->out.to - c->out.from;

        if (!(newline = memchr(line, '\n', len))) {
            if (len > CHILD_LINE_MOST)
                child_distrust(c, "it wrote a line of more than 1 MiB");
            return;
        }
        len = (size_t)(newline - line);
        if (len > CHILD_LINE_MOST)
            child_distrust(c, "it wrote a line of more than 1 MiB");
        else
            c->events->on_line(c->arg, line, len);
        buffer_take(&c->out, len + 1);
    }
    if (c->why[0])
        c->out.from = c->out.to = 0;
}

/* Reads standard output. 1: something was read; 0: nothing is there now; -1: it has ended. */
static int read_out(struct child *c)
{
    ssize_t n;

    if (!buffer_reserve(&c->out, READ_SIZE)) {
        child_distrust(c, "out of memory");
        return -1;
    }
    n = read(c->process.out, c->out.at + c->out.to, READ_SIZE);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    c->out.to += (size_t)n;
    hand_over(c);
    return 1;
}

static void log_err_line(struct child *c)
{
    if (c->err_len > 0)
        log_fields(LOG_LEVEL_INFO, &(struct log_field){"type", c->name, strlen(c->name), false}, 1, "%.*s",
                   (int)c->err_len, c->err_line);
    c->err_len = 0;
}

/* Keeps what it wrote to standard error, and logs whole lines; of a line that is too long the beginning. */
static void keep_err(struct child *c, const char *bytes, size_t n)
{
    tail_keep(&c->err_tail, bytes, n);
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n')
            log_err_line(c);
        else if (c->err_len < sizeof c->err_line)
            c->err_line[c->err_len++] = bytes[i] ? bytes[i] : ' ';
    }
}

static int read_err(struct child *c)
{
    char bytes[4096];
    ssize_t n = read(c->process.err, bytes, sizeof bytes);

    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    keep_err(c, bytes, (size_t)n);
    return 1;
}

/* Counts the bytes that it has taken from its standard input. What is left in the pipe was not taken; this can be asked after its end, too. */
static uint64_t count_taken(const struct child *c)
{
    uint64_t left = c->in.to - c->in.from;
    int unread = 0;

    if (c->process.in >= 0 && ioctl(c->process.in, FIONREAD, &unread) == 0)
        left += (uint64_t)unread;
    return c->sent - left;
}

/* Reaps the child, hands over its last lines, and reports its end. */
static void finish(struct child *c)
{
    char reason[END_REASON_SIZE], whole[END_REASON_SIZE + sizeof c->why + 2];
    int status = reap(c);

    c->taken = count_taken(c);
    for (int i = 0; c->process.out >= 0 && i < REST_READS && read_out(c) > 0; i++)
        ;
    for (int i = 0; c->process.err >= 0 && i < REST_READS && read_err(c) > 0; i++)
        ;
    log_err_line(c);
    stop_watchers(c);
    process_reason(reason, status, &c->err_tail);
    snprintf(whole, sizeof whole, "%s%s%s", c->why, c->why[0] ? ": " : "", reason);
    c->events->on_end(c->arg, whole);
}

static void on_out(struct ev_loop *loop, ev_io *io, int events)
{
    struct child *c = io->data;

    (void)loop, (void)events;
    if (read_out(c) >= 0)
        return;
    close_side(c, &c->out_io, &c->process.out);
    if (c->process.pidfd < 0) {
        finish(c);
        return;
    }
    c->ending = true; /* it can answer no more; mostly it is just ending */
    child_end_soon(c);
}

static void on_err(struct ev_loop *loop, ev_io *io, int events)
{
    struct child *c = io->data;

    (void)loop, (void)events;
    if (read_err(c) < 0)
        close_side(c, &c->err_io, &c->process.err);
}

static void on_ended(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop, (void)events;
    finish(io->data);
}

/* ---- What it is sent */

static void end_input(struct child *c)
{
    ev_io_stop(c->loop, &c->in_io);
    if (c->closing)
        close_fd(&c->process.in);
}

static void on_in(struct ev_loop *loop, ev_io *io, int events)
{
    struct child *c = io->data;
    ssize_t n = quiet_write(c->process.in, c->in.at + c->in.from, c->in.to - c->in.from);

    (void)loop, (void)events;
    if (n > 0) {
        buffer_take(&c->in, (size_t)n);
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) { /* it reads no more */
        ev_io_stop(c->loop, &c->in_io);
        c->ending = true;
        child_end_soon(c);
        return;
    }
    if (c->in.from == c->in.to)
        end_input(c);
}

char *child_line(struct child *c, size_t len)
{
    return buffer_reserve(&c->in, len) ? c->in.at + c->in.to : NULL;
}

void child_send(struct child *c, size_t len)
{
    c->in.to += len;
    c->sent += len;
    ev_io_start(c->loop, &c->in_io);
}

uint64_t child_sent(const struct child *c)
{
    return c->sent;
}

uint64_t child_taken(const struct child *c)
{
    return c->reaped ? c->taken : count_taken(c);
}

void child_close(struct child *c)
{
    if (c->closing)
        return;
    c->closing = c->ending = true;
    if (c->in.from == c->in.to)
        end_input(c);
}

/* ---- Its life */

static void watch(struct child *c, ev_io *io, void (*on_event)(struct ev_loop *, ev_io *, int), int fd,
                  int events)
{
    ev_io_init(io, on_event, fd, events);
    io->data = c;
    if (events == EV_READ && fd >= 0)
        ev_io_start(c->loop, io);
}

struct child *child_start(struct ev_loop *loop, const char *name, char *const argv[], int64_t kill_after_us,
                          const struct child_events *events, void *arg, int *rc)
{
    struct child *c = calloc(1, sizeof *c);

    if (!c) {
        *rc = ENOMEM;
        return NULL;
    }
    c->loop = loop;
    c->name = name;
    c->events = events;
    c->arg = arg;
    c->kill_after_us = kill_after_us;
    if ((*rc = process_start(&c->process, argv, NULL, 0)) != 0) {
        free(c);
        return NULL;
    }
    watch(c, &c->ended_io, on_ended, c->process.pidfd, EV_READ);
    watch(c, &c->out_io, on_out, c->process.out, EV_READ);
    watch(c, &c->err_io, on_err, c->process.err, EV_READ);
    watch(c, &c->in_io, on_in, c->process.in, EV_WRITE);
    ev_timer_init(&c->timer, on_timer, 0, 0);
    c->timer.data = c;
    return c;
}

void child_free(struct child *c)
{
    if (!c)
        return;
    stop_watchers(c);
    if (!c->reaped)
        reap(c);
    close_fd(&c->process.pidfd);
    free(c->in.at);
    free(c->out.at);
    free(c);
}

bool child_wait(struct child *c, int64_t until_us)
{
    int64_t left_us = until_us - clock_mono_us();
    struct pollfd p = {.fd = c->process.pidfd, .events = POLLIN};

    if (left_us < 0)
        left_us = 0;
    return p.fd >= 0 && poll(&p, 1, (int)(left_us / 1000)) > 0;
}

bool child_was_terminated(const struct child *c)
{
    return c->terminated;
}

int child_pid(const struct child *c)
{
    return (int)c->process.pid;
}
