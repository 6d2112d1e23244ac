/* A job's JSON. The body of a job is kept byte for byte from producer to handler: it is checked and looked
 * into here, never decoded and encoded again. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/error.h"
#include "core/script/args.h"

#define JOB_BODY_MAX (1024 * 1024) /* bytes; body.MOST of body.lua is the same */
#define JOB_MAX_ATTEMPTS 25
#define JOB_COST_MOST 1000000000
#define JOB_ATTEMPTS_MOST 1000000

/* A span is a piece of somebody else's text. */
struct span {
    const char *at;
    size_t len;
};

static inline struct span span_str(const char *text)
{
    return (struct span){text, strlen(text)};
}

/* True when two have the same text. */
static inline bool span_is(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Cuts off the part before the first `at`, or all, and returns it; that `at` goes too. */
static inline struct span span_cut(struct span *text, char at)
{
    const char *end = text->len > 0 ? memchr(text->at, at, text->len) : NULL;
    struct span part = {text->at, end ? (size_t)(end - text->at) : text->len};

    text->at += part.len + (end != NULL);
    text->len -= part.len + (end != NULL);
    return part;
}

/* A view says what a body says; its spans point into it. Absent members have at == NULL. */
struct job_view {
    struct span id, type, queue, key; /* names: their text, without quotes, checked */
    struct span args, meta;           /* their JSON text */
    struct span batch;                /* the same; what counts is the head of the entry */
    struct span traceparent;          /* its text; NULL also when it is no simple string, or empty */
    int64_t cost;                     /* of plain slots; 0: absent, it is the type's */
    struct span costs;                /* its JSON text, an object, where it names more than plain slots */
    int max_attempts;                 /* JOB_MAX_ATTEMPTS when absent */
    int64_t timeout_us;               /* 0 when absent */
};

/* True for 1 to 128 of [A-Za-z0-9_.-]. */
bool name_is_valid(const char *name, size_t len);
/* A worker says by words which queues it serves, and which types it runs: names, or patterns, the beginning of names and a * at the end. As
 * core/script/pattern.lua. */
bool word_is_valid(const char *word, size_t len);
bool pattern_is(const char *word);
bool pattern_serves(const char *word, struct span name);

/* True when the text begins with a byte order mark, as some editors write it. */
bool json_has_mark(const char *text, size_t len);
/* Checks that text is one JSON value, as strictly as jansson with JSON_REJECT_DUPLICATES at the top level
 * (RFC 8259: UTF-8, no NaN; integers fit 64 bits, reals are finite, at most 512 levels). WEIR_EINPUT: what
 * and at which byte. */
WEIR_CHECKED int json_check(const char *text, size_t len, struct error *e);

/* Checks a whole body and looks into it: one object, "type" present, members of the right kind. An absent id
 * is no error. WEIR_EINPUT with what is wrong. */
WEIR_CHECKED int job_read(const char *body, size_t len, struct job_view *view, struct error *e);

/* Reads what a job says of its cost, where it says something, from a view whose spans are still there. */
struct job_cost;
void job_cost_of(const struct job_view *view, struct job_cost *cost);

/* True when a body that was checked has nothing at that path, "key" or "args.business_id", by which it can be
 * told from others, as claims find the keys of lanes. */
bool job_is_keyless(struct span body, const char *path);

/* A text grows as bodies are written into it. */
struct text {
    char *at;
    size_t len, capacity;
};
void text_free(struct text *t);

/* Makes a random id: 16 of [0-9a-z], 80 bits. */
void job_make_id(char out[17]);

/* Adds a random id to a call, as the seed of what signs heads (queue/job/sign.lua). */
void job_add_seed(struct args *a);

/* Appends these bytes. WEIR_EINTERNAL: out of memory. */
WEIR_CHECKED int text_add(struct text *t, const char *bytes, size_t len, struct error *e);

/* Appends the body of a job to out in Weir's own order: id, type, key, cost first, so that body.lua reads
 * them by pattern. job_write: from a spec, args and meta checked. job_wrap: of that type, with the line as
 * its args. job_rewrite: from a job object as a person wrote it, with those four first (an id is made when it
 * has none) and every other member as it stands, but those refused that only weir enqueue and weir_job_spec
 * have for a single job; view (of the new body, its spans relative to out->at + the old out->len) may be
 * NULL. On failure out is as before. WEIR_EINPUT, WEIR_EINTERNAL (memory). */
WEIR_CHECKED int job_write(struct text *out, const struct weir_job_spec *spec, struct job_view *view,
                           struct error *e);
WEIR_CHECKED int job_wrap(struct text *out, const char *type, const char *line, size_t len,
                          struct job_view *view, struct error *e);
WEIR_CHECKED int job_rewrite(struct text *out, const char *line, size_t len, struct job_view *view,
                             struct error *e);
