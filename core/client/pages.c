#include "core/client/pages.h"

#include <assert.h>

#include "core/clock.h"
#include "core/script/script.h"

/* Writes the call for the page behind `page`. */
static void write_call(const struct pages *p, const json_t *page, struct args *a)
{
    const json_t *place = json_object_get(page, "next");

    *a = (struct args){0};
    script_begin(a, p->script, p->w->prefix, p->now_us);
    for (size_t i = 0; p->words && p->words[i]; i++)
        args_add(a, p->words[i]);
    if (p->ask)
        p->ask(a, p->arg);
    for (size_t i = 0; i < json_array_size(place); i++) {
        const json_t *word = json_array_get(place, i);

        if (json_is_integer(word))
            word = json_array_get(json_object_get(page, "raw"), (size_t)json_integer_value(word));
        args_add_bytes(a, json_is_string(word) ? json_string_value(word) : "", json_string_length(word));
    }
}

/* Asks for the page behind `page`. *took_us is how long the last page took (0: there was none), then how long this one did. */
static int ask_behind(const struct pages *p, const json_t *page, json_t **next, int64_t *took_us)
{
    int64_t asked_us;
    struct args a;
    int status;

    if (p->rests && *took_us > 0)
        clock_sleep_until(clock_mono_us() + *took_us);
    asked_us = clock_mono_us();
    write_call(p, page, &a);
    status = client_ask(p->w, p->script, &a, next);
    *took_us = clock_mono_us() - asked_us;
    return status;
}

static bool has_more(const json_t *page)
{
    return json_array_size(json_object_get(page, "next")) > 0;
}

static bool ask_ahead(const struct pages *p, const json_t *page)
{
    struct args a;

    write_call(p, page, &a);
    return client_ask_ahead(p->w, &a);
}

/* ---- One after the other, or several at once */

/* How far a walk is. */
struct course {
    const struct pages *pages;
    json_t *page; /* the last one */
    int64_t took_us;
    bool asked; /* for the next one: that call is under way */
    bool over;
};

/* Takes what is under way, and leaves it: each can be asked for again. */
static void drop_asked(struct course *courses, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        json_t *left;

        if (courses[i].asked && client_take_ahead(courses[i].pages->w, courses[i].pages->script, &left))
            json_decref(left);
        courses[i].asked = false;
    }
}

/* Treats a Redis that does not answer as if nothing was asked: all courses together wait for it once. */
static int silence(const struct course *c)
{
    return client_is_silent(c->pages->w) ? c->pages->w->error.status : 0;
}

static int go_on(struct course *c)
{
    if (!c->pages->ahead || c->over)
        return 0;
    c->asked = ask_ahead(c->pages, c->page);
    return c->asked ? 0 : silence(c);
}

/* The next page of courses[i], whose call is the oldest that is under way. Where it was lost, all are asked anew. */
static int next_page(struct course *courses, size_t count, size_t i)
{
    struct course *c = &courses[i];
    json_t *before = c->page;
    bool asked = c->asked, taken = asked && client_take_ahead(c->pages->w, c->pages->script, &c->page);
    int status = asked && !taken ? silence(c) : 0;

    c->asked = false;
    if (!taken && status == 0) {
        drop_asked(courses, count);
        status = ask_behind(c->pages, before, &c->page, &c->took_us);
    }
    json_decref(before);
    for (size_t k = 1; !taken && status == 0 && k < count; k++)
        status = go_on(&courses[(i + k) % count]);
    c->over = !has_more(c->page);
    if (status == 0)
        status = go_on(c);
    return status == 0 ? c->pages->take(c->page, c->pages->arg) : status;
}

/* Walks the courses in turns, as answers come in the order of calls. */
static int walk_courses(struct course *courses, size_t count)
{
    bool going = true;
    int status = 0;

    for (size_t i = 0; status == 0 && i < count; i++)
        status = go_on(&courses[i]);
    while (status == 0 && going) {
        going = false;
        for (size_t i = 0; status == 0 && i < count; i++) {
            if (!courses[i].over)
                status = next_page(courses, count, i);
            going = going || !courses[i].over;
        }
    }
    drop_asked(courses, count);
    for (size_t i = 0; i < count; i++)
        json_decref(courses[i].page);
    return status;
}

/* The page behind which a place is; NULL: it is the beginning. */
static json_t *page_before(const json_t *place)
{
    return place ? json_pack("{s:O}", "next", place) : NULL;
}

static int walk_here(const struct pages *p, const json_t *place)
{
    struct course course = {.pages = p, .page = page_before(place)};

    return walk_courses(&course, 1);
}

int pages_walk_together(const struct pages *walks, size_t count)
{
    struct course courses[PAGES_TOGETHER];

    assert(count <= PAGES_TOGETHER);
    for (size_t i = 0; i < count; i++)
        courses[i] = (struct course){.pages = &walks[i], .page = page_before(walks[i].place)};
    return walk_courses(courses, count);
}

static int walk_each(const struct pages *p)
{
    int status = 0;

    for (int at = p->at; status == 0 && (at == p->at || at < client_count(p->w)); at++) {
        status = client_at(p->w, at);
        if (status == 0)
            status = walk_here(p, at == p->at ? p->place : NULL);
    }
    return status;
}

/* ---- Merging */

/* A strand holds what is not yet taken of one partition. */
struct strand {
    json_t *page; /* NULL: none was asked for */
    size_t next;  /* of its rows */
    int64_t took_us;
};

static json_t *row_of(const struct pages *p, const struct strand *s)
{
    return json_array_get(json_object_get(s->page, p->rows), s->next);
}

/* Asks until there is a row, or no more pages. */
static int fill(const struct pages *p, struct strand *s, int at)
{
    int status = 0;

    while (status == 0 && !row_of(p, s) && (!s->page || has_more(s->page))) {
        json_t *before = s->page;

        status = client_at(p->w, at);
        if (status == 0)
            status = ask_behind(p, before, &s->page, &s->took_us);
        if (s->page != before)
            json_decref(before);
        s->next = 0;
    }
    return status;
}

/* The partition whose row comes first; -1: none has any. */
static int first_strand(const struct pages *p, const struct strand *strands)
{
    int64_t best = 0;
    int first = -1;

    for (int at = 0; at < client_count(p->w); at++) {
        const json_t *row = row_of(p, &strands[at]);
        int64_t n = answer_int(row, p->by);

        if (row && (first < 0 || (p->down ? n > best : n < best))) {
            best = n;
            first = at;
        }
    }
    return first;
}

static int take_row(const struct pages *p, struct strand *s)
{
    json_t *raw = json_array_get(json_object_get(s->page, "raw"), s->next);
    json_t *page = json_pack("{s:O*, s:[O], s:[O*]}", "now", json_object_get(s->page, "now"), p->rows,
                             row_of(p, s), "raw", raw);
    int status = page ? p->take(page, p->arg) : error_no_memory(&p->w->error, p->script);

    s->next++;
    json_decref(page);
    return status;
}

static int walk_merged(const struct pages *p)
{
    struct strand strands[PARTITIONS_MOST] = {{.page = NULL}};
    int status = 0, first = 0;

    while (status == 0 && first >= 0) {
        for (int at = 0; status == 0 && at < client_count(p->w); at++)
            status = fill(p, &strands[at], at);
        first = status == 0 ? first_strand(p, strands) : -1;
        if (first >= 0)
            status = take_row(p, &strands[first]);
    }
    for (int at = 0; at < PARTITIONS_MOST; at++)
        json_decref(strands[at].page);
    return status;
}

int pages_walk(const struct pages *p)
{
    if (p->here)
        return walk_here(p, p->place);
    return p->rows ? walk_merged(p) : walk_each(p);
}
