#include "worker/way/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/log/quiet.h"
#include "core/log/sink.h"
#include "queue/job/job_cost.h"
#include "throttle/verify/verify.h"
#include "worker/way/handler.h"

#define LINE_MAX_BYTES 16384    /* sixteen rules of 272 in sixteen limits, three names of 128, numbers */
#define WRITE_SIZE (48 * 1024)  /* at so many bytes a thread writes, and does not wait for the loop */
#define KEPT_SIZE (1024 * 1024) /* bytes of lines that cannot be written now */
#define REST_US 1000000

struct trace {
    pthread_mutex_t lock;
    bool regular;  /* a file on a disk: its end can be cut */
    bool losing;   /* lines are dropped */
    uint64_t lost; /* lines that were dropped since then */
    char by[9];    /* the name of this writer: others may write to the same file */
    struct sink sink;
    char lines[KEPT_SIZE];
};

static size_t mark(char line[SINK_MARK_SIZE], uint64_t dropped)
{
    return (size_t)snprintf(line, SINK_MARK_SIZE, "{\"lost\":%" PRIu64 "}\n", dropped);
}

/* ---- The end of the file */

/* Cuts the last line, or only one that is torn: a worker that was killed, or a disk that was full, may have
 * left half a line, to which the next one would be joined. Returns how many lines are missing then (a mark
 * counts as those that it reports); -1: errno. */
static int64_t cut_last_line(int fd, bool only_torn)
{
    char tail[LINE_MAX_BYTES + 1];
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > LINE_MAX_BYTES ? size - LINE_MAX_BYTES : 0;
    ssize_t n = pread(fd, tail, (size_t)(size - from), from), end = n;
    uint64_t missing = 1;
    char *line;

    if (n <= 0 || (tail[n - 1] == '\n' && only_torn))
        return 0;
    if (tail[n - 1] == '\n')
        end--;
    tail[end] = '\0';
    line = memrchr(tail, '\n', (size_t)end);
    line = line ? line + 1 : tail;
    sscanf(line, "{\"lost\":%" SCNu64 "}", &missing);
    return ftruncate(fd, from + (line - tail)) == 0 ? (int64_t)missing : -1;
}

/* Puts the mark that so many more lines are missing in place of the last line, as the file cannot grow. */
static void mark_in_place(struct trace *t, uint64_t lost)
{
    char line[SINK_MARK_SIZE];
    int64_t missing;

    if (!t->regular || cut_last_line(t->sink.fd, true) < 0)
        return;
    sink_rewind(&t->sink);
    missing = cut_last_line(t->sink.fd, false);
    if (missing >= 0)
        quiet_write(t->sink.fd, line, mark(line, lost + (uint64_t)missing));
}

/* ---- Lines */

static const char *why(int failed)
{
    return failed == 0 || failed == EAGAIN ? "nobody reads it" : strerror(failed);
}

static void lose_line(struct trace *t)
{
    t->lost++;
    if (t->losing)
        return;
    t->losing = true;
    log_line(LOG_LEVEL_WARN, "trace: %s; lines are lost, jobs run on", why(sink_flush(&t->sink)));
    if (t->regular && t->sink.dropped > 0) {
        mark_in_place(t, t->sink.dropped);
        t->sink.dropped = 0;
        t->lost++; /* the mark takes its place */
    }
}

static void flush(struct trace *t)
{
    if (sink_flush(&t->sink) != 0 || !t->losing)
        return;
    log_line(LOG_LEVEL_INFO, "trace: lines are kept again; %" PRIu64 " were lost", t->lost);
    t->losing = false;
    t->lost = 0;
}

static void add_line(struct trace *t, const char *fmt, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    int len;

    va_start(args, fmt);
    len = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (len <= 0 || len >= LINE_MAX_BYTES)
        return;
    pthread_mutex_lock(&t->lock);
    if (t->sink.to > WRITE_SIZE)
        flush(t);
    if (!sink_add(&t->sink, line, (size_t)len))
        lose_line(t);
    pthread_mutex_unlock(&t->lock);
}

/* Cuts a torn last line, if nobody else writes: a line that is just being written looks the same. Each writer holds a
 * shared lock, flock(2). Returns false when it cannot be cut, and errno says why. */
static bool begin_whole(int fd)
{
    bool alone = flock(fd, LOCK_EX | LOCK_NB) == 0, whole = !alone || cut_last_line(fd, true) >= 0;
    int failed = errno;

    flock(fd, LOCK_SH);
    errno = failed;
    return whole;
}

/* Opens the file so that a pipe that nobody reads, or a terminal that is stopped, does not make us wait. */
static int open_file(const char *file, bool *regular, struct error *e)
{
    int fd = open(file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    struct stat found;

    if (fd < 0) {
        error_set(e, WEIR_ECONFIG, "trace %s: %s; name a file that can be written", file, strerror(errno));
        return -1;
    }
    *regular = fstat(fd, &found) == 0 && S_ISREG(found.st_mode);
    if (*regular && !begin_whole(fd))
        log_line(LOG_LEVEL_WARN, "trace %s: its last line is torn: %s", file, strerror(errno));
    return fd;
}

struct trace *trace_open(const char *file, struct error *e)
{
    struct trace *t = calloc(1, sizeof *t);
    char random[17];
    int fd;

    if (!t) {
        error_set(e, WEIR_EINTERNAL, "trace: out of memory");
        return NULL;
    }
    if ((fd = open_file(file, &t->regular, e)) < 0) {
        free(t);
        return NULL;
    }
    t->sink = (struct sink){.lines = t->lines, .size = sizeof t->lines, .mark = mark};
    sink_to(&t->sink, fd);
    pthread_mutex_init(&t->lock, NULL);
    job_make_id(random);
    snprintf(t->by, sizeof t->by, "%.8s", random);
    add_line(t, "{\"opened\":%" PRId64 ",\"by\":\"%s\"}\n", clock_wall_us(), t->by);
    return t;
}

void trace_start(struct trace *t, const struct task *task)
{
    const struct job_view *view = &task->view;
    char key[160] = "", cost[40] = "", slot[80] = "";
    int64_t start_us = clock_wall_us();
    size_t len = 0;

    if (task->slot_us)
        len = (size_t)snprintf(slot, sizeof slot, ",\"ahead\":%" PRId64, task->ahead_us);
    if (task->slot_us && task->good_us != VERIFY_GOOD_US)
        snprintf(slot + len, sizeof slot - len, ",\"good\":%" PRId64, task->good_us);
    if (task->key.len > 0)
        snprintf(key, sizeof key, ",\"key\":\"%.*s\"", (int)task->key.len, task->key.at);
    if (task->cost != 1)
        snprintf(cost, sizeof cost, ",\"cost\":%" PRId64, task->cost);
    add_line(t,
             "{\"slot\":%" PRId64 ",\"start\":%" PRId64
             "%s,\"type\":\"%.*s\"%s%s,\"id\":\"%.*s\",\"limits\":\"%s\",\"by\":\"%s\"}\n",
             task->slot_us, start_us, slot, (int)view->type.len, view->type.at, key, cost, (int)view->id.len,
             view->id.at, task->limits, t->by);
}

void trace_end(struct trace *t, const struct task *task)
{
    const struct job_view *view = &task->view;
    struct job_cost cost;
    int64_t end_us = clock_wall_us();
    char spent[COST_JSON_SIZE];

    task_true_cost(task, &cost);
    cost_write_json(&cost, spent);
    if (task_settles_up(task))
        add_line(t, "{\"spent\":%s,\"slot\":%" PRId64 ",\"type\":\"%.*s\",\"id\":\"%.*s\",\"by\":\"%s\"}\n",
                 spent, task->slot_us, (int)view->type.len, view->type.at, (int)view->id.len, view->id.at,
                 t->by);
    if (task_settles_up(task) || strstr(task->limits, "concurrency:"))
        add_line(t, "{\"end\":%" PRId64 ",\"type\":\"%.*s\",\"id\":\"%.*s\",\"by\":\"%s\"}\n", end_us,
                 (int)view->type.len, view->type.at, (int)view->id.len, view->id.at, t->by);
}

void trace_back(struct trace *t, const struct task *task)
{
    const struct job_view *view = &task->view;
    static const char *const whys[] = {[BACK_NOT_BEGUN] = "not_begun",
                                       [BACK_LATE] = "late",
                                       [BACK_NO_HANDLER] = "no_handler",
                                       [BACK_WRONG_JOB] = "wrong_job"};
    const char *type = task->handler->type;

    add_line(t,
             "{\"back\":%" PRId64 ",\"slot\":%" PRId64 ",\"type\":\"%s\",\"id\":\"%.*s\",\"cost\":%" PRId64
             ",\"why\":\"%s\",\"by\":\"%s\"}\n",
             clock_wall_us(), task->slot_us, type, (int)view->id.len, view->id.at ? view->id.at : "",
             task->cost, whys[task->back], t->by);
}

void trace_lapsed(struct trace *t, int64_t boot_us)
{
    if (t && boot_us)
        add_line(t, "{\"lapsed\":%" PRId64 ",\"by\":\"%s\"}\n", clock_wall_us() - (clock_boot_us() - boot_us),
                 t->by);
}

void trace_flush(struct trace *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    flush(t);
    pthread_mutex_unlock(&t->lock);
}

/* Writes what was collected. A pipe whose reader is slow gets a moment. */
static int write_rest(struct trace *t)
{
    int64_t until_us = clock_mono_us() + REST_US;
    struct pollfd out = {.fd = t->sink.fd, .events = POLLOUT};
    int failed;

    while ((failed = sink_flush(&t->sink)) == EAGAIN && clock_mono_us() < until_us)
        poll(&out, 1, REST_US / 1000);
    return failed;
}

void trace_close(struct trace *t)
{
    uint64_t missing;
    int failed;

    if (!t)
        return;
    failed = write_rest(t);
    missing = sink_missing(&t->sink);
    if (missing > 0) {
        log_line(LOG_LEVEL_WARN, "trace: %s; its last %" PRIu64 " lines are lost", why(failed), missing);
        mark_in_place(t, missing);
    }
    close(t->sink.fd);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
