#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log/log.h"
#include "serve/http_request.h"

#define AUDITED 400 /* bytes of what came with an action */

/* "127.0.0.1"; "unix" of a unix socket. */
static void format_client(const struct http_request *r, char out[64])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(r->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    const void *at = NULL;

    if (address && address->sa_family == AF_INET)
        at = &((const struct sockaddr_in *)address)->sin_addr;
    else if (address && address->sa_family == AF_INET6)
        at = &((const struct sockaddr_in6 *)address)->sin6_addr;
    if (!at || !inet_ntop(address->sa_family, at, out, 64))
        strcpy(out, "unix");
}

void http_request_audit(const struct http_request *r, unsigned status, const char *problem)
{
    bool enqueues = r->plan == WORK_JOBS || (r->verb && r->verb->right == RIGHT_ENQUEUE);
    char *given = json_dumps(r->fields, JSON_COMPACT), client[64], code[24];
    size_t given_len = given ? strnlen(given, AUDITED) : 0;
    struct log_field fields[] = {
        {"event", enqueues ? "enqueue" : "action", enqueues ? 7 : 6, false},
        {"path", r->address, strcspn(r->address, "?"), false},
        {"fields", given ? given : "", given_len, false},
        {"by", r->visitor.name, strlen(r->visitor.name), false},
        {"from", client, 0, false},
        {"status", code, 0, true},
        {"problem", problem, strlen(problem), false},
    };

    format_client(r, client);
    fields[4].len = strlen(client);
    fields[5].len = (size_t)snprintf(code, sizeof code, "%u", status);
    log_fields(enqueues ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, fields,
               sizeof fields / sizeof *fields - (*problem == '\0'), "serve: %s",
               status < 400 ? "done" : "not done");
    free(given);
}
