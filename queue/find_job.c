#include "queue/find_job.h"

#include <stdlib.h>
#include <string.h>

#include "core/client.h"
#include "core/reply.h"
#include "core/script.h"

#define PAGE_MOST 1000
#define PAGE_BYTES (1024 * 1024) /* about; half a millisecond of Redis */
#define LOOKS 2

int page_next(int entries, int64_t bytes)
{
    if (bytes > PAGE_BYTES)
        entries = (int)(entries * (int64_t)PAGE_BYTES / bytes);
    else
        entries *= 2;
    return entries < 1 ? 1 : entries > PAGE_MOST ? PAGE_MOST : entries;
}

/* ---- What is still to be gone through */

/* A place and how far it has been read. Those that are named by a page of another are looked at first: the
 * places are a stack. */
struct place {
    char *name, *from;
};

struct search {
    struct weir *w;
    int64_t now_us;
    const char *id;
    struct place *places;
    size_t count, capacity;
    int page;
    bool seen; /* *found is filled */
    struct found_job *found;
};

static int no_memory(struct search *s)
{
    return error_set(&s->w->error, WEIR_EINTERNAL, "why: out of memory; free some and try again");
}

static int push_place(struct search *s, const char *name)
{
    struct place *grown = s->places;

    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        grown = realloc(s->places, s->capacity * sizeof *grown);
        if (!grown)
            return no_memory(s);
        s->places = grown;
    }
    grown[s->count] = (struct place){strdup(name), strdup("")};
    s->count++;
    return grown[s->count - 1].name && grown[s->count - 1].from ? 0 : no_memory(s);
}

static void pop_place(struct search *s)
{
    s->count--;
    free(s->places[s->count].name);
    free(s->places[s->count].from);
}

/* ---- The answer */

static const char *text_of(const struct redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? r->str : "";
}

static void copy(char *out, size_t size, const struct redisReply *r)
{
    snprintf(out, size, "%s", text_of(r));
}

/* Queue, type and key of "queue/type/key". */
static void read_lane(const char *lane, struct found_job *out)
{
    char *const parts[] = {out->queue, out->type, out->key};

    for (int i = 0; i < 3 && lane; i++) {
        const char *slash = strchr(lane, '/');

        snprintf(parts[i], LIMIT_NAME_SIZE, "%.*s", (int)(slash && i < 2 ? slash - lane : (long)strlen(lane)),
                 lane);
        lane = slash ? slash + 1 : NULL;
    }
}

static int read_body(const struct redisReply *r, struct found_job *out)
{
    struct error ignored;
    struct job_view view;

    out->body.at = malloc(r->len + 1);
    if (!out->body.at)
        return WEIR_EINTERNAL;
    memcpy(out->body.at, r->str, r->len + 1);
    out->body.len = r->len;
    out->body.capacity = r->len + 1;
    if (job_read(out->body.at, out->body.len, &view, &ignored) < 0)
        return 0;
    if (!*out->type)
        snprintf(out->type, sizeof out->type, "%.*s", (int)view.type.len, view.type.at);
    return 0;
}

static const char *const states[] = {
    [JOB_WAITING] = "waiting",     [JOB_PARKED] = "parked", [JOB_RUNNING] = "running",
    [JOB_SCHEDULED] = "scheduled", [JOB_RETRY] = "retry",   [JOB_DEAD] = "dead",
};
#define STATE_COUNT (sizeof states / sizeof *states)

/* What a and b are depends on the state. */
static void read_numbers(const struct redisReply *row, struct found_job *out)
{
    int64_t a = reply_int(row->element[4], 0), b = reply_int(row->element[5], 0);

    if (out->state == JOB_WAITING || out->state == JOB_PARKED) {
        out->before = a;
        out->length = b;
    } else {
        out->at_us = a;
        out->lease_us = b;
    }
}

/* row: state, lane, attempts, body, a, b, text, host, pid. */
static int read_found(const struct redisReply *row, struct found_job *out, struct error *e)
{
    size_t state = 0;

    while (state < STATE_COUNT && strcmp(states[state], text_of(row->element[0])) != 0)
        state++;
    if (state == STATE_COUNT || row->element[3]->type != REDIS_REPLY_STRING)
        return error_set(e, WEIR_EINTERNAL,
                         "find_job: unexpected answer from Redis; is another version at work?");
    out->state = (enum job_state)state;
    read_lane(text_of(row->element[1]), out);
    out->attempts = reply_int(row->element[2], 0);
    read_numbers(row, out);
    copy(out->place, sizeof out->place, row->element[6]);
    copy(out->worker, sizeof out->worker, row->element[6]);
    copy(out->reason, sizeof out->reason, row->element[6]);
    copy(out->host, sizeof out->host, row->element[7]);
    out->pid = reply_int(row->element[8], 0);
    if (read_body(row->element[3], out) < 0)
        return error_set(e, WEIR_EINTERNAL, "why: out of memory; free some and try again");
    return 0;
}

/* The page of the place on top: what it found, or how far it is and what is to be looked at next. */
static int read_page(struct search *s, const struct redisReply *r)
{
    const struct redisReply *named, *found;
    struct place *top = &s->places[s->count - 1];

    if (reply_array(r, 5, "find_job", &s->w->error) < 0)
        return s->w->error.status;
    named = r->element[3];
    found = r->element[4];
    s->found->now_us = reply_int(r->element[0], 0);
    s->page = page_next(s->page, reply_int(r->element[2], 0));
    s->seen = found->type == REDIS_REPLY_ARRAY && found->elements >= 9;
    if (s->seen)
        return read_found(found, s->found, &s->w->error);
    if (*text_of(r->element[1])) {
        free(top->from);
        top->from = strdup(text_of(r->element[1]));
        if (!top->from)
            return no_memory(s);
    } else {
        pop_place(s);
    }
    for (size_t i = named->type == REDIS_REPLY_ARRAY ? named->elements : 0; i > 0; i--)
        if (push_place(s, text_of(named->element[i - 1])) < 0)
            return s->w->error.status;
    return 0;
}

/* ---- Going through */

static int look_at_page(struct search *s)
{
    const struct place *top = &s->places[s->count - 1];
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "find_job", s->w->prefix, s->now_us);
    args_add(&a, s->id);
    args_add_int(&a, s->page);
    args_add(&a, top->name);
    args_add(&a, top->from);
    status = client_call(s->w, &a, &reply, NULL);
    args_free(&a);
    if (status == 0)
        status = read_page(s, reply);
    if (reply)
        freeReplyObject(reply);
    return status;
}

static int look_everywhere(struct search *s)
{
    int status = push_place(s, "");

    while (status == 0 && !s->seen && s->count > 0)
        status = look_at_page(s);
    return status;
}

int find_job(struct weir *w, int64_t now_us, const char *id, struct found_job *out)
{
    struct search s = {.w = w, .now_us = now_us, .id = id, .page = PAGE_FIRST, .found = out};
    int status = 0;

    *out = (struct found_job){0};
    if (!name_is_valid(id, strlen(id)))
        return error_set(&w->error, WEIR_EINPUT,
                         "why '%.60s': no id; weir enqueue prints one, 1 to 128 of A-Z a-z 0-9 _ . -", id);
    for (int look = 0; look < LOOKS && status == 0 && !s.seen; look++)
        status = look_everywhere(&s);
    while (s.count > 0)
        pop_place(&s);
    free(s.places);
    if (status == 0 && !s.seen)
        return error_set(&w->error, WEIR_ENOTFOUND,
                         "why %s: no such job here: it is done, or was never enqueued; check the id, "
                         "--namespace and --redis",
                         id);
    return status;
}

void found_job_free(struct found_job *found)
{
    text_free(&found->body);
}
