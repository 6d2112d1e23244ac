/* The Lua gates in a real Redis, under virtual time: random sequences of all that can be done with a gate, of
 * every algorithm, against the gates in C, which test_algorithms.c holds against their definitions; then what gates do
 * about clocks, pauses, holds, rates that adapt and other rules. What they store: test_gate_state.c. */
#include "tests/gate_steps.h"
#include "tests/naive.h"
#include "tests/random_rule.h"

#define AHEAD_US 5000

/* ---- Random sequences */

#define STEPS 50
#define RULES 7 /* that take turns: more than a gate remembers */
#define NODES 3

/* What Redis keeps of the gate, as C has it. */
struct kept {
    struct gate gate;
    bool written;
    int64_t wrote_us;
    int64_t hold_ticket, hold_until_us;
    int holder; /* -1: no hold */
};

struct foreseen {
    struct answer answer;
    bool resync; /* the state that follows is taken as it is */
};

static struct rule random_valid_rule(uint64_t *random, char stored[RULE_TEXT_SIZE])
{
    struct rule r = random_any_rule(random), read;

    if (r.algorithm != ALGORITHM_CONCURRENCY && !r.of_jobs && random_in(random, 0, 2) == 0)
        strcpy(r.of, "tokens");
    rule_write(&r, stored);
    fail_if(rule_read(stored, &read, &error) < 0, "WEIR_SEED=%" PRIu64 ": %s", seed, error.text);
    return read;
}

/* The gate of a step: what is kept, put right as loading does. */
static struct gate load(struct kept *k, const struct rule *rule, int64_t now_us, bool *touched)
{
    char stored[2][RULE_TEXT_SIZE];
    struct gate g;

    if (!k->written) {
        gate_init(&g, rule);
        return g;
    }
    assert_int_equal(gate_copy(&g, &k->gate), 0);
    if (now_us < k->wrote_us) {
        int64_t back_us = k->wrote_us - now_us;

        gate_step_back(&g, back_us);
        k->hold_until_us -= back_us;
        *touched = true;
    }
    rule_write(&g.base, stored[0]);
    rule_write(rule, stored[1]);
    for (int i = 0; i < 2; i++)
        stored[i][strcspn(stored[i], ",")] = '\0';
    if (strcmp(stored[0], stored[1]) != 0) {
        *touched = true;
        k->holder = -1;
        g.base.adapt_low = g.base.adapt_high = 0; /* a state says what is in use in terms of the whole rate */
        g.rule = g.base;
    }
    assert_int_equal(gate_change(&g, rule, now_us), 0);
    return g;
}

static int64_t held_until(const struct kept *k, const struct step *s)
{
    bool held =
        k->holder >= 0 && k->hold_until_us > s->now_us && k->holder != s->node && k->hold_ticket < s->ticket;

    return held ? k->hold_until_us : 0;
}

/* Does to the gate what the step does; returns whether that is written. */
static bool follow(struct gate *g, struct kept *k, struct step *s, struct answer *answer)
{
    switch (s->verb) {
    case KEEP:
        gate_remember(g, s->now_us);
        /* fall through */
    case TAKE:
    case FAR:
        if (answer->start_us <= s->now_us + (s->verb == FAR ? GATE_AHEAD_MOST_US : AHEAD_US))
            answer->k = gate_count(g, answer->start_us + s->b, s->a, s->cost);
        if (answer->k == 0 || s->cost == 0)
            return false;
        assert_int_equal(gate_take(g, answer->start_us + s->b, answer->k, s->cost), 0);
        k->holder = -1;
        return true;
    case GIVE:
        gate_give(g, s->now_us, s->a, s->cost);
        return true;
    case CHARGE:
        assert_int_equal(gate_charge(g, s->now_us, s->cost), 0);
        return true;
    case PAUSE:
        g->pause_until_us = g->pause_until_us > s->a ? g->pause_until_us : s->a;
        return true;
    case RESUME:
        g->pause_until_us = 0;
        return true;
    case RELEASE:
        if (g->in_flight == 0)
            return false;
        gate_release(g);
        return true;
    case HOLD:
        answer->k = answer->held_us == 0;
        if (answer->k) {
            if (k->holder != s->node || k->hold_until_us <= s->now_us || k->hold_ticket > s->ticket)
                k->hold_ticket = s->ticket;
            k->holder = s->node;
            k->hold_until_us = s->a;
        }
        return answer->k;
    default:
        return false;
    }
}

/* For whoever comes now: behind any hold. */
static int64_t remaining(const struct gate *g, const struct kept *k, int64_t now_us)
{
    if (k->holder >= 0 && k->hold_until_us > now_us)
        return 0;
    return gate_start(g, now_us, 1) > now_us ? 0 : gate_count(g, now_us, g->rule.burst, 1);
}

static struct foreseen foresee(struct kept *k, const struct rule *rule, struct step *s)
{
    struct foreseen f = {.resync = s->verb == THROTTLED};
    struct kept before = *k;
    bool touched = false;
    struct gate g = load(k, rule, s->now_us, &touched);

    f.answer.held_us = held_until(k, s);
    f.answer.start_us = gate_start(&g, s->now_us, s->cost);
    /* When a rate has grown is when to look again, not a time from which a slot may be granted ahead. */
    if (g.factor && !g.base.of_jobs && s->cost > g.rule.burst &&
        f.answer.start_us <= s->now_us + GATE_AHEAD_MOST_US)
        f.answer.start_us = s->now_us + GATE_AHEAD_MOST_US + 1;
    if (s->cost > 0 && f.answer.held_us > f.answer.start_us)
        f.answer.start_us = f.answer.held_us;
    if (follow(&g, k, s, &f.answer))
        touched = true;
    f.answer.resets_us = gate_resets(&g, s->now_us);
    f.answer.remaining = remaining(&g, k, s->now_us);
    f.answer.burst = g.rule.burst;
    if (!touched) {
        *k = before;
        gate_free(&g);
        return f;
    }
    g.remembers = g.low_count > 0; /* else the state does not say so */
    gate_free(&k->gate);
    k->gate = g;
    k->written = true;
    k->wrote_us = s->now_us;
    return f;
}

static int64_t move_clock(const struct kept *k, int64_t now_us, uint64_t *random)
{
    const struct rule *r = &k->gate.base;
    int64_t opens_us;

    switch (random_in(random, 0, 7)) {
    case 0:
        return now_us + (k->written && r->period_us ? random_magnitude(random, r->period_us / r->count) : 1);
    case 1:
        opens_us = k->written ? gate_start(&k->gate, now_us, 1) : now_us;
        return opens_us < BEGIN_US * 2 ? opens_us + random_in(random, -AHEAD_US - 1, 2) : now_us;
    case 2:
        return now_us + (k->written && r->period_us ? random_magnitude(random, r->period_us) : 1);
    case 3:
        return random_in(random, 0, 3) ? now_us : now_us - random_magnitude(random, INT64_C(7200000000));
    case 4:
        return random_in(random, 0, 9) ? now_us + 1 : now_us + random_magnitude(random, INT64_C(7200000000));
    default:
        return now_us;
    }
}

/* Is it in debt for years? Debts end somewhere. */
static bool is_far(const struct kept *k, int64_t now_us)
{
    int64_t resets_us = k->written ? gate_resets(&k->gate, now_us) : now_us;

    return resets_us != GATE_NEVER && resets_us > now_us + INT64_C(300000000000000);
}

#define TAKEN 8 /* starts that may give back */

static struct step random_step(const struct rule *rule, const char *stored, int64_t now_us,
                               const int64_t taken_us[TAKEN], bool far, uint64_t *random)
{
    static const enum verb verbs[] = {FAR,    FAR,   TAKE,   TAKE,    TAKE,    TAKE,      TAKE,
                                      KEEP,   KEEP,  KEEP,   KEEP,    LOOK,    GIVE,      GIVE,
                                      CHARGE, PAUSE, RESUME, RELEASE, RELEASE, THROTTLED, HOLD};
    struct step s = {.now_us = now_us, .verb = verbs[random_in(random, 0, COUNT(verbs) - 1)]};

    snprintf(s.rule, sizeof s.rule, "%s", stored);
    s.cost = random_in(random, 0, 2) ? 1 : random_magnitude(random, rule->burst + rule->burst / 8 + 1);
    s.a = random_magnitude(random, 200);
    s.node = (int)random_in(random, 0, NODES - 1);
    s.ticket = random_in(random, 1, 5);
    if (takes(s.verb))
        s.b = random_in(random, 0, 2) ? 0 : random_in(random, 0, 2);
    if (s.verb == GIVE)
        s.a = random_in(random, 0, 3) ? taken_us[random_in(random, 0, TAKEN - 1)] : now_us;
    if (takes(s.verb) && *rule->of && random_in(random, 0, 7) == 0)
        s.cost = 0;
    if (far && (s.verb == CHARGE || s.verb == THROTTLED))
        s.verb = LOOK;
    if (s.verb == CHARGE)
        s.cost = random_magnitude(random, 2 * rule->burst);
    if (*rule->of)
        s.cost = min_i64(s.cost, COST_MAX);
    if (s.verb == PAUSE || s.verb == HOLD)
        s.a = now_us + random_magnitude(random, 1000000);
    return s;
}

static bool is_log(const struct step *s)
{
    return strncmp(s->rule, "sliding-log", 11) == 0;
}

/* A log whose slots were all given back says so in Lua, and in C only once what is left of it is over. */
static bool same_resets(const struct step *s, int64_t lua_us, int64_t c_us)
{
    return lua_us == c_us || (is_log(s) && lua_us < c_us);
}

static bool same(const struct step *s, const struct answer *lua, const struct answer *c)
{
    return lua->start_us == c->start_us && lua->k == c->k && same_resets(s, lua->resets_us, c->resets_us) &&
           lua->remaining == c->remaining && lua->burst == c->burst && lua->held_us == c->held_us;
}

static void fail_step(const struct step *s, int sequence, int number, const struct answer *lua,
                      const struct answer *c, const char *state)
{
    fail_msg("WEIR_SEED=%" PRIu64 ": sequence %d, step %d: %s %s at %" PRId64 ", cost %" PRId64 ", a %" PRId64
             ", b %" PRId64 " (Lua, C): start %" PRId64 " %" PRId64 ", k %" PRId64 " %" PRId64
             ", resets %" PRId64 " %" PRId64 ", remaining %" PRId64 " %" PRId64 ", burst %" PRId64 " %" PRId64
             ", held %" PRId64 " %" PRId64 "; left: %.200s",
             seed, sequence, number, verb_names[s->verb], s->rule, s->now_us, s->cost, s->a, s->b,
             lua->start_us, c->start_us, lua->k, c->k, lua->resets_us, c->resets_us, lua->remaining,
             c->remaining, lua->burst, c->burst, lua->held_us, c->held_us, state);
}

static bool same_lows(const struct gate *a, const struct gate *b)
{
    return a->low_count == b->low_count &&
           memcmp(a->lows, b->lows, (size_t)a->low_count * sizeof *a->lows) == 0;
}

/* C reads what Lua wrote, and answers as the gate that it is. */
static void check_state(const struct kept *k, const struct step *s, const struct rule *rule,
                        const char *state, int sequence, int number)
{
    struct gate read, kept;
    bool ignored = false;
    struct kept copy = *k;

    gate_init(&read, rule);
    if (gate_read(&read, state, s->now_us, &error) < 0)
        fail_msg("WEIR_SEED=%" PRIu64 ": sequence %d, step %d: %s", seed, sequence, number, error.text);
    kept = load(&copy, rule, s->now_us, &ignored);
    if (gate_start(&read, s->now_us, 1) != gate_start(&kept, s->now_us, 1) || !same_lows(&read, &kept) ||
        read.in_flight != kept.in_flight ||
        gate_start(&read, s->now_us, rule->burst) != gate_start(&kept, s->now_us, rule->burst) ||
        (!is_log(s) && gate_resets(&read, s->now_us) != gate_resets(&kept, s->now_us)))
        fail_msg("WEIR_SEED=%" PRIu64 ": sequence %d, step %d: C reads '%.200s' otherwise", seed, sequence,
                 number, state);
    gate_free(&kept);
    gate_free(&read);
}

static void resync(struct kept *k, const struct rule *rule, const char *state)
{
    if (!*state)
        return;
    gate_free(&k->gate);
    gate_init(&k->gate, rule);
    k->written = true;
    k->wrote_us = atoll(state);
    assert_int_equal(gate_read(&k->gate, state, k->wrote_us, &error), 0);
}

/* Steps are asked one by one of a sequence's seed, and sent in one call; a throttled rate can only be known
 * from the answer, so a call ends with it. */
static void run_sequence(uint64_t *random, int sequence)
{
    struct kept k = {.holder = -1};
    char stored[RULES][RULE_TEXT_SIZE];
    struct rule of[RULES];
    int64_t now_us = BEGIN_US, taken_us[TAKEN], change = random_in(random, 2, 25);
    int taken = 0, now = 0;

    for (int i = 0; i < RULES; i++)
        of[i] = random_valid_rule(random, stored[i]);

    for (int i = 0; i < TAKEN; i++)
        taken_us[i] = BEGIN_US;
    server_do(&server, "DEL", GATE);
    for (int done = 0; done < STEPS;) {
        struct foreseen foreseen[STEPS];
        struct step steps[STEPS];
        struct rule rules[STEPS];
        struct args a = {0};
        redisReply *reply;
        int n = 0;

        library_begin(&a, "steps", PREFIX, BEGIN_US);
        do {
            if (random_in(random, 0, change) == 0)
                now = (int)random_in(random, 0, RULES - 1);
            steps[n] = random_step(&of[now], stored[now], now_us, taken_us, is_far(&k, now_us), random);
            rules[n] = of[now];
            foreseen[n] = foresee(&k, &of[now], &steps[n]);
            if (foreseen[n].answer.k > 0 && takes(steps[n].verb))
                taken_us[taken++ % TAKEN] = foreseen[n].answer.start_us + steps[n].b;
            add_step(&a, &steps[n]);
            now_us = move_clock(&k, now_us, random);
            if (now_us > BEGIN_US * 2 || now_us < BEGIN_US / 2)
                now_us = BEGIN_US;
        } while (!foreseen[n++].resync && done + n < STEPS);
        reply = ask(&a);
        assert_int_equal(reply->elements, 2 * n);
        for (int i = 0; i < n; i++) {
            struct answer lua = read_answer(reply->element[2 * i]->str);
            const char *state = reply->element[2 * i + 1]->str;

            if (!foreseen[i].resync && !same(&steps[i], &lua, &foreseen[i].answer))
                fail_step(&steps[i], sequence, done + i, &lua, &foreseen[i].answer, state);
        }
        if (foreseen[n - 1].resync)
            resync(&k, &rules[n - 1], reply->element[2 * n - 1]->str);
        check_state(&k, &steps[n - 1], &rules[n - 1], reply->element[2 * n - 1]->str, sequence, done + n - 1);
        freeReplyObject(reply);
        done += n;
    }
    gate_free(&k.gate);
}

TEST_WITH(test_random_sequences_equal_the_gates_in_c, client_flush, NULL)
{
    uint64_t random = seed = random_seed();

    for (int i = 0; i < 2000; i++)
        run_sequence(&random, i);
}

/* ---- Costs */

static const char *random_cost(uint64_t *random)
{
    static const char *const words[] = {
        "3",          "0",       "1",      ",",     ":",          "tokens:900", "tokens", "images:2", "a_9:0",
        "1000000000", "plain:2", "jobs:1", "z:007", "1000000001", "A:1",        "-1",     "b:1",      "c:1"};
    char text[128] = "";
    size_t len = 0;

    for (int64_t n = random_in(random, 1, 4); n > 0; n--)
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s%s", len && random_in(random, 0, 5) ? "," : "",
                             words[random_in(random, 0, COUNT(words) - 1)]);
    return textf("%s", text);
}

TEST_WITH(test_costs_are_read_as_in_c, client_flush, NULL)
{
    static const char *const texts[] = {"3",
                                        "tokens:900",
                                        "3,images:2,tokens:0",
                                        "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1",
                                        "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1",
                                        "a23456789012345678901234567890ab:1",
                                        "a23456789012345678901234567890abc:1"};
    uint64_t random = random_seed();
    struct args a = {0};
    const char *asked[400];
    char text[COST_TEXT_SIZE];
    redisReply *reply;
    int valid = 0;

    library_begin(&a, "costs", PREFIX, BEGIN_US);
    for (size_t i = 0; i < COUNT(asked); i++) {
        asked[i] = i < COUNT(texts) ? texts[i] : random_cost(&random);
        args_add(&a, asked[i]);
    }
    reply = ask(&a);
    for (size_t i = 0; i < COUNT(asked); i++) {
        struct job_cost cost;
        bool read = cost_parse(asked[i], &cost);

        cost_write(&cost, text);
        fail_if(strcmp(read ? text : "-", reply->element[i]->str) != 0 ||
                    (read && strcmp(text, asked[i]) != 0),
                "%s: %s in Lua, %s in C", asked[i], reply->element[i]->str, read ? text : "-");
        valid += read;
    }
    fail_if(valid < 20, "%d of them are costs", valid);
    freeReplyObject(reply);
}

TEST(test_what_a_job_says_counts_before_its_type)
{
    struct rule plain = {.algorithm = ALGORITHM_GCRA}, jobs = plain, tokens = plain, images = plain,
                flight = {.algorithm = ALGORITHM_CONCURRENCY};
    struct job_cost said = cost_of(COST_UNSAID), of_type = said, images_of = said;

    jobs.of_jobs = true;
    strcpy(tokens.of, "tokens");
    strcpy(images.of, "images");
    assert_true(cost_say(&said, "tokens", 6, 1) && cost_say(&of_type, "tokens", 6, 800) &&
                cost_say(&of_type, "plain", 5, 3));
    assert_false(cost_say(&said, "tokens", 6, 2) || cost_say(&of_type, "plain", 5, 3) ||
                 cost_say(&said, "jobs", 4, 1) || cost_say(&images_of, "plain", 5, 0) ||
                 cost_say(&said, "images", 6, COST_MAX + 1));
    assert_int_equal(cost_at(&tokens, &said, &of_type), 1);
    assert_int_equal(cost_at(&plain, &said, &of_type), 3);
    assert_int_equal(cost_at(&images, &said, &of_type), 1);
    assert_int_equal(cost_at(&jobs, &said, &of_type), 1);
    assert_int_equal(cost_at(&flight, &said, &of_type), 1);
}

/* ---- Long runs */

static int64_t last_start_in_c(const struct rule *rule, int64_t cost, int64_t starts)
{
    int64_t s = BEGIN_US;
    struct gate g;

    gate_init(&g, rule);
    for (int64_t k = 0; k < starts; k++) {
        s = gate_start(&g, s, cost);
        assert_int_equal(gate_take(&g, s, 1, cost), 0);
    }
    gate_free(&g);
    return s;
}

/* The n-th start of a backlog is the exact time, rounded up; over an hour that is far better than one part in
 * a million. Costs stand for many starts where there are too many to make one by one. */
TEST_WITH(test_an_hour_of_backlog_is_exact, client_flush, NULL)
{
    static const struct {
        struct rule rule;
        int64_t cost, starts;
    } runs[] = {
        {GCRA(7, 1000000, 7), 1, 7 * 3600},     {GCRA(7, 1000000, 1), 1, 7 * 3600},
        {GCRA(30000, 1000000, 1), 1, 100000},   {GCRA(30000, 1000000, 3000), 1000, 30 * 3600},
        {GCRA(1000000, 1000000, 1), 1, 100000}, {GCRA(1000000, 1000000, 100000), 99991, 36000},
        {GCRA(1, 1500000, 1), 1, 2400},         {GCRA(1, 86400000000, 1), 1, 1000},
        {GCRA(999983, 1000003, 10), 7, 50000},  {GCRA(100, 1000000, 10), 1, 100000},
        {GCRA(3, 1000, 2), 1, 100000},
    };
    enum { A_CALL = 5000 };

    for (size_t i = 0; i < COUNT(runs); i++) {
        const struct rule *r = &runs[i].rule;
        int64_t s = BEGIN_US, left = runs[i].starts;
        char stored[RULE_TEXT_SIZE];
        __int128 exact;

        server_do(&server, "DEL", GATE);
        rule_write(r, stored);
        for (int64_t n; left > 0; left -= n) {
            struct args a = {0};
            redisReply *reply;

            n = left < A_CALL ? left : A_CALL;
            library_begin(&a, "backlog", PREFIX, s);
            args_add(&a, stored);
            args_add_int(&a, runs[i].cost);
            args_add_int(&a, n);
            reply = ask(&a);
            s = atoll(reply->str);
            freeReplyObject(reply);
        }
        exact = ((__int128)runs[i].starts * runs[i].cost - r->burst) * r->period_us;
        assert_int_equal(s - BEGIN_US, (int64_t)((exact + r->count - 1) / r->count));
        assert_int_equal(last_start_in_c(r, runs[i].cost, runs[i].starts), s);
    }
}

/* ---- Clocks and pauses */

TEST_WITH(test_a_clock_that_steps_back_delays_nothing, client_flush, NULL)
{
    const char *rule = "gcra:10/1000000/1";
    const int64_t back_us = BEGIN_US - INT64_C(3600000000);

    assert_int_equal(take(BEGIN_US, rule, 1, 1).k, 1);
    /* Denied, and written all the same: the wait counts from the first look after the step. */
    assert_int_equal(take(back_us, rule, 1, 1).start_us, back_us + 100000);
    assert_int_equal(take(back_us + 60000, rule, 1, 1).start_us, back_us + 100000);
    assert_int_equal(take(back_us + 95000, rule, 1, 1).k, 1);
}

TEST_WITH(test_a_clock_that_goes_and_comes_back_grants_one_burst, client_flush, NULL)
{
    static const char *const rules[] = {"gcra:10/1000000/5", "token-bucket:10/1000000/5",
                                        "fixed-window:5/1000000/0", "sliding-log:5/1000000",
                                        "sliding-window:5/1000000"};
    const int64_t far_us = BEGIN_US + INT64_C(3600000000);

    for (size_t i = 0; i < COUNT(rules); i++) {
        server_do(&server, "DEL", GATE);
        assert_int_equal(take(BEGIN_US, rules[i], 1, 10).k, 5);
        assert_int_equal(take(far_us, rules[i], 1, 10).k, 5);
        assert_int_equal(take(BEGIN_US, rules[i], 1, 10).k, 0);
        assert_true(take(BEGIN_US, rules[i], 1, 10).start_us <= BEGIN_US + 1200000);
    }
}

/* Clocks are set back at half past midnight, and show the end of the day before once more: the new day goes on. */
TEST_WITH(test_a_day_that_begins_twice_is_one, client_flush, NULL)
{
    const char *rule = "fixed-window:2/86400000000/0/86400/90000/3/5/0/612000/10/5/0/606600";
    const int64_t begins_us = INT64_C(1824937200000000), minute_us = 60000000;

    assert_int_equal(take(begins_us + 10 * minute_us, rule, 1, 1).k, 1);
    assert_int_equal(take(begins_us + 40 * minute_us, rule, 1, 10).k, 1);
    act(LOOK, begins_us + 4000 * minute_us, rule, 0); /* a rule keeps the window it was asked for last */
    assert_int_equal(take(begins_us + 50 * minute_us, rule, 1, 10).start_us, INT64_C(1825027200000000));
}

TEST_WITH(test_a_pause_holds_and_is_no_tat, client_flush, NULL)
{
    const char *rule = "gcra:10/1000000/5";
    struct answer a;

    assert_int_equal(act(PAUSE, BEGIN_US, rule, BEGIN_US + 7000000).start_us, BEGIN_US);
    a = take(BEGIN_US + 1, rule, 1, 10);
    assert_int_equal(a.k, 0);
    assert_int_equal(a.start_us, BEGIN_US + 7000000);
    assert_int_equal(a.resets_us, BEGIN_US + 7000000);
    assert_int_equal(a.remaining, 0);
    /* A shorter one changes nothing. */
    act(PAUSE, BEGIN_US + 1, rule, BEGIN_US + 1000000);
    /* Back by a second: the pause moves with the clock. */
    assert_int_equal(take(BEGIN_US + 1 - 1000000, rule, 1, 10).start_us, BEGIN_US + 6000000);
    assert_int_equal(take(BEGIN_US + 6000000, rule, 1, 10).k, 5);
    act(PAUSE, BEGIN_US + 7000000, rule, BEGIN_US + 9000000);
    act(RESUME, BEGIN_US + 7000000, rule, 0);
    assert_int_equal(take(BEGIN_US + 7000000, rule, 1, 10).k, 5);
}

/* ---- Holds */

static struct answer look_as(int node, int64_t ticket, int64_t now_us)
{
    const struct step s = {.rule = "gcra:10/1000000/5",
                           .now_us = now_us,
                           .verb = LOOK,
                           .cost = 1,
                           .node = node,
                           .ticket = ticket};

    return do_step(&s);
}

static struct answer hold_as(int node, int64_t ticket, int64_t now_us, int64_t until_us)
{
    const struct step s = {.rule = "gcra:10/1000000/5",
                           .now_us = now_us,
                           .verb = HOLD,
                           .cost = 1,
                           .a = until_us,
                           .node = node,
                           .ticket = ticket};

    return do_step(&s);
}

TEST_WITH(test_a_hold_is_against_younger_tickets, client_flush, NULL)
{
    const int64_t until_us = BEGIN_US + 100000;

    assert_int_equal(hold_as(1, 50, BEGIN_US, until_us).k, 1);
    assert_int_equal(look_as(1, 50, BEGIN_US).start_us, BEGIN_US);
    assert_int_equal(look_as(2, 51, BEGIN_US).start_us, until_us);
    assert_int_equal(look_as(2, 49, BEGIN_US).start_us, BEGIN_US);
    assert_int_equal(look_as(2, 51, BEGIN_US).remaining, 0);
    assert_int_equal(look_as(2, 51, until_us).start_us, until_us);
    /* A younger one does not take it over, an older one does. */
    assert_int_equal(hold_as(2, 51, BEGIN_US, until_us + 1).k, 0);
    assert_int_equal(hold_as(3, 49, BEGIN_US, until_us + 1).k, 1);
    assert_int_equal(look_as(1, 50, BEGIN_US).start_us, until_us + 1);
    /* The clock steps back: so does the hold. */
    assert_int_equal(look_as(1, 50, BEGIN_US - 1000).start_us, until_us + 1 - 1000);
    /* A take ends it. */
    assert_int_equal(take(until_us + 1, "gcra:10/1000000/5", 1, 1).k, 1);
    assert_int_equal(look_as(9, 99, BEGIN_US).start_us, BEGIN_US);
}

/* ---- Concurrency */

static void release(const char *name)
{
    struct args a = {0};

    library_begin(&a, "release", PREFIX, BEGIN_US);
    args_add(&a, name);
    freeReplyObject(ask(&a));
}

TEST_WITH(test_concurrency_counts_jobs, client_flush, NULL)
{
    assert_int_equal(take(BEGIN_US, "concurrency:3", 100, 2).k, 2);
    assert_int_equal(take(BEGIN_US, "concurrency:3", 100, 2).k, 1);
    assert_int_equal(take(BEGIN_US, "concurrency:3", 1, 2).start_us, GATE_NEVER);
    release("g#0");
    assert_int_equal(take(BEGIN_US, "concurrency:3", 1, 2).k, 1);
    for (int i = 0; i < 5; i++)
        release("g#0");
    release("other#0");
    assert_int_equal(take(BEGIN_US, "concurrency:3", 1, 9).k, 3);
}

/* What is in flight stays so while the rule is another one for a time. */
TEST_WITH(test_in_flight_outlives_other_rules, client_flush, NULL)
{
    assert_int_equal(take(BEGIN_US, "concurrency:3", 1, 3).k, 3);
    assert_int_equal(take(BEGIN_US, "concurrency:2", 1, 3).start_us, GATE_NEVER);
    assert_int_equal(take(BEGIN_US, "gcra:10/1000000/5", 1, 9).k, 2);
    release("g#0");
    assert_int_equal(take(BEGIN_US, "sliding-log:9/1000000", 1, 9).k, 4);
    assert_int_equal(take(BEGIN_US, "concurrency:3", 1, 9).k, 1);
    release("g#0");
    release("g#0");
    release("g#0");
    assert_int_equal(take(BEGIN_US, "concurrency:3", 1, 9).k, 3);
}

TEST_WITH(test_a_gate_is_read_and_written_once_in_a_call, client_flush, NULL)
{
    struct args a = {0};
    redisReply *reply;
    char *answer;

    server_do(&server, "CONFIG", "RESETSTAT");
    library_begin(&a, "twice", PREFIX, BEGIN_US);
    args_add(&a, "concurrency:5");
    reply = ask(&a);
    assert_string_equal(reply->str, "4");
    freeReplyObject(reply);
    answer = server_ask(&server, "INFO", "commandstats", NULL);
    assert_non_null(strstr(answer, "cmdstat_get:calls=1,"));
    assert_non_null(strstr(answer, "cmdstat_set:calls=1,"));
    free(answer);
}

/* A gate that was read under the rule of its state counts by its own from then on. */
TEST_WITH(test_a_gate_that_was_released_counts_by_its_rule, client_flush, NULL)
{
    struct args a = {0};
    redisReply *reply;

    set_state("1795000000000000 0 - - gcra:5/60000000/5 1795000000000000 0 ~1");
    library_begin(&a, "released", PREFIX, BEGIN_US);
    args_add(&a, "gcra:5/60000000/5,of=jobs");
    reply = ask(&a);
    assert_string_equal(reply->str, "4");
    freeReplyObject(reply);
}

/* ---- Rates that adapt */

TEST_WITH(test_throttled_halves_the_rate_and_it_grows_again, client_flush, NULL)
{
    const char *rule = "gcra:100/1000000/10,adapt=300..1000";

    assert_int_equal(take(BEGIN_US, rule, 1, 10).k, 10);
    assert_int_equal(act(THROTTLED, BEGIN_US, rule, 0).resets_us,
                     BEGIN_US + 200000); /* ten slots, each twice as long */
    act(PAUSE, BEGIN_US, rule, BEGIN_US + 500000);
    assert_int_equal(act(THROTTLED, BEGIN_US, rule, 0).resets_us,
                     BEGIN_US + 500000); /* it is paused for that already */
    assert_int_equal(take(BEGIN_US + 500000, rule, 1, 10).k, 10);
    assert_int_equal(take(BEGIN_US + 500000, rule, 1, 10).start_us, BEGIN_US + 520000);
    act(THROTTLED, BEGIN_US + 500000, rule, 0);
    assert_int_equal(take(BEGIN_US + 500000, rule, 1, 10).start_us, BEGIN_US + 533334); /* not below 0.3 */
    /* After 70 s and not before it is whole again; half a minute on it is at 0.6. */
    assert_int_equal(take(BEGIN_US + 30500000, rule, 10, 1).k, 1);
    assert_int_equal(take(BEGIN_US + 30500000, rule, 1, 1).start_us, BEGIN_US + 30516667);
    assert_int_equal(take(BEGIN_US + 70499999, rule, 10, 1).k, 1);
    assert_int_equal(take(BEGIN_US + 70499999, rule, 1, 1).start_us, BEGIN_US + 70499999 + 10102);
    assert_int_equal(take(BEGIN_US + 90500000, rule, 10, 1).k, 1);
    assert_int_equal(take(BEGIN_US + 90500000, rule, 1, 1).start_us, BEGIN_US + 90510000);
}

TEST_WITH(test_a_window_adapts_by_its_count, client_flush, NULL)
{
    const char *rule = "fixed-window:100/3600000000/0,adapt=500..1000";
    const int64_t hour_us = BEGIN_US - BEGIN_US % INT64_C(3600000000);

    assert_int_equal(take(hour_us, rule, 1, 40).k, 40);
    assert_int_equal(act(THROTTLED, hour_us, rule, 0).burst, 50);
    assert_int_equal(take(hour_us, rule, 1, 100).k, 10);
    assert_int_equal(take(hour_us, rule, 1, 100).start_us, hour_us + INT64_C(3600000000));
    /* A cost between this count and the whole one waits for the rate to grow: by a hundredth a minute. */
    assert_int_equal(take(hour_us + 1, rule, 51, 1).start_us, hour_us + 60000000);
    assert_int_equal(take(hour_us + 1, rule, 101, 1).start_us, GATE_NEVER);
    assert_int_equal(take(hour_us + 60000000, rule, 1, 100).k, 1);
    /* What was used stays used, however the rate moves. */
    assert_int_equal(take(hour_us + INT64_C(3540000000), rule, 1, 100).k, 49);
}

TEST_WITH(test_a_rate_below_one_is_where_it_begins, client_flush, NULL)
{
    const char *rule = "gcra:100/1000000/10,adapt=100..500";

    assert_int_equal(take(BEGIN_US, rule, 1, 10).k, 10);
    assert_int_equal(take(BEGIN_US, rule, 1, 1).start_us, BEGIN_US + 20000);
    act(THROTTLED, BEGIN_US, rule, 0);
    assert_int_equal(take(BEGIN_US, rule, 1, 1).start_us, BEGIN_US + 40000);
}

/* What was in use stays so at the rate that the new rule has now, not at that which it may reach. */
TEST_WITH(test_a_rate_below_one_takes_over_what_is_in_use, client_flush, NULL)
{
    const char *rule = "gcra:100/1000000/10,adapt=100..500";

    assert_int_equal(take(BEGIN_US, "gcra:200/1000000/10", 1, 10).k, 10);
    assert_int_equal(take(BEGIN_US, rule, 1, 10).k, 0);
    assert_int_equal(take(BEGIN_US, rule, 1, 10).start_us, BEGIN_US + 20000);
}

/* ---- Another rule */

/* Takes all that starts within 5 ms; returns how much of it is in the second after BEGIN_US. */
static int64_t take_all(int64_t now_us, const char *rule)
{
    int64_t taken = 0;

    for (;;) {
        struct answer a = take(now_us, rule, 1, 100);

        if (a.k == 0)
            return taken;
        if (a.start_us >= BEGIN_US && a.start_us < BEGIN_US + 1000000)
            taken += a.k;
    }
}

/* A rule that changes while slots are granted ahead: they count from when they start, by the old rule and by
 * the new one. */
TEST_WITH(test_what_was_granted_ahead_stays_where_it_starts, client_flush, NULL)
{
    static const struct {
        const char *before, *after;
        int64_t ahead, most; /* granted ahead; that start in the second */
    } cases[] = {
        {"fixed-window:10/1000000/0", "fixed-window:12/1000000/0", 10, 12},
        {"fixed-window:10/1000000/0", "fixed-window:10/1000000/500000", 10, 20},
        {"fixed-window:10/1000000/0", "sliding-log:12/1000000", 10, 12},
        {"fixed-window:10/1000000/0", "sliding-window:12/1000000", 10, 12},
        {"fixed-window:10/1000000/0", "gcra:10/1000000/10", 10, 19},
        {"fixed-window:10/1000000/0", "fixed-window:5/1000000/0", 10, 10},
        {"sliding-log:10/1000000", "sliding-log:12/1000000", 10, 12},
        {"sliding-log:10/1000000", "fixed-window:12/1000000/0", 10, 12},
        {"sliding-log:10/1000000", "token-bucket:10/1000000/1", 10, 19},
        {"sliding-window:1000/1000000", "sliding-window:1200/1000000", 3, 1200},
        {"gcra:10/1000000/10", "fixed-window:12/1000000/0", 1, 12},
        {"gcra:1000/1000000/1", "gcra:1001/1000000/1", 4, 1001},
        {"gcra:1000/1000000/1", "fixed-window:10/1000000/0", 4, 13},
        {"token-bucket:1000/1000000/1", "sliding-log:10/1000000", 4, 13},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ahead, all;

        server_do(&server, "DEL", GATE);
        take_all(BEGIN_US - 1000000, cases[i].before);
        ahead = take_all(BEGIN_US - 2000, cases[i].before);
        all = ahead + take_all(BEGIN_US - 1900, cases[i].after);
        for (int64_t at_us = BEGIN_US - 1500; at_us < BEGIN_US + 1000000; at_us += 500)
            all += take_all(at_us, cases[i].after);
        if (ahead != cases[i].ahead || all > cases[i].most)
            fail_msg("%s to %s: %" PRId64 " ahead, %" PRId64 " in a second", cases[i].before, cases[i].after,
                     ahead, all);
    }
}

/* So do they in the model that judges test_throttle's worlds. */
TEST_WITH(test_the_naive_model_keeps_what_was_granted_ahead, client_flush, NULL)
{
    static const char *const rules[][2] = {
        {"fixed-window:10/1000000/0", "fixed-window:12/1000000/0"},
        {"sliding-log:10/1000000", "sliding-log:12/1000000"},
        {"sliding-window:10/1000000", "fixed-window:12/1000000/0"},
        {"gcra:10/1000000/10", "sliding-log:12/1000000"},
    };

    for (size_t i = 0; i < COUNT(rules); i++) {
        struct naive_rule after;
        struct naive model;

        assert_non_null(naive_rule_read(rules[i][1], &after));
        naive_begin(&model, rules[i][0]);
        assert_null(naive_start(&model, BEGIN_US, 10, 0));
        naive_change(&model, &after, BEGIN_US - 2000, 0);
        assert_int_equal(naive_opens(&model, BEGIN_US - 2000, 2), BEGIN_US);
        assert_null(naive_start(&model, BEGIN_US, 2, 1));
        assert_non_null(naive_start(&model, BEGIN_US, 1, 2));
        naive_free(&model);
    }
}

/* What is in use is counted at the last start, and none of it is lost by counting. */
TEST_WITH(test_a_change_wastes_nothing, client_flush, NULL)
{
    assert_int_equal(take_all(BEGIN_US - 1000, "gcra:1000/1000000/1"), 5);
    assert_int_equal(act(LOOK, BEGIN_US - 1000, "gcra:500/1000000/1", 0).start_us, BEGIN_US + 6000);
    assert_int_equal(act(LOOK, BEGIN_US - 1000, "gcra:2000/1000000/1", 0).start_us, BEGIN_US + 4500);
    assert_int_equal(act(LOOK, BEGIN_US - 1000, "gcra:1000/1000000/10", 0).start_us, BEGIN_US - 1000);
    server_do(&server, "DEL", GATE);
    take_all(BEGIN_US - 1000000, "sliding-log:10/1000000");
    assert_int_equal(take_all(BEGIN_US - 2000, "sliding-log:10/1000000"), 10);
    assert_int_equal(take_all(BEGIN_US - 1900, "sliding-log:12/1000000"), 2);
}

TESTS(setup, client_stop)
