#include "core/log/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/decimal.h"
#include "core/log/format.h"
#include "core/log/sink.h"

#define KEPT_SIZE (64 * 1024) /* as much as a pipe holds */

static enum log_level highest = LOG_LEVEL_INFO;
static enum log_format format = LOG_FORMAT_LOGFMT;

/* ---- What is wanted */

bool log_set_level(const char *name)
{
    for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++)
        if (strcmp(name, log_level_names[i]) == 0) {
            highest = (enum log_level)i;
            return true;
        }
    return false;
}

bool log_set_format(const char *name)
{
    if (strcmp(name, "logfmt") != 0 && strcmp(name, "json") != 0)
        return false;
    format = *name == 'j' ? LOG_FORMAT_JSON : LOG_FORMAT_LOGFMT;
    return true;
}

__attribute__((constructor)) static void read_environment(void)
{
    const char *level = getenv("WEIR_LOG"), *wanted = getenv("WEIR_LOG_FORMAT");

    if (level)
        log_set_level(level);
    if (wanted)
        log_set_format(wanted);
}

/* $JOURNAL_STREAM names the device and inode of the stream that systemd has connected; systemd.exec(5). */
static bool is_journal(const struct stat *found)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;

    return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 && device == found->st_dev &&
           inode == found->st_ino;
}

/* ---- Standard error */

static bool to_journal;                                          /* the sink */
static void (*heard_by)(int level, const char *line, void *arg); /* in place of the sink; NULL */
static void *heard_arg;

static size_t make_line(char line[LOG_LINE_SIZE], enum log_level level, const char *text,
                        const struct log_field *fields, size_t count)
{
    bool for_journal = to_journal && !heard_by && format == LOG_FORMAT_LOGFMT;

    return log_format_line(line, for_journal ? LOG_FORMAT_JOURNAL : format, clock_wall_us(), level, text,
                           fields, count);
}

static size_t mark(char line[SINK_MARK_SIZE], uint64_t dropped)
{
    char text[100], whole[LOG_LINE_SIZE];
    size_t len;

    snprintf(text, sizeof text, "log: %" PRIu64 " lines were dropped: nobody read them", dropped);
    len = make_line(whole, LOG_LEVEL_WARN, text, NULL, 0);
    memcpy(line, whole, len);
    return len;
}

static char kept[KEPT_SIZE];
static struct sink sink = {.lines = kept, .size = sizeof kept, .mark = mark, .fd = -1};
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool gathers, gathered; /* this thread writes its lines together; it has some */

/* ---- fork(): while another thread may be writing; what is kept is the parent's to write */

static void before_fork(void)
{
    pthread_mutex_lock(&sink_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&sink_lock);
}

static void in_child(void)
{
    sink_forget(&sink);
    pthread_mutex_unlock(&sink_lock);
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- Lines */

/* A descriptor of our own for the pipe or terminal that is standard error, which does not block: a flag of
 * its own descriptor would be shared with other processes. Where there is none, standard error itself. */
static int open_own(const struct stat *found)
{
    int fd = -1;

    if (S_ISFIFO(found->st_mode) || S_ISCHR(found->st_mode))
        fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd >= 0 ? fd : STDERR_FILENO;
}

/* Standard error may have become another one. */
static void follow_standard_error(void)
{
    static struct stat last;
    struct stat found = {0};

    fstat(STDERR_FILENO, &found);
    if (sink.fd >= 0 && found.st_dev == last.st_dev && found.st_ino == last.st_ino)
        return;
    if (sink.fd > STDERR_FILENO)
        close(sink.fd);
    sink_to(&sink, open_own(&found));
    to_journal = is_journal(&found);
    last = found;
}

void weir_set_log(void (*log)(int level, const char *line, void *arg), void *arg)
{
    pthread_mutex_lock(&sink_lock);
    heard_by = log;
    heard_arg = arg;
    pthread_mutex_unlock(&sink_lock);
}

static void write_line(enum log_level level, const struct log_field *fields, size_t count, const char *fmt,
                       va_list args)
{
    char text[LOG_LINE_SIZE], line[LOG_LINE_SIZE];
    size_t len;

    if (level > highest)
        return;
    decimal_vprint(text, sizeof text, fmt, args);
    pthread_mutex_lock(&sink_lock);
    if (!heard_by && !gathered)
        follow_standard_error();
    len = make_line(line, level, text, fields, count);
    if (heard_by) {
        line[len - 1] = '\0';
        heard_by((int)level, line, heard_arg);
    } else {
        sink_add(&sink, line, len);
        gathered = gathers;
        if (!gathered)
            sink_flush(&sink);
    }
    pthread_mutex_unlock(&sink_lock);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_line(level, NULL, 0, fmt, args);
    va_end(args);
}

void log_fields(enum log_level level, const struct log_field *fields, size_t count, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    write_line(level, fields, count, fmt, args);
    va_end(args);
}

void log_gather(void)
{
    gathers = true;
}

void log_gathered(void)
{
    gathers = false;
    if (!gathered)
        return;
    gathered = false;
    pthread_mutex_lock(&sink_lock);
    sink_flush(&sink);
    pthread_mutex_unlock(&sink_lock);
}

bool log_flush(void)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    int failed = 0;

    pthread_mutex_lock(&sink_lock);
    if (sink_missing(&sink) > 0) {
        follow_standard_error();
        failed = sink_flush(&sink);
    }
    pthread_mutex_unlock(&sink_lock);
    return failed == 0 && poll(&out, 1, 0) == 1;
}
