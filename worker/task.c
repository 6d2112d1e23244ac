#include "worker/task.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A copy at *at, ended by a NUL; moves *at behind it. */
static struct span copy(struct span text, char **at)
{
    struct span copied = {*at, text.len};

    memcpy(*at, text.at, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copied;
}

struct task *task_new(const struct lease *lease, struct span limits)
{
    struct task *task = malloc(sizeof *task + lease->token.len + lease->body.len + limits.len + 3);
    char *at;

    if (!task)
        return NULL;
    *task = (struct task){
        .cost = lease->cost,
        .slot_us = lease->slot_us,
        .attempts = lease->attempts,
        .interrupted = lease->interrupted,
        .throttled = lease->throttled,
        .after_s = -1,
        .spent = -1,
    };
    at = task->bytes;
    task->token = copy(lease->token, &at);
    task->key = (struct span){task->token.at + (lease->key.at - lease->token.at), lease->key.len};
    task->body = copy(lease->body, &at);
    task->limits = copy(limits, &at).at;
    return task;
}

void task_free(struct task *task)
{
    if (task)
        free(task->reason);
    free(task);
}

void task_finish(struct task *task, enum task_end end, double after_s, const char *reason)
{
    size_t len = reason ? strlen(reason) : 0;

    while (len > 0 && isspace((unsigned char)reason[len - 1]))
        len--;
    task->end = end;
    task->after_s = after_s;
    free(task->reason);
    task->reason = len > 0 ? strndup(reason, len) : NULL;
    for (char *c = task->reason; c && *c; c++)
        if (iscntrl((unsigned char)*c))
            *c = ' ';
}

bool task_settles_up(const struct task *task)
{
    return task->spent >= 0 && task->spent != task->cost && task->slot_us != 0;
}

void task_list_init(struct task_list *list)
{
    list->head = NULL;
    list->tail = &list->head;
    list->count = 0;
}

void task_list_push(struct task_list *list, struct task *task)
{
    task->next = NULL;
    *list->tail = task;
    list->tail = &task->next;
    list->count++;
}

struct task *task_list_pop(struct task_list *list)
{
    struct task *task = list->head;

    if (!task)
        return NULL;
    list->head = task->next;
    if (!list->head)
        list->tail = &list->head;
    list->count--;
    return task;
}

void task_list_append(struct task_list *to, struct task_list *from)
{
    if (!from->head)
        return;
    *to->tail = from->head;
    to->tail = from->tail;
    to->count += from->count;
    task_list_init(from);
}
