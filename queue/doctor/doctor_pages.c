/* The structures are gone through page by page, from outside: no call keeps Redis longer than a few
 * milliseconds, and each page is judged within one call, so nothing is wrong only because workers go on. What
 * seems wrong is looked at a second time a moment later. Mending is a call for each thing, which judges it
 * once more. */
#include "queue/doctor/doctor_sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/redis/script.h"

#define PAGE_MOST 400 /* keys of a page: each is up to ten commands */
#define PAGE_LEAST 10
#define SHORT_US 700     /* of a call: pages grow */
#define LONG_US 2000     /* they shrink */
#define REST_FROM_US 200 /* of a longer one: for as long Redis is left to the others */
#define PAGE_BYTES (1024 * 1024)
#define SUSPECTS_MOST 200
#define MOMENT_US 20000 /* until the second look */

/* ---- Sets of texts */

static bool texts_add(struct texts *t, const char *at, size_t len)
{
    char *copy;

    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        struct span *grown = realloc(t->at, capacity * sizeof *grown);

        if (!grown)
            return false;
        t->at = grown;
        t->capacity = capacity;
    }
    if (!(copy = malloc(len + 1)))
        return false;
    memcpy(copy, at, len);
    copy[len] = '\0';
    t->at[t->count++] = (struct span){copy, len};
    return true;
}

static bool keep(struct texts *t, const struct redisReply *r)
{
    return r->type != REDIS_REPLY_STRING || texts_add(t, r->str, r->len);
}

void texts_clear(struct texts *t)
{
    while (t->count > 0)
        free((char *)t->at[--t->count].at);
}

void texts_free(struct texts *t)
{
    texts_clear(t);
    free(t->at);
}

static int text_order(const void *a, const void *b)
{
    return strcmp(((const struct span *)a)->at, ((const struct span *)b)->at);
}

void texts_sort(struct texts *t)
{
    size_t kept = 0;

    if (t->count > 0)
        qsort(t->at, t->count, sizeof *t->at, text_order);
    for (size_t i = 0; i < t->count; i++)
        if (kept == 0 || strcmp(t->at[kept - 1].at, t->at[i].at) != 0)
            t->at[kept++] = t->at[i];
        else
            free((char *)t->at[i].at);
    t->count = kept;
}

void args_add_texts(struct args *a, const struct texts *t, size_t first, size_t end)
{
    for (size_t i = first; i < end && i < t->count; i++)
        args_add_bytes(a, t->at[i].at, t->at[i].len);
}

void args_add_counted(struct args *a, const struct texts *t)
{
    args_add_int(a, (int64_t)t->count);
    args_add_texts(a, t, 0, t->count);
}

/* ---- Asking */

int sweep_no_memory(struct sweep *s)
{
    return error_set(&s->w->error, WEIR_EINTERNAL, "doctor: out of memory; free some and try again");
}

void sweep_begin_call(struct sweep *s, struct args *a, const char *script)
{
    args_init(a);
    script_begin(a, script, s->w->prefix, s->now_us);
}

int64_t sweep_rest(struct sweep *s, int64_t begin_us)
{
    int64_t took_us = clock_mono_us() - begin_us;

    s->calls++;
    s->longest_us = took_us > s->longest_us ? took_us : s->longest_us;
    if (took_us > REST_FROM_US)
        clock_sleep_until(clock_mono_us() + (took_us < LONG_US ? took_us : LONG_US));
    return took_us;
}

int sweep_call(struct sweep *s, struct args *a, struct redisReply **reply)
{
    int64_t begin_us = clock_mono_us(), took_us;
    int status = client_call(s->w, a, reply, NULL);

    args_free(a);
    took_us = sweep_rest(s, begin_us);
    if (took_us < SHORT_US)
        s->page = 2 * s->page < PAGE_MOST ? 2 * s->page : PAGE_MOST;
    else if (took_us > LONG_US && s->page > PAGE_LEAST) /* large members may have made it smaller still */
        s->page = s->page / 2 > PAGE_LEAST ? s->page / 2 : PAGE_LEAST;
    return status;
}

/* ---- The second look */

/* row: family, name, kind, in words. */
static int judge_row(struct sweep *s, struct redisReply *const *row)
{
    const struct kind *kind = kind_find(text_of(row[2]));
    struct args a;

    if (!sweep_mends(s, kind)) {
        sweep_tell(s, kind, text_of(row[3]), NULL);
        return 0;
    }
    sweep_begin_call(s, &a, "doctor_mend");
    args_add(&a, "thing");
    args_add(&a, text_of(row[0]));
    args_add_bytes(&a, row[1]->str, row[1]->len);
    args_add_counted(&a, &s->gone);
    return sweep_mend(s, &a, kind, text_of(row[3]));
}

static int look_again(struct sweep *s)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    if (s->suspects.count == 0)
        return 0;
    if (s->now_us < 0)
        clock_sleep_until(clock_mono_us() + MOMENT_US);
    sweep_begin_call(s, &a, "doctor_again");
    texts_sort(&s->gone);
    args_add_counted(&a, &s->gone);
    args_add_texts(&a, &s->suspects, 0, s->suspects.count);
    texts_clear(&s->suspects);
    status = sweep_call(s, &a, &reply);
    if (status == 0)
        status = reply_array(reply, 0, "doctor", &s->w->error);
    for (size_t i = 0; status == 0 && i + 3 < reply->elements; i += 4) {
        if (strcmp(text_of(reply->element[i]), "active") == 0 && !keep(&s->orphans, reply->element[i + 1]))
            status = sweep_no_memory(s);
        else
            status = judge_row(s, reply->element + i);
    }
    freeReplyObject(reply);
    return status;
}

/* ---- A page */

/* rows: family, name, kind, in words. A note needs no second look. */
static int add_findings(struct sweep *s, const struct redisReply *rows)
{
    for (size_t i = 0; i + 3 < rows->elements; i += 4) {
        struct redisReply *const *row = rows->element + i;

        if (strcmp(text_of(row[0]), "note") == 0 || strcmp(text_of(row[0]), "record") == 0)
            sweep_tell(s, kind_find(text_of(row[2])), text_of(row[3]), NULL);
        else if (!keep(&s->suspects, row[0]) || !keep(&s->suspects, row[1]))
            return sweep_no_memory(s);
    }
    return s->suspects.count >= 2 * SUSPECTS_MOST ? look_again(s) : 0;
}

static int keep_all(struct sweep *s, struct texts *t, const struct redisReply *list)
{
    for (size_t i = 0; i < list->elements; i++)
        if (!keep(t, list->element[i]))
            return sweep_no_memory(s);
    return 0;
}

static int read_page(struct sweep *s, const struct redisReply *r, char cursor[24])
{
    int status = reply_array(r, 8, "doctor", &s->w->error);

    if (status != 0)
        return status;
    snprintf(cursor, 24, "%s", text_of(r->element[0]));
    if (reply_int(r->element[1], 0) > PAGE_BYTES && s->page > 1)
        s->page /= 2;
    s->keys += reply_int(r->element[2], 0);
    status = keep_all(s, &s->places, array_of(r, 3));
    if (status == 0)
        status = keep_all(s, &s->gates, array_of(r, 6));
    if (status == 0)
        status = keep_all(s, &s->gone, array_of(r, 7));
    if (status == 0)
        status = sweep_add_sums(s, array_of(r, 5));
    return status == 0 ? add_findings(s, array_of(r, 4)) : status;
}

static int look_at_page(struct sweep *s, const char *place, char cursor[24])
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    sweep_begin_call(s, &a, "doctor");
    args_add(&a, place);
    args_add(&a, cursor);
    args_add_int(&a, s->page);
    status = sweep_call(s, &a, &reply);
    if (status == 0)
        status = read_page(s, reply, cursor);
    freeReplyObject(reply);
    return status;
}

int sweep_members(struct sweep *s, const char *place)
{
    char cursor[24] = "0";
    int status;

    do
        status = look_at_page(s, place, cursor);
    while (status == 0 && strcmp(cursor, "0") != 0);
    return status;
}

/* The last one that was named. */
static int look_at_place(struct sweep *s)
{
    struct span place = s->places.at[--s->places.count];
    int status = sweep_members(s, place.at);

    free((char *)place.at);
    return status;
}

int sweep_keys(struct sweep *s)
{
    char cursor[24] = "0";
    int status;

    do {
        status = look_at_page(s, "", cursor);
        while (status == 0 && s->places.count > 0)
            status = look_at_place(s);
    } while (status == 0 && strcmp(cursor, "0") != 0);
    return status ? status : look_again(s);
}
