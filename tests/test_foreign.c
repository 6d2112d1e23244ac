/* What others do to a namespace: bodies of every kind that foreign clients push, a Redis that is full, keys
 * of other kinds under our names. No job is lost, none runs twice. */
#include "tests/play.h"
#include "tests/scene.h"

/* ---- Claim: what foreign clients push */

struct body {
    const char *text;
    size_t len;
};
#define BODY(text)                                                                                           \
    {                                                                                                        \
        text, sizeof(text) - 1                                                                               \
    }

/* The last claim has buried one job, with exactly these bytes. */
static void expect_buried(struct span body, const char *reason)
{
    const char *end = NULL;
    struct args a = {0};

    args_add(&a, "ZPOPMIN");
    args_add(&a, PREFIX "dead");
    must(turns_send(&a));
    if (turns.reply->elements == 2)
        end = memchr(turns.reply->element[0]->str, '\n', turns.reply->element[0]->len);
    if (!end)
        fail_msg("%.60s: not dead", body.at);
    if (!strstr(turns.reply->element[0]->str, reason))
        fail_msg("%.60s: dead: %s", body.at, turns.reply->element[0]->str);
    end++;
    assert_int_equal(body.len, turns.reply->element[0]->len - (size_t)(end - turns.reply->element[0]->str));
    assert_memory_equal(body.at, end, body.len);
}

SCENE_TEST(test_what_is_no_job_is_dead_with_its_bytes)
{
    static const struct body bodies[] = {
        BODY(""),
        BODY(" "),
        BODY("x"),
        BODY("{"),
        BODY("}"),
        BODY("[]"),
        BODY("[{\"type\":\"t\"}]"),
        BODY("1"),
        BODY("null"),
        BODY("true"),
        BODY("\"t\""),
        BODY("{}"),
        BODY("{\"id\":\"x\"}"),
        BODY("{\"type\":1}"),
        BODY("{\"type\":null}"),
        BODY("{\"type\":\"\"}"),
        BODY("{\"type\":[\"t\"]}"),
        BODY("{\"type\":\"a b\"}"),
        BODY("{\"type\":\"a/b\"}"),
        BODY("{\"type\":\"a\\nb\"}"),
        BODY("{\"type\":\"a:b\"}"),
        BODY("{\"type\":\"{t}\"}"),
        BODY("{\"type\":\"../t\xc3\xa4\"}"),
        BODY("{\"type\":\"t\\u0000\"}"),
        BODY("{\"id\":\"x\",\"type\":\"a b\"}"),
        BODY("{\"id\":\"x\",\"type\":\"\"}"),
        BODY("{\"id\":\"x\",\"type\":\"t}"),
        BODY("{type:\"t\"}"),
        BODY("{'type':'t'}"),
        BODY("{\"type\":\"t\""),
        BODY("{\"type\":\"t\",}"),
        BODY("{\"type\":\"t\"} x"),
        BODY("{\"type\":\"t\"}{\"type\":\"t\"}"),
        BODY("\xef\xbb\xbf{\"type\":\"t\"}"),
        BODY("\0{\"type\":\"t\"}"),
        BODY("@1,0;{\"type\":\"t\"}"),
        BODY("\n\n\n"),
        BODY("%s%n%d"),
    };
    char name[300], deep[8200];

    start("w");
    for (size_t i = 0; i < COUNT(bodies); i++) {
        struct span body = {bodies[i].text, bodies[i].len};

        push_bytes(body);
        if (claim("w", 1, 0) != 0)
            fail_msg("%s: leased", body.at);
        assert_false(turns.claim.more);
        expect_buried(body, "default// unreadable: ");
    }
    memset(name, 0, sizeof name);
    snprintf(name, sizeof name, "{\"type\":\"%0129d\"}", 1);
    push_bytes(span_str(name));
    assert_int_equal(claim("w", 1, 0), 0);
    expect_buried(span_str(name), "unreadable: ");
    memset(deep, '[', sizeof deep);
    memcpy(deep, "{\"type\":\"t\",\"args\":", 19);
    push_bytes((struct span){deep, sizeof deep});
    assert_int_equal(claim("w", 1, 0), 0);
    expect_buried((struct span){deep, sizeof deep}, "unreadable: ");
    assert_int_equal(turns_check().foreign, 0);
}

SCENE_TEST(test_a_body_may_have_a_mebibyte)
{
    const size_t most = JOB_BODY_MAX;
    char *body = malloc(most + 1);

    start("w");
    memset(body, 'x', most + 1);
    memcpy(body, "{\"id\":\"a\",\"type\":\"t\",\"args\":\"", 29);
    memcpy(body + most - 2, "\"}", 2);
    push_bytes((struct span){body, most});
    assert_int_equal(claim("w", 1, 0), 1);
    assert_int_equal(turns.claim.leases[0].body.len, most);
    memcpy(body + most - 2, "x\"}", 3);
    push_bytes((struct span){body, most + 1});
    enqueue("default", "t", "next");
    assert_int_equal(claim("w", 1, 0), 0);
    assert_true(turns.claim.more);
    expect_buried((struct span){body, most + 1}, "larger than 1048576 bytes");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_leases("next");
    free(body);
}

/* Redis takes half a gibibyte from anybody. Of what is larger than 16 MiB the beginning is kept; with a head
 * or without one. */
SCENE_TEST(test_a_body_of_many_mebibytes)
{
    const size_t most = 16 * JOB_BODY_MAX;
    char *body = malloc(most + 1);

    start("w");
    memset(body, 'x', most + 1);
    for (int i = 0; i < 2; i++) {
        memcpy(body, i ? "@0,0,0,bvictim;{" : "{\"id\":\"a\",\"type", 16);
        push_bytes((struct span){body, most + 1});
        assert_int_equal(claim("w", 1, 0), 0);
        expect_buried((struct span){body, JOB_BODY_MAX},
                      "default// unreadable: larger than 1048576 bytes; of its 16777217 "
                      "the first 1048576 are kept");
    }
    push_bytes((struct span){body + 1, most});
    assert_int_equal(claim("w", 1, 0), 0);
    expect_buried((struct span){body + 1, most}, "larger than 1048576 bytes");
    free(body);
}

/* Lua reads the type only; the worker judges the rest, and gets it byte for byte. */
SCENE_TEST(test_what_lua_need_not_judge_is_passed_on)
{
    static const struct body bodies[] = {
        BODY("{\"id\":\"a\",\"type\":\"t\",\"args\":12345678901234567890}"),
        BODY("{\"id\":\"a\",\"type\":\"t\",\"args\":NaN}"),
        BODY("{\"id\":\"a\",\"type\":\"t\"} and more"),
        BODY("{\"id\":\"a\",\"type\":\"t\",\"args\":[],\"args\":{}}"),
        BODY("{\"id\":\"a\",\"type\":\"t\",\"unknown\":[1e999,\"\\u0000\",\"\xff\"]}"),
        BODY("{\"args\":[1.0,{},[]],\"id\":\"a\",\"type\":\"t\"}"),
        BODY("{\"id\":null,\"type\":\"t\"}"),
        BODY("{\"id\":\"a\",\"type\":\"t\"}\0"),
        BODY("{\"type\":\"t\",\"id\":0}\0{"),
        BODY("{\"type\":\"t\",\"id\":[]}"),
        BODY("{\"id\":\"\",\"type\":\"t\",\"x\":\"\0\"}"),
        BODY("{\"type\":\"slow\",\"id\":\"a\",\"type\":\"t\"}"),
    };

    start("w");
    for (size_t i = 0; i < COUNT(bodies); i++) {
        push_bytes((struct span){bodies[i].text, bodies[i].len});
        assert_int_equal(claim("w", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].body.len, bodies[i].len);
        assert_memory_equal(turns.claim.leases[0].body.at, bodies[i].text, bodies[i].len);
        assert_memory_equal(turns.claim.leases[0].type.at, "t", 1);
    }
}

/* ---- A Redis that is full */

SCENE_TEST(test_a_full_redis_is_drained)
{
    int64_t stale;

    start("w");
    start("dead");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    enqueue("default", "t", "d e f g h i j");
    enqueue("default", "odd", "k");
    push("default", "garbage");
    must(turns_enqueue("default", "t", "later", SECOND_US));
    claim("dead", 3, 0);
    redis_do("CONFIG", "SET", "maxmemory", "1mb");
    assert_true(turns_enqueue("default", "t", "refused", -1) != 0);
    assert_int_equal(turns.error.status, WEIR_ENOTNOW);
    assert_int_equal(claim("w", 5, 0), 5);
    expect_leases("f g h i j");
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    for (int verb = SETTLE_RETRY; verb <= SETTLE_DEAD; verb++)
        settle("w", (enum settle_verb)verb, tokens[1 + verb], 0, "x");
    pass("w", LEASE_US + SECOND_US);
    promote(3);
    must(turns_adopt("v", "w", NULL, 0, default_queue, NULL));
    turns_check();
    for (int i = 0; i < 20; i++) {
        size_t n = claim("v", 9, 0);

        for (size_t k = 0; k < n; k++)
            settle("v", SETTLE_DEAD, tokens[k], 0, "over");
        turns.now_us += SECOND_US;
    }
    must(turns_adopt("", "v", NULL, 0, default_queue, NULL));
    redis_do("CONFIG", "SET", "maxmemory", "0");
    expect_counters("slow", "dead 3");
    expect_counters("t", "dead 7, done 1");
    assert_int_equal(turns_check().parked, 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 11);
}

/* ---- Other kinds under our names */

/* Everything at once: jobs in queue, lanes, leases, later, held and dead, lanes that sleep, jobs in flight at
 * a gate, and a worker whose time is over. */
static void build_stage(void)
{
    static const char *const types[] = {"t", "slow", "keyed"};

    ask.types = (struct names){types, COUNT(types)};
    start("w");
    start("dead");
    must(turns_rate("slow", "1/1000000/1"));
    must(turns_rate("keyed", "gcra:1/1000000/1,by=key concurrency:3"));
    must(turns_weight("keyed", "a", 2));
    enqueue("default", "t", "a b");
    claim("dead", 2, 0);
    enqueue("default", "t", "f g");
    enqueue_with("keyed", "ka1 ka2 ka3", "\"key\":\"a\"");
    enqueue_with("keyed", "kb1 kb2", "\"key\":\"b\"");
    enqueue("default", "slow", "c d e");
    enqueue("default", "t", "h i j k");
    enqueue("default", "odd", "l");
    must(turns_enqueue("default", "t", "m", 2 * SECOND_US));
    claim("w", 6, 0);
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, NULL);
    settle("w", SETTLE_DEAD, tokens[1], 0, "x");
    pass("w", LEASE_US - 1);
    turns.now_us += SECOND_US;
    enqueue("default", "odd", "n");
    enqueue("default", "slow", "o");
    enqueue("default", "t", "p");
    push("default", "garbage");
    redis_do("ZADD", PREFIX "later", "1", "garbage");
}

/* The tokens that a worker was told of. */
static char told[200][200];
static int told_count;

static void tell(void)
{
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        snprintf(told[told_count++], sizeof told[0], "%.*s", (int)turns.claim.leases[i].token.len,
                 turns.claim.leases[i].token.at);
}

/* Every script a few times; errors are expected. Nothing is done, so that no job may be missing. */
static void run_all_scripts(size_t first_verb)
{
    static const enum settle_verb verbs[] = {SETTLE_RETRY, SETTLE_DEAD, SETTLE_BACK, SETTLE_THROTTLED};
    struct args a = {0};

    for (int round = 0; round < 3; round++) {
        int64_t n, m;

        for (size_t i = 0; i < COUNT(verbs); i++)
            (void)!turns_settle_cost("w", tokens[2 + i], 2, &n);
        for (size_t i = 0; i < COUNT(verbs); i++)
            (void)!turns_settle_end("w", verbs[(i + first_verb) % COUNT(verbs)], tokens[2 + i], 0, "x", &n);
        (void)!turns_promote(100, &n);
        (void)!turns_reap("w", &n, &m);
        for (int k = 0; k < 2; k++) {
            ask.held = k;
            ask.mark = true;
            if (try_claim("w", 2, 1) == 0)
                tell();
        }
        (void)!turns_rate("slow", round % 2 ? "" : "1000/1000000/1");
        (void)!turns_pause("keyed", round % 2 ? SECOND_US : 0);
        (void)!turns_weight("keyed", "a", 1 + round);
        drained_request(&a, PREFIX, turns.now_us, default_queue, ask.types);
        (void)!turns_send(&a);
        (void)!turns_script("status", NULL, 0);
        turns.now_us += SECOND_US;
    }
}

static void check_leases_are_told(const char *key)
{
    char *keys = redis_text("HKEYS", ACTIVE "w"), *rest = keys;

    for (char *token; strncmp(keys, "(error)", 7) != 0 && keys[0] && (token = strsep(&rest, "\n"));) {
        bool known = strcmp(token, "@") == 0;

        for (int i = 0; i < told_count; i++)
            known |= strcmp(token, told[i]) == 0;
        if (!known)
            fail_msg("%s: a lease that nobody was told of: %s", key, token);
    }
    free(keys);
}

static void run_with_foreign(const char *key, bool list, size_t first_verb)
{
    char *before, *after;

    scene_begin(NULL);
    told_count = 0;
    build_stage();
    for (size_t i = 0; i < TOKENS_MOST; i++)
        memcpy(told[told_count++], token_texts[i], sizeof told[0]);
    redis_do("DEL", key);
    free(list ? redis_text("RPUSH", key, "foreign") : redis_text("SET", key, "foreign"));
    before = invariants_ids(turns.redis, PREFIX);
    run_all_scripts(first_verb);
    check_leases_are_told(key);
    for (int times = 0; times < 3; times++)
        (void)!turns_adopt("v", "w", NULL, 0, default_queue, NULL);
    expect_text(list ? "list" : "string", "TYPE", key);
    expect_text("foreign", list ? "LPOP" : "GET", key);
    after = invariants_ids(turns.redis, PREFIX);
    if (strcmp(before, after) != 0)
        fail_msg("%s: jobs before: %s; after: %s", key, before, after);
    free(before);
    free(after);
}

SCENE_TEST(test_what_is_not_ours_is_left_alone)
{
    static const char *const names[] = {
        "queue:default",
        "lane:default/slow/",
        "lane:default/t/",
        "lane:default/odd/",
        "lane:default/keyed/a",
        "ring:default/slow",
        "ring:default/keyed",
        "ring:default/t",
        "wait:default/slow#0",
        "wait:default/keyed#0/a",
        "wait:default/keyed#1",
        "wait:default/-",
        "sleep:default",
        "credit:default/keyed",
        "weights",
        "changes",
        "acts",
        "wake:default",
        "held:default",
        "limits",
        "types",
        "queues",
        "later",
        "active:w",
        "active:dead",
        "workers",
        "duty",
        "bell:g",
        "spare:g",
        "news:g",
        "dead",
        "stats:slow",
        "stats:t",
        "stats:odd",
    };
    static const char *const texts[] = {"gate:slow#0",  "gate:keyed#0/a", "gate:keyed#0/b", "gate:keyed#1",
                                        "stop:keyed/a", "stop:t/",        "stop:slow/",     "reap"};
    char key[200];

    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(key, sizeof key, PREFIX "%s", names[i]);
        for (size_t verb = 0; verb < 4; verb++)
            run_with_foreign(key, false, verb);
    }
    for (size_t i = 0; i < COUNT(texts); i++) {
        snprintf(key, sizeof key, PREFIX "%s", texts[i]);
        for (size_t verb = 0; verb < 4; verb++)
            run_with_foreign(key, true, verb);
    }
}

/* A repaired key, and all runs to its end. */
SCENE_TEST(test_a_key_that_was_mended_works_again)
{
    static const char *const names[] = {"dead", "later", "stats:t", "duty", "types"};
    char key[200];

    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(key, sizeof key, PREFIX "%s", names[i]);
        run_with_foreign(key, false, i);
        redis_do("DEL", key);
        must(turns_adopt("x", "w", NULL, 0, default_queue, NULL));
        for (int k = 0; k < 30; k++) {
            int64_t n, m;

            must(turns_promote(100, &n));
            must(turns_reap("x", &n, &m));
            claim("x", 50, 50);
            for (size_t j = 0; j < turns.claim.lease_count && j < TOKENS_MOST; j++) {
                const char *type = strstr(token_texts[j], "/t/")      ? "t"
                                   : strstr(token_texts[j], "/slow/") ? "slow"
                                                                      : "keyed";

                must(turns_settle_done("x", type, &tokens[j], 1, &m));
                assert_int_equal(m, 0);
            }
            turns.now_us += SECOND_US;
        }
        assert_int_equal(redis_number("EXISTS", QUEUE, LANE("t"), LANE("slow"), LANE("keyed") "a",
                                      LANE("keyed") "b", PREFIX "later"),
                         0);
    }
}

PLAY("foreign")

TESTS(turns_start, turns_stop)
