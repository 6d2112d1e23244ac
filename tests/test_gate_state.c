/* What the Lua gates keep in Redis, under virtual time: their words, garbage, how long they live; and the rules that Lua and C know. */
#include "core/clock.h"
#include "tests/gate_steps.h"
#include "tests/random_rule.h"

/* ---- What is stored */

TEST_WITH(test_states_are_these_words, client_flush, NULL)
{
    static const struct {
        const char *rule, *left;
    } cases[] = {
        {"gcra:3/1000000/5", "1795000000000000 0 - - gcra:3/1000000/5 1795000000666666 2"},
        {"token-bucket:3/1000000/5,by=key",
         "1795000000000000 0 - - token-bucket:3/1000000/5 1795000000666666 2"},
        {"fixed-window:5/1000000/7", "1795000000000000 0 - - fixed-window:5/1000000/7 1795000000000000 2"},
        {"sliding-log:5/1000000",
         "1795000000000000 0 - - sliding-log:5/1000000 1795000000000000 2 1795000000000000 0*2;"},
        {"sliding-window:5/1000000", "1795000000000000 0 - - sliding-window:5/1000000 1795000000000000 2 0"},
        {"concurrency:5", "1795000000000000 0 - - concurrency:5 2"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char *left;

        server_do(&server, "DEL", GATE);
        assert_int_equal(take(BEGIN_US, cases[i].rule, 1, 2).k, 2);
        left = server_ask(&server, "GET", GATE, NULL);
        assert_string_equal(left, cases[i].left);
        free(left);
    }
}

/* A large burst at a small part of its rate. Lua keeps it as it is; so does C, which plans from it. */
TEST(test_what_is_in_use_for_decades_is_read_as_it_is)
{
    static const char stored[] = "1795001014623032 0 - - gcra:1/86400000000/2908 2828955555552720 0";
    struct rule rule = GCRA(1, INT64_C(86400000000), 2908);
    struct gate g;

    gate_init(&g, &rule);
    assert_int_equal(gate_read(&g, stored, INT64_C(1795001014623032), &error), 0);
    assert_int_equal(gate_resets(&g, INT64_C(1795001014623032)), INT64_C(2828955555552720));
    gate_free(&g);
}

/* A bucket's last start is kept as long as it is ahead. */
TEST_WITH(test_a_bucket_keeps_a_start_that_is_ahead, client_flush, NULL)
{
    const char *rule = "gcra:1000/1000000/1";
    char *left;

    assert_int_equal(take(BEGIN_US, rule, 1, 1).k, 1);
    assert_int_equal(take(BEGIN_US, rule, 1, 1).start_us, BEGIN_US + 1000);
    left = server_ask(&server, "GET", GATE, NULL);
    assert_string_equal(left,
                        "1795000000000000 0 - - gcra:1000/1000000/1 1795000000002000 0 1795000000001000");
    free(left);
    assert_int_equal(take(BEGIN_US + 2000, rule, 1, 1).start_us, BEGIN_US + 2000);
    left = server_ask(&server, "GET", GATE, NULL);
    assert_string_equal(left, "1795000000002000 0 - - gcra:1000/1000000/1 1795000000003000 0");
    free(left);
}

/* When a bucket has to remember two starts as one, none of them gives back what the other found drained. */
TEST_WITH(test_a_bucket_gives_back_no_more_than_later_starts_found, client_flush, NULL)
{
    struct step s = {
        .rule = "gcra:1000/1000000/1000", .now_us = BEGIN_US, .verb = KEEP, .cost = 1, .a = 1, .ticket = 1};
    int64_t before_us;

    assert_int_equal(do_step(&s).k, 1);
    s.now_us += 999;
    assert_int_equal(do_step(&s).k, 1);
    s.cost = 10;
    for (int i = 0; i < GATE_LOWS; i++) {
        s.now_us++;
        assert_int_equal(do_step(&s).k, 1);
    }
    before_us = act(LOOK, s.now_us, s.rule, 0).resets_us;
    act(GIVE, s.now_us, s.rule, BEGIN_US);
    assert_in_range(before_us - act(LOOK, s.now_us, s.rule, 0).resets_us, 0, 1);
}

/* A log is forgotten from its front, and as long as its count at most. */
TEST_WITH(test_a_log_stays_bounded, client_flush, NULL)
{
    struct step s = {.rule = "sliding-log:100/1000000", .verb = TAKE, .cost = 1, .a = 1, .ticket = 1};

    for (int round = 0; round < 5; round++) {
        struct args a = {0};

        library_begin(&a, "steps", PREFIX, BEGIN_US);
        for (int i = 0; i < 1000; i++) {
            s.now_us = BEGIN_US + (round * 1000 + i) * INT64_C(9000);
            s.verb = i % 10 == 9 ? CHARGE : TAKE;
            add_step(&a, &s);
        }
        freeReplyObject(ask(&a));
        assert_true(server_number(&server, "STRLEN", GATE, NULL) < 1100);
    }
}

/* What is over when the last one starts that was granted ahead makes no debt smaller, whether it is forgotten yet or not. */
TEST_WITH(test_a_log_is_charged_at_its_last_start, client_flush, NULL)
{
    struct step s = {.rule = "sliding-log:10/1000", .now_us = BEGIN_US, .verb = FAR, .a = 1, .ticket = 1};

    for (int i = 0; i < 3; i++) {
        s.cost = i < 2 ? 10 : 1;
        assert_int_equal(do_step(&s).k, 1);
    }
    s.verb = CHARGE;
    s.cost = 9;
    do_step(&s);
    assert_int_equal(act(LOOK, s.now_us, s.rule, 0).start_us, BEGIN_US + 3000);
}

/* A log that owes more than it counts keeps as much of what starts at once as of what starts one by one. */
TEST_WITH(test_a_log_notes_several_starts, client_flush, NULL)
{
    struct step s = {.rule = "sliding-log:3/17", .now_us = BEGIN_US, .verb = CHARGE, .cost = 4, .ticket = 1};

    do_step(&s);
    assert_int_equal(take(BEGIN_US + 10, "gcra:1/1000/12", 1, 4).k, 4);
    s.now_us = BEGIN_US + 18;
    s.cost = 6;
    do_step(&s);
    assert_int_equal(act(LOOK, s.now_us, s.rule, 0).start_us, BEGIN_US + 27);
}

/* C has it so, too. */
static void close_in_c(const char *stored, const char *state, int64_t closed_us)
{
    struct rule rule;
    struct gate g;

    assert_int_equal(rule_read(stored, &rule, &error), 0);
    gate_init(&g, &rule);
    fail_if(gate_read(&g, state, BEGIN_US, &error) != WEIR_EINPUT, "'%s': taken for a state", state);
    assert_int_equal(gate_count(&g, BEGIN_US, 100, 1), 0);
    if (rule.algorithm != ALGORITHM_CONCURRENCY)
        assert_in_range(gate_start(&g, BEGIN_US, 1), BEGIN_US + 1, BEGIN_US + 2 * closed_us);
    assert_int_equal(gate_count(&g, BEGIN_US + 2 * closed_us, 100, 1), rule.burst);
    assert_true(rule_equal(&g.rule, &rule));
    gate_free(&g);
}

/* What another version wrote, or nobody: it is closed for a period since it was written, as it says first, and stays as it is. */
TEST_WITH(test_what_cannot_be_read_is_closed_for_a_period, client_flush, NULL)
{
    static const struct {
        const char *rule, *state;
    } garbage[] = {
        {"gcra:10/1000000/5", ""},
        {"gcra:10/1000000/5", "x"},
        {"gcra:10/1000000/5", "1795000009000000"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 "},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000 10"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000 -1"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000 0 x"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000 0 1 1"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000 0 9007199254740994"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 nan 0"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000 nan"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 1795000009000000 0 ~x"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/5 9007199254740992 0"},
        {"gcra:10/1000000/5", "9007199254740992 0 - - gcra:10/1000000/5 1795000009000000 0"},
        {"gcra:10/1000000/5", "1795000000000000 9007199254740992 - - gcra:10/1000000/5 1795000009000000 0"},
        {"gcra:10/1000000/5", "-1 0 - - gcra:10/1000000/5 1795000009000000 0"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1s/5 1795000009000000 0"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - other:10/1000000/5 1795000009000000 0"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - fixed-window:0/1000000/5 1795000009000000 0"},
        {"fixed-window:5/1000000/0", "1795000000000000 0 - - fixed-window:5/1000000/0 1795000000000000"},
        {"fixed-window:5/1000000/0", "1795000000000000 0 - - fixed-window:5/1000000/0 1795000000000000 x"},
        {"fixed-window:5/1000000/0", "1795000000000000 0 - - fixed-window:5/1000000/0 1795000000000000 1.5"},
        {"sliding-log:5/1000000", "1795000000000000 0 - - sliding-log:5/1000000 1795000000000000 5"},
        {"sliding-log:5/1000000", "1795000000000000 0 - - sliding-log:5/1000000 1795000000000000 5 1 1"},
        {"sliding-log:5/1000000", "1795000000000000 0 - - sliding-log:5/1000000 1795000000000000 2 0 "},
        {"sliding-log:5/1000000", "1795000000000000 0 - - sliding-log:5/1000000 1795000000000000 2 0 1;x;1;"},
        {"sliding-log:5/1000000", "1795000000000000 0 - - sliding-log:5/1000000 1795000000000000 2 0 1;1;1;"},
        {"sliding-log:5/1000000",
         "1795000000000000 0 - - sliding-log:5/1000000 1795000000000000 1 0 9007199254740994;"},
        {"sliding-window:5/1000000", "1795000000000000 0 - - sliding-window:5/1000000 1795000000000000 5"},
        {"sliding-window:5/1000000",
         "1795000000000000 0 - - sliding-window:5/1000000 1795000000000000 5 9999999999"},
        {"concurrency:5", "1795000000000000 0 - - concurrency:5 x"},
        {"concurrency:5", "1795000000000000 0 - - concurrency:5 1 1"},
        {"gcra:10/1000000/5", "1795000000000000 2 3"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 "},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 10"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 -5 0"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3 x"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3 4 5"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3 ~x"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3 ~"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - gcra:10/1000000/10,by=key 1795000000250000 3"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - other:10/1000000/10 1795000000250000 3"},
        {"gcra:10/1000000/5", "1795000000000000 x - - gcra:10/1000000/10 1795000000250000 3"},
        {"gcra:10/1000000/5", "99999999999999999999 0 - - gcra:10/1000000/10 1795000000250000 3"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - fixed-window:10/1000000/0 1795000000250000 9999999999"},
        {"gcra:10/1000000/5",
         "1795000000000000 0 - - sliding-log:10/1000000 1795000000250000 2 1795000000000000 1"},
        {"gcra:10/1000000/5",
         "1795000000000000 0 - - sliding-log:10/1000000 1795000000250000 2 1795000000000000 1;"},
        {"gcra:10/1000000/5",
         "1795000000000000 0 - - sliding-log:10/1000000 1795000000250000 2 1795000000000000 1;x;"},
        {"gcra:10/1000000/5",
         "1795000000000000 0 - - sliding-log:10/1000000 1795000000250000 2 1795000000000000 1;1;1;"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - sliding-window:10/1000000 1795000000250000 2"},
        {"gcra:10/1000000/5", "1795000000000000 0 - - concurrency:5 3 1"},
        {"gcra:10/1000000/5", "1795000000000000 0 - 5 gcra:10/1000000/10 1795000000250000 3"},
        {"gcra:10/1000000/5", "1795000000000000 0 5 - gcra:10/1000000/10 1795000000250000 3"},
        {"gcra:10/1000000/5", "1795000000000000 0 5,6,w x gcra:10/1000000/10 1795000000250000 3"},
    };
    for (size_t i = 0; i < COUNT(garbage); i++) {
        const char *text = garbage[i].state, *rule = garbage[i].rule;
        bool is_dated = strncmp(text, "1795000000000000 ", 17) == 0;
        int64_t closed_us = strncmp(rule, "concurrency", 11) == 0 ? 60 * INT64_C(1000000) : INT64_C(1000000);
        char *kept;

        set_state(text);
        if (take(BEGIN_US, rule, 1, 10).k != 0 || take(BEGIN_US + closed_us - 10000, rule, 1, 10).k != 0)
            fail_msg("%s: not closed", text);
        if (is_dated)
            act(PAUSE, BEGIN_US, rule, BEGIN_US + 1);
        kept = server_ask(&server, "GET", GATE, NULL);
        fail_if((strcmp(kept, text) == 0) != is_dated, "%s: became %s", text, kept);
        free(kept);
        fail_if(take(BEGIN_US + 2 * closed_us, rule, 1, 10).k != 5, "%s: closed for too long", text);
        if (*text && !strstr(text, "9007199254740992")) /* the number at which they part */
            close_in_c(rule, text, closed_us);
    }
}

/* A burst that takes longer than a period to come back: all of it counts as taken then. */
TEST_WITH(test_what_could_not_be_read_counts_as_full, client_flush, NULL)
{
    static const char rule[] = "gcra:1/1000000/5";

    set_state("1795000000000000 v2 - - gcra:1/1000000/5 1795000000000000 0");
    assert_int_equal(take(BEGIN_US + INT64_C(1500000), rule, 1, 10).k, 1);
    assert_int_equal(take(BEGIN_US + INT64_C(1500000), rule, 1, 10).k, 0);
}

/* Two versions in turns, the other one's state each time: there is no burst. */
TEST_WITH(test_two_versions_that_take_turns_at_a_gate, client_flush, NULL)
{
    static const char rule[] = "gcra:10/1000000/5";
    int64_t taken = 0;

    for (int i = 0; i < 100; i++) {
        int64_t at_us = BEGIN_US + i * INT64_C(1000000) / 10;

        set_state(textf("%" PRId64 " v2 0 - - gcra:10/1000000/5 %" PRId64 " 0", at_us, at_us));
        taken += take(at_us + INT64_C(1000000) / 20, rule, 1, 10).k;
    }
    assert_int_equal(taken, 0);
}

/* Slots of the time when it opens again are granted before that, and counted. */
TEST_WITH(test_what_is_granted_ahead_of_a_closed_gate_is_counted, client_flush, NULL)
{
    static const char rule[] = "gcra:10/1000000/10";
    int64_t taken = 0;

    set_state("1795000000000000 v2 - - gcra:10/1000000/10 1795000000000000 0");
    for (int64_t at_us = 700000; at_us <= 1050000; at_us += 1000)
        taken += act(FAR, BEGIN_US + at_us, rule, 10).k;
    assert_in_range(taken, 10, 10 + 2);
}

TEST_WITH(test_a_gate_of_another_kind_is_an_error, client_flush, NULL)
{
    const struct step s = {.rule = "gcra:10/1000000/5", .now_us = BEGIN_US, .verb = TAKE, .cost = 1, .a = 1};
    struct redisReply *reply;
    struct args a = {0};

    server_do(&server, "RPUSH", GATE, "x");
    library_begin(&a, "steps", PREFIX, BEGIN_US);
    add_step(&a, &s);
    assert_true(redis_call(redis, &a, &reply, NULL, &error) < 0);
    assert_non_null(strstr(error.text, "WRONGTYPE"));
    args_free(&a);
    assert_int_equal(server_number(&server, "LLEN", GATE, NULL), 1);
}

/* ---- Lifetimes, in real time */

static void take_by_redis_time(const char *rule)
{
    struct args a = {0};

    library_begin(&a, "backlog", PREFIX, -1);
    args_add(&a, rule);
    args_add(&a, "1");
    args_add(&a, "1");
    freeReplyObject(ask(&a));
}

TEST_WITH(test_the_key_lives_until_it_says_nothing, client_flush, NULL)
{
    static const struct {
        const char *rule;
        int64_t least_ms, most_ms;
    } cases[] = {
        {"gcra:1/1500000/1", 1500, 1500},
        {"token-bucket:7/1000000/7", 143, 143},
        {"gcra:1000000/1000000/1", 1, 1},
        {"gcra:1/86400000000/1", 86400000, 86400000},
        {"gcra:3/1000/1", 1, 1},
        {"fixed-window:5/86400000000/0", 0, 86400000},
        {"sliding-log:5/60000000", 60000, 60000},
        {"sliding-window:5/60000000", 60000, 120000},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t before_us, ttl_ms, passed_ms;

        server_do(&server, "DEL", GATE);
        before_us = clock_mono_us();
        take_by_redis_time(cases[i].rule);
        ttl_ms = server_number(&server, "PTTL", GATE, NULL);
        passed_ms = (clock_mono_us() - before_us) / 1000 + 1;
        if (ttl_ms > cases[i].most_ms + 2 ||
            (ttl_ms < cases[i].least_ms - passed_ms && !(ttl_ms == -2 && passed_ms >= cases[i].least_ms)))
            fail_msg("%s: the key lives %" PRId64 " ms", cases[i].rule, ttl_ms);
    }
    server_do(&server, "DEL", GATE);
    take_by_redis_time("concurrency:5");
    assert_int_equal(server_number(&server, "PTTL", GATE, NULL), -1);
}

TEST_WITH(test_a_key_that_is_gone_was_open, client_flush, NULL)
{
    int64_t end_us, begin_us = clock_mono_us();

    take_by_redis_time("gcra:1/150000/1");
    end_us = begin_us + 10000000;
    while (server_number(&server, "EXISTS", GATE, NULL) == 1)
        fail_if(clock_mono_us() > end_us, "the key does not expire");
    assert_true(clock_mono_us() - begin_us >= 150000);
}

TEST_WITH(test_under_virtual_time_nothing_expires, client_flush, NULL)
{
    assert_int_equal(take(BEGIN_US, "gcra:1/1000/1", 1, 1).k, 1);
    assert_int_equal(server_number(&server, "PTTL", GATE, NULL), -1);
}

TEST_WITH(test_what_was_only_looked_at_is_not_written, client_flush, NULL)
{
    assert_int_equal(take(BEGIN_US, "gcra:10/1000000/5", 6, 1).start_us, GATE_NEVER);
    act(LOOK, BEGIN_US, "fixed-window:10/1000000/5", 0);
    assert_int_equal(server_number(&server, "DBSIZE", NULL), 0);
}

/* ---- Rules */

/* A stored set of rules, often with something wrong or out of bounds. */
static void random_stored(uint64_t *random, char out[RULE_SET_TEXT_SIZE])
{
    static const char bytes[] = "0123456789/:,.= -xag";
    static const char *const marks[] = {" pause:1795000000000000/1794000000000000", " weights:1",
                                        " weights:2", " pause:1", " gcra:1/1/1"};
    int64_t n = random_in(random, 0, 3) ? 1 : random_in(random, 1, 9);

    *out = '\0';
    for (int64_t i = 0; i < n; i++) {
        struct rule r = random_any_rule(random);

        switch (random_in(random, 0, 9)) {
        case 0:
            r.count = random_magnitude(random, INT64_C(4000000000));
            break;
        case 1:
            r.period_us = random_magnitude(random, INT64_C(700000000000000));
            break;
        case 2:
            r.burst = random_magnitude(random, INT64_C(4000000000));
            break;
        case 3:
            r.burst = r.period_us ? (int64_t)((__int128)INT64_C(315360000000000) * r.count / r.period_us) +
                                        random_in(random, 0, 2)
                                  : 0;
            break;
        case 4:
            strcpy(r.by, random_in(random, 0, 1) ? "key" : "args..x");
            break;
        case 5:
            r.of_jobs = true;
            break;
        }
        if (i)
            strcat(out, " ");
        rule_write(&r, out + strlen(out));
    }
    if (random_in(random, 0, 3) == 0)
        strcat(out, marks[random_in(random, 0, COUNT(marks) - 1)]);
    if (random_in(random, 0, 9) == 0)
        out[random_in(random, 0, (int64_t)strlen(out) - 1)] = bytes[random_in(random, 0, sizeof bytes - 2)];
}

TEST_WITH(test_lua_and_c_know_the_same_rules, client_flush, NULL)
{
    enum { SETS = 4000 };
    static char texts[SETS][RULE_SET_TEXT_SIZE];
    uint64_t random = seed = random_seed();
    redisReply *reply;
    struct args a = {0};

    library_begin(&a, "rules", PREFIX, BEGIN_US);
    for (int i = 0; i < SETS; i++) {
        random_stored(&random, texts[i]);
        if (i == 0) /* tau is ten years and half a microsecond */
            strcpy(texts[i], "gcra:2/1104588441331/572");
        args_add(&a, texts[i]);
    }
    reply = ask(&a);
    for (int i = 0; i < SETS; i++) {
        struct rule_set set;

        if ((rule_set_read(texts[i], &set, &error) == 0) != (reply->element[i]->integer == 1))
            fail_msg("WEIR_SEED=%" PRIu64 ": '%s': Lua %lld, C says otherwise", seed, texts[i],
                     reply->element[i]->integer);
    }
    freeReplyObject(reply);
}

TEST_WITH(test_a_set_of_rules, client_flush, NULL)
{
    static const struct {
        const char *text, *is;
    } cases[] = {
        {"gcra:10/1000000/5", "1 0 1 - gcra:10/1000000/5 0 - 0 -"},
        {"gcra:10/1000000/5 concurrency:3,by=args.x fixed-window:3/1000/0,by=args.x,adapt=100..200",
         "3 2 1 args.x gcra:10/1000000/5 concurrency:3,by=args.x "
         "fixed-window:3/1000/0,by=args.x,adapt=100..200 0 - 2 in "
         "flight"},
        {"gcra:10/1000000/5 pause:1795000009000000/1794000000000000 weights:1",
         "1 0 1 - gcra:10/1000000/5 1795000009000000 weighted 0 -"},
        {"gcra:10/1000000/5 pause:1795000000000000/1794000000000000", "1 0 1 - gcra:10/1000000/5 0 - 0 -"},
        /* It was set at a time that has not come: the clock stepped back by a second. */
        {"gcra:10/1000000/5 pause:1795000009000000/1795000001000000",
         "1 0 1 - gcra:10/1000000/5 1795000008000000 - 0 -"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        redisReply *reply;
        struct args a = {0};

        library_begin(&a, "set", PREFIX, BEGIN_US);
        args_add(&a, cases[i].text);
        reply = ask(&a);
        assert_string_equal(reply->str, cases[i].is);
        freeReplyObject(reply);
    }
}

TESTS(setup, client_stop)
