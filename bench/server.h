/* A private redis-server on a unix socket in a folder of its own. It dies with this process. */
#ifndef BENCH_SERVER_H
#define BENCH_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/redis/redis.h"

struct server {
    pid_t pid; /* 0: not started */
    char folder[64], socket[96], url[160];
    struct redis *redis; /* for questions about it */
};

/* aof: appendonly yes, appendfsync everysec. On failure it is stopped. */
WEIR_CHECKED int server_start(struct server *s, bool aof, struct error *e);
/* Stops it by its process id and removes its folder; nothing when it was not started. */
void server_stop(struct server *s);

/* One command; words end with NULL. number (may be NULL): the answer, when it is one; 0 for nil. */
WEIR_CHECKED int server_ask(struct server *s, long long *number, struct error *e, const char *word, ...)
    __attribute__((sentinel));

/* Loads a script for EVALSHA. */
#define SHA_SIZE 41
WEIR_CHECKED int server_load(struct server *s, const char *script, char sha[SHA_SIZE], struct error *e);

/* What Redis has used since it was started. */
struct usage {
    double cpu_us;
    double commands;   /* those inside of scripts included */
    double scripts_us; /* in calls of functions, by the wall clock */
    double memory_bytes;
    double bytes_in, bytes_out; /* on its connections */
};
WEIR_CHECKED int server_usage(struct server *s, struct usage *usage, struct error *e);
/* Its CPU time, to the nanosecond. */
WEIR_CHECKED int server_cpu(const struct server *s, int64_t *ns, struct error *e);
/* "7.0.15" */
WEIR_CHECKED int server_version(struct server *s, char *version, size_t size, struct error *e);

#endif
