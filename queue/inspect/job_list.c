#include "queue/inspect/job_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/duration.h"

#define PAGE_MOST 500      /* entries; fewer where they are large */
#define SLOW_PAGE_MOST 250 /* of which the body is decoded */
#define ROWS_MOST 100      /* of a page */
#define ENOUGH 1           /* ends a walk */
#define BEGINNING "MCww"   /* "0,0" */

/* ---- Cursors: "<looked at>,<partition>[,<place>,<from>]..." in base64, which no shell and no address reads otherwise */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

json_t *job_cursor_seal(const char *words)
{
    char *token = malloc(strlen(words) * 4 / 3 + 2), *to = token;
    unsigned bits = 0, have = 0;
    json_t *sealed;

    for (; token && *words; words++) {
        bits = bits << 8 | (unsigned char)*words;
        for (have += 8; have >= 6;)
            *to++ = digits[bits >> (have -= 6) & 63];
    }
    if (have > 0)
        *to++ = digits[bits << (6 - have) & 63];
    sealed = token ? json_stringn(token, (size_t)(to - token)) : NULL;
    free(token);
    return sealed;
}

/* Returns the words of a cursor, which are the caller's; NULL: it is none, or out of memory. */
static char *unseal(const char *token)
{
    char *words = malloc(strlen(token) + 1), *to = words;
    unsigned bits = 0, have = 0;
    const char *digit;

    for (; words && *token && (digit = strchr(digits, *token)); token++) {
        bits = bits << 6 | (unsigned)(digit - digits);
        have += 6;
        if (have >= 8)
            *to++ = (char)(bits >> (have -= 8) & 255);
    }
    if (words)
        *to = '\0';
    if (*token) {
        free(words);
        return NULL;
    }
    return words;
}

static json_t *add_word(json_t *cursor, const char *word)
{
    json_t *longer = cursor ? json_sprintf("%s,%s", json_string_value(cursor), word) : NULL;

    json_decref(cursor);
    return longer;
}

json_t *job_cursor(const struct weir *w, const json_t *page, int64_t looked_at)
{
    const json_t *next = json_object_get(page, "next");
    int partition = w->at;
    json_t *cursor, *sealed;

    if (json_array_size(next) == 0 && ++partition >= client_count(w))
        return NULL;
    cursor = json_sprintf("%" PRId64 ",%d", looked_at, partition);
    for (size_t i = 0; i < json_array_size(next); i++)
        cursor = add_word(cursor, json_string_value(json_array_get(next, i)));
    sealed = cursor ? job_cursor_seal(json_string_value(cursor)) : NULL;
    json_decref(cursor);
    return sealed;
}

/* Reads the words behind the first two; an even number of them. */
static json_t *read_place(const char *text)
{
    json_t *place = json_array();

    while (*text == ',') {
        size_t len = strcspn(text + 1, ",");

        json_array_append_new(place, json_stringn(text + 1, len));
        text += 1 + len;
    }
    if (json_array_size(place) % 2 == 1) {
        json_decref(place);
        return NULL;
    }
    return place;
}

int job_cursor_read(const char *cursor, int *partition, json_t **place, int64_t *looked_at, struct error *e)
{
    char *words = unseal(cursor ? cursor : BEGINNING);
    const char *at = words;
    int64_t number = 0;
    bool good;

    *place = NULL;
    good = words && number_read(&at, JOB_BOUND_MOST, looked_at) && *at++ == ',' &&
           number_read(&at, PARTITIONS_MOST - 1, &number) && (*at == ',' || *at == '\0');
    if (good)
        *place = read_place(at);
    free(words);
    *partition = (int)number;
    return *place ? 0 : job_cursor_judge(WEIR_EINPUT, cursor, e);
}

int job_cursor_judge(int status, const char *cursor, struct error *e)
{
    if (status != WEIR_EINPUT || !cursor)
        return status;
    return error_set(e, status, "cursor '%.60s': not one; take it as the page before gave it", cursor);
}

/* ---- Pages */

void job_keep_member(json_t **kept, const json_t *page, const char *name)
{
    if (!json_object_get(page, name))
        return;
    json_decref(*kept);
    *kept = json_incref(json_object_get(page, name));
}

struct listing {
    struct weir *w;
    const struct job_search *search;
    const char *verb;
    const struct job_bounds *most; /* NULL: it looks at all */
    json_t *jobs, *now, *next, *batch;
    int64_t looked_before, looked_at, matched;
};

/* True when each entry costs more than a look at its first bytes. */
static bool is_slow(const struct job_search *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (strncmp(s->text + s->terms[i].field, "args.", 5) == 0)
            return true;
    return job_search_value(s, "key") != NULL;
}

int job_page_most(const struct job_search *s)
{
    return is_slow(s) ? SLOW_PAGE_MOST : PAGE_MOST;
}

static void ask_page(struct args *a, void *arg)
{
    const struct listing *l = arg;
    int64_t left = l->most ? l->most->jobs - (int64_t)json_array_size(l->jobs) : ROWS_MOST;

    args_add(a, l->verb);
    args_add_int(a, job_page_most(l->search));
    args_add_int(a, left < ROWS_MOST ? left : ROWS_MOST);
    job_search_args(l->search, a);
}

static bool is_enough(const struct listing *l)
{
    const struct job_bounds *most = l->most;

    return l->looked_at >= most->looked_at || (int64_t)json_array_size(l->jobs) >= most->jobs ||
           (most->until_us && clock_mono_us() >= most->until_us);
}

static int take_page(const json_t *page, void *arg)
{
    struct listing *l = arg;

    l->looked_at += answer_int(page, "looked_at");
    l->matched += answer_int(page, "matched");
    json_array_extend(l->jobs, json_object_get(page, "jobs"));
    json_decref(l->now);
    l->now = json_incref(json_object_get(page, "now"));
    job_keep_member(&l->batch, page, "batch");
    if (!l->most || !is_enough(l))
        return 0;
    l->next = job_cursor(l->w, page, l->looked_before + l->looked_at);
    return ENOUGH;
}

int job_walk(struct pages *pages, const char *cursor, int64_t *looked_before)
{
    json_t *place = NULL;
    int status = job_cursor_read(cursor, &pages->at, &place, looked_before, &pages->w->error);

    pages->place = place;
    if (status == 0)
        status = job_cursor_judge(pages_walk(pages), cursor, &pages->w->error);
    json_decref(place);
    return status < 0 ? status : 0;
}

static int walk(struct listing *l, int64_t now_us, const char *cursor)
{
    struct pages pages = {.w = l->w,
                          .script = "job_list",
                          .now_us = now_us,
                          .arg = l,
                          .ask = ask_page,
                          .take = take_page,
                          .rests = true};

    l->jobs = json_array();
    return job_walk(&pages, cursor, &l->looked_before);
}

static void end(struct listing *l)
{
    json_decref(l->jobs);
    json_decref(l->now);
    json_decref(l->next);
    json_decref(l->batch);
}

int job_list_measure(struct weir *w, int64_t now_us, const struct job_search *s, int64_t *jobs)
{
    struct listing l = {.w = w, .search = s, .verb = "measure"};
    int status = walk(&l, now_us, NULL);

    *jobs = l.looked_at;
    end(&l);
    return status;
}

int job_list_page(struct weir *w, int64_t now_us, const struct job_search *s, const char *cursor,
                  const struct job_bounds *most, json_t **page)
{
    struct listing l = {.w = w, .search = s, .verb = "list", .most = most};
    int status = walk(&l, now_us, cursor);
    int64_t looked_at = l.looked_before + l.looked_at, of = looked_at;

    if (status == 0 && l.next)
        status = job_list_measure(w, now_us, s, &of);
    *page = status < 0 ? NULL
                       : json_pack("{s:O, s:O, s:I, s:I, s:O*}", "now", l.now, "jobs", l.jobs, "looked_at",
                                   (json_int_t)looked_at, "of", (json_int_t)(of > looked_at ? of : looked_at),
                                   "next", l.next);
    if (status == 0 && !*page)
        status = error_no_memory(&w->error, "job list");
    end(&l);
    return status;
}

int job_list_count(struct weir *w, int64_t now_us, const struct job_search *s, const char *cursor,
                   const struct job_bounds *most, json_t **page)
{
    struct listing l = {.w = w, .search = s, .verb = "count", .most = most};
    int status = walk(&l, now_us, cursor);

    *page = status < 0
                ? NULL
                : json_pack("{s:I, s:I, s:O*, s:O*}", "jobs", (json_int_t)l.matched, "looked_at",
                            (json_int_t)l.looked_before + l.looked_at, "next", l.next, "batch", l.batch);
    if (status == 0 && !*page)
        status = error_no_memory(&w->error, "job list");
    end(&l);
    return status;
}
