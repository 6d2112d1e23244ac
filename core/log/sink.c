#include "core/log/sink.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "core/log/quiet.h"

void sink_to(struct sink *s, int fd)
{
    struct stat found;
    bool known = fstat(fd, &found) == 0;

    s->fd = fd;
    s->is_pipe = known && S_ISFIFO(found.st_mode);
    s->is_socket = known && S_ISSOCK(found.st_mode);
    sink_rewind(s);
}

void sink_rewind(struct sink *s)
{
    s->written = 0;
}

/* Writes as write(2), but fails with EAGAIN instead of waiting. */
static ssize_t write_now(const struct sink *s, const char *bytes, size_t len)
{
    struct pollfd out = {.fd = s->fd, .events = POLLOUT};

    if (s->is_socket)
        return send(s->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (poll(&out, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
    }
    return quiet_write(s->fd, bytes, len);
}

/* Returns how much to write at once: to a pipe whole lines, which then no other process tears. */
static size_t piece(const struct sink *s)
{
    const char *at = s->lines + s->written, *newline;
    size_t left = s->to - s->written;

    if (!s->is_pipe || left <= PIPE_BUF)
        return left;
    newline = memrchr(at, '\n', PIPE_BUF);
    return newline ? (size_t)(newline + 1 - at) : PIPE_BUF;
}

/* Lines that are out make room. */
static void let_go(struct sink *s)
{
    const char *newline = memrchr(s->lines, '\n', s->written);
    size_t out = newline ? (size_t)(newline + 1 - s->lines) : 0;

    memmove(s->lines, s->lines + out, s->to - out);
    s->written -= out;
    s->to -= out;
}

static int write_out(struct sink *s)
{
    int failed = 0;

    while (failed == 0 && s->written < s->to) {
        ssize_t n = write_now(s, s->lines + s->written, piece(s));

        if (n > 0)
            s->written += (size_t)n;
        else if (n == 0 || errno != EINTR)
            failed = n == 0 ? EIO : errno;
    }
    if (s->written > 0)
        let_go(s);
    return failed;
}

int sink_flush(struct sink *s)
{
    int failed = write_out(s);

    if (s->dropped == 0 || s->to + SINK_MARK_SIZE > s->size / 2)
        return failed;
    s->to += s->mark(s->lines + s->to, s->dropped);
    s->dropped = 0;
    return failed ? failed : write_out(s);
}

bool sink_add(struct sink *s, const char *line, size_t len)
{
    if (s->dropped > 0 || s->size - s->to < len)
        sink_flush(s);
    if (s->dropped > 0 || s->size - s->to < len) {
        s->dropped++;
        return false;
    }
    memcpy(s->lines + s->to, line, len);
    s->to += len;
    return true;
}

void sink_forget(struct sink *s)
{
    s->written = s->to = 0;
    s->dropped = 0;
}

uint64_t sink_missing(const struct sink *s)
{
    uint64_t count = s->dropped;

    for (const char *at = s->lines; (at = memchr(at, '\n', (size_t)(s->lines + s->to - at))); at++)
        count++;
    return count;
}
