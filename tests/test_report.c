/* weir report: each verdict, what it names, and what is wrong besides; at the time of Redis. */
#include "tests/scene.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/clock.h"
#include "queue/batch/batch.h"
#include "queue/inspect/why.h"
#include "queue/queues/queues.h"
#include "queue/status/status.h"
#include "queue/turn/record.h"
#include "serve/page/page.h"
#include "view/document.h"
#include "view/format.h"
#include "view/job.h"
#include "view/report.h"
#include "view/waits.h"
#include "view/workers.h"

static struct weir *w;
static json_t *report; /* the last one */

static int begin(void **state)
{
    w = weir_new(turns.server.url, NULL);
    if (!w || scene_begin(state) < 0)
        return -1;
    turns.now_us = clock_wall_us();
    return 0;
}

static int end(void **state)
{
    json_decref(report);
    report = NULL;
    weir_free(w);
    return 0;
}

static void look(void)
{
    json_decref(report);
    if (view_report(w, false, &report) < 0)
        fail_msg("%s", weir_message(w));
}

static void fail_with_report(const char *expected)
{
    fail_msg("not %s: %s", expected, json_dumps(report, 0));
}

/* "stuck worker 2, limit 1": the verdict, and what holds. */
static void expect_verdict(const char *expected)
{
    char said[400];
    const char *hold, *comma = " ";
    json_t *count;

    look();
    snprintf(said, sizeof said, "%s", answer_text(report, "verdict"));
    json_object_foreach(json_object_get(report, "holds"), hold, count) {
        if (json_integer_value(count) == 0)
            continue;
        snprintf(said + strlen(said), sizeof said - strlen(said), "%s%s %lld", comma, hold,
                 (long long)json_integer_value(count));
        comma = ", ";
    }
    if (strcmp(said, expected) != 0)
        fail_with_report(expected);
}

/* The i-th that is wrong: its state, name and how its text begins; NULL: there are no more than i. */
static void expect_found(size_t i, const char *state, const char *name, const char *text)
{
    const json_t *check = json_array_get(json_object_get(report, "checks"), i);

    if (!state != !check)
        fail_with_report(state ? text : "without checks");
    if (state &&
        (strcmp(answer_text(check, "state"), state) != 0 || strcmp(answer_text(check, "name"), name) != 0 ||
         strncmp(answer_text(check, "text"), text, strlen(text)) != 0))
        fail_with_report(text);
}

static void expect_todo(size_t i, const char *todo)
{
    assert_string_equal(answer_text(json_array_get(json_object_get(report, "checks"), i), "do"), todo);
}

/* Says what it runs, with so many executors; its lease ends so many seconds from now on. */
static void begin_worker(const char *id, int executors, int until_s)
{
    char active[100], said[300], until[32];

    start(id);
    snprintf(active, sizeof active, ACTIVE "%s", id);
    snprintf(said, sizeof said,
             "{\"instance\":\"i%s\",\"host\":\"%s\",\"pid\":1,\"executors\":%d,\"lease\":30,\"queues\":["
             "\"default\",\"far\"],\"types\":[\"t\",\"slow\"]}",
             id, id, executors);
    snprintf(until, sizeof until, "%lld", (long long)clock_wall_us() + until_s * SECOND_US);
    redis_do("HSET", active, "@", said);
    redis_do("ZADD", PREFIX "workers", until, id);
}

static void pause_queue(const char *queue, bool pause)
{
    const struct pausing how = {.for_us = pause ? RATE_ENDLESS : RATE_RESUME, .create = true};
    json_t *before;

    must(queue_pause(w, queue, &how, &before));
    json_decref(before);
}

/* What a worker has counted in this minute. */
static void record(enum record_what what, const char *name, char code, int64_t n, const char *reason)
{
    struct span wrong;
    struct args a = {0};

    record_request(&a, PREFIX, -1);
    record_row(&a, what, (struct span){name, strlen(name)});
    record_count(&a, code, n);
    if (reason)
        record_reason(&a, reason, n);
    must(turns_send(&a));
    must(record_reply(turns.reply, &wrong, &turns.error));
    assert_int_equal(wrong.len, 0);
}

static void fill_slow(void)
{
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c");
    assert_int_equal(claim("w", 5, 0), 1);
}

/* ---- Verdicts */

TEST_WITH(test_idle, begin, end)
{
    expect_verdict("idle");
    begin_worker("w", 5, 60);
    expect_verdict("idle");
    assert_int_equal(answer_int(report, "worker_count"), 1);
    must(turns_enqueue("default", "t", "later", 3600 * SECOND_US));
    expect_verdict("idle");
    assert_int_equal(answer_int(report, "scheduled"), 1);
}

TEST_WITH(test_no_worker, begin, end)
{
    enqueue("default", "t", "a b");
    enqueue("default", "slow", "c");
    expect_verdict("stuck worker 2");
    begin_worker("w", 5, 60);
    expect_verdict("flowing nothing 2");
    enqueue("default", "odd", "d");
    expect_verdict("stuck nothing 2, worker 1");
    assert_string_equal(answer_text(json_array_get(json_object_get(report, "constraints"), 0), "type"),
                        "odd");
}

/* No counter knows jobs that others than Weir pushed: nor when a worker has taken some, so that others are in debt to these. */
TEST_WITH(test_jobs_that_other_programs_pushed, begin, end)
{
    begin_worker("w", 5, 60);
    push("default", "{\"type\":\"t\",\"id\":\"a\"}");
    assert_int_equal(claim("w", 5, 0), 1);
    enqueue("default", "t", "b");
    expect_verdict("flowing nothing 1");
    push("default", "{\"type\":\"new\",\"id\":\"c\",\"cost\":2}");
    push("default", "{\"type\":\"new\",\"id\":\"d\"}");
    expect_verdict("stuck nothing 1, worker 1");
    assert_int_equal(answer_int(json_array_get(json_object_get(report, "constraints"), 0), "jobs"), 2);
    assert_int_equal(answer_int(report, "waiting"), 3);
}

TEST_WITH(test_workers_that_were_told_to_rest, begin, end)
{
    begin_worker("w", 5, 60);
    enqueue("default", "t", "a");
    redis_do("SET", PREFIX "order:iw", "quiet");
    expect_verdict("stuck worker 1");
    redis_do("SET", PREFIX "order:iw", "stop");
    expect_verdict("stuck worker 1");
    redis_do("DEL", PREFIX "order:iw");
    expect_verdict("flowing nothing 1");
}

TEST_WITH(test_limits_and_executors, begin, end)
{
    json_t *row;

    begin_worker("w", 2, 60);
    fill_slow();
    expect_verdict("flowing limit 1");
    row = json_array_get(json_object_get(report, "constraints"), 0);
    assert_string_equal(answer_text(json_object_get(row, "waits_for"), "gate"), "slow#0");
    assert_int_equal(answer_int(row, "jobs"), 2);
    enqueue("default", "t", "d e");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_verdict("flowing executor 1, limit 1");
    row = json_array_get(json_object_get(report, "constraints"), 1);
    assert_int_equal(answer_int(json_object_get(row, "waits_for"), "executors"), 2);
    expect_found(0, NULL, NULL, NULL);
}

/* Enqueued so long ago. */
static void enqueue_at(const char *type, const char *id, int64_t ago_us)
{
    turns.now_us -= ago_us;
    enqueue("default", type, id);
    turns.now_us += ago_us;
}

TEST_WITH(test_a_stall, begin, end)
{
    begin_worker("w", 2, 600);
    enqueue_at("t", "a", 50 * SECOND_US);
    expect_verdict("flowing nothing 1");
    assert_int_equal(claim("w", 1, 0), 1);
    must(turns_settle_done("w", "t", tokens, 1, &(int64_t){0}));
    enqueue_at("t", "b", 200 * SECOND_US);
    expect_verdict("wrong nothing 1");
    expect_found(0, "wrong", "t",
                 "nothing starts, although nothing holds its jobs and executors are free: 1 job, the first "
                 "enqueued 3m 2");
    pause_queue("default", true); /* somebody did that */
    look();
    expect_found(0, NULL, NULL, NULL);
    pause_queue("default", false);
    assert_int_equal(claim("w", 1, 0), 1);
    enqueue_at("t", "c", 200 * SECOND_US);
    expect_verdict("flowing nothing 1"); /* one runs: work goes on */
}

/* A worker that did not look holds its type; the others cannot run it. */
TEST_WITH(test_a_type_that_some_cannot_run, begin, end)
{
    begin_worker("w", 1, 60);
    enqueue("default", "t", "a b c");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_verdict("flowing executor 1");
    redis_do("ZADD", PREFIX "ring:default/t", "1", "");
    redis_do("ZADD", PREFIX "held:default", "1", "t");
    redis_do("RPUSH", PREFIX "lane:default/t/", "{\"id\":\"d\",\"type\":\"t\"}");
    expect_verdict("flowing executor 1");
}

/* ---- One sentence */

static void expect_sentence(const char *who, const json_t *waits_for, const char *expected)
{
    char *said = NULL;
    size_t len;
    FILE *to = open_memstream(&said, &len);

    waits_put(to, waits_for, turns.now_us);
    fclose(to);
    if (strcmp(said, expected) != 0)
        fail_msg("%s: %s, not %s", who, said, expected);
    free(said);
}

static void expect_in_status(const char *type, const char *expected)
{
    struct status status;
    json_t *doc;

    if (status_read(w, &status) < 0)
        fail_msg("%s", weir_message(w));
    doc = document_make(status_type(&status, type)->waits_for, waits_members);
    expect_sentence("status", doc, expected);
    json_decref(doc);
    status_free(&status);
}

static void expect_in_report(const char *type, const char *expected)
{
    json_t *row;
    size_t i;

    look();
    json_array_foreach(json_object_get(report, "constraints"), i, row)
        if (strcmp(answer_text(row, "type"), type) == 0)
            expect_sentence("report", json_object_get(row, "waits_for"), expected);
}

static void expect_in_why(const char *id, const char *expected)
{
    json_t *why;

    if (why_read(w, -1, id, &why) < 0)
        fail_msg("%s", weir_message(w));
    json_t *job = job_document(why);

    expect_sentence("why", json_object_get(job, "waits_for"), expected);
    json_decref(job);
    json_decref(why);
}

static void expect_on_page(const char *path, const char *expected)
{
    struct page_request r = {.path = path};
    struct text out = {0};
    struct error e = {0};
    char waits[200];

    assert_int_equal(page_render(w, &r, &out, &e), 200);
    snprintf(waits, sizeof waits, "waits for <bdi>%s</bdi>", expected);
    if (!memmem(out.at, out.len, waits, strlen(waits)))
        fail_msg("%s does not say: %s", path, waits);
    text_free(&out);
}

static void expect_everywhere(const char *type, const char *id, const char *expected)
{
    const char *of_type = textf("/types/%s", type);
    const char *of_job = textf("/jobs/%s", id);

    expect_in_status(type, expected);
    expect_in_report(type, expected);
    expect_in_why(id, expected);
    expect_on_page("/", expected);
    expect_on_page(of_type, expected);
    expect_on_page(of_job, expected);
}

TEST_WITH(test_of_closed_gates_the_last_to_open_is_said, begin, end)
{
    struct status status;
    const json_t *waits_for;

    begin_worker("w", 2, 60);
    must(turns_rate("slow", "gcra:1/60000000/1 gcra:1/3600000000/1 gcra:1/600000000/1"));
    enqueue("default", "slow", "a b");
    assert_int_equal(claim("w", 2, 0), 1);
    assert_int_equal(status_read(w, &status), 0);
    waits_for = status_type(&status, "slow")->waits_for;
    assert_string_equal(answer_text(waits_for, "gate"), "slow#1");
    assert_string_equal(answer_text(waits_for, "rule"), "1/1h");
    assert_int_equal(answer_int(waits_for, "until"), turns.now_us + 3600 * SECOND_US);
    status_free(&status);
}

TEST_WITH(test_a_gate_that_is_held_for_another_is_said, begin, end)
{
    int64_t held_us = turns.now_us + 5 * SECOND_US;
    struct status status;
    const json_t *waits_for;

    begin_worker("w", 2, 60);
    must(turns_rate("slow", "gcra:10/1000000/5"));
    redis_do("SET", PREFIX "gate:slow#0",
             textf("%" PRId64 " 0 %" PRId64 ",%" PRId64 ",fax - gcra:10/1000000/5 %" PRId64 " 0",
                   turns.now_us, turns.now_us - SECOND_US, held_us, turns.now_us));
    enqueue("default", "slow", "a");
    assert_int_equal(claim("w", 2, 0), 0);
    assert_int_equal(status_read(w, &status), 0);
    waits_for = status_type(&status, "slow")->waits_for;
    assert_string_equal(answer_text(waits_for, "gate"), "slow#0");
    assert_int_equal(answer_int(waits_for, "held_until"), held_us);
    assert_int_equal(answer_int(waits_for, "until"), held_us);
    status_free(&status);
}

TEST_WITH(test_busy_executors_are_said_everywhere, begin, end)
{
    begin_worker("w", 1, 60);
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_everywhere("t", "b", "a free executor: the only one is busy");
    begin_worker("v", 2, 60);
    enqueue("default", "t", "c d");
    assert_int_equal(claim("v", 2, 0), 2);
    expect_everywhere("t", "d", "a free executor: all 3 are busy");
    must(turns_rate("t", "gcra:9/1000000/9")); /* open gates hold nothing */
    expect_everywhere("t", "d", "a free executor: all 3 are busy");
}

TEST_WITH(test_the_worker_that_is_missing_is_said_everywhere, begin, end)
{
    enqueue("default", "t", "a");
    expect_in_status("t", "a worker that takes t: none does; start one");
    expect_in_report("t", "a worker that takes t: none does; start one");
    expect_on_page("/types/t", "a worker that takes t: none does; start one");
    expect_in_why("a", "a worker that takes t from queue default: none does; start one");
}

/* All gates for all keys are open, executors are free: so it is those of the keys, of which the first opens then. */
TEST_WITH(test_gates_of_keys, begin, end)
{
    char expected[200], clock[PHRASE_SIZE];

    begin_worker("w", 5, 60);
    must(turns_rate("slow", "gcra:1/3600000000/1,by=args.customer gcra:9/1000000/9"));
    for (int i = 0; i < 3; i++) {
        redis_do("RPUSH", PREFIX "queue:default",
                 textf("{\"id\":\"%c\",\"type\":\"slow\",\"args\":{\"customer\":7}}", 'a' + i));
    }
    assert_int_equal(claim("w", 5, 0), 1);
    snprintf(expected, sizeof expected, "slow#0, 1 an hour for each args.customer, until %s",
             format_clock(turns.now_us, turns.now_us + 3600 * SECOND_US, clock));
    expect_in_status("slow", expected);
    expect_in_report("slow", expected);
    expect_on_page("/", expected);
    expect_verdict("flowing limit 1");
}

TEST_WITH(test_what_no_gate_ever_lets_through, begin, end)
{
    begin_worker("w", 5, 60);
    must(turns_rate("slow", "1/1000000/9"));
    must(turns_use("slow", "use", "9", (const char *const[]){"slow"}, 0));
    enqueue("default", "slow", "a");
    redis_do("HSET", PREFIX "limits", "slow", "gcra:" CLOSED_RULE);
    expect_verdict("stuck never 1");
    redis_do("HSET", PREFIX "limits", "slow", "x");
    expect_verdict("stuck never 1");
}

TEST_WITH(test_concurrency_opens_when_jobs_end, begin, end)
{
    begin_worker("w", 5, 60);
    must(turns_rate("slow", "concurrency:1"));
    enqueue("default", "slow", "a b");
    assert_int_equal(claim("w", 5, 0), 1);
    expect_verdict("flowing limit 1");
}

TEST_WITH(test_paused_queues, begin, end)
{
    begin_worker("w", 5, 60);
    pause_queue("far", true);
    expect_verdict("idle");
    enqueue("far", "t", "a b");
    expect_verdict("stuck queue 1");
    pause_queue("far", false);
    expect_verdict("flowing nothing 1");
}

TEST_WITH(test_lanes_of_a_paused_queue, begin, end)
{
    begin_worker("w", 5, 60);
    fill_slow();
    pause_queue("far", true);
    expect_verdict("flowing limit 1");
    pause_queue("default", true);
    expect_verdict("stuck queue 1");
    assert_int_equal(answer_int(json_array_get(json_object_get(report, "constraints"), 0), "jobs"), 2);
    pause_queue("far", false);
    expect_verdict("stuck queue 1");
    pause_queue("default", false);
    pause_queue("empty", true);
    pause_queue("far", true);
    enqueue("far", "slow", "d");
    expect_verdict("stuck limit 1, queue 1");
}

/* How many stand in the other queue nobody counts, and they are no stall: the oldest stands in the one that is paused. */
TEST_WITH(test_a_type_of_which_some_stand_in_a_paused_queue, begin, end)
{
    begin_worker("w", 5, 600);
    pause_queue("default", true);
    enqueue_at("t", "a", 200 * SECOND_US);
    enqueue("far", "t", "b");
    expect_verdict("stuck queue 1");
    expect_found(0, NULL, NULL, NULL);
}

TEST_WITH(test_a_queue_that_a_key_stops, begin, end)
{
    const json_t *check;
    json_t *why = NULL;

    begin_worker("w", 5, 60);
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a");
    redis_do("SET", PREFIX "lane:default/slow/", "x");
    assert_int_equal(claim("w", 1, 0), 0);
    expect_verdict("wrong nothing 1");
    check = json_array_get(json_object_get(report, "checks"), 0);
    assert_string_equal(answer_text(check, "name"), "queue default");
    assert_non_null(strstr(answer_text(check, "text"), PREFIX "lane:default/slow/ is a string, not a list"));
    assert_int_equal(view_why(w, "a", NULL, &why), WEIR_ECONFIG);
    assert_non_null(strstr(weir_message(w), PREFIX "lane:default/slow/ is a string, not a list"));
    redis_do("DEL", PREFIX "lane:default/slow/");
    expect_verdict("flowing nothing 1");
}

/* No claim has met it yet. A list of queues fails, and names it too. */
TEST_WITH(test_a_queue_that_cannot_be_read, begin, end)
{
    static const char *const keys[] = {PREFIX "queue:other", PREFIX "sleep:other", PREFIX "held:other"};

    begin_worker("w", 5, 60);
    enqueue("default", "t", "a");
    enqueue("other", "t", "b");
    for (size_t i = 0; i < COUNT(keys); i++) {
        const json_t *check;
        json_t *rows;

        redis_do("DEL", PREFIX "queue:other");
        redis_do("SET", keys[i], "x");
        expect_verdict("wrong nothing 1");
        check = json_array_get(json_object_get(report, "checks"), 0);
        assert_string_equal(answer_text(check, "name"), "queue other");
        assert_non_null(strstr(answer_text(check, "text"), keys[i]));
        assert_int_equal(queues_read(w, &rows), WEIR_ECONFIG);
        assert_non_null(strstr(weir_message(w), keys[i]));
        redis_do("DEL", keys[i]);
    }
}

TEST_WITH(test_nobody_is_heard, begin, end)
{
    begin_worker("w", 5, -60);
    expect_verdict("wrong");
    expect_found(0, "wrong", "workers", "1 worker of 1 silent");
    enqueue("default", "t", "a");
    expect_verdict("unknown worker 1");
    begin_worker("v", 5, 60);
    begin_worker("w", 5, -60);
    expect_verdict("flowing nothing 1");
    expect_found(0, "warning", "workers", "1 worker of 2 silent");
}

TEST_WITH(test_redis_is_away, begin, end)
{
    struct weir *away = weir_new("unix:///nowhere/s", NULL);
    json_t *doc;

    assert_int_equal(view_report(away, false, &doc), WEIR_EUNREACHABLE);
    assert_null(doc);
    weir_free(away);
}

/* ---- What is wrong besides */

TEST_WITH(test_failures, begin, end)
{
    begin_worker("w", 5, 60);
    redis_do("HSET", PREFIX "types", "t", "");
    redis_do("HSET", PREFIX "stats:t", "retried", "4", "dead", "1");
    record(RECORD_TYPE, "t", 'r', 4, NULL);
    expect_verdict("idle");
    expect_found(0, NULL, NULL, NULL);
    record(RECORD_TYPE, "t", 'x', 1, NULL);
    expect_verdict("wrong");
    expect_found(0, "wrong", "t", "each of 5 attempts of the last 10 minutes failed");
    expect_todo(0, "weir dead list --type t");
    record(RECORD_TYPE, "t", 'd', 1, NULL);
    expect_verdict("idle");
    expect_found(0, "warning", "t", "1 job died in the last 10 minutes");
}

/* What failed and is not dead is to be retried: that state finds it. */
TEST_WITH(test_failures_that_are_retried, begin, end)
{
    begin_worker("w", 5, 60);
    redis_do("HSET", PREFIX "types", "t", "");
    redis_do("HSET", PREFIX "stats:t", "retried", "5");
    record(RECORD_TYPE, "t", 'r', 5, NULL);
    expect_verdict("wrong");
    expect_found(0, "wrong", "t", "each of 5 attempts of the last 10 minutes failed");
    expect_todo(0, "weir job list 'type:t state:retry'");
}

/* One that hears no orders is named; the others get theirs. */
TEST_WITH(test_an_old_worker_among_all_that_are_ordered, begin, end)
{
    json_t *orders;

    begin_worker("a", 5, 60);
    begin_worker("b", 5, 60);
    redis_do("HSET", ACTIVE "a", "@", "{\"host\":\"a\",\"pid\":7,\"executors\":5,\"lease\":30}");
    assert_int_equal(view_worker_orders(w, "all", "quiet", &orders), WEIR_ENOTNOW);
    assert_non_null(strstr(weir_message(w), "worker quiet a: an older version"));
    assert_int_equal(json_array_size(orders), 1);
    assert_string_equal(answer_text(json_array_get(orders, 0), "name"), "b");
    assert_int_equal(redis_number("EXISTS", PREFIX "order:ib"), 1);
    json_decref(orders);
}

/* Nobody but who resumes their batch lets them start. */
TEST_WITH(test_jobs_set_aside, begin, end)
{
    const struct pausing how = {.for_us = RATE_ENDLESS, .create = true};
    json_t *answer;
    const json_t *row;
    char *said = NULL;
    size_t size;
    FILE *to;

    must(batch_pause(w, "b", &how, &answer));
    json_decref(answer);
    must(batch_pause(w, "without", &how, &answer));
    json_decref(answer);
    for (int i = 0; i < 2; i++)
        redis_do("RPUSH", PREFIX "aside:b", "default/t/\n{\"id\":\"a\",\"type\":\"t\"}");
    redis_do("HSET", PREFIX "types", "t", "");
    redis_do("HSET", PREFIX "stats:t", "set_aside", "2");
    expect_verdict("stuck batch 1");
    row = json_array_get(json_object_get(report, "constraints"), 0);
    assert_string_equal(answer_text(row, "batch"), "b");
    assert_int_equal(answer_int(row, "jobs"), 2);
    assert_true(json_is_true(json_object_get(row, "stuck")));
    assert_true(json_number_value(json_object_get(
                    json_object_get(json_object_get(row, "waits_for"), "paused"), "since")) > 1e9);
    expect_found(0, NULL, NULL, NULL);
    to = open_memstream(&said, &size);
    report_put_verdict(to, report);
    fclose(to);
    assert_string_equal(said, "jobs of batch b start only when somebody acts");
    free(said);
    begin_worker("w", 5, 60);
    redis_do("HDEL", PREFIX "halted", "b/b");
    redis_do("HSET", PREFIX "stats:t", "set_aside", "0");
    expect_verdict("idle");
}

TEST_WITH(test_slots_and_throttling, begin, end)
{
    begin_worker("w", 5, 60);
    fill_slow();
    record(RECORD_LIMIT, "slow", 'g', 91, NULL);
    record(RECORD_LIMIT, "slow", 'e', 9, NULL);
    expect_verdict("flowing limit 1");
    expect_found(0, NULL, NULL, NULL);
    record(RECORD_LIMIT, "slow", 'l', 3, "429");
    expect_verdict("flowing limit 1");
    expect_found(0, "warning", "limit slow", "12 of 103 slots of the last 10 minutes were lost: 9 had no");
    expect_found(1, "warning", "limit slow", "the other side throttled 3 jobs");
    expect_found(2, NULL, NULL, NULL);
}

TEST_WITH(test_redis_at_a_glance, begin, end)
{
    redis_do("CONFIG", "SET", "maxmemory", "1gb", "maxmemory-policy", "allkeys-lru");
    expect_verdict("wrong");
    expect_found(0, "wrong", "eviction", "maxmemory-policy is allkeys-lru");
    expect_found(1, NULL, NULL, NULL);
    redis_do("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction");
    expect_verdict("idle");
    expect_found(0, NULL, NULL, NULL);
}

TEST_WITH(test_a_history_that_cannot_be_read, begin, end)
{
    redis_do("HSET", PREFIX "types", "t", "");
    redis_do("HSET", PREFIX "stats:t", "retried", "1");
    redis_do("SET", PREFIX "minutes:t/t", "text");
    expect_verdict("idle");
    expect_found(0, "warning", "t", "its history: ");
}

TEST_WITH(test_many_types_are_bounded, begin, end)
{
    char type[24];

    for (int i = 0; i < 25; i++) {
        snprintf(type, sizeof type, "type%d", i);
        enqueue("default", type, i == 20 ? "x y" : type);
    }
    expect_verdict("stuck worker 25");
    assert_int_equal(json_array_size(json_object_get(report, "constraints")), 10);
    assert_int_equal(answer_int(report, "more"), 15);
    assert_string_equal(answer_text(json_array_get(json_object_get(report, "constraints"), 0), "type"),
                        "type20");
}

TESTS(turns_start, turns_stop)
