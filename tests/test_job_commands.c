/* weir job show and cancel, from outside, of a job in each state; those that take a worker with a real one.
 */
#include "tests/scene_weir.h"

#include <jansson.h>
#include <signal.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "tests/stage.h"
#include "weir.h"

#define CANCELLED PREFIX "cancelled"

/* weir job VERB and its words. */
static int job(const char *words)
{
    const char *line = textf("job %s", words);

    return weir(line);
}

/* The blanks between a sheet's columns become one. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++)
        if (*at != ' ' || at[1] != ' ')
            *to++ = *at;
    *to = '\0';
}

/* weir job show ID has each of these parts, separated by "|". */
static void expect_shown(const char *id, const char *parts)
{
    char line[100], text[400], *rest = text;

    snprintf(line, sizeof line, "show %s", id);
    snprintf(text, sizeof text, "%s", parts);
    if (job(line) != 0)
        fail_msg("job show %s: %d: %s", id, said.code, said.err);
    squeeze(said.out);
    for (char *part; (part = strsep(&rest, "|"));)
        expect_said(part);
}

static json_t *shown(const char *id)
{
    json_t *doc;

    assert_int_equal(job(textf("show --json %s", id)), 0);
    doc = json_loads(said.out, 0, NULL);
    assert_non_null(doc);
    return doc;
}

static void expect_member(json_t *doc, const char *name, const char *value)
{
    char *text = json_dumps(json_object_get(doc, name), JSON_ENCODE_ANY | JSON_COMPACT);

    assert_non_null(text);
    assert_string_equal(text, value);
    free(text);
}

static void expect_cancelled(const char *id, const char *says)
{
    if (job(textf("cancel %s", id)) != 0)
        fail_msg("job cancel %s: %d: %s", id, said.code, said.err);
    expect_said(says);
}

/* ---- Without a worker */

TEST_WITH(test_a_job_that_waits, begin_now, NULL)
{
    json_t *doc;

    start("w");
    use_secret();
    push("default",
         "@2,1,3,s" SECRET ",bweek,ukey,e1795000000000000:it said%0Ano%2C twice;{\"id\":\"a\",\"type\":\"t\","
         "\"timeout\":1.5,\"max_attempts\":4,\"args\":{\"n\":[1,2]}}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
    expect_shown(
        "a", "state: waiting\n|unique: key, until it ends\n|attempts: 2 of 4 used\n|interrupted: 1 time, by|"
             "throttled: 3 times\n|failed last: |as: it said\\x0ano, twice\n|timeout: 1.5s\n|args: "
             "{\"n\":[1,2]}\n");
    doc = shown("a");
    expect_member(doc, "attempts", "2");
    expect_member(doc, "failure", "\"it said\\\\x0ano, twice\"");
    json_decref(doc);

    redis_do("SET", PREFIX "unique:key", "a");
    expect_cancelled("a", "job a is cancelled: it was waiting and is gone\n");
    turns_check();
    assert_int_equal(redis_number("EXISTS", PREFIX "unique:key", CANCELLED, QUEUE), 0);
    assert_int_equal(job("show a"), 66);
    assert_int_equal(job("cancel a"), 66);
}

/* A traceback: its first words, and its last line. */
TEST_WITH(test_a_long_failure_keeps_its_end, begin_now, NULL)
{
    char reason[1000] = "exit 1: Traceback (most recent call last): \xc3\xa9";

    while (strlen(reason) < 900)
        strcat(reason, " File \"/srv/mail/\xc3\xa9t\xc3\xa9.py\", line 12, in send");
    strcat(reason, " ValueError: no such customer: 42");
    start("w");
    enqueue("default", "t", "a b");
    claim("w", 2, 0);
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, reason);
    settle("w", SETTLE_DEAD, tokens[1], 0, reason);
    expect_shown("a", "as: exit 1: Traceback (most recent call last): \xc3\xa9| ... |"
                      " in send ValueError: no such customer: 42\n");
    assert_null(strstr(said.out, "\\x"));
    assert_true(strlen(said.out) < 700);
    expect_shown("b", reason);
    run_in(&said, NULL, built("weir"), "dead", "list", "--redis", turns.server.url, NULL);
    expect_said(" exit 1: Traceback (most recent call");
    expect_said(" ... ");
    expect_said(" in send ValueError: no such customer: 42\n");
    run_in(&said, NULL, built("weir"), "dead", "retry", "--all", "--dry-run", "--redis", turns.server.url,
           NULL);
    expect_said(" in send ValueError: no such customer: #\n");
}

/* Nothing is found among the first 100,000: a list that was told no bound goes on, and says "none" of all alone. */
TEST_WITH(test_a_list_goes_on_until_it_finds_one, begin_now, NULL)
{
    static const char fill[] =
        "for i = 0, 100500 do redis.call('RPUSH', KEYS[1], '{\"id\":\"j' .. i .. '\",\"type\":\"t\"}') end";

    start("w");
    redis_do("EVAL", fill, "1", QUEUE);
    redis_do("SADD", PREFIX "queues", "default");
    assert_int_equal(job("list id:j7"), 0);
    expect_said("j7");
    assert_int_equal(job("list id:none"), 0);
    expect_said("no such jobs\n");
    assert_null(strstr(said.out, "so far"));
    assert_int_equal(job("list id:j7 --most 100000"), 0);
    expect_said("no such jobs so far");
    expect_said("looked at 100,");
}

TEST_WITH(test_a_job_that_is_parked, begin_now, NULL)
{
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    claim("w", 1, 0);
    claim("w", 1, 0);
    expect_shown("b", "state: parked|place: 1 of 2 in its lane");
    expect_cancelled("b", "it was parked and is gone");
    turns.now_us += SECOND_US;
    claim("w", 2, 0);
    expect_leases("c");
    turns_check();
}

TEST_WITH(test_a_job_that_is_aside, begin_now, NULL)
{
    start("w");
    use_secret();
    push("default", "@0,0,0,s" SECRET ",bb;{\"id\":\"a\",\"type\":\"t\"}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
    redis_do("HSET", PREFIX "halted", "b/b", "paused 1795000000000000");
    expect_shown("a", "state: waiting|waits for: batch b, paused|weir batch resume b");
    claim("w", 2, 0);
    expect_shown("a", "state: aside|place: 1 of 1 set aside|weir batch resume b");
    expect_cancelled("a", "it was set aside and is gone");
    expect_counters("t", "set_aside 0, cancelled 1");
    turns_check();
}

TEST_WITH(test_a_scheduled_job_is_gone_at_once, begin_now, NULL)
{
    must(turns_enqueue("default", "t", "a", 3600 * SECOND_US));
    must(turns_enqueue("default", "t", "b", 3600 * SECOND_US));
    expect_shown("a", "state: scheduled|starts");
    expect_cancelled("a", "job a is cancelled: it was scheduled and is gone\n");
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 1);
    expect_counters("t", "scheduled 1, cancelled 1");
    turns_check();
    assert_int_equal(job("cancel a"), 66);
}

TEST_WITH(test_a_job_that_is_to_be_retried, begin_now, NULL)
{
    start("w");
    enqueue("default", "t", "a");
    claim("w", 1, 0);
    settle("w", SETTLE_RETRY, turns.claim.leases[0].token, 3600 * SECOND_US, "no; such\tluck");
    expect_shown("a", "state: retry|starts|1 of 25 used|failed last|as: no; such\\x09luck");
    expect_cancelled("a", "it was to be retried and is gone");
    expect_counters("t", "scheduled 0, retried 1, cancelled 1");
    turns_check();
}

TEST_WITH(test_a_job_that_has_ended_is_not_cancelled, begin_now, NULL)
{
    start("w");
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    settle("w", SETTLE_DEAD, tokens[0], 0, "wrong address");
    settle("w", SETTLE_FINISH, tokens[1], 60000, NULL);
    assert_int_equal(job("cancel a"), 65);
    expect_said("is dead already and will not run; weir dead remove takes it away");
    assert_int_equal(job("cancel b"), 65);
    expect_said("has finished already");
    assert_int_equal(redis_number("EXISTS", CANCELLED), 0);
}

TEST_WITH(test_a_running_job_is_told, begin_now, NULL)
{
    json_t *doc;

    start("w");
    must(turns_rate("t", "1/1000000/1"));
    enqueue("default", "t", "a");
    claim("w", 1, 0);
    expect_shown("a", "state: running|worker: w|since|lease: ends in");
    expect_cancelled("a", "job a runs on worker w, which was asked to stop it");
    expect_text(token_texts[0], "LRANGE", PREFIX "told:w", "0", "-1");
    expect_shown("a", "state: running|cancelled|its worker was asked to stop it");
    doc = shown("a");
    assert_true(json_is_real(json_object_get(doc, "cancelled_at")));
    json_decref(doc);
    /* Handed back instead: it ends. */
    settle("w", SETTLE_BACK, tokens[0], 0, NULL);
    assert_int_equal(redis_number("EXISTS", CANCELLED, LANE("t")), 0);
    expect_counters("t", "cancelled 1, back 1, dead 0, retried 0");
    turns_check();
}

/* It is done all the same: nothing of the cancelling is left, and the next job of that id runs. */
TEST_WITH(test_a_cancelled_job_that_is_done, begin_now, NULL)
{
    int64_t stale;

    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_cancelled("a", "job a runs on worker w, which was asked to stop it");
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    assert_int_equal(stale, 0);
    expect_counters("t", "cancelled 0, done 1");
    assert_int_equal(redis_number("EXISTS", CANCELLED), 0);
    push("default", "{\"id\":\"a\",\"type\":\"t\"}");
    claim("w", 1, 0);
    expect_leases("a");
}

/* Whatever else becomes of it, it ends, for its batch too. */
TEST_WITH(test_a_cancelled_job_that_comes_back_ends, begin_now, NULL)
{
    static const enum settle_verb verbs[] = {SETTLE_RETRY, SETTLE_THROTTLED, SETTLE_BACK, SETTLE_INTERRUPTED,
                                             SETTLE_DEAD};
    enum { REAPED = COUNT(verbs), ADOPTED, ALL };

    for (size_t i = 0; i < ALL; i++) {
        scene_begin(NULL);
        must(turns_rate("t", "10/1000000/10"));
        start("w");
        start("other");
        redis_do("HSET", PREFIX "batch:b", "total", "1", "sealed", "1");
        redis_do("SET", PREFIX "unique:lock", "a");
        use_secret();
        push("default", "@0,2,0,s" SECRET ",bb,ulock;{\"id\":\"a\",\"type\":\"t\"}");
        redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
        assert_int_equal(claim("w", 1, 0), 1);
        must(turns_script("cancel", (const char *[]){"a", "tell", "w", token_texts[0]}, 4));
        if (i == REAPED)
            assert_int_equal(pass("other", LEASE_US), 1);
        else if (i == ADOPTED)
            must(turns_adopt("w2", "w", NULL, 0, default_queue, NULL));
        else
            settle("w", verbs[i], tokens[0], 3, "x");
        expect_counters("t", "cancelled 1, back 1, dead 0, retried 0");
        expect_text("1", "HGET", PREFIX "batch:b", "cancelled");
        assert_int_equal(redis_number("EXISTS", PREFIX "unique:lock", LANE("t"), PREFIX "later",
                                      PREFIX "dead", PREFIX "stop:t/", PREFIX "told:w"),
                         i < REAPED ? 1 : 0); /* "told:w", which goes with w */
        turns_check();
    }
}

/* Under its new id a worker is told of what it has taken along. */
TEST_WITH(test_a_worker_that_reconnects_is_told, begin_now, NULL)
{
    start("w");
    enqueue("default", "t", "a b");
    assert_int_equal(claim("w", 2, 0), 2);
    expect_cancelled("a", "job a runs on worker w, which was asked to stop it");
    must(turns_adopt("w2", "w", tokens, 2, default_queue, NULL));
    assert_int_equal(redis_number("EXISTS", PREFIX "told:w"), 0);
    expect_text(token_texts[0], "LRANGE", PREFIX "told:w2", "0", "-1");
    expect_shown("a", "state: running|cancelled|its worker was asked to stop it");
    must(turns_script("cancel_heard", (const char *[]){"w2", token_texts[0]}, 2));
    assert_int_equal(redis_number("EXISTS", PREFIX "told:w2"), 0);
}

TEST_WITH(test_a_lock_whose_job_is_nowhere, begin_now, NULL)
{
    redis_do("SET", PREFIX "unique:key", "a");
    assert_int_equal(job("cancel a"), 66);
    assert_int_equal(job("cancel b --unique key"), 66);
    assert_int_equal(redis_number("EXISTS", PREFIX "unique:key"), 1);
    assert_int_equal(job("cancel a --unique key"), 0);
    expect_said("job a is nowhere; its unique key key is free");
    assert_int_equal(redis_number("EXISTS", PREFIX "unique:key"), 0);
}

TEST_WITH(test_long_args_are_cut, begin_now, NULL)
{
    char xs[5001];

    start("w");
    memset(xs, 'x', sizeof xs);
    push("default", textf("{\"id\":\"a\",\"type\":\"t\",\"args\":\"%.*s\"}", 5000, xs));
    expect_shown("a", "xxx... (cut; --json has all)\n");
    assert_in_range(strlen(said.out), 2000, 2600);
}

/* Never decoded and encoded again: numbers keep their digits, and what is no JSON its bytes. */
TEST_WITH(test_a_body_is_shown_byte_for_byte, begin_now, NULL)
{
    static const char args[] = "{\"a\":1.10,\"b\":12345678901234567.123,\"c\":1e2,\"\xc3\xa4\":\"\xc3\xbc\"}";
    char body[200], part[240];

    start("w");
    snprintf(body, sizeof body, "{\"id\":\"a\",\"type\":\"t\",\"args\":%s}", args);
    push("default", body);
    push("default", "{\"id\":\"b\",\"type\":\"t\",\"args\":\"\xff\"}");
    push("default", "{\"id\":\"c\", oops");

    snprintf(part, sizeof part, "args: %s\n", args);
    expect_shown("a", part);
    assert_int_equal(job("show --json a"), 0);
    snprintf(part, sizeof part, ",\"body\":%s}\n", body);
    expect_said(part);
    expect_shown("b", "body: {\"id\":\"b\",\"type\":\"t\",\"args\":\"\\xff\"}\n");
    assert_int_equal(job("show --json b"), 0);
    expect_said(",\"raw\":\"eyJpZCI6ImIiLCJ0eXBlIjoidCIsImFyZ3MiOiL/In0=\"}\n");
    expect_shown("c", "body: {\"id\":\"c\", oops\n");
    assert_int_equal(job("show --json c"), 0);
    expect_said(",\"raw\":\"eyJpZCI6ImMiLCBvb3Bz\"}\n");
}

/* ---- With a worker */

static void write_handler(const char *name, const char *lines)
{
    char text[300];

    snprintf(text, sizeof text, "#!/bin/sh\n%s\n", lines);
    write_text(turns.server.folder, name, text);
    snprintf(text, sizeof text, "%s/%s", turns.server.folder, name);
    assert_int_equal(chmod(text, 0755), 0);
}

static bool is_shown(const char *id, const char *part)
{
    const char *line = textf("show %s", id);

    return job(line) == 0 && strstr(said.out, part);
}

TEST_WITH(test_with_a_real_worker, begin_now, NULL)
{
    const char *words[] = {built("weir"),
                           "worker",
                           "--redis",
                           turns.server.url,
                           "--exec",
                           "long=./long",
                           "--exec",
                           "bad=./bad",
                           "--exec",
                           "good=/bin/true",
                           "--keep",
                           "good=1m",
                           "--kill-after",
                           "2s",
                           "-c",
                           "3",
                           NULL};
    struct weir *w = weir_new(turns.server.url, NULL);
    pid_t worker;

    write_handler("long", "echo begun >> begun; exec sleep 60");
    write_handler("bad", "echo broken >&2; exit 1");
    worker = program_start(turns.server.folder, "worker", words);
    enqueue("default", "long", "l");
    enqueue("default", "bad", "b");
    enqueue("default", "good", "g");
    await(is_shown("g", "finished"));
    await(is_shown("b", "retry"));
    expect_said("broken");
    await_text(turns.server.folder, "begun", "begun");
    assert_true(is_shown("l", "running"));
    expect_said("process");
    assert_int_equal(weir_cancel(w, "b"), 0);
    assert_int_equal(weir_cancel(w, "l"), 0);
    await(job("show l") == 66);
    expect_counters("long", "cancelled 1, done 0, dead 0, retried 0");
    assert_int_equal(weir_cancel(w, "l"), WEIR_ENOTFOUND);
    kill(worker, SIGTERM);
    assert_int_equal(program_end(worker), 0);
    turns.now_us = clock_wall_us();
    turns_check();
    weir_free(w);
}

/* On a terminal it asks, unless --yes is given. */
TEST_WITH(test_cancelling_asks_on_a_terminal, begin_now, NULL)
{
    const char *words[] = {built("weir"), "job", "cancel", "a", "--redis", turns.server.url, NULL, NULL};
    char text[2048];

    start("w");
    push("default", "{\"id\":\"a\",\"type\":\"t\"}");
    redis_do("HINCRBY", PREFIX "stats:t", "enqueued", "1");
    assert_int_equal(program_on_terminal(words, "n\n", text, sizeof text), 75);
    assert_non_null(strstr(text, "cancel job a? [y/N]"));
    expect_shown("a", "state: waiting");
    assert_null(strstr(said.out, "cancelled"));
    words[6] = "--yes";
    assert_int_equal(program_on_terminal(words, "", text, sizeof text), 0);
    assert_null(strstr(text, "[y/N]"));
    assert_non_null(strstr(text, "job a is cancelled"));
}

TESTS(turns_start, turns_stop)
