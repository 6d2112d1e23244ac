#include "worker/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"

#define LINE_MAX_BYTES 16384 /* sixteen rules of 272 in sixteen limits, three names of 128, numbers */

struct trace {
    pthread_mutex_t lock;
    int fd;
    bool failed;
    size_t len;
    char lines[64 * 1024];
};

/* A worker that was killed, or a disk that was full, may have left half a line: without this the next one
 * would be joined to it. */
static bool cut_torn_line(int fd)
{
    char tail[LINE_MAX_BYTES];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0;
    ssize_t n = pread(fd, tail, (size_t)(size - from), from);
    const char *newline = n > 0 ? memrchr(tail, '\n', (size_t)n) : NULL;

    return n <= 0 || tail[n - 1] == '\n' || ftruncate(fd, newline ? from + (newline + 1 - tail) : from) == 0;
}

static bool write_all(const struct trace *t)
{
    for (size_t done = 0; done < t->len;) {
        ssize_t n = write(t->fd, t->lines + done, t->len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static void write_lines(struct trace *t)
{
    bool failed;

    if (t->len == 0)
        return;
    failed = (t->failed && !cut_torn_line(t->fd)) || !write_all(t);
    if (failed && !t->failed)
        log_line(LOG_LEVEL_WARN, "trace: %s; lines are lost, jobs run on", strerror(errno));
    else if (!failed && t->failed)
        log_line(LOG_LEVEL_INFO, "trace: lines are kept again");
    t->failed = failed;
    t->len = 0;
}

static void add_line(struct trace *t, const char *fmt, ...)
{
    va_list args;
    int len;

    va_start(args, fmt);
    pthread_mutex_lock(&t->lock);
    if (sizeof t->lines - t->len < LINE_MAX_BYTES)
        write_lines(t);
    len = vsnprintf(t->lines + t->len, LINE_MAX_BYTES, fmt, args);
    if (len > 0 && len < LINE_MAX_BYTES)
        t->len += (size_t)len;
    pthread_mutex_unlock(&t->lock);
    va_end(args);
}

struct trace *trace_open(const char *file, struct error *e)
{
    struct trace *t = calloc(1, sizeof *t);

    if (!t) {
        error_set(e, WEIR_EINTERNAL, "trace: out of memory");
        return NULL;
    }
    t->fd = open(file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (t->fd < 0) {
        error_set(e, WEIR_ECONFIG, "trace %s: %s; name a file that can be written", file, strerror(errno));
        free(t);
        return NULL;
    }
    if (!cut_torn_line(t->fd))
        log_line(LOG_LEVEL_WARN, "trace %s: its last line is torn: %s", file, strerror(errno));
    pthread_mutex_init(&t->lock, NULL);
    add_line(t, "{\"opened\":%" PRId64 "}\n", clock_wall_us());
    return t;
}

void trace_start(struct trace *t, const struct task *task, const struct job_view *view)
{
    char key[160] = "", cost[40] = "";
    int64_t start_us = clock_wall_us();

    if (task->key.len > 0)
        snprintf(key, sizeof key, ",\"key\":\"%.*s\"", (int)task->key.len, task->key.at);
    if (task->cost != 1)
        snprintf(cost, sizeof cost, ",\"cost\":%" PRId64, task->cost);
    add_line(t,
             "{\"slot\":%" PRId64 ",\"start\":%" PRId64
             ",\"type\":\"%.*s\"%s%s,\"id\":\"%.*s\",\"limits\":\"%s\"}\n",
             task->slot_us, start_us, (int)view->type.len, view->type.at, key, cost, (int)view->id.len,
             view->id.at, task->limits);
}

void trace_end(struct trace *t, const struct task *task, const struct job_view *view)
{
    int64_t end_us = clock_wall_us();

    if (task_settles_up(task))
        add_line(t, "{\"spent\":%" PRId64 ",\"slot\":%" PRId64 ",\"type\":\"%.*s\",\"id\":\"%.*s\"}\n",
                 task->spent, task->slot_us, (int)view->type.len, view->type.at, (int)view->id.len,
                 view->id.at);
    if (task_settles_up(task) || strstr(task->limits, "concurrency:"))
        add_line(t, "{\"end\":%" PRId64 ",\"type\":\"%.*s\",\"id\":\"%.*s\"}\n", end_us, (int)view->type.len,
                 view->type.at, (int)view->id.len, view->id.at);
}

void trace_flush(struct trace *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    write_lines(t);
    pthread_mutex_unlock(&t->lock);
}

void trace_close(struct trace *t)
{
    if (!t)
        return;
    trace_flush(t);
    close(t->fd);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
