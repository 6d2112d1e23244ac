#include "producer/tally.h"

#include <stdlib.h>
#include <string.h>

void tally_init(struct tally *t)
{
    char seed[17];

    *t = (struct tally){0};
    job_make_id(seed);
    memcpy(&t->seed, seed, sizeof t->seed);
}

void tally_free(struct tally *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->names[i].text);
    free(t->names);
    free(t->used);
    free(t->slots);
}

static bool is_name(const struct tally *t, uint32_t index, struct span name)
{
    return span_is((struct span){t->names[index].text, t->names[index].len}, name);
}

/* Finds the slot of a name, or the free one where it would go. */
static uint32_t *find_slot(const struct tally *t, struct span name)
{
    uint64_t hash = t->seed;
    size_t at;

    for (size_t i = 0; i < name.len; i++)
        hash = (hash ^ (unsigned char)name.at[i]) * UINT64_C(0x100000001b3);
    at = (hash ^ hash >> 32) & (t->slot_count - 1);
    while (t->slots[at] && !is_name(t, t->slots[at] - 1, name))
        at = (at + 1) & (t->slot_count - 1);
    return &t->slots[at];
}

static bool grow_names(struct tally *t)
{
    size_t capacity = t->capacity ? 2 * t->capacity : 16;
    struct tally_name *names = realloc(t->names, capacity * sizeof *names);
    uint32_t *used;

    if (!names)
        return false;
    t->names = names;
    used = realloc(t->used, capacity * sizeof *used);
    if (!used)
        return false;
    t->used = used;
    t->capacity = capacity;
    return true;
}

/* Keeps half of the slots free. */
static bool grow_slots(struct tally *t)
{
    size_t count = t->slot_count ? 2 * t->slot_count : 32;
    uint32_t *slots = calloc(count, sizeof *slots);

    if (!slots)
        return false;
    free(t->slots);
    t->slots = slots;
    t->slot_count = count;
    for (size_t i = 0; i < t->count; i++)
        *find_slot(t, (struct span){t->names[i].text, t->names[i].len}) = (uint32_t)i + 1;
    return true;
}

static bool add_name(struct tally *t, struct span name)
{
    char *text;

    if (t->count == t->capacity && !grow_names(t))
        return false;
    if (2 * (t->count + 1) > t->slot_count && !grow_slots(t))
        return false;
    text = malloc(name.len);
    if (!text)
        return false;
    memcpy(text, name.at, name.len);
    t->names[t->count] = (struct tally_name){.text = text, .len = name.len, .fits = cost_of(1)};
    *find_slot(t, name) = (uint32_t)++t->count;
    return true;
}

struct tally_name *tally_row(struct tally *t, struct span name)
{
    if (t->count == 0 || !is_name(t, t->last, name)) {
        uint32_t slot = t->count ? *find_slot(t, name) : 0;

        if (!slot && !add_name(t, name))
            return NULL;
        t->last = slot ? slot - 1 : (uint32_t)t->count - 1;
    }
    return &t->names[t->last];
}

void tally_count(struct tally *t, uint32_t index)
{
    if (t->names[index].in_chunk++ == 0)
        t->used[t->used_count++] = index;
}

void tally_next_chunk(struct tally *t)
{
    for (uint32_t i = 0; i < t->used_count; i++)
        t->names[t->used[i]].in_chunk = 0;
    t->used_count = 0;
}
