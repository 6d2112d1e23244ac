/* Each algorithm's C code against its definition over the list of all starts (tests/naive.h), under virtual
 * time. Then: the worst case of each is never passed, and is met; stored states. */
#include <inttypes.h>

#include "tests/naive.h"
#include "tests/random_rule.h"
#include "tests/test.h"
#include "throttle/gate.h"

#define SEQUENCES 1500 /* of each algorithm */
#define STEPS 40
#define AHEAD_US GATE_AHEAD_MOST_US /* slots are granted up to that long ahead */

static uint64_t seed, chance;
static struct error error;

/* ---- Random sequences */

static int64_t pick(int64_t low, int64_t high)
{
    return random_in(&chance, low, high);
}

static bool is_bucket(const struct rule *rule)
{
    return rule->algorithm == ALGORITHM_GCRA || rule->algorithm == ALGORITHM_TOKEN_BUCKET;
}

static struct rule random_rule_of(enum algorithm algorithm)
{
    struct rule rule = {.algorithm = algorithm, .count = pick(1, pick(0, 3) ? 8 : 60)};

    rule.period_us = rule.count + pick(0, pick(0, 1) ? 50 : pick(0, 1) ? 3000 : 90000000);
    rule.burst = is_bucket(&rule) ? pick(1, 12) : rule.count;
    if (algorithm == ALGORITHM_FIXED_WINDOW && pick(0, 1))
        rule.offset_us = pick(0, rule.period_us - 1);
    if (algorithm == ALGORITHM_FIXED_WINDOW && pick(0, 3) == 0)
        random_calendar(&chance, &rule);
    if (algorithm == ALGORITHM_CONCURRENCY)
        rule.period_us = 0;
    return rule;
}

/* One gate, twice. Of concurrency only its jobs in flight. */
struct pair {
    struct gate gate;
    struct naive naive;
    int64_t in_flight;
    int64_t now_us, taken_us, taken; /* a job that was taken and did not give back */
    int job;                         /* its number, the last that was given */
};
static struct pair pair;

static void differ(const char *what, int64_t gate, int64_t model)
{
    char rule[RULE_TEXT_SIZE];

    rule_write(&pair.gate.rule, rule);
    fail_msg("WEIR_SEED=%" PRIu64 ": %s: %s: gate %" PRId64 ", model %" PRId64 ", now %" PRId64, seed, rule,
             what, gate, model, pair.now_us);
}

static void check(const char *what, int64_t gate, int64_t model)
{
    if (gate != model)
        differ(what, gate, model);
}

static bool is_concurrency(void)
{
    return pair.gate.rule.algorithm == ALGORITHM_CONCURRENCY;
}

static void pair_init(const struct rule *rule)
{
    char stored[RULE_TEXT_SIZE];

    gate_free(&pair.gate);
    naive_free(&pair.naive);
    rule_write(rule, stored);
    pair = (struct pair){.now_us = BEGIN_US + pick(0, 100000000)};
    gate_init(&pair.gate, rule);
    naive_begin(&pair.naive, stored);
}

static void pair_free(void)
{
    gate_free(&pair.gate);
    naive_free(&pair.naive);
}

static int64_t definition_opens(int64_t cost)
{
    if (is_concurrency())
        return pair.in_flight < pair.gate.rule.count ? pair.now_us : GATE_NEVER;
    return naive_opens(&pair.naive, pair.now_us, cost);
}

static void check_starts(void)
{
    int64_t costs[] = {1, 2, pair.gate.rule.burst};

    for (size_t i = 0; i < COUNT(costs); i++)
        check("start", gate_start(&pair.gate, pair.now_us, costs[i]), definition_opens(costs[i]));
}

static int64_t definition_count(int64_t s_us, int64_t most, int64_t cost)
{
    int64_t free = pair.gate.rule.count - pair.in_flight;

    if (is_concurrency())
        return free < 0 ? 0 : free < most ? free : most;
    return naive_count(&pair.naive, s_us, most, cost);
}

static void start_jobs(int64_t s_us, int64_t k, int64_t cost)
{
    const char *wrong = NULL;

    assert_int_equal(gate_take(&pair.gate, s_us, k, cost), 0);
    pair.in_flight += k;
    for (int64_t i = 0; i < k && !is_concurrency() && !wrong; i++)
        wrong = naive_start(&pair.naive, s_us, cost, ++pair.job);
    fail_if(wrong, "WEIR_SEED=%" PRIu64 ": %s", seed, wrong);
    if (k) {
        pair.taken_us = s_us;
        pair.taken = cost;
    }
}

static void take_some(void)
{
    int64_t cost = pick(0, 2) ? 1 : pick(1, pair.gate.rule.burst + 1), most = pick(0, 5), k;
    int64_t s_us = gate_start(&pair.gate, pair.now_us, cost);

    check("start", s_us, definition_opens(cost));
    if (s_us == GATE_NEVER || pick(0, 1))
        return;
    s_us += pick(0, 1) ? 0 : pick(0, 40);
    k = gate_count(&pair.gate, s_us, most, cost);
    check("count", k, definition_count(s_us, most, cost));
    start_jobs(s_us, k, cost);
    if (s_us > pair.now_us + AHEAD_US || pick(0, 1))
        pair.now_us = s_us;
}

static void give_some(void)
{
    int64_t cost = pick(1, 4);

    if (cost > pair.taken || is_concurrency())
        return;
    gate_give(&pair.gate, pair.now_us, pair.taken_us, cost);
    naive_give(&pair.naive, pair.now_us, pair.taken_us, cost, pair.job);
    pair.taken = 0;
}

static void charge_some(void)
{
    int64_t cost = pick(1, 2 * pair.gate.rule.burst);

    assert_int_equal(gate_charge(&pair.gate, pair.now_us, cost), 0);
    if (!is_concurrency())
        naive_charge(&pair.naive, pair.now_us, cost);
}

static void release_one(void)
{
    gate_release(&pair.gate);
    pair.in_flight -= pair.in_flight > 0;
}

static void change_rule_to(const struct rule *rule)
{
    char stored[RULE_TEXT_SIZE];
    struct naive_rule naive;

    assert_int_equal(gate_change(&pair.gate, rule, pair.now_us), 0);
    rule_write(rule, stored);
    assert_non_null(naive_rule_read(stored, &naive));
    if (!is_concurrency())
        naive_change(&pair.naive, &naive, pair.now_us, 0);
    for (size_t i = 0; i < pair.naive.count; i++) /* a gate counts the most that can be in use */
        pair.naive.starts[i].least = pair.naive.starts[i].most;
    pair.taken = 0;
}

/* Mostly one that was in force before. */
static void change_rule(void)
{
    static struct rule known[7];
    int i = (int)pick(0, COUNT(known) - 1);

    if (is_concurrency() || pick(0, 3) == 0 || known[i].count == 0)
        known[i] = random_rule_of(is_concurrency() ? ALGORITHM_CONCURRENCY
                                                   : (enum algorithm)pick(0, ALGORITHM_SLIDING_WINDOW));
    change_rule_to(&known[i]);
}

static void step_back(void)
{
    int64_t us = pick(1, 200000);

    gate_step_back(&pair.gate, us);
    if (!is_concurrency())
        naive_step_back(&pair.naive, us);
    pair.now_us -= us;
    pair.taken = 0;
}

static void move_clock(void)
{
    int64_t period_us = pair.gate.rule.period_us, opens_us = gate_start(&pair.gate, pair.now_us, 1);

    if (pick(0, 1) && opens_us != GATE_NEVER)
        pair.now_us = opens_us + pick(0, 2);
    else if (pick(0, 1))
        pair.now_us += pick(0, 3);
    else
        pair.now_us += pick(0, period_us * pick(1, 3));
}

/* The n-th start is where starting one after the other gets. */
static void check_nth_starts(void)
{
    int64_t cost = pick(0, 1) ? 1 : pick(1, pair.gate.rule.burst), s_us = pair.now_us;
    struct naive walked;

    naive_copy(&walked, &pair.naive);
    for (int64_t n = 1; n <= 25 && s_us != GATE_NEVER; n++) {
        if (is_concurrency())
            s_us = n <= pair.gate.rule.count - pair.in_flight ? s_us : GATE_NEVER;
        else
            s_us = naive_opens(&walked, s_us, cost);
        check("nth start", gate_nth_start(&pair.gate, pair.now_us, n, cost), s_us);
        naive_start(&walked, s_us, cost, -1);
    }
    naive_free(&walked);
}

static void (*const steps[])(void) = {
    take_some, take_some,   take_some,   take_some, take_some,        move_clock,  move_clock,  move_clock,
    give_some, charge_some, release_one, step_back, check_nth_starts, change_rule, change_rule, change_rule,
};
#define CHANGES 3 /* of these, the last ones, which every other sequence does without */

static void run_sequences(enum algorithm algorithm)
{
    for (int i = 0; i < SEQUENCES; i++) {
        struct rule rule = random_rule_of(algorithm);

        pair_init(&rule);
        for (int j = 0; j < STEPS; j++) {
            steps[pick(0, COUNT(steps) - 1 - (i % 2) * CHANGES)]();
            check_starts();
        }
        check("resets", gate_resets(&pair.gate, pair.now_us) >= pair.now_us, 1);
    }
    pair_free();
}

/* A log that owes more than it counts keeps as much of what starts at once as of what starts one by one. */
TEST(test_a_log_notes_several_starts)
{
    const struct rule log = {.algorithm = ALGORITHM_SLIDING_LOG, .count = 3, .period_us = 17, .burst = 3};
    const struct rule bucket = {.algorithm = ALGORITHM_GCRA, .count = 1, .period_us = 1000, .burst = 12};

    pair_init(&log);
    assert_int_equal(gate_charge(&pair.gate, pair.now_us, 4), 0);
    naive_charge(&pair.naive, pair.now_us, 4);
    pair.now_us += 10;
    change_rule_to(&bucket);
    start_jobs(pair.now_us, 4, 1);
    pair.now_us += 8;
    change_rule_to(&log);
    assert_int_equal(gate_charge(&pair.gate, pair.now_us, 6), 0);
    naive_charge(&pair.naive, pair.now_us, 6);
    assert_int_equal(gate_start(&pair.gate, pair.now_us, 1), pair.now_us + 9);
    check_starts();
    pair_free();
}

static void begin_random(void)
{
    seed = random_seed();
    chance = seed;
}

TEST(test_random_sequences_equal_the_definitions)
{
    begin_random();
    for (int algorithm = 0; algorithm < ALGORITHM_COUNT; algorithm++)
        run_sequences((enum algorithm)algorithm);
}

/* Any rate from one in ten years to a million a second, with bursts up to a thousand million. */
TEST(test_random_rates_equal_the_definition)
{
    static void (*const acts[])(void) = {take_some,  take_some,  take_some,
                                         move_clock, move_clock, check_nth_starts};

    begin_random();
    for (int i = 0; i < SEQUENCES; i++) {
        struct rule rule = random_rule(&chance);

        pair_init(&rule);
        for (int j = 0; j < STEPS && pair.now_us < 2 * BEGIN_US; j++) {
            acts[pick(0, COUNT(acts) - 1)]();
            check_starts();
            if (pick(0, 30) == 0) {
                rule = random_rule(&chance);
                change_rule_to(&rule);
            }
        }
    }
    pair_free();
}

static struct rule parsed(const char *text)
{
    struct rule rule;

    fail_if(rule_parse(text, &rule, &error) < 0, "%s", error.text);
    return rule;
}

/* ---- Giving back, as if the job had cost less */

/* All starts of a bucket, in the order in which they were granted. */
static struct {
    int64_t at_us, slots;
    bool gives; /* it may still give back */
} history[STEPS * 5];
static int history_count;
static bool in_order, merged; /* the starts go forward; the gate may have had to forget */

/* As if all had cost that from the beginning; only of the last start it is asked whether it is too much. */
static void replay_history(void)
{
    char stored[RULE_TEXT_SIZE];
    const char *wrong = NULL;

    rule_write(&pair.gate.rule, stored);
    naive_free(&pair.naive);
    naive_begin(&pair.naive, stored);
    for (int i = 0; i < history_count; i++)
        if (history[i].slots > 0 && i < history_count - 1)
            naive_charge(&pair.naive, history[i].at_us, history[i].slots);
        else if (history[i].slots > 0)
            wrong = naive_start(&pair.naive, history[i].at_us, history[i].slots, i);
    fail_if(wrong, "WEIR_SEED=%" PRIu64 ": %s", seed, wrong);
}

/* As the definition has it, but for less than a microsecond: a start that was rounded up counts as the exact time
 * only in the one of the two that had no room to spare. */
static void check_given(void)
{
    int64_t costs[] = {1, pair.gate.rule.burst};

    merged |= pair.gate.low_count == GATE_LOWS;
    replay_history();
    for (size_t i = 0; i < COUNT(costs); i++) {
        int64_t at_us = gate_start(&pair.gate, pair.now_us, costs[i]);
        int64_t model_us = naive_opens(&pair.naive, pair.now_us, costs[i]);

        if (at_us < model_us - 1 || (at_us > model_us + 1 && in_order && !merged))
            differ("start after giving back", at_us, model_us);
    }
}

static void start_some(void)
{
    int64_t cost = pick(1, pick(0, 1) ? pair.gate.rule.burst : 1),
            s_us = gate_start(&pair.gate, pair.now_us, cost);

    if (s_us > pair.now_us + AHEAD_US)
        return;
    s_us += pick(0, 3) ? 0 : pick(0, 40);
    in_order &= history_count == 0 || s_us >= history[history_count - 1].at_us;
    assert_int_equal(gate_take(&pair.gate, s_us, 1, cost), 0);
    history[history_count].at_us = s_us;
    history[history_count].gives = true;
    history[history_count++].slots = cost;
    if (pick(0, 1))
        pair.now_us = s_us;
}

static void give_any(void)
{
    int i = history_count ? (int)pick(0, history_count - 1) : 0;

    if (history_count == 0 || !history[i].gives || history[i].at_us > pair.now_us)
        return;
    history[i].gives = false;
    if (history[i].slots > 0) {
        int64_t slots = pick(1, history[i].slots);

        gate_give(&pair.gate, pair.now_us, history[i].at_us, slots);
        history[i].slots -= slots;
    }
}

TEST(test_what_no_later_start_has_used_is_given_back)
{
    static void (*const acts[])(void) = {start_some, start_some, start_some, give_any, give_any, move_clock};

    begin_random();
    for (int i = 0; i < 4 * SEQUENCES; i++) {
        struct rule rule = random_rule_of(pick(0, 1) ? ALGORITHM_GCRA : ALGORITHM_TOKEN_BUCKET);

        if (pick(0, 1)) /* more starts than a gate remembers one by one */
            rule.burst = pick(GATE_LOWS, 4 * GATE_LOWS);
        pair_init(&rule);
        history_count = 0;
        in_order = true;
        merged = false;
        gate_remember(&pair.gate, pair.now_us);
        for (int j = 0; j < 2 * STEPS; j++) {
            acts[pick(0, COUNT(acts) - 1)]();
            check_given();
        }
    }
    pair_free();
}

/* More starts than it remembers one by one, each of them with less in use than the next: hardly anything is
 * lost. */
TEST(test_a_short_memory_gives_back_nearly_all)
{
    struct rule rule = parsed("1000/1s");
    int64_t left;

    begin_random();
    pair_init(&rule);
    gate_remember(&pair.gate, pair.now_us);
    for (int i = 0; i < 100; i++)
        assert_int_equal(gate_take(&pair.gate, pair.now_us + i, 1, 10), 0);
    assert_int_equal(pair.gate.low_count, GATE_LOWS);
    for (int i = 0; i < 100; i++)
        gate_give(&pair.gate, pair.now_us + 100, pair.now_us + i, 9);
    left = 1000 - gate_count(&pair.gate, pair.now_us + 100, 1000, 1);
    assert_in_range(left, 100, 180);
    pair_free();
}

/* When two starts are remembered as one, none of them gives back what the other found drained. */
TEST(test_a_short_memory_gives_back_no_more_than_later_starts_found)
{
    struct rule rule = parsed("1000/1s");
    int64_t before_us;

    begin_random();
    pair_init(&rule);
    gate_remember(&pair.gate, pair.now_us);
    assert_int_equal(gate_take(&pair.gate, pair.now_us, 1, 1), 0);
    assert_int_equal(gate_take(&pair.gate, pair.now_us + 999, 1, 1), 0);
    for (int i = 0; i < GATE_LOWS; i++)
        assert_int_equal(gate_take(&pair.gate, pair.now_us + 1000 + i, 1, 10), 0);
    before_us = gate_resets(&pair.gate, pair.now_us);
    gate_give(&pair.gate, pair.now_us + 2000, pair.now_us, 1);
    assert_in_range(before_us - gate_resets(&pair.gate, pair.now_us), 0, 1);
    pair_free();
}

/* ---- Long backlogs */

/* Far along, by the gate's own start and take, which the sequences above have checked. */
TEST(test_the_nth_start_is_exact_however_far)
{
    begin_random();
    for (int i = 0; i < 300; i++) {
        struct rule rule = random_rule_of((enum algorithm)pick(0, ALGORITHM_SLIDING_WINDOW));
        int64_t cost = pick(0, 1) ? 1 : pick(1, rule.burst), s_us;
        struct gate walked;

        pair_init(&rule);
        for (int j = 0; j < 10; j++)
            steps[pick(0, 10)]();
        assert_int_equal(gate_copy(&walked, &pair.gate), 0);
        s_us = pair.now_us;
        for (int64_t n = 1; n <= 1000; n++) {
            s_us = gate_start(&walked, s_us, cost);
            if (n % 97 == 1)
                check("nth start", gate_nth_start(&pair.gate, pair.now_us, n, cost), s_us);
            assert_int_equal(gate_take(&walked, s_us, 1, cost), 0);
        }
        gate_free(&walked);
    }
    pair_free();
}

static int64_t nth_of(const char *text, int64_t n)
{
    struct rule rule = parsed(text);
    struct gate g;
    int64_t s_us;

    gate_init(&g, &rule);
    s_us = gate_nth_start(&g, BEGIN_US, n, 1);
    gate_free(&g);
    return s_us;
}

TEST(test_a_billion_jobs_are_no_work)
{
    static const char *const rules[] = {
        "100/1s",
        "100/1s,algorithm=token-bucket",
        "100/1s,algorithm=fixed-window",
        "100/1s,algorithm=sliding-log",
        "101/1s,algorithm=sliding-window", /* once full it lets count - 1 into each period */
    };

    for (size_t i = 0; i < COUNT(rules); i++)
        assert_in_range(nth_of(rules[i], 1000000000), BEGIN_US + INT64_C(9999998000000),
                        BEGIN_US + INT64_C(10000001000000));
    assert_int_equal(nth_of("1/3650d", 1000000000), GATE_NEVER);
    assert_int_equal(nth_of("1/3650d,algorithm=fixed-window", 1000000000), GATE_NEVER);
    assert_int_equal(nth_of("1/3650d,algorithm=sliding-log", 1000000000), GATE_NEVER);
    assert_int_equal(nth_of("1/3650d,algorithm=sliding-window", 1000000000), GATE_NEVER);
    assert_int_equal(nth_of("concurrency=5", 5), BEGIN_US);
    assert_int_equal(nth_of("concurrency=5", 6), GATE_NEVER);
}

/* ---- Worst cases */

TEST(test_no_period_sees_more_than_the_worst_case)
{
    enum { STARTS = 400 };
    static int64_t at[STARTS];

    begin_random();
    for (int i = 0; i < 600; i++) {
        struct rule rule = random_rule_of((enum algorithm)pick(0, ALGORITHM_SLIDING_WINDOW));

        pair_init(&rule);
        for (int j = 0; j < STARTS; j++) {
            at[j] = pair.now_us = gate_start(&pair.gate, pair.now_us, 1);
            assert_int_equal(gate_take(&pair.gate, pair.now_us, 1, 1), 0);
            if (pick(0, 3 * (int)rule.count) == 0)
                pair.now_us += pick(1, 2 * rule.period_us);
        }
        for (int first = 0, j = 0; j < STARTS; j++) {
            while (at[j] - at[first] >= rule.period_us)
                first++;
            if (j - first + 1 > rule_most_in_period(&rule))
                differ("starts in a period", j - first + 1, rule_most_in_period(&rule));
        }
    }
    pair_free();
}

/* Quiet until first_us, then all that may start within one period. */
static int64_t starts_in_a_period(const char *text, int64_t first_us)
{
    struct rule rule = parsed(text);
    struct gate g;
    int64_t n = 0;

    gate_init(&g, &rule);
    for (int64_t s_us = first_us; (s_us = gate_start(&g, s_us, 1)) < first_us + rule.period_us; n++)
        assert_int_equal(gate_take(&g, s_us, 1, 1), 0);
    gate_free(&g);
    return n;
}

TEST(test_the_worst_case_is_met)
{
    static const struct {
        const char *rule;
        int64_t most;
    } worst[] = {
        {"100/1s", 199},
        {"100/1s,burst=1", 100},
        {"100/1s,burst=20,algorithm=token-bucket", 119},
        {"100/1s,algorithm=fixed-window", 200},
        {"100/1s,algorithm=fixed-window,offset=300ms", 200},
        {"100/1s,algorithm=sliding-log", 100},
        {"100/1s,algorithm=sliding-window", 199},
    };

    for (size_t i = 0; i < COUNT(worst); i++) {
        struct rule rule = parsed(worst[i].rule);
        int64_t edge_us = BEGIN_US / 1000000 * 1000000 + rule.offset_us;

        assert_int_equal(rule_most_in_period(&rule), worst[i].most);
        assert_int_equal(starts_in_a_period(worst[i].rule, edge_us - 1), worst[i].most);
    }
}

TEST(test_costs)
{
    struct rule rule = GCRA(10, 1000000, 5);
    struct gate g;

    gate_init(&g, &rule);
    assert_int_equal(gate_start(&g, BEGIN_US, 6), INT64_MAX);
    assert_int_equal(gate_nth_start(&g, BEGIN_US, 1, 6), INT64_MAX);
    assert_int_equal(gate_start(&g, BEGIN_US, 5), BEGIN_US);
    assert_int_equal(gate_count(&g, BEGIN_US, 10, 2), 2);
    assert_int_equal(gate_take(&g, BEGIN_US, 2, 2), 0);
    assert_int_equal(gate_count(&g, BEGIN_US, 10, 1), 1);
    assert_int_equal(gate_start(&g, BEGIN_US, 2), BEGIN_US + 100000);
    assert_int_equal(gate_start(&g, BEGIN_US, 5), BEGIN_US + 400000);
    assert_int_equal(gate_count(&g, BEGIN_US, 0, 1), 0);
}

TEST(test_a_changed_rule_keeps_what_was_used)
{
    const struct rule before = GCRA(10, 1000000, 5), tighter = GCRA(1, 1000000, 2),
                      faster = GCRA(7, 1000, 100);
    struct gate g;

    gate_init(&g, &before);
    assert_int_equal(gate_take(&g, BEGIN_US, 3, 1), 0);
    assert_int_equal(gate_change(&g, &tighter, BEGIN_US + 50000), 0); /* 2.5 slots left: 3, at most 2 */
    assert_int_equal(g.word[0], BEGIN_US + 50000 + 2000000);
    assert_int_equal(gate_start(&g, BEGIN_US + 50000, 1), BEGIN_US + 1050000);
    assert_int_equal(gate_change(&g, &faster, BEGIN_US + 1050001), 0); /* 0.999999 left: 1 */
    assert_int_equal(g.word[0], BEGIN_US + 1050001 + 142);
    assert_int_equal(g.word[1], 6);
    assert_int_equal(gate_change(&g, &before, BEGIN_US + 9000000), 0); /* nothing left */
    assert_int_equal(gate_count(&g, BEGIN_US + 9000000, 10, 1), 5);
    gate_free(&g);
}

/* ---- Pauses, rates that adapt */

TEST(test_a_pause)
{
    struct rule rule = parsed("10/1s,algorithm=fixed-window");
    struct gate g;

    gate_init(&g, &rule);
    g.pause_until_us = BEGIN_US + 1500000;
    assert_int_equal(gate_count(&g, BEGIN_US, 10, 1), 0);
    assert_int_equal(gate_start(&g, BEGIN_US, 1), BEGIN_US + 1500000);
    assert_int_equal(gate_nth_start(&g, BEGIN_US, 11, 1), BEGIN_US + 2000000);
    assert_int_equal(gate_resets(&g, BEGIN_US), BEGIN_US + 1500000);
    gate_step_back(&g, 500000);
    assert_int_equal(gate_start(&g, BEGIN_US, 1), BEGIN_US + 1000000);
    gate_free(&g);
}

static int64_t slots_free(const char *rule, const char *state, int64_t now_us)
{
    struct rule r = parsed(rule);
    struct gate g;
    int64_t n;

    gate_init(&g, &r);
    fail_if(gate_read(&g, state, now_us, &error) < 0, "%s", error.text);
    n = gate_count(&g, now_us, 1000, 1);
    gate_free(&g);
    return n;
}

TEST(test_a_rate_that_adapts_grows_again)
{
    static const char slowed[] = "1795000000000000 0 - 500,1795000000000000 fixed-window:100/10000000/0 0 0";
    struct rule rule = parsed("100/10s,algorithm=fixed-window,adapt=0.2..0.9");
    struct gate g;

    assert_int_equal(slots_free("100/10s,algorithm=fixed-window,adapt=0.2..0.9", NULL, BEGIN_US), 90);
    assert_int_equal(slots_free("100/10s,algorithm=fixed-window,adapt=0.2..0.9", slowed, BEGIN_US), 50);
    assert_int_equal(slots_free("100/10s,algorithm=fixed-window,adapt=0.6..0.9", slowed, BEGIN_US), 60);
    assert_int_equal(slots_free("100/10s,algorithm=fixed-window,adapt=0.2..0.9", slowed, BEGIN_US + 50000000),
                     55);
    assert_int_equal(
        slots_free("100/10s,algorithm=fixed-window,adapt=0.2..0.9", slowed, BEGIN_US + 900000000), 90);
    assert_int_equal(slots_free("100/10s,algorithm=fixed-window", slowed, BEGIN_US), 100);
    gate_init(&g, &rule);
    assert_int_equal(gate_read(&g, slowed, BEGIN_US + 1, &error), 0);
    assert_true(gate_fits(&g, 90));
    assert_false(gate_fits(&g, 91));
    assert_int_equal(gate_start(&g, BEGIN_US + 1, 60), BEGIN_US + 10000000);
    assert_int_equal(gate_start(&g, BEGIN_US + 1, 91), GATE_NEVER);
    gate_free(&g);
    assert_int_equal(slots_free("10/1s,adapt=0.5..1",
                                "1795000000000000 0 - 500,1795000000000000 gcra:10/1000000/10 0 0", BEGIN_US),
                     10);
}

/* ---- Stored states */

TEST(test_states_are_read)
{
    static const struct {
        const char *rule, *state;
        int64_t later_us, free;
    } known[] = {
        {"10/1s", "", 0, 10},
        {"10/1s", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3", 0, 7},
        {"10/1s", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3", 250001, 10},
        {"10/1s", "1795000000000000 1795000000900000 - - gcra:10/1000000/10 0 0", 899999, 0},
        {"10/1s", "1795000000000000 0 7,1795000000100000,mail/42 - gcra:10/1000000/10 0 0", 0, 10},
        {"10/1s,by=key", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3 ~4", 0, 7},
        {"10/1s,burst=4", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3", 0, 1},
        {"10/1s,burst=2", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3", 0, 0},
        {"10/1s,algorithm=fixed-window", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3", 0,
         7},
        {"10/1s,algorithm=token-bucket",
         "1795000000000000 0 - - token-bucket:10/1000000/10 1795000000250000 0", 0, 7},
        {"10/1s,algorithm=fixed-window",
         "1795000000000000 0 - - fixed-window:10/1000000/0 1795000000000000 4", 0, 6},
        {"10/1s,algorithm=fixed-window",
         "1795000000000000 0 - - fixed-window:10/1000000/0 1795000000000000 4", 1000000, 10},
        {"10/1s,algorithm=fixed-window",
         "1795000000000000 0 - - fixed-window:10/1000000/0 1795000000000000 40", 0, 0},
        {"10/1s,algorithm=sliding-log",
         "1795000000000000 0 - - sliding-log:10/1000000 1794999999900000 4 1794999999500000 "
         "0;100000*2;300000;",
         0, 6},
        {"10/1s,algorithm=sliding-log",
         "1795000000000000 0 - - sliding-log:10/1000000 1794999999900000 4 1794999999500000 "
         "0;100000*2;300000;",
         500000, 7},
        {"10/1s,algorithm=sliding-log", "1795000000000000 0 - - sliding-log:10/1000000 0 0 0 ", 0, 10},
        {"10/1s,algorithm=sliding-window",
         "1795000000000000 0 - - sliding-window:10/1000000 1795000000000000 2 5", 0, 3},
        {"10/1s,algorithm=sliding-window",
         "1795000000000000 0 - - sliding-window:10/1000000 1795000000000000 2 5", 500000, 5},
        {"10/1s,algorithm=sliding-window",
         "1795000000000000 0 - - sliding-window:10/1000000 1795000000000000 2 5", 1000000, 8},
        {"concurrency=5", "1795000000000000 0 - - concurrency:5 3", 0, 2},
        {"concurrency=9", "1795000000000000 0 - - concurrency:5 3", 0, 6},
        {"concurrency=5", "1795000000000000 0 - - gcra:10/1000000/10 1795000000250000 3 ~4", 0, 1},
        {"10/1s", "1795000000000000 0 - - concurrency:5 3", 0, 7},
        /* The clock stepped back by 10 s. */
        {"10/1s", "1795000010000000 0 - - gcra:10/1000000/10 1795000010250000 3", 0, 7},
        {"10/1s", "1795000010000000 1795000010500000 - - gcra:10/1000000/10 0 0", 0, 0},
    };

    for (size_t i = 0; i < COUNT(known); i++) {
        int64_t free = slots_free(known[i].rule, known[i].state, BEGIN_US + known[i].later_us);

        fail_if(free != known[i].free, "%s: '%s': %" PRId64 " slots, not %" PRId64, known[i].rule,
                known[i].state, free, known[i].free);
    }
}

TEST(test_debt_is_bounded)
{
    struct rule rule = parsed("1/1s");
    struct gate g;

    gate_init(&g, &rule);
    assert_int_equal(gate_charge(&g, BEGIN_US, 1000000000), 0);
    assert_int_equal(gate_start(&g, BEGIN_US, 1), BEGIN_US + INT64_C(2) * 3650 * 86400 * 1000000);
    gate_free(&g);
}

TESTS(NULL, NULL)
