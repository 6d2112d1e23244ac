/* A private redis-server on a unix socket in a folder of its own. It ends with the process that has started it. What fails ends that process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/redis/redis.h"

/* Ends the process with that message, behind what it runs; NULL: only its name. */
extern const char *running;
_Noreturn void fail(const char *why, ...) WEIR_PRINTF(1, 2);
/* The same with what `failure` says, when rc is none of success. */
extern struct error failure;
void must(int rc);

struct server {
    pid_t pid, owner; /* 0: not started; the process that has started it */
    char folder[64], socket[96], url[160];
    struct redis *redis; /* for questions about it */
    struct server *next;
};

/* aof: appendonly yes, appendfsync everysec. */
void server_start(struct server *s, bool aof);
/* Stops it by its process id and removes its folder; nothing when it was not started. */
void server_stop(struct server *s);
/* A connection of a process of its own. */
struct redis *server_connect(const struct server *s);

/* Has Redis answer these words, and frees them. Freed by freeReplyObject. */
struct redisReply *server_call(struct server *s, struct args *a);
/* One command; words end with NULL. */
struct redisReply *server_reply(struct server *s, const char *word, ...) __attribute__((sentinel));
/* The same. Returns the answer, when it is a number; 0 for nil. */
long long server_ask(struct server *s, const char *word, ...) __attribute__((sentinel));

/* Loads a script for EVALSHA. */
#define SHA_SIZE 41
void server_load(struct server *s, const char *script, char sha[SHA_SIZE]);

/* What Redis has used since it was started. */
struct usage {
    double cpu_us;
    double commands;   /* those inside of scripts included */
    double scripts_us; /* in calls of functions, by the wall clock */
    double memory_bytes;
    double bytes_in, bytes_out; /* on its connections */
};
struct usage server_usage(struct server *s);
/* Its CPU time, to the nanosecond. */
int64_t server_cpu(const struct server *s);
/* "7.0.15" */
void server_version(struct server *s, char *version, size_t size);
