#include "queue/dead/dead.h"

#include <string.h>

#include "core/client/client.h"
#include "core/client/pages.h"
#include "core/script/script.h"

#define PAGE_MOST 200 /* records that are looked at in a call */

/* ---- Walks */

static void add_text(struct args *a, const char *text)
{
    args_add(a, text ? text : "");
}

static void add_number(struct args *a, int64_t n)
{
    if (n > 0)
        args_add_int(a, n);
    else
        args_add(a, "");
}

static void ask_page(struct args *a, void *arg)
{
    const struct dead_walk *walk = arg;
    const struct dead_filter *f = &walk->filter;

    args_add(a, walk->verb);
    args_add_int(a, PAGE_MOST);
    add_text(a, f->type);
    add_text(a, f->queue);
    add_text(a, f->batch);
    add_text(a, f->reason);
    add_number(a, f->older_us);
    add_number(a, f->newer_us);
    if (strcmp(walk->verb, "list") == 0)
        args_add_int(a, walk->body_bytes);
    else
        add_text(a, walk->into);
    job_add_seed(a);
    args_add_int(a, (int64_t)f->id_count);
    for (size_t i = 0; i < f->id_count; i++)
        args_add(a, f->ids[i]);
}

static int take_page(const json_t *page, void *arg)
{
    const struct dead_walk *walk = arg;

    return walk->take(page, walk->arg);
}

int dead_walk(const struct dead_walk *walk)
{
    return pages_walk(&(struct pages){.w = walk->w,
                                      .script = "dead",
                                      .now_us = walk->now_us,
                                      .arg = (void *)walk,
                                      .ask = ask_page,
                                      .take = take_page});
}

/* ---- What is kept of them */

int dead_keep(struct weir *w, int64_t now_us, const struct dead_bounds *wanted, bool write, json_t **kept)
{
    struct args a;

    args_init(&a);
    script_begin(&a, "dead_keep", w->prefix, now_us);
    add_number(&a, wanted->most);
    add_number(&a, wanted->age_us);
    add_number(&a, wanted->bytes);
    args_add_int(&a, write);
    return client_ask(w, "dead_keep", &a, kept);
}

/* The oldest, until they have more than so many bytes. */
struct oldest {
    int64_t left, jobs;
};

static int take_sizes(const json_t *page, void *arg)
{
    const json_t *sizes = json_object_get(page, "sizes");
    struct oldest *oldest = arg;

    for (size_t i = 0; i < json_array_size(sizes) && oldest->left > 0; i++, oldest->jobs++)
        oldest->left -= answer_int_at(sizes, i);
    return oldest->left <= 0;
}

static int count_oldest(struct weir *w, int64_t now_us, struct oldest *oldest)
{
    int status = pages_walk(
        &(struct pages){.w = w, .script = "dead_sizes", .now_us = now_us, .arg = oldest, .take = take_sizes});

    return status < 0 ? status : 0;
}

int dead_count_beyond(struct weir *w, int64_t now_us, const json_t *kept, int64_t *jobs)
{
    int64_t bytes = answer_int_or(kept, "bytes", -1), beyond = answer_int(kept, "beyond");
    struct oldest all = {.left = INT64_MAX}, over = {0};
    int status = 0;

    if (bytes < 0) {
        status = count_oldest(w, now_us, &all);
        bytes = INT64_MAX - all.left;
    }
    over.left = bytes - answer_int(kept, "keep_bytes");
    if (status == 0)
        status = count_oldest(w, now_us, &over);
    *jobs = over.jobs > beyond ? over.jobs : beyond;
    return status;
}
