/* settle, promote, append, drained and status by themselves, under virtual time; wrong arguments of all\n * scripts of a turn, which change nothing; and answers of another shape. adopt: test_adopt.c, reap: test_reap.c. */
#include "core/script/script.h"
#include "tests/scene.h"

/* ---- Settle */

WORKER_TEST(test_settle_ends_jobs_by_their_verbs)
{
    enqueue("default", "t", "a b c d e f");
    assert_int_equal(claim("w", 5, 0), 5);
    finish("w", "t", tokens, 1);
    settle("w", SETTLE_RETRY, tokens[1], 7000000, NULL);
    settle("w", SETTLE_THROTTLED, tokens[2], 3000000, NULL);
    settle("w", SETTLE_BACK, tokens[3], 0, NULL);
    settle("w", SETTLE_DEAD, tokens[4], 0, "bad\nweather \x01");
    expect_counters("t", "enqueued 6, pulled 5, done 1, retried 1, back 2, dead 1, scheduled 2");
    expect_text(
        "l w:1.-1 default/t/\n@0,0,1;{\"id\":\"c\",\"type\":\"t\",\"args\":{}}\n1795000003000000\n"
        "l w:1.-0 "
        "default/t/\n@1,0,0,e1795000000000000@w:;{\"id\":\"b\",\"type\":\"t\",\"args\":{}}\n1795000007000000",
        "ZRANGE", PREFIX "later", "0", "-1", "WITHSCORES");
    expect_text(
        "w:1.-3 default/t/ bad weather  \n@1,0,0;{\"id\":\"e\",\"type\":\"t\",\"args\":{}}\n1795000000000000",
        "ZRANGE", PREFIX "dead", "0", "-1", "WITHSCORES");
    expect_list(LANE("t"), "d");
    expect_list(QUEUE, "f");
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1);
    turns_check();
}

/* Handlers die under the same job: the third death is one too many. */
WORKER_TEST(test_settle_counts_interruptions)
{
    char *dead;

    enqueue("default", "t", "poison next");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(claim("w", 1, 0), 1);
        assert_int_equal(turns.claim.leases[0].interrupted, i);
        assert_int_equal(turns.claim.leases[0].attempts, 0);
        settle("w", SETTLE_INTERRUPTED, tokens[0], 3, i == 1 ? NULL : "exit 1: a, b");
        turns_check();
    }
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    assert_string_equal(unstamped(dead), "w:3.-- default/t/ its handler died 3 times: exit 1: a, b\n"
                                         "@0,3,0,e1795000000000000@w:exit 1: a%2C b,"
                                         "e1795000000000000@w:exit 1: a%2C b;"
                                         "{\"id\":\"poison\",\"type\":\"t\",\"args\":{}}");
    free(dead);
    expect_counters("t", "dead 1, back 2");
    expect_stale("w", SETTLE_INTERRUPTED, tokens[0]);
}

WORKER_TEST(test_a_lease_is_settled_once_and_by_its_worker)
{
    struct span strange = {"1.xx/default/t/", 15}, done;
    int64_t stale;
    struct args a = {0};

    start("other");
    enqueue("default", "t", "a b c d");
    claim("w", 4, 0);
    expect_stale("other", SETTLE_DEAD, tokens[0]);
    expect_stale("nobody", SETTLE_RETRY, tokens[0]);
    expect_stale("w", SETTLE_BACK, strange);
    settle("w", SETTLE_RETRY, tokens[0], 5, NULL);
    for (int verb = SETTLE_RETRY; verb <= SETTLE_DEAD; verb++)
        expect_stale("w", (enum settle_verb)verb, tokens[0]);
    must(turns_settle_done("w", "t", tokens, 1, &stale));
    assert_int_equal(stale, 1);
    /* Three times in one call: the first of those that are no "done" counts. */
    settle_request(&a, PREFIX, turns.now_us, "w");
    done = tokens[1];
    settle_done(&a, "t", (struct span){"", 0}, 2);
    settle_token(&a, done);
    settle_token(&a, tokens[2]);
    turns_add_end(&a, SETTLE_DEAD, done, 0, "x");
    settle_end(&a, SETTLE_BACK, done, 0, "x");
    turns_add_end(&a, SETTLE_DEAD, tokens[3], 0, "x");
    assert_int_equal(settled(&a), 2);
    expect_counters("t", "done 1, dead 2, retried 1, scheduled 1");
    assert_int_equal(redis_number("HGET", PREFIX "stats:t", "stale"), 7 + SETTLE_DEAD - SETTLE_RETRY);
    assert_int_equal(turns_check().leased, 0);
}

/* Those of a call that failed alike are written as if each had been alone: with heads of any kind, and without; one is there twice. */
WORKER_TEST(test_jobs_that_fail_together_are_settled_each_for_itself)
{
    static const struct {
        enum settle_verb verb;
        int64_t delay_us;
        const char *reason;
        size_t count;
    } causes[] = {{SETTLE_RETRY, 5000000, "no, luck", 3},
                  {SETTLE_DEAD, 0, "bad\nluck", 2},
                  {SETTLE_RETRY, 7000000, "", 2}};
    struct args a = {0};

    use_secret();
    push("default", "{\"id\":\"a\",\"type\":\"t\"}");
    push("default", "@0,0,0,s" SECRET ",t-JDOAv-;{\"id\":\"b\",\"type\":\"t\"}");
    push("default", "@0,0,0,s" SECRET ",t-JDOAv0;{\"id\":\"c\",\"type\":\"t\"}");
    push("default", "{\"id\":\"d\",\"type\":\"t\"}");
    push("default", "@0,0,0,s" SECRET ",t-JDOAv-;{\"id\":\"e\",\"type\":\"t\"}");
    push("default", "@0,0,0,s" SECRET ",t-JDOAv-;{\"id\":\"f\",\"type\":\"t\"}");
    assert_int_equal(claim("w", 6, 0), 6);
    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_failed(&a, 7);
    for (int i = 0; i < 7; i++)
        settle_token(&a, tokens[i % 6]);
    for (size_t i = 0; i < COUNT(causes); i++) {
        settle_cause(&a, causes[i].verb, false, causes[i].count, causes[i].reason);
        for (size_t k = 0; causes[i].verb == SETTLE_RETRY && k < causes[i].count; k++)
            settle_delay(&a, 1, causes[i].delay_us + (int64_t)k);
    }
    assert_int_equal(settled(&a), 1);
    expect_counters("t", "retried 4, scheduled 4, dead 2, stale 1");
    assert_int_equal(redis_number("ZCOUNT", PREFIX "later", textf("%lld", BEGIN_US + 5000002LL),
                                  textf("%lld", BEGIN_US + 7000000LL)),
                     2);
    expect_text("l w:1.-- default/t/\n@1,0,0,e1795000000000000@w:no%2C luck;{\"id\":\"a\",\"type\":\"t\"}\n"
                "l w:1.-0 default/t/\n@1,0,0,s" SECRET
                ",t-JDOAv-,e1795000000000000@w:no%2C luck;{\"id\":\"b\",\"type\":\"t\"}\n"
                "l w:1.-1 default/t/\n@1,0,0,s" SECRET
                ",t-JDOAv0,e1795000000000000@w:no%2C luck;{\"id\":\"c\",\"type\":\"t\"}\n"
                "l w:1.-4 default/t/\n@1,0,0,s" SECRET
                ",t-JDOAv-,e1795000000000000@w:;{\"id\":\"f\",\"type\":\"t\"}",
                "ZRANGE", PREFIX "later", "0", "-1");
    expect_text("w:1.-2 default/t/ bad luck\n@1,0,0;{\"id\":\"d\",\"type\":\"t\"}\n"
                "w:1.-3 default/t/ bad luck\n@1,0,0,s" SECRET ",t-JDOAv-;{\"id\":\"e\",\"type\":\"t\"}",
                "ZRANGE", PREFIX "dead", "0", "-1");
    turns_check();
}

/* A head that cannot be read, which somebody has left in a lease, is the body's, and that of no lease that begins like it. */
WORKER_TEST(test_a_head_that_cannot_be_read_is_of_its_job_alone)
{
    static const char *const entries[] = {"@1", "@1,0,0,t-JDOAv-;{}", "@1,0"};
    struct args a = {0};

    enqueue("default", "t", "a b c");
    assert_int_equal(claim("w", 3, 0), 3);
    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_failed(&a, 3);
    for (int i = 0; i < 3; i++) {
        redis_do("HSET", PREFIX "active:w", textf("%.*s", (int)tokens[i].len, tokens[i].at), entries[i]);
        settle_token(&a, tokens[i]);
    }
    settle_cause(&a, SETTLE_DEAD, false, 3, "x");
    assert_int_equal(settled(&a), 0);
    expect_text("w:1.-- default/t/ x\n@1,0,0;@1\nw:1.-0 default/t/ x\n@2,0,0,t-JDOAv-;{}\nw:1.-1 default/t/ "
                "x\n@1,0,0;@1,0",
                "ZRANGE", PREFIX "dead", "0", "-1");
}

/* Settles n jobs of a run of `type`; returns how many were stale. */
static int64_t settle_run_of(const char *type, const char *batch, struct span first, size_t n)
{
    struct args a = {0};

    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_run(&a, type, span_str(batch), first, n);
    return settled(&a);
}

/* The answer leaves out tokens that follow one another; what the reader makes of it is what stands in the leases. The index has two digits, of
 * which the first one changes after 64. */
WORKER_TEST(test_tokens_that_follow_one_another)
{
    char first[200], third[200];

    must(turns_rate("slow", "100/1000000/2"));
    enqueue_many("t", 90);
    enqueue_many("slow", 2);
    for (int i = 0; i < 70; i++)
        must(turns_enqueue("default", "t", textf("u%d", i), -1));
    assert_int_equal(claim("w", 162, 0), 162);
    assert_true(turns.reply->elements > 3 && turns.reply->element[3]->elements == 1 + 3 + 162);
    snprintf(first, sizeof first, "%s", "1.--/default/t/");
    for (size_t i = 0; i < 162; i++) {
        const struct lease *lease = &turns.claim.leases[i];
        const char *type = i == 90 || i == 91 ? "slow" : "t";
        const char *token = textf("%.*s", (int)lease->token.len, lease->token.at);

        if (i == 2)
            strcpy(third, token);
        assert_int_equal(redis_number("HEXISTS", ACTIVE "w", token), 1);
        assert_int_equal(lease->type.len, strlen(type));
        assert_memory_equal(lease->type.at, type, lease->type.len);
        assert_int_equal(lease->key.len, 0);
        assert_int_equal(lease->slot_us, i == 90 || i == 91 ? BEGIN_US : 0);
        if (i > 0) {
            assert_int_equal(settle_follows(lease->token, lease[-1].token), i != 90 && i != 92);
            assert_false(settle_follows(lease[-1].token, lease->token));
        }
    }
    assert_int_equal(settle_run_of("t", "", span_str(third), 85), 0);
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1 + 162 - 85);
    assert_int_equal(redis_number("HEXISTS", ACTIVE "w", first), 1);
    assert_int_equal(settle_run_of("t", "", span_str(first), 90), 85);
    expect_counters("t", "done 90, stale 85");
    assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1 + 72);
    turns_check();
}

/* The places for jobs without a limit are taken: none of the type behind them starts, and it is no run. */
WORKER_TEST(test_a_run_of_none_is_none)
{
    ask.reserved = true;
    enqueue_many("t", 40);
    enqueue_many("slow", 1);
    assert_int_equal(claim("w", 5, 40), 40);
    assert_int_equal(turns_check().leased, 40);
}

WORKER_TEST(test_a_run_counts_as_its_jobs_one_by_one)
{
    struct args a = {0};

    must(turns_rate("slow", "concurrency:70"));
    enqueue_many("slow", 70);
    enqueue_many("t", 10);
    assert_int_equal(claim("w", 100, 0), 80);
    assert_int_equal(settle_run_of("slow", "", tokens[0], 69), 0);
    /* with an end that is none, and what of the run is stale */
    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_run(&a, "slow", span_str(""), tokens[10], 60);
    turns_add_end(&a, SETTLE_DEAD, span_str("1.05/default/t/"), 0, "x");
    assert_int_equal(settled(&a), 59);
    expect_counters("slow", "done 70, stale 59");
    expect_counters("t", "dead 1");
    turns_check();
}

/* Ends of one call share what they have in common, and nothing else. */
SCENE_TEST(test_ends_that_are_alike)
{
    struct args a = {0};
    int64_t stale;

    assert_false(settle_follows(span_str("2.-0/q/t/"), span_str("1.--/q/t/")));
    assert_false(settle_follows(span_str("1.-0/q/u/"), span_str("1.--/q/t/")));
    start("w");
    use_secret();
    push("default", "@0,0,0,s" SECRET ",bgone;{\"id\":\"a\",\"type\":\"t\"}");
    push("default", "@0,0,0,s" SECRET ",bgone;{\"id\":\"b\",\"type\":\"t\"}");
    assert_int_equal(claim("w", 2, 0), 2);
    free(redis_text("HSET", PREFIX "halted", "b/gone", "cancelled"));
    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_end(&a, SETTLE_FINISH, tokens[0], 0, NULL);
    turns_add_end(&a, SETTLE_RETRY, tokens[1], SECOND_US, "x");
    must(turns_send(&a));
    must(settle_reply(turns.reply, &stale, &turns.error));
    expect_counters("t", "done 1, cancelled 1, scheduled 0");
    redis_do("DEL", PREFIX "halted");

    enqueue("default", "t", "c d");
    assert_int_equal(claim("w", 2, 0), 2);
    settle("w", SETTLE_DEAD, tokens[0], 0, "x");
    settle("w", SETTLE_RETRY, tokens[1], 0, "same");
    must(turns_enqueue("default", "t", "e", -1));
    turns.now_us += SECOND_US;
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "same");
    assert_int_equal(
        redis_number("EVAL",
                     "local n = 0\n"
                     "for _, record in ipairs(redis.call('ZRANGE', ARGV[1] .. 'later', 0, -1)) do\n"
                     "  local at = record:match(',e(%d+)@w:same')\n"
                     "  n = n + (at == ARGV[2] and 1 or at == ARGV[3] and 10 or 100)\n"
                     "end\n"
                     "return n",
                     "0", PREFIX, "1795000000000000", "1795000001000000"),
        11);
    turns_check();
}

/* Lets the job fail so often, each time for that reason; returns how many failures its head has then, and how long it is. */
static long fail_often(int times, const char *reason, int64_t *size)
{
    for (int i = 0; i < times; i++) {
        assert_int_equal(claim("w", 1, 0), 1);
        settle("w", SETTLE_RETRY, tokens[0], 0, reason);
        turns.now_us += SECOND_US;
        if (i + 1 < times)
            promote(1);
    }
    *size = redis_number("EVAL", "return #redis.call('ZRANGE', ARGV[1] .. 'later', 0, -1)[1]", "0", PREFIX);
    return redis_number(
        "EVAL",
        "local _, n = redis.call('ZRANGE', ARGV[1] .. 'later', 0, -1)[1]:gsub(',e%d+@w:', '')\n return n",
        "0", PREFIX);
}

/* The last ten are kept, as far as there is room for them; one of which nothing is known drops none. */
SCENE_TEST(test_failures_that_are_kept_are_bounded)
{
    char longest[401] = "";
    int64_t size;

    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(fail_often(1, "no", &size), 1);
    promote(1);
    assert_int_equal(fail_often(1, "", &size), 2);
    promote(1);
    assert_int_equal(fail_often(12, "no", &size), 10);
    promote(1);
    memset(longest, ',', 400);
    assert_in_range(fail_often(12, longest, &size), 2, 9);
    assert_true(size < 3000); /* an escaped comma has three bytes */
    turns_check();
}

WORKER_TEST(test_a_lease_is_lost_with_its_worker)
{
    start("dead");
    enqueue("default", "t", "a b");
    claim("dead", 1, 0);
    pass("w", LEASE_US + SECOND_US);
    assert_int_equal(redis_number("EXISTS", ACTIVE "dead"), 0);
    expect_stale("dead", SETTLE_DEAD, tokens[0]);
    ask.alone = true;
    expect_leased("w", 1, "a");
    expect_stale("dead", SETTLE_DEAD, turns.claim.leases[0].token);
    turns_check();
}

WORKER_TEST(test_many_are_handed_back_in_order)
{
    char expected[1000] = "";
    static char many[150][200];
    struct args a = {0};

    enqueue_many("t", 150);
    ask.turn = 8; /* from turn 9 to turn 10 */
    for (int at = 0; at < 150; at += 75) {
        assert_int_equal(claim("w", 75, 0), 75);
        for (int i = 0; i < 75; i++)
            snprintf(many[at + i], sizeof many[0], "%.*s", (int)turns.claim.leases[i].token.len,
                     turns.claim.leases[i].token.at);
    }
    settle_request(&a, PREFIX, turns.now_us, "w");
    for (int i = 0; i < 150; i++) { /* in any order */
        const char *token = many[(i * 77 + 5) % 150];

        settle_end(&a, SETTLE_BACK, span_str(token), 0, NULL);
    }
    must(turns_send(&a));
    for (int i = 0; i < 150; i++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%st%d", i ? " " : "", i);
    expect_list(LANE("t"), expected);
    turns_check();
}

/* ---- Promote */

WORKER_TEST(test_a_retry_comes_before_what_was_parked)
{
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b c");
    expect_leased("w", 3, "a");
    settle("w", SETTLE_RETRY, tokens[0], 2000000, NULL);
    expect_list(LANE("slow"), "b c");
    turns.now_us += 1000000;
    promote(0);
    expect_leased("w", 3, "b");
    assert_int_equal(turns.claim.later_us, BEGIN_US + 2000000);
    turns.now_us += 1000000;
    promote(1);
    expect_list(LANE("slow"), "a c");
    expect_counters("slow", "scheduled 0, retried 1");
    expect_leased("w", 3, "a");
    assert_int_equal(turns.claim.leases[0].attempts, 1);
    assert_int_equal(turns.claim.later_us, -1);
    turns_check();
}

WORKER_TEST(test_promote_keeps_the_order_of_due_times)
{
    int64_t moved;

    must(turns_enqueue("default", "t", "late", 3000000));
    must(turns_enqueue("default", "t", "early", 1000000));
    must(turns_enqueue("default", "t", "never", 9000000));
    enqueue("default", "t", "a b c d");
    assert_int_equal(claim("w", 3, 0), 3);
    settle("w", SETTLE_RETRY, tokens[2], 1000000, NULL);
    settle("w", SETTLE_RETRY, tokens[0], 2000000, NULL);
    settle("w", SETTLE_THROTTLED, tokens[1], 3000000, NULL);
    expect_counters("t", "enqueued 4, scheduled 6");
    turns.now_us += 3000000;
    must(turns_promote(2, &moved));
    assert_int_equal(moved, 2);
    expect_list(LANE("t"), "c");
    expect_list(QUEUE, "d early");
    promote(3);
    expect_list(LANE("t"), "a b c"); /* in the order of one call; a later call goes before it */
    expect_list(QUEUE, "d early late");
    expect_counters("t", "enqueued 6, scheduled 1");
    turns_check();
}

WORKER_TEST(test_promote_puts_each_retry_into_its_own_lane)
{
    for (const char *id = "a\0b\0c\0d\0e\0f\0"; *id; id += 2)
        enqueue("default", *id % 2 ? "t" : "slow", id);
    assert_int_equal(claim("w", 6, 0), 6);
    for (int i = 0; i < 6; i++)
        settle("w", SETTLE_RETRY, tokens[i], 1 + i, NULL);
    turns.now_us += 10;
    promote(6);
    expect_list(LANE("t"), "a c e");
    expect_list(LANE("slow"), "b d f");
    assert_int_equal(redis_number("EXISTS", PREFIX "later"), 0);
    turns_check();
}

WORKER_TEST(test_promote_buries_what_it_cannot_read)
{
    static const char *const records[] = {
        "",
        "x",
        "q a default t",
        "q a default\n{}",
        "q a default t more\n{}",
        "q a def*ault t\n{}",
        "l a default/t\n{}",
        "l a default/t/k/k\n{}",
        "l a de fault/t/\n{}",
        "z a default/t/\n{}",
    };
    char *dead;

    for (size_t i = 0; i < COUNT(records); i++)
        redis_do("ZADD", PREFIX "later", "1", records[i]);
    must(turns_enqueue("default", "t", "good", 1000));
    turns.now_us += 1000;
    promote(COUNT(records) + 1);
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), COUNT(records));
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 0);
    dead = redis_text("ZRANGE", PREFIX "dead", "0", "-1");
    for (size_t i = 0; i < COUNT(records); i++)
        assert_non_null(strstr(dead, records[i]));
    assert_non_null(strstr(dead, " // promote: this record of `later` cannot be read\nl a de fault/t/\n{}"));
    free(dead);
    expect_list(QUEUE, "good");
}

/* Not even where it begins as what stands before and behind it. */
WORKER_TEST(test_promote_takes_no_lane_from_half_a_record)
{
    redis_do("ZADD", PREFIX "later", "1", "l w:1 default/t/\n{\"id\":\"a\",\"type\":\"t\"}");
    redis_do("ZADD", PREFIX "later", "2", "l w:2 default/t/k");
    redis_do("ZADD", PREFIX "later", "3", "l w:3 default/t/key\n{\"id\":\"b\",\"type\":\"t\"}");
    promote(3);
    expect_list(LANE("t"), "a");
    expect_list(LANE("t") "key", "b");
    assert_int_equal(redis_number("ZCARD", PREFIX "dead"), 1);
}

/* However schedules stand between them. */
SCENE_TEST(test_promote_moves_no_more_than_it_was_asked)
{
    int64_t moved;

    redis_do("ZADD", PREFIX "later", "1", "s night\n");
    for (int i = 0; i < 3; i++)
        must(turns_enqueue("default", "t", (const char *[]){"a", "b", "c"}[i], SECOND_US));
    turns.now_us += SECOND_US;
    must(turns_promote(2, &moved));
    assert_int_equal(moved, 2);
    assert_int_equal(redis_number("LLEN", QUEUE), 2);
}

WORKER_TEST(test_promote_puts_off_what_cannot_come_to_its_lane)
{
    char *scores;

    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_RETRY, tokens[0], SECOND_US, "x");
    redis_do("SET", LANE("t"), "foreign");
    turns.now_us += SECOND_US;
    promote(1);
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 1);
    scores = redis_text("ZRANGE", PREFIX "later", "+inf", "-inf", "BYSCORE", "REV", "LIMIT", "0", "1",
                        "WITHSCORES");
    assert_true(atoll(strrchr(scores, '\n') + 1) > turns.now_us);
    free(scores);
}

/* ---- Append */

static int append(const char *lines, const char *first, const char *before, const char *after,
                  const char *jobs)
{
    return turns_script("append", WORDS("b", "", first, lines, before, after, "seed", "", "1", "t", jobs, "1",
                                        "default", jobs, "{\"id\":\"x\",\"type\":\"t\"}"));
}

/* A chunk goes behind what is there of the same input, and only whole. */
SCENE_TEST(test_append_takes_the_next_chunk_only)
{
    must(append("1", "0", "s0", "s1", "1"));
    must(append("1", "1", "other", "s2", "1"));
    assert_string_equal(turns.reply->element[0]->str, "at");
    assert_string_equal(turns.reply->element[2]->str, "s1");
    assert_int_equal(append("2", "1", "s1", "s2", "2"), WEIR_EINPUT);
    assert_int_equal(redis_number("LLEN", QUEUE), 1);
    must(append("1", "1", "s1", "s2", "1"));
    assert_int_equal(redis_number("LLEN", QUEUE), 2);
}

/* ---- Drained, status */

WORKER_TEST(test_drained_counts_what_a_draining_worker_waits_for)
{
    struct drained d;
    struct args a = {0};
    char *before;

    must(turns_rate("slow", CLOSED_RULE));
    enqueue("default", "slow", "a b c");
    enqueue("default", "t", "d e");
    claim("w", 3, 0);
    settle("w", SETTLE_RETRY, tokens[1], SECOND_US, NULL);
    must(turns_enqueue("default", "t", "later", 2 * SECOND_US));
    enqueue("default", "t", "f");
    enqueue("low", "t", "not-mine");
    turns.now_us += SECOND_US;
    before = turns_digest();
    drained_request(&a, PREFIX, turns.now_us, default_queue, ask.types);
    must(turns_send(&a));
    must(drained_reply(turns.reply, &d, &turns.error));
    assert_int_equal(d.waiting, 1);
    assert_int_equal(d.parked, 2);
    assert_int_equal(d.running, 2);
    assert_int_equal(d.due, 1);
    turns_unchanged(before);
}

/* A member of the i-th row of a list in turns.answer: of a list its first element. */
static void expect_raw(size_t i, const char *expected)
{
    assert_string_equal(json_string_value(json_array_get(json_object_get(turns.answer, "raw"), i)), expected);
}

static bool is_in_reply(const char *piece)
{
    for (size_t i = 0; i < turns.reply->elements; i++)
        if (strstr(turns.reply->element[i]->str, piece))
            return true;
    return false;
}

SCENE_TEST(test_status_says_what_there_is)
{
    static const char *const pieces[] = {
        "\"now\":\"1795000000000000\"",
        "\"default\":1",
        "\"until\":\"1795000030000000\"",
        "\"running\":2",
        "\"dead\":1",
        "\"later\":1",
        "\"held\":{\"odd\":true}",
    };
    static const char *const types[] = {"types", "0"}, *const of_types[] = {"\"slow\":{\"counts\":{",
                                                                            "\"parked\":\"1\"",
                                                                            "\"pulled\":\"1\""};
    const char *all[] = {"limits", "types"};
    char *before;

    must(turns_script("status", NULL, 0)); /* of nothing at all */
    start("w");
    must(turns_rate("slow", "1/1000000/1"));
    enqueue("default", "slow", "a b");
    enqueue("default", "t", "c");
    enqueue("default", "odd", "d");
    push("default", "garbage");
    must(turns_enqueue("default", "t", "later", SECOND_US));
    claim("w", 6, 0);
    enqueue("default", "t", "e");
    before = turns_digest();
    must(turns_script("status", NULL, 0));
    for (size_t i = 0; i < COUNT(pieces); i++)
        fail_if(!is_in_reply(pieces[i]), "%s is not in %s", pieces[i], turns.reply->element[0]->str);
    must(turns_script("status", types, COUNT(types)));
    for (size_t i = 0; i < COUNT(of_types); i++)
        fail_if(!is_in_reply(of_types[i]), "%s is not in %s", of_types[i], turns.reply->element[0]->str);
    must(turns_ask("rate_list", &all[0], 1));
    assert_int_equal(json_array_size(json_object_get(turns.answer, "raw")), 1);
    expect_raw(0, "slow\ngcra:1/1000000/1\n1795000000000000 0 - - gcra:1/1000000/1 1795000001000000 0");
    must(turns_ask("rate_list", &all[1], 1));
    expect_raw(0, "slow");
    expect_raw(1, "t");
    expect_raw(2, "odd");
    assert_null(json_object_get(turns.answer, "next"));
    turns_unchanged(before);
}

/* ---- Wrong arguments */

WORKER_TEST(test_wrong_arguments_change_nothing)
{
    enqueue("default", "t", "a b c");
    must(turns_enqueue("default", "t", "later", 1));
    claim("w", 2, 0);
    turns.now_us += SECOND_US;
    expect_refused(WORDS(
        "settle",
        "settle w | gone TOKEN 0 _ | %s%d TOKEN 0 _ | failed | failed 1 | failed 1 TOKEN | failed 2 TOKEN",
        "settle w failed | 1 TOKEN retry | 1 TOKEN retry 1 | 1 TOKEN retry 1 x | 1 TOKEN retry 2 x 2 5",
        "settle w failed 1 TOKEN retry 1 x | 1 | 2 5 | 0 5 1 5 | nan 5 | 0.5 5 0.5 5 | 1 5 1 5",
        "settle w failed | 0 TOKEN dead 1 x | nan TOKEN dead 1 x | 1.5 TOKEN dead 1 x | 4001 TOKEN dead 1 x",
        "settle w failed 1 TOKEN retry 1 x 1 | soon | nan | inf | -5 | 0.5",
        "settle w failed 2 TOKEN TOKEN | dead 1 x | retry 2 x 1 5 | dead 0 x dead 2 x | dead 3 x | dead nan "
        "x",
        "settle w failed 2 TOKEN | 1.-0/default/u/ dead 2 x | 1.-0/default/t/k retry 2 x 2 5",
        "settle w failed 1 | TOKEN gone 1 x | TOKEN dead 1 | _ dead 1 x | @ wrong 1 x | 1.--/default/ dead 1 "
        "x",
        "settle w throttled TOKEN | -2 _ | -0.5 _ | _ _ | 5",
        "settle w | back TOKEN -1 _ | cost TOKEN | cost TOKEN 3 | cost TOKEN many _",
        "settle w cost | TOKEN -1 _ | TOKEN 1.5 _ | TOKEN nan _ | @ 1 _ | TOKEN 2 _ done t _ 9",
        "settle w back | 1.--*x/default/t/ 0 _ | 1.--@5*/default/t/~ 0 _ | 1.--/default/t/~a:b 0 _ | @ 0 _",
        "settle w | back 1.--/default 0 _ | back 1.--/de:fault/t/ 0 _ | done | done t",
        "settle w done t | _ | _ 0 | _ x TOKEN | _ 2 TOKEN | _ nan TOKEN | _ 1.5 TOKEN TOKEN | _ 4001 TOKEN",
        "settle w | done a:t _ 1 TOKEN | run t _ 2 | run t _ 0 TOKEN | run t _ 1.5 TOKEN",
        "settle w run t _ | nan TOKEN | 4001 TOKEN | 100 1.yz/default/t/ | 2 1.-/default/t/",
        "settle w run | t _ 2 1.---/default/t/ | a:t _ 1 TOKEN | t b:c 1 TOKEN | t _ 1 TOKEN TOKEN",
        "settle w | done t b:c 1 TOKEN | failed 1 TOKEN dead 1 x done t _ 9 | done t _ 1 TOKEN failed",
        "promote", "promote | _ | 0 | -1 | 1001 | nan | 1.5 | many", "claim",
        "claim | w | w g 1 1 0 10 0 0 0 _ | w g 1 1 0 10 0 0 0 _ 1 | w g 1 1 0 10 0 0 0 _ 0 default t",
        "claim w g 1 1 0 10 0 0 0 _ | 3 default t | x default t | nan default t | 1 de:fault t",
        "claim w g | 1 1 0 10 0 0 0 _ 2 default default t | x 1 0 10 0 0 0 _ 1 default t",
        "claim w g | 1.5 1 0 10 0 0 0 _ 1 default t | -1 1 0 10 0 0 0 _ 1 default t",
        "claim w g 1 | -1 0 10 0 0 0 _ 1 default t | nan 0 10 0 0 0 _ 1 default t",
        "claim w g 1 1 | -1 10 0 0 0 _ 1 default t | inf 10 0 0 0 _ 1 default t | 0 0 0 0 0 _ 1 default t",
        "claim w g 1 1 0 | 1001 0 0 0 _ 1 default t | 2.5 0 0 0 _ 1 default t | 10 soon 0 0 _ 1 default t",
        "claim w g 1 1 0 10 0 | soon 0 _ 1 default t | 210001 0 _ 1 default t | 5000 -1 _ 1 default t",
        "claim v g 1 1 0 10 0 0 0 h 1 default t", "adopt",
        "adopt n w | g | g 30000000 {} | g 30000000 {} _ 0 1 | g 30000000 {} _ 0 0 default",
        "adopt n w g | 30000000 {} _ 0 2 default | 30000000 {} _ 0 nan default | long {} _ 0 1 default",
        "adopt n w g | 0 {} _ 0 1 default | -1 {} _ 0 1 default | nan {} _ 0 1 default",
        "adopt n w g 30000000 {} _ | x 1 default | -1 1 default",
        "adopt | w w g 30000000 {} _ 0 1 default | _ _ g 30000000 {} _ 0 1 default", "reap",
        "reap | w | w 30000000 | w 30000000 3 5 | w 0 3 5 9 | w -5 3 5 9 | w nan 3 5 9 | w 0.5 3 5 9",
        "reap w 30000000 | 0 5 9 | x 5 9 | 3 -1 9 | 3 5 x", "reap v 30000000 3 5 9", "drained",
        "drained -1 default", "match_names",
        "match_names | queues 0 10 | queues x 10 * | types -1 10 * | queues 0 0 * | types 0 1001 * | limits "
        "0 10 *",
        "drained | x default | 2 default | nan default"));
    turns_check();
}

/* ---- A replica that takes writes */

/* Each script that may write refuses; those that only look do not write. */
WORKER_TEST(test_a_replica_is_written_to_by_none)
{
    char *before, *after;
    int refused = 0, others = 0, lookers = 0;

    enqueue("default", "t", "a");
    redis_do("CONFIG", "SET", "replica-read-only", "no");
    redis_do("REPLICAOF", "127.0.0.1", "1");
    before = turns_digest();
    for (const struct script *s = scripts; s->name; s++) {
        bool looks = strcmp(s->role, SCRIPT_VIEWER) == 0;
        char *answer;

        answer = redis_text(looks ? "FCALL_RO" : "FCALL", textf("weir_%s_%s", script_digest, s->name), "1",
                            textf(looks ? "%s" : "%srole:%s", PREFIX, s->role), "");
        lookers += looks;
        if (strncmp(answer, "(error) READONLY a replica", 26) == 0)
            refused++;
        else
            others++;
        free(answer);
    }
    after = turns_digest();
    assert_string_equal(before, after);
    redis_do("REPLICAOF", "NO", "ONE");
    redis_do("CONFIG", "SET", "replica-read-only", "yes");
    assert_true(refused > 20 && lookers > 15);
    assert_int_equal(others, lookers);
    free(before);
    free(after);
}

/* Who may not ask whether it is one goes on. */
SCENE_TEST(test_a_user_without_info)
{
    redis_do("ACL", "SETUSER", "default", "-info");
    start("w");
    enqueue("default", "t", "a");
    assert_int_equal(claim("w", 1, 0), 1);
    expect_text("0", "EVAL", "return redis.acl_check_cmd('INFO') and 1 or 0", "0");
    redis_do("ACL", "SETUSER", "default", "+info");
}

/* Libraries share one collector. */
WORKER_TEST(test_the_collector_takes_short_steps)
{
    redis_do("FUNCTION", "LOAD",
             "#!lua name=probe\nredis.register_function('probe', function() return "
             "collectgarbage('setstepmul', 40) end)");
    expect_text("40", "FCALL", "probe", "0");
    redis_do("FUNCTION", "DELETE", "probe");
}

/* ---- Answers of another shape */

/* What Lua text answers. */
static const struct redisReply *answer(const char *lua)
{
    struct args a = {0};

    args_add(&a, "EVAL");
    args_add(&a, lua);
    args_add(&a, "0");
    must(turns_send(&a));
    return turns.reply;
}

/* A head that is that of the job before is read once; one that differs in its last digit, or says more, by itself. */
WORKER_TEST(test_heads_that_differ)
{
    struct error e;

    assert_int_equal(
        claim_reply(answer("return {'1',{'1.--/q/t/','@-JIgFkI{}','1.-0/q/t/','@-JIgFkJ{}',"
                           "'1.-1/q/t/','@-JIgFkJ{}','1.-2/q/t/','@0,0,0,t-JIgFkJ,bb;{}',"
                           "'1.-3/q/t/','@0,0,0,t-JI,bb;;{}','1.-4/q/t/','@0,0,0,t-J,bb00;{}'}}"),
                    &turns.claim, &e),
        0);
    for (int i = 1; i < 6; i++)
        assert_int_equal(turns.claim.leases[i].enqueued_us,
                         i < 4 ? turns.claim.leases[0].enqueued_us + 10000 : 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(turns.claim.leases[i].usual, i < 3);
        assert_int_equal(turns.claim.leases[i].body.len, i == 4 ? 3 : 2);
    }
}

/* How many of some queues, or types, these words stand for. */
static int match(const char *what, struct names words)
{
    struct matched page;
    struct args a = {0};
    int count;

    match_request(&a, PREFIX, turns.now_us, what, 0, 1000, words);
    must(turns_send(&a));
    assert_int_equal(match_reply(turns.reply, &page, &turns.error), 0);
    assert_int_equal(page.next, 0);
    count = (int)page.count;
    matched_free(&page);
    return count;
}

/* One word is compared by Redis, several are by the script. */
SCENE_TEST(test_words_stand_for_names)
{
    static const struct {
        const char *words[2];
        int count;
    } cases[] = {
        {{"*"}, 5}, {{"mail"}, 1}, {{"mail*"}, 4},     {{"mail.*"}, 2},       {{"mail.a"}, 1},
        {{"m"}, 0}, {{"n*"}, 1},   {{"mail", "x"}, 1}, {{"mail.*", "n*"}, 3}, {{"*", "mail"}, 5},
    };

    redis_do("SADD", PREFIX "queues", "mail", "mail.", "mail.a", "mailx", "n-1", "no name", "m?il!");
    redis_do("HSET", PREFIX "types", "mail", "", "mail.", "", "mail.a", "", "mailx", "", "n-1", "", "m il",
             "");
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct names words = {cases[i].words, cases[i].words[1] ? 2 : 1};

        assert_int_equal(match("queues", words), cases[i].count);
        assert_int_equal(match("types", words), cases[i].count);
    }
}

SCENE_TEST(test_answers_are_checked)
{
    static const char *const claims[] = {
        "return 1",
        "return 'x'",
        "return false",
        "return {}",
        "return {'1'}",
        "return {'1',7}",
        "return {'1','x'}",
        "return {'1',{'token','{}'}}",
        "return {'1',{'1.1/q/t','{}'}}",
        "return {'1',{1,'{}'}}",
        "return {'1','','u',{}}",
        "return {'1','','u',{'','1.--/q/t/','{}'}}",
        "return {'1','','u',{'0','1.--/q/t/','{}'}}",
        "return {'1','','u',{'2','1.--/q/t/','{}'}}",
        "return {'1','','u',{'1','1.--/q/t/','{}','{}'}}",
        "return {'1','','u',{'1 1','1.--/q/t/','{}'}}",
        "return {'1','','u',{'-1','1.--/q/t/','{}'}}",
        "return {'1','','u',{'2','1.zz/q/t/','{}','{}'}}",
        "return {'1','','u',{'2','1.-/q/t/','{}','{}'}}",
        "return {'1','','u',{'1','token','{}'}}",
        "return {{},{},'n','x',7,8,'more',1,'','','h',5,'r',{{'x'}},'q',{'q 5 x#0 7 9'},'m'}",
    };
    static const char *const numbers[] = {"return 'x'", "return {1}", "return false"};
    struct adopt adopt;
    struct drained drained;
    struct promoted promoted;
    struct reaped reaped;
    struct error e;
    int64_t n;

    for (size_t i = 0; i < COUNT(claims); i++)
        if ((claim_reply(answer(claims[i]), &turns.claim, &e) == 0) != (i == COUNT(claims) - 1))
            fail_msg("%s: taken", claims[i]);
    assert_int_equal(turns.claim.next_us, -1);
    assert_true(turns.claim.told && turns.claim.due_count == 1 && !turns.claim.more);
    assert_int_equal(turns.claim.held_count, 0);
    assert_int_equal(turns.claim.limits[0].len, 0);
    assert_int_equal(claim_reply(answer("return {1,{'1.z@55/q/t/','@1,22,3;{}'},'l','3','d','4','h',{'x'},"
                                        "'s',1,'w',77,'a',1,'c','A1','o',{'a 1500 5 q 0','b 1 5 w 1',"
                                        "'c x 5 w 0','d 0 5 w 0','e 7 5  0','f 7 5 w','g','',7,'h 7 5 l 0'},"
                                        "'g',4,'?',{'of a later version'}}"),
                                 &turns.claim, &e),
                     0);
    assert_int_equal(turns.claim.leases[0].interrupted, 22);
    assert_int_equal(turns.claim.leases[0].slot_us, 55);
    assert_true(turns.claim.starved);
    assert_int_equal(turns.claim.look_us, 77);
    assert_true(turns.claim.alone);
    assert_int_equal(turns.claim.crowd, 4);
    assert_int_equal(turns.claim.loss_count, 2);
    assert_int_equal(turns.claim.losses[0].thousandths, 1500);
    assert_int_equal(turns.claim.losses[0].why, 'q');
    assert_int_equal(*turns.claim.losses[1].limit.at, 'h');
    for (size_t i = 0; i < COUNT(numbers); i++) {
        assert_true(settle_reply(answer(numbers[i]), &n, &e) != 0);
        assert_true(promote_reply(answer(numbers[i]), &promoted, &e) != 0);
        assert_true(reap_reply(answer(numbers[i]), &reaped, &e) != 0);
        assert_true(drained_reply(answer(numbers[i]), &drained, &e) != 0);
        assert_true(adopt_reply(answer(numbers[i]), 1, &adopt, &e) != 0);
    }
    assert_true(adopt_reply(answer("return {'1',7,'born','',1,'d',9,'b','s','t'}"), 1, &adopt, &e) != 0);
    assert_int_equal(
        adopt_reply(answer("return {'1',7,'born','1 2 3',1,'d',9,'b',{},'t','q', 4}"), 1, &adopt, &e), 0);
    assert_int_equal(adopt.left, 7);
    assert_int_equal(adopt.workers, 9);
    assert_int_equal(adopt.back.at_us, 3);
    assert_int_equal(adopt.lost_count, 1);
    adopt_free(&adopt);
    assert_true(claim_reply(NULL, &turns.claim, &e) != 0);
    assert_true(settle_reply(NULL, &n, &e) != 0);
}

TESTS(turns_start, turns_stop)
