/* What Redis can do at most on this machine now: RPUSH without a library around it, and a claim and settle in a
 * dozen lines of Lua. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/bench.h"

#define PUSHES 500 /* values in one write */
#define WINDOW 3   /* writes under way, so that Redis always has the next one */
#define TURN 100   /* jobs in one claim */

/* ---- RPUSH */

static int dial(void)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(path.sun_path, sizeof path.sun_path, "%s", bench.server.socket);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&path, sizeof path) != 0)
        fail("cannot connect to %s: %s", bench.server.socket, strerror(errno));
    return fd;
}

/* PUSHES values, each in a command of its own. */
static char *make_pushes(size_t *len)
{
    char value[BODY_BYTES + 1];
    char *text = NULL;
    FILE *f = open_memstream(&text, len);

    if (!f)
        fail("out of memory");
    memset(value, 'x', BODY_BYTES);
    value[BODY_BYTES] = '\0';
    for (int i = 0; i < PUSHES; i++)
        fprintf(f, "*3\r\n$5\r\nRPUSH\r\n$7\r\nceiling\r\n$%d\r\n%s\r\n", BODY_BYTES, value);
    if (fclose(f) != 0)
        fail("out of memory");
    return text;
}

static void write_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n <= 0)
            fail("RPUSH: %s", strerror(errno));
        at += n;
        len -= (size_t)n;
    }
    bench_check();
}

/* Reads answers of one line each until at most that many are under way. */
static void read_answers(int fd, long *under_way, long most)
{
    char answers[16384];

    while (*under_way > most) {
        ssize_t n = recv(fd, answers, sizeof answers, 0);

        if (n <= 0 || answers[0] == '-')
            fail("RPUSH: no answer or a bad one");
        for (ssize_t i = 0; i < n; i++)
            *under_way -= answers[i] == '\n';
    }
}

struct speed ceiling_push(size_t jobs, int arg)
{
    struct stopwatch watch;
    long under_way = 0;
    size_t len;
    char *pushes = make_pushes(&len);
    int fd = dial();

    (void)arg;
    empty();
    watch = stopwatch_start(&bench.server);
    for (size_t i = 0; i < jobs / PUSHES; i++) {
        write_all(fd, pushes, len);
        under_way += PUSHES;
        read_answers(fd, &under_way, PUSHES * (WINDOW - 1));
    }
    read_answers(fd, &under_way, 0);
    close(fd);
    free(pushes);
    return stopwatch_stop(&bench.server, &watch, jobs);
}

/* ---- Lua alone */

static const char minimal[] =
    "local n = tonumber(ARGV[1])\n"
    "if #ARGV > 1 then redis.call('HDEL', KEYS[2], unpack(ARGV, 2)) end\n"
    "local jobs = redis.call('LRANGE', KEYS[1], 0, n - 1)\n"
    "if #jobs == 0 then return jobs end\n"
    "redis.call('LTRIM', KEYS[1], #jobs, -1)\n"
    "local leases = {}\n"
    "for i, job in ipairs(jobs) do leases[2 * i - 1], leases[2 * i] = tostring(i), job end\n"
    "redis.call('HSET', KEYS[2], unpack(leases))\n"
    "return leases\n";

static void begin_minimal(struct args *a, const char *sha)
{
    args_clear(a);
    args_add(a, "EVALSHA");
    args_add(a, sha);
    args_add(a, "2");
    args_add(a, PREFIX "queue:default");
    args_add(a, "leases");
    args_add_int(a, TURN);
}

/* One call; a becomes the next one, which settles the leases of this. Whether there were some. */
static bool call_minimal(struct args *a, const char *sha)
{
    struct redisReply *reply;
    bool some;

    must(redis_call(bench.server.redis, a, &reply, NULL, &failure));
    begin_minimal(a, sha);
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        args_add_bytes(a, reply->element[i]->str, reply->element[i]->len);
    some = reply->elements > 0;
    freeReplyObject(reply);
    return some;
}

struct speed ceiling_lua(size_t jobs, int arg)
{
    struct stopwatch watch;
    char sha[SHA_SIZE];
    struct args a = {0};

    (void)arg;
    prepare(&bench.server, "noop", NULL, jobs);
    server_load(&bench.server, minimal, sha);
    watch = stopwatch_start(&bench.server);
    begin_minimal(&a, sha);
    while (call_minimal(&a, sha))
        bench_check();
    args_free(&a);
    return stopwatch_stop(&bench.server, &watch, jobs);
}
