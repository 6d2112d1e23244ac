#include "cli/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES (256 * 1024)
#define LINE_MOST (JOB_BODY_MAX + 1)
#define CAPACITY (LINE_MOST + READ_BYTES)
#define WAIT_MS 100

static int cannot_read(const struct lines *l, int error, struct error *e)
{
    return error_set(e, WEIR_EINPUT, "%.200s: cannot be read: %s; name another file, or - for standard input",
                     l->name, strerror(error));
}

int lines_open(struct lines *l, const char *path, const volatile sig_atomic_t *stop, struct error *e)
{
    bool is_input = strcmp(path, "-") == 0;
    struct stat s;

    *l = (struct lines){.name = is_input ? "standard input" : path, .stop = stop, .idle_ms = WAIT_MS};
    l->fd = is_input ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (l->fd < 0)
        return cannot_read(l, errno, e);
    if (fstat(l->fd, &s) == 0 && S_ISREG(s.st_mode))
        l->size_bytes = (uint64_t)s.st_size;
    l->buffer = malloc(CAPACITY);
    if (l->buffer)
        return 0;
    lines_close(l);
    return error_set(e, WEIR_EINTERNAL, "%.200s: out of memory; free some and try again", l->name);
}

void lines_close(struct lines *l)
{
    if (l->fd > STDIN_FILENO)
        close(l->fd);
    free(l->buffer);
    l->buffer = NULL;
}

/* Room for another read behind the beginning of a line, of which no more than LINE_MOST bytes are kept. */
static void make_room(struct lines *l)
{
    if (l->end - l->begin > LINE_MOST)
        l->end = l->begin + LINE_MOST;
    if (CAPACITY - l->end >= READ_BYTES)
        return;
    memmove(l->buffer, l->buffer + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
}

/* LINES_ONE: there is more to look at, or the end was reached. */
static enum lines_result fill(struct lines *l, struct error *e)
{
    struct pollfd p = {.fd = l->fd, .events = POLLIN};
    ssize_t n;

    make_room(l);
    while (poll(&p, 1, l->told_idle ? WAIT_MS : l->idle_ms) <= 0) {
        if (*l->stop)
            return LINES_END;
        if (!l->told_idle) {
            l->told_idle = true;
            return LINES_IDLE;
        }
    }
    l->told_idle = false;
    n = read(l->fd, l->buffer + l->end, READ_BYTES);
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
        cannot_read(l, errno, e);
        return LINES_FAILED;
    }
    l->end += n > 0 ? (size_t)n : 0;
    l->at_end = n == 0;
    return *l->stop ? LINES_END : LINES_ONE;
}

static enum lines_result give(struct lines *l, size_t len, size_t passed, struct span *line)
{
    *line = (struct span){l->buffer + l->begin, len < LINE_MOST ? len : LINE_MOST};
    l->begin += passed;
    l->bytes += passed;
    l->number++;
    return LINES_ONE;
}

enum lines_result lines_next(struct lines *l, struct span *line, struct error *e)
{
    size_t looked = 0; /* bytes of this line without a newline */

    for (;;) {
        const char *from = l->buffer + l->begin + looked;
        const char *newline = memchr(from, '\n', l->end - l->begin - looked);
        enum lines_result result;

        if (newline) {
            size_t len = (size_t)(newline - (l->buffer + l->begin));

            return give(l, len, len + 1, line);
        }
        looked = l->end - l->begin;
        if (l->at_end)
            return looked ? give(l, looked, looked, line) : LINES_END;
        result = fill(l, e);
        if (result != LINES_ONE)
            return result;
        looked = looked < LINE_MOST ? looked : LINE_MOST;
    }
}
