/* Looking at a large namespace: 10,000 types, 1,000 queues, 1,000,000 jobs, 2,002 limits, three workers that take all types, and what was
 * recorded of 400 types and limits in 72 hours. How long commands, pages, documents and metrics take, cold and again, and weir top to its
 * first rows; and what an open overview and a scrape of /metrics every 16 s cost. */
#include <ctype.h>
#include <errno.h>
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
#include "bench/large.h"
#include "core/clock.h"

#define ROUNDS 3 /* of what is cold: the best counts */
#define WAIT_US INT64_C(10000000)
#define EVERY_US 2000000 /* an open page asks again */
#define SCRAPE_EVERY 8   /* looks of that page, about 15 s */
#define LOOKS 16

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
static void keep_least(struct took *least, struct took one)
{
    least->ms = less(least->ms, one.ms);
    least->redis_ms = less(least->redis_ms, one.redis_ms);
    least->weir_ms = less(least->weir_ms, one.weir_ms);
}

static int64_t begun_us, redis_ns;

static void begin(void)
{
    bench_check();
    begun_us = clock_mono_us();
    redis_ns = server_cpu(&bench.server);
}

/* What it took since begin(). */
static struct took took(double weir_us)
{
    double ms = (double)(clock_mono_us() - begun_us) / 1e3;

    return (struct took){ms, (double)(server_cpu(&bench.server) - redis_ns) / 1e6, weir_us / 1e3};
}

static struct took time_command(const char *word, const char *other)
{
    double cpu_us;
    int status;

    begin();
    status = large_wait(large_start((const char *const[]){word, other, NULL}), &cpu_us);
    if (!(WIFEXITED(status) && WEXITSTATUS(status) <= 1)) /* 1: report found something wrong */
        fail("weir %s failed (wait status %#x)", word, status);
    return took(cpu_us);
}

static void look_by_command(enum figure figure, const char *word, const char *other)
{
    struct took least = {1e9, 1e9, 1e9};

    for (int i = 0; i < ROUNDS; i++)
        keep_least(&least, time_command(word, other));
    report(figure, least.ms, 0, "CPU: Redis %.0f ms, weir %.0f ms", least.redis_ms, least.weir_ms);
}

/* ---- weir top */

static pid_t top_start(int *terminal)
{
    const struct winsize size = {.ws_row = 40, .ws_col = 120};
    pid_t pid = forkpty(terminal, NULL, NULL, &size);

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv("TERM", "xterm", 1);
        execl(bench.command, "weir", "--redis", bench.server.url, "top", "--read-only", (char *)NULL);
        _exit(127);
    }
    if (pid < 0)
        fail("cannot open a terminal: %s", strerror(errno));
    return pid;
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

static void look_by_top(void)
{
    double least_ms = 1e9, cpu_us;

    for (int i = 0; i < ROUNDS; i++) {
        int terminal;
        pid_t pid;

        begin();
        pid = top_start(&terminal);
        if (!await_rows(terminal))
            fail("weir top shows no types");
        least_ms = less(least_ms, took(0).ms);
        kill(pid, SIGKILL);
        (void)large_wait(pid, &cpu_us);
        close(terminal);
    }
    report(LOOK_TOP, least_ms, 0, "%s", "");
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

static void web_start(struct web *web)
{
    char listen[160];
    int64_t end_us = clock_mono_us() + WAIT_US;
    int fd;

    snprintf(web->socket, sizeof web->socket, "%s/serve.sock", bench.server.folder);
    snprintf(listen, sizeof listen, "unix:%s", web->socket);
    web->pid = large_start((const char *const[]){"serve", "--listen", listen, NULL});
    while ((fd = open_link(web)) < 0) {
        if (clock_mono_us() > end_us)
            fail("weir serve does not listen");
        bench_rest(0.01);
    }
    close(fd);
}

static double web_stop(const struct web *web)
{
    double cpu_us;

    kill(web->pid, SIGTERM);
    (void)large_wait(web->pid, &cpu_us);
    return cpu_us;
}

static bool send_request(int fd, const char *path)
{
    char text[300];
    int len = snprintf(text, sizeof text,
                       "GET %.200s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);

    return fd >= 0 && send(fd, text, (size_t)len, MSG_NOSIGNAL) == len;
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
static struct took get(const struct web *web, const char *path, const char *statuses)
{
    char answer[65536];
    ssize_t n = -1, all = 0;
    bool good = false;
    int fd = open_link(web);

    begin();
    if (send_request(fd, path))
        while ((n = recv(fd, answer, sizeof answer, 0)) > 0) {
            good = good || (all == 0 && has_status(answer, n, statuses));
            all += n;
        }
    if (n < 0 || !good)
        fail("weir serve: no answer to GET %.100s", path);
    close(fd);
    return took(0);
}

/* The first request of a server, and the second. */
static void look_at_page(enum figure figure, const char *path, const char *statuses)
{
    struct took least = {1e9, 1e9, 1e9}, again = least;

    for (int i = 0; i < ROUNDS; i++) {
        struct web web;
        struct took first;

        web_start(&web);
        first = get(&web, path, statuses);
        keep_least(&again, get(&web, path, statuses));
        first.weir_ms = web_stop(&web) / 1e3;
        keep_least(&least, first);
    }
    report(figure, least.ms, 0, "CPU: Redis %.0f ms, weir serve %.0f ms; again %.1f ms", least.redis_ms,
           least.weir_ms, again.ms);
}

/* ---- Watching */

/* Asks for the overview as an open page does. */
static void look_on(void)
{
    struct web web;
    int64_t before_ns, start_us, at_us;
    double seconds, redis_s;

    web_start(&web);
    before_ns = server_cpu(&bench.server);
    at_us = start_us = clock_mono_us();
    for (int i = 0; i < LOOKS; i++) {
        if (i % SCRAPE_EVERY == 0)
            get(&web, "/metrics", "200");
        get(&web, "/", "200");
        clock_sleep_until(at_us += EVERY_US);
    }
    seconds = (double)(clock_mono_us() - start_us) / 1e6;
    redis_s = (double)(server_cpu(&bench.server) - before_ns) / 1e9;
    report(LOOK_WATCH, 100 * redis_s / seconds, 0, "an overview and a scrape each 16 s; weir serve %.2f %%",
           web_stop(&web) / 1e4 / seconds);
}

/* ---- */

void bench_look(void)
{
    static const struct {
        enum figure figure;
        const char *word, *other; /* of a command */
    } commands[] = {
        {LOOK_STATUS, "status", NULL}, {LOOK_STATUS_JSON, "status", "--json"}, {LOOK_REPORT, "report", NULL}};
    static const struct {
        enum figure figure;
        const char *path;
    } pages[] = {{LOOK_OVERVIEW, "/"}, {LOOK_JOB_ABSENT, "/jobs/none"}, {LOOK_METRICS, "/metrics"}};

    large_build();
    time_command("status", NULL); /* the functions of Weir are loaded */
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        look_by_command(commands[i].figure, commands[i].word, commands[i].other);
    look_by_top();
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        look_at_page(pages[i].figure, pages[i].path, pages[i].figure == LOOK_JOB_ABSENT ? "200 404" : "200");
    look_on();
}
