#include "worker/parts/batches.h"

#include <stdlib.h>
#include <string.h>

struct batch_here {
    struct batch_here *next;
    int jobs;
    size_t len;
    char name[];
};

static struct batch_here **find(struct batches *batches, struct span name)
{
    struct batch_here **at = &batches->head;

    while (*at && !span_is((struct span){(*at)->name, (*at)->len}, name))
        at = &(*at)->next;
    return at;
}

void batches_enter(struct batches *batches, struct task *task)
{
    struct batch_here **at;

    if (task->batch.len == 0)
        return;
    at = find(batches, task->batch);
    if (!*at && (*at = malloc(sizeof **at + task->batch.len))) {
        **at = (struct batch_here){.len = task->batch.len};
        memcpy((*at)->name, task->batch.at, task->batch.len);
    }
    if (*at)
        (*at)->jobs++;
}

bool batches_leave(struct batches *batches, struct task *task)
{
    struct batch_here **at, *batch;

    if (task->batch.len == 0)
        return false;
    at = find(batches, task->batch);
    batch = *at;
    if (batch && --batch->jobs > 0)
        return false;
    if (batch) {
        *at = batch->next;
        free(batch);
    }
    return true;
}

void batches_free(struct batches *batches)
{
    while (batches->head) {
        struct batch_here *next = batches->head->next;

        free(batches->head);
        batches->head = next;
    }
}
