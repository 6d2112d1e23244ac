/* wire: what both kinds of connection are made of: a non-blocking socket, the bytes that wait to be sent, and
 * hiredis's parser of what comes back. It never waits and keeps no time-outs: redis.c
 * waits with poll, link.c with libev.
 *
 * It does without hiredis's own socket code, which raises SIGPIPE in the host program, hands its socket down
 * to children, gives up on EINTR, moves a long output at each partial write and reads 16 KiB at a time. */
#ifndef CORE_REDIS_WIRE_H
#define CORE_REDIS_WIRE_H

#include "core/error.h"
#include "core/redis/redis.h"
#include "core/script/args.h"

struct addrinfo;
struct arena;
struct redisReader;

struct wire {
    int fd;                      /* -1: closed */
    struct addrinfo *all, *next; /* the host's addresses; the one to try when this one fails */
    char *out;
    size_t out_sent, out_len, out_capacity;
    struct arena *arena; /* where answers are put; NULL: on the heap */
    struct redisReader *reader;
    char name[300]; /* the address, for messages */
    char in[64 * 1024];
};

/* The address is for messages; the arena may be NULL and is borrowed. */
void wire_init(struct wire *w, const struct redis_address *address, struct arena *arena);
/* Frees all; *w is closed and usable again. */
void wire_close(struct wire *w);

/* Begins to connect to the addresses of the host (core/redis/resolve.h), which it takes over; all NULL: the address
 * is a path. 0: wait until fd is writable, then ask wire_connected. On failure w is closed. */
WEIR_CHECKED int wire_open(struct wire *w, const struct redis_address *address, struct addrinfo *all,
                           struct error *e);
/* 1: connected. 0: that address failed, the next one is being tried with another fd: wait again. */
WEIR_CHECKED int wire_connected(struct wire *w, struct error *e);

/* Adds a command to what is to be sent. WEIR_EINTERNAL (memory): nothing was added. */
WEIR_CHECKED int wire_add(struct wire *w, const struct args *a, struct error *e);
/* Sends what the socket takes. 0: all is sent; 1: there is more, wait until fd is writable. */
WEIR_CHECKED int wire_send(struct wire *w, struct error *e);
/* Reads once. 1: something came; 0: nothing is there. */
WEIR_CHECKED int wire_receive(struct wire *w, struct error *e);
/* Takes the next whole answer: 1, and *reply is the caller's, or the arena's until the next call; 0: none
 * yet. */
WEIR_CHECKED int wire_reply(struct wire *w, struct redisReply **reply, struct error *e);
/* Has the peer of an idle connection gone, or said something that nobody asked for? */
bool wire_is_stale(const struct wire *w);
/* Fills *e with WEIR_EUNREACHABLE: no answer within that many seconds. */
int wire_timed_out(const struct wire *w, double seconds, struct error *e);

#endif
