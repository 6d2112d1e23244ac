#include "tests/scene_client.h"

#include "queue/inspect/job_act.h"

json_t *scene_page;

int scene_start_client(void **state)
{
    turns_start(state);
    server = turns.server;
    server_hold_clock(&server);
    w = weir_new(turns.server.url, NULL);
    assert_non_null(w);
    return 0;
}

int scene_stop_client(void **state)
{
    json_decref(scene_page);
    scene_page = NULL;
    weir_free(w);
    return turns_stop(state);
}

const char *scene_cursor(const char *words)
{
    static json_t *cursor;

    json_decref(cursor);
    cursor = job_cursor_seal(words);
    return json_string_value(cursor);
}

/* ---- Jobs by a search */

struct job_search scene_search(const char *text)
{
    struct job_search s = {.count = 0};
    struct error e;

    fail_if(job_search_read(&s, text, &e) != 0, "%s: %s", text, e.text);
    return s;
}

static void add_ids(char out[SCENE_IDS_SIZE], const json_t *jobs)
{
    for (size_t i = 0; i < json_array_size(jobs); i++)
        snprintf(out + strlen(out), SCENE_IDS_SIZE - strlen(out), "%s%s", *out ? " " : "",
                 answer_text(json_array_get(jobs, i), "id"));
}

const char *scene_find(const char *text, int64_t jobs, int64_t looked_at)
{
    static char ids[SCENE_IDS_SIZE];
    const struct job_bounds most = {.looked_at = looked_at, .jobs = jobs};
    struct job_search s = scene_search(text);
    char *cursor = NULL;

    *ids = '\0';
    do {
        const char *next;

        json_decref(scene_page);
        fail_if(job_list_page(w, turns.now_us, &s, cursor, &most, &scene_page) != 0, "%s: %s", text,
                w->error.text);
        add_ids(ids, json_object_get(scene_page, "jobs"));
        assert_true((int64_t)json_array_size(json_object_get(scene_page, "jobs")) <= jobs);
        free(cursor);
        next = answer_text(scene_page, "next");
        cursor = *next ? strdup(next) : NULL;
    } while (cursor);
    assert_int_equal(answer_int(scene_page, "looked_at"), answer_int(scene_page, "of"));
    return ids;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

const char *scene_sorted(const char *text)
{
    static char made[2][SCENE_IDS_SIZE];
    static int next;
    char *rest = textf("%s", text), *parts[2000], *out = made[next ^= 1];
    int count = 0;

    for (char *word; (word = strsep(&rest, " "));)
        parts[count++] = word;
    qsort(parts, (size_t)count, sizeof *parts, by_text);
    *out = '\0';
    for (int i = 0; i < count; i++)
        snprintf(out + strlen(out), SCENE_IDS_SIZE - strlen(out), "%s%s", i ? " " : "", parts[i]);
    return out;
}

void scene_states(void)
{
    start("w");
    use_secret();
    must(turns_rate("slow", "1/1000000000/1"));
    enqueue("default", "slow", "first parked");
    claim("w", 2, 0);
    settle("w", SETTLE_FINISH, tokens[0], 60000, NULL);
    enqueue("default", "other", "held");
    claim("w", 1, 0);
    enqueue("default", "t", "retry dead running");
    claim("w", 3, 0);
    settle("w", SETTLE_RETRY, tokens[0], 3600 * SECOND_US, "no answer, at all");
    settle("w", SETTLE_DEAD, tokens[1], 0, "exit 1: timeout of 3 s");
    redis_do("HSET", PREFIX "halted", "b/night", "paused 1795000000000000");
    push("default", "@0,0,0,s" SECRET ",bnight;{\"id\":\"aside\",\"type\":\"t\"}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
    claim("w", 1, 0);
    must(turns_enqueue("far", "t", "scheduled", 3600 * SECOND_US));
    push("default",
         "@2,1,3,s" SECRET ",bweek;{\"id\":\"waiting\",\"type\":\"t\",\"key\":\"42\",\"args\":{\"n\":7,\"s\":"
         "\"x y\",\"b\":true,\"big\":1234567890123456,\"u\":null,\"in\":{\"n\":-1.5}}}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
}

void expect_found(const char *text, const char *ids)
{
    char *before = turns_digest();

    for (int jobs = 1; jobs < 400; jobs = jobs * 3 + 1)
        assert_string_equal(scene_sorted(scene_find(text, jobs, 100000)), scene_sorted(ids));
    assert_string_equal(scene_sorted(scene_find(text, 1000, 1)), scene_sorted(ids));
    nothing_changed_since(before);
}

void scene_act(const char *action, const char *text, int64_t jobs, int64_t looked_at)
{
    const struct job_bounds most = {.looked_at = looked_at, .jobs = jobs};
    struct job_search s = scene_search(text);
    char *cursor = NULL;
    int64_t done = 0, left = 0;

    do {
        const char *next;

        json_decref(scene_page);
        if (job_actions(w, turns.now_us, &s, action, cursor, &most, &scene_page) != 0)
            fail_msg("%s %s: %s", action, text, w->error.text);
        done += answer_int(scene_page, "jobs");
        left += answer_int(scene_page, "left");
        free(cursor);
        next = answer_text(scene_page, "next");
        cursor = *next ? strdup(next) : NULL;
    } while (cursor && looked_at < INT64_MAX);
    free(cursor);
    json_object_set_new(scene_page, "all", json_integer(done));
    json_object_set_new(scene_page, "all_left", json_integer(left));
}
