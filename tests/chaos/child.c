/* The handlers of a chaos run that are programs:
 *
 *     child exec         one job: --exec
 *     child pipe         lines in, lines out: --pipe
 *     child http FD      an endpoint, on a socket that listens: --http http://127.0.0.1:PORT/<who>
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/chaos/deed.h"

#define BODY_SIZE 4096 /* the run's jobs are small */

/* ---- One process a job */

static size_t read_all(int fd, char *text, size_t size)
{
    size_t len = 0;
    ssize_t n;

    while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return len;
}

static int run_exec(void)
{
    const char *id = getenv("WEIR_JOB_ID");
    char body[BODY_SIZE];
    struct deed d;

    read_all(STDIN_FILENO, body, sizeof body);
    deed_begin(&d, id ? id : "?", body, NULL);
    deed_sleep(d.take_us);
    switch (deed_end(&d)) {
    case DEED_FAILED:
        return 1;
    case DEED_THROTTLED:
        printf("%g\n", DEED_AFTER_S);
        return 75;
    case DEED_DEAD:
        return 65;
    }
    return 0;
}

/* ---- A child that stays */

#define IN_FLIGHT 64

struct line_job {
    bool busy;
    struct deed deed;
    int64_t due_us;
};

static struct line_job line_jobs[IN_FLIGHT];

/* The value of the member id, which Weir writes first. */
static void read_id(const char *line, char id[136])
{
    const char *at = strstr(line, "\"id\":\"");

    snprintf(id, 136, "%.*s", at ? (int)strcspn(at + 6, "\"") : 0, at ? at + 6 : "");
}

static void begin_line(const char *line)
{
    char id[136];
    int i = 0;

    while (i < IN_FLIGHT && line_jobs[i].busy)
        i++;
    if (i == IN_FLIGHT)
        abort();
    read_id(line, id);
    deed_begin(&line_jobs[i].deed, id, line, NULL);
    line_jobs[i].due_us = deed_now_us() + line_jobs[i].deed.take_us;
    line_jobs[i].busy = true;
}

static void answer_line(struct line_job *job)
{
    char line[256], how[64] = "\"done\"";
    int len;

    switch (deed_end(&job->deed)) {
    case DEED_FAILED:
        snprintf(how, sizeof how, "\"retry\",\"after\":%g", DEED_AFTER_S);
        break;
    case DEED_THROTTLED:
        snprintf(how, sizeof how, "\"throttled\",\"after\":%g", DEED_AFTER_S);
        break;
    case DEED_DEAD:
        snprintf(how, sizeof how, "\"dead\",\"reason\":\"as planned\"");
        break;
    }
    len = snprintf(line, sizeof line, "{\"id\":\"%s\",\"status\":%s}\n", job->deed.id, how);
    if (write(STDOUT_FILENO, line, (size_t)len) != len)
        _exit(1);
    job->busy = false;
}

/* Answers what is due; how long until the next one is, in ms, rounded up; -1: there is none. */
static int answer_lines(void)
{
    int64_t now_us = deed_now_us(), next_us = -1;

    for (int i = 0; i < IN_FLIGHT; i++) {
        if (line_jobs[i].busy && line_jobs[i].due_us <= now_us)
            answer_line(&line_jobs[i]);
        if (line_jobs[i].busy && (next_us < 0 || line_jobs[i].due_us < next_us))
            next_us = line_jobs[i].due_us;
    }
    return next_us < 0 ? -1 : (int)((next_us - now_us + 999) / 1000);
}

static int run_pipe(void)
{
    static char text[BODY_SIZE * IN_FLIGHT];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    size_t len = 0;
    int wait_ms;

    while ((wait_ms = answer_lines()) >= 0 || input.fd >= 0) {
        ssize_t n;
        char *newline;

        if (poll(&input, 1, wait_ms) <= 0)
            continue;
        n = read(STDIN_FILENO, text + len, sizeof text - 1 - len);
        if (n <= 0) {
            input.fd = -1;
            continue;
        }
        len += (size_t)n;
        text[len] = '\0';
        while ((newline = strchr(text, '\n'))) {
            *newline = '\0';
            begin_line(text);
            len -= (size_t)(newline + 1 - text);
            memmove(text, newline + 1, len + 1);
        }
    }
    return 0;
}

/* ---- An endpoint */

/* Reads a request: its head and body, of which the head is the beginning. false: the connection has ended. */
static bool read_request(int fd, char *text, size_t size)
{
    size_t len = 0, wanted = 0;
    const char *body, *length;
    ssize_t n;

    while (len < size - 1 && (wanted == 0 || len < wanted)) {
        n = read(fd, text + len, size - 1 - len);
        if (n <= 0)
            return false;
        len += (size_t)n;
        text[len] = '\0';
        body = strstr(text, "\r\n\r\n");
        length = strcasestr(text, "\r\nContent-Length:");
        if (body && length)
            wanted = (size_t)(body + 4 - text) + strtoul(length + 17, NULL, 10);
    }
    return true;
}

static const char *answer_of(char ending)
{
    switch (ending) {
    case DEED_FAILED:
        return "500 Planned\r\n";
    case DEED_THROTTLED:
        return "429 Planned\r\nRetry-After: 1\r\n";
    case DEED_DEAD:
        return "400 Planned\r\n";
    }
    return "200 OK\r\n";
}

static void serve_request(int fd, const char *text)
{
    const char *id_at = strcasestr(text, "\r\nWeir-Job-Id: ");
    char id[136], who[16] = "?", answer[128];
    struct deed d;
    int len;

    sscanf(text, "POST /%15[0-9.]", who);
    snprintf(id, sizeof id, "%.*s", id_at ? (int)strcspn(id_at + 15, "\r") : 0, id_at ? id_at + 15 : "");
    deed_begin(&d, id, text, who);
    deed_sleep(d.take_us);
    len = snprintf(answer, sizeof answer, "HTTP/1.1 %sContent-Length: 0\r\n\r\n", answer_of(deed_end(&d)));
    if (send(fd, answer, (size_t)len, MSG_NOSIGNAL) != len)
        shutdown(fd, SHUT_RDWR);
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char text[BODY_SIZE];

    while (read_request(fd, text, sizeof text))
        serve_request(fd, text);
    close(fd);
    return NULL;
}

static int run_http(int listener)
{
    pthread_t thread;

    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return 1;
        if (fd >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) != 0)
            return 1;
        if (fd >= 0)
            pthread_detach(thread);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 64;
    signal(SIGPIPE, SIG_IGN);
    deed_open();
    if (strcmp(argv[1], "exec") == 0)
        return run_exec();
    if (strcmp(argv[1], "pipe") == 0)
        return run_pipe();
    return argc > 2 && strcmp(argv[1], "http") == 0 ? run_http(atoi(argv[2])) : 64;
}
