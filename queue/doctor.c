/* The structures are gone through page by page, from outside: no call keeps Redis longer than a few
 * milliseconds, and each page is judged within one call, so nothing is wrong only because workers go on. What
 * seems wrong is looked at a second time a moment later. Mending is a call for each thing, which judges it
 * once more.
 *
 * What only adds up over many pages, the counters of types, is compared with the counters before and after:
 * as many as they have moved meanwhile the sum may be off. After something was mended all is gone through
 * again. */
#include "queue/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client.h"
#include "core/clock.h"
#include "core/reply.h"
#include "core/script.h"
#include "queue/job.h"

#define PAGE_BEGIN 100
#define PAGE_MOST 400 /* keys of a page: each is up to ten commands */
#define PAGE_LEAST 10
#define SHORT_US 700     /* of a call: pages grow */
#define LONG_US 2000     /* they shrink */
#define REST_FROM_US 200 /* of a longer one: for as long Redis is left to the others */
#define PAGE_BYTES (1024 * 1024)
#define SUSPECTS_MOST 200
#define TYPES_PAGE 200
#define GATES_PAGE 200
#define MOMENT_US 20000 /* until the second look */
#define TOLD_MOST 20    /* findings of one kind that are told one by one */
#define PASSES_MOST 5
#define COUNTERS 11

/* ---- What was found */

/* A copy without what a terminal or JSON would choke on. */
static char *printable(const char *text)
{
    char *copy = strdup(text ? text : "");

    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    return copy;
}

static void add_check(struct doctor *d, struct doctor_check check)
{
    struct doctor_check *grown = d->checks;

    if (d->count == d->capacity) {
        d->capacity = d->capacity ? 2 * d->capacity : 32;
        grown = realloc(grown, d->capacity * sizeof *grown);
    }
    if (!grown || !check.text || !check.todo) {
        d->no_memory = true;
        free(check.text);
        free(check.todo);
        return;
    }
    d->checks = grown;
    d->checks[d->count++] = check;
}

void doctor_add(struct doctor *d, const char *name, enum doctor_state state, const char *todo,
                const char *fmt, ...)
{
    char text[1024];
    va_list rest;

    va_start(rest, fmt);
    vsnprintf(text, sizeof text, fmt, rest);
    va_end(rest);
    add_check(d, (struct doctor_check){name, state, printable(text), printable(todo)});
}

static void drop_checks(struct doctor *d)
{
    for (size_t i = 0; i < d->count; i++) {
        free(d->checks[i].text);
        free(d->checks[i].todo);
    }
    d->count = 0;
}

void doctor_free(struct doctor *d)
{
    drop_checks(d);
    free(d->checks);
}

/* Findings by their kind as the scripts name it. todo: of those that are not mended. */
static const struct kind {
    const char *kind, *name;
    enum doctor_state state;
    bool mendable;
    const char *todo;
} kinds[] = {
    {"lane-nowhere", "lanes", DOCTOR_WRONG, true, NULL},
    {"lane-twice", "lanes", DOCTOR_WRONG, true, NULL},
    {"no-lane", "lanes", DOCTOR_WRONG, true, NULL},
    {"credit", "lanes", DOCTOR_WARNING, true, NULL},
    {"type-nowhere", "types", DOCTOR_WRONG, true, NULL},
    {"type-twice", "types", DOCTOR_WRONG, true, NULL},
    {"no-ring", "types", DOCTOR_WRONG, true, NULL},
    {"misplaced", "gates", DOCTOR_WRONG, true, NULL},
    {"gate-unlisted", "gates", DOCTOR_WRONG, true, NULL},
    {"gate-empty", "gates", DOCTOR_WRONG, true, NULL},
    {"star", "gates", DOCTOR_WRONG, true, NULL},
    {"slots", "slots", DOCTOR_WRONG, true, NULL},
    {"counters", "counters", DOCTOR_WRONG, true, NULL},
    {"worker-unlisted", "workers", DOCTOR_WRONG, true, NULL},
    {"worker-bare", "workers", DOCTOR_WRONG, true, NULL},
    {"silent", "workers", DOCTOR_WARNING, false,
     "start a worker: its heartbeats take back the jobs of those that are silent"},
    {"token", "workers", DOCTOR_WRONG, false, "when its worker ends, its job goes to the dead jobs"},
    {"duty", "duty", DOCTOR_WARNING, true, NULL},
    {"held", "held", DOCTOR_WARNING, false, "start a worker that has a handler for it"},
    {"dead", "dead", DOCTOR_WARNING, false, "weir dead list"},
    {"unregistered", "registries", DOCTOR_WRONG, true, NULL},
    {"limit", "limits", DOCTOR_WRONG, false, "set it again: weir rate set NAME RULE"},
    {"limit-gone", "limits", DOCTOR_WRONG, false, "weir rate set NAME RULE, or weir rate unuse TYPE NAME"},
    {"limit-lost", "limits", DOCTOR_WARNING, false, "weir rate set NAME RULE"},
    {"weights", "limits", DOCTOR_WARNING, false, "set them again: weir rate weight NAME KEY N"},
    {"record", "later", DOCTOR_WRONG, false, "when it is due it goes to the dead jobs"},
    {"occurrence", "schedules", DOCTOR_WRONG, true, NULL},
    {"schedule", "schedules", DOCTOR_WRONG, false, "add it again: weir schedule add"},
    {"batch", "batches", DOCTOR_WRONG, false,
     "its numbers cannot be known any more; its jobs are not concerned"},
    {"batch-open", "batches", DOCTOR_WRONG, true, NULL},
    {"batch-gone", "batches", DOCTOR_WRONG, true, NULL},
    {"aside", "batches", DOCTOR_WARNING, false, "weir batch resume NAME"},
    {"queued", "queues", DOCTOR_WARNING, true, NULL},
    {"wrong-kind", "keys", DOCTOR_WRONG, false,
     "somebody else writes here: rename or delete it, or use another --namespace"},
    {"misnamed", "keys", DOCTOR_WRONG, false, "rename or delete it"},
    {"foreign", "keys", DOCTOR_WARNING, false, "somebody else's, or of a newer version; else delete it"},
    {"error", "errors", DOCTOR_WRONG, false, "please report it"},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)
static const char mend_todo[] = "weir doctor --repair mends it";

static size_t kind_of(const char *name)
{
    size_t i = 0;

    while (i < KIND_COUNT - 1 && strcmp(kinds[i].kind, name) != 0)
        i++;
    return i;
}

/* ---- Sets of texts */

struct texts {
    struct span *at; /* each is its owner's copy */
    size_t count, capacity;
};

static bool texts_add(struct texts *t, const char *at, size_t len)
{
    struct span *grown = t->at;
    char *copy = malloc(len + 1);

    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        grown = realloc(grown, t->capacity * sizeof *grown);
    }
    if (!grown || !copy) {
        free(copy);
        return false;
    }
    memcpy(copy, at, len);
    copy[len] = '\0';
    t->at = grown;
    t->at[t->count++] = (struct span){copy, len};
    return true;
}

static void texts_clear(struct texts *t)
{
    while (t->count > 0)
        free((char *)t->at[--t->count].at);
}

static void texts_free(struct texts *t)
{
    texts_clear(t);
    free(t->at);
}

static int text_order(const void *a, const void *b)
{
    return strcmp(((const struct span *)a)->at, ((const struct span *)b)->at);
}

/* Sorts them, each once. */
static void texts_sort(struct texts *t)
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

/* ---- One look at everything */

/* The jobs of a type that were found, and its counters before and after. */
struct tally {
    char type[132];
    int64_t lanes, leased, later;
    int64_t before[COUNTERS], after[COUNTERS];
    char seen[COUNTERS * 21];                  /* after, as it was told */
    int64_t parked_off, leased_off, later_off; /* by so many the counters are off; of the last pass */
    bool off, was_off;
};
enum counter { ENQUEUED, PULLED, PARKED, RETURNED, SERVED, DONE, RETRIED, DEAD, BACK, SCHEDULED, DROPPED };

struct sweep {
    struct weir *w;
    int64_t now_us;
    bool repair;
    int page;
    struct texts places;   /* to be gone through */
    struct texts suspects; /* family, name, family, name ... */
    struct texts gates;    /* that count jobs in flight */
    struct texts gone;     /* limits that gates are named after and that are not there */
    struct texts orphans;  /* workers that are not registered */
    struct tally *tallies;
    size_t tally_count;
    struct doctor mended, found; /* found: in this pass */
    size_t told[KIND_COUNT];     /* findings of this pass */
    size_t mended_count;         /* of this pass */
    bool broken, unsure;         /* unsure: counters seem wrong that did not before */
    int64_t keys, calls, longest_us;
};

static int no_memory(struct sweep *s)
{
    return error_set(&s->w->error, WEIR_EINTERNAL, "doctor: out of memory; free some and try again");
}

/* Sends a and frees it; *reply is the caller's. */
static int call(struct sweep *s, struct args *a, struct redisReply **reply)
{
    int64_t begin_us = clock_mono_us(), took_us;
    int status = client_call(s->w, a, reply, NULL);

    args_free(a);
    took_us = clock_mono_us() - begin_us;
    s->calls++;
    s->longest_us = took_us > s->longest_us ? took_us : s->longest_us;
    if (took_us < SHORT_US && s->page < PAGE_MOST)
        s->page *= 2;
    else if (took_us > LONG_US && s->page > PAGE_LEAST)
        s->page /= 2;
    if (took_us > REST_FROM_US)
        clock_sleep_until(clock_mono_us() + (took_us < LONG_US ? took_us : LONG_US));
    return status;
}

static const char *text_of(const struct redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? r->str : "";
}

/* The i-th element, when it is an array. */
static const struct redisReply *array_of(const struct redisReply *r, size_t i)
{
    static const struct redisReply none = {.type = REDIS_REPLY_ARRAY};

    return r->element[i]->type == REDIS_REPLY_ARRAY ? r->element[i] : &none;
}

static bool keep(struct texts *t, const struct redisReply *r)
{
    return r->type != REDIS_REPLY_STRING || texts_add(t, r->str, r->len);
}

static void tell(struct sweep *s, size_t k, const char *text, const char *todo)
{
    const struct kind *kind = &kinds[k];

    s->broken |= kind->state == DOCTOR_WRONG;
    if (s->told[k]++ < TOLD_MOST)
        doctor_add(&s->found, kind->name, kind->state,
                   todo             ? todo
                   : kind->mendable ? mend_todo
                                    : kind->todo,
                   "%s", text);
}

static void tell_mended(struct sweep *s, size_t k, const char *text, const char *done)
{
    if (s->mended_count++ < TOLD_MOST)
        doctor_add(&s->mended, kinds[k].name, DOCTOR_MENDED, NULL, "%s; mended: %s", text, done);
}

/* [1 when it was mended, what was done]; nothing is mended where a key holds something else. */
static int mend(struct sweep *s, struct args *a, size_t k, const char *text)
{
    struct redisReply *reply = NULL;
    int status = call(s, a, &reply);

    if (status == WEIR_EUNREACHABLE)
        return status;
    if (status == 0 && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply_int(reply->element[0], 0) == 1)
        tell_mended(s, k, text, text_of(reply->element[1]));
    else
        tell(s, k, text,
             status ? s->w->error.text
                    : "it could not be mended as it changed meanwhile: weir doctor --repair again");
    freeReplyObject(reply);
    return 0;
}

/* ---- The second look */

static void begin_call(struct sweep *s, struct args *a, const char *script)
{
    args_init(a);
    script_begin(a, script, s->w->prefix, s->now_us);
}

static void add_texts(struct args *a, const struct texts *t, size_t first, size_t end)
{
    for (size_t i = first; i < end && i < t->count; i++)
        args_add_bytes(a, t->at[i].at, t->at[i].len);
}

static void add_counted(struct args *a, const struct texts *t)
{
    args_add_int(a, (int64_t)t->count);
    add_texts(a, t, 0, t->count);
}

/* row: family, name, kind, in words. */
static int judge_row(struct sweep *s, struct redisReply *const *row)
{
    size_t k = kind_of(text_of(row[2]));
    struct args a;

    if (!s->repair || !kinds[k].mendable) {
        tell(s, k, text_of(row[3]), NULL);
        return 0;
    }
    begin_call(s, &a, "doctor_mend");
    args_add(&a, "thing");
    args_add(&a, text_of(row[0]));
    args_add_bytes(&a, row[1]->str, row[1]->len);
    add_counted(&a, &s->gone);
    return mend(s, &a, k, text_of(row[3]));
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
    begin_call(s, &a, "doctor_again");
    texts_sort(&s->gone);
    add_counted(&a, &s->gone);
    add_texts(&a, &s->suspects, 0, s->suspects.count);
    texts_clear(&s->suspects);
    status = call(s, &a, &reply);
    for (size_t i = 0; status == 0 && i + 3 < reply->elements; i += 4) {
        if (strcmp(text_of(reply->element[i]), "active") == 0 && !keep(&s->orphans, reply->element[i + 1]))
            status = no_memory(s);
        else
            status = judge_row(s, reply->element + i);
    }
    freeReplyObject(reply);
    return status;
}

/* ---- A page */

static struct tally *tally_of(struct sweep *s, const char *type)
{
    struct tally *grown;

    for (size_t i = 0; i < s->tally_count; i++)
        if (strcmp(s->tallies[i].type, type) == 0)
            return &s->tallies[i];
    grown = realloc(s->tallies, (s->tally_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    s->tallies = grown;
    grown += s->tally_count++;
    *grown = (struct tally){.lanes = 0};
    snprintf(grown->type, sizeof grown->type, "%s", type);
    return grown;
}

/* rows: type, what, n. */
static int add_sums(struct sweep *s, const struct redisReply *rows)
{
    for (size_t i = 0; i + 2 < rows->elements; i += 3) {
        struct tally *t = tally_of(s, text_of(rows->element[i]));
        const char *what = text_of(rows->element[i + 1]);
        int64_t n = reply_int(rows->element[i + 2], 0);

        if (!t)
            return no_memory(s);
        if (strcmp(what, "lanes") == 0)
            t->lanes += n;
        else if (strcmp(what, "leased") == 0)
            t->leased += n;
        else
            t->later += n;
    }
    return 0;
}

/* rows: family, name, kind, in words. A note needs no second look. */
static int add_findings(struct sweep *s, const struct redisReply *rows)
{
    for (size_t i = 0; i + 3 < rows->elements; i += 4) {
        struct redisReply *const *row = rows->element + i;

        if (strcmp(text_of(row[0]), "note") == 0 || strcmp(text_of(row[0]), "record") == 0)
            tell(s, kind_of(text_of(row[2])), text_of(row[3]), NULL);
        else if (!keep(&s->suspects, row[0]) || !keep(&s->suspects, row[1]))
            return no_memory(s);
    }
    return s->suspects.count >= 2 * SUSPECTS_MOST ? look_again(s) : 0;
}

static int keep_all(struct sweep *s, struct texts *t, const struct redisReply *list)
{
    for (size_t i = 0; i < list->elements; i++)
        if (!keep(t, list->element[i]))
            return no_memory(s);
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
        status = add_sums(s, array_of(r, 5));
    return status == 0 ? add_findings(s, array_of(r, 4)) : status;
}

static int look_at_page(struct sweep *s, const char *place, char cursor[24])
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    begin_call(s, &a, "doctor");
    args_add(&a, place);
    args_add(&a, cursor);
    args_add_int(&a, s->page);
    status = call(s, &a, &reply);
    if (status == 0)
        status = read_page(s, reply, cursor);
    freeReplyObject(reply);
    return status;
}

static int look_at_members(struct sweep *s, const char *place)
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
    int status = look_at_members(s, place.at);

    free((char *)place.at);
    return status;
}

static int look_at_keys(struct sweep *s)
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

/* ---- What is counted */

static void read_counters(const char *text, int64_t counters[COUNTERS])
{
    for (int i = 0; i < COUNTERS; i++) {
        counters[i] = strtoll(text, NULL, 10);
        text += strcspn(text, ",");
        text += *text == ',';
    }
}

/* The counters of some types as they are; queued: jobs in queues now. */
static int ask_counters(struct sweep *s, size_t first, size_t end, int64_t *queued)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    begin_call(s, &a, "doctor_counts");
    for (size_t i = first; i < end; i++)
        args_add(&a, s->tallies[i].type);
    status = call(s, &a, &reply);
    if (status == 0)
        status = reply_array(reply, 1 + end - first, "doctor_counts", &s->w->error);
    if (status == 0)
        *queued = reply_int(reply->element[0], 0);
    for (size_t i = first; status == 0 && i < end; i++) {
        struct tally *t = &s->tallies[i];

        snprintf(t->seen, sizeof t->seen, "%s", text_of(reply->element[1 + i - first]));
        read_counters(t->seen, t->after);
    }
    freeReplyObject(reply);
    return status;
}

/* Jobs that were enqueued and that no worker has looked at, by the counters. */
static int64_t waiting_of(const struct tally *t)
{
    int64_t n = t->after[ENQUEUED] - t->after[PULLED] - t->after[PARKED] - t->after[DROPPED];

    return n > 0 ? n : 0;
}

static int mend_counters(struct sweep *s, const struct tally *t, size_t k, const char *text,
                         const char *const *counters, const int64_t *by, size_t count)
{
    struct args a;

    begin_call(s, &a, "doctor_mend");
    args_add(&a, "counters");
    args_add(&a, t->type);
    args_add(&a, t->seen);
    for (size_t i = 0; i < count; i++) {
        args_add(&a, counters[i]);
        args_add_int(&a, by[i]);
    }
    return mend(s, &a, k, text);
}

/* No queue holds anything: what is said to wait there is gone. */
static int forget_queued(struct sweep *s, size_t k)
{
    static const char *const counters[] = {"enqueued"};
    char text[300];
    int status = 0;

    for (size_t i = 0; status == 0 && i < s->tally_count; i++) {
        int64_t by = -waiting_of(&s->tallies[i]);

        snprintf(text, sizeof text,
                 "type %s: by its counters %" PRId64 " jobs wait, and all queues are empty",
                 s->tallies[i].type, -by);
        if (by != 0)
            status = mend_counters(s, &s->tallies[i], k, text, counters, &by, 1);
    }
    return status;
}

/* More that were enqueued and not looked at than all queues hold. What others push is not counted, so fewer
 * says nothing. All types were asked in one call. */
static int judge_queued(struct sweep *s, int64_t queued)
{
    size_t k = kind_of("queued");
    int64_t waiting = 0;
    char text[200];

    for (size_t i = 0; i < s->tally_count; i++)
        waiting += waiting_of(&s->tallies[i]);
    if (waiting <= queued)
        return 0;
    if (s->repair && queued == 0)
        return forget_queued(s, k);
    snprintf(text, sizeof text,
             "%" PRId64 " jobs wait by the counters, %" PRId64
             " are in queues: a queue was deleted or purged by hand",
             waiting, queued);
    tell(s, k, text,
         queued > 0 ? "once all queues are empty, weir doctor --repair sets the counters right" : NULL);
    return 0;
}

/* A counter may be off by as many as have moved while the jobs were counted, and is not wrong. */
static bool is_off(const struct tally *t, int64_t off)
{
    int64_t moves = 0;

    for (int i = 0; i < COUNTERS; i++)
        moves += llabs(t->after[i] - t->before[i]);
    return llabs(off) > moves;
}

static void compare(struct tally *t)
{
    const int64_t *n = t->after;

    t->parked_off = t->lanes - (n[PARKED] + n[RETURNED] - n[SERVED]);
    t->leased_off = t->leased - (n[PULLED] + n[SERVED] - n[DONE] - n[RETRIED] - n[DEAD] - n[BACK]);
    t->later_off = t->later - n[SCHEDULED];
    t->off = is_off(t, t->parked_off) || is_off(t, t->leased_off) || is_off(t, t->later_off);
}

/* As if so many jobs had been enqueued, leased, and of those to be parked handed back: all else that is
 * counted agrees as before. */
static int set_right(struct sweep *s, const struct tally *t, size_t k, const char *text)
{
    static const char *const counters[] = {"enqueued", "pulled", "back", "returned", "scheduled"};
    const int64_t both = t->parked_off + t->leased_off;
    const int64_t by[] = {both, both, t->parked_off, t->parked_off, t->later_off};

    return mend_counters(s, t, k, text, counters, by, 5);
}

/* Told, and mended, only when it was off in the pass before as well: a key that SCAN has shown twice is no
 * fault of the counters. */
static int judge_counters(struct sweep *s, struct tally *t)
{
    size_t k = kind_of("counters");
    char text[400];

    compare(t);
    if (!t->off || !t->was_off) {
        s->unsure |= t->off;
        return 0;
    }
    snprintf(text, sizeof text,
             "type %s: by its counters %" PRId64 " are parked, %" PRId64 " run and %" PRId64
             " are scheduled; it is %" PRId64 ", %" PRId64 " and %" PRId64,
             t->type, t->lanes - t->parked_off, t->leased - t->leased_off, t->later - t->later_off, t->lanes,
             t->leased, t->later);
    if (!s->repair) {
        tell(s, k, text, NULL);
        return 0;
    }
    if (memcmp(t->before, t->after, sizeof t->before) == 0)
        return set_right(s, t, k, text);
    tell(s, k, text,
         "its jobs move, so nobody can tell by how many: weir doctor --repair when workers are stopped");
    return 0;
}

static int judge_all_counters(struct sweep *s)
{
    int64_t queued = 0;
    int status = 0;

    for (size_t first = 0; status == 0 && first < s->tally_count; first += TYPES_PAGE) {
        size_t end = first + TYPES_PAGE < s->tally_count ? first + TYPES_PAGE : s->tally_count;

        status = ask_counters(s, first, end, &queued);
        if (status == 0 && end == s->tally_count && first == 0)
            status = judge_queued(s, queued);
    }
    for (size_t i = 0; status == 0 && i < s->tally_count; i++)
        status = judge_counters(s, &s->tallies[i]);
    return status;
}

/* The types that are registered, and their counters before. */
static int begin_counters(struct sweep *s)
{
    int64_t queued;
    int status;

    for (size_t i = 0; i < s->tally_count; i++) {
        struct tally *t = &s->tallies[i];

        t->lanes = t->leased = t->later = 0;
        t->was_off = t->off;
    }
    status = look_at_members(s, "types");
    for (size_t first = 0; status == 0 && first < s->tally_count; first += TYPES_PAGE)
        status = ask_counters(
            s, first, first + TYPES_PAGE < s->tally_count ? first + TYPES_PAGE : s->tally_count, &queued);
    for (size_t i = 0; i < s->tally_count; i++)
        memcpy(s->tallies[i].before, s->tallies[i].after, sizeof s->tallies[i].before);
    return status;
}

/* ---- Jobs in flight */

static int mend_gate(struct sweep *s, const char *gate, size_t k, const char *text)
{
    struct args a;

    begin_call(s, &a, "doctor_mend");
    args_add(&a, "gate");
    args_add(&a, gate);
    add_texts(&a, &s->orphans, 0, s->orphans.count);
    return mend(s, &a, k, text);
}

/* rows: gate, what it says, leases. */
static int judge_gates(struct sweep *s, const struct redisReply *rows)
{
    size_t k = kind_of("slots");
    char text[600];
    int status = 0;

    for (size_t i = 0; status == 0 && i + 2 < rows->elements; i += 3) {
        const char *gate = text_of(rows->element[i]);

        snprintf(text, sizeof text, "gate %s counts %" PRId64 " jobs in flight, %" PRId64 " leases took it",
                 gate, reply_int(rows->element[i + 1], 0), reply_int(rows->element[i + 2], 0));
        if (s->repair)
            status = mend_gate(s, gate, k, text);
        else
            tell(s, k, text, NULL);
    }
    return status;
}

static int look_at_gates(struct sweep *s, size_t first, bool *counted)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    begin_call(s, &a, "doctor_flight");
    add_counted(&a, &s->orphans);
    add_texts(&a, &s->gates, first, first + GATES_PAGE);
    status = call(s, &a, &reply);
    if (status == 0)
        status = reply_array(reply, 3, "doctor_flight", &s->w->error);
    if (status == 0)
        *counted = reply_int(reply->element[1], 0) == 1;
    if (status == 0 && !*counted)
        doctor_add(&s->found, "slots", DOCTOR_OK, NULL,
                   "not looked at: %" PRId64 " jobs run, too many to count at once",
                   reply_int(reply->element[0], 0));
    if (status == 0)
        status = judge_gates(s, array_of(reply, 2));
    freeReplyObject(reply);
    return status;
}

static int look_at_flight(struct sweep *s)
{
    bool counted = true;
    int status = 0;

    texts_sort(&s->gates);
    texts_sort(&s->orphans);
    for (size_t first = 0; status == 0 && counted && first < s->gates.count; first += GATES_PAGE)
        status = look_at_gates(s, first, &counted);
    return status;
}

/* ---- All of it */

static int look_at_all(struct sweep *s)
{
    int status;

    drop_checks(&s->found);
    texts_clear(&s->gates);
    texts_clear(&s->gone);
    texts_clear(&s->orphans);
    memset(s->told, 0, sizeof s->told);
    s->mended_count = 0;
    s->keys = 0;
    s->broken = s->unsure = false;
    status = begin_counters(s);
    if (status == 0)
        status = look_at_keys(s);
    if (status == 0)
        status = look_at_flight(s);
    if (status == 0)
        status = judge_all_counters(s);
    return status;
}

static void tell_rest(struct sweep *s)
{
    for (size_t k = 0; k < KIND_COUNT; k++)
        if (s->told[k] > TOLD_MOST)
            doctor_add(&s->found, kinds[k].name, kinds[k].state,
                       kinds[k].mendable ? mend_todo : kinds[k].todo, "and %zu more like these",
                       s->told[k] - TOLD_MOST);
}

/* The checks of part go behind those of d. */
static void move_checks(struct doctor *d, struct doctor *part)
{
    for (size_t i = 0; i < part->count; i++)
        add_check(d, part->checks[i]);
    part->count = 0;
    d->no_memory |= part->no_memory;
    doctor_free(part);
}

static int look_at_structures(struct sweep *s, struct doctor *d)
{
    int64_t begin_us = clock_mono_us();
    size_t mended = 0;
    int status, passes = 0;

    do {
        status = look_at_all(s);
        if (s->mended_count > TOLD_MOST)
            doctor_add(&s->mended, "structures", DOCTOR_MENDED, NULL, "and %zu more were mended",
                       s->mended_count - TOLD_MOST);
        mended += s->mended_count;
    } while (status == 0 && (s->mended_count > 0 || s->unsure) && ++passes < PASSES_MOST);
    tell_rest(s);
    d->broken = s->broken;
    move_checks(d, &s->mended);
    move_checks(d, &s->found);
    if (status == 0)
        doctor_add(d, "structures", s->broken ? DOCTOR_WRONG : DOCTOR_OK, s->broken ? "see above" : NULL,
                   "%" PRId64 " keys looked at in %.1f s by %" PRId64 " calls, the longest took %.1f ms%s",
                   s->keys, (double)(clock_mono_us() - begin_us) / 1e6, s->calls, (double)s->longest_us / 1e3,
                   s->broken    ? "; some of what they hold does not agree"
                   : mended > 0 ? "; what they hold agrees now"
                                : "; what they hold agrees");
    return status;
}

int doctor_run(struct weir *w, int64_t now_us, bool repair, struct doctor *out)
{
    struct sweep s = {.w = w, .now_us = now_us, .repair = repair, .page = PAGE_BEGIN};
    struct texts *lists[] = {&s.places, &s.suspects, &s.gates, &s.gone, &s.orphans};
    bool usable;
    int status;

    *out = (struct doctor){.count = 0};
    status = doctor_setup(w, now_us, repair, out, &usable);
    if (status == 0 && usable)
        status = look_at_structures(&s, out);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        texts_free(lists[i]);
    free(s.tallies);
    return status == 0 && out->no_memory ? no_memory(&s) : status;
}
