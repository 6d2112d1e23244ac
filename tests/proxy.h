/* A fault proxy: a thread between the clients and the redis-server of a test, or of the benchmark. It passes everything on until
 * it is told to misbehave; each call counts from now on, over all connections together. A server may have
 * several: give each worker its own, and one of them alone is cut off, or far away.
 *
 *     a link of 10 ms of round trip    proxy_delay(p, PROXY_REQUESTS, 5000), proxy_delay(p, PROXY_REPLIES, 5000)
 *     answers 3 s late, once           proxy_stall(p, PROXY_REPLIES, 3000000)
 *     a partition, and its end         proxy_blackhole(p, true), proxy_blackhole(p, false) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct proxy;

enum proxy_side { PROXY_REQUESTS, PROXY_REPLIES };

/* Listens on a unix socket in that folder, and on a port of 127.0.0.1 that the kernel chose; passes on to a Redis at
 * that socket, or (port not 0) to a port of this machine, such as one that takes TLS. NULL: that cannot be. Tests have
 * proxy_start (server.h). */
struct proxy *proxy_open(const char *folder, const char *socket, int port);
/* Cuts all connections. Before server_stop. */
void proxy_stop(struct proxy *p);
const char *proxy_url(const struct proxy *p);     /* unix:///... */
const char *proxy_tcp_url(const struct proxy *p); /* redis://127.0.0.1:... */
int proxy_tcp_port(const struct proxy *p);

/* Cuts the connection on which the n-th (1, 2, ...) request or reply comes, in its stead; a request so cut
 * never reaches Redis, a reply so cut is of a command that has run. Once: the connections after it are whole.
 * n 0: not. */
void proxy_cut_before(struct proxy *p, enum proxy_side side, unsigned n);
/* The same, and in this moment it kills (-9) the process victim: the client, which neither sends nor gets
 * anything after. */
void proxy_kill_before(struct proxy *p, enum proxy_side side, unsigned n, pid_t victim);
/* The same as proxy_cut_before when n bytes have passed. */
void proxy_cut_after_bytes(struct proxy *p, enum proxy_side side, size_t n);
/* Sends this to Redis, on the same connection, just before the n-th request; and once more just before the m-th after that (0: not). Redis
 * must not answer it (CLIENT REPLY SKIP). */
void proxy_insert_before(struct proxy *p, unsigned n, unsigned m, const char *bytes);
/* Accepts and keeps connections, but lets nothing through in either direction; what came in between goes on
 * when it ends. */
void proxy_blackhole(struct proxy *p, bool on);
/* Every byte of that side comes so much later than it was sent, whatever came before it. */
void proxy_delay(struct proxy *p, enum proxy_side side, int64_t delay_us);
/* Lets nothing of that side through for so long; then all that came meanwhile goes on, in order. */
void proxy_stall(struct proxy *p, enum proxy_side side, int64_t for_us);
/* Passes what Redis answers in single bytes. */
void proxy_trickle(struct proxy *p, bool on);
/* Says this to a client, as if it came from Redis: to one that is connected, else to the next. */
void proxy_inject(struct proxy *p, const char *bytes);
/* Cuts all connections; they are cut when it returns. */
void proxy_cut_all(struct proxy *p);

/* Has the cut that was asked for happened; or the last insertion? */
bool proxy_has_cut(struct proxy *p);
/* Connections accepted since the start. */
int proxy_accepted(struct proxy *p);
/* Round trips since the start: how often something was asked of a Redis that had answered what came before. */
int proxy_trips(struct proxy *p);
/* Claims that were asked for. */
int proxy_claims(struct proxy *p);
