#include "core/redis/requests.h"

#include <assert.h>
#include <stdlib.h>

#define REQUESTS_FIRST 64

bool requests_open(struct requests *r)
{
    r->capacity = REQUESTS_FIRST;
    return (r->ring = calloc(r->capacity, sizeof *r->ring)) != NULL;
}

void requests_free(struct requests *r)
{
    free(r->ring);
}

/* Makes room while half of the ring is still free, so that without memory there is a place for a while. */
static bool make_room(struct requests *r)
{
    struct request *bigger;

    if (r->count * 2 < r->capacity)
        return true;
    if (!(bigger = calloc(r->capacity * 2, sizeof *bigger)))
        return false;
    for (size_t i = 0; i < r->count; i++)
        bigger[i] = *requests_at(r, i);
    free(r->ring);
    r->ring = bigger;
    r->first = 0;
    r->capacity *= 2;
    return true;
}

bool requests_push(struct requests *r, const struct request *q)
{
    bool room = make_room(r);

    assert(r->count < r->capacity);
    *requests_at(r, r->count++) = *q;
    return room;
}

struct request requests_pop(struct requests *r)
{
    struct request q = *requests_at(r, 0);

    r->first = (r->first + 1) & (r->capacity - 1);
    r->count--;
    r->answered++;
    return q;
}
