/* wire: what both kinds of connection are made of: a non-blocking socket, TLS where the address says so, the bytes
 * that wait to be sent, and hiredis's parser of what comes back. It never waits and keeps no time-outs: redis.c
 * waits with poll, link.c with libev.
 *
 * It does without hiredis's own socket code, which raises SIGPIPE in the host program, hands its socket down
 * to children, gives up on EINTR, moves a long output at each partial write and reads 16 KiB at a time. */
#pragma once

#include "core/error.h"
#include "core/script/args.h"
#include "core/wire/endpoint.h"

struct arena;
struct redisReader;
struct redisReply;

struct wire {
    int fd;                      /* -1: closed */
    struct tls *tls;             /* NULL: bytes go as they are */
    const char *advice;          /* what to look for when the connection ends now */
    bool dialing, shaking;       /* not yet connected; in the TLS handshake */
    struct addrinfo *all, *next; /* the host's addresses; the one to try when this one fails */
    char *out;
    size_t out_sent, out_len, out_capacity;
    struct arena *arena; /* where answers are put; NULL: on the heap */
    struct redisReader *reader;
    char name[REDIS_NAME_SIZE]; /* the address, for messages */
    char in[64 * 1024];
};

/* The address is for messages; the arena may be NULL and is borrowed. */
void wire_init(struct wire *w, const struct redis_address *address, struct arena *arena);
/* Frees all; *w is closed and usable again. */
void wire_close(struct wire *w);

/* Takes over the connection of `from`, which is closed then. */
void wire_move(struct wire *to, struct wire *from);

/* How far opening has come. */
enum wire_step {
    WIRE_DIALING, /* an endpoint is being tried, with an fd of its own and a time limit of its own */
    WIRE_SHAKING, /* the TLS handshake has begun; it has a time limit of its own */
    WIRE_ON,      /* no further than before */
    WIRE_UP,      /* commands may be sent */
};

/* Begins to connect by that route, whose endpoints and TLS it takes over. WIRE_DIALING: wait for fd, then call wire_go_on. On
 * failure w is closed. */
WEIR_CHECKED int wire_open(struct wire *w, struct route *route, struct error *e);
/* Goes on opening; returns how far it has come. */
WEIR_CHECKED int wire_go_on(struct wire *w, struct error *e);
/* True when fd must be watched for room to write too. For bytes to read it is watched always. */
bool wire_wants_write(const struct wire *w);

/* Adds a command to what is to be sent. WEIR_EINTERNAL (memory): nothing was added. */
WEIR_CHECKED int wire_add(struct wire *w, const struct args *a, struct error *e);
/* Sends what the socket takes. 0: all is sent; 1: there is more, wait until fd is writable. */
WEIR_CHECKED int wire_send(struct wire *w, struct error *e);
/* Reads once. 1: something came; 0: nothing is there, or no whole record. */
WEIR_CHECKED int wire_receive(struct wire *w, struct error *e);
/* Takes the next whole answer: 1, and *reply is the caller's, or the arena's until the next call; 0: none
 * yet. */
WEIR_CHECKED int wire_reply(struct wire *w, struct redisReply **reply, struct error *e);
/* True when there is something to receive, or the connection's end. */
bool wire_has_news(const struct wire *w);
/* True when the peer of an idle connection has gone, or has said something that nobody asked for. */
bool wire_is_stale(struct wire *w);
/* Fills *e with WEIR_EUNREACHABLE: no answer within that many seconds. */
int wire_timed_out(const struct wire *w, double seconds, struct error *e);
