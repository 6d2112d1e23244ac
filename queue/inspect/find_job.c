#include "queue/inspect/find_job.h"

#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/client/reply.h"
#include "core/script/script.h"
#include "queue/job/json.h"
#include "throttle/key.h"

#define PAGE_MOST 1000
#define PAGE_BYTES (1024 * 1024) /* about; half a millisecond of Redis */
#define LOOKS 2
#define PLACES_MOST 100 /* in one call */

int page_next(int entries, int64_t bytes)
{
    if (bytes > PAGE_BYTES)
        entries = (int)(entries * (int64_t)PAGE_BYTES / bytes);
    else
        entries *= 2;
    return entries < 1 ? 1 : entries > PAGE_MOST ? PAGE_MOST : entries;
}

/* ---- What is still to be gone through */

/* A place and how far it has been read. */
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
    return error_set(&s->w->error, WEIR_EINTERNAL, "find_job: out of memory; free some and try again");
}

static int push_place(struct search *s, const char *name, const char *from)
{
    struct place *grown = s->places;

    if (s->count == s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 64;
        grown = realloc(s->places, s->capacity * sizeof *grown);
        if (!grown)
            return no_memory(s);
        s->places = grown;
    }
    grown[s->count] = (struct place){strdup(name), strdup(from)};
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

static void copy_span(char *out, size_t size, struct span s)
{
    snprintf(out, size, "%.*s", (int)s.len, s.at ? s.at : "");
}

/* Queue, type and key of "queue/type/key", or "queue!/type/key". */
static void read_lane(const char *lane, struct found_job *out)
{
    char *const parts[] = {out->queue, out->type, out->key};
    size_t queue_len = strcspn(lane, "!/");

    out->alone = lane[queue_len] == '!';
    for (int i = 0; i < 3 && lane; i++) {
        const char *slash = strchr(lane, '/');

        snprintf(parts[i], LIMIT_NAME_SIZE, "%.*s", (int)(slash && i < 2 ? slash - lane : (long)strlen(lane)),
                 lane);
        lane = slash ? slash + 1 : NULL;
    }
    if (out->alone && queue_len < sizeof out->queue)
        out->queue[queue_len] = '\0';
}

/* "us:reason", the reason with %XX for what would end it. */
static void read_failure(struct span text, struct found_job *out)
{
    const char *at = text.len ? memchr(text.at, ':', text.len) : NULL, *end;
    size_t len = 0;

    if (!at)
        return;
    end = text.at + text.len;
    out->failed_us = strtoll(text.at, NULL, 10);
    for (at++; at < end && len < sizeof out->failure - 1; at++) {
        unsigned code;

        if (*at == '%' && end - at > 2 && sscanf(at + 1, "%2x", &code) == 1) {
            out->failure[len++] = (char)code;
            at += 2;
        } else {
            out->failure[len++] = *at;
        }
    }
    out->failure[len] = '\0';
}

static void read_attrs(struct span attrs, struct found_job *out)
{
    struct span until_end = lease_attr(attrs, 'u'), until_start = lease_attr(attrs, 'w');

    copy_span(out->batch, sizeof out->batch, lease_attr(attrs, 'b'));
    copy_span(out->lock, sizeof out->lock, until_end.at ? until_end : until_start);
    out->lock_until_start = until_start.at != NULL;
    if (out->state == JOB_RUNNING && lease_attr(attrs, 'c').at)
        out->cancelled_us = strtoll(lease_attr(attrs, 'c').at, NULL, 10);
    read_failure(lease_attr(attrs, 'e'), out);
}

/* A name that a body has as that member, though a worker cannot read it. */
static struct span name_in(struct span body, const char *member)
{
    struct span value = json_find(body.at, body.len, member);

    if (value.len < 2 || *value.at != '"' || !name_is_valid(value.at + 1, value.len - 2))
        return (struct span){NULL, 0};
    return (struct span){value.at + 1, value.len - 2};
}

static int read_entry(const struct redisReply *r, struct found_job *out)
{
    struct lease lease = {0};
    struct error why;
    struct job_view view;
    char made[LIMIT_NAME_SIZE];

    out->entry = malloc(r->len + 1);
    if (!out->entry)
        return WEIR_EINTERNAL;
    memcpy(out->entry, r->str, r->len + 1);
    if (!lease_read_entry((struct span){out->entry, r->len}, &lease))
        lease = (struct lease){.body = {out->entry, r->len}, .attrs = {"", 0}};
    out->body = lease.body;
    out->attempts = lease.attempts;
    out->interrupted = lease.interrupted;
    out->throttled = lease.throttled;
    read_attrs(lease.attrs, out);
    if (job_read(out->body.at, out->body.len, &view, &why) < 0) {
        snprintf(out->wrong, sizeof out->wrong, "%.150s", why.text);
        view = (struct job_view){.type = name_in(out->body, "type")};
    }
    if (!*out->type)
        copy_span(out->type, sizeof out->type, view.type);
    key_make(view.key.at ? view.key.at : "", view.key.len, made);
    if (!*out->key || strcmp(out->key, made) == 0)
        copy_span(out->key, sizeof out->key, view.key); /* as its producer wrote it */
    return 0;
}

static const char *const states[] = {
    [JOB_WAITING] = "waiting",     [JOB_PARKED] = "parked",     [JOB_RUNNING] = "running",
    [JOB_SCHEDULED] = "scheduled", [JOB_RETRY] = "retry",       [JOB_DEAD] = "dead",
    [JOB_ASIDE] = "aside",         [JOB_FINISHED] = "finished",
};
#define STATE_COUNT (sizeof states / sizeof *states)

const char *job_state_name(enum job_state state)
{
    return states[state];
}

const char *found_job_word(const struct found_job *found)
{
    return found->held ? "held" : job_state_name(found->state);
}

/* What a and b are depends on the state. */
static void read_numbers(const struct redisReply *row, struct found_job *out)
{
    int64_t a = reply_int(row->element[3], 0), b = reply_int(row->element[4], 0);

    if (out->state == JOB_WAITING || out->state == JOB_PARKED || out->state == JOB_ASIDE) {
        out->before = a;
        out->length = b;
    } else {
        out->at_us = a;
        out->lease_us = b;
    }
}

/* What the text and the word of a row are, too. Returns WEIR_EINTERNAL when out of memory. */
static int read_texts(const struct redisReply *row, struct found_job *out)
{
    const struct redisReply *text = row->element[5], *word = row->element[8];

    switch (out->state) {
    case JOB_WAITING:
    case JOB_PARKED:
    case JOB_ASIDE:
        copy(out->place, sizeof out->place, text);
        return 0;
    case JOB_RUNNING:
        copy(out->worker, sizeof out->worker, text);
        copy(out->host, sizeof out->host, row->element[6]);
        out->pid = reply_int(row->element[7], 0);
        out->token = strdup(text_of(word));
        return out->token ? 0 : WEIR_EINTERNAL;
    case JOB_SCHEDULED:
    case JOB_RETRY:
        out->header = strdup(text_of(text));
        return out->header ? 0 : WEIR_EINTERNAL;
    case JOB_DEAD:
        copy(out->reason, sizeof out->reason, text);
        return 0;
    case JOB_FINISHED:
        copy(out->worker, sizeof out->worker, text);
        copy(out->outcome, sizeof out->outcome, word);
        return 0;
    }
    return 0;
}

/* The time behind that word; 0: it is another one. */
static int64_t time_behind(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 ? strtoll(text + len, NULL, 10) : 0;
}

static void read_halts(const struct redisReply *row, struct found_job *out)
{
    const char *mark = text_of(row->element[9]), *halted = text_of(row->element[11]);

    if (out->state != JOB_RUNNING)
        out->cancelled_us = time_behind(mark, "waiting ") + time_behind(mark, "asked ");
    out->queue_paused_us = reply_int(row->element[10], 0);
    out->batch_paused_us = time_behind(halted, "paused ");
    out->batch_cancelled_us = time_behind(halted, "cancelled ");
    out->held = reply_int(row->element[12], 0) != 0;
}

/* row: state, lane, entry, a, b, text, host, pid, word, mark, paused, halted, held. */
static int read_found(const struct redisReply *row, struct found_job *out, struct error *e)
{
    size_t state = 0;

    while (state < STATE_COUNT && strcmp(states[state], text_of(row->element[0])) != 0)
        state++;
    if (state == STATE_COUNT || row->element[2]->type != REDIS_REPLY_STRING)
        return error_set(e, WEIR_EINTERNAL,
                         "find_job: unexpected answer from Redis; is another version at work?");
    out->state = (enum job_state)state;
    read_lane(text_of(row->element[1]), out);
    read_numbers(row, out);
    read_halts(row, out);
    if (read_texts(row, out) < 0 || read_entry(row->element[2], out) < 0)
        return error_set(e, WEIR_EINTERNAL, "find_job: out of memory; free some and try again");
    return 0;
}

/* What takes the place of the first n of the stack. */
static int replace_places(struct search *s, size_t n, const struct redisReply *rest)
{
    while (n-- > 0)
        pop_place(s);
    for (size_t i = rest->type == REDIS_REPLY_ARRAY ? rest->elements / 2 : 0; i > 0; i--)
        if (push_place(s, text_of(rest->element[2 * i - 2]), text_of(rest->element[2 * i - 1])) < 0)
            return s->w->error.status;
    return 0;
}

/* What was found in the n places on top, or what is to be looked at next. */
static int read_page(struct search *s, const struct redisReply *r, size_t n)
{
    const struct redisReply *found;

    if (reply_array(r, 4, "find_job", &s->w->error) < 0)
        return s->w->error.status;
    found = r->element[3];
    s->found->now_us = reply_int(r->element[0], 0);
    s->page = page_next(s->page, reply_int(r->element[1], 0));
    s->seen = found->type == REDIS_REPLY_ARRAY && found->elements >= 13;
    if (s->seen)
        return read_found(found, s->found, &s->w->error);
    return replace_places(s, n, r->element[2]);
}

/* ---- Going through */

static int look_at_page(struct search *s)
{
    size_t n = s->count < PLACES_MOST ? s->count : PLACES_MOST;
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "find_job", s->w->prefix, s->now_us);
    args_add(&a, s->id);
    args_add_int(&a, s->page);
    for (size_t i = 1; i <= n; i++) {
        args_add(&a, s->places[s->count - i].name);
        args_add(&a, s->places[s->count - i].from);
    }
    status = client_call(s->w, &a, &reply, NULL);
    args_free(&a);
    if (status == 0)
        status = read_page(s, reply, n);
    if (reply)
        freeReplyObject(reply);
    return status;
}

static int look_everywhere(struct search *s)
{
    int status = push_place(s, "", "");

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
                         "job '%.60s': no id; weir enqueue prints one, 1 to 128 of A-Z a-z 0-9 _ . -", id);
    for (int look = 0; look < LOOKS && status == 0 && !s.seen; look++)
        status = look_everywhere(&s);
    while (s.count > 0)
        pop_place(&s);
    free(s.places);
    if (status == 0 && !s.seen)
        return error_set(&w->error, WEIR_ENOTFOUND,
                         "job %s: no such job here: it is done, or was never enqueued; check the id, "
                         "--namespace and --redis",
                         id);
    return status;
}

void found_job_free(struct found_job *found)
{
    free(found->entry);
    free(found->header);
    free(found->token);
    found->entry = found->header = found->token = NULL;
}
