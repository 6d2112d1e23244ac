/* A worker's options: read, checked, defaults put in. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "worker/worker.h"

#define EXECUTORS_DEFAULT 10
#define EXECUTORS_MOST 1024
#define LEASE_S 30.0
#define LEASE_LEAST_S 1.0
#define GRACE_S 25.0

static int read_queue(struct weir_worker *w, char *word)
{
    char *weight = strchr(word, '=');
    int i = w->queue_count;

    if (weight) {
        char *end;
        long n;

        *weight++ = '\0';
        n = strtol(weight, &end, 10);
        if (*end || !isdigit((unsigned char)*weight) || n < 1 || n > 1000000)
            return error_set(&w->error, WEIR_EUSAGE, "worker: queue %s has the weight '%s'; use 1 to 1000000",
                             word, weight);
        w->weighted = true;
        w->weights[i] = (int)n;
    }
    if (!name_is_valid(word, strlen(word)))
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: '%.64s' is no queue; use 1 to 128 of A-Z a-z 0-9 _ . -", word);
    for (int k = 0; k < i; k++)
        if (strcmp(w->queues[k], word) == 0)
            return error_set(&w->error, WEIR_EUSAGE, "worker: queue %s is named twice", word);
    w->queues[w->queue_count++] = word;
    return 0;
}

/* "a,b" or "a=3,b": without any weight a strict order, else by weight, 1 where missing. */
static int read_queues(struct weir_worker *w, const char *text)
{
    char *rest, *word;
    int rc = 0;

    if (!(rest = w->queue_names = strdup(text)))
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    while (rc == 0 && (word = strsep(&rest, ","))) {
        if (w->queue_count == QUEUES_MOST)
            return error_set(&w->error, WEIR_EUSAGE, "worker: more than %d queues", QUEUES_MOST);
        rc = read_queue(w, word);
    }
    for (int i = 0; i < w->queue_count; i++)
        if (w->weights[i] == 0)
            w->weights[i] = 1;
    return rc;
}

int worker_read_options(struct weir_worker *w, const struct weir_worker_options *o)
{
    double lease_s = o->lease_s > 0 ? o->lease_s : LEASE_S;
    int rc;

    w->executors = o->executors ? o->executors : EXECUTORS_DEFAULT;
    if (w->executors < 1 || w->executors > EXECUTORS_MOST)
        return error_set(&w->error, WEIR_EUSAGE, "worker: %d executors; use 1 to %d", o->executors,
                         EXECUTORS_MOST);
    if (lease_s < LEASE_LEAST_S)
        return error_set(&w->error, WEIR_EUSAGE, "worker: a lease of %g s; use at least %g s", lease_s,
                         LEASE_LEAST_S);
    w->lease_us = (int64_t)(lease_s * 1e6);
    w->grace_us = (int64_t)((o->grace_s > 0 ? o->grace_s : GRACE_S) * 1e6);
    w->drain_max_us = (int64_t)(o->drain_max_s * 1e6);
    w->drain = o->drain;
    w->unknown_dead = o->unknown_dead;
    if (o->trace_file && !(w->trace_file = strdup(o->trace_file)))
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    if ((rc = client_address(o->redis_url, &w->address, &w->error)) != 0)
        return rc;
    if ((rc = client_prefix(o->ns, w->prefix, &w->error)) != 0)
        return rc;
    return read_queues(w, o->queues ? o->queues : "default");
}
