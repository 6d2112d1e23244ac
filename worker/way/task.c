#include "worker/way/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"
#include "queue/job/job_cost.h"
#include "queue/job/json.h"
#include "worker/way/way.h"

#define REASON_HEAD 200 /* bytes of the beginning of a long reason that are kept */
#define REASON_TAIL 900 /* bytes of its end that are kept */

/* Copies a text to *at, ended by a NUL; moves *at behind it. */
static struct span copy(struct span text, char **at)
{
    struct span copied = {*at, text.len};

    memcpy(*at, text.at, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copied;
}

struct task *task_new(const struct lease *lease, struct handler *handler, struct conditions *conditions,
                      struct span limits)
{
    struct span batch = lease->usual ? (struct span){NULL, 0} : lease_attr(lease->attrs, 'b');
    size_t size = sizeof(struct task) + lease->token.len + lease->body.len + limits.len +
                  (batch.at ? batch.len : 0) + 4;
    struct task *task = malloc(size);
    char *at;

    if (!task)
        return NULL;
    *task = (struct task){
        .handler = handler,
        .conditions = conditions,
        .size = size,
        .cost = lease->cost,
        .slot_us = lease->slot_us,
        .enqueued_us = lease->enqueued_us,
        .since_us = lease->since_us,
        .attempts = lease->attempts,
        .interrupted = lease->interrupted,
        .throttled = lease->throttled,
        .unique = !lease->usual && lease_attr(lease->attrs, 'u').at != NULL,
        .after_s = -1,
        .spent = -1,
    };
    atomic_fetch_add(&handler->tasks, 1);
    at = task->bytes;
    task->token = copy(lease->token, &at);
    task->key = (struct span){task->token.at + (lease->key.at - lease->token.at), lease->key.len};
    task->body = copy(lease->body, &at);
    task->batch = copy(batch.at ? batch : (struct span){"", 0}, &at);
    task->limits = copy(limits, &at).at;
    return task;
}

static struct span moved(struct span text, const struct task *from, struct task *to)
{
    return (struct span){to->bytes + (text.at - from->bytes), text.len};
}

struct task *task_copy(const struct task *task)
{
    const size_t from = offsetof(struct task, handler); /* to view: what came with the lease */
    struct task *again = malloc(task->size);

    if (!again)
        return NULL;
    *again = (struct task){.after_s = -1, .spent = -1};
    memcpy((char *)again + from, (const char *)task + from, offsetof(struct task, view) - from);
    memcpy(again->bytes, task->bytes, task->size - offsetof(struct task, bytes));
    again->token = moved(task->token, task, again);
    again->key = moved(task->key, task, again);
    again->body = moved(task->body, task, again);
    again->batch = moved(task->batch, task, again);
    again->limits = again->bytes + (task->limits - task->bytes);
    atomic_fetch_add(&task->handler->tasks, 1);
    return again;
}

void task_free(struct task *task)
{
    if (!task)
        return;
    if (task->state)
        task->handler->runner->way->release(task);
    free(task->reason);
    free(task->result);
    free(task->spent_of);
    atomic_fetch_sub(&task->handler->tasks, 1);
    free(task);
}

void task_log(enum log_level level, const struct task *task, const char *fmt, ...)
{
    const struct span *id = &task->view.id;
    const char *type = task->handler->type;
    char text[2048], attempt[24];
    va_list args;

    va_start(args, fmt);
    decimal_vprint(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(attempt, sizeof attempt, "%d", task->attempts + 1);
    log_fields(level,
               (const struct log_field[]){{"job", id->at ? id->at : "", id->at ? id->len : 0, false},
                                          {"type", type, strlen(type), false},
                                          {"attempt", attempt, strlen(attempt), true}},
               3, "%s", text);
}

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Copies a reason; of a long one the beginning, which says how the job ended, and the end, which says what was wrong. NULL: out of memory. */
static char *copy_reason(const char *reason, size_t len)
{
    size_t head = REASON_HEAD, tail = len - REASON_TAIL;
    char *copy;

    if (len <= REASON_HEAD + REASON_TAIL)
        return strndup(reason, len);
    while (head > 0 && is_inside_character(reason[head]))
        head--;
    while (tail < len && is_inside_character(reason[tail]))
        tail++;
    if (asprintf(&copy, "%.*s ... %.*s", (int)head, reason, (int)(len - tail), reason + tail) < 0)
        return NULL;
    return copy;
}

void task_finish(struct task *task, enum task_end end, double after_s, const char *reason)
{
    size_t len = reason ? strlen(reason) : 0;

    while (len > 0 && strchr(" \t\r\n\v\f", reason[len - 1]))
        len--;
    task->end = end;
    task->after_s = after_s;
    free(task->reason);
    task->reason = len > 0 ? copy_reason(reason, len) : NULL;
    for (char *c = task->reason; c && *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

int task_result(struct task *task, struct span json)
{
    struct error e = {0};
    char *copy = NULL;

    if (task->handler->keep_us == 0) {
        if (!atomic_exchange(&task->handler->left_one, true))
            task_log(LOG_LEVEL_WARN, task,
                     "left a result, and jobs of its type are not kept: --keep %s=1d keeps both",
                     task->handler->type);
        return 0;
    }
    if (json.len > RESULT_MOST)
        error_set(&e, WEIR_EINPUT, "more than %d bytes", RESULT_MOST);
    for (; e.status == 0 && json.len > 0 && strchr(" \t\r\n", *json.at); json.len--)
        json.at++;
    while (e.status == 0 && json.len > 0 && strchr(" \t\r\n", json.at[json.len - 1]))
        json.len--;
    if (e.status == 0 && json_check(json.at, json.len, &e) == 0 && !(copy = strndup(json.at, json.len)))
        error_no_memory(&e, "result");
    if (!copy) {
        task_log(LOG_LEVEL_WARN, task, "wrong result: %s; it counts as left out", e.text);
        return e.status;
    }
    json_one_line(copy, json.len);
    free(task->result);
    task->result = copy;
    return 0;
}

static int wrong_spent(const struct task *task, const struct error *e)
{
    task_log(LOG_LEVEL_WARN, task, "wrong true cost: %s; it counts as left out", e->text);
    return e->status;
}

/* Puts one number of a name in place of what was said of it before. */
static bool say_again(struct job_cost *cost, const char *name, size_t len, int64_t slots)
{
    int64_t *before = cost_slots(cost, name, len);

    if (before)
        *before = slots;
    return before || cost_say(cost, name, len, slots);
}

int task_spent(struct task *task, const char *name, size_t len, int64_t slots)
{
    struct error e;

    slots = slots < 0 ? 0 : slots > COST_MAX ? COST_MAX : slots;
    if (len == strlen("plain") && memcmp(name, "plain", len) == 0) {
        task->spent = slots;
        return 0;
    }
    if (!task->spent_of && (task->spent_of = malloc(sizeof *task->spent_of)))
        *task->spent_of = cost_of(COST_UNSAID);
    if (task->spent_of && say_again(task->spent_of, name, len, slots))
        return 0;
    error_set(&e, task->spent_of ? WEIR_EINPUT : WEIR_EINTERNAL, "%.*s: %s", len < 40 ? (int)len : 40, name,
              !task->spent_of           ? "out of memory"
              : cost_is_name(name, len) ? "one name too many"
                                        : "no name; use 1 to 32 of a-z 0-9 _, a letter first");
    return wrong_spent(task, &e);
}

static int take_spent(struct task *task, const struct job_cost *cost)
{
    int status = cost->plain == COST_UNSAID ? 0 : task_spent(task, "plain", strlen("plain"), cost->plain);

    for (int i = 0; status == 0 && i < cost->count; i++)
        status = task_spent(task, cost->named[i].name, strlen(cost->named[i].name), cost->named[i].slots);
    return status;
}

int task_spent_text(struct task *task, const char *text)
{
    struct job_cost cost;
    struct error e;

    return cost_read(text, COST_TRUE, &cost, &e) < 0 ? wrong_spent(task, &e) : take_spent(task, &cost);
}

int task_spent_json(struct task *task, struct span json)
{
    struct job_cost cost;
    struct error e;

    return cost_read_json(json, COST_TRUE, &cost, &e) < 0 ? wrong_spent(task, &e) : take_spent(task, &cost);
}

void task_true_cost(const struct task *task, struct job_cost *spent)
{
    *spent = task->spent_of ? *task->spent_of : cost_of(COST_UNSAID);
    spent->plain = task->spent < 0 ? COST_UNSAID : task->spent;
}

void task_settle_cost(const struct task *task, struct args *a)
{
    struct job_cost spent;

    task_true_cost(task, &spent);
    settle_cost(a, task->token, &spent);
}

bool task_settles_up(const struct task *task)
{
    return task->slot_us != 0 && (task->spent_of || (task->spent >= 0 && task->spent != task->cost));
}

void task_list_insert(struct task_list *list, struct task *before, struct task *task)
{
    task->prev = before;
    task->next = before ? before->next : list->head;
    *(task->next ? &task->next->prev : &list->tail) = task;
    *(before ? &before->next : &list->head) = task;
    list->count++;
}

void task_list_push(struct task_list *list, struct task *task)
{
    task->prev = list->tail;
    task->next = NULL;
    *(list->tail ? &list->tail->next : &list->head) = task;
    list->tail = task;
    list->count++;
}

void task_list_remove(struct task_list *list, struct task *task)
{
    *(task->prev ? &task->prev->next : &list->head) = task->next;
    *(task->next ? &task->next->prev : &list->tail) = task->prev;
    list->count--;
}

struct task *task_list_pop(struct task_list *list)
{
    struct task *task = list->head;

    if (!task)
        return NULL;
    list->head = task->next;
    *(list->head ? &list->head->prev : &list->tail) = NULL;
    list->count--;
    return task;
}

void task_list_append(struct task_list *to, struct task_list *from)
{
    if (!from->head)
        return;
    from->head->prev = to->tail;
    *(to->tail ? &to->tail->next : &to->head) = from->head;
    to->tail = from->tail;
    to->count += from->count;
    *from = (struct task_list){NULL, NULL, 0};
}

void task_list_free(struct task_list *list)
{
    struct task *task;

    while ((task = task_list_pop(list)))
        task_free(task);
}
