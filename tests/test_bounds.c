/* How long a call keeps Redis from all others, by what the server itself has measured: where there is much of
 * something, no call takes longer than with little of it. Each case is tried several times, and the quickest
 * counts: a machine that is busy with other tests makes calls slow, but none quick. */
#include <inttypes.h>

#include "queue/limits/known.h"
#include "tests/play.h"
#include "tests/scene.h"

#define MOST_US 10000
#define TRIES 5

struct timing {
    const char *what;
    int64_t best_us;
};

static void took(struct timing *timing, int64_t us)
{
    if (timing->best_us == 0 || us < timing->best_us)
        timing->best_us = us;
}

static void expect_within(const struct timing *timing, int64_t most_us)
{
    print_message("%s: %.2f ms\n", timing->what, (double)timing->best_us / 1e3);
    fail_if(server_took_more(timing->best_us, most_us), "%s took %.2f ms", timing->what,
            (double)timing->best_us / 1e3);
}

static void expect_short(const struct timing *timing)
{
    expect_within(timing, MOST_US);
}

/* Runs a script's text over the keys of this namespace: what would take many calls to build. */
#define build(text, ...) redis_do("EVAL", "local P = ARGV[1]\n" text "return 0", "0", PREFIX, ##__VA_ARGS__)

/* ---- Gates that open for many queues */

#define QUEUES 5000
#define SETTLED 500

static struct names many_queues(size_t count)
{
    return (struct names){numbered("q", (int)count), count};
}

/* All leases of the last claim are done, in one call. */
static int64_t settle_all(const char *type)
{
    int64_t before_us;
    struct args a = {0};

    settle_request(&a, PREFIX, turns.now_us, "w");
    settle_done(&a, type, (struct span){"", 0}, turns.claim.lease_count);
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        settle_token(&a, turns.claim.leases[i].token);
    before_us = server_cpu_us();
    assert_int_equal(settled(&a), 0);
    return server_cpu_us() - before_us;
}

WORKER_TEST(test_ends_ask_no_queue_in_which_nobody_waits)
{
    struct timing timing = {"settle of 500 jobs in flight, 5,000 queues", 0};

    must(turns_adopt("w2", "", NULL, 0, many_queues(QUEUES), NULL));
    must(turns_rate("t", "concurrency:1000"));
    for (int try = 0; try < TRIES; try++) {
        build("for i = 1, 500 do redis.call('RPUSH', P .. 'queue:default', '{\"id\":\"j' .. i .. "
              "'\",\"type\":\"t\"}') end\n");
        assert_int_equal(claim("w", SETTLED, 0), SETTLED);
        took(&timing, settle_all("t"));
    }
    expect_short(&timing);
}

/* Commands that Redis has run since CONFIG RESETSTAT, those of scripts too. */
static long long all_calls(void)
{
    char *info = redis_text("INFO", "commandstats");
    long long calls = 0;

    for (const char *at = info; (at = strstr(at, ":calls=")); at++)
        calls += atoll(at + strlen(":calls="));
    free(info);
    return calls;
}

/* Ends the jobs of the last claim, to retry each sooner than those before it. */
static void end_all(struct args *a, enum settle_verb verb, int64_t number)
{
    bool fail = verb == SETTLE_RETRY || verb == SETTLE_DEAD;

    if (fail)
        settle_failed(a, SETTLED);
    for (int k = 0; k < SETTLED; k++)
        if (fail)
            settle_token(a, turns.claim.leases[k].token);
        else
            settle_end(a, verb, turns.claim.leases[k].token, number, "why");
    if (fail)
        settle_cause(a, verb, false, SETTLED, "why");
    for (int k = 0; verb == SETTLE_RETRY && k < SETTLED; k++)
        settle_delay(a, 1, number - k);
}

/* Ends of one kind are written together: an end takes less than one command, whatever the number of groups that are on duty, of attempts that
 * failed, of pauses that the provider asks for. */
SCENE_TEST(test_ends_that_are_not_done_are_written_together)
{
    static const struct {
        enum settle_verb verb;
        int64_t number;
    } cases[] = {{SETTLE_RETRY, SECOND_US}, {SETTLE_THROTTLED, SETTLE_NO_TIME},
                 {SETTLE_DEAD, 0},          {SETTLE_FINISH, 0},
                 {SETTLE_INTERRUPTED, 3},   {SETTLE_INTERRUPTED, 1},
                 {SETTLE_CANCELLED, 0},     {SETTLE_BACK, 1}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct args a = {0};

        turns_flush(NULL);
        use_secret();
        start("w");
        build("for i = 1, 40 do\n"
              "  redis.call('HSET', P .. 'duty', 'g' .. i, 'w' .. i .. ' 9000000000000000 default')\n"
              "end\n"
              "redis.call('HSET', P .. 'batch:night', 'total', 1000)\n"
              "for i = 1, 500 do redis.call('RPUSH', P .. 'queue:default', '@0,0,0,s" SECRET
              ",bnight;{\"id\":\"j' .. i .. '\",\"type\":\"t\"}') end\n");
        assert_int_equal(claim("w", SETTLED, 0), SETTLED);
        settle_request(&a, PREFIX, turns.now_us, "w");
        end_all(&a, cases[i].verb, cases[i].number);
        redis_do("CONFIG", "RESETSTAT");
        assert_int_equal(settled(&a), 0);
        assert_in_range(all_calls(), 1, SETTLED - 1);
        if (cases[i].verb == SETTLE_RETRY) /* the soonest of them is due before all others */
            assert_int_equal(redis_number("EXISTS", PREFIX "bell:g1"), 1);
        turns_check();
    }
}

static int64_t count_due(void)
{
    return redis_number("EVAL",
                        "local due = 0\n"
                        "for _, queue in ipairs(redis.call('SMEMBERS', ARGV[1] .. 'queues')) do\n"
                        "  due = due + redis.call('ZCOUNT', ARGV[1] .. 'wake:' .. queue, '-inf', '(inf')\n"
                        "end\n"
                        "return due",
                        "0", PREFIX);
}

#define WAITING 1500 /* more than one call wakes */

/* A job of t in each queue: one starts, all others wait for its end. */
static void wait_everywhere(void)
{
    ask.queues = many_queues(WAITING);
    must(turns_adopt("w", "", NULL, 0, ask.queues, NULL));
    must(turns_rate("t", "concurrency:1"));
    build("for i = 0, 1499 do redis.call('RPUSH', P .. 'queue:q' .. i, '{\"id\":\"j' .. i .. "
          "'\",\"type\":\"t\"}') end\n");
    assert_int_equal(claim("w", 2, 0), 1);
    while (redis_number("EXISTS", PREFIX "queue:q1499") == 1)
        assert_int_equal(claim("w", 1, 0), 0);
    turns_check();
    assert_int_equal(count_due(), 0);
}

SCENE_TEST(test_queues_that_wait_are_woken_bit_by_bit)
{
    struct timing timing = {"waking 300 queues", 0};
    int64_t before_us;

    wait_everywhere();
    before_us = server_cpu_us();
    settle("w", SETTLE_FINISH, tokens[0], 0, "");
    took(&timing, server_cpu_us() - before_us);
    assert_int_equal(count_due(), 21); /* for one slot, and who has nothing that fits or is not served */
    for (int beats = 1; beats <= 5; beats++) {
        before_us = server_cpu_us();
        heartbeat("w");
        took(&timing, server_cpu_us() - before_us);
        assert_int_equal(count_due(), beats < 5 ? 21 + beats * 300 : WAITING - 1);
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "opened"), 0);
    expect_short(&timing);
}

/* Of a worker, or of a group: others than Weir may push into such a queue, and patterns find only what is known. */
WORKER_TEST(test_a_pattern_keeps_its_queues_while_they_are_few)
{
    build("for i = 1, 800 do redis.call('SADD', P .. 'queues', 'mail.' .. i) end\n"
          "redis.call('SADD', P .. 'queues', 'news', 'sms.a', 'default')\n"
          "redis.call('HSET', P .. 'active:w', '@', '{\"queues\":[\"mail.*\",\"default\"]}')\n"
          "redis.call('HSET', P .. 'duty', 'other', 'gone 1795000000000000 ,sms.*')\n");
    for (int i = 0; i < 1000 && redis_number("SISMEMBER", PREFIX "queues", "news"); i++)
        heartbeat("w");
    assert_int_equal(redis_number("SCARD", PREFIX "queues"), 802);
    assert_int_equal(redis_number("SISMEMBER", PREFIX "queues", "mail.*"), 0);
    build("for i = 801, 1200 do redis.call('SADD', P .. 'queues', 'mail.' .. i) end\n"
          "redis.call('RPUSH', P .. 'queue:mail.7', '{}')\n");
    for (int i = 0; i < 200 && redis_number("SCARD", PREFIX "queues") > 1000; i++)
        heartbeat("w");
    assert_in_range(redis_number("SCARD", PREFIX "queues"), 980, 1000);
    assert_int_equal(redis_number("SISMEMBER", PREFIX "queues", "mail.7"), 1);
}

/* ---- Much of something in one claim */

#define TYPES 500

static struct names many_types(size_t count)
{
    return (struct names){numbered("t", (int)count), count};
}

static int64_t claim_us(int free, int prefetch)
{
    int64_t before_us = server_cpu_us();

    claim("w", free, prefetch);
    return server_cpu_us() - before_us;
}

/* Claims until nothing is left to take; the longest of them. */
static int64_t longest_claim_us(int free, int prefetch)
{
    int64_t longest_us = 0;

    do {
        int64_t us = claim_us(free, prefetch);

        longest_us = us > longest_us ? us : longest_us;
        ask.duty_until_us = turns.claim.duty_until_us;
    } while (turns.claim.more);
    return longest_us;
}

SCENE_TEST(test_a_claim_of_many_types)
{
    static const char *const rules[] = {
        "", "gcra:5/1000000/5",
        "gcra:5/1000000/5 gcra:50/60000000/50 fixed-window:100/3600000000/0 sliding-window:500/86400000000"};
    struct timing timing[] = {{"claim of 500 types", 0},
                              {"claim of 500 types with a limit", 0},
                              {"claim of 500 types with a limit of four rules", 0}};

    for (size_t limited = 0; limited < COUNT(rules); limited++) {
        for (int try = 0; try < TRIES; try++) {
            worker_begin(NULL);
            ask.types = many_types(TYPES);
            build("for i = 0, 499 do\n"
                  "  redis.call('RPUSH', P .. 'queue:default', '{\"id\":\"j' .. i .. '\",\"type\":\"t' .. i "
                  ".. '\"}')\n"
                  "  if ARGV[2] ~= '' then redis.call('HSET', P .. 'limits', 't' .. i, ARGV[2]) end\n"
                  "end\n",
                  rules[limited]);
            ask.mark = true;
            took(&timing[limited], longest_claim_us(500, 0));
            assert_int_equal(redis_number("HLEN", ACTIVE "w"), 1 + TYPES);
        }
        expect_short(&timing[limited]);
    }
}

/* Of types that take turns a claim handles few: it reads first what its budget is enough for in any case, and then by what one has taken. The first
 * 64 jobs are of 32 types, each behind them is of another. A job more or less does not matter: three are read at once. */
WORKER_TEST(test_a_claim_reads_no_more_than_it_handles)
{
    size_t handled;

    ask.types = many_types(TYPES);
    ask.chunk = 1000;
    build(
        "for i = 0, 499 do\n"
        "  local t = i < 64 and i % 32 or i - 32\n"
        "  redis.call('RPUSH', P .. 'queue:default', '{\"id\":\"j' .. i .. '\",\"type\":\"t' .. t .. '\"}')\n"
        "end\n");
    redis_do("CONFIG", "RESETSTAT");
    handled = claim("w", 500, 0);
    assert_in_range(handled, 65, 100);
    assert_in_range(server_calls(&turns.server, "lrange"), 2, 4); /* 64 at once */
}

/* The limits of a worker's types are learned; the longest page. */
static int64_t longest_known_us(struct names types)
{
    struct known_limits known = {0};
    int64_t longest_us = 0;

    do {
        int64_t before_us = server_cpu_us(), us;
        struct args a = {0};

        rate_known_request(&a, PREFIX, turns.now_us, &known, "", types);
        must(turns_send(&a));
        must(rate_known_reply(turns.reply, &known, &turns.error));
        us = server_cpu_us() - before_us;
        longest_us = us > longest_us ? us : longest_us;
    } while (known_limits_asks_more(&known));
    known_limits_free(&known);
    return longest_us;
}

/* Joins until nothing is left; the longest call, us. */
static int64_t longest_adopt_us(const char *const *adopt, size_t count, int *calls)
{
    int64_t longest_us = 0, before_us, us;

    *calls = 0;
    do {
        before_us = server_cpu_us();
        must(turns_script("adopt", adopt, count));
        us = server_cpu_us() - before_us;
        longest_us = us > longest_us ? us : longest_us;
        ++*calls;
    } while (turns.reply->element[1]->integer > 0);
    return longest_us;
}

/* It joins, and learns its limits, all of whose keys have weights. Each try has one type of its own, so that none has read its types. */
SCENE_TEST(test_a_worker_of_very_many_types)
{
    enum { MANY = 10000, WEIGHTED = 900 };
    struct timing timing[] = {{"adopt of 10,000 types", 0}, {"rate_known of 10,000 types", 0}};
    static char info[MANY * 10];
    const char *adopt[] = {"w", "", "g", "30000000", info, "", "0", "1", "default"};
    int calls;

    build("for i = 0, 9999 do\n"
          "  redis.call('HSET', P .. 'limits', 't' .. i, 'gcra:5/1000000/5,by=key weights:1')\n"
          "  if i < 900 then redis.call('HSET', P .. 'weights', 't' .. i .. '/k', '2') end\n"
          "end\n");
    for (int try = 0; try < TRIES; try++) {
        size_t used = (size_t)snprintf(info, sizeof info, "{\"lease\":30.0,\"types\":[\"try%d\"", try);

        for (int i = 0; i < MANY; i++)
            used += (size_t)snprintf(info + used, sizeof info - used, ",\"t%d\"", i);
        snprintf(info + used, sizeof info - used, "]}");
        took(&timing[0], longest_adopt_us(adopt, COUNT(adopt), &calls));
        assert_int_equal(calls, MANY / 500 + 1);
        longest_adopt_us(adopt, COUNT(adopt), &calls);
        assert_int_equal(calls, 1);
        took(&timing[1], longest_known_us(many_types(MANY)));
        redis_do("DEL", PREFIX "runs");
    }
    assert_int_equal(redis_number("HLEN", PREFIX "weights"), WEIGHTED);
    expect_short(&timing[0]);
    expect_short(&timing[1]);
}

/* Of a script that is called again and again, from where it ended. */
struct walk {
    int calls;
    int64_t most_commands; /* in one of them */
    int rc;
};

static struct walk try_walk(const char *script, const char *const *words, size_t count)
{
    struct walk w = {0, 0, 0};
    int64_t before = count_commands(), now;

    w.rc = turns_ask(script, words, count);
    do {
        now = count_commands();
        w.most_commands = now - before > w.most_commands ? now - before : w.most_commands;
        w.calls++;
        before = now;
    } while (w.rc == 0 && turns_ask_more(script, words, count, &w.rc));
    return w;
}

static struct walk walk(const char *script, const char *const *words, size_t count)
{
    struct walk w = try_walk(script, words, count);

    must(w.rc);
    print_message("%s: %d calls, %" PRId64 " commands\n", script, w.calls, w.most_commands);
    return w;
}

#define BY_A "gcra:5/1000000/5,by=a"
#define BY_B "gcra:5/1000000/5,by=b"

/* 5,000 types use it, each with a limit of its own, no two of which are alike. */
static void shared_by_many(void)
{
    build("for i = 1, 5000 do\n"
          "  redis.call('HSET', P .. 'types', 't' .. i, 'use=shared')\n"
          "  redis.call('HSET', P .. 'limits', 't' .. i, 'gcra:5/1000000/' .. i)\n"
          "  redis.call('HSET', P .. 'stats:t' .. i, 'pulled', 9, 'keyless', 4)\n"
          "end\n"
          "redis.call('HSET', P .. 'limits', 'shared', '" BY_A "')\n");
}

/* Its types are checked, and their counts begin anew, a page at a time. */
SCENE_TEST(test_a_limit_of_very_many_types)
{
    struct walk w;

    shared_by_many();
    w = walk("rate_set", WORDS("shared", BY_B, "0", "set", "me"));
    assert_in_range(w.calls, 10, 30);
    assert_in_range(w.most_commands, 1, 600);
    assert_string_equal(answer_text(turns.answer, "recount"), BY_A);
    w = walk("rate_recount", WORDS("shared", BY_A));
    assert_in_range(w.calls, 10, 60);
    assert_in_range(w.most_commands, 1, 1200);
    assert_int_equal(
        redis_number("EVAL",
                     "local n = 0\n"
                     "for i = 1, 5000 do\n"
                     "  local at = redis.call('HMGET', ARGV[1] .. 'stats:t' .. i, 'keyless', 'keyed_from')\n"
                     "  if at[1] == '0' and at[2] == '9' then n = n + 1 end\n"
                     "end\n"
                     "return n",
                     "0", PREFIX),
        5000);
}

/* Its types are looked for a page at a time, and those with the most jobs are kept; only then are its keys. */
SCENE_TEST(test_keys_of_a_limit_of_very_many_types)
{
    struct walk w;

    shared_by_many();
    build("for i = 1, 5000 do redis.call('HSET', P .. 'stats:t' .. i, 'parked', 1 + i % 10) end\n"
          "redis.call('HSET', P .. 'stats:t4321', 'parked', 100)\n"
          "for i = 1, 200 do redis.call('SADD', P .. 'queues', 'q' .. i) end\n"
          "for q in pairs{q1 = 1, q2 = 1} do\n"
          "  for i = 1, 50 do redis.call('RPUSH', P .. 'lane:' .. q .. '/t4321/k', 'x') end\n"
          "  redis.call('ZADD', P .. 'ring:' .. q .. '/t4321', 1, 'k')\n"
          "end\n"
          "redis.call('ZADD', P .. 'longest:t4321', 50, 'q1/k', 50, 'q2/k')\n");
    w = walk("rate_keys", WORDS("shared", "50", ""));
    assert_in_range(w.calls, 10, 30);
    assert_in_range(w.most_commands, 1, 1200);
    assert_int_equal(answer_int(turns.answer, "parked"), 5000 * 5.5 + 100 - 2);
    assert_true(json_is_true(json_object_get(turns.answer, "sample")));
    expect_text("k", "ECHO", answer_text(json_array_get(json_object_get(turns.answer, "keys"), 0), "key"));
    w = walk("rate_keys", WORDS("shared", "1", "k"));
    assert_in_range(w.most_commands, 1, 1200);
}

/* A limit that no type uses is soon known to have none. */
SCENE_TEST(test_keys_of_a_limit_among_very_many_types)
{
    struct walk w;

    shared_by_many();
    redis_do("HSET", PREFIX "limits", "alone", BY_A);
    w = walk("rate_keys", WORDS("alone", "50", ""));
    assert_in_range(w.calls, 5, 7);
    assert_in_range(w.most_commands, 1, 250);
    assert_null(json_object_get(turns.answer, "sample"));
    assert_int_equal(answer_int(turns.answer, "key_count"), 0);
}

/* Each page can hold the type that keeps the limit from being changed, and nothing is changed before the last. */
SCENE_TEST(test_a_type_among_very_many_that_does_not_fit)
{
    static const char *const by_b[] = {"shared", BY_B, "0", "set", "me"}, *const none[] = {"shared", "", "0",
                                                                                           "remove", "me"};
    static const char *const misfits[] = {"t1", "t77", "t4321", "t5000"};

    shared_by_many();
    for (size_t i = 0; i < COUNT(misfits); i++) {
        redis_do("HSET", PREFIX "limits", misfits[i], BY_A);
        assert_int_equal(try_walk("rate_set", by_b, COUNT(by_b)).rc, WEIR_EINPUT);
        assert_non_null(strstr(turns.error.text, textf("type %s: limit %s goes by a and limit shared by b",
                                                       misfits[i], misfits[i])));
        redis_do("HDEL", PREFIX "limits", misfits[i]);
    }
    assert_int_equal(try_walk("rate_set", none, COUNT(none)).rc, WEIR_EINPUT);
    assert_non_null(strstr(turns.error.text, "limit shared: used by t"));
    expect_text(BY_A, "HGET", PREFIX "limits", "shared");
    assert_int_equal(redis_number("EXISTS", PREFIX "changes"), 0);
}

/* A type comes to use the limit, perhaps one of a page that was checked before: all are checked again. */
SCENE_TEST(test_a_type_that_changes_while_a_limit_is_checked)
{
    static const char *const by_b[] = {"shared", BY_B, "0", "set", "me"};
    static const struct {
        const char *script, *words[6];
        size_t count;
    } changes[] = {{"rate_use", {"late", "use", "", "use", "me", "shared"}, 6},
                   {"rate_again", {"me", "0", "", "type late 7 use=shared"}, 4}}; /* of an old revision */

    for (size_t k = 0; k < COUNT(changes); k++) {
        int rc, calls = 0;
        json_t *place;

        scene_begin(state);
        shared_by_many();
        redis_do("HSET", PREFIX "limits", "late", BY_A);
        must(turns_ask("rate_set", by_b, COUNT(by_b)));
        while (json_array_size(json_object_get(turns.answer, "next")) > 0 && calls++ < 20)
            turns_ask_more("rate_set", by_b, COUNT(by_b), &rc);
        must(turns_rate("shared", BY_A));
        must(turns_ask("rate_set", by_b, COUNT(by_b)));
        for (int i = 0; i < calls - 1; i++) /* all pages but the last */
            turns_ask_more("rate_set", by_b, COUNT(by_b), &rc);
        place = json_incref(turns.answer);
        must(turns_script(changes[k].script, changes[k].words, changes[k].count));
        json_decref(turns.answer);
        turns.answer = place;
        while (turns_ask_more("rate_set", by_b, COUNT(by_b), &rc) && rc == 0)
            ;
        assert_int_equal(rc, WEIR_EINPUT);
        assert_non_null(strstr(turns.error.text, "type late: limit late goes by a and limit shared by b"));
        expect_text(BY_A, "HGET", PREFIX "limits", "shared");
    }
}

/* It waits in none of a thousand queues: each is asked one thing. */
SCENE_TEST(test_a_type_lets_go_of_a_limit_among_very_many_queues)
{
    struct walk w;

    build("for i = 1, 1000 do redis.call('SADD', P .. 'queues', 'q' .. i) end\n"
          "redis.call('HSET', P .. 'limits', 'a', 'gcra:5/1000000/5', 'b', 'gcra:5/1000000/5', 'c', "
          "'gcra:5/1000000/5')\n");
    must(ask_line("rate_use t use _ use me a b c"));
    w = walk("rate_use", WORDS("t", "unuse", "", "unuse", "me", "a", "b", "c"));
    assert_in_range(w.most_commands, 1, 1000);
}

WORKER_TEST(test_many_held_types)
{
    struct timing timing = {"claim that looks at held types, 50,000 of others", 0};

    build("for i = 1, 50000 do redis.call('ZADD', P .. 'held:default', i, 'h' .. i) end\n");
    ask.held = true;
    for (int try = 0; try < TRIES; try++)
        took(&timing, claim_us(10, 0));
    expect_short(&timing);
}

/* 2,000 types that another worker has set aside, all of them this worker's, and as many names more. */
WORKER_TEST(test_held_types_come_back_bit_by_bit)
{
    struct timing timing = {"claim that takes held types back", 0};

    name_types("w", "t", "h", 4000);
    claim("w", 0, 0); /* its types are read */
    redis_do("HSET", PREFIX "duty", "g", "other 9000000000000000 default");
    build("for i = 0, 1999 do\n"
          "  redis.call('ZADD', P .. 'held:default', i, 'h' .. i)\n"
          "  redis.call('ZADD', P .. 'ring:default/h' .. i, i, '')\n"
          "  redis.call('RPUSH', P .. 'lane:default/h' .. i .. '/', '{\"id\":\"j' .. i .. '\",\"type\":\"h' "
          ".. i "
          ".. '\"}')\n"
          "end\n");
    ask.held = true;
    for (int left = 1500; left >= 0; left -= 500) {
        took(&timing, claim_us(0, 0));
        assert_int_equal(redis_number("ZCARD", PREFIX "held:default"), left);
        assert_int_equal(redis_number("ZCARD", PREFIX "wait:default/-"), 2000 - left);
        assert_int_equal(redis_number("LLEN", PREFIX "bell:g"), left > 0);
        redis_do("DEL", PREFIX "bell:g");
    }
    expect_short(&timing);
}

SCENE_TEST(test_many_queues_and_rules)
{
    struct timing timing = {"claim from 64 queues, 8 keyed rules", 0};

    for (int try = 0; try < TRIES; try++) {
        scene_begin(NULL);
        ask.queues = many_queues(64);
        must(turns_adopt("w", "", NULL, 0, ask.queues, NULL));
        must(turns_rate(
            "t",
            "gcra:2/1000000/2,by=key gcra:3/1000000/3,by=key gcra:4/1000000/4,by=key gcra:5/1000000/5,by=key "
            "gcra:6/1000000/6,by=key gcra:7/1000000/7,by=key gcra:8/1000000/8,by=key "
            "gcra:9/1000000/9,by=key"));
        build("for q = 0, 63 do for i = 1, 20 do\n"
              "  redis.call('RPUSH', P .. 'queue:q' .. q, '{\"id\":\"j' .. q .. '.' .. i .. "
              "'\",\"type\":\"t\",\"key\":\"k' .. i % 10 + q .. '\"}')\n"
              "end end\n");
        took(&timing, longest_claim_us(500, 0));
    }
    expect_short(&timing);
}

/* ---- The clock of Redis is set back */

#define BACK_US (3600 * SECOND_US)

static int64_t beat_us(int64_t *left)
{
    int64_t before_us = server_cpu_us();

    heartbeat("w");
    *left = turns.reply->element[3]->integer;
    return server_cpu_us() - before_us;
}

/* Heartbeats until nothing follows; the longest of them. between: what others write after the second. */
static int64_t longest_beat_us(void (*between)(void))
{
    int64_t longest_us = 0, left = 1;

    for (int beats = 0; left > 0; beats++) {
        int64_t us = beat_us(&left);

        assert_in_range(beats, 0, 5000);
        longest_us = us > longest_us ? us : longest_us;
        if (beats == 1 && between)
            between();
    }
    return longest_us;
}

/* So many keys sleep in a queue, one opens each millisecond. */
static void plant_sleeping(const char *queue, int count)
{
    const char *from = textf("%" PRId64, turns.now_us);

    build(
        "local from, rule = tonumber(ARGV[4]), 'gcra:1/1000000/1'\n"
        "redis.call('SADD', P .. 'queues', ARGV[2])\n"
        "redis.call('HSET', P .. 'limits', 'm', 'gcra:1/1000000/1 ' .. rule .. ',by=key')\n"
        "redis.call('ZADD', P .. 'wake:' .. ARGV[2], ARGV[4] + 1000, '*', ARGV[4] + 1000, 'm#0')\n"
        "for i = 1, ARGV[3] do\n"
        "  local opens = string.format('%d', from + 1000 * i)\n"
        "  redis.call('ZADD', P .. 'sleep:' .. ARGV[2], opens, 'm#1/k' .. i)\n"
        "  redis.call('SET', P .. 'gate:m#1/k' .. i, ARGV[4] .. ' 0 - - ' .. rule .. ' ' .. opens .. ' 0')\n"
        "end\n",
        queue, textf("%d", count), from);
}

/* How many of them are not where they would be if the clock had always gone as it goes now. */
static int64_t misplaced(const char *queue, int64_t from_us)
{
    return redis_number("EVAL",
                        "local n, list = 0, redis.call('ZRANGE', ARGV[1] .. 'sleep:' .. ARGV[2], 0, -1, "
                        "'WITHSCORES')\n"
                        "for i = 1, #list, 2 do\n"
                        "  local k = list[i]:match('^m#1/k(%d+)$')\n"
                        "  if k and tonumber(list[i + 1]) ~= ARGV[3] + 1000 * k then n = n + 1 end\n"
                        "end\n"
                        "return n",
                        "0", PREFIX, queue, textf("%" PRId64, from_us));
}

static void sleep_meanwhile(void)
{
    redis_do("ZADD", PREFIX "sleep:default", textf("%" PRId64, turns.now_us + 1), "new#1/soon",
             textf("%" PRId64, turns.now_us + 2 * BACK_US), "new#1/late", "+inf", "new#1/flight");
}

WORKER_TEST(test_a_clock_that_is_set_back_moves_sleeping_keys_bit_by_bit)
{
    enum { KEYS = 50000, FEW = 600 };
    struct timing timing = {"heartbeat after a step back, 50,000 keys", 0};
    int64_t planted_us = turns.now_us, left;

    beat_us(&left);
    plant_sleeping("default", KEYS);
    plant_sleeping("other", FEW);
    for (int step = 1; step <= 2; step++) { /* once Redis and Lua make their tables larger meanwhile */
        turns.now_us -= BACK_US;
        took(&timing, longest_beat_us(step == 2 ? sleep_meanwhile : NULL));
    }
    expect_short(&timing);
    assert_int_equal(misplaced("default", planted_us - 2 * BACK_US), 0);
    assert_int_equal(misplaced("other", planted_us - 2 * BACK_US), 0);
    assert_int_equal(redis_number("ZCARD", PREFIX "sleep:default"), KEYS + 3);
    assert_int_equal(redis_number("ZSCORE", PREFIX "sleep:default", "new#1/soon"), turns.now_us + 1);
    assert_in_range(redis_number("ZSCORE", PREFIX "sleep:default", "new#1/late"), 0,
                    turns.now_us + 2 * BACK_US);
    expect_text("inf", "ZSCORE", PREFIX "sleep:default", "new#1/flight");
    /* Types are looked at, and `*` is not later than the first key. */
    assert_int_equal(redis_number("ZSCORE", PREFIX "wake:default", "m#0"), turns.now_us);
    assert_int_equal(redis_number("ZSCORE", PREFIX "wake:default", "*"), turns.now_us);
}

/* The first page has the keys that open first, and all types: what is due starts, however much is left. */
WORKER_TEST(test_what_opens_first_after_a_step_back_is_moved_first)
{
    int64_t planted_us = turns.now_us, left;

    beat_us(&left);
    plant_sleeping("default", 5000);
    plant_sleeping("other", 5000);
    turns.now_us -= BACK_US;
    beat_us(&left);
    assert_true(left > 0);
    assert_int_equal(redis_number("ZSCORE", PREFIX "wake:default", "m#0"), turns.now_us);
    assert_int_equal(redis_number("ZSCORE", PREFIX "wake:other", "m#0"), turns.now_us);
    beat_us(&left);
    assert_int_equal(redis_number("ZSCORE", PREFIX "sleep:default", "m#1/k1"), planted_us - BACK_US + 1000);
    assert_int_equal(redis_number("ZSCORE", PREFIX "sleep:other", "m#1/k1"), planted_us - BACK_US + 1000);
    /* A second step before all has followed the first one. */
    turns.now_us -= BACK_US;
    longest_beat_us(NULL);
    assert_int_equal(redis_number("ZSCORE", PREFIX "sleep:other", "m#1/k5000"),
                     planted_us - 2 * BACK_US + 5000000);
    assert_in_range(redis_number("ZSCORE", PREFIX "sleep:other", "m#1/k1"), 0, turns.now_us + 1000);
}

WORKER_TEST(test_many_queues_and_limits_after_a_step_back)
{
    struct timing timing = {"heartbeat after a step back, 5,000 queues and limits", 0};
    int64_t left;

    for (int try = 0; try < TRIES; try++) {
        build("for i = 1, 5000 do\n"
              "  redis.call('SADD', P .. 'queues', 'q' .. i)\n"
              "  redis.call('ZADD', P .. 'wake:q' .. i, ARGV[2] + 1000, 'm#0', 'inf', 'c#0')\n"
              "  redis.call('HSET', P .. 'limits', 'm' .. i, 'gcra:1/1000000/1 pause:' .. ARGV[2] + 1000000 "
              ".. '/' "
              ".. ARGV[2])\n"
              "end\n",
              textf("%" PRId64, turns.now_us));
        beat_us(&left);
        turns.now_us -= BACK_US;
        took(&timing, longest_beat_us(NULL));
        assert_int_equal(
            redis_number("EVAL",
                         "local n = 0\n"
                         "for i = 1, 5000 do\n"
                         "  local at = redis.call('ZMSCORE', ARGV[1] .. 'wake:q' .. i, 'm#0', 'c#0')\n"
                         "  if at[1] == ARGV[2] and at[2] == 'inf' then n = n + 1 end\n"
                         "end\n"
                         "return n",
                         "0", PREFIX, textf("%" PRId64, turns.now_us)),
            5000);
    }
    expect_short(&timing);
}

/* ---- Many leases */

/* A worker that is late, with `count` leases, 60 a turn; those of the last `bad` have a lane that is a string. */
static void late_worker(const char *count, const char *bad)
{
    build("local count, bad = tonumber(ARGV[2]), tonumber(ARGV[3])\n"
          "for i = 0, count - 1 do\n"
          "  local kind = i < count - bad and 't' or 'slow'\n"
          "  local index = ('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'):sub(i % 60 + "
          "1, i % 60 + 1)\n"
          "  local token = string.format('%d.0%s/default/%s/', 1 + math.floor(i / 60), index, kind)\n"
          "  redis.call('HSET', P .. 'active:late', token, '{\"id\":\"j' .. i .. '\",\"type\":\"' .. kind .. "
          "'\"}')\n"
          "end\n"
          "redis.call('ZADD', P .. 'workers', '1', 'late')\n"
          "if bad > 0 then redis.call('SET', P .. 'lane:default!/slow/', 'x') end\n",
          count, bad);
}

/* Heartbeats until nothing is left to be taken back; returns the most commands of one. */
static int64_t take_all_back(int64_t *calls)
{
    int64_t before = count_commands(), now, most = 0, taken = 1, workers;

    for (*calls = 0; taken > 0 && *calls < 100; ++*calls) {
        must(turns_reap("w", &taken, &workers));
        now = count_commands();
        most = now - before > most ? now - before : most;
        before = now;
    }
    return most;
}

/* Each is in one place of the lane. */
static void expect_order(const char *lane, int count)
{
    for (int i = 0; i < count; i++) {
        char *entry;
        const char *id = textf("\"j%d\"", i);

        entry = redis_text("LINDEX", lane, textf("%d", i));
        fail_if(!strstr(entry, id), "place %d has %s", i, entry);
        free(entry);
    }
}

WORKER_TEST(test_leases_go_back_bit_by_bit_in_their_order)
{
    int64_t calls, most;

    pass("w", 61 * SECOND_US); /* behind the amnesty */
    late_worker("800", "0");
    most = take_all_back(&calls);
    print_message("reap: %" PRId64 " calls, %" PRId64 " commands\n", calls, most);
    assert_in_range(calls, 8, 10);
    assert_in_range(most, 1, 700);
    assert_int_equal(redis_number("LLEN", ALONE("t")), 800);
    expect_order(ALONE("t"), 800);
    assert_int_equal(redis_number("EXISTS", ACTIVE "late"), 0);
}

/* More than one call takes cannot come to their lane: they wait in `later`, and those behind them go back. */
WORKER_TEST(test_leases_that_a_key_keeps_hold_up_no_others)
{
    int64_t calls;

    pass("w", 61 * SECOND_US); /* behind the amnesty */
    late_worker("800", "500");
    assert_in_range(take_all_back(&calls), 1, 1100);
    assert_int_equal(redis_number("LLEN", ALONE("t")), 300);
    assert_int_equal(redis_number("ZCARD", PREFIX "later"), 500);
    assert_int_equal(redis_number("EXISTS", ACTIVE "late"), 0);
}

/* A worker that leaves gives all back, also bit by bit. */
WORKER_TEST(test_a_worker_that_leaves_gives_back_bit_by_bit)
{
    int64_t before, most = 0, left = 1;
    int calls;

    late_worker("800", "0");
    for (calls = 0; left > 0 && calls < 30; calls++) {
        before = count_commands();
        must(call_line("adopt _ late g 30000000 {} _ 0 1 default"));
        left = turns.reply->element[1]->integer;
        most = count_commands() - before > most ? count_commands() - before : most;
    }
    print_message("adopt: %d calls, %" PRId64 " commands\n", calls, most);
    assert_in_range(calls, 20, 22);
    assert_in_range(most, 1, 300);
    expect_order(LANE("t"), 800);
}

/* ---- Looking at 10,000 types and limits, 1,000 queues */

/* Words of the call for the types of a status, those of its first page. */
static const char *const types_from[] = {"types", "0"};

/* The longest page of a script that is walked to its end. Words of types_from stand in the first call alone. */
static int64_t longest_page_us(const char *script, const char *const *words, size_t count)
{
    int64_t longest_us = 0, before_us = server_cpu_us(), now_us;
    int rc = turns_ask(script, words, count);

    count = words == types_from ? 0 : count;

    do {
        must(rc);
        now_us = server_cpu_us();
        longest_us = now_us - before_us > longest_us ? now_us - before_us : longest_us;
        before_us = now_us;
    } while (turns_ask_more(script, words, count, &rc));
    return longest_us;
}

/* A part of all types, as a worker asks for them. */
static int64_t drained_us(struct names queues, struct names types)
{
    int64_t before_us = server_cpu_us();
    struct drained d;
    struct args a = {0};

    drained_request(&a, PREFIX, turns.now_us, queues, types);
    must(turns_send(&a));
    must(drained_reply(turns.reply, &d, &turns.error));
    assert_int_equal(d.waiting, queues.count);
    assert_int_equal(d.parked, 0);
    return server_cpu_us() - before_us;
}

WORKER_TEST(test_whatever_there_is_each_look_is_short)
{
    static const char *const set[] = {"t7", "gcra:9/1000000/9", "0", "set", "me"}, *const all[] = {"limits"};
    struct timing timing[] = {{"page of status", 0},
                              {"page of rate_list", 0},
                              {"page of queue_list", 0},
                              {"drained, 100 of 10,000 types", 0},
                              {"rate_set of one in 10,000", 0},
                              {"page of the types of status", 0}};

    build("for i = 0, 9999 do\n"
          "  redis.call('HSET', P .. 'types', 't' .. i, '')\n"
          "  redis.call('HSET', P .. 'limits', 't' .. i, 'gcra:' .. 1 + i % 70 .. '/1000000/1')\n"
          "  redis.call('HSET', P .. 'stats:t' .. i, 'enqueued', 9, 'pulled', 5, 'done', 5, 'mark', 4, "
          "'mark_us', 5, 'parked', 4)\n"
          "end\n"
          "for i = 0, 999 do\n"
          "  redis.call('SADD', P .. 'queues', 'q' .. i)\n"
          "  redis.call('RPUSH', P .. 'queue:q' .. i, '{\"id\":\"j\",\"type\":\"t' .. i .. '\"}')\n"
          "  redis.call('ZADD', P .. 'held:q' .. i % 9, 1, 't' .. 9 * i)\n"
          "end\n");
    for (int try = 0; try < TRIES; try++) {
        took(&timing[0], longest_page_us("status", NULL, 0));
        took(&timing[5], longest_page_us("status", types_from, COUNT(types_from)));
        took(&timing[1], longest_page_us("rate_list", all, COUNT(all)));
        took(&timing[2], longest_page_us("queue_list", NULL, 0));
        took(&timing[3], drained_us(many_queues(64), many_types(100)));
        took(&timing[4], longest_page_us("rate_set", set, COUNT(set)));
    }
    for (size_t i = 0; i < COUNT(timing); i++)
        expect_short(&timing[i]);
}

/* ---- What a scan finds at once: all of a hash or a set that is small enough to be packed, whatever was asked for */

/* Of pages: commands that the script ran, and what there is of each. */
struct page {
    int64_t commands;
    size_t types, limits, workers;
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Adds the page that was asked for to all, and to the most of each that one page had. */
static void note_page(int64_t commands, struct page *all, struct page *most)
{
    size_t types = json_object_size(json_object_get(turns.answer, "types"));
    size_t limits = json_array_size(json_object_get(turns.answer, "raw"));
    size_t workers = json_object_size(json_object_get(turns.answer, "workers"));

    all->types += types;
    all->limits += limits;
    all->workers += workers;
    most->commands = commands > most->commands ? commands : most->commands;
    most->types = larger(most->types, types);
    most->limits = larger(most->limits, limits);
    most->workers = larger(most->workers, workers);
}

/* Walks to the end; returns what there was in all, and the most of each that one page had. */
static struct page walk_pages(const char *script, const char *const *words, size_t count, struct page *most)
{
    struct page all = {0};
    int64_t before = count_commands(), now;
    int rc = turns_ask(script, words, count);

    count = words == types_from ? 0 : count;
    *most = (struct page){0};
    do {
        must(rc);
        now = count_commands();
        note_page(now - before, &all, most);
        before = now;
    } while (turns_ask_more(script, words, count, &rc));
    return all;
}

SCENE_TEST(test_what_a_scan_finds_at_once_is_taken_bit_by_bit)
{
    struct page all, most;

    build("local many = {}\n"
          "for i = 1, 40 do many[2 * i - 1], many[2 * i] = 'counter' .. i, '1' end\n"
          "for i = 1, 500 do\n"
          "  redis.call('HSET', P .. 'types', 't' .. i, 'use=all')\n"
          "  redis.call('HSET', P .. 'stats:t' .. i, 'enqueued', 9, 'parked', 4, unpack(many))\n"
          "  redis.call('HSET', P .. 'limits', 't' .. i, 'gcra:1/1000/1 gcra:2/1000/1 gcra:3/1000/1')\n"
          "end\n"
          "local said = '{\"types\":[\"' .. string.rep('x', 60000) .. '\"]}'\n"
          "for i = 1, 100 do\n"
          "  redis.call('ZADD', P .. 'workers', 1, 'w' .. i)\n"
          "  redis.call('HSET', P .. 'active:w' .. i, '@', said)\n"
          "end\n"
          "for i = 1, 4 do redis.call('SADD', P .. 'queues', 'q' .. i) end\n");
    all = walk_pages("status", types_from, COUNT(types_from), &most);
    assert_int_equal(all.types, 500);
    assert_in_range(most.commands, 1, 700);
    assert_in_range(most.types, 1, 250);
    all = walk_pages("status", NULL, 0, &most);
    assert_int_equal(all.workers, 100);
    assert_in_range(most.commands, 1, 700);
    assert_in_range(most.workers, 1, 20);
    all = walk_pages("rate_list", (const char *const[]){"limits"}, 1, &most);
    assert_int_equal(all.limits, 500);
    assert_in_range(most.commands, 1, 700);
    assert_in_range(most.limits, 1, 250);
}

/* 250 limits of one rule are two looks each: the first page is spent with the last that its scan has found. */
SCENE_TEST(test_a_page_that_ends_with_its_scan_is_the_last)
{
    static const char *const limits = "limits";

    build("for i = 1, 250 do redis.call('HSET', P .. 'limits', 'l' .. i, 'gcra:1/1000/1') end\n");
    must(turns_ask("rate_list", &limits, 1));
    assert_int_equal(json_array_size(json_object_get(turns.answer, "raw")), 250);
    assert_null(json_object_get(turns.answer, "next"));
}

PLAY("registry")

TESTS(turns_start, turns_stop)
