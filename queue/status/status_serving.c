#include "queue/status/status_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "queue/job/job.h"

static bool is_resting(const char *order)
{
    return strcmp(order, "quiet") == 0 || strcmp(order, "stop") == 0;
}

/* A worker that is alive. */
struct taker {
    const json_t *types, *queues;
    int64_t executors, free;
    bool *takes; /* by type; several that say the same types share it */
    bool owner;
    bool rests; /* it was told to take no more jobs, */
    int64_t since_us;
};

/* Marks the types that a word stands for. */
static void mark_word(const struct status *s, bool *takes, const char *word)
{
    const struct type_status *type = word && !pattern_is(word) ? status_type(s, word) : NULL;

    if (type)
        takes[type - s->types] = true;
    for (size_t i = 0; word && pattern_is(word) && i < s->type_count; i++)
        takes[i] |= pattern_serves(word, span_str(s->types[i].name));
}

/* Marks the types that it says, or shares the marks of the one before it. */
static bool mark_types(const struct status *s, struct taker *t, const struct taker *before)
{
    if (before && before->types == t->types) {
        t->takes = before->takes;
        return true;
    }
    t->owner = true;
    t->takes = calloc(s->type_count + 1, sizeof *t->takes);
    for (size_t i = 0; t->takes && i < json_array_size(t->types); i++)
        mark_word(s, t->takes, json_string_value(json_array_get(t->types, i)));
    return t->takes;
}

static void add_taker(struct status *s, const struct taker *t)
{
    for (size_t i = 0; i < s->type_count; i++)
        if (t->takes[i] && t->rests) {
            s->types[i].resting++;
            s->types[i].resting_us = max_i64(s->types[i].resting_us, t->since_us);
        } else if (t->takes[i]) {
            s->types[i].served = true;
            s->types[i].free += t->free;
            s->types[i].executors += t->executors;
        }
}

bool status_is_served(const json_t *words, const char *queue)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        const char *word = json_string_value(json_array_get(words, i));

        if (word && pattern_serves(word, span_str(queue)))
            return true;
    }
    return false;
}

/* True when a worker takes that type from that queue. */
static bool is_taken(const struct taker *takers, size_t count, size_t type, const char *queue)
{
    for (size_t i = 0; i < count; i++)
        if (!takers[i].rests && takers[i].takes[type] && status_is_served(takers[i].queues, queue))
            return true;
    return false;
}

/* True when a type is taken from each of these queues. */
static bool are_taken(const struct taker *takers, size_t count, size_t type, const json_t *queues)
{
    const char *queue;
    json_t *value;

    json_object_foreach((json_t *)queues, queue, value)
        if (!is_taken(takers, count, type, queue))
            return false;
    return true;
}

/* A type is served if it is from each queue where jobs of it were seen. */
static void look_at_queues(struct status *s, const json_t *root, const struct taker *takers, size_t count)
{
    const json_t *seen = json_object_get(root, "seen"), *lanes = json_object_get(root, "lanes"),
                 *all = json_object_get(root, "queues");

    for (size_t i = 0; i < s->type_count; i++) {
        struct type_status *t = &s->types[i];
        const json_t *row = json_object_get(lanes, t->name), *places = json_object_get(row, "queues");

        if (!row && t->parked + t->held > 0 && json_object_size(all) == 1)
            places = all;
        t->served = t->served && are_taken(takers, count, i, json_object_get(seen, t->name)) &&
                    are_taken(takers, count, i, places);
    }
}

/* Counts its executors that run nothing in any partition. */
static int64_t idle_of(const json_t *worker, const struct status *processes)
{
    const json_t *info = json_object_get(worker, "info");
    const struct worker_status *all =
        status_process(processes, answer_text(info, "host"), answer_int(info, "pid"));

    return positive(answer_int(info, "executors") - (all ? all->running : answer_int(worker, "running")));
}

int status_read_serving(struct status *s, const json_t *root, const struct status *processes, struct error *e)
{
    json_t *workers = json_object_get(root, "workers"), *worker;
    struct taker *takers = calloc(json_object_size(workers) + 1, sizeof *takers);
    bool done = takers;
    size_t count = 0;
    const char *id;

    json_object_foreach(workers, id, worker) {
        const json_t *info = json_object_get(worker, "info");

        if (!done || !json_is_object(info) || answer_int(worker, "until") <= s->now_us)
            continue;
        takers[count] = (struct taker){.types = json_object_get(worker, "types"),
                                       .queues = json_object_get(info, "queues"),
                                       .executors = answer_int(info, "executors"),
                                       .free = idle_of(worker, processes),
                                       .rests = is_resting(answer_text(worker, "order")),
                                       .since_us = answer_int(worker, "ordered")};
        done = mark_types(s, &takers[count], count ? &takers[count - 1] : NULL);
        if (done)
            add_taker(s, &takers[count++]);
    }
    if (done)
        look_at_queues(s, root, takers, count);
    for (size_t i = 0; i < count; i++)
        if (takers[i].owner)
            free(takers[i].takes);
    free(takers);
    return done ? 0 : error_no_memory(e, "status");
}
