/* Callers who wait in line for their slots: take_wait.lua under virtual time, hundreds of them at a gate;
 * some leave, some never come; jobs at the same gate; and the command. */
#include "tests/scene.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>

#include "core/client/client.h"
#include "core/client/reply.h"
#include "core/script/script.h"
#include "tests/naive.h"
#include "tests/random.h"
#include "tests/stage.h"
#include "throttle/take/take.h"

#define MOST 400
#define LEAD_EARLY_US 1000 /* as take_in_line asks before its slot */
#define NEVER INT64_MAX

struct caller {
    struct take_wait wait;
    int64_t at_us;   /* when it asks next; NEVER: it has ended */
    int64_t quit_us; /* when it leaves, or dies */
    int64_t start_us, come_us;
    int calls;
    int64_t late_us; /* it asks so long after its time */
    bool dies, started;
};

static struct caller callers[MOST];
static int caller_count;
static uint64_t seed;
static int64_t starts[MOST]; /* in the order in which they were granted */
static struct caller *granted[MOST];
static int start_count;

static void add_caller(const char *limit, int64_t cost, int64_t at_us)
{
    struct caller *c = &callers[caller_count++];
    const char *why;

    assert_true(caller_count <= MOST);
    *c = (struct caller){.at_us = at_us, .quit_us = NEVER};
    assert_int_equal(take_make(&c->wait.q, limit, strlen(limit), NULL, cost, NULL, &why), 0);
    snprintf(c->wait.tag, sizeof c->wait.tag, "c%d", caller_count);
}

static int send_wait(struct caller *c, int64_t most_us, bool leave)
{
    struct args a = {0};

    take_wait_request(&a, PREFIX, turns.now_us, &c->wait, most_us, leave);
    return turns_send(&a);
}

static struct weir_take ask_place(struct caller *c, int64_t most_us)
{
    struct weir_take take;

    must(send_wait(c, most_us, false));
    must(take_wait_reply(turns.reply, &c->wait, &take, &turns.error));
    assert_int_equal(c->wait.now_us, turns.now_us);
    return take;
}

static int64_t us_of(double seconds)
{
    return (int64_t)(seconds * 1e6 + 0.5);
}

static void ask_again(struct caller *c)
{
    struct weir_take take = ask_place(c, -1);

    if (c->calls++ == 0)
        c->come_us = turns.now_us;
    c->at_us = turns.now_us + us_of(take.retry_after_s) - (take.allowed ? 0 : LEAD_EARLY_US - c->late_us);
    if (!take.allowed) {
        assert_true(*c->wait.place && us_of(take.retry_after_s) > 0);
        return;
    }
    c->start_us = c->at_us;
    c->at_us = NEVER;
    c->started = true;
    granted[start_count] = c;
    starts[start_count++] = c->start_us;
}

static void quit(struct caller *c)
{
    c->at_us = c->quit_us = NEVER;
    if (!c->dies)
        must(send_wait(c, -1, true));
}

/* What the bell of a caller says next. */
static bool hear_bell(struct caller *c)
{
    char *told = redis_text("LPOP", c->wait.bell);
    bool heard = told && *told && strcmp(told, "(nil)") != 0;

    if (heard)
        c->at_us = strtoll(told, NULL, 10) - LEAD_EARLY_US;
    free(told);
    return heard;
}

/* Who is called by its bell comes sooner; of several times the last one counts. */
static void hear_bells(void)
{
    for (int i = 0; i < caller_count; i++)
        while (callers[i].at_us != NEVER && callers[i].calls > 0 && hear_bell(&callers[i]))
            ;
}

static struct caller *next_caller(void)
{
    struct caller *next = NULL;

    for (int i = 0; i < caller_count; i++) {
        struct caller *c = &callers[i];
        int64_t at_us = c->at_us < c->quit_us ? c->at_us : c->quit_us;

        if (c->at_us != NEVER &&
            (!next || at_us < (next->at_us < next->quit_us ? next->at_us : next->quit_us)))
            next = c;
    }
    return next;
}

/* Until all have started or left. */
static void run_line(void)
{
    struct caller *c;

    start_count = 0;
    for (int steps = 0; (c = next_caller()); steps++) {
        int64_t at_us = c->at_us < c->quit_us ? c->at_us : c->quit_us;

        assert_true(steps < 20 * MOST);
        turns.now_us = at_us > turns.now_us ? at_us : turns.now_us;
        if (c->quit_us <= c->at_us && c->calls > 0)
            quit(c);
        else
            ask_again(c);
        if (redis_number("EXISTS", PREFIX "due:m") && redis_number("DBSIZE") > 5)
            hear_bells();
    }
}

static int calls_in_all(void)
{
    int calls = 0;

    for (int i = 0; i < caller_count; i++)
        calls += callers[i].calls;
    return calls;
}

/* No window of a period has more slots than the rule's worst case; of callers that cost one. */
static void expect_rate(int64_t period_us, int most)
{
    for (int i = 0; i + most < start_count; i++)
        fail_if(starts[i + most] - starts[i] < period_us, "seed %" PRIu64 ": %d starts within %" PRId64 " us",
                seed, most + 1, starts[i + most] - starts[i]);
}

static int begin_line(void **state)
{
    int rc = scene_begin(state);

    caller_count = 0;
    seed = random_seed();
    return rc;
}

static void limit_m(const char *rules)
{
    redis_do("HSET", PREFIX "limits", "m", rules);
}

/* ---- */

TEST_WITH(test_two_calls_for_a_start_in_the_order_of_coming, begin_line, NULL)
{
    uint64_t random;

    random = seed;
    limit_m("gcra:10/1000000/1");
    for (int i = 0; i < 200; i++)
        add_caller("m", 1, BEGIN_US + i * 4000 + random_in(&random, 0, 3999));
    run_line();
    assert_int_equal(start_count, 200);
    for (int i = 0; i < 200; i++) {
        assert_true(callers[i].calls <= 2);
        assert_int_equal(callers[i].start_us - callers[0].start_us, i * INT64_C(100000));
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "line:m", PREFIX "due:m"), 0);
}

/* Other algorithms and bursts: no more than the rule allows, and hardly more calls. */
TEST_WITH(test_other_rules, begin_line, NULL)
{
    static const struct {
        const char *rules;
        int64_t period_us;
        int most;
    } cases[] = {
        {"gcra:20/1000000/5", 1000000, 24},         {"token-bucket:100/1000000/10", 1000000, 109},
        {"sliding-log:20/1000000", 1000000, 20},    {"sliding-window:20/1000000", 1000000, 39},
        {"fixed-window:20/1000000/0", 1000000, 40}, {"gcra:20/1000000/5 sliding-log:30/2000000", 2000000, 30},
        {"gcra:1000/1000000/1", 1000000, 1000},
    };

    for (size_t n = 0; n < COUNT(cases); n++) {
        uint64_t random = seed;

        redis_do("FLUSHALL");
        caller_count = 0;
        limit_m(cases[n].rules);
        for (int i = 0; i < 100; i++)
            add_caller("m", 1, turns.now_us + i * 4000 + random_in(&random, 0, 3999));
        run_line();
        assert_int_equal(start_count, 100);
        expect_rate(cases[n].period_us, cases[n].most);
        fail_if(calls_in_all() > 210, "seed %" PRIu64 ": %s: %d calls", seed, cases[n].rules, calls_in_all());
        for (int i = 1; i < 100; i++)
            assert_true(callers[i].start_us >= callers[i - 1].start_us);
    }
}

TEST_WITH(test_callers_of_different_costs, begin_line, NULL)
{
    uint64_t random = seed;
    int64_t slots = 0;

    limit_m("gcra:100/1000000/5");
    for (int i = 0; i < 100; i++)
        add_caller("m", random_in(&random, 1, 5), BEGIN_US + i * 1000);
    run_line();
    assert_int_equal(start_count, 100);
    assert_true(calls_in_all() <= 200);
    for (int i = 1; i < 100; i++) {
        slots += callers[i].wait.q.cost;
        assert_true(callers[i].start_us >= callers[i - 1].start_us);
    }
    assert_true(callers[99].start_us - callers[0].start_us <= slots * 10000);
}

/* The slots of those who leave are taken by those behind them: not one is lost. */
TEST_WITH(test_no_slot_is_lost_when_some_leave, begin_line, NULL)
{
    uint64_t random = seed;
    int left = 0;

    limit_m("gcra:10/1000000/1");
    for (int i = 0; i < 100; i++) {
        add_caller("m", 1, BEGIN_US + i * 1000);
        if (i % 3 == 1)
            callers[i].quit_us = BEGIN_US + 500000 + random_in(&random, 0, 6000000);
    }
    run_line();
    for (int i = 0; i < 100; i++)
        left += !callers[i].started;
    assert_in_range(left, 10, 33);
    assert_int_equal(start_count, 100 - left);
    for (int i = 1; i < start_count; i++)
        if (starts[i] - starts[i - 1] != 100000)
            fail_msg("seed %" PRIu64 ": start %d comes %" PRId64 " us after the one before", seed, i,
                     starts[i] - starts[i - 1]);
    for (int i = 0; i < 100; i++)
        assert_true(callers[i].calls <= 2);
}

/* One that dies wastes its own slot at most. */
TEST_WITH(test_who_dies_wastes_one_slot, begin_line, NULL)
{
    limit_m("gcra:10/1000000/1");
    for (int i = 0; i < 60; i++) {
        add_caller("m", 1, BEGIN_US + i * 1000);
        if (i % 6 == 5) {
            callers[i].quit_us = BEGIN_US + 400000;
            callers[i].dies = true;
        }
    }
    run_line();
    assert_int_equal(start_count, 50);
    assert_true(starts[49] - starts[0] <= 59 * INT64_C(100000));
    for (int i = 1; i < start_count; i++)
        assert_true(starts[i] - starts[i - 1] <= 200000);
}

/* What random callers were granted is what the rules allow, counted start by start; all who neither left nor
 * died have started. */
static void random_line(const char *rules, uint64_t *random)
{
    struct naive naive;
    int count = (int)random_in(random, 2, 60);

    redis_do("FLUSHALL");
    caller_count = 0;
    limit_m(rules);
    naive_begin(&naive, rules);
    turns.now_us = BEGIN_US;
    for (int i = 0; i < count; i++) {
        add_caller("m", random_in(random, 1, random_in(random, 0, 2) ? 1 : 3),
                   BEGIN_US + random_in(random, 0, 3000000));
        if (random_in(random, 0, 4) == 0)
            callers[i].quit_us = callers[i].at_us + random_in(random, 1, 3000000);
        callers[i].dies = random_in(random, 0, 1);
        callers[i].late_us = random_in(random, 0, 3) ? 0 : random_in(random, 0, 40000);
    }
    run_line();
    for (int i = 0; i < start_count; i++) {
        const char *wrong = naive_start(&naive, starts[i], granted[i]->wait.q.cost, i);

        fail_if(wrong, "seed %" PRIu64 ": %s: start %d: %s", seed, rules, i, wrong);
    }
    for (int i = 0; i < count; i++)
        if (!callers[i].started && callers[i].quit_us == NEVER && callers[i].at_us != NEVER)
            fail_msg("seed %" PRIu64 ": %s: caller %d has not started", seed, rules, i);
    naive_free(&naive);
}

TEST_WITH(test_random_lines_keep_the_rate, begin_line, NULL)
{
    static const char *const rules[] = {"gcra:10/1000000/3",         "gcra:7/1000000/20",
                                        "token-bucket:30/1000000/4", "sliding-log:8/1000000",
                                        "sliding-window:9/1000000",  "fixed-window:6/1000000/0",
                                        "gcra:1000/1000000/3"};
    uint64_t random = seed;

    for (int i = 0; i < 35; i++)
        random_line(rules[i % (int)COUNT(rules)], &random);
}

/* A clock that is set back keeps nobody waiting behind one who has died. */
TEST_WITH(test_a_clock_that_goes_back, begin_line, NULL)
{
    limit_m("gcra:10/1000000/1");
    for (int i = 0; i < 10; i++)
        add_caller("m", 1, BEGIN_US);
    for (int i = 0; i < 10; i++)
        ask_place(&callers[i], -1);
    turns.now_us = BEGIN_US - 3600 * SECOND_US;
    for (int i = 2; i < 10; i++)
        callers[i].at_us = turns.now_us + i * 100000;
    callers[0].at_us = callers[1].at_us = NEVER;
    run_line();
    assert_int_equal(start_count, 8);
    assert_true(starts[7] <= BEGIN_US - 3600 * SECOND_US + 1200000);
}

/* Those who do not wait take no slot before them; who would wait for too long does not join. */
TEST_WITH(test_others_come_behind, begin_line, NULL)
{
    struct weir_take take;

    limit_m("gcra:1/1000000/1");
    for (int i = 0; i < 3; i++)
        add_caller("m", 1, BEGIN_US);
    assert_true(ask_place(&callers[0], -1).allowed);
    turns.now_us += 1000;
    take = ask_place(&callers[1], -1);
    assert_false(take.allowed);
    assert_int_equal(us_of(take.retry_after_s), 999000);
    take = ask_place(&callers[2], 1000000);
    assert_int_equal(us_of(take.retry_after_s), 1999000);
    assert_string_equal(callers[2].wait.place, "");
    turns.now_us += 999000;
    must(turns_script("take", (const char *[]){"0", "", "m", "", "1"}, 5));
    assert_int_equal(turns.reply->element[0]->integer, 0);
    assert_true(ask_place(&callers[1], -1).allowed);
    turns.now_us += 1000000;
    must(turns_script("take", (const char *[]){"0", "", "m", "", "1"}, 5));
    assert_int_equal(turns.reply->element[0]->integer, 1);
}

/* ---- Who sleeps through nothing */

/* Callers of a limit that comes open once an hour: the first has its slot, the others sleep for hours. */
static void sleep_for_hours(const char *rules, int count)
{
    must(turns_rate("m", rules));
    for (int i = 0; i < count; i++) {
        struct weir_take take;

        add_caller("m", 1, turns.now_us);
        take = ask_place(&callers[i], -1);
        assert_int_equal(take.allowed, i == 0);
        callers[i].calls = 1;
        callers[i].at_us = i == 0 ? NEVER : turns.now_us + us_of(take.retry_after_s) - LEAD_EARLY_US;
        turns.now_us += 1000;
    }
}

/* All who sleep hear of it, and start one by one, with a call each, as the new rule has it. */
static void expect_awake(int64_t first_us, int count, int64_t between_us)
{
    hear_bells();
    run_line();
    assert_int_equal(start_count, count);
    for (int i = 0; i < count; i++) {
        if (starts[i] > first_us + i * between_us)
            fail_msg("start %d comes %" PRId64 " us after the first", i, starts[i] - first_us);
        assert_ptr_equal(granted[i], &callers[i + 1]);
        assert_int_equal(granted[i]->calls, 2);
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "line:m", PREFIX "due:m", PREFIX "lines"), 0);
}

TEST_WITH(test_a_limit_that_is_raised_wakes_its_line, begin_line, NULL)
{
    sleep_for_hours("gcra:1/3600000000/1", 30);
    must(turns_rate("m", "gcra:10/1000000/1"));
    expect_awake(turns.now_us + 100000, 29, 100000); /* the slot of the first stays in use */
}

TEST_WITH(test_a_limit_that_is_resumed_wakes_its_line, begin_line, NULL)
{
    sleep_for_hours("gcra:10/1000000/1", 1);
    must(turns_pause("m", 3600 * SECOND_US));
    for (int i = 1; i < 6; i++) {
        add_caller("m", 1, turns.now_us);
        assert_true(ask_place(&callers[i], -1).retry_after_s > 3599);
        callers[i].calls = 1;
    }
    turns.now_us += SECOND_US;
    must(turns_pause("m", 0));
    expect_awake(turns.now_us, 5, 100000);
}

/* A provider has paused a key, for which no job waits: callers alone. */
TEST_WITH(test_a_limit_that_is_resumed_resumes_keys_with_lines, begin_line, NULL)
{
    start("w");
    must(turns_rate("slow", "gcra:10/1000000/1,by=key"));
    enqueue_with("slow", "j", KEY("a"));
    assert_int_equal(claim("w", 1, 0), 1);
    settle("w", SETTLE_THROTTLED, tokens[0], 3600 * SECOND_US, NULL);
    redis_do("DEL", LANE("slow") "a", PREFIX "ring:default/slow", PREFIX "sleep:default");
    add_caller("slow", 1, turns.now_us);
    strcpy(callers[0].wait.q.key, "a");
    assert_true(ask_place(&callers[0], -1).retry_after_s > 3599);
    must(turns_pause("slow", 0));
    assert_int_equal(redis_number("LLEN", callers[0].wait.bell), 1);
    turns.now_us += SECOND_US;
    must(turns_pause_key("slow", "a", 3600 * SECOND_US)); /* by hand: the limit does not resume it */
    assert_false(ask_place(&callers[0], -1).allowed);
    must(turns_pause("slow", 0));
    assert_false(ask_place(&callers[0], -1).allowed);
    must(turns_pause_key("slow", "a", 0));
    assert_true(ask_place(&callers[0], -1).allowed);
}

TEST_WITH(test_a_key_that_is_resumed_wakes_its_line_alone, begin_line, NULL)
{
    must(turns_rate("m", "gcra:10/1000000/1,by=k"));
    for (int i = 0; i < 2; i++) {
        add_caller("m", 1, turns.now_us);
        strcpy(callers[i].wait.q.key, i ? "b" : "a");
        must(turns_pause_key("m", i ? "b" : "a", -1));
        assert_true(ask_place(&callers[i], -1).retry_after_s > 3600);
        assert_true(*callers[i].wait.place);
    }
    must(turns_pause_key("m", "b", 0));
    assert_int_equal(redis_number("EXISTS", callers[0].wait.bell), 0);
    assert_int_equal(redis_number("LLEN", callers[1].wait.bell), 1);
    assert_true(ask_place(&callers[1], -1).allowed);
    expect_text("!m/a", "ZRANGE", PREFIX "lines", "0", "0");
}

/* Each is told at once that the limit is gone, or has keys now. */
TEST_WITH(test_a_limit_that_is_removed_wakes_its_line, begin_line, NULL)
{
    static const char *const rules[] = {"", "gcra:1/1000000/1,by=k"};

    for (size_t n = 0; n < COUNT(rules); n++) {
        caller_count = 0;
        redis_do("FLUSHALL");
        sleep_for_hours("gcra:1/3600000000/1", 4);
        must(turns_rate("m", rules[n]));
        hear_bells();
        for (int i = 1; i < 4; i++) {
            struct weir_take take;

            assert_int_equal(callers[i].at_us, turns.now_us - LEAD_EARLY_US);
            must(send_wait(&callers[i], -1, false));
            assert_int_equal(take_wait_reply(turns.reply, &callers[i].wait, &take, &turns.error),
                             n == 0 ? WEIR_ENOTFOUND : WEIR_EINPUT);
        }
    }
}

/* So is one whose cost is now more than the burst. */
TEST_WITH(test_who_can_never_start_any_more_is_told, begin_line, NULL)
{
    must(turns_rate("m", "gcra:2/3600000000/2"));
    for (int i = 0; i < 2; i++) {
        add_caller("m", 2, turns.now_us);
        ask_place(&callers[i], -1);
    }
    must(turns_rate("m", "gcra:2/3600000000/1"));
    assert_int_equal(redis_number("LLEN", callers[1].wait.bell), 1);
    assert_true(ask_place(&callers[1], -1).never);
    assert_int_equal(redis_number("EXISTS", PREFIX "lines"), 0);
}

/* Several limits are changed at once: all lines are looked at. */
TEST_WITH(test_every_line_is_woken, begin_line, NULL)
{
    sleep_for_hours("gcra:1/3600000000/1", 3);
    for (int i = 0; i < 4; i++)
        must(turns_rate(textf("l%d", i), "gcra:1/3600000000/1"));
    redis_do("DEL", STATE("m#0"));
    must(turns_use("t", "use", "", (const char *[]){"l0", "l1", "l2", "l3"}, 4));
    assert_int_equal(redis_number("EXISTS", callers[1].wait.bell), 0);
    must(turns_use("t", "unuse", "", (const char *[]){"l0", "l1", "l2", "l3"}, 4));
    expect_awake(turns.now_us, 2, 3600 * SECOND_US);
}

/* A job that cost less than it took leaves slots to those who wait. */
TEST_WITH(test_slots_that_a_job_gives_back_wake_the_line, begin_line, NULL)
{
    start("w");
    must(turns_rate("slow", "gcra:10/3600000000/10"));
    enqueue_with("slow", "j", "\"cost\":10");
    assert_int_equal(claim("w", 1, 0), 1);
    for (int i = 0; i < 2; i++) {
        add_caller("slow", 1, turns.now_us);
        assert_false(ask_place(&callers[i], -1).allowed);
    }
    must(turns_settle_cost("w", tokens[0], 2, &(int64_t){0}));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(redis_number("LLEN", callers[i].wait.bell), 1);
        assert_true(ask_place(&callers[i], -1).allowed);
    }
}

/* Nobody says that the rules are others, and the first in line is dead: who asks behind it finds out. */
TEST_WITH(test_who_stands_behind_a_sleeper_does_not_wait_for_it, begin_line, NULL)
{
    int64_t since_us;

    sleep_for_hours("gcra:1/3600000000/1", 10);
    for (int i = 1; i < 4; i++)
        callers[i].at_us = NEVER;
    limit_m("gcra:100/1000000/1");
    since_us = turns.now_us;
    add_caller("m", 1, turns.now_us);
    run_line();
    assert_int_equal(start_count, 7);
    assert_ptr_equal(granted[6], &callers[10]);
    fail_if(starts[6] > since_us + 200000, "the last comes after %" PRId64 " us", starts[6] - since_us);
}

enum { CHANGES = 6 };

/* One of the changes that wake a line, or let it sleep; the last one opens the limit. */
static void change_m(int n, uint64_t *random)
{
    static const char *const rules[] = {"gcra:1/3600000000/1", "gcra:2/1000000/1", "gcra:1/60000000/3",
                                        "fixed-window:3/1000000/0", "token-bucket:4/1000000/2"};
    uint64_t what = random_in(random, 0, 7);

    if (n == CHANGES - 1) {
        must(turns_rate("m", "gcra:10/1000000/1"));
        must(turns_pause("m", 0));
    } else if (what < COUNT(rules)) {
        must(turns_rate("m", rules[what]));
    } else {
        must(turns_pause("m", what == 5 ? 0 : 3600 * SECOND_US));
    }
    hear_bells();
}

/* Callers come, leave and die while their limit changes: all who are left have their slots in time as soon as it is open. */
static void change_at_random(uint64_t *random)
{
    int count = (int)random_in(random, 2, 40), changed = 0, gone = 0;
    int64_t change_us = BEGIN_US, open_us = BEGIN_US + 4 * SECOND_US;
    struct caller *c;

    redis_do("FLUSHALL");
    caller_count = start_count = 0;
    turns.now_us = BEGIN_US;
    must(turns_rate("m", "gcra:1/3600000000/1"));
    for (int i = 0; i < count; i++) {
        add_caller("m", 1, BEGIN_US + random_in(random, 0, 3 * SECOND_US));
        if (random_in(random, 0, 3) == 0)
            callers[i].quit_us = callers[i].at_us + random_in(random, 1, 3000000);
        callers[i].dies = random_in(random, 0, 1);
    }
    while ((c = next_caller()) || changed < CHANGES) {
        int64_t at_us = !c ? NEVER : c->at_us < c->quit_us ? c->at_us : c->quit_us;

        if (changed < CHANGES && change_us <= at_us) {
            turns.now_us = change_us > turns.now_us ? change_us : turns.now_us;
            change_m(changed++, random);
            change_us = changed < CHANGES - 1 ? change_us + random_in(random, 1, 700000) : open_us;
            continue;
        }
        turns.now_us = at_us > turns.now_us ? at_us : turns.now_us;
        if (c->quit_us <= c->at_us && c->calls > 0)
            quit(c);
        else
            ask_again(c);
        hear_bells();
    }
    for (int i = 0; i < count; i++) {
        gone += !callers[i].started;
        if (!callers[i].started && callers[i].quit_us == NEVER && callers[i].at_us != NEVER)
            fail_msg("seed %" PRIu64 ": caller %d has not started", seed, i);
    }
    fail_if(start_count > 0 && starts[start_count - 1] > open_us + (count + 2) * INT64_C(120000),
            "seed %" PRIu64 ": of %d, %d gone, the last starts %" PRId64 " us after the limit was opened",
            seed, count, gone, starts[start_count - 1] - open_us);
    assert_int_equal(redis_number("EXISTS", PREFIX "opened", PREFIX "at:m#*"), 0);
}

TEST_WITH(test_random_changes_keep_nobody, begin_line, NULL)
{
    uint64_t random = seed;

    for (int i = 0; i < 40; i++)
        change_at_random(&random);
}

/* Of very many each is told, some in each call. */
TEST_WITH(test_a_long_line_is_woken_in_pages, begin_line, NULL)
{
    must(turns_rate("m", "gcra:1/3600000000/1"));
    redis_do(
        "EVAL",
        "redis.call('ZADD', ARGV[1] .. 'lines', '0', '!m')\n"
        "for i = 1, 2000 do\n"
        "    local place = string.format('%d.1.t', 1794999999000000 + i)\n"
        "    redis.call('ZADD', ARGV[1] .. 'line:m', string.format('%d', 1794999999000000 + i), place)\n"
        "    redis.call('ZADD', ARGV[1] .. 'due:m', string.format('%d', 1795000000000000 + i * 3600000000), "
        "place)\n"
        "end\n"
        "return 0",
        "0", PREFIX);
    must(turns_rate("m", "gcra:10/1000000/1"));
    for (int i = 1; i <= 2000; i++) {
        const char *bell = textf(PREFIX "turn:%" PRId64 ".1.t", INT64_C(1794999999000000) + i);

        if (redis_number("LLEN", bell) != 1)
            fail_msg("place %d was told %d times", i, (int)redis_number("LLEN", bell));
    }
    assert_int_equal(redis_number("EXISTS", PREFIX "opened", PREFIX "at:m#*"), 0);
}

/* Lines whose callers died do not stay among the lines. */
TEST_WITH(test_dead_lines_are_forgotten, begin_line, NULL)
{
    must(turns_rate("m", "gcra:1/3600000000/1,by=k"));
    for (int i = 0; i < 100; i++) {
        add_caller("m", 1, turns.now_us);
        snprintf(callers[i].wait.q.key, sizeof callers[i].wait.q.key, "k%d", i);
        for (int k = 0; k < 2; k++) { /* the first of a key has its slot */
            callers[i].wait.place[0] = '\0';
            ask_place(&callers[i], -1);
        }
        if (i < 90)
            redis_do("DEL", textf(PREFIX "line:m/k%d", i));
    }
    assert_in_range(redis_number("ZCARD", PREFIX "lines"), 10, 60);
    must(turns_rate("m", "gcra:2/3600000000/1,by=k"));
    assert_int_equal(redis_number("ZCARD", PREFIX "lines"), 10);
}

/* ---- With jobs */

/* Jobs and callers at one gate: each has about half of the slots, and none is lost. */
TEST_WITH(test_jobs_and_callers_take_turns, begin_line, NULL)
{
    int64_t end_us = BEGIN_US + 8 * SECOND_US, look_us = BEGIN_US;
    int jobs = 0, taken = 0;

    start("w");
    must(turns_rate("slow", "gcra:10/1000000/1"));
    enqueue_many("slow", 100);
    for (int i = 0; i < 60; i++)
        add_caller("slow", 1, BEGIN_US + 200000 + i * 1000);
    start_count = 0;
    while (turns.now_us < end_us) {
        struct caller *c = next_caller();

        if (c && c->at_us <= look_us) {
            turns.now_us = c->at_us > turns.now_us ? c->at_us : turns.now_us;
            ask_again(c);
        } else {
            turns.now_us = look_us > turns.now_us ? look_us : turns.now_us;
            jobs += (int)claim("w", 10, 0);
            look_us = turns.claim.next_us > turns.now_us ? turns.claim.next_us : turns.now_us + 1000;
        }
    }
    for (int i = 0; i < 60; i++)
        taken += callers[i].started && callers[i].start_us < end_us;
    print_message("%d jobs and %d callers, %d calls\n", jobs, taken, calls_in_all());
    if (jobs < 30 || taken < 30 || jobs + taken < 76 || jobs + taken > 82)
        fail_msg("%d jobs, %d callers in 8 s of 10/s, %d calls", jobs, taken, calls_in_all());
    turns_check();
}

/* ---- What is wrong */

TEST_WITH(test_what_is_wrong, begin_line, NULL)
{
    static const char *const wrong[][8] = {
        {"stay", "", "m", "", "1", "", "t", "-1"},      {"wait", "1/s", "m", "", "1", "", "t", "-1"},
        {"wait", "", "a b", "", "1", "", "t", "-1"},    {"wait", "", "m", "a b", "1", "", "t", "-1"},
        {"wait", "", "m", "", "0", "", "t", "-1"},      {"wait", "", "m", "", "1", "x", "t", "-1"},
        {"wait", "", "m", "", "1", "5.2.t", "t", "-1"}, {"wait", "", "m", "", "1", "5.1.u", "t", "-1"},
        {"wait", "", "m", "", "1", "", "", "-1"},       {"wait", "", "m", "", "1", "", "t", "-2"},
    };
    struct weir_take take;
    char *before;

    limit_m("gcra:1/1000000/1");
    add_caller("m", 2, BEGIN_US);
    add_caller("none", 1, BEGIN_US);
    add_caller("m", 1, BEGIN_US);
    add_caller("m", 1, BEGIN_US);
    before = turns_digest();
    for (size_t i = 0; i < COUNT(wrong); i++)
        fail_if(turns_script("take_wait", wrong[i], 8) == 0, "case %zu was not refused", i);
    take = ask_place(&callers[0], -1);
    assert_true(take.never && !*callers[0].wait.place);
    must(send_wait(&callers[1], -1, false));
    assert_int_equal(take_wait_reply(turns.reply, &callers[1].wait, &take, &turns.error), WEIR_ENOTFOUND);
    turns_unchanged(before);
    assert_true(ask_place(&callers[2], -1).allowed);
    redis_do("SET", PREFIX "due:m", "x");
    must(send_wait(&callers[3], -1, false));
    assert_int_equal(take_wait_reply(turns.reply, &callers[3].wait, &take, &turns.error), WEIR_ECONFIG);
}

/* A line of a thousand: one call walks five hundred of them. */
TEST_WITH(test_a_long_line_is_bounded, begin_line, NULL)
{
    int64_t begun_us, took_us, best_us = INT64_MAX;

    limit_m("gcra:1/1000000/1");
    redis_do(
        "EVAL",
        "for i = 1, 5000 do\n"
        "    local place = string.format('%d.1.t', 1794999999000000 + i)\n"
        "    redis.call('ZADD', ARGV[1] .. 'line:m', string.format('%d', 1794999999000000 + i), place)\n"
        "    redis.call('ZADD', ARGV[1] .. 'due:m', string.format('%d', 1795000000000000 + i * 1000000), "
        "place)\n"
        "end\n"
        "return 0",
        "0", PREFIX);
    add_caller("m", 1, BEGIN_US);
    for (int tries = 0; tries < 20 && best_us > 100000; tries++) {
        begun_us = clock_mono_us();
        assert_int_equal(us_of(ask_place(&callers[0], -1).retry_after_s), 500 * SECOND_US);
        took_us = clock_mono_us() - begun_us;
        best_us = took_us < best_us ? took_us : best_us;
    }
    assert_in_range(best_us, 0, 100000);
}

/* ---- The command */

static pid_t start_waiter(const char *name)
{
    const char *const words[] = {built("weir"), "take", "--wait", "m", "--redis", turns.server.url, NULL};

    return program_start(turns.server.folder, name, words);
}

static bool line_is(int length)
{
    return redis_number("ZCARD", PREFIX "line:m") == length;
}

TEST_WITH(test_the_command_leaves_its_place, begin_line, NULL)
{
    int64_t before;
    pid_t pids[4];

    limit_m("gcra:1/1000000/1");
    pids[0] = start_waiter("a");
    assert_int_equal(program_end(pids[0]), 0);
    before = count_calls();
    for (int i = 1; i < 4; i++) {
        pids[i] = start_waiter(textf("w%d", i));
        await(line_is(i));
    }
    kill(pids[1], SIGTERM);
    assert_int_equal(program_end(pids[1]), 1000 + SIGTERM);
    assert_true(line_is(2));
    assert_int_equal(program_end(pids[2]), 0);
    await(line_is(1) || line_is(0));
    assert_int_equal(program_end(pids[3]), 0);
    assert_int_equal(redis_number("EXISTS", PREFIX "line:m", PREFIX "due:m"), 0);
    assert_in_range(count_calls() - before, 6, 10); /* a machine that is busy may be late once */
}

/* A client of the library, in a thread: it waits for a slot of m. */
static void *wait_in_library(void *arg)
{
    struct weir *w = arg;
    struct weir_take take;
    int status = weir_take_wait(w, "m", NULL, 0, 0, -1, &take);

    return status == 0 && take.allowed && take.retry_after_s == -1 ? arg : NULL;
}

/* Commands and the library hear that their limit was changed: they would sleep for an hour. */
TEST_WITH(test_all_who_wait_hear_of_a_change, begin_line, NULL)
{
    struct weir *w = weir_new(turns.server.url, NULL), *waiter = weir_new(turns.server.url, NULL);
    struct weir_take take;
    pthread_t thread;
    void *allowed;
    pid_t pid;

    assert_true(w && waiter);
    assert_int_equal(weir_rate_set(w, "m", "1/1h"), 0);
    assert_int_equal(weir_take_wait(w, "m", NULL, 0, 0, 60, &take), 0);
    assert_true(take.allowed);
    assert_int_equal(weir_take_wait(w, "m", NULL, 0, 0, 60, &take), 0);
    assert_false(take.allowed); /* at once */
    assert_true(take.retry_after_s > 3000);
    assert_int_equal(weir_take_wait(w, "m", NULL, 0, WEIR_TAKE_PEEK, 60, &take), WEIR_EUSAGE);
    assert_int_equal(weir_take_wait(w, "a b", NULL, 0, 0, 60, &take), WEIR_EINPUT);
    pid = start_waiter("a");
    await(line_is(1));
    assert_int_equal(pthread_create(&thread, NULL, wait_in_library, waiter), 0);
    await(line_is(2));
    assert_int_equal(weir_rate_set(w, "m", "100/s"), 0);
    assert_int_equal(program_end(pid), 0);
    assert_int_equal(pthread_join(thread, &allowed), 0);
    assert_non_null(allowed);
    weir_free(waiter);
    weir_free(w);
}

TESTS(turns_start, turns_stop)
