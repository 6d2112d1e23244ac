/* Rules that change and come back, under virtual time: no order of changes, takes, peeks and denials gives back what was used, and each
 * rule opens at its own pace. Through take.lua, by rules of the callers' own and by a limit's; what gates do beside that is test_gate.c's. */
#include <hiredis/hiredis.h>
#include <inttypes.h>

#include "core/client/client.h"
#include "core/script/script.h"
#include "tests/client.h"
#include "tests/naive.h"
#include "tests/random.h"
#include "tests/test.h"
#include "throttle/gate.h"

#define HOUR_US INT64_C(3600000000)
#define DAY_US (24 * HOUR_US)

static struct error error;
static uint64_t seed, chance;

/* ---- Calls */

static redisReply *call(struct args *a)
{
    redisReply *reply = NULL;

    fail_if(client_call(w, a, &reply, NULL) < 0, "WEIR_SEED=%" PRIu64 ": %s", seed, weir_message(w));
    args_free(a);
    return reply;
}

/* 0 when it takes its slots now, else in how many us it could; -1: never. rules: "" for the limit's. */
static int64_t ask(int64_t now_us, const char *rules, const char *key, int64_t cost, bool peek)
{
    redisReply *reply;
    int64_t wait_us;
    struct args a = {0};

    script_begin(&a, "take", PREFIX, now_us);
    args_add(&a, peek ? "1" : "0");
    args_add(&a, rules);
    args_add(&a, "d");
    args_add(&a, key);
    args_add_int(&a, cost);
    reply = call(&a);
    if (reply->element[0]->type != REDIS_REPLY_INTEGER)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s", seed, reply->element[0]->str);
    wait_us = reply->element[0]->integer == 1 ? 0 : reply->element[3]->integer;
    freeReplyObject(reply);
    return wait_us;
}

static bool take(int64_t now_us, const char *rule, int64_t cost)
{
    return ask(now_us, rule, "", cost, false) == 0;
}

static void rate_set(int64_t now_us, const char *rules)
{
    struct args a = {0};

    script_begin(&a, "rate_set", PREFIX, now_us);
    args_add(&a, "d");
    args_add(&a, rules);
    args_add(&a, "0");
    args_add(&a, "set d");
    args_add(&a, "me");
    freeReplyObject(call(&a));
}

static char *state_of(const char *gate)
{
    return server_ask(&server, "GET", textf(PREFIX "gate:%s", gate), NULL);
}

/* ---- Worlds */

#define RULES 7
#define STEPS 160

enum way { OWN, OWN_BY_KEY, LIMIT, LIMIT_BY_KEY, WAYS }; /* whose rules, and whether a gate has a key */

struct event {
    int64_t at_us, cost; /* cost 0: nothing started */
    int rule;            /* that was in force */
};

static struct world {
    struct rule rules[RULES];
    char stored[RULES][RULE_TEXT_SIZE];
    struct naive own[RULES]; /* what started under each */
    int rule_count, now;
    enum way way;
    bool same_kind; /* one algorithm, one period */
    int64_t now_us;
    struct event events[STEPS];
    int event_count;
} world;

static int64_t pick(int64_t low, int64_t high)
{
    return random_in(&chance, low, high);
}

static bool is_bucket(const struct rule *r)
{
    return r->algorithm == ALGORITHM_GCRA || r->algorithm == ALGORITHM_TOKEN_BUCKET;
}

static struct rule random_rule(enum algorithm algorithm, int64_t period_us)
{
    struct rule r = {.algorithm = algorithm, .count = pick(1, pick(0, 2) ? 12 : 60), .period_us = period_us};

    r.burst = is_bucket(&r) ? pick(1, pick(0, 1) ? 3 : 20) : r.count;
    if (algorithm == ALGORITHM_FIXED_WINDOW && !world.same_kind)
        r.offset_us = pick(0, r.period_us - 1);
    return r;
}

static int64_t random_period(void)
{
    static const int64_t periods_us[] = {1000, 1000003, 60000000, HOUR_US};

    return periods_us[pick(0, COUNT(periods_us) - 1)];
}

static void make_world(void)
{
    enum algorithm algorithm = (enum algorithm)pick(0, ALGORITHM_SLIDING_WINDOW);
    int64_t period_us = random_period();
    int kind = (int)pick(0, 2);

    client_flush(NULL);
    world = (struct world){.now_us = BEGIN_US + pick(0, HOUR_US),
                           .rule_count = (int)pick(2, pick(0, 3) ? 4 : RULES),
                           .way = (enum way)pick(0, WAYS - 1),
                           .same_kind = kind == 0};
    for (int i = 0; i < world.rule_count; i++) {
        if (kind == 1)
            algorithm = pick(0, 1) ? ALGORITHM_GCRA : ALGORITHM_TOKEN_BUCKET;
        else if (kind == 2)
            algorithm = (enum algorithm)pick(0, ALGORITHM_SLIDING_WINDOW);
        world.rules[i] = random_rule(algorithm, world.same_kind ? period_us : random_period());
        rule_write(&world.rules[i], world.stored[i]);
        naive_begin(&world.own[i], world.stored[i]);
    }
}

static void free_world(void)
{
    for (int i = 0; i < world.rule_count; i++)
        naive_free(&world.own[i]);
}

static bool by_key(void)
{
    return world.way == OWN_BY_KEY || world.way == LIMIT_BY_KEY;
}

static void change_rule(void)
{
    world.now = (int)pick(0, world.rule_count - 1);
    if (world.way < LIMIT)
        return;
    rate_set(world.now_us, textf("%s%s", world.stored[world.now], by_key() ? ",by=key" : ""));
    if (world.way == LIMIT)
        world.events[world.event_count++] = (struct event){world.now_us, 0, world.now};
}

static void fail_at(const char *what, const struct event *from, const struct event *to, int64_t sum)
{
    fail_msg("WEIR_SEED=%" PRIu64 ": %s: %" PRId64 " from %" PRId64 " to %" PRId64 ", under %s", seed, what,
             sum, from->at_us, to->at_us, world.stored[to->rule]);
}

/* What started under a rule keeps to it, whatever other rules were in force in between. */
static void check_own(const struct event *e)
{
    const char *wrong = naive_start(&world.own[e->rule], e->at_us, e->cost, world.event_count);

    fail_if(wrong, "WEIR_SEED=%" PRIu64 ": %s by what started under it: %s", seed, world.stored[e->rule],
            wrong);
}

/* What the most generous rules that were in force in a time of that length let through. */
struct most {
    int64_t burst, period_us, in_period;
    double rate;
    bool buckets;
};

static void add_rule(struct most *m, const struct rule *r)
{
    double rate = (double)r->count / (double)r->period_us;

    m->burst = r->burst > m->burst ? r->burst : m->burst;
    m->rate = rate > m->rate ? rate : m->rate;
    m->period_us = r->period_us;
    m->in_period = rule_most_in_period(r) > m->in_period ? rule_most_in_period(r) : m->in_period;
    m->buckets &= is_bucket(r);
}

/* All times that end with the last start. A start may have been rounded up. Of buckets it is the largest burst at the highest rate that counts,
 * of windows of one length the highest count. */
static void check_windows(void)
{
    const struct event *last = &world.events[world.event_count - 1];
    struct most m = {.buckets = true};
    int64_t sum = 0;

    for (const struct event *e = last; e >= world.events; e--) {
        int64_t span_us = last->at_us - e->at_us;

        add_rule(&m, &world.rules[e->rule]);
        sum += e->cost;
        if (m.buckets && (double)sum > (double)m.burst + (double)(span_us + 1) * m.rate)
            fail_at("buckets", e, last, sum);
        if (world.same_kind && !m.buckets && span_us < m.period_us && sum > m.in_period)
            fail_at("a period", e, last, sum);
    }
}

/* A rule that takes over is full at most. */
static void check_wait(int64_t wait_us, int64_t cost)
{
    const struct rule *r = &world.rules[world.now];
    int64_t most_us = is_bucket(r) ? cost * r->period_us / r->count + 1 : 2 * r->period_us;

    if (cost > r->burst ? wait_us != -1 : wait_us > most_us)
        fail_msg("WEIR_SEED=%" PRIu64 ": %s opens in %" PRId64, seed, world.stored[world.now], wait_us);
}

/* Returns in how long it opens. */
static int64_t ask_once(bool peek)
{
    const char *rules = world.way < LIMIT ? world.stored[world.now] : "", *gate = by_key() ? "d#0/k" : "d#0";
    int64_t cost = pick(0, 2) ? 1 : pick(1, world.rules[world.now].burst + 1), wait_us;
    char *before = state_of(gate), *after;

    wait_us = ask(world.now_us, rules, by_key() ? "k" : "", cost, peek);
    after = state_of(gate);
    if (peek && strcmp(before, after) != 0)
        fail_msg("WEIR_SEED=%" PRIu64 ": a look made of '%s' '%s'", seed, before, after);
    free(before);
    free(after);
    check_wait(wait_us, cost);
    world.events[world.event_count++] =
        (struct event){world.now_us, peek || wait_us != 0 ? 0 : cost, world.now};
    if (!peek && wait_us == 0) {
        check_own(&world.events[world.event_count - 1]);
        check_windows();
    }
    return wait_us;
}

static int64_t step_us(const struct rule *r)
{
    return r->period_us / r->count;
}

static void move_clock(int64_t wait_us)
{
    const struct rule *r = &world.rules[pick(0, world.rule_count - 1)];

    switch (pick(0, 7)) {
    case 0:
        world.now_us += step_us(r);
        break;
    case 1:
        world.now_us += pick(0, step_us(r));
        break;
    case 2:
        world.now_us += pick(0, 3) ? pick(0, r->period_us) : 2 * r->period_us;
        break;
    case 3:
    case 4:
        world.now_us += wait_us > 0 ? wait_us : 0;
        break;
    }
}

TEST_WITH(test_no_order_of_changes_gives_anything_back, client_flush, NULL)
{
    seed = random_seed();
    for (int i = 0; i < 300; i++, seed++) {
        int changes = 3;

        chance = seed;
        make_world();
        changes += (int)pick(0, 20);
        change_rule();
        while (world.event_count < STEPS - 2) {
            if (pick(0, changes) == 0)
                change_rule();
            move_clock(ask_once(pick(0, 5) == 0));
        }
        free_world();
    }
}

/* ---- Some of them by hand */

static const struct {
    const char *large, *small;
    int64_t most; /* in an hour */
} pairs[] = {
    {"gcra:20/3600000000/20", "gcra:2/3600000000/2", 39},
    {"token-bucket:20/3600000000/20", "token-bucket:2/3600000000/2", 39},
    {"fixed-window:20/3600000000/0", "fixed-window:2/3600000000/0", 40},
    {"sliding-log:20/3600000000", "sliding-log:2/3600000000", 20},
    {"sliding-window:20/3600000000", "sliding-window:2/3600000000", 39},
    {"gcra:20/3600000000/20", "sliding-log:2/60000000", 139},
    {"fixed-window:20/3600000000/0", "gcra:2/3600000000/1", 139},
};

TEST_WITH(test_a_limit_that_is_lowered_and_set_back, client_flush, NULL)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        client_flush(state);
        rate_set(BEGIN_US, pairs[i].large);
        assert_true(take(BEGIN_US, "", 20));
        rate_set(BEGIN_US, pairs[i].small);
        rate_set(BEGIN_US, pairs[i].large);
        fail_if(take(BEGIN_US, "", 1), "%s: %s gives it back", pairs[i].large, pairs[i].small);
        assert_true(take(BEGIN_US + 2 * HOUR_US, "", 20));
    }
}

/* A limit that is removed, or that counts jobs in flight for a while. */
TEST_WITH(test_a_limit_that_is_another_one_and_set_back, client_flush, NULL)
{
    static const char *const others[] = {"", "concurrency:3", "gcra:1000/1000000/1000 gcra:7/1000000/7"};

    for (size_t i = 0; i < COUNT(others); i++) {
        client_flush(state);
        rate_set(BEGIN_US, pairs[0].large);
        assert_true(take(BEGIN_US, "", 20));
        rate_set(BEGIN_US, others[i]);
        rate_set(BEGIN_US + 1000000, pairs[0].large);
        fail_if(take(BEGIN_US + 1000000, "", 1), "'%s' gives it back", others[i]);
    }
}

/* A rule of two that goes, and comes back before or behind the other one; of one key as of all. */
TEST_WITH(test_a_rule_that_goes_and_comes_back, client_flush, NULL)
{
    static const struct {
        const char *key, *both, *other, *swapped;
    } cases[] = {
        {"", "gcra:20/3600000000/20 fixed-window:50/86400000000/0", "fixed-window:50/86400000000/0",
         "fixed-window:50/86400000000/0 gcra:20/3600000000/20"},
        {"k", "gcra:20/3600000000/20 fixed-window:50/86400000000/0,by=key",
         "fixed-window:50/86400000000/0,by=key",
         "fixed-window:50/86400000000/0,by=key gcra:20/3600000000/20"},
        {"k", "gcra:20/3600000000/20,by=key fixed-window:50/86400000000/0,by=key",
         "fixed-window:50/86400000000/0,by=key",
         "fixed-window:50/86400000000/0,by=key gcra:20/3600000000/20,by=key"},
    };

    for (size_t i = 0; i < 2 * COUNT(cases); i++) {
        const char *key = cases[i / 2].key;

        client_flush(state);
        rate_set(BEGIN_US, cases[i / 2].both);
        assert_int_equal(ask(BEGIN_US, "", key, 20, false), 0);
        rate_set(BEGIN_US, cases[i / 2].other);
        assert_int_equal(ask(BEGIN_US, "", key, 10, false), 0);
        rate_set(BEGIN_US, i % 2 ? cases[i / 2].swapped : cases[i / 2].both);
        assert_int_not_equal(ask(BEGIN_US, "", key, 1, false), 0);
        assert_int_equal(ask(BEGIN_US + HOUR_US, "", key, 20, false), 0);
        assert_int_not_equal(ask(BEGIN_US + 2 * HOUR_US, "", key, 1, false), 0); /* of the day */
    }
}

/* Programs of two versions: neither is given what the other one has taken, nor by asking. */
TEST_WITH(test_two_programs_take_turns_by_rules_of_their_own, client_flush, NULL)
{
    for (size_t i = 0; i < COUNT(pairs); i++) {
        int64_t all = 0, hour_us = BEGIN_US - BEGIN_US % HOUR_US;

        client_flush(state);
        for (int64_t at_us = 0; at_us < HOUR_US; at_us += HOUR_US / 360) {
            const char *rule = at_us / (HOUR_US / 360) % 2 ? pairs[i].small : pairs[i].large;

            all += take(hour_us + at_us, rule, 1);
            ask(hour_us + at_us, rule, "", 1, true);
        }
        if (all > pairs[i].most || all < 18)
            fail_msg("%s and %s: %" PRId64 " in an hour", pairs[i].large, pairs[i].small, all);
    }
}

/* A look or a denial under the smaller rule frees nothing, and a look writes nothing. */
TEST_WITH(test_a_look_under_another_rule, client_flush, NULL)
{
    char *before, *after;

    assert_true(take(BEGIN_US, pairs[0].large, 20));
    before = state_of("d#0");
    assert_int_equal(ask(BEGIN_US, pairs[0].small, "", 1, true), HOUR_US / 2);
    after = state_of("d#0");
    assert_string_equal(before, after);
    free(before);
    free(after);
    assert_false(take(BEGIN_US, pairs[0].small, 1));
    assert_int_equal(ask(BEGIN_US, pairs[0].large, "", 1, false), HOUR_US / 20);
}

TEST_WITH(test_a_smaller_rule_opens_at_its_own_pace, client_flush, NULL)
{
    assert_true(take(BEGIN_US, "gcra:1000/86400000000/1000", 1000));
    assert_int_equal(ask(BEGIN_US, "gcra:10/86400000000/10", "", 1, false), DAY_US / 10);
    assert_int_equal(ask(BEGIN_US + HOUR_US, "gcra:10/86400000000/10", "", 1, false), DAY_US / 10 - HOUR_US);
    assert_true(take(BEGIN_US + DAY_US / 10, "gcra:10/86400000000/10", 1));
    /* The larger one has had 100 slots back by then, less that one. */
    assert_false(take(BEGIN_US + DAY_US / 10, "gcra:1000/86400000000/1000", 100));
    assert_true(take(BEGIN_US + DAY_US / 10, "gcra:1000/86400000000/1000", 99));
}

/* 1,000 a day in a burst, and the burst is taken away and given back. */
TEST_WITH(test_a_burst_that_is_taken_away_and_given_back, client_flush, NULL)
{
    int64_t all = 0;

    for (int i = 0; i < 9; i++) {
        rate_set(BEGIN_US + i * 700000, i % 2 ? "gcra:1000/86400000000/1" : "gcra:1000/86400000000/1000");
        for (int k = 0; k < 1100; k++)
            all += take(BEGIN_US + i * 700000, "", 1);
    }
    assert_int_equal(all, 1000);
}

/* 100/s all the time, though every 100 ms a burst is taken away or given back; and no start that does not keep to the rule of its time. */
TEST_WITH(test_rules_that_take_turns_lose_nothing, client_flush, NULL)
{
    static const char *const rules[] = {"gcra:100/1000000/10", "gcra:100/1000000/1"};
    int64_t all = 0, last_us = 0;

    for (int64_t at_us = 0; at_us < 10000000; at_us += 1000) {
        bool spaced = at_us / 100000 % 2;

        if (at_us % 100000 == 0)
            rate_set(BEGIN_US + at_us, rules[spaced]);
        while (take(BEGIN_US + at_us, "", 1)) {
            if (spaced && at_us - last_us < 10000)
                fail_msg("%" PRId64 " and %" PRId64 " are no 10 ms apart", last_us, at_us);
            last_us = at_us;
            all++;
            fail_if(all > 10 + at_us / 10000, "%" PRId64 " by %" PRId64, all, at_us);
        }
    }
    assert_in_range(all, 1000, 1010);
}

/* ---- What is kept */

static void assert_former(int64_t now_us, const char *rule, int count)
{
    char *text;
    int bars = 0;

    take(now_us, rule, 1);
    text = state_of("d#0");
    for (const char *at = text; *at; at++)
        bars += *at == '|';
    fail_if(bars != (count ? count + 1 : 0), "%d former states were expected: %s", count, text);
    free(text);
}

TEST_WITH(test_what_is_remembered_goes_when_it_has_drained, client_flush, NULL)
{
    static const char *const rules[] = {"gcra:1/1000000/1",          "fixed-window:5/60000000/0",
                                        "sliding-log:5/60000000",    "gcra:7/60000000/7",
                                        "sliding-window:5/60000000", "token-bucket:3/60000000/3",
                                        "gcra:9/60000000/9"};

    assert_former(BEGIN_US, "gcra:20/3600000000/20", 0);
    assert_former(BEGIN_US, "gcra:1/1000000/1", 1);
    assert_former(BEGIN_US + 179000000, "gcra:1/1000000/1", 1);
    assert_former(BEGIN_US + 3 * HOUR_US, "gcra:1/1000000/1", 0);
    /* One that is raised needs no more of the smaller one than what it had in use itself: its period, here. */
    client_flush(state);
    assert_former(BEGIN_US, "gcra:100/1000000/100", 0);
    for (int i = 0; i < 200; i++)
        assert_former(BEGIN_US + i * 4900, "gcra:200/1000000/200", 1);
    for (int i = 0; i < 200; i++)
        assert_former(BEGIN_US + 1000000 + i * 5000, "gcra:200/1000000/200", 0);
    /* No more than four, whatever happens. */
    client_flush(state);
    for (int i = 0; i < (int)COUNT(rules); i++)
        assert_former(BEGIN_US + i, rules[i], i < 4 ? i : 4);
}

/* Of many rules that took turns the first is still known by what was made of it. */
TEST_WITH(test_many_rules_in_turns_give_nothing_back, client_flush, NULL)
{
    int64_t all = 0;

    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 30; i++)
            while (take(BEGIN_US + all, textf("gcra:%d/86400000000/%d", 100 + i, 100 + i), 1))
                all++;
    assert_int_equal(all, 129);
}

TEST_WITH(test_the_key_lives_as_long_as_what_is_remembered, client_flush, NULL)
{
    int64_t ttl_ms;

    assert_true(take(-1, pairs[0].large, 20));
    take(-1, "gcra:2/1000000/2", 1);
    ttl_ms = server_number(&server, "PTTL", PREFIX "gate:d#0", NULL);
    assert_in_range(ttl_ms, 3500000, 3600002);
}

TEST_WITH(test_a_former_state_that_cannot_be_read_closes_the_gate, client_flush, NULL)
{
    static const char *const wrong[] = {
        "|",
        "||",
        "|gcra:20/3600000000/20|",
        "|gcra:20/3600000000/20 1795003600000000 1795003600000000 0",
        "|gcra:20/3600000000/20 x 1795003600000000 0|",
        "|gcra:20/3600000000/20 1795003600000000 1795003600000000|",
        "|other:20/3600000000/20 1795003600000000 1795003600000000 0|",
        "|concurrency:20 1795003600000000 5|",
        "|gcra:20/3600000000/20,by=key 1795003600000000 1795003600000000 0|",
        "|gcra:20/3600000000/20 9999999999999999 1795003600000000 0|",
        "|gcra:20/3600000000/20 1795003600000000 1795003600000000 0||",
        "|gcra:1/1000000/1 1795000001000000 1795000001000000 0|gcra:2/1000000/1 1795000001000000 "
        "1795000001000000 0"
        "|gcra:3/1000000/1 1795000001000000 1795000001000000 0|gcra:4/1000000/1 1795000001000000 "
        "1795000001000000 0"
        "|gcra:5/1000000/1 1795000001000000 1795000001000000 0|",
    };
    static const char rule[] = "gcra:10/1000000/10";
    struct rule read;
    struct gate gate;

    assert_int_equal(rule_read(rule, &read, &error), 0);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        const char *text = textf("1795000000000000 0 - - %s 1795000000000000 0 %s", rule, wrong[i]);

        server_do(&server, "SET", PREFIX "gate:d#0", text);
        gate_init(&gate, &read);
        if (take(BEGIN_US + 999999, rule, 1) || gate_read(&gate, text, BEGIN_US, &error) != WEIR_EINPUT)
            fail_msg("%s is read", text);
        gate_free(&gate);
    }
}

TESTS(client_start, client_stop)
