#include "queue/status/status_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"

static int64_t count(const json_t *row, const char *member)
{
    return positive(answer_int(row, member));
}

/* Jobs that were looked at, and what they cost by those that were read. */
struct sample {
    int64_t jobs, slots, least, most, head;
};

static void add_costs(struct sample *s, int64_t least, int64_t most)
{
    s->least = s->least == 0 || least < s->least ? least : s->least;
    s->most = most > s->most ? most : s->most;
}

/* Samples the first jobs of queues; those that name no cost have the usual one. */
static struct sample sample_queues(const json_t *seen, int64_t usual)
{
    struct sample s = {0};
    const char *queue;
    json_t *place;

    json_object_foreach((json_t *)seen, queue, place) {
        int64_t jobs = count(place, "jobs"), named = count(place, "named");

        if (!json_is_object(place))
            continue;
        s.head = s.jobs == 0 ? answer_int_or(place, "head", usual) : s.head;
        s.jobs += jobs;
        s.slots += count(place, "slots") + (jobs - named) * usual;
        add_costs(&s, count(place, "least"), count(place, "most"));
        if (named < jobs)
            add_costs(&s, usual, usual);
    }
    return s;
}

static struct sample sample_lanes(const json_t *lanes)
{
    return (struct sample){count(lanes, "jobs"), count(lanes, "slots"), count(lanes, "least"),
                           count(lanes, "most"), count(lanes, "head")};
}

/* Estimates what so many jobs cost by a sample; `other` is that of other jobs, for where s says nothing. */
static int64_t price(int64_t jobs, const struct sample *s, const struct sample *other)
{
    const struct sample *by = s->jobs > 0 ? s : other;

    return jobs == by->jobs ? by->slots : (int64_t)((double)jobs * (double)by->slots / (double)by->jobs);
}

static void read_costs(struct backlog *b, const struct type_status *type, const json_t *seen,
                       const json_t *lanes)
{
    struct sample queues = sample_queues(seen, type->cost), parked = sample_lanes(lanes);
    int64_t in_lanes = type_parked(type) - b->stopped;

    if (queues.jobs + parked.jobs == 0)
        return;
    b->jobs = type->waiting + in_lanes;
    b->slots = price(type->waiting, &queues, &parked) + price(in_lanes, &parked, &queues);
    if (queues.jobs > 0)
        add_costs(&parked, queues.least, queues.most);
    (void)cost_parse(answer_text(lanes, "costs"), &b->each);
    b->least = parked.least;
    b->most = parked.most;
    b->head = parked.head > 0 ? parked.head : queues.head;
    b->counted = (type->waiting == 0 || queues.jobs == type->waiting) &&
                 (in_lanes == 0 || (parked.jobs == in_lanes && json_is_true(json_object_get(lanes, "sure"))));
}

static void read_keys(struct backlog *b, const struct type_status *type, const json_t *lanes)
{
    int64_t stopped = count(lanes, "stopped");

    b->stopped = stopped < type_parked(type) ? stopped : type_parked(type);
    b->stop = json_incref(json_object_get(lanes, "stop"));
    b->closed = json_is_string(json_array_get(b->stop, 3));
    b->stopped_until_us = b->closed ? GATE_NEVER : answer_int(lanes, "till");
    if (type->waiting == 0)
        b->opens_us = json_is_true(json_object_get(lanes, "ends")) ? GATE_NEVER : answer_int(lanes, "opens");
    b->lanes = json_incref(json_object_get(lanes, "lanes"));
}

/* Where jobs stand. */
struct places {
    const json_t *paused;
    bool open;         /* some in queues that are not paused */
    const char *first; /* of those that are paused the first by name */
};

static void add_place(struct places *places, const char *queue)
{
    if (!json_object_get(places->paused, queue))
        places->open = true;
    else if (!places->first || strcmp(queue, places->first) < 0)
        places->first = queue;
}

static void add_places(struct places *places, const json_t *queues)
{
    const char *queue;
    json_t *value;

    json_object_foreach((json_t *)queues, queue, value)
        if (!json_is_integer(value) || json_integer_value(value) > 0)
            add_place(places, queue);
}

/* Where none of those that wait is among the first of a queue, they may stand in any. */
static void read_pause(struct backlog *b, const struct type_status *type, const json_t *root,
                       const json_t *seen, const json_t *lanes)
{
    struct places places = {.paused = json_object_get(root, "paused"),
                            .open = type_parked(type) > 0 && !lanes};

    if (json_object_size(places.paused) == 0)
        return;
    if (type->waiting > 0)
        add_places(&places, json_object_size(seen) > 0 ? seen : json_object_get(root, "queues"));
    add_places(&places, json_object_get(lanes, "queues"));
    if (places.open || !places.first)
        return;
    strncpy(b->queue, places.first, sizeof b->queue - 1);
    b->pause = json_incref(json_object_get(places.paused, places.first));
}

bool status_read_backlog(struct type_status *type, const json_t *root)
{
    const json_t *seen = json_object_get(json_object_get(root, "seen"), type->name),
                 *lanes = json_object_get(json_object_get(root, "lanes"), type->name);
    bool paused = json_object_size(json_object_get(root, "paused")) > 0;

    if (type_backlog(type) == 0 || (!lanes && !type->own_costs && !paused))
        return true;
    type->backlog = calloc(1, sizeof *type->backlog);
    if (!type->backlog)
        return false;
    read_keys(type->backlog, type, lanes);
    if (type->own_costs)
        read_costs(type->backlog, type, seen, lanes);
    read_pause(type->backlog, type, root, seen, lanes);
    return true;
}
