/* The settings stand in folder/redis.conf, so that a restart needs no memory of them. The server dies with
 * the thread that started it. */
#include "tests/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/script/script.h"
#include "tests/clock_shift.h"
#include "tests/program.h"
#include "tests/proxy.h"
#include "tests/test.h"

#define START_S 60 /* a machine that is busy with other tests */
#define SERVER_WORDS 64
#define SLOW_US "60000000" /* the doctor warns of slow calls, and a busy machine slows any */
#define ADMIN "weir-test"  /* lets server_ask in whatever password a test sets */

/* A server with an AOF is one that is killed. With everysec it would put off its writes for two seconds while the disk is busy, and the kill would take
 * them along; without a sync all that it has answered is with the kernel. */
static void write_config(const struct server *s, const char *const *options)
{
    char path[128];
    FILE *f;

    snprintf(path, sizeof path, "%s/redis.conf", s->folder);
    f = fopen(path, "w");
    if (!f)
        fail_msg("cannot write %s: %s", path, strerror(errno));
    fprintf(f,
            "port 0\nunixsocket %s\nunixsocketperm 700\ndir %s\nlogfile %s/redis.log\nsave \"\"\n"
            "appendonly %s\nappendfsync %s\nenable-debug-command local\n"
            "slowlog-log-slower-than " SLOW_US "\nuser " ADMIN " on nopass ~* &* +@all",
            s->socket, s->folder, s->folder, s->aof ? "yes" : "no", s->aof ? "no" : "everysec");
    for (; options && *options; options++) {
        if (strncmp(*options, "--", 2) == 0)
            fprintf(f, "\n%s", *options + 2);
        else
            fprintf(f, " \"%s\"", *options);
    }
    fputc('\n', f);
    fclose(f);
}

static const char *clock_file(const struct server *s, char file[128])
{
    snprintf(file, 128, "%s/clock", s->folder);
    return file;
}

static void run_server(const struct server *s, pid_t parent)
{
    const char *program = getenv("REDIS_SERVER");
    char config[128], clock[128];
    int null = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    if (s->shifted)
        clock_shift_enter(clock_file(s, clock));
    snprintf(config, sizeof config, "%s/redis.conf", s->folder);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    program = program && *program ? program : "redis-server";
    execlp(program, program, config, s->sentinel ? "--sentinel" : (char *)NULL, (char *)NULL);
    _exit(127);
}

/* Below the ports that the kernel gives to connections: those of this process, of which no other test program has any. */
int server_free_port(void)
{
    enum { FIRST = 10000, OF_EACH = 32, PROCESSES = 700, LAST = FIRST + OF_EACH * PROCESSES };
    static int used;

    for (int tries = 0; tries < LAST - FIRST; tries++) {
        int port = FIRST + (getpid() % PROCESSES * OF_EACH + used++) % (LAST - FIRST);
        struct sockaddr_in at = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons((uint16_t)port)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool is_free = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0;

        close(fd);
        if (is_free)
            return port;
    }
    fail_msg("no port is free");
    return -1;
}

static redisContext *connect_to(const struct server *s)
{
    const struct timeval patience = {.tv_sec = 60};
    redisContext *c = redisConnectUnix(s->socket);

    if (c && c->err == 0 && redisSetTimeout(c, patience) == REDIS_OK)
        return c;
    if (c)
        redisFree(c);
    return NULL;
}

/* One command as one who may do all. */
static redisReply *ask(const struct server *s, int count, const char **words)
{
    redisContext *c = connect_to(s);
    redisReply *reply;

    if (!c)
        return NULL;
    reply = redisCommandArgv(c, count, words, NULL);
    if (reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOAUTH", 6) == 0) {
        freeReplyObject(reply);
        freeReplyObject(redisCommand(c, "AUTH " ADMIN " any"));
        reply = redisCommandArgv(c, count, words, NULL);
    }
    redisFree(c);
    return reply;
}

static bool answers(const struct server *s)
{
    const char *ping[] = {"PING"};
    redisReply *reply = ask(s, 1, ping);
    bool ready = reply && !(reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "LOADING", 7) == 0);

    freeReplyObject(reply);
    return ready;
}

static void launch(struct server *s)
{
    int64_t end_us = clock_mono_us() + START_S * INT64_C(1000000);
    pid_t parent = getpid();
    int ended;

    unlink(s->socket);
    s->pid = fork();
    if (s->pid == 0)
        run_server(s, parent);
    while (!answers(s)) {
        if (waitpid(s->pid, &ended, WNOHANG) != 0)
            fail_msg("redis-server ended (wait status %#x); see %s/redis.log", ended, s->folder);
        if (clock_mono_us() > end_us)
            fail_msg("redis-server does not answer; see %s/redis.log", s->folder);
        clock_sleep_until(clock_mono_us() + 2000);
    }
}

void server_start(struct server *s, bool aof)
{
    server_start_with(s, aof, NULL);
}

static void make_server(struct server *s, bool aof, const char *const *options)
{
    *s = (struct server){.aof = aof};
    folder_make(s->folder);
    snprintf(s->socket, sizeof s->socket, "%s/redis.sock", s->folder);
    snprintf(s->url, sizeof s->url, "unix://%s", s->socket);
    write_config(s, options);
}

void server_start_with(struct server *s, bool aof, const char *const *options)
{
    make_server(s, aof, options);
    launch(s);
}

void server_start_sentinel(struct server *s, const char *const *options)
{
    make_server(s, false, options);
    s->sentinel = true;
    launch(s);
}

void server_start_shifted(struct server *s, bool aof, const char *const *options)
{
    make_server(s, aof, options);
    s->shifted = true;
    server_shift_clock(s, 0);
    launch(s);
}

void server_shift_clock(struct server *s, int64_t shift_us)
{
    char clock[128];

    assert_true(s->shifted);
    clock_shift_set(clock_file(s, clock), shift_us);
}

void server_kill(struct server *s)
{
    if (s->pid <= 0)
        return;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void server_restart(struct server *s)
{
    server_kill(s);
    launch(s);
}

void server_stop(struct server *s)
{
    server_kill(s);
    if (s->folder[0])
        folder_remove(s->folder);
    s->folder[0] = '\0';
}

static char *print_reply(const redisReply *reply)
{
    char *text = NULL;
    size_t size;
    FILE *f;

    if (reply->type != REDIS_REPLY_ARRAY) {
        int n = reply->type == REDIS_REPLY_INTEGER ? asprintf(&text, "%lld", reply->integer)
                : reply->type == REDIS_REPLY_NIL   ? asprintf(&text, "(nil)")
                : reply->type == REDIS_REPLY_ERROR ? asprintf(&text, "(error) %s", reply->str)
                                                   : asprintf(&text, "%s", reply->str);

        assert_true(n >= 0);
        return text;
    }
    f = open_memstream(&text, &size);
    assert_non_null(f);
    for (size_t i = 0; i < reply->elements; i++) {
        char *one = print_reply(reply->element[i]);

        fprintf(f, "%s%s", i ? "\n" : "", one);
        free(one);
    }
    fclose(f);
    return text;
}

static char *ask_words(struct server *s, bool must, const char *word, va_list rest)
{
    const char *words[SERVER_WORDS];
    redisReply *reply;
    char *text;
    int count = 0;

    for (; word; word = va_arg(rest, const char *)) {
        assert_true(count < SERVER_WORDS);
        words[count++] = word;
    }
    reply = ask(s, count, words);
    if (!reply && must)
        fail_msg("%s: redis-server does not answer; see %s/redis.log", words[0], s->folder);
    if (!reply)
        return NULL;
    text = print_reply(reply);
    freeReplyObject(reply);
    return text;
}

char *server_ask(struct server *s, const char *word, ...)
{
    va_list rest;
    char *text;

    va_start(rest, word);
    text = ask_words(s, true, word, rest);
    va_end(rest);
    return text;
}

#define STAMP_DIGITS "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"

/* Leaves out an attr of a head that is a time; a head that says nothing but that goes as a whole. */
static void leave_out(char *text, const char *attr)
{
    static const char bare[] = "@0,0,0";

    for (char *at = text; (at = strstr(at, attr));) {
        char *end = at + 2 + strspn(at + 2, STAMP_DIGITS);
        bool alone = *end == ';' && at - text >= (long)sizeof bare - 1 &&
                     strncmp(at - (sizeof bare - 1), bare, sizeof bare - 1) == 0;

        if (end - at != 9 || (*end != ';' && *end != ',')) {
            at++;
            continue;
        }
        at -= alone ? sizeof bare - 1 : 0;
        memmove(at, end + alone, strlen(end + alone) + 1);
    }
}

/* Leaves out heads that are stamps. */
static void leave_out_heads(char *text)
{
    for (char *at = text; (at = strchr(at, '@'));)
        if (strspn(at + 1, STAMP_DIGITS) == 7 && at[8] == '{')
            memmove(at, at + 8, strlen(at + 8) + 1);
        else
            at++;
}

/* The same of when a job that came back was taken. */
static void leave_out_taken(char *text)
{
    for (char *at = text; (at = strstr(at, ",g"));) {
        size_t slot = strspn(at + 2, "0123456789");
        char *end = at + 2 + slot + 3;

        if (slot < 1 || strlen(at) < slot + 6 || at[2 + slot] != '.' || (*end != ';' && *end != ',')) {
            at++;
            continue;
        }
        memmove(at, end, strlen(end) + 1);
    }
}

char *unstamped(char *text)
{
    leave_out_taken(text);
    leave_out(text, ",d");
    leave_out(text, ",t");
    leave_out_heads(text);
    return text;
}

char *server_try(struct server *s, const char *word, ...)
{
    va_list rest;
    char *text;

    va_start(rest, word);
    text = ask_words(s, false, word, rest);
    va_end(rest);
    return text;
}

long long server_number(struct server *s, const char *word, ...)
{
    va_list rest;
    long long number;
    char *text, *end;

    va_start(rest, word);
    text = ask_words(s, true, word, rest);
    va_end(rest);
    number = strtoll(text, &end, 10);
    if (end == text || *end)
        fail_msg("%s: %s is no number", word, text);
    free(text);
    return number;
}

long long server_calls(struct server *s, const char *command)
{
    char *info = server_ask(s, "INFO", "commandstats", NULL), mark[64], *at;
    long long calls;

    snprintf(mark, sizeof mark, "cmdstat_%s:calls=", command);
    at = strstr(info, mark);
    calls = at ? atoll(at + strlen(mark)) : 0;
    free(info);
    return calls;
}

struct proxy *proxy_start_to(const struct server *s, int port)
{
    struct proxy *p = proxy_open(s->folder, s->socket, port);

    if (!p)
        fail_msg("a proxy cannot be started: %s", strerror(errno));
    return p;
}

struct proxy *proxy_start(const struct server *s)
{
    return proxy_start_to(s, 0);
}

void server_hold_clock(struct server *s)
{
    static const char before[] = "if VIRTUAL then return 0 end\n";
    const char *at = strstr(script_library, before);
    size_t head = at ? (size_t)(at - script_library) : 0;
    char *text = malloc(strlen(script_library) + 1), *answer;

    assert_non_null(text);
    assert_non_null(at);
    assert_null(strstr(at + 1, before));
    sprintf(text, "%.*sif true then return 0 end\n%s", (int)head, script_library, at + strlen(before));
    answer = server_ask(s, "FUNCTION", "LOAD", "REPLACE", text, NULL);
    if (strncmp(answer, "(error)", 7) == 0)
        fail_msg("%s", answer);
    free(answer);
    free(text);
}
