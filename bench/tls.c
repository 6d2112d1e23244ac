/* What TLS costs: the same over TCP of this machine, plain and by TLS, in turns. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/bench.h"

#define JOBS 200000
#define CONNECTIONS 1000

static struct server plain, tls; /* the same Redis; their addresses differ */

/* A certificate that is its own issuer, with a key as most services have. */
static void make_certificate(void)
{
    char command[400];

    snprintf(command, sizeof command,
             "cd %s && openssl req -x509 -newkey rsa:2048 -nodes -keyout own.key -out own.crt -days 2 -subj "
             "/CN=weir-bench "
             "-addext subjectAltName=IP:127.0.0.1 >/dev/null 2>&1",
             bench.server.folder);
    if (system(command) != 0)
        fail("no certificate; install openssl");
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

static void listen_on_ports(void)
{
    char plain_port[24], tls_port[24];

    snprintf(plain_port, sizeof plain_port, "%d", free_port());
    snprintf(tls_port, sizeof tls_port, "%d", free_port());
    server_ask(&bench.server, "CONFIG", "SET", "bind", "127.0.0.1", "port", plain_port, "tls-cert-file",
               "own.crt", "tls-key-file", "own.key", "tls-auth-clients", "no", "tls-port", tls_port, NULL);
    plain = tls = bench.server;
    snprintf(plain.url, sizeof plain.url, "redis://127.0.0.1:%s", plain_port);
    snprintf(tls.url, sizeof tls.url, "rediss://127.0.0.1:%s?cacert=%s/own.crt", tls_port,
             bench.server.folder);
}

/* ---- Trials */

static struct speed run(size_t jobs, int by_tls)
{
    struct server *s = by_tls ? &tls : &plain;

    prepare(s, "noop", NULL, jobs);
    return time_worker(s, EXECUTORS, jobs);
}

/* Pings, each on a connection of its own. */
static struct speed connect_all(size_t count, int by_tls)
{
    struct server *s = by_tls ? &tls : &plain, one = *s;
    struct redis_address address;
    struct stopwatch watch;
    struct redis *first;

    must(redis_address_parse(s->url, &address, &failure));
    first = redis_new(&address);
    watch = stopwatch_start(s);
    for (size_t i = 0; first && i < count; i++) {
        one.redis = redis_new_plain(first);
        if (!one.redis)
            fail("out of memory");
        server_ask(&one, "PING", NULL);
        redis_free(one.redis);
    }
    redis_free(first);
    return stopwatch_stop(s, &watch, count);
}

void bench_tls(void)
{
    static const struct trial jobs[] = {{TLS_RUN_PLAIN, FIGURES, run, false, ""},
                                        {TLS_RUN, TLS_RUN_PLAIN, run, true, ""}};
    static const struct trial connections[] = {{TLS_CONNECT_PLAIN, FIGURES, connect_all, false, ""},
                                               {TLS_CONNECT, TLS_CONNECT_PLAIN, connect_all, true, ""}};

    make_certificate();
    listen_on_ports();
    measure_trials(jobs, 2, bench_size(JOBS));
    measure_trials(connections, 2, bench_size(CONNECTIONS));
}
