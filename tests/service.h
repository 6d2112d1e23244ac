/* A managed service, or another program that speaks Redis's protocol: a process between clients and a private
 * redis-server, which says of itself in INFO what such a service does, and has not all commands. */
#pragma once

#include <sys/types.h>

#include "tests/server.h"

struct service_kind {
    const char *info;      /* lines before those of Redis, which count; NULL: INFO is Redis's */
    const char *forbidden; /* commands in capitals with a blank around each: " CONFIG ACL " */
    const char *refusal; /* what it answers then, before the name of the command; NULL: that it is unknown */
    const char *functions; /* what FUNCTION answers; NULL: what Redis answers */
};

struct fake_service {
    char socket[128];
    char url[160];
    pid_t pid;
};

void service_start(struct fake_service *f, const struct server *behind, const struct service_kind *kind);
void service_stop(struct fake_service *f);
