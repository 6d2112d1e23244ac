/* Looking at a large namespace: 10,000 types, 1,000 queues, 1,000,000 jobs, 2,002 limits, three workers that take all types, and what was
 * recorded of 400 types and limits in 72 hours. How long commands, pages, documents and metrics take, cold and again, and weir top to its
 * first rows; and what an open overview and a scrape of /metrics every 15 s cost. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/clock.h"

#define ROUNDS 3 /* of what is cold: the best counts */
#define WAIT_US INT64_C(10000000)
#define SCRAPE_S 15
#define SCRAPES 2

/* ---- Processes of weir */

/* What something took: by the clock, and CPU. */
struct took {
    double ms, redis_ms, weir_ms;
};

static double less(double a, double b)
{
    return a < b ? a : b;
}

/* The least of each, as the machine may be busy with something else. */
static void keep_least(struct took *least, const struct took *took)
{
    least->ms = less(least->ms, took->ms);
    least->redis_ms = less(least->redis_ms, took->redis_ms);
    least->weir_ms = less(least->weir_ms, took->weir_ms);
}

static int time_command(struct bench *b, const char *const *words, struct took *took)
{
    int64_t redis_ns, after_ns, start_us = clock_mono_us();
    double cpu_us;
    pid_t pid;
    int rc = server_cpu(&b->server, &redis_ns, &b->error), status;

    if (rc == 0)
        rc = large_start(b, words, &pid);
    if (rc != 0)
        return rc;
    status = large_wait(pid, &cpu_us);
    took->ms = (double)(clock_mono_us() - start_us) / 1e3;
    rc = server_cpu(&b->server, &after_ns, &b->error);
    took->redis_ms = (double)(after_ns - redis_ns) / 1e6;
    took->weir_ms = cpu_us / 1e3;
    if (rc == 0 && !(WIFEXITED(status) && WEXITSTATUS(status) <= 1)) /* 1: report found something wrong */
        return error_set(&b->error, WEIR_EINTERNAL, "weir %s failed (wait status %#x)", words[0], status);
    return rc;
}

static int look_by_command(struct bench *b, enum figure figure, const char *word, const char *other)
{
    struct took least = {1e9, 1e9, 1e9};
    int rc = 0;

    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        struct took took;

        rc = bench_check(b);
        if (rc == 0)
            rc = time_command(b, (const char *const[]){word, other, NULL}, &took);
        if (rc == 0)
            keep_least(&least, &took);
    }
    if (rc == 0)
        report(b, figure, least.ms, 0, "CPU: Redis %.0f ms, weir %.0f ms", least.redis_ms, least.weir_ms);
    return rc;
}

/* ---- weir top */

static int top_start(struct bench *b, int *terminal, pid_t *pid)
{
    const struct winsize size = {.ws_row = 40, .ws_col = 120};

    *pid = forkpty(terminal, NULL, NULL, &size);
    if (*pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("TERM", "xterm", 1);
        execl(b->command, "weir", "--redis", b->server.url, "top", "--read-only", (char *)NULL);
        _exit(127);
    }
    return *pid > 0 ? 0 : error_set(&b->error, WEIR_EINTERNAL, "cannot open a terminal: %s", strerror(errno));
}

/* Does the name of a type stand there, "t17"? */
static bool shows_type(const char *text, size_t len)
{
    for (size_t i = 1; i + 1 < len; i++)
        if (text[i] == 't' && isdigit((unsigned char)text[i + 1]) && !isalnum((unsigned char)text[i - 1]))
            return true;
    return false;
}

/* What it draws comes a piece at a time. */
static bool await_rows(int terminal)
{
    int64_t end_us = clock_mono_us() + WAIT_US;
    char text[65536];
    size_t len = 0;
    ssize_t n = 1;

    while (n > 0 && clock_mono_us() < end_us && len < sizeof text && !shows_type(text, len)) {
        n = read(terminal, text + len, sizeof text - len);
        len += n > 0 ? (size_t)n : 0;
    }
    return shows_type(text, len);
}

static int look_by_top(struct bench *b)
{
    double least_ms = 1e9;
    int rc = 0;

    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        int64_t start_us;
        double cpu_us, ms;
        int terminal;
        pid_t pid;

        rc = bench_check(b);
        start_us = clock_mono_us();
        if (rc == 0)
            rc = top_start(b, &terminal, &pid);
        if (rc != 0)
            return rc;
        if (!await_rows(terminal))
            rc = error_set(&b->error, WEIR_EINTERNAL, "weir top shows no types");
        ms = (double)(clock_mono_us() - start_us) / 1e3;
        least_ms = less(least_ms, ms);
        kill(pid, SIGKILL);
        (void)large_wait(pid, &cpu_us);
        close(terminal);
    }
    if (rc == 0)
        report(b, LOOK_TOP, least_ms, 0, "%s", "");
    return rc;
}

/* ---- Over HTTP */

struct web {
    char socket[120];
    pid_t pid;
};

static int open_link(const struct web *web)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", web->socket);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static int web_start(struct bench *b, struct web *web)
{
    char listen[160];
    int64_t end_us = clock_mono_us() + WAIT_US;
    int rc, fd;

    snprintf(web->socket, sizeof web->socket, "%s/serve.sock", b->server.folder);
    snprintf(listen, sizeof listen, "unix:%s", web->socket);
    rc = large_start(b, (const char *const[]){"serve", "--listen", listen, NULL}, &web->pid);
    while (rc == 0 && (fd = open_link(web)) < 0) {
        rc = clock_mono_us() > end_us ? error_set(&b->error, WEIR_EINTERNAL, "weir serve does not listen")
                                      : bench_rest(b, 0.01);
    }
    if (rc == 0)
        close(fd);
    return rc;
}

static double web_stop(const struct web *web)
{
    double cpu_us = 0;

    if (web->pid <= 0)
        return 0;
    kill(web->pid, SIGTERM);
    (void)large_wait(web->pid, &cpu_us);
    return cpu_us;
}

static int send_request(int fd, const char *path, bool stays)
{
    char text[300];
    int len = snprintf(text, sizeof text, "GET %.200s HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n\r\n",
                       path, stays ? "keep-alive" : "close");

    return send(fd, text, (size_t)len, MSG_NOSIGNAL) == len ? 0 : -1;
}

/* Does an answer begin with one of these statuses, "200 404"? */
static bool has_status(const char *answer, ssize_t len, const char *statuses)
{
    char status[4] = "";

    if (len > 12 && memcmp(answer, "HTTP/1.1 ", 9) == 0)
        memcpy(status, answer + 9, 3);
    return *status && strstr(statuses, status);
}

/* One request, to its end; its answer must have one of the statuses. */
static int get(struct bench *b, const struct web *web, const char *path, const char *statuses,
               struct took *took)
{
    char answer[65536];
    int64_t redis_ns, after_ns, start_us;
    ssize_t n = -1, all = 0;
    bool good = false;
    int rc = server_cpu(&b->server, &redis_ns, &b->error), fd = open_link(web);

    start_us = clock_mono_us();
    if (fd >= 0 && send_request(fd, path, false) == 0)
        while ((n = recv(fd, answer, sizeof answer, 0)) > 0) {
            good = good || (all == 0 && has_status(answer, n, statuses));
            all += n;
        }
    took->ms = (double)(clock_mono_us() - start_us) / 1e3;
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = server_cpu(&b->server, &after_ns, &b->error);
    took->redis_ms = (double)(after_ns - redis_ns) / 1e6;
    if (rc == 0 && (n < 0 || !good))
        rc = error_set(&b->error, WEIR_EINTERNAL, "weir serve: no answer to GET %.100s", path);
    return rc;
}

/* The first request of a server, and the second. */
static int look_once(struct bench *b, const char *path, const char *statuses, struct took *first,
                     struct took *second)
{
    struct web web = {.pid = 0};
    int rc = web_start(b, &web);

    if (rc == 0)
        rc = get(b, &web, path, statuses, first);
    if (rc == 0)
        rc = get(b, &web, path, statuses, second);
    first->weir_ms = web_stop(&web) / 1e3;
    return rc;
}

static int look_at_page(struct bench *b, enum figure figure, const char *path, const char *statuses)
{
    struct took least = {1e9, 1e9, 1e9}, again = least;
    int rc = 0;

    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        struct took first, second = {0};

        rc = bench_check(b);
        if (rc == 0)
            rc = look_once(b, path, statuses, &first, &second);
        if (rc == 0)
            keep_least(&least, &first);
        keep_least(&again, &second);
    }
    if (rc == 0)
        report(b, figure, least.ms, 0, "CPU: Redis %.0f ms, weir serve %.0f ms; again %.1f ms",
               least.redis_ms, least.weir_ms, again.ms);
    return rc;
}

/* ---- Watching */

static void drain(int fd, int64_t until_us)
{
    char events[65536];

    for (int64_t now_us; (now_us = clock_mono_us()) < until_us;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        if (poll(&p, 1, (int)((until_us - now_us) / 1000) + 1) > 0 && recv(fd, events, sizeof events, 0) <= 0)
            return;
    }
}

static int watch(struct bench *b, const struct web *web, int fd, double *seconds)
{
    int64_t start_us = clock_mono_us();
    struct took took;
    int rc = 0;

    for (int i = 0; rc == 0 && i < SCRAPES; i++) {
        rc = bench_check(b);
        if (rc == 0)
            rc = get(b, web, "/metrics", "200", &took);
        if (rc == 0)
            drain(fd, start_us + (i + 1) * SCRAPE_S * INT64_C(1000000));
    }
    *seconds = (double)(clock_mono_us() - start_us) / 1e6;
    return rc;
}

static int look_on(struct bench *b)
{
    struct web web = {.pid = 0};
    int64_t before_ns = 0, after_ns = 0;
    double seconds = 0, cpu_us;
    int rc = web_start(b, &web), fd = rc == 0 ? open_link(&web) : -1;

    if (rc == 0 && (fd < 0 || send_request(fd, "/events?page=%2F", true) != 0))
        rc = error_set(&b->error, WEIR_EINTERNAL, "weir serve does not answer");
    if (rc == 0)
        rc = server_cpu(&b->server, &before_ns, &b->error);
    if (rc == 0)
        rc = watch(b, &web, fd, &seconds);
    if (rc == 0)
        rc = server_cpu(&b->server, &after_ns, &b->error);
    if (fd >= 0)
        close(fd);
    cpu_us = web_stop(&web);
    if (rc == 0)
        report(b, LOOK_WATCH, (double)(after_ns - before_ns) / 1e7 / seconds, 0,
               "an overview and a scrape each 15 s; weir serve %.2f %%", cpu_us / 1e4 / seconds);
    return rc;
}

/* ---- */

int bench_look(struct bench *b)
{
    static const struct {
        enum figure figure;
        const char *word, *other; /* of a command */
    } commands[] = {
        {LOOK_STATUS, "status", NULL}, {LOOK_STATUS_JSON, "status", "--json"}, {LOOK_REPORT, "report", NULL}};
    static const struct {
        enum figure figure;
        const char *path;
    } pages[] = {{LOOK_OVERVIEW, "/"},
                 {LOOK_TYPE, "/types/t5"},
                 {LOOK_LIMITS, "/limits"},
                 {LOOK_LIMIT, "/limits/t5"},
                 {LOOK_KEYS, "/keys/keyed"},
                 {LOOK_JOBS, "/jobs?q=type%3At5"},
                 {LOOK_JOB_LINK, "/jobs/t5-50?at=lane%3Aq5%2Ft5%2F&from=49"},
                 {LOOK_JOB_RECORD, "/jobs/ended"},
                 {LOOK_JOB_ABSENT, "/jobs/none"},
                 {LOOK_WORKERS, "/workers"},
                 {LOOK_DEAD, "/dead"},
                 {LOOK_REDIS, "/redis"},
                 {LOOK_API_STATUS, "/api/status"},
                 {LOOK_API_REPORT, "/api/report"},
                 {LOOK_METRICS, "/metrics"}};
    int rc = large_build(b);

    if (rc == 0) /* the functions of Weir are loaded */
        rc = time_command(b, (const char *const[]){"status", NULL}, &(struct took){0});
    for (size_t i = 0; rc == 0 && i < sizeof commands / sizeof *commands; i++)
        rc = look_by_command(b, commands[i].figure, commands[i].word, commands[i].other);
    if (rc == 0)
        rc = look_by_top(b);
    if (rc == 0) /* a job that has ended */
        rc = server_ask(&b->server, NULL, &b->error, "SET", PREFIX "finished:ended",
                        "done 1795000000000000 w1 1 q0/t0/\n{\"id\":\"ended\",\"type\":\"t0\"}", NULL);
    for (size_t i = 0; rc == 0 && i < sizeof pages / sizeof *pages; i++)
        rc = look_at_page(b, pages[i].figure, pages[i].path,
                          pages[i].figure == LOOK_JOB_ABSENT ? "200 404" : "200");
    return rc == 0 ? look_on(b) : rc;
}
