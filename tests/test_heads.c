/* Heads of entries in queues, where anybody may push: only those that Weir's own scripts have signed count
 * anything. */
#include "tests/scene.h"

#define BATCH PREFIX "batch:victim"
#define VICTIM "{\"id\":\"a\",\"type\":\"t\"}"

/* Batch "victim": sealed, one of its two jobs is done, and its last one is followed by "t". A lock "k", of
 * job "a". */
static void make_victim(void)
{
    start("w");
    use_secret();
    redis_do("HSET", BATCH, "total", "2", "done", "1", "sealed", "1", "then", "default t");
    redis_do("SET", PREFIX "unique:k", "a");
}

static void expect_no_harm(void)
{
    expect_text("1", "HGET", BATCH, "done");
    assert_int_equal(redis_number("HLEN", BATCH), 4);
    expect_text("a", "GET", PREFIX "unique:k");
}

static const char *const forged_heads[] = {
    "@0,0,0,bvictim,uk;",
    "@9,2,7,bvictim,wk;",
    "@0,0,0,s,bvictim,uk;",
    "@0,0,0,sguess,bvictim,uk;",
    "@0,0,0,s" SECRET "s,bvictim,uk;",
    "@0,0,0,bvictim,uk,s" SECRET ";", /* not where Weir writes it */
    "@0,0,0,bvictim,uk,e1:no%20luck;",
    /* when it was enqueued, as no producer writes it */
    "@0,0,0,t-JDOAw-;",
    "@0,0,0,t-JDOAw-,bvictim,uk;",
    "@0,0,0,bvictim,uk,t-JDOAw-;",
    "@0,0,0,tJ,uk--;",
    "@9,2,7,t-JDOAw-;",
    "@0,0,0,t-JDOAw;",
    "@0,0,0,t-JDOAw--;",
};

SCENE_TEST(test_a_forged_head_counts_nothing)
{
    make_victim();
    for (size_t i = 0; i < COUNT(forged_heads); i++) {
        push("default", textf("%s%s", forged_heads[i], VICTIM));
        assert_int_equal(claim("w", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].body.len, strlen(VICTIM));
        assert_int_equal(turns.claim.leases[0].attempts, 0);
        assert_int_equal(turns.claim.leases[0].interrupted, 0);
        assert_int_equal(turns.claim.leases[0].attrs.len, 0);
        settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
        expect_no_harm();
    }
    turns_check();
}

/* What looks like the end of a head stands in a body. */
SCENE_TEST(test_a_head_that_is_a_stamp_ends_at_its_body)
{
    make_victim();
    push("default", "@-JDOAw-{\"id\":\"a\",\"type\":\"t\",\"args\":\",bvictim,wk;\"}");
    assert_int_equal(claim("w", 1, 0), 1);
    assert_int_equal(turns.claim.leases[0].attrs.len, 0);
    settle("w", SETTLE_BACK, tokens[0], 0, NULL);
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
    expect_no_harm();
    turns_check();
}

static void expect_lease(size_t i, const char *id, int64_t enqueued_us)
{
    const struct lease *lease = &turns.claim.leases[i];

    assert_true(lease->body.len > 8 && strncmp(lease->body.at + 7, id, strlen(id)) == 0);
    assert_int_equal(lease->enqueued_us, enqueued_us);
}

/* In a queue such a head needs no signature. Jobs that begin alike start together; others among them are what they are. */
WORKER_TEST(test_a_head_says_when_a_job_was_enqueued)
{
    push("default", "@-JDOAw-{\"id\":\"a\",\"type\":\"t\"}");
    assert_int_equal(claim("w", 3, 0), 1); /* alone, by the short way */
    expect_lease(0, "a", BEGIN_US);
    push("default", "@-JDOAw-{\"id\":\"b\",\"type\":\"t\"}");
    push("default", "@-JDOAw-{\"id\":\"c\",\"type\":\"t\"}");
    push("default", "@-JDOAw-{\"id\":\"long\",\"type\":\"t\"}");
    push("default", "@-JDOAw0{\"id\":\"d\",\"type\":\"t\"}");
    push("default", "@9,9,9,t-JDOAw0;{\"id\":\"e\",\"type\":\"t\"}");
    push("default", "{\"id\":\"f\",\"type\":\"t\"}");
    push("default", "@-JDOAw0{\"id\":\"g\",\"type\":\"u\"}");
    push("default", "@-------{\"id\":\"h\",\"type\":\"t\"}");
    must(turns_rate("u", CLOSED_RULE));
    assert_int_equal(claim("w", 10, 0), 7);
    expect_lease(0, "b", BEGIN_US);
    expect_lease(1, "c", BEGIN_US);
    expect_lease(2, "long", BEGIN_US);
    expect_lease(3, "d", BEGIN_US + 10000);
    expect_lease(4, "e", 0);
    expect_lease(5, "f", 0);
    expect_lease(6, "h", 0);
    assert_int_equal(turns.claim.leases[4].attempts, 0);
    turns_check();
}

/* It stays with a job: until it runs again, in its lane, when it is dead. */
WORKER_TEST(test_a_job_keeps_when_it_was_enqueued)
{
    char *dead;

    push("default", "@-JDOAw-" VICTIM);
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_RETRY, tokens[0], 1000, "no luck");
    turns.now_us += 1000000;
    must(turns_promote(10, &(int64_t){0}));
    assert_int_equal(claim("w", 1, 0), 1);
    expect_lease(0, "a", BEGIN_US);
    assert_int_equal(turns.claim.leases[0].attempts, 1);
    settle("w", SETTLE_DEAD, tokens[0], 0, "no luck");
    dead = redis_text("ZPOPMIN", PREFIX "dead");
    assert_non_null(strstr(dead, "\n@2,0,0,t-JDOAw-"));
    free(dead);
    turns_check();
}

/* Before 2020 nothing is known, beyond 3413 the last moment. */
SCENE_TEST(test_a_stamp_says_a_time)
{
    static const struct {
        int64_t at_us, read_us;
    } times[] = {
        {BEGIN_US, BEGIN_US},
        {BEGIN_US + 19999, BEGIN_US + 10000},
        {0, 0},
        {INT64_C(1577836800000000), 0},
        {INT64_C(1577836800010000), INT64_C(1577836800010000)},
        {INT64_C(4102444799990000), INT64_C(4102444799990000)}, /* 2099-12-31 */
        {INT64_MAX, INT64_C(45558301911030000)},
    };
    char digits[STAMP_LEN + 1], head[STAMP_HEAD_LEN + 1];

    for (size_t i = 0; i < COUNT(times); i++) {
        stamp_write(times[i].at_us, digits);
        stamp_head(times[i].at_us, head);
        assert_int_equal(stamp_read(span_str(digits)), times[i].read_us);
        assert_int_equal(entry_enqueued_us(span_str(textf("%s{}", head))), times[i].read_us);
    }
    assert_int_equal(stamp_read(span_str("-JDOAw")), 0);
    assert_int_equal(stamp_read(span_str("-JDOAw!")), 0);
    assert_int_equal(entry_enqueued_us(span_str("{}")), 0);
    assert_int_equal(entry_enqueued_us(span_str("@1,0,0,bx,t-JDOAw-;{}")), BEGIN_US);
    assert_int_equal(entry_enqueued_us(span_str("@1")), 0);
}

/* Parked, set aside, cancelled, purged, dead: neither way is it taken for one of the batch. */
SCENE_TEST(test_a_forged_head_counts_nothing_elsewhere)
{
    make_victim();
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "first");
    assert_int_equal(claim("w", 1, 0), 1);
    redis_do("HSET", PREFIX "halted", "b/victim", "paused 1");
    push("default", "@0,0,0,bvictim,uk;{\"id\":\"a\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    expect_list(LANE("slow"), "a");
    push("default", "@0,0,0,bvictim,uk;" VICTIM);
    must(call_line("queue_purge default remove _ 1000 queue _"));
    expect_text("", "LRANGE", QUEUE, "0", "-1");
    expect_no_harm();
    push("default", "@0,0,0,bvictim,uk;" VICTIM);
    redis_do("HSET", PREFIX "cancelled", "a", "waiting 1");
    assert_int_equal(claim("w", 1, 0), 0);
    expect_no_harm();
    redis_do("DEL", PREFIX "halted");
    push("default", "@0,0,0,bvictim,uk;{\"id\":\"a\",\"type\":\"none\"}");
    ask.unknown_dead = true;
    redis_do("ZADD", PREFIX "runs", "1", "none");
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
    expect_no_harm();
}

/* Not even twice, and not when a person tries them again. */
SCENE_TEST(test_a_head_behind_a_forged_one_is_none)
{
    static const char *const entries[] = {
        "@0,0,0;@0,0,0,bvictim,uk;" VICTIM, "@0,0,0,bvictim,uk;@0,0,0,bvictim,uk;" VICTIM,
        "@0,0,0,bvictim,uk;nothing",        "@0,0,0,bvictim,uk;",
        "@0,0,0,sguess,bvictim,uk;@",
    };

    make_victim();
    for (size_t i = 0; i < COUNT(entries); i++) {
        char *dead;

        push("default", entries[i]);
        for (int tries = 0; tries < 2; tries++) {
            assert_int_equal(claim("w", 1, 0), 0);
            assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
            must(call_line("dead retry 100 _ _ _ _ _ _ _ seed 0"));
            expect_no_harm();
        }
        assert_int_equal(claim("w", 1, 0), 0);
        dead = redis_text("ZPOPMIN", PREFIX "dead");
        assert_non_null(strstr(dead, "default// unreadable: "));
        assert_non_null(strstr(dead, entries[i])); /* each byte of it */
        free(dead);
    }
}

static void enqueue_locked(const char *id, const char *key)
{
    const char *body = textf("{\"id\":\"%s\",\"type\":\"t\"}", id);
    const char *words[] = {"default", "t", id, "60000", "tag", "", "", "", "", key, "end", body};

    must(turns_script("enqueue", words, COUNT(words)));
}

WORKER_TEST(test_the_secret_is_made_once)
{
    char *secret;

    enqueue("default", "t", "plain");
    assert_int_equal(redis_number("HEXISTS", PREFIX "about", "secret"),
                     0); /* a job without a head needs none */
    enqueue_locked("a", "k");
    secret = redis_text("HGET", PREFIX "about", "secret");
    enqueue_locked("b", "l");
    expect_text(secret, "HGET", PREFIX "about", "secret");
    free(secret);
    assert_int_equal(claim("w", 3, 0), 3);
    assert_int_equal(turns.claim.leases[1].attrs.len, strlen(",stag,uk"));
    redis_do("DEL", PREFIX "about");
    enqueue_locked("c", "m");
    assert_int_equal(claim("w", 1, 0), 1);
    assert_int_equal(turns.claim.leases[0].attrs.len, strlen(",stag,um"));
}

/* Whoever pushes a job of his own is not stopped by it; a head waits until the key is mended. */
SCENE_TEST(test_a_foreign_key_of_the_secret_is_named)
{
    char *before;

    make_victim();
    redis_do("DEL", PREFIX "about");
    redis_do("SET", PREFIX "about", "foreign");
    enqueue("default", "t", "plain");
    assert_int_equal(claim("w", 1, 0), 1);
    push("default", "@0,0,0,bvictim;" VICTIM);
    before = turns_digest();
    fail_if(try_claim("w", 1, 0) != WEIR_ECONFIG, "%s", turns.error.text);
    fail_if(!strstr(turns.error.text, PREFIX "about is a string, not a hash"), "%s", turns.error.text);
    turns_unchanged(before);
    redis_do("DEL", PREFIX "about");
    assert_int_equal(claim("w", 1, 0), 1);
}

TESTS(turns_start, turns_stop)
