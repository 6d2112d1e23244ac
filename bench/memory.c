/* What a waiting job takes of Redis's memory, everything counted: the difference over many. */
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "core/script/args.h"

#define TYPE "weekly_summary"
#define ID_BYTES 16

/* An empty Redis, and what it uses then. */
static int begin(struct bench *b, double *bytes)
{
    struct usage usage;
    int rc = server_ask(&b->server, NULL, &b->error, "FLUSHALL", NULL);

    if (rc == 0)
        rc = server_usage(&b->server, &usage, &b->error);
    *bytes = usage.memory_bytes;
    return rc;
}

static int end(struct bench *b, double *bytes, size_t n)
{
    struct usage usage;
    int rc = server_usage(&b->server, &usage, &b->error);

    if (rc == 0)
        *bytes = (usage.memory_bytes - *bytes) / (double)n;
    return rc;
}

static int push_bare(struct bench *b, size_t n)
{
    char value[ARGS_BYTES + 1];
    int rc = 0;

    memset(value, 'x', ARGS_BYTES);
    value[ARGS_BYTES] = '\0';
    for (size_t i = 0; rc == 0 && i < n; i += 10)
        rc = server_ask(&b->server, NULL, &b->error, "RPUSH", "bare", value, value, value, value, value,
                        value, value, value, value, value, NULL);
    return rc;
}

int bench_memory(struct bench *b)
{
    const size_t n = 100000;
    const size_t body_bytes =
        strlen("{\"id\":\"\",\"type\":\"\",\"args\":}") + ID_BYTES + strlen(TYPE) + ARGS_BYTES;
    double bare = 0, job = 0;
    int rc = begin(b, &bare);

    if (rc == 0)
        rc = push_bare(b, n);
    if (rc == 0)
        rc = end(b, &bare, n);
    if (rc == 0)
        rc = fill(b, b->server.url, TYPE, 1, body_bytes); /* the scripts are loaded, and stay */
    if (rc == 0)
        rc = begin(b, &job);
    if (rc == 0)
        rc = fill(b, b->server.url, TYPE, n, body_bytes);
    if (rc == 0)
        rc = end(b, &job, n);
    if (rc != 0)
        return rc;
    report(b, CEILING_MEMORY, bare, 0, "%s", "");
    report(b, MEMORY_JOB, job, bare, "%zu jobs, an id of %d and type %s", n, ID_BYTES, TYPE);
    return 0;
}
