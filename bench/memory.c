/* What a waiting job takes of Redis's memory, everything counted: the difference over many. */
#include <string.h>

#include "bench/bench.h"

#define TYPE "weekly_summary"
#define ID_BYTES 16

static void push_bare(size_t n)
{
    char value[ARGS_BYTES + 1];

    memset(value, 'x', ARGS_BYTES);
    value[ARGS_BYTES] = '\0';
    for (size_t i = 0; i < n; i += 10)
        server_ask(&bench.server, "RPUSH", "bare", value, value, value, value, value, value, value, value,
                   value, value, NULL);
}

void bench_memory(void)
{
    const size_t n = 100000;
    const size_t body_bytes =
        strlen("{\"id\":\"\",\"type\":\"\",\"args\":}") + ID_BYTES + strlen(TYPE) + ARGS_BYTES;
    double before, bare;

    empty();
    before = server_usage(&bench.server).memory_bytes;
    push_bare(n);
    bare = (server_usage(&bench.server).memory_bytes - before) / (double)n;
    report(CEILING_MEMORY, bare, 0, "%s", "");
    fill(bench.server.url, TYPE, 1, body_bytes); /* the scripts are loaded, and stay */
    empty();
    before = server_usage(&bench.server).memory_bytes;
    fill(bench.server.url, TYPE, n, body_bytes);
    report(MEMORY_JOB, (server_usage(&bench.server).memory_bytes - before) / (double)n, bare,
           "%zu jobs, an id of %d and type %s", n, ID_BYTES, TYPE);
}
