/* Unique jobs: what a lock refuses, and what frees it: each end of its job, its start, its time; and what is
 * left when the job was lost. The scripts under a clock of the test's own, then the command with a real
 * worker. */
#include "tests/scene.h"

#include "core/client/client.h"
#include "core/clock.h"
#include "queue/enqueue/enqueue.h"
#include "tests/stage_group.h"

/* The id that is answered; *result: why. */
static const char *try_enqueue(const char *id, const char *tag, const char *key, int64_t lock_ms,
                               int64_t delay_us, enum enqueue_result *result)
{
    static char answered[200];
    struct enqueue job = {.queue = span_str("default"),
                          .type = span_str("t"),
                          .id = span_str(id),
                          .keep_ms = 1000,
                          .tag = tag,
                          .delay_us = delay_us,
                          .at_us = -1,
                          .unique = span_str(key),
                          .lock_ms = lock_ms};
    struct span holder;
    struct args a = {0};

    job.body = span_str(textf("{\"id\":\"%s\",\"type\":\"t\"}", id));
    enqueue_request(&a, PREFIX, turns.now_us, &job);
    must(turns_send(&a));
    must(enqueue_reply(turns.reply, &job, result, &holder, &turns.error));
    snprintf(answered, sizeof answered, "%.*s", (int)holder.len, holder.at);
    return answered;
}

static void locked(const char *id, const char *key, int64_t lock_ms)
{
    enum enqueue_result result;

    assert_string_equal(try_enqueue(id, "tag", key, lock_ms, -1, &result), id);
    assert_int_equal(result, ENQUEUE_NEW);
}

/* That job holds the key: another one is refused, and nothing is changed. */
static void expect_holder(const char *key, const char *holder)
{
    char *before = turns_digest();
    enum enqueue_result result;

    assert_string_equal(try_enqueue("another", "tag", key, LOCK_UNTIL_END, -1, &result), holder);
    assert_int_equal(result, ENQUEUE_HELD);
    turns_unchanged(before);
}

static void expect_free(const char *key)
{
    assert_int_equal(redis_number("EXISTS", textf(PREFIX "unique:%s", key)), 0);
}

static void finish_one(void)
{
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
}

/* ---- Until it ends */

WORKER_TEST(test_held_until_it_ends)
{
    locked("a", "k", LOCK_UNTIL_END);
    locked("b", "other", LOCK_UNTIL_END);
    expect_text("@0,0,0,stag,uk;{\"id\":\"a\",\"type\":\"t\"}", "LINDEX", QUEUE, "0");
    expect_holder("k", "a");
    assert_int_equal(claim("w", 2, 0), 2);
    expect_holder("k", "a");
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "again");
    expect_holder("k", "a");
    turns.now_us += SECOND_US;
    promote(1);
    expect_holder("k", "a");
    finish_one();
    expect_free("k");
    expect_holder("other", "b");
    turns_check();
}

/* Each way a job ends. */
WORKER_TEST(test_freed_by_each_end)
{
    static const enum settle_verb verbs[] = {SETTLE_FINISH, SETTLE_DEAD, SETTLE_CANCELLED};

    for (size_t i = 0; i < COUNT(verbs); i++) {
        const char *id = textf("j%zu", i);

        locked(id, "k", LOCK_UNTIL_END);
        assert_int_equal(claim("w", 1, 0), 1);
        expect_holder("k", id);
        settle("w", verbs[i], tokens[0], 0, verbs[i] == SETTLE_DEAD ? "never" : NULL);
        expect_free("k");
    }
    turns_check();
}

/* Its workers die with it, once too often. */
SCENE_TEST(test_freed_by_the_last_interruption)
{
    locked("a", "k", LOCK_UNTIL_END);
    for (int i = 0; i < 3; i++) {
        const char *worker = textf("w%d", i);

        expect_holder("k", "a");
        start(worker);
        assert_int_equal(claim(worker, 1, 0), 1);
        start("reaper");
        pass("reaper", 3 * LEASE_US);
    }
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
    expect_free("k");
}

WORKER_TEST(test_handed_back_it_keeps_its_lock)
{
    locked("a", "k", LOCK_UNTIL_END);
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_BACK, tokens[0], 0, NULL);
    expect_holder("k", "a");
    finish_one();
    expect_free("k");
}

/* A lock that was freed by hand and taken by another job is not freed by the first one's end. */
WORKER_TEST(test_only_its_own_lock)
{
    locked("a", "k", LOCK_UNTIL_END);
    assert_int_equal(redis_number("DEL", PREFIX "unique:k"), 1);
    assert_int_equal(claim("w", 1, 0), 1);
    locked("b", "k", LOCK_UNTIL_END);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_holder("k", "b");
}

/* ---- Until it starts */

WORKER_TEST(test_held_until_it_starts)
{
    locked("a", "k", LOCK_UNTIL_START);
    expect_text("@0,0,0,stag,wk;{\"id\":\"a\",\"type\":\"t\"}", "LINDEX", QUEUE, "0");
    expect_holder("k", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_free("k");
    locked("b", "k", LOCK_UNTIL_START);
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "again"); /* the second one holds it */
    expect_holder("k", "b");
    turns.now_us += SECOND_US;
    promote(1);
    assert_int_equal(claim("w", 2, 0), 2);
    expect_free("k");
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    settle("w", SETTLE_FINISH, tokens[1], 0, NULL);
    turns_check();
}

/* Claims look at the heads of few jobs where many are equal. */
WORKER_TEST(test_freed_among_equal_jobs)
{
    for (int i = 0; i < 12; i++) {
        push("default", textf("@0000000{\"id\":\"p%02d\",\"type\":\"t\"}", i));
        if (i == 5 || i == 8)
            locked(i == 5 ? "a" : "b", i == 5 ? "k" : "l", LOCK_UNTIL_START);
    }
    assert_int_equal(claim("w", 14, 0), 14);
    expect_free("k");
    expect_free("l");
}

/* Parked is not started. */
WORKER_TEST(test_held_while_parked)
{
    must(turns_rate("t", CLOSED_RULE));
    enqueue("default", "t", "first");
    locked("a", "k", LOCK_UNTIL_START);
    assert_int_equal(claim("w", 2, 0), 1);
    expect_list(LANE("t"), "a");
    expect_holder("k", "a");
    turns.now_us += 86400 * SECOND_US;
    assert_int_equal(claim("w", 2, 0), 1);
    expect_free("k");
}

/* ---- Scheduled, again, for a time */

WORKER_TEST(test_held_while_scheduled)
{
    enum enqueue_result result;

    try_enqueue("a", "tag", "k", LOCK_UNTIL_END, 5 * SECOND_US, &result);
    assert_int_equal(result, ENQUEUE_NEW);
    expect_holder("k", "a");
    turns.now_us += 5 * SECOND_US;
    promote(1);
    expect_holder("k", "a");
    finish_one();
    expect_free("k");
}

/* The same call whose answer was lost is answered as the first time; another call with the same id, also when
 * that is forgotten, finds the job there. */
SCENE_TEST(test_its_own_lock_does_not_refuse_it)
{
    enum enqueue_result result;

    locked("a", "k", LOCK_UNTIL_END);
    locked("a", "k", LOCK_UNTIL_END);
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
    assert_string_equal(try_enqueue("a", "later", "k", LOCK_UNTIL_END, -1, &result), "a");
    assert_int_equal(result, ENQUEUE_KNOWN);
    assert_int_equal(redis_number("DEL", PREFIX "id:a"), 1);
    assert_string_equal(try_enqueue("a", "later", "k", LOCK_UNTIL_END, -1, &result), "a");
    assert_int_equal(result, ENQUEUE_KNOWN);
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
}

/* A lock for a time does not care for its job. */
WORKER_TEST(test_held_for_a_time)
{
    locked("a", "k", 60000);
    expect_text("{\"id\":\"a\",\"type\":\"t\"}", "LINDEX", QUEUE, "0");
    finish_one();
    expect_holder("k", "a");
}

/* ---- Dead and alive again */

static void revive(const char *id)
{
    must(turns_script("dead", WORDS("retry", "100", "", "", "", "", "", "", "", id, "0")));
}

/* It takes its lock again, unless another job has it by now. */
WORKER_TEST(test_revived)
{
    for (int taken = 0; taken < 2; taken++) {
        locked(taken ? "b" : "a", "k", LOCK_UNTIL_END);
        assert_int_equal(claim("w", 1, 0), 1);
        settle("w", SETTLE_DEAD, tokens[0], 0, "never");
        if (taken)
            locked("c", "k", LOCK_UNTIL_END);
        revive(taken ? "b" : "a");
        expect_holder("k", taken ? "c" : "a");
        assert_int_equal(claim("w", 2, 0), taken + 1);
        for (int i = taken; i >= 0; i--)
            settle("w", SETTLE_FINISH, tokens[i], 0, NULL);
        expect_free("k");
    }
}

/* ---- The command, and a worker */

static struct outcome o;

#define weir(...) run_in(&o, NULL, built("weir"), __VA_ARGS__, "--redis", stage.server.url, NULL)

/* The job was removed by hand: its lock is found by the answer, and freed. */
TEST_WITH(test_lost_job, stage_start, stage_stop)
{
    char id[40];

    weir("enqueue", "t", "--unique", "lost", "--queue", "gone");
    snprintf(id, sizeof id, "%.*s", (int)strcspn(o.out, "\n"), o.out);
    assert_int_equal(stage_number(&stage, "DEL", stage_key(&stage, "queue:gone")), 1);
    weir("enqueue", "t", "--unique", "lost");
    assert_non_null(strstr(o.err, id));
    weir("job", "show", id);
    assert_int_equal(o.code, 66);
    weir("job", "cancel", id, "--unique", "lost");
    assert_int_equal(o.code, 0);
    weir("enqueue", "t", "--unique", "lost", "--json");
    assert_non_null(strstr(o.out, "\"new\":true}"));
}

/* Many ask at once: one job is enqueued each time. */
TEST_WITH(test_many_at_once, stage_start, stage_stop)
{
    run_in(
        &o, NULL, "/bin/sh", "-c",
        textf(
            "for i in 1 2 3 4 5 6 7 8; do %s enqueue once --queue once --unique once --redis %s & done; wait",
            built("weir"), stage.server.url),
        NULL);
    assert_int_equal(o.code, 0);
    assert_int_equal(stage_number(&stage, "LLEN", stage_key(&stage, "queue:once")), 1);
    for (char *at = o.out; *at; at = strchr(at, '\n') + 1)
        assert_memory_equal(at, o.out, strcspn(o.out, "\n"));
}

STAGE_TESTS(turns_start, turns_stop)
