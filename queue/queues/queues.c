#include "queue/queues/queues.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/pages.h"
#include "core/client/reply.h"
#include "core/likely.h"
#include "core/script/script.h"
#include "queue/inspect/job_act.h"
#include "queue/job/job.h"
#include "queue/limits/rate.h"
#include "queue/status/status_parts.h"
#include "throttle/limit.h"

#define PAGE_MOST 350   /* jobs of a page: each costs some commands when it ends */
#define QUEUES_MOST 100 /* of one queue_rows */

/* Fills w->error with the queue that the name is close to, where there is one. */
static int no_queue(struct weir *w, const char *queue)
{
    const char *likely = NULL, **names = NULL;
    json_t *rows = NULL;

    if (queues_read(w, &rows) == 0 && (names = calloc(json_array_size(rows) + 1, sizeof *names))) {
        for (size_t i = 0; i < json_array_size(rows); i++)
            names[i] = answer_text(json_array_get(rows, i), "name");
        likely = likely_word(queue, names);
    }
    error_set(&w->error, WEIR_ENOTFOUND, "queue %s: there is none; %s%s%s", queue,
              likely ? "did you mean " : "weir queue list shows them", likely ? likely : "",
              likely ? "?" : "");
    free(names);
    json_decref(rows);
    return w->error.status;
}

static void begin(struct weir *w, struct args *a, const char *script)
{
    *a = (struct args){0};
    script_begin(a, script, w->prefix, -1);
}

/* ---- Pausing */

struct halting {
    const char *queue;
    struct pausing how;
    json_t *answer;                 /* of the first partition that knows the queue */
    bool answered[PARTITIONS_MOST]; /* the others are asked again, to create it */
};

static int pause_here(struct weir *w, void *arg)
{
    struct halting *halting = arg;
    json_t *answer;
    struct args a = {0};
    int status;

    if (halting->answered[w->at])
        return 0;
    pause_request(&a, "queue_pause", w->prefix, -1, halting->answer ? NULL : "queue ", halting->queue,
                  &halting->how);
    status = client_ask(w, "queue_pause", &a, &answer);
    halting->answered[w->at] = !json_object_get(answer, "missing");
    if (status == 0)
        status = rate_apply(w, answer);
    if (status == 0 && !halting->answer && halting->answered[w->at])
        halting->answer = json_incref(answer);
    json_decref(answer);
    return status;
}

int queue_pause(struct weir *w, const char *queue, const struct pausing *how, json_t **answer)
{
    struct halting halting = {.queue = queue, .how = *how};
    int status = limit_name_check("queue", queue, &w->error);

    if (status == 0)
        status = client_change_all(w, pause_here, &halting);
    if (status == 0 && !halting.answer)
        status = no_queue(w, queue);
    halting.how.create = true;
    if (status == 0)
        status = client_change_all(w, pause_here, &halting);
    if (status != 0) {
        json_decref(halting.answer);
        halting.answer = NULL;
    }
    *answer = halting.answer;
    return status;
}

/* ---- Going through a queue and its lanes */

struct walk {
    struct weir *w;
    int64_t now_us;
    const char *queue, *type; /* type: "" all */
    int64_t most;             /* jobs to remove; < 0: count */
    struct queue_jobs *jobs;
    bool here, known; /* here: of one partition; known: there is such a queue */
};

#define ENOUGH 1 /* take_page: as many as wanted */

static int64_t rest(const struct walk *walk)
{
    const struct queue_jobs *jobs = walk->jobs;

    return walk->most < 0 ? INT64_MAX : walk->most - jobs->waiting - jobs->parked - jobs->marked;
}

static void ask_page(struct args *a, void *arg)
{
    const struct walk *walk = arg;

    args_add(a, walk->queue);
    args_add(a, walk->most < 0 ? "count" : "remove");
    args_add(a, walk->type);
    args_add_int(a, rest(walk) < PAGE_MOST ? rest(walk) : PAGE_MOST);
}

static int take_page(const json_t *page, void *arg)
{
    struct walk *walk = arg;

    walk->known |= !json_object_get(page, "missing");
    walk->jobs->waiting += answer_int(page, "waiting");
    walk->jobs->parked += answer_int(page, "parked");
    return rest(walk) <= 0 ? ENOUGH : 0;
}

static int walk_queue(struct walk *walk, const char *queue)
{
    const struct pages pages = {.w = walk->w,
                                .script = "queue_purge",
                                .now_us = walk->now_us,
                                .arg = walk,
                                .ask = ask_page,
                                .take = take_page,
                                .here = walk->here};

    walk->queue = queue;
    return rest(walk) > 0 ? pages_walk(&pages) : ENOUGH;
}

/* The queue, and those of its lanes that are to run alone. */
static int walk_all(struct walk *walk)
{
    const char *queue = walk->queue;
    char alone[LIMIT_NAME_SIZE + 1];
    int status = limit_name_check("queue", queue, &walk->w->error);

    *walk->jobs = (struct queue_jobs){0};
    if (status == 0 && *walk->type)
        status = limit_name_check("type", walk->type, &walk->w->error);
    snprintf(alone, sizeof alone, "%s!", queue);
    if (status == 0)
        status = walk_queue(walk, queue);
    if (status == 0 && !walk->known)
        status = no_queue(walk->w, queue);
    if (status == 0)
        status = walk_queue(walk, alone);
    walk->queue = queue;
    return status == ENOUGH ? 0 : status;
}

int queue_count(struct weir *w, int64_t now_us, const char *queue, const char *type, struct queue_jobs *jobs)
{
    return queue_purge(w, now_us, queue, type, -1, jobs);
}

/* Purges the jobs of a type, which stand in the queue among others. */
static int purge_among_others(struct walk *walk)
{
    const struct job_bounds most = {.looked_at = INT64_MAX, .jobs = rest(walk)};
    struct job_search s = {.count = 0};
    struct error *e = &walk->w->error;
    json_t *result = NULL;
    int status = job_search_add(&s, "queue", walk->queue, e);

    if (status == 0)
        status = job_search_add(&s, "type", walk->type, e);
    if (status == 0)
        status = job_search_add(&s, "state", "waiting,held", e);
    if (status == 0)
        status = job_actions(walk->w, walk->now_us, &s, "cancel", NULL, &most, &result);
    walk->jobs->marked = answer_int(result, "marked");
    walk->jobs->waiting += answer_int(result, "jobs") - walk->jobs->marked;
    json_decref(result);
    return status;
}

int queue_purge(struct weir *w, int64_t now_us, const char *queue, const char *type, int64_t most,
                struct queue_jobs *jobs)
{
    struct walk walk = {
        .w = w, .now_us = now_us, .queue = queue, .type = type ? type : "", .most = most, .jobs = jobs};

    int status = walk_all(&walk);

    if (status == 0 && type && most > 0)
        status = purge_among_others(&walk);
    if (status == 0 && most >= 0 && jobs->waiting + jobs->parked > 0)
        rate_note(w, "queue purge %s%s%s: %" PRId64, queue, type ? " of type " : "", type ? type : "",
                  jobs->waiting + jobs->parked);
    return status;
}

/* ---- The list */

static int count_parked(struct weir *w, json_t *row)
{
    struct queue_jobs jobs;
    struct walk walk = {.w = w,
                        .now_us = -1,
                        .queue = answer_text(row, "name"),
                        .type = "",
                        .most = -1,
                        .jobs = &jobs,
                        .here = true};
    int status = walk_all(&walk);

    json_object_set_new(row, "parked", json_integer(jobs.parked));
    return status;
}

/* Fills the rows from *done on; *done: how many are, at least one more. */
static int count_page(struct weir *w, json_t *rows, size_t *done)
{
    json_t *answer, *counts;
    struct args a;
    size_t i, first = *done;
    int status;

    begin(w, &a, "queue_rows");
    for (i = first; i < json_array_size(rows) && i < first + QUEUES_MOST; i++)
        args_add(&a, answer_text(json_array_get(rows, i), "name"));
    status = client_ask(w, "queue_rows", &a, &answer);
    json_array_foreach(json_object_get(answer, "rows"), i, counts) {
        json_t *row = json_array_get(rows, first + i);

        json_object_update(row, counts);
        if (status == 0 && row && !json_object_get(row, "parked"))
            status = count_parked(w, row);
        ++*done;
    }
    json_decref(answer);
    if (status == 0 && *done == first)
        status = reply_unexpected("queue_rows", &w->error);
    return status;
}

/* A listing has what queue_list answers. */
struct listing {
    json_t *queues;  /* names -> true */
    json_t *workers; /* id -> the queues that it serves, a text */
};

static int take_names(const json_t *page, void *arg)
{
    struct listing *all = arg;
    json_t *workers = json_object_get(page, "workers"), *raw = json_object_get(page, "raw"), *place;
    const char *id;
    int rc = 0;

    json_object_foreach(workers, id, place)
        rc |= json_object_set(all->workers, id, json_array_get(raw, (size_t)json_integer_value(place)));
    if (json_object_size(json_object_get(page, "queues")) > 0)
        rc |= json_object_update(all->queues, json_object_get(page, "queues"));
    return rc < 0 ? WEIR_EINTERNAL : 0;
}

/* Workers that serve the same queues together: {text: [words, how many], ...}. */
static json_t *group_workers(json_t *workers)
{
    json_t *groups = json_object(), *text, *group;
    const char *id;

    json_object_foreach(workers, id, text) {
        const char *words = json_string_value(text) ? json_string_value(text) : "[]";

        group = json_object_get(groups, words);
        if (!group) {
            group = json_pack("[o?, i]", answer_parse(words, strlen(words)), 0);
            json_object_set_new(groups, words, group);
        }
        json_array_set_new(group, 1, json_integer(answer_int_at(group, 1) + 1));
    }
    return groups;
}

static int64_t count_workers(json_t *groups, const char *queue)
{
    int64_t count = 0;
    const char *words;
    json_t *group;

    json_object_foreach(groups, words, group)
        if (status_is_served(json_array_get(group, 0), queue))
            count += answer_int_at(group, 1);
    return count;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Makes a row for each queue, by name; NULL: out of memory. */
static json_t *make_rows(const struct listing *all)
{
    json_t *groups = group_workers(all->workers), *rows = json_array(), *value;
    const char **names = calloc(json_object_size(all->queues) + 1, sizeof *names), *name;
    size_t count = 0;

    json_object_foreach(all->queues, name, value)
        if (names)
            names[count++] = name;
    if (names)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, json_pack("{s:s, s:I}", "name", names[i], "worker_count",
                                              (json_int_t)count_workers(groups, names[i])));
    if (json_array_size(rows) < json_object_size(all->queues)) {
        json_decref(rows);
        rows = NULL;
    }
    json_decref(groups);
    free(names);
    return rows;
}

static int list_queues(struct weir *w, json_t **rows)
{
    struct listing all = {json_object(), json_object()};
    const struct pages pages = {
        .w = w, .script = "queue_list", .now_us = -1, .arg = &all, .take = take_names, .here = true};
    int status;

    w->error.status = 0;
    status = pages_walk(&pages);
    *rows = status == 0 ? make_rows(&all) : NULL;
    json_decref(all.queues);
    json_decref(all.workers);
    if (w->error.status == 0 && !*rows)
        status = error_no_memory(&w->error, "queue list");
    return status;
}

/* Reads the queues of the partition that calls go to. */
static int read_here(struct weir *w, json_t **rows)
{
    size_t done = 0;
    int status = list_queues(w, rows);

    while (status == 0 && done < json_array_size(*rows))
        status = count_page(w, *rows, &done);
    return status;
}

/* Adds what another partition has of a queue. A worker that serves it does so in each, and is one. */
static void add_counts(json_t *row, const json_t *more)
{
    static const char *const sums[] = {"waiting", "parked"};
    int64_t workers = answer_int(row, "worker_count"), others = answer_int(more, "worker_count");
    json_t *pause = json_object_get(row, "paused"), *other = json_object_get(more, "paused");
    int64_t since_us = answer_int(pause, "since");

    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        json_object_set_new(row, sums[i], json_integer(answer_int(row, sums[i]) + answer_int(more, sums[i])));
    json_object_set_new(row, "worker_count", json_integer(workers > others ? workers : others));
    if (other && paused_earlier(since_us, answer_int(other, "since")) != since_us)
        json_object_set(row, "paused", other);
}

static const char *name_of(const json_t *rows, size_t i)
{
    return answer_text(json_array_get(rows, i), "name");
}

/* Rows of two partitions, both by name. */
static json_t *merge(const json_t *a, const json_t *b)
{
    json_t *merged = json_array();
    size_t i = 0, k = 0;

    while (i < json_array_size(a) || k < json_array_size(b)) {
        int order = i == json_array_size(a)   ? 1
                    : k == json_array_size(b) ? -1
                                              : strcmp(name_of(a, i), name_of(b, k));
        json_t *row = order <= 0 ? json_array_get(a, i++) : json_array_get(b, k);

        if (order == 0)
            add_counts(row, json_array_get(b, k));
        k += order >= 0;
        json_array_append(merged, row);
    }
    return merged;
}

static int read_and_merge(struct weir *w, void *arg)
{
    json_t **all = arg, *before = *all, *rows;
    int status = read_here(w, &rows);

    if (status == 0 && before) {
        *all = merge(before, rows);
        json_decref(before);
    } else if (status == 0) {
        *all = json_incref(rows);
    }
    json_decref(rows);
    return status;
}

int queues_read(struct weir *w, json_t **rows)
{
    int status;

    *rows = NULL;
    status = client_look_at_all(w, read_and_merge, rows);
    if (status != 0) {
        json_decref(*rows);
        *rows = NULL;
    }
    return status;
}
