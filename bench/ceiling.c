/* What Redis can do at most on this machine now: RPUSH without a library around it, a claim and settle in a
 * dozen lines of Lua, and Weir's own scripts called in a tight loop without executors. */
#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/turns.h"

#define PUSHES 500 /* values in one write */
#define WINDOW 3   /* writes under way, so that Redis always has the next one */
#define TURN 100   /* jobs in one claim */

/* ---- RPUSH */

static int dial(struct bench *b)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(path.sun_path, sizeof path.sun_path, "%s", b->server.socket);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&path, sizeof path) == 0)
        return fd;
    error_set(&b->error, WEIR_EUNREACHABLE, "cannot connect to %s: %s", b->server.socket, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* PUSHES values as that many commands or as one. NULL: out of memory. */
static char *make_pushes(bool one_command, size_t *len)
{
    char value[BODY_BYTES + 1];
    char *text = NULL;
    FILE *f = open_memstream(&text, len);

    if (!f)
        return NULL;
    memset(value, 'x', BODY_BYTES);
    value[BODY_BYTES] = '\0';
    for (int i = 0; i < PUSHES; i++) {
        if (i == 0 || !one_command)
            fprintf(f, "*%d\r\n$5\r\nRPUSH\r\n$7\r\nceiling\r\n", one_command ? 2 + PUSHES : 3);
        fprintf(f, "$%d\r\n%s\r\n", BODY_BYTES, value);
    }
    return fclose(f) == 0 ? text : NULL;
}

static int write_all(struct bench *b, int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

        if (n <= 0)
            return error_set(&b->error, WEIR_EUNREACHABLE, "RPUSH: %s", strerror(errno));
        at += n;
        len -= (size_t)n;
    }
    return bench_check(b);
}

/* Reads answers of one line each until at most that many are under way. */
static int read_answers(struct bench *b, int fd, long *under_way, long most)
{
    char answers[16384];

    while (*under_way > most) {
        ssize_t n = recv(fd, answers, sizeof answers, 0);

        if (n <= 0 || answers[0] == '-')
            return error_set(&b->error, WEIR_EUNREACHABLE, "RPUSH: no answer or a bad one");
        for (ssize_t i = 0; i < n; i++)
            *under_way -= answers[i] == '\n';
    }
    return 0;
}

static int push_all(struct bench *b, bool one_command, size_t writes)
{
    long answers = one_command ? 1 : PUSHES, under_way = 0;
    size_t len;
    char *pushes = make_pushes(one_command, &len);
    int fd = dial(b), rc = fd < 0 || !pushes ? WEIR_EINTERNAL : 0;

    for (size_t i = 0; rc == 0 && i < writes; i++) {
        rc = write_all(b, fd, pushes, len);
        under_way += answers;
        if (rc == 0)
            rc = read_answers(b, fd, &under_way, answers * (WINDOW - 1));
    }
    if (rc == 0)
        rc = read_answers(b, fd, &under_way, 0);
    if (fd >= 0)
        close(fd);
    free(pushes);
    return rc;
}

static int time_pushes(struct bench *b, bool one_command, size_t jobs, struct speed *speed)
{
    struct stopwatch watch;
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    if (rc == 0)
        rc = push_all(b, one_command, jobs / PUSHES);
    return rc == 0 ? stopwatch_stop(b, &b->server, &watch, jobs, speed) : rc;
}

int ceiling_push(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_pushes(b, false, jobs, speed);
}

int ceiling_push_many(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_pushes(b, true, jobs, speed);
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

/* One call; a becomes the next one, which settles the leases of this. Returns how many there were, or a
 * status. */
static int call_minimal(struct bench *b, struct args *a, const char *sha)
{
    struct redisReply *reply;
    int rc = redis_call(b->server.redis, a, &reply, NULL, &b->error);

    if (rc != 0)
        return rc;
    begin_minimal(a, sha);
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        args_add_bytes(a, reply->element[i]->str, reply->element[i]->len);
    rc = (int)reply->elements / 2;
    freeReplyObject(reply);
    return rc;
}

int ceiling_lua(struct bench *b, size_t jobs, struct speed *speed)
{
    struct stopwatch watch;
    char sha[SHA_SIZE];
    struct args a;
    int n = prepare(b, &b->server, "noop", NULL, jobs);

    if (n == 0)
        n = server_load(&b->server, minimal, sha, &b->error);
    if (n == 0)
        n = stopwatch_start(b, &b->server, &watch);
    if (n != 0)
        return n;
    args_init(&a);
    begin_minimal(&a, sha);
    while ((n = call_minimal(b, &a, sha)) > 0 && bench_check(b) == 0)
        ;
    args_free(&a);
    if (n >= 0)
        n = bench_check(b);
    return n == 0 ? stopwatch_stop(b, &b->server, &watch, jobs, speed) : n;
}

/* ---- Our own scripts */

static int time_turns(struct bench *b, bool limited, size_t jobs, struct speed *speed)
{
    struct turns turns = {.server = &b->server,
                          .type = "noop",
                          .free = limited ? TURN : 1,
                          .prefetch = limited ? 0 : TURN - 1,
                          .chunk = TURN,
                          .now_us = -1};
    struct stopwatch watch;
    int rc = prepare(b, &b->server, "noop", limited ? NEVER_REACHED : NULL, jobs);

    if (rc == 0)
        rc = turns_begin(b, &turns);
    if (rc == 0)
        rc = stopwatch_start(b, &b->server, &watch);
    if (rc == 0)
        rc = turns_run(b, &turns);
    if (rc == 0)
        rc = stopwatch_stop(b, &b->server, &watch, jobs, speed);
    if (rc == 0 && turns.started != jobs)
        rc = error_set(&b->error, WEIR_EINTERNAL, "claim: %zu of %zu jobs came", turns.started, jobs);
    turns_free(&turns);
    return rc;
}

int ceiling_turn(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_turns(b, false, jobs, speed);
}

int ceiling_turn_limited(struct bench *b, size_t jobs, struct speed *speed)
{
    return time_turns(b, true, jobs, speed);
}
