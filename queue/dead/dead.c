#include "queue/dead/dead.h"

#include <math.h>
#include <string.h>

#include "core/client/client.h"
#include "core/client/reply.h"
#include "core/decimal.h"
#include "core/script/script.h"

#define LIST_PARTS 15
#define GROUP_PARTS 4

static const char *const verbs[] = {
    [DEAD_COUNT] = "count", [DEAD_LIST] = "list", [DEAD_RETRY] = "retry", [DEAD_REMOVE] = "remove"};

static struct span span_of(const struct redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? (struct span){r->str, r->len} : (struct span){"", 0};
}

/* ---- Asking */

static void add_text(struct args *a, const char *text)
{
    args_add(a, text ? text : "");
}

static void add_time(struct args *a, int64_t us)
{
    if (us > 0)
        args_add_int(a, us);
    else
        args_add(a, "");
}

/* Where the last page ended. */
static void add_place(struct args *a, const struct redisReply *page)
{
    for (size_t i = 1; i <= 3; i++) {
        struct span word = page ? span_of(page->element[i]) : (struct span){"", 0};

        args_add_bytes(a, word.at, word.len);
    }
}

static void make_request(const struct dead_walk *walk, struct args *a)
{
    const struct dead_filter *f = &walk->filter;

    script_begin(a, "dead", walk->w->prefix, walk->now_us);
    args_add(a, verbs[walk->verb]);
    args_add_int(a, DEAD_PAGE_MOST);
    add_place(a, walk->page);
    add_text(a, f->type);
    add_text(a, f->queue);
    add_text(a, f->batch);
    add_text(a, f->reason);
    add_time(a, f->older_us);
    add_time(a, f->newer_us);
    if (walk->verb == DEAD_LIST)
        args_add_int(a, walk->body_bytes);
    else
        add_text(a, walk->into);
    job_add_seed(a);
    for (size_t i = 0; i < f->id_count; i++)
        args_add(a, f->ids[i]);
}

/* ---- The answer */

static bool are_rows(const struct redisReply *rows, size_t parts)
{
    for (size_t i = 0; i < rows->elements; i++)
        if (rows->element[i]->type != REDIS_REPLY_ARRAY || rows->element[i]->elements < parts)
            return false;
    return true;
}

static bool is_page(const struct redisReply *r, enum dead_verb verb)
{
    const struct redisReply *found;

    if (r->type != REDIS_REPLY_ARRAY || r->elements < 6 || r->element[5]->type != REDIS_REPLY_ARRAY)
        return false;
    found = r->element[5];
    switch (verb) {
    case DEAD_COUNT:
        return are_rows(found, GROUP_PARTS);
    case DEAD_LIST:
        return are_rows(found, LIST_PARTS);
    case DEAD_RETRY:
    case DEAD_REMOVE:
        return found->elements >= 2;
    }
    return false;
}

static void take_page(struct dead_walk *walk)
{
    const struct redisReply *found = walk->page->element[5];

    walk->ended = span_of(walk->page->element[2]).len == 0;
    walk->looked_at += reply_int(walk->page->element[4], 0);
    walk->found = found->elements;
    if (walk->verb == DEAD_RETRY || walk->verb == DEAD_REMOVE) {
        walk->moved += reply_int(found->element[0], 0);
        walk->left += reply_int(found->element[1], 0);
        walk->found -= 2;
    }
}

int dead_next(struct dead_walk *walk)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    make_request(walk, &a);
    status = client_call(walk->w, &a, &reply, NULL);
    args_free(&a);
    if (status != 0)
        return status;
    dead_end(walk);
    walk->page = reply;
    if (!is_page(reply, walk->verb))
        return error_set(&walk->w->error, WEIR_EINTERNAL,
                         "dead: unexpected answer from Redis; is another version at work?");
    take_page(walk);
    return 0;
}

void dead_end(struct dead_walk *walk)
{
    if (walk->page)
        freeReplyObject(walk->page);
    walk->page = NULL;
    walk->found = 0;
}

/* ---- What it says */

static const struct redisReply *row(const struct dead_walk *walk, size_t i)
{
    return walk->page->element[5]->element[i];
}

/* A score is a real number, and whatever a foreign client made it. */
static int64_t time_of(const struct redisReply *score)
{
    double us = score->type == REDIS_REPLY_STRING ? decimal_read(score->str, NULL) : 0;

    return fabs(us) < 9e18 ? (int64_t)us : 0;
}

void dead_job(const struct dead_walk *walk, size_t i, struct dead_job *job)
{
    struct redisReply **part = row(walk, i)->element;

    *job = (struct dead_job){
        .died_us = time_of(part[0]),
        .queue = span_of(part[1]),
        .type = span_of(part[2]),
        .key = span_of(part[3]),
        .reason = span_of(part[4]),
        .attempts = reply_int(part[5], 0),
        .interrupted = reply_int(part[6], 0),
        .throttled = reply_int(part[7], 0),
        .batch = span_of(part[8]),
        .unique = span_of(part[9]),
        .failed_us = reply_int(part[10], -1),
        .failure = span_of(part[11]),
        .id = span_of(part[12]),
        .size_bytes = reply_int(part[13], 0),
        .body = span_of(part[14]),
    };
}

void dead_group(const struct dead_walk *walk, size_t i, struct dead_group *group)
{
    struct redisReply **part = row(walk, i)->element;

    *group =
        (struct dead_group){span_of(part[0]), span_of(part[1]), reply_int(part[2], 0), reply_int(part[3], 0)};
}

struct span dead_moved(const struct dead_walk *walk, size_t i)
{
    return span_of(row(walk, i + 2));
}

/* ---- What is kept of them */

static void add_bound(struct args *a, int64_t bound)
{
    if (bound > 0)
        args_add_int(a, bound);
    else
        args_add(a, "");
}

static int read_kept(const struct redisReply *r, struct dead_kept *kept, struct error *e)
{
    int64_t *const numbers[] = {&kept->now_us, &kept->bounds.most, &kept->bounds.age_us, &kept->bounds.bytes,
                                &kept->jobs,   &kept->bytes,       &kept->beyond};
    int status = reply_array(r, 8, "dead_keep", e);

    for (size_t i = 0; status == 0 && i < sizeof numbers / sizeof *numbers; i++)
        *numbers[i] = reply_int(r->element[i], -1);
    if (status == 0)
        kept->oldest_us = time_of(r->element[7]);
    return status;
}

int dead_keep(struct weir *w, int64_t now_us, const struct dead_bounds *wanted, bool write,
              struct dead_kept *kept)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "dead_keep", w->prefix, now_us);
    add_bound(&a, wanted->most);
    add_bound(&a, wanted->age_us);
    add_bound(&a, wanted->bytes);
    args_add_int(&a, write);
    status = client_call(w, &a, &reply, NULL);
    args_free(&a);
    if (status != 0)
        return status;
    status = read_kept(reply, kept, &w->error);
    freeReplyObject(reply);
    return status;
}

int dead_sizes_next(struct weir *w, int64_t now_us, struct dead_sizes *sizes)
{
    struct redisReply *reply = NULL;
    struct span place[2] = {{"", 0}, {"", 0}};
    struct args a;
    int status;

    for (int i = 0; sizes->page && i < 2; i++)
        place[i] = span_of(sizes->page->element[3 + i]);
    args_init(&a);
    script_begin(&a, "dead_sizes", w->prefix, now_us);
    for (int i = 0; i < 2; i++)
        args_add_bytes(&a, place[i].at, place[i].len);
    status = client_call(w, &a, &reply, NULL);
    args_free(&a);
    dead_sizes_end(sizes);
    if (status == 0)
        status = reply_array(reply, 5, "dead_sizes", &w->error);
    sizes->page = reply;
    if (status != 0)
        return status;
    sizes->jobs = reply_int(reply->element[1], 0);
    sizes->counted = reply_int(reply->element[2], -1);
    sizes->ended = span_of(reply->element[3]).len == 0;
    sizes->found = reply->elements - 5;
    return 0;
}

int64_t dead_size(const struct dead_sizes *sizes, size_t i)
{
    return reply_int(sizes->page->element[5 + i], 0);
}

void dead_sizes_end(struct dead_sizes *sizes)
{
    freeReplyObject(sizes->page);
    sizes->page = NULL;
}

/* Goes through the oldest until they have so many bytes, or all: *jobs is how many, and bytes is what they
 * lack. */
static int count_oldest(struct weir *w, int64_t now_us, int64_t *bytes, int64_t *jobs)
{
    struct dead_sizes sizes = {.ended = false};
    int status = 0;

    *jobs = 0;
    while (status == 0 && !sizes.ended && *bytes > 0) {
        status = dead_sizes_next(w, now_us, &sizes);
        for (size_t i = 0; status == 0 && i<sizes.found && * bytes> 0; i++, ++*jobs)
            *bytes -= dead_size(&sizes, i);
    }
    dead_sizes_end(&sizes);
    return status;
}

int dead_count_beyond(struct weir *w, int64_t now_us, const struct dead_kept *kept, int64_t *jobs)
{
    int64_t rest = INT64_MAX, bytes = kept->bytes, by_bytes = 0;
    int status = 0;

    if (bytes < 0) {
        status = count_oldest(w, now_us, &rest, jobs);
        bytes = INT64_MAX - rest;
    }
    bytes -= kept->bounds.bytes;
    if (status == 0)
        status = count_oldest(w, now_us, &bytes, &by_bytes);
    *jobs = by_bytes > kept->beyond ? by_bytes : kept->beyond;
    return status;
}
