/* What TLS costs: the same over TCP of this machine, plain and by TLS, in turns. */
#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"

#define JOBS 200000
#define CONNECTIONS 1000

static struct server plain, tls; /* the same Redis; their addresses differ */

/* A certificate that is its own issuer, with a key as most services have. */
static int make_certificate(struct bench *b)
{
    char command[400];

    snprintf(command, sizeof command,
             "cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout own.key -out own.crt -days 2 -subj "
             "/CN=weir-bench "
             "-addext subjectAltName=IP:127.0.0.1 >/dev/null 2>&1",
             b->server.folder);
    return system(command) == 0 ? 0 : error_set(&b->error, WEIR_ECONFIG, "no certificate; install openssl");
}

static int free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;

    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 &&
        getsockname(fd, (struct sockaddr *)&at, &len) == 0)
        port = ntohs(at.sin_port);
    close(fd);
    return port;
}

static int listen_on_ports(struct bench *b)
{
    char plain_port[24], tls_port[24];
    int rc;

    snprintf(plain_port, sizeof plain_port, "%d", free_port());
    snprintf(tls_port, sizeof tls_port, "%d", free_port());
    rc = server_ask(&b->server, NULL, &b->error, "CONFIG", "SET", "bind", "127.0.0.1", "port", plain_port,
                    "tls-cert-file", "own.crt", "tls-key-file", "own.key", "tls-auth-clients", "no",
                    "tls-port", tls_port, NULL);
    plain = tls = b->server;
    snprintf(plain.url, sizeof plain.url, "redis://127.0.0.1:%s", plain_port);
    snprintf(tls.url, sizeof tls.url, "rediss://127.0.0.1:%s?cacert=%s/own.crt", tls_port, b->server.folder);
    return rc;
}

/* ---- Trials */

static int run(struct bench *b, struct server *s, size_t jobs, struct speed *speed)
{
    int rc = prepare(b, s, "noop", NULL, jobs);

    return rc == 0 ? time_worker(b, s, EXECUTORS, jobs, speed) : rc;
}

static int ping(struct redis *r, struct error *e)
{
    struct redisReply *reply;
    struct args a;
    int rc;

    args_init(&a);
    args_add(&a, "PING");
    rc = redis_call(r, &a, &reply, NULL, e);
    freeReplyObject(reply);
    args_free(&a);
    return rc;
}

/* Pings, each on a connection of its own. */
static int connect_all(struct bench *b, struct server *s, size_t count, struct speed *speed)
{
    struct redis_address address;
    struct redis *r;
    struct stopwatch watch;
    int rc = redis_address_parse(s->url, &address, &b->error);

    if (rc != 0 || !(r = redis_new(&address)))
        return rc ? rc : error_set(&b->error, WEIR_EINTERNAL, "out of memory");
    rc = stopwatch_start(b, s, &watch);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct redis *one = redis_new_plain(r);

        rc = one ? ping(one, &b->error) : error_set(&b->error, WEIR_EINTERNAL, "out of memory");
        redis_free(one);
    }
    redis_free(r);
    return rc == 0 ? stopwatch_stop(b, s, &watch, count, speed) : rc;
}

#define TRIAL(name, call)                                                                                    \
    static int name##_plain(struct bench *b, size_t n, struct speed *speed)                                  \
    {                                                                                                        \
        struct server *s = &plain;                                                                           \
        return call;                                                                                         \
    }                                                                                                        \
    static int name##_tls(struct bench *b, size_t n, struct speed *speed)                                    \
    {                                                                                                        \
        struct server *s = &tls;                                                                             \
        return call;                                                                                         \
    }
TRIAL(run, run(b, s, n, speed))
TRIAL(connect, connect_all(b, s, n, speed))

int bench_tls(struct bench *b)
{
    static const struct trial jobs[] = {{TLS_RUN_PLAIN, FIGURES, run_plain, ""},
                                        {TLS_RUN, TLS_RUN_PLAIN, run_tls, ""}};
    static const struct trial connections[] = {{TLS_CONNECT_PLAIN, FIGURES, connect_plain, ""},
                                               {TLS_CONNECT, TLS_CONNECT_PLAIN, connect_tls, ""}};
    int rc = make_certificate(b);

    if (rc == 0)
        rc = listen_on_ports(b);
    if (rc == 0)
        rc = measure_trials(b, jobs, 2, bench_size(b, JOBS));
    return rc == 0 ? measure_trials(b, connections, 2, bench_size(b, CONNECTIONS)) : rc;
}
