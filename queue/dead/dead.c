#include "queue/dead/dead.h"

#include <string.h>

#include "core/client/client.h"
#include "core/client/pages.h"
#include "core/script/script.h"

#define PAGE_MOST 200 /* records that are looked at in a call */
#define FOLDED 50     /* whose reasons are folded, in up to 130 us each */
#define RETRIES 80    /* dead jobs where each may go to another queue, in some 25 us */

/* ---- Jobs whose types live on another partition */

static bool goes_to(const json_t *row, int to)
{
    return answer_int(row, "to") == to;
}

static bool any_goes_to(const json_t *rows, int to)
{
    size_t i = 0;

    while (i < json_array_size(rows) && !goes_to(json_array_get(rows, i), to))
        i++;
    return i < json_array_size(rows);
}

/* Asks partition `at` for one step: the jobs of the page that go to partition `to` arrive there, or leave where they died. */
static int ask_at(struct weir *w, int64_t now_us, int at, bool arrive, const json_t *page, int to)
{
    const json_t *rows = json_object_get(page, "elsewhere"), *raw = json_object_get(page, "raw");
    const char *script = arrive ? "dead_arrive" : "dead_leave";
    int status = client_at(w, at);
    json_t *answer;
    struct args a = {0};

    if (status < 0)
        return status;
    script_begin(&a, script, w->prefix, now_us);
    if (arrive)
        job_add_seed(&a);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i), *record = json_array_get(raw, i);

        if (!goes_to(row, to))
            continue;
        if (arrive)
            args_add(&a, answer_text(row, "queue"));
        args_add_bytes(&a, json_string_value(record), json_string_length(record));
    }
    status = client_ask(w, script, &a, &answer);
    json_decref(answer);
    return status;
}

int dead_send_home(struct weir *w, int64_t now_us, const json_t *page)
{
    const json_t *rows = json_object_get(page, "elsewhere");
    int from = w->at, status = 0;

    for (int to = 0; status == 0 && to < client_count(w); to++) {
        if (!any_goes_to(rows, to))
            continue;
        status = ask_at(w, now_us, to, true, page, to);
        if (status == 0)
            status = ask_at(w, now_us, from, false, page, to);
    }
    return status;
}

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

static int64_t page_most(const struct dead_walk *walk)
{
    const char *reason = walk->filter.reason;

    if (strcmp(walk->verb, "count") == 0 || (reason && (strchr(reason, '#') || strstr(reason, "..."))))
        return FOLDED;
    return strcmp(walk->verb, "retry") == 0 ? RETRIES : PAGE_MOST;
}

static void ask_page(struct args *a, void *arg)
{
    const struct dead_walk *walk = arg;
    const struct dead_filter *f = &walk->filter;

    args_add(a, walk->verb);
    args_add_int(a, page_most(walk));
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
    int status = dead_send_home(walk->w, walk->now_us, page);

    return status < 0 ? status : walk->take(page, walk->arg);
}

int dead_walk(const struct dead_walk *walk)
{
    return pages_walk(&(struct pages){.w = walk->w,
                                      .script = "dead",
                                      .now_us = walk->now_us,
                                      .arg = (void *)walk,
                                      .ask = ask_page,
                                      .take = take_page,
                                      .rests = true,
                                      .rows = strcmp(walk->verb, "list") == 0 ? "found" : NULL,
                                      .by = "since",
                                      .down = true});
}

/* ---- What is kept of them */

/* A call of dead_keep() asks each partition. */
struct keeping {
    int64_t now_us;
    const struct dead_bounds *wanted;
    bool write;
    json_t *each; /* their answers */
};

static int keep_here(struct weir *w, void *arg)
{
    const struct keeping *k = arg;
    json_t *kept;
    struct args a = {0};
    int status;

    script_begin(&a, "dead_keep", w->prefix, k->now_us);
    add_number(&a, k->wanted->most);
    add_number(&a, k->wanted->age_us);
    add_number(&a, k->wanted->bytes);
    args_add_int(&a, k->write);
    status = client_ask(w, "dead_keep", &a, &kept);
    if (status == 0 && json_array_append(k->each, kept) < 0)
        status = error_no_memory(&w->error, "dead keep");
    json_decref(kept);
    return status;
}

/* Adds what one partition has to what those before it have. */
static void add_kept(json_t *all, const json_t *kept)
{
    static const char *const sums[] = {"jobs", "beyond"};
    int64_t bytes = answer_int_or(all, "bytes", -1), more = answer_int_or(kept, "bytes", -1);
    int64_t oldest = answer_int(all, "oldest_at"), other = answer_int(kept, "oldest_at");

    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        json_object_set_new(all, sums[i], json_integer(answer_int(all, sums[i]) + answer_int(kept, sums[i])));
    json_object_set_new(all, "bytes", json_integer(bytes < 0 || more < 0 ? -1 : bytes + more));
    if (other > 0 && (oldest <= 0 || other < oldest))
        json_object_set_new(all, "oldest_at", json_integer(other));
}

int dead_keep(struct weir *w, int64_t now_us, const struct dead_bounds *wanted, bool write, json_t **kept)
{
    struct keeping k = {.now_us = now_us, .wanted = wanted, .write = write, .each = json_array()};
    int status = write ? client_change_all(w, keep_here, &k) : client_look_at_all(w, keep_here, &k);

    *kept = status == 0 ? json_deep_copy(json_array_get(k.each, 0)) : NULL;
    for (size_t i = 1; status == 0 && i < json_array_size(k.each); i++)
        add_kept(*kept, json_array_get(k.each, i));
    if (status == 0)
        json_object_set(*kept, "each", k.each);
    json_decref(k.each);
    return status;
}

/* The oldest, until they have more than so many bytes. */
struct oldest {
    int64_t left, jobs;
};

static int take_sizes(const json_t *page, void *arg)
{
    const json_t *sizes = json_object_get(page, "sizes");
    struct oldest *oldest = arg;

    for (size_t i = 0; i < json_array_size(sizes) && oldest->left > 0; i++, oldest->jobs++) {
        int64_t size = answer_int_at(sizes, i);

        oldest->left -= size > 0 ? size : 0;
    }
    return oldest->left <= 0;
}

static int count_oldest(struct weir *w, int64_t now_us, struct oldest *oldest)
{
    int status = pages_walk(&(struct pages){
        .w = w, .script = "dead_sizes", .now_us = now_us, .arg = oldest, .take = take_sizes, .here = true});

    return status < 0 ? status : 0;
}

/* Counts the dead jobs beyond the bounds, of the partition that calls go to. */
static int count_beyond(struct weir *w, int64_t now_us, const json_t *kept, int64_t *jobs)
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
    *jobs += over.jobs > beyond ? over.jobs : beyond;
    return status;
}

int dead_count_beyond(struct weir *w, int64_t now_us, const json_t *kept, int64_t *jobs)
{
    const json_t *each = json_object_get(kept, "each");
    int status = 0;

    *jobs = 0;
    for (size_t p = 0; status == 0 && p < json_array_size(each); p++) {
        status = client_at(w, (int)p);
        if (status == 0)
            status = count_beyond(w, now_us, json_array_get(each, p), jobs);
    }
    return status;
}
