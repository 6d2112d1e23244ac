#include "bench/server.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"

#define START_US INT64_C(10000000)
#define STOP_US INT64_C(5000000)

const char *running;
struct error failure;

void fail(const char *why, ...)
{
    va_list rest;

    fprintf(stderr, "%s: %s%s", program_invocation_short_name, running ? running : "", running ? ": " : "");
    va_start(rest, why);
    vfprintf(stderr, why, rest);
    va_end(rest);
    fputc('\n', stderr);
    exit(-WEIR_EINTERNAL);
}

void must(int rc)
{
    if (rc != 0)
        fail("%s", failure.text);
}

/* ---- Life */

static struct server *servers; /* that this process, or its parent, has started */

/* A process that was forked has its parent's list. */
static void stop_all(void)
{
    struct server *next;

    for (struct server *s = servers; s; s = next) {
        next = s->next;
        if (s->owner == getpid())
            server_stop(s);
    }
}

static void run_server(const struct server *s, bool aof, pid_t parent)
{
    const char *yes_no = aof ? "yes" : "no";
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); /* Ctrl-C is for the benchmark, which then stops it */
    if (getppid() != parent)
        _exit(1);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", s->socket, "--dir", s->folder,
           "--save", "", "--appendonly", yes_no, "--appendfsync", "everysec", "--logfile", "redis.log",
           (char *)NULL);
    _exit(127);
}

static void wait_until_ready(struct server *s)
{
    int64_t end_us = clock_mono_us() + START_US;
    struct redisReply *reply = NULL;
    struct args a = {0};

    args_add(&a, "PING");
    while (redis_call(s->redis, &a, &reply, NULL, &failure) != 0) {
        if (waitpid(s->pid, NULL, WNOHANG) != 0) {
            s->pid = 0;
            fail("redis-server does not start; install it with make deps");
        }
        if (clock_mono_us() > end_us)
            fail("redis-server does not answer; see %s/redis.log", s->folder);
        clock_sleep_until(clock_mono_us() + 2000);
    }
    freeReplyObject(reply);
    args_free(&a);
}

struct redis *server_connect(const struct server *s)
{
    struct redis_address address = {0};
    struct redis *redis;

    snprintf(address.socket_path, sizeof address.socket_path, "%s", s->socket);
    redis = redis_new(&address);
    if (!redis)
        fail("out of memory");
    return redis;
}

void server_start(struct server *s, bool aof)
{
    pid_t parent = getpid();

    *s = (struct server){.folder = "/tmp/weir-bench-XXXXXX", .owner = parent, .next = servers};
    if (!mkdtemp(s->folder))
        fail("cannot make %s: %s", s->folder, strerror(errno));
    if (!servers)
        atexit(stop_all);
    servers = s;
    snprintf(s->socket, sizeof s->socket, "%s/redis.sock", s->folder);
    snprintf(s->url, sizeof s->url, "unix://%s", s->socket);
    s->redis = server_connect(s);
    s->pid = fork();
    if (s->pid == 0)
        run_server(s, aof, parent);
    if (s->pid < 0)
        fail("cannot start redis-server: %s", strerror(errno));
    wait_until_ready(s);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void end_process(pid_t pid)
{
    int64_t end_us = clock_mono_us() + STOP_US;

    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (clock_mono_us() > end_us)
            kill(pid, SIGKILL);
        clock_sleep_until(clock_mono_us() + 2000);
    }
}

void server_stop(struct server *s)
{
    struct server **at = &servers;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at)
        *at = s->next;
    if (s->pid > 0)
        end_process(s->pid);
    redis_free(s->redis);
    if (s->folder[0])
        nftw(s->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    *s = (struct server){0};
}

/* ---- Questions */

struct redisReply *server_call(struct server *s, struct args *a)
{
    struct redisReply *reply;

    must(redis_call(s->redis, a, &reply, NULL, &failure));
    args_free(a);
    return reply;
}

static struct redisReply *call_words(struct server *s, const char *word, va_list rest)
{
    struct args a = {0};

    for (; word; word = va_arg(rest, const char *))
        args_add(&a, word);
    return server_call(s, &a);
}

struct redisReply *server_reply(struct server *s, const char *word, ...)
{
    struct redisReply *reply;
    va_list rest;

    va_start(rest, word);
    reply = call_words(s, word, rest);
    va_end(rest);
    return reply;
}

long long server_ask(struct server *s, const char *word, ...)
{
    struct redisReply *reply;
    long long number;
    va_list rest;

    va_start(rest, word);
    reply = call_words(s, word, rest);
    va_end(rest);
    number = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
             : reply->type == REDIS_REPLY_STRING ? atoll(reply->str)
                                                 : 0;
    freeReplyObject(reply);
    return number;
}

void server_load(struct server *s, const char *script, char sha[SHA_SIZE])
{
    struct redisReply *reply = server_reply(s, "SCRIPT", "LOAD", script, NULL);

    snprintf(sha, SHA_SIZE, "%s", reply->str);
    freeReplyObject(reply);
}

struct usage server_usage(struct server *s)
{
    struct redisReply *reply = server_reply(s, "INFO", "all", NULL);
    struct usage usage = {0};
    double number, us;

    for (const char *line = reply->str; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (sscanf(line, "used_cpu_sys:%lf", &number) == 1 || sscanf(line, "used_cpu_user:%lf", &number) == 1)
            usage.cpu_us += number * 1e6;
        else if (sscanf(line, "cmdstat_fcall:calls=%lf,usec=%lf", &number, &us) == 2)
            usage.commands += number, usage.scripts_us = us;
        else if (sscanf(line, "cmdstat_%*[^:]:calls=%lf", &number) == 1)
            usage.commands += number;
        else if (sscanf(line, "used_memory:%lf", &number) == 1)
            usage.memory_bytes = number;
        else if (sscanf(line, "total_net_input_bytes:%lf", &number) == 1)
            usage.bytes_in = number;
        else if (sscanf(line, "total_net_output_bytes:%lf", &number) == 1)
            usage.bytes_out = number;
    }
    freeReplyObject(reply);
    return usage;
}

int64_t server_cpu(const struct server *s)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(s->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        fail("the CPU time of redis-server cannot be read");
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

void server_version(struct server *s, char *version, size_t size)
{
    struct redisReply *reply = server_reply(s, "INFO", "server", NULL);
    const char *at = strstr(reply->str, "redis_version:");

    at = at ? at + strlen("redis_version:") : "";
    snprintf(version, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    freeReplyObject(reply);
}
