#include "queue/queues/queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"
#include "queue/inspect/find_job.h"

#define PAGE_MOST 500 /* jobs of a page: each costs some commands when it ends */

static const char *text_of(const struct redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? r->str : "";
}

static int no_queue(struct weir *w, const char *queue)
{
    return error_set(&w->error, WEIR_ENOTFOUND, "queue %s: there is none; weir queue list shows them", queue);
}

static int check_names(struct weir *w, const char *queue, const char *type)
{
    if (!name_is_valid(queue, strlen(queue)))
        return error_set(&w->error, WEIR_EINPUT,
                         "queue '%.60s': not a name; use 1 to 128 of A-Z a-z 0-9 _ . -", queue);
    if (type && !name_is_valid(type, strlen(type)))
        return error_set(&w->error, WEIR_EINPUT,
                         "type '%.60s': not a name; use 1 to 128 of A-Z a-z 0-9 _ . -", type);
    return 0;
}

/* Sends a and frees it; *reply is the caller's, an array of at least n elements, or "missing" alone. */
static int call(struct weir *w, struct args *a, const char *queue, size_t n, struct redisReply **reply)
{
    int status = client_call(w, a, reply, NULL);

    args_free(a);
    if (status == 0)
        status = reply_array(*reply, 1, "queue", &w->error);
    if (status == 0 && strcmp(text_of((*reply)->element[0]), "missing") == 0)
        status = no_queue(w, queue);
    if (status == 0)
        status = reply_array(*reply, n, "queue", &w->error);
    return status;
}

/* ---- Pausing */

int queue_pause(struct weir *w, const char *queue, bool pause, int64_t *before_us, bool *known)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status = check_names(w, queue, NULL);

    if (status != 0)
        return status;
    args_init(&a);
    script_begin(&a, "queue_pause", w->prefix, -1);
    args_add(&a, queue);
    args_add(&a, pause ? "pause" : "resume");
    status = call(w, &a, queue, 1, &reply);
    if (status == 0) {
        *before_us = reply_int(reply->element[0], 0);
        *known = reply->elements < 2 || reply_int(reply->element[1], 1) != 0;
    }
    if (reply)
        freeReplyObject(reply);
    return status;
}

/* ---- Going through a queue and its lanes */

/* What is still to be gone through, the next one last. */
#define PLACES_FEW 8
struct walk {
    struct weir *w;
    int64_t now_us;
    const char *queue, *type; /* type: "" all */
    int64_t most;             /* jobs to remove; < 0: count */
    int page;
    char **places;
    size_t count, capacity;
    struct queue_jobs *jobs;
};

static int push_place(struct walk *walk, const char *name)
{
    char **grown = walk->places;

    if (walk->count == walk->capacity) {
        walk->capacity = walk->capacity ? 2 * walk->capacity : PLACES_FEW;
        if (!(grown = realloc(walk->places, walk->capacity * sizeof *grown)))
            return error_set(&walk->w->error, WEIR_EINTERNAL, "queue: out of memory");
        walk->places = grown;
    }
    if (!(grown[walk->count] = strdup(name)))
        return error_set(&walk->w->error, WEIR_EINTERNAL, "queue: out of memory");
    walk->count++;
    return 0;
}

static int64_t removed(const struct walk *walk)
{
    return walk->jobs->waiting + walk->jobs->parked + walk->jobs->marked + walk->jobs->nameless;
}

/* next: jobs, marked, nameless, bytes, places. */
static int read_page(struct walk *walk, const struct redisReply *r, const char *place)
{
    const struct redisReply *places = r->element[5];
    int64_t jobs = reply_int(r->element[1], 0);

    *(strcmp(place, "queue") == 0 ? &walk->jobs->waiting : &walk->jobs->parked) += jobs;
    walk->jobs->marked += reply_int(r->element[2], 0);
    walk->jobs->nameless += reply_int(r->element[3], 0);
    walk->page = page_next(walk->page, reply_int(r->element[4], 0));
    for (size_t i = 0; places->type == REDIS_REPLY_ARRAY && i < places->elements; i++)
        if (push_place(walk, text_of(places->element[i])) < 0)
            return walk->w->error.status;
    return 0;
}

/* One page of a place; *from moves on. */
static int go_on(struct walk *walk, const char *place, char **from)
{
    int64_t rest = walk->most - removed(walk), most = walk->page < PAGE_MOST ? walk->page : PAGE_MOST;
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "queue_purge", walk->w->prefix, walk->now_us);
    args_add(&a, walk->queue);
    args_add(&a, walk->most < 0 ? "count" : "remove");
    args_add(&a, walk->type);
    args_add_int(&a, walk->most >= 0 && rest < most ? rest : most);
    args_add(&a, place);
    args_add(&a, *from);
    status = call(walk->w, &a, walk->queue, 6, &reply);
    if (status == 0)
        status = read_page(walk, reply, place);
    if (status == 0) {
        free(*from);
        if (!(*from = strdup(text_of(reply->element[0]))))
            status = error_set(&walk->w->error, WEIR_EINTERNAL, "queue: out of memory");
    }
    if (reply)
        freeReplyObject(reply);
    return status;
}

static int walk_place(struct walk *walk, const char *place)
{
    char *from = strdup("");
    int status = from ? 0 : error_set(&walk->w->error, WEIR_EINTERNAL, "queue: out of memory");
    bool enough = false;

    while (status == 0 && !enough) {
        enough = walk->most >= 0 && removed(walk) >= walk->most;
        if (!enough)
            status = go_on(walk, place, &from);
        enough |= from && !*from;
    }
    free(from);
    return status;
}

static int walk_queue(struct walk *walk, const char *queue)
{
    static const char *const places[] = {"sleep", "rings", "queue"}; /* as jobs move, from the last */
    int status = 0;

    walk->queue = queue;
    for (size_t i = 0; status == 0 && i < sizeof places / sizeof *places; i++)
        status = push_place(walk, places[i]);
    while (status == 0 && walk->count > 0) {
        char *place = walk->places[--walk->count];

        status = walk_place(walk, place);
        free(place);
    }
    while (walk->count > 0)
        free(walk->places[--walk->count]);
    return status;
}

/* The queue, and those of its lanes that are to run alone. */
static int walk_all(struct walk *walk)
{
    const char *queue = walk->queue;
    char alone[LIMIT_NAME_SIZE + 1];
    int status = check_names(walk->w, queue, walk->type[0] ? walk->type : NULL);

    *walk->jobs = (struct queue_jobs){0};
    snprintf(alone, sizeof alone, "%s!", queue);
    if (status == 0)
        status = walk_queue(walk, queue);
    if (status == 0)
        status = walk_queue(walk, alone);
    walk->queue = queue;
    free(walk->places);
    return status;
}

int queue_count(struct weir *w, int64_t now_us, const char *queue, const char *type, struct queue_jobs *jobs)
{
    struct walk walk = {.w = w,
                        .now_us = now_us,
                        .queue = queue,
                        .type = type ? type : "",
                        .most = -1,
                        .page = PAGE_FIRST,
                        .jobs = jobs};

    return walk_all(&walk);
}

int queue_purge(struct weir *w, int64_t now_us, const char *queue, const char *type, int64_t most,
                struct queue_jobs *jobs)
{
    struct walk walk = {.w = w,
                        .now_us = now_us,
                        .queue = queue,
                        .type = type ? type : "",
                        .most = most,
                        .page = PAGE_FIRST,
                        .jobs = jobs};

    return walk_all(&walk);
}

/* ---- The list */

#define QUEUES_MOST 100 /* of one queue_rows */

static int read_names(struct weir *w, const struct redisReply *r, struct queue_row **rows, size_t *count)
{
    *count = 0;
    *rows = calloc(r->elements, sizeof **rows);
    if (!*rows)
        return error_set(&w->error, WEIR_EINTERNAL, "queue: out of memory");
    for (size_t i = 1; i < r->elements; i++) {
        const struct redisReply *row = r->element[i];
        struct queue_row *out = &(*rows)[*count];

        if (reply_array(row, 2, "queue_list", &w->error) < 0)
            return w->error.status;
        snprintf(out->name, sizeof out->name, "%s", text_of(row->element[0]));
        out->workers = reply_int(row->element[1], 0);
        ++*count;
    }
    return 0;
}

static int list_names(struct weir *w, struct queue_row **rows, size_t *count)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "queue_list", w->prefix, -1);
    status = call(w, &a, "", 1, &reply);
    if (status == 0)
        status = read_names(w, reply, rows, count);
    if (reply)
        freeReplyObject(reply);
    return status;
}

static int read_counts(struct weir *w, const struct redisReply *r, struct queue_row *rows)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < r->elements; i++) {
        const struct redisReply *row = r->element[i];
        struct queue_jobs jobs;

        if (reply_array(row, 3, "queue_rows", &w->error) < 0)
            return w->error.status;
        rows[i].waiting = reply_int(row->element[0], 0);
        rows[i].paused_us = reply_int(row->element[1], 0);
        rows[i].parked = reply_int(row->element[2], 0);
        if (rows[i].parked >= 0)
            continue;
        status = queue_count(w, -1, rows[i].name, NULL, &jobs);
        rows[i].parked = jobs.parked;
    }
    return status;
}

/* Fills the first of the rows; *counted: how many, at least one. */
static int count_page(struct weir *w, struct queue_row *rows, size_t count, size_t *counted)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "queue_rows", w->prefix, -1);
    for (size_t i = 0; i < count && i < QUEUES_MOST; i++)
        args_add(&a, rows[i].name);
    status = client_call(w, &a, &reply, NULL);
    args_free(&a);
    if (status == 0)
        status = reply_array(reply, 1, "queue_rows", &w->error);
    if (status == 0 && reply->elements > count)
        status = error_set(&w->error, WEIR_EINTERNAL, "queue_rows: unexpected answer from Redis");
    if (status == 0)
        status = read_counts(w, reply, rows);
    if (status == 0)
        *counted = reply->elements;
    if (reply)
        freeReplyObject(reply);
    return status;
}

int queues_read(struct weir *w, struct queue_row **rows, size_t *count)
{
    int status;

    *rows = NULL;
    status = list_names(w, rows, count);
    for (size_t i = 0, counted = 0; status == 0 && i < *count; i += counted)
        status = count_page(w, *rows + i, *count - i, &counted);
    if (status != 0) {
        free(*rows);
        *rows = NULL;
    }
    return status;
}
