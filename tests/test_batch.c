/* Batches: tests/plays/batch.txt; here many of them, many jobs, and what a client reads. */
#include "tests/play.h"
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

/* ---- Pausing */

static void expect_aside(int n)
{
    assert_int_equal(redis_number("LLEN", ASIDE), n);
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

PLAY("batch")

TESTS(turns_start, turns_stop)
