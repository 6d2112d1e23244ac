/* The socket that weir serve listens on. */
#pragma once

#include <stdbool.h>

#include "core/error.h"

#define LISTEN_DEFAULT "127.0.0.1:8379"

struct listener {
    int fd;
    bool is_unix;
    bool beyond;    /* other machines can connect */
    char path[108]; /* of a unix socket that is removed at the end, else "" */
    char name[320]; /* for the log: "unix:/run/weir.sock", "http://127.0.0.1:8379" */
};

/* where: unix:/path, /path, HOST:PORT, [ADDRESS]:PORT or PORT (of 127.0.0.1); port 0: any that is free. A
 * socket that nobody listens on any more is replaced. NULL: the socket that systemd has opened, else LISTEN_DEFAULT. mode: see serve.h. */
WEIR_CHECKED int listen_open(struct listener *l, const char *where, bool open_to_all, int mode,
                             struct error *e);
/* Checks what needs no socket: all but whether this machine has that address or path, and who could reach it. where, mode: as above. */
WEIR_CHECKED int listen_check(const char *where, int mode, struct error *e);
/* Takes no more connections; removes the unix socket. */
void listen_close(struct listener *l);
