#include "worker/task.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct task *task_new(const struct lease *lease)
{
    struct task *task = malloc(sizeof *task + lease->token.len + lease->body.len + 2);
    char *at;

    if (!task)
        return NULL;
    *task = (struct task){
        .slot_us = lease->slot_us,
        .attempts = lease->attempts,
        .interrupted = lease->interrupted,
        .throttled = lease->throttled,
        .after_s = -1,
    };
    at = task->bytes;
    task->token = (struct span){at, lease->token.len};
    memcpy(at, lease->token.at, lease->token.len);
    at[lease->token.len] = '\0';
    at += lease->token.len + 1;
    task->body = (struct span){at, lease->body.len};
    memcpy(at, lease->body.at, lease->body.len);
    at[lease->body.len] = '\0';
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
