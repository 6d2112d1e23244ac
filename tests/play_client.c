#include "tests/play_words.h"

#include <inttypes.h>

#include "queue/inspect/cancel.h"
#include "queue/inspect/job_act.h"
#include "queue/inspect/why.h"
#include "queue/queues/queues.h"
#include "queue/status/coming.h"
#include "queue/status/status.h"
#include "tests/client.h"
#include "tests/scene_client.h"

static int failed(int rc)
{
    turns.error = w->error;
    return rc;
}

/* ---- What holds a job */

static bool is_nothing(const char *name, const char *text)
{
    static const char usual[] =
        " id list now state entry body_at max_attempts enqueued_at token header passed gate "
        "index limit_name count period ";
    bool counts = strcmp(name, "ahead") == 0 || strcmp(name, "turns_before") == 0;

    return strstr(usual, textf(" %s ", name)) || (strchr("[{", *text) && !strstr(name, "paused")) ||
           strcmp(text, "false") == 0 || strcmp(text, "null") == 0 || (strcmp(text, "0") == 0 && !counts);
}

/* Members of what is said of a job, by name: that are there, and that others do not say too. */
static void put_members(FILE *out, json_t *of)
{
    char *text = json_dumps(of, JSON_COMPACT | JSON_SORT_KEYS);
    json_t *sorted = json_loads(text, 0, NULL), *value;
    const char *name, *comma = "";

    free(text);
    json_object_foreach(sorted, name, value) {
        text = json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        if (!is_nothing(name, text)) {
            fprintf(out, "%s %s%s", comma, name, json_is_true(value) ? "" : " ");
            put_text(out, json_is_true(value) ? "" : text);
            comma = ",";
        }
        free(text);
    }
    json_decref(sorted);
}

static void put_waits(FILE *out, json_t *waits_for)
{
    const char *gate = answer_text(waits_for, "gate");

    if (!waits_for || json_is_null(waits_for))
        return;
    fprintf(out, "; waits for%s%s", *gate ? " " : "", gate);
    if (!*gate)
        put_members(out, waits_for);
    else if (answer_int_or(waits_for, "until", 0))
        put_text(out, textf(" until %" PRId64, answer_int(waits_for, "until")));
}

/* Where a job is, what is known of it, and what holds it. Asking changes nothing. */
static int ask_why(FILE *out)
{
    char *before = turns_digest();
    json_t *why, *gate;
    size_t i;
    int rc = why_read(w, turns.now_us, words[1], &why);

    turns_unchanged(before);
    if (rc != 0)
        return failed(rc);
    fprintf(out, "%s:", answer_text(why, "state"));
    put_members(out, why);
    json_array_foreach(json_object_get(why, "gates"), i, gate) {
        fprintf(out, "; %s:", answer_text(gate, "gate"));
        put_members(out, gate);
    }
    put_waits(out, json_object_get(why, "waits_for"));
    if (json_object_get(why, "worker")) {
        fputs("; worker:", out);
        put_members(out, json_object_get(why, "worker"));
    }
    json_decref(why);
    return 0;
}

/* ---- Jobs that are not to run */

static const char *type_or_all(const char *word)
{
    return *word ? word : NULL;
}

static void put_jobs(FILE *out, const struct queue_jobs *jobs)
{
    fprintf(out, "%" PRId64 " waiting, %" PRId64 " parked", jobs->waiting, jobs->parked);
    if (jobs->marked)
        fprintf(out, ", %" PRId64 " marked", jobs->marked);
}

/* Jobs of the default queue, of a type or all, are counted. */
static int count_jobs(FILE *out)
{
    struct queue_jobs jobs;
    int rc = queue_count(w, turns.now_us, "default", type_or_all(words[1]), &jobs);

    if (rc < 0)
        return failed(rc);
    put_jobs(out, &jobs);
    return 0;
}

/* They are removed, as many as there are. */
static int purge(FILE *out)
{
    const char *type = type_or_all(words[1]);
    struct queue_jobs jobs;
    int rc = queue_count(w, turns.now_us, "default", type, &jobs);

    if (rc == 0)
        rc = queue_purge(w, turns.now_us, "default", type, jobs.waiting + jobs.parked, &jobs);
    if (rc < 0)
        return failed(rc);
    put_jobs(out, &jobs);
    return 0;
}

static int cancel(FILE *out)
{
    json_t *job;
    int rc = cancel_job(w, turns.now_us, words[1], NULL, &job);

    if (rc != 0)
        return failed(rc);
    fprintf(out, "%s, %s", answer_text(job, "state"), answer_text(job, "result"));
    json_decref(job);
    return 0;
}

/* ---- What a limit lets start next */

/* A job is found by one call where it is said to stand. */
static void expect_place(json_t *row)
{
    struct find_place place;
    int64_t before = count_calls();
    json_t *job;

    snprintf(place.at, sizeof place.at, "%s", answer_text(row, "list"));
    snprintf(place.from, sizeof place.from, "%d", (int)(answer_int(row, "of") - answer_int(row, "place")));
    assert_int_equal(find_job_near(w, turns.now_us, answer_text(row, "id"), &place, &job), 0);
    assert_int_equal(count_calls() - before, 1);
    assert_int_equal(answer_int(job, "place"), answer_int(row, "place"));
    assert_int_equal(answer_int(job, "of"), answer_int(row, "of"));
    json_decref(job);
}

static void put_coming(FILE *out, json_t *row)
{
    int64_t start_us = answer_int_or(row, "start", -1);
    const char *key = answer_text(row, "key");

    fprintf(out, "%s", answer_text(row, "id"));
    if (*key)
        fprintf(out, ":%s", key);
    fprintf(out, "@%s", start_us < 0 ? "?" : time_text(start_us - turns.now_us));
}

/* The jobs that start next, each with its key and when; each stands where that says. */
static int ask_coming(FILE *out)
{
    struct limits limits = {0};
    json_t *next = NULL, *row;
    size_t i;
    int rc = status_limits(w, turns.now_us, &limits);

    if (rc == 0)
        rc = coming_ask(w, turns.now_us, &limits, limits_find(&limits, words[1]), atoi(words[2]), &next);
    json_array_foreach(next, i, row) {
        fputs(i ? " " : "", out);
        put_coming(out, row);
        expect_place(row);
    }
    json_decref(next);
    limits_free(&limits);
    return rc < 0 ? failed(rc) : 0;
}

/* ---- Jobs by a search */

/* The ids that each of some searches finds, "a | b", which are the same. */
static void find(FILE *out)
{
    char *rest = textf("%s", words_from(1)), *first = strsep(&rest, "|");
    const char *ids = textf("%s", scene_sorted(scene_find(first, 1000, 100000)));

    expect_found(first, ids);
    for (char *search; (search = strsep(&rest, "|"));)
        expect_found(search, ids);
    fputs(ids, out);
}

/* What a list says of the only job that a search finds. */
static void put_row(FILE *out)
{
    json_t *job, *worker;

    scene_find(words_from(1), 10, 100000);
    assert_int_equal(json_array_size(json_object_get(scene_page, "jobs")), 1);
    job = json_array_get(json_object_get(scene_page, "jobs"), 0);
    fprintf(out, "%s:", answer_text(job, "state"));
    put_members(out, job);
    put_text(out, textf("; enqueued %s", textf("%" PRId64, answer_int_or(job, "enqueued_at", 0))));
    worker = json_object_get(job, "worker");
    if (worker)
        fprintf(out, "; worker %s", answer_text(worker, "name"));
}

/* What cannot run changes nothing. */
static int run_job(FILE *out)
{
    char *before = turns_digest();
    json_t *job;
    int rc = job_run(w, turns.now_us, words[1], &job);

    if (rc != 0) {
        nothing_changed_since(before);
        return failed(rc);
    }
    free(before);
    fprintf(out, "%s, %s", answer_text(job, "was"), answer_text(job, "result"));
    put_waits(out, json_object_get(job, "waits_for"));
    json_decref(job);
    return 0;
}

static void put_batch(FILE *out, const json_t *page)
{
    if (json_object_get(page, "batch"))
        fprintf(out, "; batch %s", answer_text(page, "batch"));
}

static void act_on(FILE *out)
{
    scene_act(words[1], words_from(2), JOB_BOUND_MOST, 100000);
    fprintf(out, "%" PRId64 " done, %" PRId64 " left", answer_int(scene_page, "all"),
            answer_int(scene_page, "all_left"));
    put_batch(out, scene_page);
}

/* To how many it would be done. */
static int count_able(FILE *out)
{
    const struct job_bounds all = {.looked_at = JOB_BOUND_MOST, .jobs = JOB_BOUND_MOST};
    struct job_search s = scene_search(words_from(2));
    json_t *page;
    int rc = job_actions_count_page(w, turns.now_us, &s, words[1], NULL, &all, &page);

    if (rc != 0)
        return failed(rc);
    fprintf(out, "%" PRId64, answer_int(page, "jobs"));
    put_batch(out, page);
    json_decref(page);
    return 0;
}

static int by_search(FILE *out)
{
    if (is("run"))
        return run_job(out);
    if (is("able"))
        return count_able(out);
    if (is("states"))
        scene_states();
    else if (is("find"))
        find(out);
    else if (is("row"))
        put_row(out);
    else if (is("act"))
        act_on(out);
    else
        return OTHER;
    return 0;
}

int play_by_client(FILE *out)
{
    if (is("why"))
        return ask_why(out);
    if (is("count"))
        return count_jobs(out);
    if (is("purge"))
        return purge(out);
    if (is("cancel"))
        return cancel(out);
    if (is("coming"))
        return ask_coming(out);
    return by_search(out);
}
