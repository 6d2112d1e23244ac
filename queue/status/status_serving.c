#include "queue/status/status_serving.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "queue/job/job.h"
#include "queue/status/status_merge.h"
#include "queue/status/status_rows.h"

/* A worker that takes jobs. */
struct taker {
    const json_t *types, *queues;
    int64_t executors, free;
    bool *takes; /* by type; several that say the same types share it */
    bool owner;
};

/* Is it alive, and was not told to take no more jobs? */
static bool takes_jobs(const json_t *worker, int64_t now_us)
{
    return answer_int(worker, "until") > now_us && !*answer_text(worker, "order");
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
    for (size_t i = 0; t->takes && i < json_array_size(t->types); i++) {
        const struct type_status *type = status_type(s, json_string_value(json_array_get(t->types, i)));

        if (type)
            t->takes[type - s->types] = true;
    }
    return t->takes;
}

static void add_taker(struct status *s, const struct taker *t)
{
    for (size_t i = 0; i < s->type_count; i++)
        if (t->takes[i]) {
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

/* Does a worker take that type from that queue? */
static bool is_taken(const struct taker *takers, size_t count, size_t type, const char *queue)
{
    for (size_t i = 0; i < count; i++)
        if (takers[i].takes[type] && status_is_served(takers[i].queues, queue))
            return true;
    return false;
}

/* A type is served if it is from each queue where jobs of it were seen. */
static void look_at_queues(struct status *s, const json_t *seen, const struct taker *takers, size_t count)
{
    for (size_t i = 0; i < s->type_count; i++) {
        struct type_status *t = &s->types[i];
        const char *queue;
        json_t *names;

        json_object_foreach(json_object_get(seen, t->name), queue, names)
        {
            t->served = t->served && is_taken(takers, count, i, queue);
        }
    }
}

/* Its executors that run nothing in any partition. */
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

    json_object_foreach(workers, id, worker)
    {
        const json_t *info = json_object_get(worker, "info");

        if (!done || !json_is_object(info) || !takes_jobs(worker, s->now_us))
            continue;
        takers[count] = (struct taker){.types = json_object_get(worker, "types"),
                                       .queues = json_object_get(info, "queues"),
                                       .executors = answer_int(info, "executors"),
                                       .free = idle_of(worker, processes)};
        done = mark_types(s, &takers[count], count ? &takers[count - 1] : NULL);
        if (done)
            add_taker(s, &takers[count++]);
    }
    if (done)
        look_at_queues(s, json_object_get(root, "seen"), takers, count);
    for (size_t i = 0; i < count; i++)
        if (takers[i].owner)
            free(takers[i].takes);
    free(takers);
    return done ? 0 : error_set(e, WEIR_EINTERNAL, "status: out of memory");
}
