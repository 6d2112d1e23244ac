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
#include "core/clock.h"
#include "core/script.h"
#include "queue/turn.h"

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

static int push_all(struct bench *b, bool one_command, size_t writes, double *a_second)
{
    long answers = one_command ? 1 : PUSHES, under_way = 0;
    int64_t start_us = clock_mono_us();
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
    *a_second = (double)(writes * PUSHES) / ((double)(clock_mono_us() - start_us) / 1e6);
    if (fd >= 0)
        close(fd);
    free(pushes);
    return rc;
}

int ceiling_push(struct bench *b, double *a_second)
{
    static const enum figure figures[] = {CEILING_PUSH, CEILING_PUSH_MANY};
    int rc = 0;

    for (int many = 0; rc == 0 && many < 2 && !b->results[CEILING_PUSH_MANY].known; many++) {
        double rate = 0;

        rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);
        if (rc == 0)
            rc = push_all(b, many, bench_size(b, 2000), &rate);
        if (rc == 0)
            report(b, figures[many], rate, 0, "%s", "");
    }
    *a_second = b->results[CEILING_PUSH].value;
    return rc;
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

static int load_minimal(struct bench *b, char sha[64])
{
    struct redisReply *reply;
    struct args a;
    int rc;

    args_init(&a);
    args_add(&a, "SCRIPT");
    args_add(&a, "LOAD");
    args_add(&a, minimal);
    rc = redis_call(b->server.redis, &a, &reply, NULL, &b->error);
    if (rc == 0)
        snprintf(sha, 64, "%s", reply->str);
    if (rc == 0)
        freeReplyObject(reply);
    args_free(&a);
    return rc;
}

static int measure_minimal(struct bench *b)
{
    size_t jobs = bench_size(b, 500000), done = 0;
    int64_t start_us;
    char sha[64];
    struct args a;
    int n = prepare(b, &b->server, "noop", NULL, jobs);

    if (n == 0)
        n = load_minimal(b, sha);
    if (n != 0)
        return n;
    args_init(&a);
    begin_minimal(&a, sha);
    start_us = clock_mono_us();
    while ((n = call_minimal(b, &a, sha)) > 0 && bench_check(b) == 0)
        done += (size_t)n;
    if (n == 0)
        report(b, CEILING_LUA, (double)done / ((double)(clock_mono_us() - start_us) / 1e6), 0, "%s", "");
    args_free(&a);
    return n < 0 ? n : bench_check(b);
}

/* ---- Our own scripts */

static const char *const queue_name[] = {"default"}, *const type_name[] = {"noop"};

static int adopt(struct bench *b)
{
    struct adopt_call call = {.worker = "bench",
                              .old_worker = "",
                              .group = "bench",
                              .lease_us = 600000000,
                              .info = "{}",
                              .queues = {queue_name, 1}};
    struct redisReply *reply;
    struct args a;
    int rc;

    args_init(&a);
    adopt_request(&a, PREFIX, -1, &call);
    rc = redis_call(b->server.redis, &a, &reply, NULL, &b->error);
    if (rc == 0)
        freeReplyObject(reply);
    args_free(&a);
    return rc;
}

/* Settles the leases of the last turn, claims the next ones. */
static int take_turn(struct bench *b, bool limited, int64_t number, struct claim *claim,
                     struct redisReply **claimed)
{
    struct claim_call call = {.worker = "bench",
                              .group = "bench",
                              .turn = number,
                              .free = limited ? TURN : 1,
                              .prefetch = limited ? 0 : TURN - 1,
                              .look = TURN,
                              .duty_until_us = claim->duty_until_us,
                              .queues = {queue_name, 1},
                              .types = {type_name, 1}};
    struct redisReply *settled = NULL;
    struct args a;
    int rc = 0;

    args_init(&a);
    if (claim->lease_count > 0) {
        settle_request(&a, PREFIX, -1, "bench");
        settle_done(&a, "noop", claim->lease_count);
        for (size_t i = 0; i < claim->lease_count; i++)
            settle_token(&a, claim->leases[i].token);
        rc = redis_append(b->server.redis, &a, &b->error);
        args_clear(&a);
    }
    freeReplyObject(*claimed);
    *claimed = NULL;
    claim_request(&a, PREFIX, -1, &call);
    if (rc == 0)
        rc = redis_append(b->server.redis, &a, &b->error);
    args_free(&a);
    if (rc == 0 && claim->lease_count > 0)
        rc = redis_result(b->server.redis, &settled, &b->error);
    freeReplyObject(settled);
    if (rc == 0)
        rc = redis_result(b->server.redis, claimed, &b->error);
    return rc == 0 ? claim_reply(*claimed, claim, &b->error) : rc;
}

static int measure_turns(struct bench *b, bool limited, double *a_second)
{
    struct redisReply *claimed = NULL;
    struct claim claim = {0};
    int64_t start_us, turn = 0;
    size_t done = 0;
    int rc = prepare(b, &b->server, "noop", limited ? "1000000/s" : NULL, bench_size(b, 500000));

    if (rc == 0)
        rc = adopt(b);
    start_us = clock_mono_us();
    do {
        if (rc == 0)
            rc = take_turn(b, limited, ++turn, &claim, &claimed);
        done += claim.lease_count;
        if (rc == 0)
            rc = bench_check(b);
    } while (rc == 0 && claim.lease_count > 0);
    *a_second = (double)done / ((double)(clock_mono_us() - start_us) / 1e6);
    freeReplyObject(claimed);
    claim_free(&claim);
    return rc;
}

int ceiling_turn(struct bench *b, bool limited, double *a_second)
{
    enum figure figure = limited ? CEILING_TURN_LIMITED : CEILING_TURN;
    int rc = 0;

    if (!b->results[CEILING_LUA].known)
        rc = measure_minimal(b);
    if (rc == 0 && !b->results[figure].known) {
        rc = measure_turns(b, limited, a_second);
        if (rc == 0)
            report(b, figure, *a_second, b->results[CEILING_LUA].value, "%s", "");
    }
    *a_second = b->results[figure].value;
    return rc;
}
