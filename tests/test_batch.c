/* Batches: what they count, when they end, what follows them once, and pausing, resuming and cancelling them.
 * The scripts under a clock of the test's own, then the command with real workers, which also die. */
#include "tests/scene.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "queue/batch/batch.h"
#include "queue/enqueue/enqueue.h"
#include "tests/proxy.h"
#include "tests/stage_group.h"

#define BATCH PREFIX "batch:b"
#define ASIDE PREFIX "aside:b"

static struct span span_of(const char *text)
{
    return (struct span){text, text ? strlen(text) : 0};
}

/* 0, or what Redis refuses it with. */
static int try_join(const char *id, const char *batch, const char *type, int64_t delay_us)
{
    char body[300];
    struct enqueue job = {.queue = span_of("default"),
                          .type = span_of(type),
                          .id = span_of(id),
                          .keep_ms = 1000,
                          .tag = "tag",
                          .delay_us = delay_us,
                          .at_us = -1,
                          .batch = span_of(batch)};
    struct args a;

    snprintf(body, sizeof body, "{\"id\":\"%s\",\"type\":\"%s\"}", id, type);
    job.body = span_of(body);
    args_init(&a);
    enqueue_request(&a, PREFIX, turns.now_us, &job);
    return turns_send(&a);
}

/* Jobs of type t in batch b: "a b c". */
static void join(const char *ids)
{
    char text[400], *rest = text;

    snprintf(text, sizeof text, "%s", ids);
    for (char *id; (id = strsep(&rest, " "));)
        must(try_join(id, "b", "t", -1));
}

static int try_seal(const char *create, const char *queue, const char *type)
{
    const char *words[] = {"b", create, queue, type};

    return turns_script("batch_seal", words, COUNT(words));
}

static void seal(const char *then)
{
    must(try_seal("1", *then ? "default" : "", then));
}

/* What batch_halt says: "running", "paused" ... */
static void halt(const char *verb, const char *was)
{
    const char *words[] = {"b", verb, "0"};

    must(turns_ask("batch_halt", words, COUNT(words)));
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

/* "total 3, done 1": these fields of batch b. */
static void expect_batch(const char *expected)
{
    char text[400], *rest = text;

    snprintf(text, sizeof text, "%s", expected);
    for (char *one; (one = strsep(&rest, ","));) {
        char name[32], *value;
        int number;

        assert_int_equal(sscanf(one, " %31s %d", name, &number), 2);
        value = redis_text("HGET", BATCH, name);
        if (atoi(value) != number)
            fail_msg("%s: %s, not %d", name, value, number);
        free(value);
    }
}

static void expect_ended(bool ended)
{
    assert_int_equal(redis_number("HEXISTS", BATCH, "ended"), ended);
}

/* One job that follows stands in the queue, and no other ever did. */
static void expect_follower(const char *args)
{
    char body[300];

    snprintf(body, sizeof body, "{\"id\":\"b.then\",\"type\":\"next\",\"args\":%s}", args);
    expect_text(body, "LRANGE", QUEUE, "0", "-1");
    expect_counters("next", "enqueued 1");
}

/* Claims one job and ends it. */
static void run_one(enum settle_verb verb)
{
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
    settle("w", verb, tokens[0], verb == SETTLE_RETRY ? SECOND_US : 0, verb == SETTLE_DEAD ? "never" : NULL);
}

static void settle_done_of(const struct span *done, size_t count, const char *batch)
{
    struct args a;
    int64_t stale;

    args_init(&a);
    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_done(&a, "t", span_of(batch), count);
    for (size_t i = 0; i < count; i++)
        settle_token(&a, done[i]);
    must(turns_send(&a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    assert_int_equal(stale, 0);
}

/* ---- Counting */

static void test_counts_each_end(void **state)
{
    (void)state;
    start("w");
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
    keep_tokens();
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
static void test_counts_groups(void **state)
{
    (void)state;
    start("w");
    join("a b c d e");
    enqueue("default", "t", "x y");
    assert_int_equal(claim("w", 10, 0), 7);
    keep_tokens();
    settle_done_of(tokens, 4, "b");
    settle_done_of(tokens + 5, 2, "");
    expect_batch("total 5, done 4");
    settle_done_of(tokens + 4, 1, "b");
    expect_batch("done 5");
    turns_check();
}

/* A lease that was taken back settles nothing and counts nothing. */
static void test_counts_a_job_once(void **state)
{
    struct span late[2];
    char texts[2][200];

    (void)state;
    start("w");
    join("a b");
    seal("next");
    assert_int_equal(claim("w", 2, 0), 2);
    keep_tokens();
    memcpy(texts, token_texts, sizeof texts);
    for (int i = 0; i < 2; i++)
        late[i] = (struct span){texts[i], tokens[i].len};
    start("reaper");
    pass("reaper", 3 * LEASE_US); /* w was silent */
    ask.turn = 100;
    assert_int_equal(claim("reaper", 2, 0), 1); /* alone */
    keep_tokens();
    start("w2");
    settle("reaper", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_stale("w", SETTLE_FINISH, late[0]);
    expect_stale("w", SETTLE_FINISH, late[1]);
    expect_batch("done 1");
    expect_ended(false);
    assert_int_equal(claim("reaper", 2, 0), 1);
    keep_tokens();
    settle("reaper", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_stale("reaper", SETTLE_FINISH, tokens[0]);
    expect_batch("done 2");
    expect_follower("{\"batch\":\"b\",\"total\":2,\"done\":2,\"dead\":0,\"cancelled\":0}");
}

/* A batch that is no longer remembered, or something else by that name, does not stop its jobs. */
static void test_forgotten(void **state)
{
    (void)state;
    start("w");
    join("a b c");
    free(redis_text("DEL", BATCH));
    run_one(SETTLE_FINISH);
    assert_int_equal(redis_number("EXISTS", BATCH), 0);
    free(redis_text("SET", BATCH, "foreign"));
    run_one(SETTLE_DEAD);
    run_one(SETTLE_RETRY);
    expect_text("foreign", "GET", BATCH);
}

/* The list of batches does not grow by those that are no longer remembered. */
static void test_names_are_forgotten(void **state)
{
    char name[16], key[64];

    (void)state;
    for (int i = 0; i < 250; i++) {
        snprintf(name, sizeof name, "n%d", i);
        must(try_join(name, name, "t", -1));
        snprintf(key, sizeof key, PREFIX "batch:%s", name);
        if (i < 50)
            free(redis_text("DEL", key));
    }
    assert_in_range(redis_number("ZCARD", PREFIX "batches"), 200,
                    210); /* of those 50, each is seen in all likelihood */
}

/* A body of the largest size has room for its head. */
static void test_a_large_job(void **state)
{
    size_t len = JOB_BODY_MAX;
    char *entry = malloc(len + 20), *body = entry + sprintf(entry, "@0,0,0,bb;");

    (void)state;
    start("w");
    memset(body, ' ', len);
    memcpy(body, "{\"id\":\"a\",\"type\":\"t\"", 20);
    body[len - 1] = '}';
    push_bytes((struct span){entry, (size_t)(body - entry) + len});
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("a");
    body[len - 1] = ' ';
    body[len] = '}';
    push_bytes((struct span){entry, (size_t)(body - entry) + len + 1});
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
    free(entry);
}

/* ---- Sealing, and what follows */

static void test_follows_once(void **state)
{
    (void)state;
    start("w");
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
static void test_a_follower_without_a_queue_is_not_lost(void **state)
{
    (void)state;
    start("w");
    join("a");
    seal("next");
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
    free(redis_text("SET", QUEUE, "x"));
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_ended(true);
    expect_counters("next", "enqueued 1, pulled 1, dead 1");
    free(redis_text("DEL", QUEUE));
    assert_int_equal(turns_check().dead, 1);
}

/* A dead job that is retried later counts anew, and nothing follows twice. */
static void test_follows_once_though_revived(void **state)
{
    static const char *const retry[] = {"retry", "100", "", "", "", "", "", "", "", "seed", "0"};

    (void)state;
    start("w");
    join("a b");
    seal("next");
    run_one(SETTLE_DEAD);
    must(turns_script("dead", retry, COUNT(retry))); /* before it has ended */
    expect_batch("dead 0");
    run_one(SETTLE_FINISH);
    expect_ended(false);
    run_one(SETTLE_DEAD);
    expect_batch("done 1, dead 1");
    expect_follower("{\"batch\":\"b\",\"total\":2,\"done\":1,\"dead\":1,\"cancelled\":0}");
    free(redis_text("DEL", QUEUE));
    must(turns_script("dead", retry, COUNT(retry)));
    expect_batch("done 1, dead 0");
    expect_ended(false);
    run_one(SETTLE_FINISH);
    expect_batch("done 2, dead 0");
    expect_ended(true);
    assert_int_equal(redis_number("LLEN", QUEUE), 0);
    expect_counters("next", "enqueued 1");
}

static void test_seals_what_has_ended(void **state)
{
    (void)state;
    start("w");
    join("a");
    run_one(SETTLE_FINISH);
    seal("next");
    expect_follower("{\"batch\":\"b\",\"total\":1,\"done\":1,\"dead\":0,\"cancelled\":0}");
}

static void test_seals_nothing(void **state)
{
    (void)state;
    must(try_seal("0", "default", "next"));
    assert_string_equal(turns.reply->element[0]->str, "none");
    assert_int_equal(redis_number("DBSIZE"), 0);
    seal("next");
    expect_follower("{\"batch\":\"b\",\"total\":0,\"done\":0,\"dead\":0,\"cancelled\":0}");
    expect_ended(true);
}

/* Nothing comes in any more, by either way; the same answer to what did come before. */
static void test_sealed(void **state)
{
    static const char *const chunk[] = {"b", "",     "0", "1", "s",
                                        "s", "seed", "",  "1", "t",
                                        "1", "1",    "q", "1", "{\"id\":\"x\",\"type\":\"t\"}"};
    char *before, *after;

    (void)state;
    join("a");
    seal("next");
    before = turns_digest();
    assert_int_equal(try_join("b", "b", "t", -1), WEIR_EINPUT);
    assert_string_equal(turns.error.text, "batch b is sealed: it takes no more jobs; use another name");
    assert_int_equal(turns_script("append", chunk, COUNT(chunk)), WEIR_EINPUT);
    assert_string_equal(turns.error.text, "batch b is sealed: it takes no more jobs; use another name");
    must(try_join("a", "b", "t", -1));
    assert_int_equal(turns.reply->integer, 1);
    assert_int_equal(try_seal("1", "default", "other"), WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "batch b was sealed for --then next in queue default"));
    assert_int_equal(try_seal("1", "else", "next"), WEIR_EINPUT);
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void test_sealed_without_a_follower(void **state)
{
    (void)state;
    join("a");
    seal("");
    assert_int_equal(try_seal("1", "default", "next"), WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "batch b was sealed without --then"));
}

/* A chunk with a name counts its jobs, one without does not; both at their place only. */
static void test_appends(void **state)
{
    static const char *const first[] = {"b",
                                        "",
                                        "0",
                                        "3",
                                        "s0",
                                        "s1",
                                        "seed",
                                        "JDOAw-",
                                        "1",
                                        "t",
                                        "2",
                                        "1",
                                        "q",
                                        "2",
                                        "{\"id\":\"x\",\"type\":\"t\"}",
                                        "{\"id\":\"y\",\"type\":\"t\"}"};
    static const char *const second[] = {"b", "", "3", "2", "s1", "s2", "seed", "", "0", "0"};
    static const char *const unnamed[] = {"run.1", "1000", "0", "1", "s0",
                                          "s1",    "seed", "",  "1", "t",
                                          "1",     "1",    "q", "1", "{\"id\":\"z\",\"type\":\"t\"}"};

    (void)state;
    must(turns_script("append", first, COUNT(first)));
    expect_batch("total 2, next 3");
    must(turns_script("append", first, COUNT(first)));
    assert_string_equal(turns.reply->element[0]->str, "at");
    expect_batch("total 2, next 3");
    must(turns_script("append", second, COUNT(second)));
    expect_batch("total 2, next 5");
    seal("");
    must(turns_script("append", first, COUNT(first))); /* a place is told, sealed or not */
    assert_string_equal(turns.reply->element[0]->str, "at");
    must(turns_script("append", unnamed, COUNT(unnamed)));
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
static void test_pause(void **state)
{
    (void)state;
    start("w");
    join("a b c d e");
    enqueue("default", "t", "x");
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
    halt("pause", "running");
    halt("pause", "paused");
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "again");
    assert_int_equal(claim("w", 10, 0), 1);
    expect_leases("x");
    expect_aside(4);
    keep_tokens();
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
    assert_int_equal(claim("w", 10, 0), 6);
    expect_leases("b c d e a y");
    turns_check();
}

/* All that was left runs to its end while it is paused: then it is not paused any more. */
static void test_ends_while_paused(void **state)
{
    (void)state;
    start("w");
    join("a");
    seal("next");
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
    halt("pause", "running");
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_ended(true);
    expect_counters("next", "enqueued 1");
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
    halt("pause", "ended");
    assert_int_equal(redis_number("EXISTS", PREFIX "halted"), 0);
}

/* What cannot be read among what is aside is kept with the dead jobs. */
static void test_resume_buries_the_unreadable(void **state)
{
    (void)state;
    join("a");
    free(redis_text("RPUSH", ASIDE, "nonsense", "default/t/\n@0,0,0,bb;{\"id\":\"z\",\"type\":\"t\"}"));
    assert_int_equal(pages("batch_resume", "500"), 1);
    expect_list(QUEUE, "z a");
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
}

/* ---- Cancelling */

static void test_cancel(void **state)
{
    (void)state;
    start("w");
    join("a b c");
    must(try_join("later", "b", "t", 5 * SECOND_US));
    seal("next");
    assert_int_equal(claim("w", 1, 0), 1);
    keep_tokens();
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

/* It takes no more, and what was to follow does not, also after a dead job of it has been retried. */
static void test_cancel_closes(void **state)
{
    static const char *const retry[] = {"retry", "100", "", "", "", "", "", "", "", "seed", "0"};

    (void)state;
    start("w");
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
    must(turns_script("dead", retry, COUNT(retry)));
    run_one(SETTLE_FINISH);
    expect_batch("done 1, cancelled 1, dead 0");
    expect_counters("next", "enqueued 0");
}

/* What was aside is dropped, page by page, with its locks. */
static void test_cancel_of_a_paused_batch(void **state)
{
    static const char *const resume[] = {"b", "500", "seed"};

    (void)state;
    start("w");
    join("a b c d e");
    seal("next");
    free(redis_text("LSET", QUEUE, "0", "@0,0,0,stag,bb,uk;{\"id\":\"a\",\"type\":\"t\"}"));
    free(redis_text("SET", PREFIX "unique:k", "a"));
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

static void test_scripts_refuse(void **state)
{
    static const struct {
        const char *script;
        const char *words[5];
        size_t count;
    } cases[] = {
        {"batch_seal", {"b", "1", "", ""}, 3},
        {"batch_seal", {"b b", "1", "", ""}, 4},
        {"batch_seal", {"b", "2", "", ""}, 4},
        {"batch_seal", {"b", "1", "", "t"}, 4},
        {"batch_seal", {"b", "1", "q", "t t"}, 4},
        {"batch_halt", {"b", "pause"}, 2},
        {"batch_halt", {"b b", "pause", "0"}, 3},
        {"batch_halt", {"b", "stop", "0"}, 3},
        {"batch_halt", {"b", "pause", "x"}, 3},
        {"batch_resume", {"b", "1"}, 2},
        {"batch_resume", {"b b", "1", "seed"}, 3},
        {"batch_resume", {"b", "0", "seed"}, 3},
        {"batch_resume", {"b", "501", "seed"}, 3},
        {"batch_resume", {"b", "nan", "seed"}, 3},
        {"batch_resume", {"b", "1", "a seed"}, 3},
        {"batch_drop", {"b"}, 1},
        {"batch_drop", {"b b", "1"}, 2},
        {"batch_drop", {"b", "0"}, 2},
        {"batch_drop", {"b", "501"}, 2},
        {"batch_show", {""}, 1},
        {"batch_show", {"b", "c"}, 2},
        {"batch_list", {"-1"}, 1},
        {"batch_list", {"x"}, 1},
        {"batch_list", {"0", "1"}, 2},
        {"batch_running", {"b"}, 1},
        {"batch_running", {"b b", "w"}, 2},
        {"batch_running", {"b", "w", "x"}, 3},
        {"batch_running", {"b", "w", "0", "1"}, 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        if (turns_script(cases[i].script, cases[i].words, cases[i].count) != WEIR_EINPUT)
            fail_msg("%s, case %zu: not refused", cases[i].script, i);
    assert_int_equal(redis_number("DBSIZE"), 0);
}

/* Whatever stands under one of our names: refused, named, and nothing written. */
static void test_foreign_keys(void **state)
{
    static const struct {
        const char *script;
        const char *words[4];
        size_t count;
        const char *key;
    } cases[] = {
        {"batch_seal", {"b", "1", "default", "next"}, 4, PREFIX "batches"},
        {"batch_halt", {"b", "pause", "0"}, 3, PREFIX "halted"},
        {"batch_halt", {"b", "cancel", "0"}, 3, ASIDE},
        {"batch_resume", {"b", "10", "seed"}, 3, PREFIX "halted"},
        {"batch_resume", {"b", "10", "seed"}, 3, PREFIX "queue:q"},
        {"batch_resume", {"b", "10", "seed"}, 3, PREFIX "dead"},
        {"batch_resume", {"b", "10", "seed"}, 3, PREFIX "about"},
        {"batch_drop", {"b", "10"}, 2, PREFIX "dead"},
        {"batch_list", {NULL}, 0, PREFIX "batches"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *before, *after;

        turns_flush(NULL);
        join("a");
        free(redis_text("RPUSH", ASIDE, "q/t/\n@0,0,0,bb;{\"id\":\"z\",\"type\":\"t\"}"));
        free(redis_text("DEL", cases[i].key));
        free(redis_text("SET", cases[i].key, "foreign"));
        before = turns_digest();
        if (turns_script(cases[i].script, cases[i].words, cases[i].count) != WEIR_ECONFIG ||
            !strstr(turns.error.text, cases[i].key))
            fail_msg("%s with a foreign %s: %s", cases[i].script, cases[i].key, turns.error.text);
        after = turns_digest();
        assert_string_equal(before, after);
        free(before);
        free(after);
    }
}

/* ---- Knowing */

static int note_batch(const struct batch *b, void *arg)
{
    int i = (*(int *)arg)++;
    char name[32];

    sprintf(name, "b%03d", i / 4 * 5 + i % 4);
    assert_string_equal(b->name, name);
    assert_int_equal(b->total, 1);
    assert_int_equal(b->phase, BATCH_RUNNING);
    return 0;
}

static void test_list(void **state)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    char name[32], key[64];
    int count = 0;

    (void)state;
    assert_int_equal(batch_each(w, note_batch, &count), 0);
    assert_int_equal(count, 0);
    for (int i = 0; i < 250; i++) {
        sprintf(name, "b%03d", i);
        turns.now_us++;
        must(try_join(name, name, "t", -1));
        sprintf(key, PREFIX "batch:%s", name);
        if (i % 5 == 4) /* forgotten */
            free(redis_text("DEL", key));
    }
    assert_int_equal(batch_each(w, note_batch, &count), 0);
    assert_int_equal(count, 200);
    assert_in_range(redis_number("ZCARD", PREFIX "batches"), 200, 220); /* as others begin, they leave */
    weir_free(w);
}

/* The rate of the last second or two, and when all have ended at that rate; then that of the whole batch. */
static void test_rate(void **state)
{
    static const char *const words[] = {"b"};
    struct weir *w = weir_new(turns.server.url, NULL);
    struct batch b;
    json_t *ended;

    (void)state;
    start("w");
    join("a b c d e f g h i j");
    for (int i = 0; i < 5; i++) {
        turns.now_us += SECOND_US / 2;
        assert_int_equal(claim("w", 1, 0), 1);
        keep_tokens();
        settle_done_of(tokens, 1, "b");
    }
    must(turns_ask("batch_show", words, 1));
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
    batch_row(ended, 100 * SECOND_US, &b);
    assert_int_equal(b.phase, BATCH_ENDED);
    assert_true(b.rate == 2);
    json_decref(ended);
}

/* Beyond one page of a worker's leases, and of several workers. */
static void test_running(void **state)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct batch b;
    char id[16];

    (void)state;
    start("w");
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
    assert_int_equal(batch_read(w, "c", &b), WEIR_ENOTFOUND);
    assert_int_equal(batch_read(w, "c c", &b), WEIR_EINPUT);
    weir_free(w);
}

/* How long it is remembered: from its last move, not while it is paused, and beyond its latest job. */
static void test_remembered(void **state)
{
    struct weir *w = weir_new(turns.server.url, NULL);
    struct batch_change change;
    const long long month_s = 30 * 86400;

    (void)state;
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "b"}, NULL), 0);
    assert_in_range(redis_number("TTL", BATCH), month_s - 10, month_s);
    assert_int_equal(
        weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "b", .delay_s = 86400 * 60}, NULL), 0);
    assert_in_range(redis_number("TTL", BATCH), 3 * month_s - 10, 3 * month_s);
    assert_int_equal(weir_enqueue(w, &(struct weir_job_spec){.type = "t", .batch = "b"}, NULL), 0);
    assert_in_range(redis_number("TTL", BATCH), 3 * month_s - 10, 3 * month_s);
    assert_int_equal(batch_pause(w, "b", &change), 0);
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

/* ---- The command, and workers */

static struct outcome o;

#define weir(...)                                                                                            \
    run_in(&o, stage.server.folder, built("weir"), __VA_ARGS__, "--redis", stage.server.url, NULL)

#define expect_says(text, part)                                                                              \
    do {                                                                                                     \
        if (!strstr(text, part))                                                                             \
            fail_msg("'%s' should say '%s'", text, part);                                                    \
    } while (0)

#define succeed(...)                                                                                         \
    do {                                                                                                     \
        weir(__VA_ARGS__);                                                                                   \
        if (o.code != 0)                                                                                     \
            fail_msg("%d: %s", o.code, o.err);                                                               \
    } while (0)

static long long field(const char *batch, const char *name)
{
    char *text = server_ask(&stage.server, "HGET", stage_key(&stage, "batch:%s", batch), name, NULL);
    long long value = atoll(text);

    free(text);
    return value;
}

static void write_jobs_with(const char *name, const char *args, int n)
{
    char *text = malloc((size_t)n * 60), *at = text;

    *at = '\0';
    for (int i = 0; i < n; i++)
        at += sprintf(at, "{\"type\":\"t\",\"args\":%s,\"n\":%d}\n", args, i);
    write_text(stage.server.folder, name, text);
    free(text);
}

static void write_jobs(const char *name, int n)
{
    write_jobs_with(name, "null", n);
}

static void test_command(void **state)
{
    (void)state;
    succeed("batch", "list");
    assert_string_equal(o.out, "");
    expect_says(o.err, "no batches");
    succeed("batch", "list", "--json");
    assert_string_equal(o.out, "");
    write_jobs("jobs", 1000);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next", "--queue", "q");
    succeed("batch", "list");
    expect_says(o.out, "b      running  1,000  1,000     0");
    succeed("batch", "show", "b");
    expect_says(o.out, "state:      running\ntotal:      1,000\nwaiting:    1,000\nrunning:    0\n");
    expect_says(o.out, "then:       next in queue q, when all have ended\n");
    succeed("batch", "show", "b", "--json");
    expect_says(o.out,
                "{\"name\":\"b\",\"state\":\"running\",\"total\":1000,\"left\":1000,\"waiting\":1000,"
                "\"running\":0,\"aside\":0,\"done\":0,\"failed\":0,\"dead\":0,\"cancelled\":0,\"rate\":0.0,"
                "\"finish_at\":null,\"at_the_earliest\":false,\"created_at\":17");
    expect_says(o.out,
                "\"ended_at\":null,\"then\":{\"type\":\"next\",\"queue\":\"q\",\"enqueued_at\":null}}\n");

    succeed("worker", "-q", "q", "--exec", "next=/bin/cat", "--exec", "t=/bin/true", "--drain", "--drain-max",
            "50s", "-c", "4");
    succeed("batch", "show", "b", "--watch");
    expect_says(o.out, "state:      ended\ntotal:      1,000\nwaiting:    0\n");
    expect_says(o.out, "done:       1,000\n");
    expect_says(o.out, "then:       next in queue q, enqueued ");
    assert_int_equal(stage_stat(&stage, "next", "done"), 1);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next", "--queue", "q");
    expect_says(o.out, "0 jobs in ");
    expect_says(o.out, "; 1,000 lines sent by an earlier run, so all was there\n");
    weir("enqueue", "--from", "jobs", "--batch", "b", "--then", "other");
    assert_int_equal(o.code, 65);
    expect_says(o.err, "batch b was sealed for --then next in queue q: it stays so; leave --then out");
    weir("enqueue", "t", "--batch", "b");
    assert_int_equal(o.code, 65);
    expect_says(o.err, "batch b is sealed");
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 1);
}

static void test_command_single_jobs(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        succeed("enqueue", "t", "--batch", "b");
    succeed("batch", "show", "b");
    expect_says(o.out, "state:      running; not sealed, so more jobs may come\ntotal:      3\n");
    succeed("batch", "seal", "b", "--then", "next");
    assert_string_equal(o.out, "batch b sealed; 3 of 3 jobs not ended\n");
    succeed("batch", "seal", "b", "--json");
    assert_string_equal(o.out, "{\"name\":\"b\",\"total\":3,\"left\":3}\n");
    succeed("worker", "--exec", "next=/bin/true", "--exec", "t=/bin/false", "--drain", "--drain-max", "1s");
}

static void test_command_refuses(void **state)
{
    static const struct {
        const char *words[5];
        int code;
        const char *says;
    } cases[] = {
        {{"lost"}, 64, "did you mean batch list?"},
        {{"xxxxxx"}, 64, "there are list, show"},
        {{"show"}, 64, "the NAME of one batch"},
        {{"show", "a", "b"}, 64, "the NAME of one batch"},
        {{"list", "a"}, 64, "nothing more"},
        {{"list", "--watch"}, 64, "only batch show has it"},
        {{"pause", "a", "--yes"}, 64, "only batch cancel has it"},
        {{"show", "a", "--then", "t"}, 64, "only batch seal has it"},
        {{"seal", "a", "--queue", "q"}, 64, "add --then"},
        {{"show", "a"}, 66, "batch a: there is none"},
        {{"show", "a", "--watch"}, 66, "batch a: there is none"},
        {{"cancel", "a"}, 66, "batch a: there is none"},
        {{"cancel", "a", "--dry-run"}, 66, "batch a: there is none"},
        {{"resume", "a"}, 66, "batch a: there is none"},
        {{"seal", "a"}, 66, "batch a: there is none"},
        {{"show", "a b"}, 65, "not a valid name"},
        {{"seal", "a", "--then", "b b"}, 65, "type 'b b' to follow"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *const *c = cases[i].words;
        const char *words[12] = {built("weir"), "batch", "--redis", stage.server.url};

        for (int k = 0; k < 5 && c[k]; k++)
            words[4 + k] = c[k];
        program_run(&o, NULL, words);
        if (o.code != cases[i].code || !strstr(o.err, cases[i].says) || o.out[0])
            fail_msg("%s %s: %d %s", c[0], c[1], o.code, o.err);
    }
    weir("batch");
    assert_int_equal(o.code, 64);
    assert_int_equal(server_number(&stage.server, "DBSIZE", NULL), 0);
}

/* Paused with a real worker: it takes nothing more of it, and all after. */
static void test_command_pause(void **state)
{
    pid_t worker;

    (void)state;
    write_jobs("jobs", 1200);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    succeed("batch", "pause", "b");
    expect_says(o.out, "batch b paused; jobs that run go on, the others wait for weir batch resume b\n");
    succeed("batch", "pause", "b");
    expect_says(o.out, "was paused already");
    worker = stage_actor(&stage, "w", "types=t,next", "executors=4", NULL);
    await(server_number(&stage.server, "LLEN", stage_key(&stage, "aside:b"), NULL) == 1200);
    succeed("batch", "show", "b");
    expect_says(o.out, "state:      paused\ntotal:      1,200\nwaiting:    1,200, 1,200 of them set aside\n");
    succeed("enqueue", "t", "7");
    await(stage_stat(&stage, "t", "done") == 1);
    succeed("batch", "resume", "b");
    assert_string_equal(o.out, "batch b resumed; 1,200 jobs put back in their queues\n");
    await(field("b", "done") == 1200);
    await(stage_stat(&stage, "next", "done") == 1);
    succeed("batch", "resume", "b");
    assert_string_equal(o.out, "batch b was not paused\n");
    succeed("batch", "pause", "b");
    assert_string_equal(o.out, "batch b has ended; nothing was changed\n");
    assert_int_equal(stage_end(worker), 0);
}

static void test_command_cancel(void **state)
{
    pid_t worker;

    (void)state;
    write_jobs("jobs", 1200);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    succeed("batch", "cancel", "b", "--dry-run");
    assert_string_equal(o.out,
                        "batch b: 1,200 jobs; those that run would go on, the others would be dropped\n");
    assert_int_equal(field("b", "sealed") > 0, 1);
    assert_int_equal(server_number(&stage.server, "EXISTS", stage_key(&stage, "halted"), NULL), 0);
    succeed("batch", "cancel", "b", "--yes");
    expect_says(o.out, "batch b cancelled: 1,200 jobs; those that run go on");
    succeed("batch", "cancel", "b");
    assert_string_equal(o.out, "batch b was cancelled before; nothing was changed\n");
    weir("batch", "resume", "b");
    assert_int_equal(o.code, 65);
    expect_says(o.err, "was cancelled, which cannot be undone");
    worker = stage_actor(&stage, "w", "types=t,next", "executors=4", NULL);
    succeed("batch", "show", "b", "--watch");
    expect_says(o.out, "state:      cancelled\ntotal:      1,200\nwaiting:    0\n");
    expect_says(o.out, "cancelled:  1,200\n");
    expect_says(o.out, "then:       next in queue default, not enqueued\n");
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 0);
    assert_int_equal(stage_stat(&stage, "t", "done"), 0);
}

/* "weir batch" with these words on a terminal on which answer is typed; its exit code. text: what it shows.
 */
static int on_terminal(const char *answer, char *text, size_t size, const char *word, const char *name,
                       const char *flag)
{
    const char *words[] = {built("weir"), "batch", "--redis", stage.server.url, word, name, flag, NULL};

    return program_on_terminal(words, answer, text, size);
}

static void test_command_on_a_terminal(void **state)
{
    char text[8192];
    pid_t worker;

    (void)state;
    write_jobs("jobs", 400);
    succeed("enqueue", "--from", "jobs", "--batch", "b");
    assert_int_equal(on_terminal("n\n", text, sizeof text, "cancel", "b", NULL), 75);
    expect_says(text, "cancel batch b, with 400 jobs that have not ended? [y/N]");
    expect_says(text, "weir: batch cancel: nothing was changed");
    assert_int_equal(field("b", "cancel"), 0);
    assert_int_equal(on_terminal("", text, sizeof text, "cancel", "b", "--dry-run"), 0);
    assert_null(strstr(text, "[y/N]"));
    worker = stage_actor(&stage, "w", "types=t", "executors=1", NULL);
    assert_int_equal(on_terminal("", text, sizeof text, "show", "b", "--watch"), 0);
    expect_says(text, "state:      ended\r\n");
    assert_int_equal(stage_end(worker), 0);
    succeed("enqueue", "t", "--batch", "c");
    assert_int_equal(on_terminal("y\n", text, sizeof text, "cancel", "c", NULL), 0);
    expect_says(text, "batch c cancelled: 1 job;");
}

/* The bar goes on until the last job has ended. */
static void test_command_watch(void **state)
{
    char text[8192], *args = "{\"wait\":\"go\"}";
    pid_t worker, opener;
    long drawn;

    (void)state;
    for (int i = 0; i < 4; i++)
        succeed("enqueue", "t", i < 3 ? "null" : args, "--batch", "b");
    succeed("batch", "seal", "b");
    worker = stage_actor(&stage, "w", "types=t", "executors=1", NULL);
    await(field("b", "done") == 3);
    drawn = server_calls(&stage.server, "fcall_ro");
    opener = fork();
    if (opener == 0) {
        char path[300];

        snprintf(path, sizeof path, "%s/go", stage.server.folder);
        for (int left = 3000; left > 0 && server_calls(&stage.server, "fcall_ro") < drawn + 2;
             left--) /* then the first answer is shown */
            clock_sleep_until(clock_mono_us() + 20000);
        execl("/usr/bin/touch", "touch", path, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(on_terminal("", text, sizeof text, "show", "b", "--watch"), 0);
    expect_says(text, "]  75%  ");
    expect_says(text, " left  3 of 4 ended  ");
    expect_says(text, "\r\033[Kbatch:      b\r\nstate:      ended\r\n");
    assert_int_equal(program_end(opener), 0);
    assert_int_equal(stage_end(worker), 0);
}

/* Two workers, one of which is killed again and again while it settles: each job counts once, one job
 * follows. */
static void test_killed_workers(void **state)
{
    pid_t steady;

    (void)state;
    write_jobs_with("jobs", "{\"sleep\":0.002}", 2000);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    steady = stage_actor(&stage, "steady", "types=t,next", "executors=2", "lease=5", NULL);
    for (int i = 0; i < 4 && field("b", "done") < 1500; i++) {
        pid_t victim = stage_actor(&stage, "victim", "types=t", "executors=2", "lease=1", NULL);
        long long before;

        await(server_number(&stage.server, "ZCARD", stage_key(&stage, "workers"), NULL) == 2);
        before = field("b", "done");
        await(field("b", "done") > before || before == 2000);
        kill(victim, SIGKILL);
        assert_int_equal(program_end(victim), 1000 + SIGKILL);
        await(server_number(&stage.server, "ZCARD", stage_key(&stage, "workers"), NULL) == 1);
    }
    await(field("b", "done") + field("b", "dead") == 2000);
    assert_int_equal(field("b", "dead"), 0);
    await(stage_stat(&stage, "next", "done") == 1);
    assert_int_equal(stage_end(steady), 0);
    assert_int_equal(field("b", "done"), 2000);
    assert_int_equal(field("b", "total"), 2000);
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 1);
}

/* The worker's connection is cut at each message in turn, so that it does not know what Redis has counted. */
static void test_cut_workers(void **state)
{
    struct proxy *proxy = proxy_start(&stage.server);
    char url[200];

    (void)state;
    snprintf(url, sizeof url, "url=%s", proxy_url(proxy));
    write_jobs("jobs", 30);
    for (enum proxy_side side = PROXY_REQUESTS; side <= PROXY_REPLIES; side++)
        for (unsigned n = 2; n <= 14; n += 2) {
            pid_t worker;

            stage_flush(NULL);
            succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
            proxy_cut_before(proxy, side, n);
            worker = stage_actor(&stage, "w", "types=t,next", "executors=3", "lease=1", url, NULL);
            await(stage_stat(&stage, "next", "done") == 1);
            assert_int_equal(field("b", "done"), 30);
            assert_int_equal(stage_end(worker), 0);
            assert_int_equal(stage_stat(&stage, "next", "enqueued"), 1);
            proxy_cut_before(proxy, side, 0);
        }
    proxy_stop(proxy);
}

/* Copies the first n lines of the file of jobs into a pipe. */
static void feed(FILE *pipe, int n)
{
    char path[300], line[200];
    FILE *jobs;

    snprintf(path, sizeof path, "%s/jobs", stage.server.folder);
    jobs = fopen(path, "r");
    while (n-- > 0 && fgets(line, sizeof line, jobs))
        fputs(line, pipe);
    fclose(jobs);
    fflush(pipe);
}

/* The producer is killed within its bulk: the batch is not sealed, does not end, and a second run completes
 * it. */
static void test_killed_producer(void **state)
{
    const char *const words[] = {built("weir"), "enqueue", "--redis", stage.server.url, "--from", "pipe",
                                 "--batch",     "b",       "--then",  "next",           NULL};
    pid_t producer, worker;
    char path[300];
    FILE *pipe;

    (void)state;
    write_jobs("jobs", 3000);
    snprintf(path, sizeof path, "%s/pipe", stage.server.folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    pipe = fopen(path, "r+");
    worker = stage_actor(&stage, "w", "types=t,next", "executors=4", NULL);
    producer = program_start(stage.server.folder, "producer", words);
    feed(pipe, 2000);
    await(field("b", "done") == 2000);
    kill(producer, SIGKILL);
    assert_int_equal(program_end(producer), 1000 + SIGKILL);
    fclose(pipe);
    assert_int_equal(field("b", "total"), 2000);
    assert_int_equal(field("b", "sealed"), 0);
    assert_int_equal(stage_stat(&stage, "next", "enqueued"), 0);
    succeed("enqueue", "--from", "jobs", "--batch", "b", "--then", "next");
    expect_says(o.out, "1,000 jobs in ");
    await(stage_stat(&stage, "next", "done") == 1);
    assert_int_equal(stage_end(worker), 0);
    assert_int_equal(field("b", "done"), 3000);
    assert_int_equal(field("b", "total"), 3000);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest scripts[] = {
        cmocka_unit_test_setup(test_counts_each_end, scene_begin),
        cmocka_unit_test_setup(test_counts_groups, scene_begin),
        cmocka_unit_test_setup(test_counts_a_job_once, scene_begin),
        cmocka_unit_test_setup(test_forgotten, scene_begin),
        cmocka_unit_test_setup(test_names_are_forgotten, scene_begin),
        cmocka_unit_test_setup(test_a_large_job, scene_begin),
        cmocka_unit_test_setup(test_follows_once, scene_begin),
        cmocka_unit_test_setup(test_a_follower_without_a_queue_is_not_lost, scene_begin),
        cmocka_unit_test_setup(test_follows_once_though_revived, scene_begin),
        cmocka_unit_test_setup(test_seals_what_has_ended, scene_begin),
        cmocka_unit_test_setup(test_seals_nothing, scene_begin),
        cmocka_unit_test_setup(test_sealed, scene_begin),
        cmocka_unit_test_setup(test_sealed_without_a_follower, scene_begin),
        cmocka_unit_test_setup(test_appends, scene_begin),
        cmocka_unit_test_setup(test_pause, scene_begin),
        cmocka_unit_test_setup(test_ends_while_paused, scene_begin),
        cmocka_unit_test_setup(test_resume_buries_the_unreadable, scene_begin),
        cmocka_unit_test_setup(test_cancel, scene_begin),
        cmocka_unit_test_setup(test_cancel_closes, scene_begin),
        cmocka_unit_test_setup(test_cancel_of_a_paused_batch, scene_begin),
        cmocka_unit_test_setup(test_scripts_refuse, scene_begin),
        cmocka_unit_test_setup(test_foreign_keys, scene_begin),
        cmocka_unit_test_setup(test_list, scene_begin),
        cmocka_unit_test_setup(test_rate, scene_begin),
        cmocka_unit_test_setup(test_running, scene_begin),
        cmocka_unit_test_setup(test_remembered, scene_begin),
    };
    const struct CMUnitTest commands[] = {
        cmocka_unit_test_setup(test_command, stage_flush),
        cmocka_unit_test_setup(test_command_single_jobs, stage_flush),
        cmocka_unit_test_setup(test_command_refuses, stage_flush),
        cmocka_unit_test_setup(test_command_pause, stage_flush),
        cmocka_unit_test_setup(test_command_cancel, stage_flush),
        cmocka_unit_test_setup(test_command_on_a_terminal, stage_flush),
        cmocka_unit_test_setup(test_command_watch, stage_flush),
        cmocka_unit_test_setup(test_killed_workers, stage_flush),
        cmocka_unit_test_setup(test_cut_workers, stage_flush),
        cmocka_unit_test_setup(test_killed_producer, stage_flush),
    };
    int failed = stage_actor_main(argc, argv);

    if (failed >= 0)
        return failed;
    failed = cmocka_run_group_tests(scripts, turns_start, turns_stop);
    return failed + cmocka_run_group_tests(commands, stage_start, stage_stop);
}
