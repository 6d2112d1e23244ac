/* A heap, by time. */
#include <stdlib.h>

#include "bench/scale/scale.h"

static struct event *heap;
static size_t count, capacity;
static uint64_t number;

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->number < b->number;
}

static void swap(size_t i, size_t k)
{
    struct event other = heap[i];

    heap[i] = heap[k];
    heap[k] = other;
}

void events_add(int64_t at_us, enum event_kind kind, int agent, int epoch, void *data)
{
    size_t i = count++;

    if (count > capacity) {
        capacity = capacity ? 2 * capacity : 1024;
        heap = realloc(heap, capacity * sizeof *heap);
        if (!heap)
            abort();
    }
    heap[i] = (struct event){at_us > now_us ? at_us : now_us, number++, kind, agent, epoch, data};
    for (; i > 0 && is_before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(i, (i - 1) / 2);
}

bool events_next(struct event *event)
{
    if (count == 0)
        return false;
    *event = heap[0];
    heap[0] = heap[--count];
    for (size_t i = 0, least = 0;; i = least) {
        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < count; k++)
            if (is_before(&heap[k], &heap[least]))
                least = k;
        if (least == i)
            return true;
        swap(i, least);
    }
}

bool event_has_turn(enum event_kind kind)
{
    return kind == EVENT_ARRIVE || kind == EVENT_ANSWER || kind == EVENT_BESIDE || kind == EVENT_STAND ||
           kind == EVENT_STOOD;
}

void events_clear(void)
{
    for (size_t i = 0; i < count; i++)
        if (event_has_turn(heap[i].kind))
            turn_free(heap[i].data);
    free(heap);
    heap = NULL;
    count = capacity = 0;
    number = 0;
}
