#include "worker/parts/options.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/mind/wide.h"

/* Options of a type stand here, which may have no handler yet. */
struct type_options {
    char type[130]; /* or a pattern */
    struct weir_type_options options;
};

#define EXECUTORS_DEFAULT 10
#define EXECUTORS_MOST 65536
#define KILL_AFTER_S 5.0
#define DEAD_AGE_MOST_S (3650 * 86400.0)
#define PAUSE_MOST_S 86400.0
#define PAUSE_UTMOST_S (3650 * 86400.0) /* as weir rate pause */
#define LEASE_S 30.0
#define LEASE_LEAST_S 1.0
#define GRACE_S 25.0

static int read_queue(struct options *o, char *word, struct error *e)
{
    char *weight = strchr(word, '=');
    int i = o->queue_count;

    if (weight) {
        char *end;
        long n;

        *weight++ = '\0';
        n = strtol(weight, &end, 10);
        if (*end || !isdigit((unsigned char)*weight) || n < 1 || n > 1000000)
            return error_set(e, WEIR_EUSAGE, "worker: queue %s has the weight '%s'; use 1 to 1000000", word,
                             weight);
        o->weighted = true;
        o->weights[i] = (int)n;
    }
    if (!word_is_valid(word, strlen(word)))
        return error_set(e, WEIR_EUSAGE,
                         "worker: '%.64s' is not a valid queue; use 1 to 128 of A-Z a-z 0-9 _ . -, or a "
                         "pattern with one * "
                         "at its end, as mail.* or *",
                         word);
    for (int k = 0; k < i; k++)
        if (strcmp(o->queues[k], word) == 0)
            return error_set(e, WEIR_EUSAGE, "worker: queue %s is named twice; leave one out", word);
    o->queues[o->queue_count++] = word;
    return 0;
}

/* Checks that the queues are not more than one claim can name. */
static int check_wide(struct options *o, struct error *e)
{
    o->wide = o->queue_count > WIDE_CLAIM;
    for (int i = 0; i < o->queue_count; i++)
        o->wide |= pattern_is(o->queues[i]);
    if (o->wide && o->weighted)
        return error_set(e, WEIR_EUSAGE, "worker: weights are for at most %d queues, and for no pattern",
                         WIDE_CLAIM);
    return 0;
}

/* Reads "a,b", a strict order, or "a=3,b", by weight, which is 1 where it is missing. */
static int read_queues(struct options *o, const char *text, struct error *e)
{
    char *rest, *word;
    int rc = 0;

    if (!(rest = o->queue_names = strdup(text)))
        return error_set(e, WEIR_EINTERNAL, "worker: out of memory");
    while (rc == 0 && (word = strsep(&rest, ","))) {
        if (o->queue_count == QUEUES_MOST)
            return error_set(e, WEIR_EUSAGE, "worker: queues: more than %d; use a pattern, as mail.*",
                             QUEUES_MOST);
        rc = read_queue(o, word, e);
    }
    for (int i = 0; i < o->queue_count; i++)
        if (o->weights[i] == 0)
            o->weights[i] = 1;
    return rc == 0 ? check_wide(o, e) : rc;
}

int options_read(struct options *o, const struct weir_worker_options *given, struct error *e)
{
    double lease_s = given->lease_s > 0 ? given->lease_s : LEASE_S;
    int rc;

    o->executors = given->executors ? given->executors : EXECUTORS_DEFAULT;
    if (o->executors < 1 || o->executors > EXECUTORS_MOST)
        return error_set(e, WEIR_EUSAGE, "worker: %d executors; use 1 to %d", given->executors,
                         EXECUTORS_MOST);
    if (lease_s < LEASE_LEAST_S)
        return error_set(e, WEIR_EUSAGE, "worker: a lease of %g s; use at least %g s", lease_s,
                         LEASE_LEAST_S);
    if (given->pause_most_s > PAUSE_UTMOST_S)
        return error_set(e, WEIR_EUSAGE, "worker: a longest pause of %g s; use at most ten years, %g s",
                         given->pause_most_s, PAUSE_UTMOST_S);
    o->lease_us = (int64_t)(lease_s * 1e6);
    o->grace_us = (int64_t)((given->grace_s > 0 ? given->grace_s : GRACE_S) * 1e6);
    o->kill_after_us = (int64_t)((given->kill_after_s > 0 ? given->kill_after_s : KILL_AFTER_S) * 1e6);
    o->dead_most = given->dead_most > 0 ? given->dead_most : 0;
    o->dead_age_us = given->dead_age_s > 0 ? (int64_t)(fmin(given->dead_age_s, DEAD_AGE_MOST_S) * 1e6) : 0;
    o->log_done = given->log_done != 0;
    o->pause_most_us = (int64_t)((given->pause_most_s > 0 ? given->pause_most_s : PAUSE_MOST_S) * 1e6);
    o->drain_max_us = (int64_t)(given->drain_max_s * 1e6);
    o->drain = given->drain;
    o->unknown_dead = given->unknown_dead;
    if (given->trace_file && !(o->trace_file = strdup(given->trace_file)))
        return error_set(e, WEIR_EINTERNAL, "worker: out of memory");
    if ((rc = client_address(given->redis_url, &o->address, e)) != 0)
        return rc;
    if ((rc = client_prefix(given->ns, o->prefix, e)) != 0)
        return rc;
    return read_queues(o, given->queues ? given->queues : "default", e);
}

void options_free(struct options *o)
{
    free(o->types);
    free(o->queue_names);
    free(o->trace_file);
}

/* ---- Of types */

#define YEAR_S (366 * 86400.0)

static bool is_time(double seconds)
{
    return seconds >= 0 && seconds <= 10 * YEAR_S;
}

static int check_times(const char *types, const struct weir_type_options *o, struct error *e)
{
    if (!is_time(o->timeout_s) || !is_time(o->keep_s) || !is_time(o->backoff_first_s) ||
        !is_time(o->backoff_most_s))
        return error_set(e, WEIR_EUSAGE, "worker: type %.200s: a time is not from 0 to ten years", types);
    if (o->backoff_most_s > 0 && o->backoff_most_s < o->backoff_first_s)
        return error_set(
            e, WEIR_EUSAGE,
            "worker: type %.200s: a backoff of %g s that is %g s at most; give the smaller one first", types,
            o->backoff_first_s, o->backoff_most_s);
    return 0;
}

/* Says how far a word reaches: a type least of all, a short pattern farther than a long one. */
static int reach(const char *word)
{
    return pattern_is(word) ? 1000 - (int)strlen(word) : 0;
}

/* Adds a row behind those whose words reach as far or farther: what is given for fewer types counts. */
static int add_row(struct options *o, struct span type, const struct weir_type_options *given,
                   struct error *e)
{
    struct type_options *types, row = {.type = ""};
    int at;

    if (!word_is_valid(type.at, type.len))
        return error_set(
            e, WEIR_EUSAGE,
            "worker: options of '%.*s', which is not a valid type; use 1 to 128 of A-Z a-z 0-9 _ . -, "
            "with commas between types, or a pattern, as mail.* or *",
            (int)(type.len < 64 ? type.len : 64), type.at);
    if (!(types = realloc(o->types, (size_t)(o->type_count + 1) * sizeof *types)))
        return error_set(e, WEIR_EINTERNAL, "worker: out of memory");
    o->types = types;
    row.options = *given;
    memcpy(row.type, type.at, type.len);
    for (at = o->type_count++; at > 0 && reach(types[at - 1].type) < reach(row.type); at--)
        types[at] = types[at - 1];
    types[at] = row;
    return 0;
}

int options_add_type(struct options *o, const char *types, const struct weir_type_options *given,
                     struct error *e)
{
    int rc = check_times(types, given, e);

    for (const char *at = types; rc == 0 && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        rc = add_row(o, (struct span){at, strcspn(at, ",")}, given, e);
    return rc;
}

/* Sets the options that are given; others stay. */
static void apply(const struct weir_type_options *o, struct handler *handler)
{
    if (o->timeout_s > 0)
        handler->timeout_us = (int64_t)(o->timeout_s * 1e6);
    if (o->keep_s > 0)
        handler->keep_us = (int64_t)(o->keep_s * 1e6);
    if (o->backoff_first_s > 0 || o->backoff_most_s > 0) {
        handler->backoff_first_us = (int64_t)(o->backoff_first_s * 1e6);
        handler->backoff_most_us = o->backoff_most_s > 0 ? (int64_t)(o->backoff_most_s * 1e6) : INT64_MAX;
    }
}

/* True when the options of one word are also for another: all that it stands for is among what the first one does. */
static bool covers(const char *word, const char *other)
{
    return pattern_is(word) ? strncmp(word, other, strlen(word) - 1) == 0 : strcmp(word, other) == 0;
}

/* Makes options of its own possible for what a wider pattern takes: it becomes a word of the worker, too. */
static int add_word(const char *word, struct handlers *handlers, struct error *e)
{
    const struct handler *taker = NULL;
    bool any = strcmp(word, "*") == 0;

    for (int i = 0; i < handlers->word_count; i++) {
        const struct handler *other = handlers->words[i];

        if (strcmp(other->type, word) == 0)
            return 0;
        if (covers(other->type, word) && (!taker || strlen(other->type) > strlen(taker->type)))
            taker = other;
        any |= covers(word, other->type);
    }
    if (taker)
        return handlers_add_word(handlers, taker->runner, span_str(word)) ? 0 : error_no_memory(e, "worker");
    if (any)
        return 0;
    return error_set(e, WEIR_EUSAGE,
                     "worker: options of type %s, which has no handler here; add one, or leave them out",
                     word);
}

int options_spread(const struct options *o, struct handlers *handlers, struct error *e)
{
    for (int i = 0; i < o->type_count; i++)
        if (add_word(o->types[i].type, handlers, e) < 0)
            return e->status;
    for (int i = 0; i < o->type_count; i++)
        for (int k = 0; k < handlers->word_count; k++)
            if (covers(o->types[i].type, handlers->words[k]->type))
                apply(&o->types[i].options, handlers->words[k]);
    return 0;
}
