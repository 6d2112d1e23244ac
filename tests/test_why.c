/* why: where a job is, what holds it, and the start that it is told, against the start that claim then gives
 * it under virtual time; pages of long lanes and of many. */
#include "tests/scene_client.h"

#include "core/client/client.h"
#include "queue/inspect/find_job.h"
#include "queue/inspect/why.h"
#include "tests/play.h"

#define INFO                                                                                                 \
    "{\"host\":\"h\",\"pid\":42,\"executors\":1000,\"queues\":[\"default\",\"far\"],\"types\":[\"t\","       \
    "\"slow\"]}"
#define ACTIVE_W ACTIVE "w"

static json_t *why; /* the last one */

static int stop_all(void **state)
{
    json_decref(why);
    return scene_stop_client(state);
}

/* A worker that says what it runs. */
static void start_worker(void)
{
    start("w");
    redis_do("HSET", ACTIVE_W, "@", INFO);
}

static int try_ask(const char *id)
{
    json_decref(why);
    return why_read(w, turns.now_us, id, &why);
}

/* "place=1": a member; "+5" is 5 seconds after the beginning, "none" that it is not there; gates=2: how many; exact: the start is. */
static bool is_so(char *word)
{
    char *expected = word, *name = strsep(&expected, "=");
    const json_t *value = json_object_get(why, name);

    if (strstr(name, "exact"))
        return json_is_true(json_object_get(why, "at_the_earliest")) == (strcmp(name, "inexact") == 0);
    if (strcmp(name, "gates") == 0)
        return json_array_size(value) == (size_t)atoll(expected);
    if (strcmp(expected, "none") == 0)
        return !value || json_is_null(value);
    if (*expected == '+')
        return answer_int_or(why, name, -1) == BEGIN_US + atoll(expected) * SECOND_US;
    if (json_is_integer(value))
        return json_integer_value(value) == atoll(expected);
    return strcmp(answer_text(why, name), expected) == 0;
}

/* Each word of expected is so. */
static void expect(const char *expected)
{
    char *words = strdup(expected), *rest = words, *word;

    while ((word = strsep(&rest, " ")))
        if (*word && !is_so(word))
            fail_msg("not '%s' of '%s': %s", word, expected, json_dumps(why, JSON_INDENT(1)));
    free(words);
}

/* It changes nothing. */
static void ask_why(const char *id, const char *state, const char *expected)
{
    char *before = turns_digest();

    if (try_ask(id) != 0)
        fail_msg("%s: %s", id, w->error.text);
    turns_unchanged(before);
    assert_string_equal(answer_text(why, "state"), state);
    assert_int_equal(answer_int(why, "now"), turns.now_us);
    expect(expected);
}

static void push_job(const char *queue, const char *type, const char *id, const char *more)
{
    push(queue, textf("{\"id\":\"%s\",\"type\":\"%s\"%s}", id, type, more));
}

static void use_at(const char *type, const char *cost, const char *limit)
{
    must(turns_use(type, "use", cost, &limit, limit ? 1 : 0));
}

/* ---- When it starts */

/* Serves the lanes until job id starts, each claim at the time that the last one named; its slot. */
static int64_t start_of(const char *id)
{
    for (int turn = 0; turn < 1000; turn++) {
        must(try_claim("w", 100, 0));
        for (size_t i = 0; i < turns.claim.lease_count; i++) {
            const struct lease *lease = &turns.claim.leases[i];
            struct job_view view;

            assert_int_equal(job_read(lease->body.at, lease->body.len, &view, &turns.error), 0);
            if (view.id.len == strlen(id) && memcmp(view.id.at, id, view.id.len) == 0)
                return lease->slot_us;
        }
        if (!turns.claim.more) {
            assert_true(turns.claim.next_us > 0);
            pass("w", turns.claim.next_us > turns.now_us ? turns.claim.next_us - turns.now_us : 0);
        }
    }
    fail_msg("%s did not start", id);
    return 0;
}

/* Of the 200 jobs of a type the 200th starts when it was told, from its queue and from its lane. */
static void expect_foretold(const char *rules, const char *cost)
{
    for (int parked = 0; parked < 2; parked++) {
        int64_t told_us, began_us, real_us;

        scene_begin(NULL);
        turns.now_us += 123456;
        start_worker();
        must(turns_rate("t", rules));
        if (*cost)
            use_at("t", cost, NULL);
        enqueue_many("t", 200);
        if (parked)
            must(try_claim("w", 100, 0));
        ask_why("t199", parked ? "parked" : "waiting", "exact");
        began_us = turns.now_us;
        told_us = answer_int(why, "start");
        real_us = start_of("t199");
        if (llabs(real_us - told_us) > (real_us - began_us) / 100)
            fail_msg("%s: told %lld us, started %lld us", rules, (long long)(told_us - began_us),
                     (long long)(real_us - began_us));
    }
}

SCENE_TEST(test_starts_come_as_they_were_told)
{
    expect_foretold("gcra:100/60000000/20", "");
    expect_foretold("gcra:10/1000000/4", "3");
    expect_foretold("token-bucket:10/1000000/5", "3");
    expect_foretold("fixed-window:20/7000000/0", "");
    expect_foretold("sliding-log:15/10000000", "2");
    expect_foretold("sliding-window:30/10000000", "");
    expect_foretold("gcra:10/1000000/2 fixed-window:100/60000000/0", "");
}

/* 40 keys share a gate, which lets one job start a second: a job is told to wait for those of the keys before
 * its own, whether its lane is in the ring, asleep at its key's gate, or not made yet. */
SCENE_TEST(test_keys_that_share_a_gate_are_waited_for)
{
    static const struct {
        const char *id;
        const char *state;
    } cases[] = {{"a39", "parked"}, {"a0", "parked"}, {"z", "waiting"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t told_us, began_us, real_us;

        scene_begin(NULL);
        start_worker();
        must(turns_rate("t", "gcra:1/1000000/1 gcra:1/5000000/1,by=key"));
        for (int round = 0; round < 2; round++)
            for (int k = 0; k < 40; k++)
                push_job("default", "t", textf("%c%d", round ? 'a' : 'f', k), textf(",\"key\":\"k%d\"", k));
        must(try_claim("w", 100, 0)); /* f0 starts, and the lane of k0 sleeps */
        must(try_claim("w", 100, 0));
        turns.now_us += 1000;
        push_job("default", "t", "z", ",\"key\":\"new\"");
        ask_why(cases[i].id, cases[i].state, "");
        began_us = turns.now_us;
        told_us = answer_int(why, "start");
        real_us = start_of(cases[i].id);
        if (told_us > real_us || told_us - began_us < 39 * SECOND_US)
            fail_msg("%s: told %lld us, started %lld us", cases[i].id, (long long)(told_us - began_us),
                     (long long)(real_us - began_us));
        expect("inexact");
    }
}

/* Other keys and other types come between: never sooner than it was told. */
SCENE_TEST(test_no_start_is_sooner_than_it_was_told)
{
    int64_t told_us, real_us;

    start_worker();
    must(turns_rate("t", "gcra:5/1000000/2 gcra:1/3000000/2,by=key concurrency:90"));
    must(turns_rate("account", "gcra:4/1000000/2"));
    use("t", "account");
    use_at("slow", "2", "account");
    for (int i = 0; i < 60; i++) {
        const char *id = textf("j%d", i);
        const char *key = textf(",\"key\":\"k%d\"", i % 7);

        push_job("default", i % 3 ? "t" : "slow", id, key);
    }
    ask_why("j58", "waiting", "inexact");
    must(try_claim("w", 50, 0));
    ask_why("j58", "parked", "inexact gates=4");
    told_us = answer_int(why, "start");
    real_us = start_of("j58");
    assert_true(told_us <= real_us);
    assert_true(told_us > BEGIN_US);
}

/* ---- Pages */

SCENE_TEST(test_long_lanes_and_queues_are_paged)
{
    char big[20000];

    start_worker();
    must(turns_rate("t", "1/10000000/1"));
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    enqueue_many("t", 3000);
    for (int i = 0; i < 300; i++)
        push("default", textf("{\"id\":\"big%d\",\"type\":\"t\",\"args\":\"%s\"}", i, big));
    ask_why("t0", "waiting", "place=1 of=3300");
    ask_why("t2999", "waiting", "place=3000 of=3300");
    ask_why("big150", "waiting", "ahead=3150");
    for (int i = 0; i < 8; i++)
        must(try_claim("w", 1000, 0));
    ask_why("t1", "parked", "place=1");
    ask_why("t2999", "parked", "place=2999 start=+29990");
}

SCENE_TEST(test_many_lanes_are_paged)
{
    start_worker();
    must(turns_rate("t", "gcra:1/10000000/1 gcra:100/1000000/100,by=key"));
    must(turns_rate("slow", "gcra:1000/1000000/1000 gcra:1/100000000/1,by=key"));
    for (int i = 0; i < 3000; i++) {
        const char *id = textf("j%d", i);
        const char *key = textf(",\"key\":\"k%d\"", i < 1000 ? 0 : i / 2);

        push_job("default", i < 2000 ? "t" : "slow", id, key);
    }
    for (int i = 0; i < 30; i++)
        must(try_claim("w", 1000, 0));
    ask_why("j500", "parked", "of=999"); /* the lane of k0 */
    expect("place=500");
    ask_why("j1999", "parked", "key=k999"); /* in the ring */
    assert_in_range(answer_int(why, "turns_before"), 1, 500);
    ask_why("j2999", "parked", "key=k1499 turns_before=none"); /* asleep */
    assert_string_equal(answer_text(json_object_get(why, "waits_for"), "gate"), "slow#1/k1499");
}

SCENE_TEST(test_many_queues_take_few_calls)
{
    int64_t before;

    fill_queues(1000);
    before = count_calls();
    assert_int_equal(try_ask("none"), WEIR_ENOTFOUND);
    assert_in_range(count_calls() - before, 1, 150);
    ask_why("w999", "waiting", "");
    ask_why("r500", "parked", "queue=q500 key=a");
    ask_why("s0", "parked", "key=b");
    ask_why("h999", "held", "");
}

/* Where it was last found is where it is looked for first; what is wrong there only costs. */
SCENE_TEST(test_a_job_is_looked_for_where_it_was_seen)
{
    static const char *const ids[] = {"w999", "r500", "s0", "h999"};
    static const struct find_place wrong[] = {
        {"", ""},         {"queue:q1", "0"}, {"queue:q999", "7"},   {"limits", "0"},  {"queues:lanes", ""},
        {"dead", "x"},    {"active:t", "0"}, {"queue:q999", "0 1"}, {"wake:q1", "0"}, {"lane:limits", "0"},
        {"later", "0:0"}, {"queue:q1", ":"}};
    struct find_place place;
    json_t *job;
    int64_t before;

    fill_queues(1000);
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert_int_equal(try_ask(ids[i]), 0);
        snprintf(place.at, sizeof place.at, "%s", answer_text(why, "list"));
        snprintf(place.from, sizeof place.from, "%d",
                 (int)(answer_int(why, "of") - answer_int(why, "place")));
        before = count_calls();
        assert_int_equal(find_job_near(w, turns.now_us, ids[i], &place, &job), 0);
        assert_int_equal(count_calls() - before, 1);
        assert_string_equal(answer_text(job, "list"), place.at);
        json_decref(job);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        before = count_calls();
        assert_true(find_job_near(w, turns.now_us, "w999", &wrong[i], &job) < 0);
        assert_null(job);
        assert_in_range(count_calls() - before, 0, 2);
    }
}

SCENE_TEST(test_it_is_looked_for_near_there_only)
{
    const struct find_place place = {"queue:default", "0"};
    int64_t before;
    json_t *job;

    enqueue_many("t", 20000);
    before = count_calls();
    assert_int_equal(find_job_near(w, turns.now_us, "none", &place, &job), WEIR_ENOTFOUND);
    assert_int_equal(count_calls() - before, 2);
}

/* ---- A part at a time */

static char cursor[4096]; /* where the next part begins; "": at the beginning */

/* One page of a walk. */
static int look_on(const char *id, json_t **job)
{
    int status = find_job_part(w, turns.now_us, id, *cursor ? cursor : NULL, 1, job);

    snprintf(cursor, sizeof cursor, "%s", found_too_early(*job) ? answer_text(*job, "next") : "");
    return status;
}

/* Looks on until it is known where the job is; what looking said last, and how many parts it took. */
static int look_to_the_end(const char *id, json_t **job, int *parts)
{
    int64_t looked_at = 0;
    int status;

    *cursor = '\0';
    for (*parts = 1; (status = look_on(id, job)) == 0 && *cursor; ++*parts) {
        assert_string_equal(answer_text(*job, "id"), id);
        assert_true(answer_int(*job, "looked_at") >= looked_at);
        assert_true(answer_int(*job, "of") >= answer_int(*job, "looked_at"));
        looked_at = answer_int(*job, "looked_at");
        json_decref(*job);
    }
    return status;
}

SCENE_TEST(test_a_job_is_looked_for_a_part_at_a_time)
{
    static const char *const ids[] = {"w0", "w999", "r500", "s0", "h999"};
    json_t *job;
    int parts;

    fill_queues(1000);
    for (size_t i = 0; i < COUNT(ids); i++) {
        assert_int_equal(look_to_the_end(ids[i], &job, &parts), 0);
        assert_string_equal(answer_text(job, "id"), ids[i]);
        assert_non_null(json_object_get(job, "state"));
        json_decref(job);
    }
    assert_int_equal(look_to_the_end("none", &job, &parts), WEIR_ENOTFOUND);
    assert_null(job);
    assert_in_range(parts, 5, 150);
    assert_non_null(strstr(w->error.text, "no such job"));
}

SCENE_TEST(test_a_part_says_how_far_it_has_looked)
{
    json_t *job;
    int parts;

    enqueue_many("t", 20000);
    *cursor = '\0';
    assert_int_equal(look_on("none", &job), 0);
    assert_true(found_too_early(job));
    assert_int_equal(answer_int(job, "of"), 20000);
    json_decref(job);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(look_on("none", &job), 0);
        json_decref(job);
    }
    assert_int_equal(look_on("none", &job), 0);
    assert_in_range(answer_int(job, "looked_at"), 6000, 12000);
    json_decref(job);
    assert_int_equal(look_to_the_end("none", &job, &parts), WEIR_ENOTFOUND);
    assert_int_equal(find_job_part(w, turns.now_us, "none", NULL, INT64_MAX, &job), WEIR_ENOTFOUND);
    assert_non_null(strstr(w->error.text, "was never enqueued; check the id"));
}

static void push_front(const char *key, const char *id)
{
    redis_do("LPUSH", key, textf("{\"id\":\"%s\",\"type\":\"t\"}", id));
}

/* Its state, found at once from where the last look ended; "": passed over. */
static const char *state_on(const char *id)
{
    static char found[32];
    json_t *job;
    int status = find_job_part(w, turns.now_us, id, cursor, INT64_MAX, &job);

    snprintf(found, sizeof found, "%s", answer_text(job, "state"));
    json_decref(job);
    assert_int_equal(status, *found ? 0 : WEIR_ENOTFOUND);
    return found;
}

/* Between two parts a job may go on in its life, or end; one that goes back to where was looked is passed over. */
SCENE_TEST(test_a_job_that_moves_between_parts)
{
    json_t *job;

    start_worker();
    push_job("default", "t", "a", "");
    push_job("default", "t", "b", "");
    enqueue_many("t", 10000);
    *cursor = '\0';
    for (int i = 0; i < 3; i++) {
        assert_int_equal(look_on("a", &job), 0);
        assert_true(found_too_early(job));
        json_decref(job);
    }
    must(try_claim("w", 2, 0));
    assert_string_equal(state_on("a"), "running");
    free(
        redis_text("SET", PREFIX "finished:done", "done 1 w 1 default/t/\n{\"id\":\"done\",\"type\":\"t\"}"));
    assert_string_equal(state_on("done"), "finished");
    push("default", "{\"id\":\"back\",\"type\":\"t\"}"); /* at the tail */
    assert_string_equal(state_on("back"), "");
    assert_non_null(strstr(w->error.text, "has moved meanwhile; look again without the cursor"));
    assert_int_equal(find_job_part(w, turns.now_us, "back", NULL, INT64_MAX, &job), 0);
    json_decref(job);
    push_front(PREFIX "queue:default", "front");
    assert_string_equal(state_on("front"), "waiting");
}

SCENE_TEST(test_wrong_cursors_are_refused)
{
    static const char *const wrong[] = {"",
                                        "x",
                                        "1",
                                        "0,99",
                                        "0,0,later",
                                        "<b>",
                                        "0,0,nowhere,",
                                        "0,0,queues:limits,",
                                        "0,0,later,x:1",
                                        "0,0,active:w,99999999999999999999"};
    static const char *const elsewhere[] = {"0,9",
                                            "0,0,dead,",
                                            "0,0,queue:gone,17",
                                            "0,0,finished,",
                                            "0,0,queues:ring,",
                                            "0,0,queues:lanes,",
                                            "0,0,parked,",
                                            "5000000000,0,later,-inf:0"};
    json_t *job;

    push_job("default", "t", "a", "");
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_int_equal(find_job_part(w, turns.now_us, "a", scene_cursor(wrong[i]), INT64_MAX, &job),
                         WEIR_EINPUT);
        assert_null(job);
        assert_non_null(strstr(w->error.text, "not one; take it as the page before gave it"));
    }
    for (size_t i = 0; i < COUNT(elsewhere); i++) {
        assert_int_equal(find_job_part(w, turns.now_us, "a", scene_cursor(elsewhere[i]), INT64_MAX, &job),
                         WEIR_ENOTFOUND);
        assert_null(job);
    }
    assert_int_equal(find_job_part(w, turns.now_us, "a b", "x", INT64_MAX, &job), WEIR_EINPUT);
    assert_non_null(strstr(w->error.text, "not a valid id"));
}

SCENE_TEST(test_wrong_calls_are_refused)
{
    static const char *const wrong[][6] = {
        {"find_job", "not a name", "10", "", ""},     {"find_job", "a", "0", "", ""},
        {"find_job", "a", "1001", "later", ""},       {"find_job", "a", "10", "limits", ""},
        {"find_job", "a", "10", "later", "", "dead"}, {"ahead", "lane:default/t/", "0", "1000", "t"},
        {"ahead", "lane:default/t/", "x", "1", "t"},  {"ahead", "limits", "0", "1", "t"},
    };
    const char *nothing[] = {"limits", "t", "{}"};

    for (size_t i = 0; i < COUNT(wrong); i++)
        if (turns_script(wrong[i][0], wrong[i] + 1, wrong[i][5] ? 5 : 4) != WEIR_EINPUT &&
            strstr(turns.error.text, "wants") == NULL)
            fail_msg("%s %s was not refused: %s", wrong[i][0], wrong[i][1], turns.error.text);
    assert_true(turns_script("why", nothing, 3) < 0);
    assert_non_null(strstr(turns.error.text, "wants"));
}

PLAY("why")

TESTS(scene_start_client, stop_all)
