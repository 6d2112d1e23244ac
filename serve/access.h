/* Who may ask for what. Pure readings of a request's headers.
 *
 *   tokens     a file: a line has roles, a token and perhaps a name ("operator,producer 3f9a... alice"). It comes in
 *              "Authorization: Bearer", or in the cookie that the login form sets
 *   Host       must be an address, localhost or a name that was given: a page of another site whose name was made to
 *              point here (DNS rebinding) asks by its own name
 *   Origin     of a POST or a take must be this site, where a browser says it */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

#include "core/error.h"

enum right { RIGHT_LOOK = 1, RIGHT_ACT = 2, RIGHT_ENQUEUE = 4 };

#define TOKEN_COOKIE "weir_token"
#define TOKEN_LEAST 16
#define TOKEN_MOST 200

struct access_options {
    const char *token_file;   /* NULL: whoever can connect has all rights */
    bool actions, enqueue;    /* what is allowed at all */
    bool beyond;              /* other machines can connect: without tokens nobody has any right */
    bool any_host;            /* Host is not looked at: no browser can connect to a unix socket */
    const char *const *hosts; /* more names for Host */
    int host_count;
};

struct access;

/* Reads the token file. WEIR_ECONFIG: it cannot be read, or whoever is on this machine can read it. */
WEIR_CHECKED int access_new(const struct access_options *options, struct access **access, struct error *e);
void access_free(struct access *access);

struct visitor {
    unsigned rights;  /* enum right */
    bool known;       /* it needs no token, or has one that is right */
    const char *name; /* of its token; "" */
};
void access_visitor(const struct access *access, struct MHD_Connection *connection, struct visitor *visitor);
/* Looks up a token as the login form sends it. */
void access_token(const struct access *access, const char *token, struct visitor *visitor);
/* Why a request is not answered at all, by its Host; why one that changes something is not, by its Origin. NULL: it is. */
const char *access_wrong_host(const struct access *access, struct MHD_Connection *connection);
const char *access_wrong_origin(struct MHD_Connection *connection);
/* Checks a take, for which a page may ask as for a picture. */
const char *access_wrong_take(const struct access *access, struct MHD_Connection *connection);
