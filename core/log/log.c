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
#include "core/log/sink.h"
#include "core/utf8.h"

#define LINE_SIZE 2048        /* below PIPE_BUF: a line of one process is never torn by another's */
#define KEPT_SIZE (64 * 1024) /* as much as a pipe holds */

static const char *const names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

static enum log_level highest = LOG_LEVEL_INFO;

static void read_level(void)
{
    const char *wanted = getenv("WEIR_LOG");

    for (size_t i = 0; wanted && i < sizeof names / sizeof *names; i++)
        if (strcmp(wanted, names[i]) == 0)
            highest = (enum log_level)i;
}

/* Writes the first character of text to piece, as its escape when it is not printable; returns how many bytes
 * of text that took. */
static size_t escape(const char *text, char piece[UTF8_PIECE])
{
    if (*text != '\n')
        return utf8_escaped(text, strnlen(text, 4), piece);
    strcpy(piece, "\\n");
    return 1;
}

/* Appends text to line from len on, escaped, cut off with "..." where it does not fit; returns the new
 * length. */
static size_t append_escaped(char line[LINE_SIZE], size_t len, const char *text)
{
    const size_t last = LINE_SIZE - 1 - 3; /* room for "..." and the newline */

    while (*text) {
        char piece[UTF8_PIECE];
        size_t taken = escape(text, piece);

        if (len + strlen(piece) > last) {
            memcpy(line + len, "...", 3);
            return len + 3;
        }
        memcpy(line + len, piece, strlen(piece));
        len += strlen(piece);
        text += taken;
    }
    return len;
}

/* Makes a line of text, of LINE_SIZE bytes at most, its newline included; returns its length. */
static size_t make_line(char line[LINE_SIZE], enum log_level level, const char *text)
{
    char now[CLOCK_TEXT_SIZE];
    size_t len;

    clock_text(clock_wall_us(), now);
    len = (size_t)snprintf(line, LINE_SIZE, "%s %-5s ", now, names[level]);
    len = append_escaped(line, len, text);
    line[len++] = '\n';
    return len;
}

/* ---- Standard error */

static size_t mark(char line[SINK_MARK_SIZE], uint64_t dropped)
{
    char text[100], whole[LINE_SIZE];
    size_t len;

    snprintf(text, sizeof text, "log: %" PRIu64 " lines were dropped: nobody read them", dropped);
    len = make_line(whole, LOG_LEVEL_WARN, text);
    memcpy(line, whole, len);
    return len;
}

static char kept[KEPT_SIZE];
static struct sink sink = {.lines = kept, .size = sizeof kept, .mark = mark, .fd = -1};
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;

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
    last = found;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char text[LINE_SIZE], line[LINE_SIZE];
    size_t len;
    va_list args;

    pthread_once(&once, read_level);
    if (level > highest)
        return;
    va_start(args, fmt);
    decimal_vprint(text, sizeof text, fmt, args);
    va_end(args);
    len = make_line(line, level, text);
    pthread_mutex_lock(&sink_lock);
    follow_standard_error();
    sink_add(&sink, line, len);
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
