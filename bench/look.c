/* Looking at a large namespace: 10,000 types, 1,000 queues, 1,000,000 jobs, 2,002 limits, three workers that take all types, and what was
 * recorded of 400 types and limits in 72 hours. How long commands, pages, documents and metrics take, cold and again; the longest call;
 * and what an open overview and a scrape of /metrics every 15 s cost. */
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/clock.h"
#include "queue/job/stamp.h"

#define TYPES 10000
#define QUEUES 1000
#define JOBS 100 /* of a type */
#define RECORDED 400
#define AT_ONCE 100 /* types of one call that builds */
#define ROUNDS 3    /* of what is cold: the best counts */
#define WAIT_US INT64_C(10000000)
#define SCRAPE_S 15
#define SCRAPES 2
#define SLOW_US "1000" /* calls that the slow log keeps */

/* ---- The world. Of ten types two have limits and a lane with all their jobs but ten. */

static const char world[] =
    "local P, first, last = 'weir:{0}:', tonumber(ARGV[1]), tonumber(ARGV[2])\n"
    "local queues, jobs, recorded = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])\n"
    "local head, now, call = ARGV[6], tonumber(ARGV[7]), redis.call\n"
    "local function us(n) return string.format('%d', n) end\n"
    "local function push(key, type, from, n)\n"
    "  local list = {}\n"
    "  for i = from, from + n - 1 do\n"
    "    list[#list + 1] = head .. '{\"id\":\"' .. type .. '-' .. i .. '\",\"type\":\"' .. type ..\n"
    "      '\",\"args\":{\"user\":' .. i .. ',\"template\":\"welcome\",\"language\":\"en\"}}'\n"
    "  end\n"
    "  call('RPUSH', key, unpack(list))\n"
    "end\n"
    "local function park(queue, type)\n"
    "  call('HSET', P .. 'limits', type, 'gcra:10/3600000000/10 fixed-window:100/86400000000/100')\n"
    "  call('SET', P .. 'gate:' .. type .. '#0', us(now) .. ' 0 - - gcra:10/3600000000/10 ' .. us(now + "
    "3600000000) .. ' 0')\n"
    "  push(P .. 'lane:' .. queue .. '/' .. type .. '/', type, 10, jobs - 10)\n"
    "  call('ZADD', P .. 'ring:' .. queue .. '/' .. type, '1', '')\n"
    "  call('ZADD', P .. 'wait:' .. queue .. '/' .. type .. '#0', '1', type)\n"
    "  call('ZADD', P .. 'wake:' .. queue, us(now + 3600000000), type .. '#0')\n"
    "end\n"
    "local function slot(n)\n"
    "  local words = {'s' .. 40 * n, 'd' .. 38 * n, 'r' .. n, 'x' .. n, 't' .. 2 * n}\n"
    "  for _, letter in ipairs{'R', 'A', 'E'} do\n"
    "    for bucket = 100, 107 do words[#words + 1] = letter .. string.char(bucket) .. bucket * n end\n"
    "    words[#words + 1] = letter .. '+' .. 1000 * n\n"
    "  end\n"
    "  return table.concat(words, ' ')\n"
    "end\n"
    "local function record(key, minute, hour, all)\n"
    "  local m, h, fields = math.floor(now / 60000000), math.floor(now / 3600000000), {'all', '0 ' .. all}\n"
    "  for i = 0, 119 do fields[#fields + 1], fields[#fields + 2] = 'm' .. (m - i) % 120, us(m - i) .. ' ' "
    ".. minute end\n"
    "  for i = 0, 71 do fields[#fields + 1], fields[#fields + 2] = 'h' .. (h - i) % 72, us(h - i) .. ' ' .. "
    "hour end\n"
    "  call('HSET', P .. 'minutes:' .. key, unpack(fields))\n"
    "end\n"
    "for i = first, last do\n"
    "  local type, queue, parked = 't' .. i, 'q' .. i % queues, i % 5 == 0\n"
    "  call('SADD', P .. 'queues', queue)\n"
    "  call('HSET', P .. 'types', type, i % 50 == 0 and 'use=shared cost=2' or '')\n"
    "  push(P .. 'queue:' .. queue, type, 0, parked and 10 or jobs)\n"
    "  if parked then park(queue, type) end\n"
    "  call('HSET', P .. 'stats:' .. type, 'enqueued', 1000 + jobs, 'pulled', 1000, 'parked', parked and "
    "jobs - 10 or 0, 'done', 990,\n"
    "    'retried', 17, 'dead', 10, 'mark_us', us(now - 1000000), 'mark', 1000, 'last_us', us(now - "
    "2000000), 'last', 990)\n"
    "  if i < recorded then\n"
    "    record('t/' .. type, slot(1), slot(60), slot(4320))\n"
    "    record('l/' .. type, 'g40 n7 e3 l1', 'g2400 n420 e180 l60', 'g172800 n30240 e12960 l4320')\n"
    "  end\n"
    "end\n"
    "call('HSET', P .. 'limits', 'shared', 'gcra:100/1000000/100', 'keyed', 'gcra:10/1000000/10,by=key')\n";

static const char workers[] =
    "local P, types, now = 'weir:{0}:', {}, tonumber(ARGV[2])\n"
    "for i = 0, tonumber(ARGV[1]) - 1 do types[i + 1] = '\"t' .. i .. '\"' end\n"
    "for i = 1, 3 do\n"
    "  redis.call('ZADD', P .. 'workers', string.format('%d', now + 600000000), 'w' .. i)\n"
    "  redis.call('HSET', P .. 'active:w' .. i, '@', '{\"instance\":\"i' .. i .. "
    "'\",\"host\":\"h\",\"pid\":' .. 100 + i ..\n"
    "    ',\"executors\":100,\"lease\":30.0,\"version\":\"1\",\"queues\":[\"*\"],\"types\":[' .. "
    "table.concat(types, ',') .. ']}')\n"
    "end\n";

static int build(struct bench *b, int types)
{
    char first[24], last[24], queues[24], jobs[24], recorded[24], now[24], head[STAMP_HEAD_LEN + 1];
    int64_t now_us = clock_wall_us();
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    stamp_head(now_us - 60000000, head);
    snprintf(queues, sizeof queues, "%d", types / (TYPES / QUEUES));
    snprintf(jobs, sizeof jobs, "%d", JOBS);
    snprintf(recorded, sizeof recorded, "%d", RECORDED);
    snprintf(now, sizeof now, "%" PRId64, now_us);
    for (int i = 0; rc == 0 && i < types; i += AT_ONCE) {
        snprintf(first, sizeof first, "%d", i);
        snprintf(last, sizeof last, "%d", i + AT_ONCE - 1);
        rc = server_ask(&b->server, NULL, &b->error, "EVAL", world, "0", first, last, queues, jobs, recorded,
                        head, now, NULL);
    }
    snprintf(last, sizeof last, "%d", types);
    return rc == 0 ? server_ask(&b->server, NULL, &b->error, "EVAL", workers, "0", last, now, NULL) : rc;
}

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

static int weir_start(struct bench *b, const char *const *words, pid_t *pid)
{
    const char *line[8] = {"weir", "--redis", b->server.url};
    pid_t parent = getpid();

    for (size_t i = 0; words[i]; i++)
        line[3 + i] = words[i];
    *pid = fork();
    if (*pid == 0) {
        int null = open("/dev/null", O_RDWR);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            dup2(null, STDOUT_FILENO);
            dup2(null, STDERR_FILENO);
            execv(b->command, (char *const *)line);
        }
        _exit(127);
    }
    return *pid > 0 ? 0 : error_set(&b->error, WEIR_EINTERNAL, "cannot fork: %s", strerror(errno));
}

/* cpu_us: what it used, once it has ended. */
static int weir_wait(pid_t pid, double *cpu_us)
{
    struct rusage used;
    int status = -1;

    while (wait4(pid, &status, 0, &used) < 0 && errno == EINTR)
        ;
    *cpu_us = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
              (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    return status;
}

static int time_command(struct bench *b, const char *const *words, struct took *took)
{
    int64_t redis_ns, after_ns, start_us = clock_mono_us();
    double cpu_us;
    pid_t pid;
    int rc = server_cpu(&b->server, &redis_ns, &b->error), status;

    if (rc == 0)
        rc = weir_start(b, words, &pid);
    if (rc != 0)
        return rc;
    status = weir_wait(pid, &cpu_us);
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
    rc = weir_start(b, (const char *const[]){"serve", "--listen", listen, NULL}, &web->pid);
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
    (void)weir_wait(web->pid, &cpu_us);
    return cpu_us;
}

static int send_request(int fd, const char *path, bool stays)
{
    char text[300];
    int len = snprintf(text, sizeof text, "GET %.200s HTTP/1.1\r\nHost: localhost\r\nConnection: %s\r\n\r\n",
                       path, stays ? "keep-alive" : "close");

    return send(fd, text, (size_t)len, MSG_NOSIGNAL) == len ? 0 : -1;
}

/* One request, to its end. */
static int get(struct bench *b, const struct web *web, const char *path, struct took *took)
{
    char answer[65536];
    int64_t redis_ns, after_ns, start_us;
    ssize_t n = -1, all = 0;
    bool good = false;
    int rc = server_cpu(&b->server, &redis_ns, &b->error), fd = open_link(web);

    start_us = clock_mono_us();
    if (fd >= 0 && send_request(fd, path, false) == 0)
        while ((n = recv(fd, answer, sizeof answer, 0)) > 0) {
            good = good || (all == 0 && n > 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0);
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
static int look_once(struct bench *b, const char *path, struct took *first, struct took *second)
{
    struct web web = {.pid = 0};
    int rc = web_start(b, &web);

    if (rc == 0)
        rc = get(b, &web, path, first);
    if (rc == 0)
        rc = get(b, &web, path, second);
    first->weir_ms = web_stop(&web) / 1e3;
    return rc;
}

static int look_at_page(struct bench *b, enum figure figure, const char *path)
{
    struct took least = {1e9, 1e9, 1e9}, again = least;
    int rc = 0;

    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        struct took first, second = {0};

        rc = look_once(b, path, &first, &second);
        if (rc == 0)
            keep_least(&least, &first);
        keep_least(&again, &second);
    }
    if (rc == 0)
        report(b, figure, least.ms, 0, "CPU: Redis %.0f ms, weir serve %.0f ms; again %.1f ms",
               least.redis_ms, least.weir_ms, again.ms);
    return rc;
}

/* ---- The longest call */

static void take_name(char name[64], const struct redisReply *words)
{
    const char *text = words->elements > 1 && strncasecmp(words->element[0]->str, "FCALL", 5) == 0
                           ? words->element[1]->str
                           : words->element[0]->str;
    const char *script = strncmp(text, "weir_", 5) == 0 ? strchr(text + 5, '_') : NULL;

    snprintf(name, 64, "%s", script ? script + 1 : text);
}

static int report_longest(struct bench *b)
{
    struct redisReply *reply = NULL;
    char name[64] = "none took 1 ms";
    long long longest_us = 0;
    struct args a;
    int rc;

    args_init(&a);
    args_add(&a, "SLOWLOG");
    args_add(&a, "GET");
    args_add(&a, "10000");
    rc = redis_call(b->server.redis, &a, &reply, NULL, &b->error);
    args_free(&a);
    for (size_t i = 0; rc == 0 && i < reply->elements; i++) {
        const struct redisReply *entry = reply->element[i];

        if (entry->element[2]->integer > longest_us) {
            longest_us = entry->element[2]->integer;
            take_name(name, entry->element[3]);
        }
    }
    freeReplyObject(reply);
    if (rc == 0)
        report(b, LOOK_LONGEST, (double)longest_us / 1e3, 0, "%s", name);
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
            rc = get(b, web, "/metrics", &took);
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
                 {LOOK_WORKERS, "/workers"},
                 {LOOK_DEAD, "/dead"},
                 {LOOK_REDIS, "/redis"},
                 {LOOK_API_STATUS, "/api/status"},
                 {LOOK_API_REPORT, "/api/report"},
                 {LOOK_METRICS, "/metrics"}};
    int rc = build(b, (int)bench_size(b, TYPES));

    if (rc == 0)
        rc = server_ask(&b->server, NULL, &b->error, "CONFIG", "SET", "slowlog-log-slower-than", SLOW_US,
                        "slowlog-max-len", "10000", NULL);
    if (rc == 0) /* the functions of Weir are loaded */
        rc = time_command(b, (const char *const[]){"status", NULL}, &(struct took){0});
    if (rc == 0)
        rc = server_ask(&b->server, NULL, &b->error, "SLOWLOG", "RESET", NULL);
    for (size_t i = 0; rc == 0 && i < sizeof commands / sizeof *commands; i++)
        rc = look_by_command(b, commands[i].figure, commands[i].word, commands[i].other);
    for (size_t i = 0; rc == 0 && i < sizeof pages / sizeof *pages; i++)
        rc = look_at_page(b, pages[i].figure, pages[i].path);
    if (rc == 0)
        rc = report_longest(b);
    return rc == 0 ? look_on(b) : rc;
}
