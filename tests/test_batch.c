/* Batches: what they count, when they end, what follows them once, and pausing, resuming and cancelling them: the scripts, under a clock of
 * the test's own. */
#include "tests/scene.h"

#include "core/client/client.h"
#include "queue/batch/batch.h"
#include "queue/enqueue/enqueue.h"

#define BATCH PREFIX "batch:b"
#define ASIDE PREFIX "aside:b"

/* 0, or what Redis refuses it with. */
static int try_join(const char *id, const char *batch, const char *type, int64_t delay_us)
{
    struct enqueue job = {.queue = span_str("default"),
                          .type = span_str(type),
                          .id = span_str(id),
                          .keep_ms = 1000,
                          .tag = "tag",
                          .delay_us = delay_us,
                          .at_us = -1,
                          .batch = span_str(batch)};
    struct args a = {0};

    job.body = span_str(textf("{\"id\":\"%s\",\"type\":\"%s\"}", id, type));
    enqueue_request(&a, PREFIX, turns.now_us, &job);
    return turns_send(&a);
}

/* Jobs of type t in batch b: "a b c". */
static void join(const char *ids)
{
    char *rest = textf("%s", ids);

    for (char *id; (id = strsep(&rest, " "));)
        must(try_join(id, "b", "t", -1));
}

static int try_seal(const char *create, const char *queue, const char *type)
{
    return turns_script("batch_seal", WORDS("b", create, queue, type));
}

static void seal(const char *then)
{
    must(try_seal("1", *then ? "default" : "", then));
}

/* verb: "pause" or "cancel"; was: "running", "paused" ... */
static void halt(const char *verb, const char *was)
{
    if (strcmp(verb, "pause") == 0)
        must(turns_ask("batch_pause", WORDS("b", "", "", "1", "pause", "tests")));
    else
        must(turns_ask("batch_cancel", WORDS("b", "0")));
    assert_string_equal(answer_text(turns.answer, "was"), was);
}

/* Pages of that size until none is left; how many pages. */
static int pages(const char *script, const char *most)
{
    const char *words[] = {"b", most, "seed"};
    size_t n = strcmp(script, "batch_resume") == 0 ? 3 : 2;
    int count = 0;

    do {
        must(turns_ask(script, words, n));
        count++;
        assert_true(count < 100);
    } while (answer_int(turns.answer, "aside") > 0);
    return count;
}

static void expect_batch(const char *fields)
{
    expect_fields(BATCH, fields);
}

static void expect_ended(bool ended)
{
    assert_int_equal(redis_number("HEXISTS", BATCH, "ended"), ended);
}

/* One job that follows stands in the queue, and no other ever did. */
static void expect_follower(const char *args)
{
    expect_text(textf("{\"id\":\"b.then\",\"type\":\"next\",\"args\":%s}", args), "LRANGE", QUEUE, "0", "-1");
    expect_counters("next", "enqueued 1");
}

/* Claims one job and ends it. */
static void run_one(enum settle_verb verb)
{
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", verb, tokens[0], verb == SETTLE_RETRY ? SECOND_US : 0, verb == SETTLE_DEAD ? "never" : NULL);
}

static void settle_done_of(const struct span *done, size_t count, const char *batch)
{
    struct args a = {0};

    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_done(&a, "t", span_str(batch), count);
    for (size_t i = 0; i < count; i++)
        settle_token(&a, done[i]);
    assert_int_equal(settled(&a), 0);
}

/* ---- Counting */

WORKER_TEST(test_counts_each_end)
{
    join("a b c d");
    expect_text("@0,0,0,stag,bb;{\"id\":\"a\",\"type\":\"t\"}", "LINDEX", QUEUE, "0");
    expect_batch("total 4");
    assert_int_equal(redis_number("ZSCORE", PREFIX "batches", "b") / SECOND_US, BEGIN_US / SECOND_US);
    run_one(SETTLE_RETRY);
    expect_batch("failed 1, done 0");
    run_one(SETTLE_DEAD);
    expect_batch("dead 1");
    run_one(SETTLE_CANCELLED);
    expect_batch("cancelled 1");
    assert_int_equal(claim("w", 1, 0), 1);
    settle_done_of(tokens, 1, "b");
    expect_batch("total 4, done 1, dead 1, cancelled 1, failed 2");
    turns.now_us += SECOND_US;
    promote(1);
    run_one(SETTLE_FINISH);
    expect_batch("total 4, done 2");
    expect_ended(false); /* not sealed */
    turns.now_us += SECOND_US;
    seal("");
    expect_ended(true);
}

/* Many done jobs of two batches in one settle. */
WORKER_TEST(test_counts_groups)
{
    join("a b c d e");
    enqueue("default", "t", "x y");
    assert_int_equal(claim("w", 10, 0), 7);
    settle_done_of(tokens, 4, "b");
    settle_done_of(tokens + 5, 2, "");
    expect_batch("total 5, done 4");
    settle_done_of(tokens + 4, 1, "b");
    expect_batch("done 5");
    turns_check();
}

/* A lease that was taken back settles nothing and counts nothing. */
WORKER_TEST(test_counts_a_job_once)
{
    struct span late[2];
    char texts[2][200];

    join("a b");
    seal("next");
    assert_int_equal(claim("w", 2, 0), 2);
    memcpy(texts, token_texts, sizeof texts);
    for (int i = 0; i < 2; i++)
        late[i] = (struct span){texts[i], tokens[i].len};
    start("reaper");
    pass("reaper", 3 * LEASE_US); /* w was silent */
    ask.turn = 100;
    assert_int_equal(claim("reaper", 2, 0), 1); /* alone */
    start("w2");
    settle("reaper", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_stale("w", SETTLE_FINISH, late[0]);
    expect_stale("w", SETTLE_FINISH, late[1]);
    expect_batch("done 1");
    expect_ended(false);
    assert_int_equal(claim("reaper", 2, 0), 1);
    settle("reaper", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_stale("reaper", SETTLE_FINISH, tokens[0]);
    expect_batch("done 2");
    expect_follower("{\"batch\":\"b\",\"total\":2,\"done\":2,\"dead\":0,\"cancelled\":0}");
}

/* Those of two batches whose long names end otherwise are two jobs. */
WORKER_TEST(test_followers_of_long_names)
{
    char name[129], id[2][160];

    for (int i = 0; i < 2; i++) {
        char *body;

        memset(name, 'b', 128);
        name[127] = (char)('a' + i);
        name[128] = '\0';
        must(turns_script("batch_seal", WORDS(name, "1", "default", "next")));
        body = redis_text("LINDEX", QUEUE, "-1");
        assert_int_equal(sscanf(strstr(body, "{"), "{\"id\":\"%159[^\"]", id[i]), 1);
        free(body);
        assert_int_equal(strlen(id[i]), 128);
        assert_string_equal(id[i] + 123, ".then");
    }
    assert_string_not_equal(id[0], id[1]);
}

/* A batch that is no longer remembered, or something else by that name, does not stop its jobs. */
WORKER_TEST(test_forgotten)
{
    join("a b c");
    redis_do("DEL", BATCH);
    run_one(SETTLE_FINISH);
    assert_int_equal(redis_number("EXISTS", BATCH), 0);
    redis_do("SET", BATCH, "foreign");
    run_one(SETTLE_DEAD);
    run_one(SETTLE_RETRY);
    expect_text("foreign", "GET", BATCH);
}

/* The list of batches does not grow by those that are no longer remembered. */
WORKER_TEST(test_names_are_forgotten)
{
    char name[16];

    for (int i = 0; i < 250; i++) {
        snprintf(name, sizeof name, "n%d", i);
        must(try_join(name, name, "t", -1));
        if (i < 50)
            redis_do("DEL", textf(PREFIX "batch:%s", name));
        else
            must(turns_script("batch_seal", (const char *[]){name, "0", "", ""}, 4));
    }
    for (size_t n; (n = claim("w", 50, 0)) > 0;)
        for (size_t i = 0; i < n; i++)
            settle("w", SETTLE_FINISH, tokens[i], 0, NULL);
    assert_in_range(redis_number("ZCARD", PREFIX "batches"), 200,
                    210); /* of those 50, each is seen in all likelihood */
}

/* A body of the largest size has room for its head. */
WORKER_TEST(test_a_large_job)
{
    size_t len = JOB_BODY_MAX;
    char *entry = malloc(len + 20), *body = entry + sprintf(entry, "@0,0,0,bb;");

    memset(body, ' ', len);
    memcpy(body, "{\"id\":\"a\",\"type\":\"t\"", 20);
    body[len - 1] = '}';
    push_bytes((struct span){entry, (size_t)(body - entry) + len});
    expect_leased("w", 1, "a");
    body[len - 1] = ' ';
    body[len] = '}';
    push_bytes((struct span){entry, (size_t)(body - entry) + len + 1});
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
    free(entry);
}

/* ---- Sealing, and what follows */

WORKER_TEST(test_follows_once)
{
    join("a b");
    seal("next");
    expect_ended(false);
    run_one(SETTLE_FINISH);
    expect_ended(false);
    run_one(SETTLE_DEAD);
    expect_ended(true);
    expect_follower("{\"batch\":\"b\",\"total\":2,\"done\":1,\"dead\":1,\"cancelled\":0}");
    seal("next");
    seal("");
    expect_counters("next", "enqueued 1");
    assert_int_equal(redis_number("SISMEMBER", PREFIX "queues", "default"), 1);
    turns_check();
}

/* Its queue is somebody else's: it is dead, and can be retried. */
WORKER_TEST(test_a_follower_without_a_queue_is_not_lost)
{
    join("a");
    seal("next");
    assert_int_equal(claim("w", 1, 0), 1);
    redis_do("SET", QUEUE, "x");
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_ended(true);
    expect_counters("next", "enqueued 1, pulled 1, dead 1");
    redis_do("DEL", QUEUE);
    assert_int_equal(turns_check().dead, 1);
}

/* A dead job that is retried later counts anew, and nothing follows twice. */
WORKER_TEST(test_follows_once_though_revived)
{
    static const char retry[] = "dead retry 100 _ _ _ _ _ _ _ seed 0";

    join("a b");
    seal("next");
    run_one(SETTLE_DEAD);
    must(call_line(retry)); /* before it has ended */
    expect_batch("dead 0");
    run_one(SETTLE_FINISH);
    expect_ended(false);
    run_one(SETTLE_DEAD);
    expect_batch("done 1, dead 1");
    expect_follower("{\"batch\":\"b\",\"total\":2,\"done\":1,\"dead\":1,\"cancelled\":0}");
    redis_do("DEL", QUEUE);
    must(call_line(retry));
    expect_batch("done 1, dead 0");
    expect_ended(false);
    run_one(SETTLE_FINISH);
    expect_batch("done 2, dead 0");
    expect_ended(true);
    assert_int_equal(redis_number("LLEN", QUEUE), 0);
    expect_counters("next", "enqueued 1");
}

WORKER_TEST(test_seals_what_has_ended)
{
    join("a");
    run_one(SETTLE_FINISH);
    seal("next");
    expect_follower("{\"batch\":\"b\",\"total\":1,\"done\":1,\"dead\":0,\"cancelled\":0}");
}

SCENE_TEST(test_seals_nothing)
{
    must(try_seal("0", "default", "next"));
    assert_string_equal(turns.reply->element[0]->str, "none");
    assert_int_equal(redis_number("DBSIZE"), 0);
    seal("next");
    expect_follower("{\"batch\":\"b\",\"total\":0,\"done\":0,\"dead\":0,\"cancelled\":0}");
    expect_ended(true);
}

/* Nothing comes in any more, by either way; the same answer to what did come before. */
SCENE_TEST(test_sealed)
{
    char *before;

    join("a");
    seal("next");
    before = turns_digest();
    assert_int_equal(try_join("b", "b", "t", -1), WEIR_EINPUT);
    assert_string_equal(turns.error.text, "batch b is sealed: it takes no more jobs; use another name");
    assert_int_equal(call_line("append b _ 0 1 s s seed _ 1 t 1 1 q 1 {\"id\":\"x\",\"type\":\"t\"}"),
                     WEIR_EINPUT);
    assert_string_equal(turns.error.text, "batch b is sealed: it takes no more jobs; use another name");
    must(try_join("a", "b", "t", -1));
    assert_int_equal(turns.reply->integer, 1);
    assert_int_equal(try_seal("1", "default", "other"), WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "batch b was sealed for --then next in queue default"));
    assert_int_equal(try_seal("1", "else", "next"), WEIR_EINPUT);
    turns_unchanged(before);
}

SCENE_TEST(test_sealed_without_a_follower)
{
    join("a");
    seal("");
    assert_int_equal(try_seal("1", "default", "next"), WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "batch b was sealed without --then"));
}

/* A chunk with a name counts its jobs, one without does not; both at their place only. */
SCENE_TEST(test_appends)
{
    static const char first[] = "append b _ 0 3 s0 s1 seed -JDOAw- 1 t 2 1 q 2 "
                                "{\"id\":\"x\",\"type\":\"t\"} {\"id\":\"y\",\"type\":\"t\"}";

    must(call_line(first));
    expect_batch("total 2, next 3");
    must(call_line(first));
    assert_string_equal(turns.reply->element[0]->str, "at");
    expect_batch("total 2, next 3");
    must(call_line("append b _ 3 2 s1 s2 seed _ 0 0"));
    expect_batch("total 2, next 5");
    seal("");
    must(call_line(first)); /* a place is told, sealed or not */
    assert_string_equal(turns.reply->element[0]->str, "at");
    must(call_line("append run.1 1000 0 1 s0 s1 seed _ 1 t 1 1 q 1 {\"id\":\"z\",\"type\":\"t\"}"));
    assert_int_equal(redis_number("HEXISTS", PREFIX "batch:run.1", "total"), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "batches"), 1);
}

/* ---- Pausing */

static void expect_aside(int n)
{
    assert_int_equal(redis_number("LLEN", ASIDE), n);
}

/* Waiting and parked jobs go aside as they are met, others run, and all come back in their order, whatever
 * the size of the pages. */
WORKER_TEST(test_pause)
{
    join("a b c d e");
    enqueue("default", "t", "x");
    assert_int_equal(claim("w", 1, 0), 1);
    halt("pause", "running");
    halt("pause", "paused");
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "again");
    expect_leased("w", 10, "x");
    expect_aside(4);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    turns.now_us += SECOND_US;
    promote(1);
    assert_int_equal(claim("w", 10, 0), 0);
    expect_aside(5);
    enqueue("default", "t", "y");
    assert_int_equal(pages("batch_resume", "2"), 3);
    expect_list(QUEUE, "b c d e a y");
    expect_aside(0);
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    expect_leased("w", 10, "b c d e a y");
    turns_check();
}

/* A heartbeat ends it, and puts back what is aside; that of another time, or of another pause, does not. */
WORKER_TEST(test_a_pause_with_a_time_ends_by_itself)
{
    int64_t taken, workers;
    char seed[16];

    join("a b c");
    for (int i = 0; i < 600; i++) {
        sprintf(seed, "j%d", i);
        must(try_join(seed, "b", "t", -1));
    }
    must(turns_pausing("batch_pause", "b", SECOND_US));
    turns.now_us++;
    must(turns_pausing("batch_pause", "b", 2 * SECOND_US));
    expect_text(textf("paused %lld", (long long)turns.now_us - 1), "HGET", PREFIX "halted", "b/b");
    assert_int_equal(redis_number("LLEN", PREFIX "acts"), 2);
    while (redis_number("LLEN", QUEUE) > 0)
        assert_int_equal(claim("w", 10, 0), 0);
    expect_aside(603);
    turns.now_us += 2 * SECOND_US - 1;
    must(turns_reap("w", &taken, &workers));
    expect_aside(603);
    turns.now_us += LEASE_US / 4;
    must(turns_reap("w", &taken, &workers));
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    for (int i = 0; redis_number("LLEN", ASIDE) > 0; i++) {
        assert_int_equal(redis_number("EXISTS", PREFIX "reasons"), 1);
        assert_in_range(i, 0, 30);
        must(turns_reap("w", &taken, &workers));
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "reasons"), 0);
    expect_leased("w", 3, "a b c");
    turns_check();
}

static void beat_later(int64_t later_us)
{
    int64_t taken, workers;

    turns.now_us += later_us;
    must(turns_reap("w", &taken, &workers));
}

/* However many end at one time, a heartbeat ends some, also of those that have no jobs, where nobody has signed a head. */
WORKER_TEST(test_pauses_that_end_together_end_some_a_call)
{
    for (int i = 0; i < 300; i++)
        must(turns_pausing("batch_pause", textf("e%d", i), SECOND_US));
    beat_later(2 * SECOND_US);
    assert_int_equal(redis_number("HLEN", PREFIX "halted"), 50);
    beat_later(SECOND_US);
    assert_int_equal(redis_number("HLEN", PREFIX "halted") + redis_number("EXISTS", PREFIX "reasons"), 0);

    for (int i = 0; i < 400; i++)
        must(try_join(textf("j%d", i), i < 200 ? "b" : "c", "t", -1));
    must(turns_pausing("batch_pause", "b", SECOND_US));
    must(turns_pausing("batch_pause", "c", SECOND_US));
    while (redis_number("LLEN", QUEUE) > 0)
        assert_int_equal(claim("w", 10, 0), 0);
    beat_later(2 * SECOND_US);
    assert_in_range(redis_number("LLEN", QUEUE), 1, 250);
    for (int i = 0; i < 30; i++)
        beat_later(1);
    assert_int_equal(redis_number("LLEN", QUEUE), 400);
    assert_int_equal(redis_number("HLEN", PREFIX "halted") + redis_number("EXISTS", PREFIX "reasons"), 0);
}

/* Its end waits for a key of another kind, and is not forgotten. */
WORKER_TEST(test_a_pause_ends_when_its_keys_allow_it)
{
    static const char *const keys[] = {QUEUE, PREFIX "dead", PREFIX "about"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        turns_flush(NULL);
        start("w");
        join("a");
        must(turns_pausing("batch_pause", "b", SECOND_US));
        assert_int_equal(claim("w", 10, 0), 0);
        expect_aside(1);
        redis_do("RENAMENX", keys[i], "kept");
        redis_do("SET", keys[i], "x");
        beat_later(2 * SECOND_US);
        assert_int_equal(redis_number("HEXISTS", PREFIX "halted", "b/b"), 1);
        redis_do("DEL", keys[i]);
        redis_do("RENAMENX", "kept", keys[i]);
        beat_later(SECOND_US);
        assert_int_equal(redis_number("HLEN", PREFIX "halted") + redis_number("EXISTS", PREFIX "reasons"), 0);
        expect_leased("w", 1, "a");
    }
}

/* Whatever ends a pause takes its words along: else they would count among those that are kept. */
WORKER_TEST(test_no_words_are_left_of_a_pause)
{
    for (int i = 0; i < 3; i++) {
        turns_flush(NULL);
        start("w");
        join("a");
        seal("");
        assert_int_equal(claim("w", 1, 0), 1);
        halt("pause", "running");
        assert_int_equal(redis_number("HEXISTS", PREFIX "reasons", "batch b"), 1);
        if (i == 0)
            assert_int_equal(pages("batch_resume", "500"), 1);
        else if (i == 1)
            halt("cancel", "paused");
        else
            settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
        assert_int_equal(redis_number("EXISTS", PREFIX "reasons"), 0);
    }
}

/* A producer that seals it may end no pause: it ends, and is followed, when it is resumed. */
WORKER_TEST(test_sealed_while_paused)
{
    join("a");
    run_one(SETTLE_FINISH);
    halt("pause", "running");
    seal("next");
    assert_int_equal(redis_number("HEXISTS", BATCH, "ended"), 0);
    assert_int_equal(redis_number("HEXISTS", PREFIX "halted", "b/b"), 1);
    assert_int_equal(redis_number("LLEN", QUEUE), 0);
    assert_int_equal(pages("batch_resume", "500"), 1);
    assert_int_equal(redis_number("HEXISTS", BATCH, "ended"), 1);
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 1); /* next */
}

/* All that was left runs to its end while it is paused: then it is not paused any more. */
WORKER_TEST(test_ends_while_paused)
{
    join("a");
    seal("next");
    assert_int_equal(claim("w", 1, 0), 1);
    halt("pause", "running");
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_ended(true);
    expect_counters("next", "enqueued 1");
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    halt("pause", "ended");
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
}

/* What cannot be read among what is aside is kept with the dead jobs. */
SCENE_TEST(test_resume_buries_the_unreadable)
{
    join("a");
    redis_do("RPUSH", ASIDE, "nonsense", "default/t/\n@0,0,0,bb;{\"id\":\"z\",\"type\":\"t\"}");
    assert_int_equal(pages("batch_resume", "500"), 1);
    expect_list(QUEUE, "z a");
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
}

/* ---- Cancelling */

WORKER_TEST(test_cancel)
{
    join("a b c");
    must(try_join("later", "b", "t", 5 * SECOND_US));
    seal("next");
    assert_int_equal(claim("w", 1, 0), 1);
    halt("cancel", "running");
    halt("cancel", "cancelled");
    halt("pause", "cancelled");
    assert_int_equal(claim("w", 10, 0), 0);
    expect_batch("total 4, cancelled 2");
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL); /* what ran has ended as it did */
    expect_batch("done 1, cancelled 2");
    expect_ended(false);
    turns.now_us += 5 * SECOND_US;
    promote(1);
    assert_int_equal(claim("w", 10, 0), 0);
    expect_batch("done 1, cancelled 3");
    expect_ended(true);
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 0); /* nothing follows */
    expect_counters("next", "enqueued 0");
    turns_check();
}

/* A job that ran when its batch was cancelled ends with its attempt: no retry of it waits. */
WORKER_TEST(test_cancel_ends_what_fails)
{
    static const enum settle_verb verbs[] = {SETTLE_RETRY, SETTLE_THROTTLED, SETTLE_RETRY};

    join("a b c");
    seal("next");
    assert_int_equal(claim("w", 3, 0), 3);
    halt("cancel", "running");
    for (size_t i = 0; i < COUNT(verbs); i++) {
        expect_ended(false);
        settle("w", verbs[i], tokens[i], 3600 * SECOND_US, NULL);
    }
    expect_batch("cancelled 3, failed 0");
    expect_ended(true);
    assert_int_equal(redis_number("EXISTS", PREFIX "later"), 0);
    turns_check();
}

/* It takes no more, and what was to follow does not, also after a dead job of it has been retried. */
WORKER_TEST(test_cancel_closes)
{
    join("a b");
    run_one(SETTLE_DEAD);
    must(try_seal("1", "default", "next"));
    halt("cancel", "running");
    assert_int_equal(try_join("c", "b", "t", -1), WEIR_EINPUT);
    assert_string_equal(turns.error.text, "batch b was cancelled: it takes no more jobs; use another name");
    assert_int_equal(try_seal("1", "default", "other"), WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "nothing follows it"));
    assert_int_equal(claim("w", 10, 0), 0);
    expect_ended(true);
    must(call_line("dead retry 100 _ _ _ _ _ _ _ seed 0")); /* no more than it takes a new one */
    assert_int_equal(claim("w", 10, 0), 0);
    expect_batch("done 0, cancelled 1, dead 1");
    expect_counters("next", "enqueued 0");
}

/* What was aside is dropped, page by page, with its locks. */
WORKER_TEST(test_cancel_of_a_paused_batch)
{
    static const char *const resume[] = {"b", "500", "seed"};

    join("a b c d e");
    seal("next");
    redis_do("LSET", QUEUE, "0", "@0,0,0,stag,bb,uk;{\"id\":\"a\",\"type\":\"t\"}");
    redis_do("SET", PREFIX "unique:k", "a");
    halt("pause", "running");
    assert_int_equal(claim("w", 10, 0), 0);
    expect_aside(5);
    must(turns_ask("batch_drop", resume, 2)); /* it is not cancelled */
    expect_aside(5);
    halt("cancel", "paused");
    must(turns_ask("batch_resume", resume, COUNT(resume)));
    assert_string_equal(answer_text(turns.answer, "was"), "cancelled");
    expect_aside(5);
    assert_int_equal(pages("batch_drop", "2"), 3);
    expect_batch("cancelled 5");
    expect_ended(true);
    assert_int_equal(redis_number("EXISTS", PREFIX "unique:k"), 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    assert_int_equal(redis_number("LLEN", QUEUE), 0);
    turns_check();
}

/* ---- Wrong calls */

SCENE_TEST(test_scripts_refuse)
{
    expect_refused(WORDS("batch_seal | b 1 _ | b/b 1 _ _ | b 2 _ _ | b 1 _ t | b 1 q t/t",
                         "batch_pause | b | b/b _ _ 1 x x | b 0 _ 1 x x | b x _ 1 x x | b _ _ 2 x x",
                         "batch_cancel | b | b/b 0 | b x",
                         "batch_resume | b 1 | b/b 1 seed | b 0 seed | b 501 seed | b nan seed | b 1 a/seed",
                         "batch_drop | b | b/b 1 | b 0 | b 501", "batch_show | _ | b c",
                         "batch_list all | -1 | x | 0 1", "batch_list", "batch_list x",
                         "batch_running | b | b/b w | b w x | b w 0 1"));
}

/* Whatever stands under one of our names: refused, named, and nothing written. */
SCENE_TEST(test_foreign_keys)
{
    static const char *const cases[][2] = {
        /* a call, and the key */
        {"batch_seal b 1 default next", PREFIX "batches"},
        {"batch_pause b _ _ 1 x x", PREFIX "halted"},
        {"batch_pause b _ _ 1 x x", PREFIX "reasons"},
        {"batch_cancel b 0", ASIDE},
        {"batch_resume b 10 seed", PREFIX "halted"},
        {"batch_resume b 10 seed", PREFIX "queue:q"},
        {"batch_resume b 10 seed", PREFIX "dead"},
        {"batch_resume b 10 seed", PREFIX "about"},
        {"batch_drop b 10", PREFIX "dead"},
        {"batch_list all", PREFIX "batches"},
        {"batch_list aside", PREFIX "halted"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char *before;

        turns_flush(NULL);
        join("a");
        redis_do("RPUSH", ASIDE, "q/t/\n@0,0,0,bb;{\"id\":\"z\",\"type\":\"t\"}");
        redis_do("DEL", cases[i][1]);
        redis_do("SET", cases[i][1], "foreign");
        before = turns_digest();
        fail_if(call_line(cases[i][0]) != WEIR_ECONFIG || !strstr(turns.error.text, cases[i][1]),
                "%s with a foreign %s: %s", cases[i][0], cases[i][1], turns.error.text);
        turns_unchanged(before);
    }
}

/* ---- Knowing */

static int note_batch(const struct batch *b, void *arg)
{
    int i = (*(int *)arg)++;

    assert_string_equal(b->name, textf("b%03d", i / 4 * 5 + i % 4));
    assert_int_equal(b->total, 1);
    assert_int_equal(b->phase, BATCH_RUNNING);
    return 0;
}

SCENE_TEST(test_list)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    char name[32];
    int count = 0;

    assert_int_equal(batch_each(w, false, note_batch, &count), 0);
    assert_int_equal(count, 0);
    for (int i = 0; i < 250; i++) {
        sprintf(name, "b%03d", i);
        turns.now_us++;
        must(try_join(name, name, "t", -1));
        if (i % 5 == 4) /* forgotten */
            redis_do("DEL", textf(PREFIX "batch:%s", name));
    }
    assert_int_equal(batch_each(w, false, note_batch, &count), 0);
    assert_int_equal(count, 200);
    weir_free(w);
}

/* The rate of the last second or two, and when all have ended at that rate; then that of the whole batch. */
WORKER_TEST(test_rate)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct batch b;
    json_t *ended;

    join("a b c d e f g h i j");
    for (int i = 0; i < 5; i++) {
        turns.now_us += SECOND_US / 2;
        assert_int_equal(claim("w", 1, 0), 1);
        settle_done_of(tokens, 1, "b");
    }
    must(ask_line("batch_show b"));
    batch_row(json_object_get(turns.answer, "batch"), turns.now_us, &b);
    assert_int_equal(b.done, 5);
    assert_int_equal(b.left, 5);
    assert_true(b.rate > 1.9 && b.rate < 2.1);
    must(batch_forecast(w, &b));
    assert_int_equal(b.finish_us - turns.now_us, 2500000);
    assert_true(b.at_rate);
    b.phase = BATCH_PAUSED;
    must(batch_forecast(w, &b));
    assert_int_equal(b.finish_us, -1);
    weir_free(w);
    batch_row(json_object_get(turns.answer, "batch"), turns.now_us + 100 * SECOND_US, &b);
    assert_true(b.rate < 0.1); /* it stands still */
    ended = json_loads("{\"total\":10,\"done\":8,\"dead\":2,\"created\":\"1000000\",\"sealed\":\"2000000\","
                       "\"ended\":\"6000000\"}",
                       0, NULL);
    batch_free(&b);
    batch_row(ended, 100 * SECOND_US, &b);
    assert_int_equal(b.phase, BATCH_ENDED);
    assert_true(b.rate == 2);
    json_decref(ended);
}

/* Beyond one page of a worker's leases, and of several workers. */
WORKER_TEST(test_running)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct batch b;
    char id[16];

    start("v");
    for (int i = 0; i < 1500; i++) {
        sprintf(id, "j%d", i);
        must(i % 3 ? try_join(id, "b", "t", -1) : turns_enqueue("default", "t", id, -1));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(claim("w", 450, 0), 450);
        assert_int_equal(claim("v", 150, 0), 150);
    }
    assert_int_equal(batch_read(w, "b", &b), 0);
    assert_int_equal(b.total, 1000);
    assert_int_equal(b.running, 800);
    batch_free(&b);
    assert_int_equal(batch_read(w, "c", &b), WEIR_ENOTFOUND);
    assert_int_equal(batch_read(w, "c c", &b), WEIR_EINPUT);
    weir_free(w);
}

/* How long it is remembered: from its last move, not while it is paused, and beyond its latest job. */
SCENE_TEST(test_remembered)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct batch_change change;
    json_t *answer;
    const long long month_s = 30 * 86400;

    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "b"}, NULL), 0);
    assert_in_range(redis_number("TTL", BATCH), month_s - 10, month_s);
    assert_int_equal(
        weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "b", .delay_s = 86400 * 60}, NULL), 0);
    assert_in_range(redis_number("TTL", BATCH), 3 * month_s - 10, 3 * month_s);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "b"}, NULL), 0);
    assert_in_range(redis_number("TTL", BATCH), 3 * month_s - 10, 3 * month_s);
    assert_int_equal(batch_pause(w, "b", &(struct pausing){.for_us = RATE_ENDLESS}, &answer), 0);
    json_decref(answer);
    assert_int_equal(redis_number("TTL", BATCH), -1);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "b"}, NULL), 0);
    assert_int_equal(redis_number("TTL", BATCH), -1);
    assert_int_equal(batch_resume(w, "b", &change), 0);
    assert_in_range(redis_number("TTL", BATCH), month_s - 10, month_s);
    assert_int_equal(weir_batch_seal(w, "b", NULL), 0);
    assert_int_equal(weir_batch_seal(w, "none", NULL), WEIR_ENOTFOUND);
    assert_int_equal(weir_batch_seal(w, "b", "a b"), WEIR_EINPUT);
    weir_free(w);
}

TESTS(turns_start, turns_stop)
