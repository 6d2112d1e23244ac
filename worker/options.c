/* A worker's options: read, checked, defaults put in. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/worker.h"

#define EXECUTORS_DEFAULT 10
#define EXECUTORS_MOST 65536
#define KILL_AFTER_S 5.0
#define DEAD_AGE_MOST_S (3650 * 86400.0)
#define PAUSE_MOST_S 86400.0
#define PAUSE_UTMOST_S (3650 * 86400.0) /* as weir rate pause */
#define LEASE_S 30.0
#define LEASE_LEAST_S 1.0
#define GRACE_S 25.0

static bool is_queue_or_pattern(const char *word)
{
    size_t len = strlen(word);

    if (pattern_is(word))
        return len == 1 || name_is_valid(word, len - 1);
    return name_is_valid(word, len);
}

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
    if (!is_queue_or_pattern(word))
        return error_set(
            &w->error, WEIR_EUSAGE,
            "worker: '%.64s' is no queue; use 1 to 128 of A-Z a-z 0-9 _ . -, or a pattern with one * "
            "at its end, as mail.* or *",
            word);
    for (int k = 0; k < i; k++)
        if (strcmp(w->queues[k], word) == 0)
            return error_set(&w->error, WEIR_EUSAGE, "worker: queue %s is named twice", word);
    w->queues[w->queue_count++] = word;
    return 0;
}

/* Are they more than one claim can name? */
static int read_wide(struct weir_worker *w)
{
    bool wide = w->queue_count > WIDE_CLAIM;

    for (int i = 0; i < w->queue_count; i++)
        wide |= pattern_is(w->queues[i]);
    if (wide && w->weighted)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: weights are for at most %d queues, and for no pattern", WIDE_CLAIM);
    if (wide && !(w->wide = wide_new(w->queues, w->queue_count)))
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
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
            return error_set(&w->error, WEIR_EUSAGE, "worker: more than %d queues; use a pattern, as mail.*",
                             QUEUES_MOST);
        rc = read_queue(w, word);
    }
    for (int i = 0; i < w->queue_count; i++)
        if (w->weights[i] == 0)
            w->weights[i] = 1;
    return rc == 0 ? read_wide(w) : rc;
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
    if (o->pause_most_s > PAUSE_UTMOST_S)
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: a longest pause of %g s; use at most ten years, %g s", o->pause_most_s,
                         PAUSE_UTMOST_S);
    w->lease_us = (int64_t)(lease_s * 1e6);
    w->grace_us = (int64_t)((o->grace_s > 0 ? o->grace_s : GRACE_S) * 1e6);
    w->kill_after_us = (int64_t)((o->kill_after_s > 0 ? o->kill_after_s : KILL_AFTER_S) * 1e6);
    w->dead_most = o->dead_most > 0 ? o->dead_most : 0;
    w->dead_age_us = o->dead_age_s > 0 ? (int64_t)(fmin(o->dead_age_s, DEAD_AGE_MOST_S) * 1e6) : 0;
    w->pause_most_us = (int64_t)((o->pause_most_s > 0 ? o->pause_most_s : PAUSE_MOST_S) * 1e6);
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

void worker_free_options(struct weir_worker *w)
{
    free(w->types);
    wide_free(w->wide);
    free(w->queue_names);
    free(w->trace_file);
}

/* ---- Of types */

#define YEAR_S (366 * 86400.0)

static bool is_time(double seconds)
{
    return seconds >= 0 && seconds <= 10 * YEAR_S;
}

int weir_worker_type(struct weir_worker *w, const char *type, const struct weir_type_options *o)
{
    struct type_options *types;

    if (!type || !name_is_valid(type, strlen(type)))
        return error_set(&w->error, WEIR_EUSAGE,
                         "worker: options of '%.64s', which is no type; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         type ? type : "");
    if (!is_time(o->timeout_s) || !is_time(o->keep_s) || !is_time(o->backoff_first_s) ||
        !is_time(o->backoff_most_s))
        return error_set(&w->error, WEIR_EUSAGE, "worker: type %s: a time is not from 0 to ten years", type);
    if (o->backoff_most_s > 0 && o->backoff_most_s < o->backoff_first_s)
        return error_set(
            &w->error, WEIR_EUSAGE,
            "worker: type %s: a backoff of %g s that is %g s at most; give the smaller one first", type,
            o->backoff_first_s, o->backoff_most_s);
    if (!(types = realloc(w->types, (size_t)(w->type_count + 1) * sizeof *types)))
        return error_set(&w->error, WEIR_EINTERNAL, "worker: out of memory");
    w->types = types;
    types[w->type_count] = (struct type_options){.options = *o};
    strcpy(types[w->type_count++].type, type);
    return 0;
}

int worker_spread_options(struct weir_worker *w)
{
    for (int i = 0; i < w->type_count; i++) {
        const struct type_options *t = &w->types[i];
        struct handler *handler = handlers_find(&w->handlers, span_str(t->type));

        if (!handler)
            return error_set(&w->error, WEIR_EUSAGE, "worker: options of type %s, which has no handler here",
                             t->type);
        handler->timeout_us = (int64_t)(t->options.timeout_s * 1e6);
        handler->keep_us = (int64_t)(t->options.keep_s * 1e6);
        handler->backoff_first_us = (int64_t)(t->options.backoff_first_s * 1e6);
        handler->backoff_most_us =
            t->options.backoff_most_s > 0 ? (int64_t)(t->options.backoff_most_s * 1e6) : INT64_MAX;
    }
    return 0;
}
