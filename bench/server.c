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

#define START_US INT64_C(10000000)
#define STOP_US INT64_C(5000000)

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

static int wait_until_ready(struct server *s, struct error *e)
{
    int64_t end_us = clock_mono_us() + START_US;

    while (server_ask(s, NULL, e, "PING", NULL) != 0) {
        if (waitpid(s->pid, NULL, WNOHANG) != 0) {
            s->pid = 0;
            return error_set(e, WEIR_ECONFIG, "redis-server does not start; install it with make deps");
        }
        if (clock_mono_us() > end_us)
            return error_set(e, WEIR_EUNREACHABLE, "redis-server does not answer; see %s/redis.log",
                             s->folder);
        clock_sleep_until(clock_mono_us() + 2000);
    }
    return 0;
}

int server_start(struct server *s, bool aof, struct error *e)
{
    struct redis_address address = {0};
    pid_t parent = getpid();
    int rc;

    *s = (struct server){.folder = "/tmp/weir-bench-XXXXXX"};
    if (!mkdtemp(s->folder))
        return error_set(e, WEIR_ECONFIG, "cannot make %s: %s", s->folder, strerror(errno));
    snprintf(s->socket, sizeof s->socket, "%s/redis.sock", s->folder);
    snprintf(s->url, sizeof s->url, "unix://%s", s->socket);
    snprintf(address.socket_path, sizeof address.socket_path, "%s", s->socket);
    s->redis = redis_new(&address);
    s->pid = s->redis ? fork() : -1;
    if (s->pid == 0)
        run_server(s, aof, parent);
    rc = s->pid > 0 ? wait_until_ready(s, e)
                    : error_set(e, WEIR_EINTERNAL, "cannot start redis-server: %s", strerror(errno));
    if (rc != 0)
        server_stop(s);
    return rc;
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
    if (s->pid > 0)
        end_process(s->pid);
    redis_free(s->redis);
    if (s->folder[0])
        nftw(s->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    *s = (struct server){0};
}

int server_ask(struct server *s, long long *number, struct error *e, const char *word, ...)
{
    struct redisReply *reply = NULL;
    struct args a;
    va_list rest;
    int rc;

    args_init(&a);
    va_start(rest, word);
    for (; word; word = va_arg(rest, const char *))
        args_add(&a, word);
    va_end(rest);
    rc = redis_call(s->redis, &a, &reply, NULL, e);
    if (rc == 0 && number)
        *number = reply->type == REDIS_REPLY_INTEGER  ? reply->integer
                  : reply->type == REDIS_REPLY_STRING ? atoll(reply->str)
                                                      : 0;
    freeReplyObject(reply);
    args_free(&a);
    return rc;
}

int server_load(struct server *s, const char *script, char sha[SHA_SIZE], struct error *e)
{
    struct redisReply *reply;
    struct args a;
    int rc;

    args_init(&a);
    for (const char *const *word = (const char *const[]){"SCRIPT", "LOAD", script, NULL}; *word; word++)
        args_add(&a, *word);
    rc = redis_call(s->redis, &a, &reply, NULL, e);
    args_free(&a);
    if (rc == 0) {
        snprintf(sha, SHA_SIZE, "%s", reply->str);
        freeReplyObject(reply);
    }
    return rc;
}

/* The text of INFO; *reply is the caller's. */
static int ask_info(struct server *s, struct redisReply **reply, struct error *e)
{
    struct args a;
    int rc;

    args_init(&a);
    args_add(&a, "INFO");
    args_add(&a, "all");
    rc = redis_call(s->redis, &a, reply, NULL, e);
    args_free(&a);
    if (rc == 0 && (*reply)->type != REDIS_REPLY_STRING) {
        freeReplyObject(*reply);
        rc = error_set(e, WEIR_EINTERNAL, "INFO: unexpected answer");
    }
    return rc;
}

int server_usage(struct server *s, struct usage *usage, struct error *e)
{
    struct redisReply *reply;
    double number, us;
    int rc = ask_info(s, &reply, e);

    if (rc != 0)
        return rc;
    *usage = (struct usage){0};
    for (const char *line = reply->str; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (sscanf(line, "used_cpu_sys:%lf", &number) == 1 || sscanf(line, "used_cpu_user:%lf", &number) == 1)
            usage->cpu_us += number * 1e6;
        else if (sscanf(line, "cmdstat_fcall:calls=%lf,usec=%lf", &number, &us) == 2)
            usage->commands += number, usage->scripts_us = us;
        else if (sscanf(line, "cmdstat_%*[^:]:calls=%lf", &number) == 1)
            usage->commands += number;
        else if (sscanf(line, "used_memory:%lf", &number) == 1)
            usage->memory_bytes = number;
        else if (sscanf(line, "total_net_input_bytes:%lf", &number) == 1)
            usage->bytes_in = number;
        else if (sscanf(line, "total_net_output_bytes:%lf", &number) == 1)
            usage->bytes_out = number;
    }
    freeReplyObject(reply);
    return 0;
}

int server_cpu(const struct server *s, int64_t *ns, struct error *e)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(s->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return error_set(e, WEIR_EINTERNAL, "the CPU time of redis-server cannot be read");
    *ns = (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
    return 0;
}

int server_version(struct server *s, char *version, size_t size, struct error *e)
{
    struct redisReply *reply;
    const char *at;
    int rc = ask_info(s, &reply, e);

    if (rc != 0)
        return rc;
    at = strstr(reply->str, "redis_version:");
    at = at ? at + strlen("redis_version:") : "";
    snprintf(version, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    freeReplyObject(reply);
    return 0;
}
