#include "queue/status/status_parts.h"

#include <stdlib.h>
#include <string.h>

#include "queue/job/job.h"

#define UNIT_US 10000 /* of the times of first jobs */

static void copy(char *out, size_t size, const char *text)
{
    strncpy(out, text, size - 1);
    out[size - 1] = '\0';
}

/* True when one of the first jobs of a queue is of the type and names its cost. */
static bool names_cost(const json_t *seen)
{
    const char *queue;
    json_t *names;

    json_object_foreach((json_t *)seen, queue, names)
        if (json_is_object(names))
            return true;
    return false;
}

/* What was seen in queues, of an answer. */
struct sights {
    const json_t *seen, *first, *held, *paused, *paused_types;
    bool unread; /* of a queue that is paused not all was looked at */
};

static struct sights sights_of(const json_t *root)
{
    return (struct sights){.seen = json_object_get(root, "seen"),
                           .first = json_object_get(root, "first"),
                           .held = json_object_get(root, "held"),
                           .paused = json_object_get(root, "paused"),
                           .paused_types = json_object_get(root, "paused_types"),
                           .unread = json_object_size(json_object_get(root, "unread")) > 0};
}

/* True when a job of the type may stand in a queue that is paused. */
static bool is_in_pause(const struct sights *s, const json_t *seen)
{
    const char *queue;
    json_t *names;

    if (s->unread || json_object_size(s->paused) == 0)
        return s->unread;
    json_object_foreach((json_t *)seen, queue, names)
        if (json_object_get(s->paused, queue))
            return true;
    return false;
}

/* Counts the jobs of a type among the first of queues. */
static int64_t jobs_seen(const json_t *seen)
{
    const char *queue;
    json_t *place;
    int64_t jobs = 0;

    json_object_foreach((json_t *)seen, queue, place)
        jobs += json_is_object(place) ? answer_int(place, "jobs") : json_integer_value(place);
    return jobs;
}

/* Adds to the row of a type what is known of its queues. What other programs pushed no counter knows, so no fewer jobs wait than were seen. */
static void complete_type(struct type_status *t, const struct sights *s)
{
    const json_t *seen = json_object_get(s->seen, t->name);

    t->own_costs = t->own_costs || names_cost(seen);
    t->in_pause = t->in_pause || is_in_pause(s, seen);
    t->pause = json_incref(json_object_get(s->paused_types, t->name));
    t->oldest_us = UNIT_US * answer_int(s->first, t->name);
    t->waiting = jobs_seen(seen) > t->waiting ? jobs_seen(seen) : t->waiting;
    if (json_object_get(s->held, t->name)) {
        t->held = t->parked;
        t->parked = 0;
    }
}

/* Returns the patterns among the words of a worker; NULL: there is none. */
static json_t *patterns_of(const json_t *words)
{
    json_t *patterns = NULL, *word;
    size_t i;

    json_array_foreach((json_t *)words, i, word) {
        if (!json_is_string(word) || !pattern_is(json_string_value(word)))
            continue;
        patterns = patterns ? patterns : json_array();
        json_array_append(patterns, word);
    }
    return patterns;
}

static void read_worker(struct worker_status *row, const char *name, const json_t *worker, int64_t now_us)
{
    const json_t *info = json_object_get(worker, "info");

    copy(row->name, sizeof row->name, name);
    copy(row->host, sizeof row->host, answer_text(info, "host"));
    copy(row->version, sizeof row->version, answer_text(info, "version"));
    copy(row->instance, sizeof row->instance, answer_text(info, "instance"));
    copy(row->order, sizeof row->order, answer_text(worker, "order"));
    row->ordered_us = answer_int(worker, "ordered");
    row->heard = json_is_true(json_object_get(worker, "heard"));
    row->pid = answer_int(info, "pid");
    row->executors = answer_int(info, "executors");
    row->type_count = (int64_t)json_array_size(json_object_get(worker, "types"));
    row->queues = json_incref(json_object_get(info, "queues"));
    row->patterns = patterns_of(json_object_get(worker, "types"));
    row->silent = answer_int(worker, "until") <= now_us;
    row->running = answer_int(worker, "running");
    row->lease_us = (int64_t)(json_number_value(json_object_get(info, "lease")) * 1e6);
    row->seen_us = answer_int(worker, "until") - row->lease_us;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b); /* each row begins with its name */
}

/* Adds a row for each type whose jobs other programs pushed, and no worker has read one yet. false: out of memory. */
static bool add_pushed(struct status *s, const json_t *seen)
{
    size_t known = s->type_count;
    struct type_status *types = reallocarray(s->types, known + json_object_size(seen) + 1, sizeof *types);
    const char *name;
    json_t *queues;

    if (!types)
        return false;
    s->types = types;
    json_object_foreach((json_t *)seen, name, queues) {
        struct type_status *t = &types[s->type_count];

        if (strlen(name) >= sizeof t->name || bsearch(name, types, known, sizeof *types, by_name))
            continue;
        *t = (struct type_status){.cost = 1, .next_start_us = -1, .finish_us = -1};
        copy(t->name, sizeof t->name, name);
        s->type_count++;
    }
    qsort(types, s->type_count, sizeof *types, by_name);
    return true;
}

/* Reads the rows of types. false: out of memory. */
static bool read_types(struct status *s, const json_t *root)
{
    json_t *rows = json_object_get(root, "types"), *row;
    const struct sights sights = sights_of(root);
    const char *name;

    s->types = calloc(json_object_size(rows) + 1, sizeof *s->types);
    if (!s->types)
        return false;
    json_object_foreach(rows, name, row)
        status_type_read(&s->types[s->type_count++], name, row, s->now_us);
    qsort(s->types, s->type_count, sizeof *s->types, by_name);
    if (!add_pushed(s, sights.seen))
        return false;
    for (size_t i = 0; i < s->type_count; i++)
        complete_type(&s->types[i], &sights);
    return true;
}

int status_rows_read(struct status *s, const json_t *root, struct error *e)
{
    json_t *queues = json_object_get(root, "queues"), *row;
    json_t *workers = json_object_get(root, "workers");
    const char *name;

    s->queues = calloc(json_object_size(queues) + 1, sizeof *s->queues);
    s->workers = calloc(json_object_size(workers) + 1, sizeof *s->workers);
    if (!s->queues || !s->workers)
        return error_no_memory(e, "status");
    s->now_us = answer_int(root, "now");
    s->dead = answer_int(root, "dead");
    s->later = answer_int(root, "later");
    s->dead_bytes = answer_int(root, "dead_bytes");
    s->paused_keys = json_incref(json_object_get(root, "paused_keys"));
    s->paused_key_count = answer_int(root, "paused_key_count");
    s->stopped = json_incref(json_object_get(root, "stopped"));
    s->claimed_us = answer_int(root, "claimed");
    json_object_foreach(queues, name, row) {
        const json_t *pause = json_object_get(json_object_get(root, "paused"), name);

        copy(s->queues[s->queue_count].name, sizeof s->queues->name, name);
        s->queues[s->queue_count].oldest_us = UNIT_US * answer_int(json_object_get(root, "oldest"), name);
        s->queues[s->queue_count].pause = json_incref((json_t *)pause);
        s->queues[s->queue_count].paused_us = answer_int(pause, "since");
        s->queues[s->queue_count++].waiting = json_integer_value(row);
    }
    json_object_foreach(workers, name, row)
        read_worker(&s->workers[s->worker_count++], name, row, s->now_us);
    qsort(s->queues, s->queue_count, sizeof *s->queues, by_name);
    qsort(s->workers, s->worker_count, sizeof *s->workers, by_name);
    return read_types(s, root) ? 0 : error_no_memory(e, "status");
}

void status_free(struct status *status)
{
    for (size_t i = 0; i < status->type_count; i++)
        type_free(&status->types[i]);
    for (size_t i = 0; i < status->queue_count; i++)
        json_decref(status->queues[i].pause);
    for (size_t i = 0; i < status->worker_count; i++) {
        json_decref(status->workers[i].queues);
        json_decref(status->workers[i].patterns);
    }
    json_decref(status->paused_keys);
    json_decref(status->stopped);
    free(status->queues);
    free(status->types);
    free(status->workers);
    memset(status, 0, sizeof *status);
}

const struct type_status *status_type(const struct status *status, const char *name)
{
    return name && status->type_count
               ? bsearch(name, status->types, status->type_count, sizeof *status->types, by_name)
               : NULL;
}

const struct queue_status *status_queue(const struct status *status, const char *name)
{
    return status->queue_count
               ? bsearch(name, status->queues, status->queue_count, sizeof *status->queues, by_name)
               : NULL;
}
