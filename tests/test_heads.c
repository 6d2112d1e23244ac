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
    free(redis_text("HSET", BATCH, "total", "2", "done", "1", "sealed", "1", "then", "default t"));
    free(redis_text("SET", PREFIX "unique:k", "a"));
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
};

static void test_a_forged_head_counts_nothing(void **state)
{
    (void)state;
    make_victim();
    for (size_t i = 0; i < COUNT(forged_heads); i++) {
        char entry[200];

        snprintf(entry, sizeof entry, "%s%s", forged_heads[i], VICTIM);
        push("default", entry);
        assert_int_equal(claim("w", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].body.len, strlen(VICTIM));
        assert_int_equal(turns.claim.leases[0].attempts, 0);
        assert_int_equal(turns.claim.leases[0].interrupted, 0);
        assert_int_equal(turns.claim.leases[0].attrs.len, 0);
        keep_tokens();
        settle("w", SETTLE_FINISH, tokens[0], 0, NULL);
        expect_no_harm();
    }
    turns_check();
}

/* Parked, set aside, cancelled, purged, dead: neither way is it taken for one of the batch. */
static void test_a_forged_head_counts_nothing_elsewhere(void **state)
{
    static const char *const purge[] = {"default", "remove", "", "1000", "queue", ""};

    (void)state;
    make_victim();
    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "first");
    assert_int_equal(claim("w", 1, 0), 1);
    free(redis_text("HSET", PREFIX "halted", "b/victim", "paused 1"));
    push("default", "@0,0,0,bvictim,uk;{\"id\":\"a\",\"type\":\"slow\"}");
    assert_int_equal(claim("w", 1, 0), 0);
    expect_list(LANE("slow"), "a");
    push("default", "@0,0,0,bvictim,uk;" VICTIM);
    must(turns_script("queue_purge", purge, COUNT(purge)));
    expect_text("", "LRANGE", QUEUE, "0", "-1");
    expect_no_harm();
    push("default", "@0,0,0,bvictim,uk;" VICTIM);
    free(redis_text("HSET", PREFIX "cancelled", "a", "waiting 1"));
    assert_int_equal(claim("w", 1, 0), 0);
    expect_no_harm();
    free(redis_text("DEL", PREFIX "halted"));
    push("default", "@0,0,0,bvictim,uk;{\"id\":\"a\",\"type\":\"none\"}");
    ask.unknown_dead = true;
    free(redis_text("ZADD", PREFIX "runs", "1", "none"));
    assert_int_equal(claim("w", 1, 0), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
    expect_no_harm();
}

/* Not even twice, and not when a person tries them again. */
static void test_a_head_behind_a_forged_one_is_none(void **state)
{
    static const char *const entries[] = {
        "@0,0,0;@0,0,0,bvictim,uk;" VICTIM, "@0,0,0,bvictim,uk;@0,0,0,bvictim,uk;" VICTIM,
        "@0,0,0,bvictim,uk;nothing",        "@0,0,0,bvictim,uk;",
        "@0,0,0,sguess,bvictim,uk;@",
    };
    static const char *const retry[] = {"retry", "100", "", "", "", "", "", "", "", "seed", "0"};

    (void)state;
    make_victim();
    for (size_t i = 0; i < COUNT(entries); i++) {
        char *dead;

        push("default", entries[i]);
        for (int tries = 0; tries < 2; tries++) {
            assert_int_equal(claim("w", 1, 0), 0);
            assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
            must(turns_script("dead", retry, COUNT(retry)));
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
    char body[100];
    const char *words[] = {"default", "t", id, "60000", "tag", "", "", "", "", key, "end", body};

    snprintf(body, sizeof body, "{\"id\":\"%s\",\"type\":\"t\"}", id);
    must(turns_script("enqueue", words, COUNT(words)));
}

static void test_the_secret_is_made_once(void **state)
{
    char *secret;

    (void)state;
    start("w");
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
    free(redis_text("DEL", PREFIX "about"));
    enqueue_locked("c", "m");
    assert_int_equal(claim("w", 1, 0), 1);
    assert_int_equal(turns.claim.leases[0].attrs.len, strlen(",stag,um"));
}

/* Whoever pushes a job of his own is not stopped by it; a head waits until the key is mended. */
static void test_a_foreign_key_of_the_secret_is_named(void **state)
{
    char *before, *after;

    (void)state;
    make_victim();
    free(redis_text("DEL", PREFIX "about"));
    free(redis_text("SET", PREFIX "about", "foreign"));
    enqueue("default", "t", "plain");
    assert_int_equal(claim("w", 1, 0), 1);
    push("default", "@0,0,0,bvictim;" VICTIM);
    before = turns_digest();
    if (try_claim("w", 1, 0) != WEIR_ECONFIG)
        fail_msg("%s", turns.error.text);
    assert_non_null(strstr(turns.error.text, PREFIX "about is a string, not a hash"));
    after = turns_digest();
    assert_string_equal(before, after);
    free(before);
    free(after);
    free(redis_text("DEL", PREFIX "about"));
    assert_int_equal(claim("w", 1, 0), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, scene_begin)
    const struct CMUnitTest tests[] = {
        TEST(a_forged_head_counts_nothing),         TEST(a_forged_head_counts_nothing_elsewhere),
        TEST(a_head_behind_a_forged_one_is_none),   TEST(the_secret_is_made_once),
        TEST(a_foreign_key_of_the_secret_is_named),
    };

    return cmocka_run_group_tests_name("heads", tests, turns_start, turns_stop);
}
