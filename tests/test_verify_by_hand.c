/* verify: traces written by hand, a few lines each; rules that change and true costs, which accuse nobody. */
#include <inttypes.h>

#include "tests/random_rule.h"
#include "tests/test.h"
#include "tests/traces.h"
#include "throttle/gate.h"

static uint64_t seed;

/* ---- Traces by hand. A start: slot in seconds, members, limits. */

#define START(slot, members, limits)                                                                         \
    "{\"slot\":" #slot "000000,\"start\":" #slot "000000,\"type\":\"mail\"," members "\"limits\":\"" limits  \
    "\"}\n"
#define ID(id) "\"id\":\"" #id "\","
#define KEY(key) "\"key\":\"" #key "\","
#define AHEAD(us) "\"ahead\":" #us ","
#define COST(cost) "\"cost\":" #cost ","
#define END(at, name) "{\"end\":" #at "000000,\"type\":\"mail\",\"id\":\"" #name "\"}\n"
#define SPENT(n, name) "{\"spent\":" #n ",\"slot\":1,\"type\":\"mail\",\"id\":\"" #name "\"}\n"
#define BACK(slot, name)                                                                                     \
    "{\"back\":" #slot "000500,\"slot\":" #slot "000000,\"type\":\"mail\",\"id\":\"" #name                   \
    "\",\"cost\":1,\"why\":\"no_handler\"}\n"
#define OPENED "{\"opened\":1000000}\n"
#define BY(by) "\"by\":\"" #by "\","
#define END_BY(at, name, by)                                                                                 \
    "{\"end\":" #at "000000,\"type\":\"mail\",\"id\":\"" #name "\",\"by\":\"" #by "\"}\n"
#define LAPSED_BY(at, by) "{\"lapsed\":" #at "000000,\"by\":\"" #by "\"}\n"
#define OPENED_BY(by) "{\"opened\":1000000,\"by\":\"" #by "\"}\n"

#define TWO "a=gcra:1/10000000/1|b=fixed-window:2/100000000/0"
#define KEYED "a=gcra:1/10000000/1,by=key sliding-log:3/100000000"
#define BY_HAND_MAX 256

static const struct by_hand {
    const char *name;
    const char *text;
    const char *finds; /* "line seconds limit#index[/key]" of each, joined by "; " */
} by_hand[] = {
    {"all gates are judged", START(200, "", TWO) START(205, "", TWO) START(220, "", TWO) START(230, "", TWO),
     "2 5 a#0; 3 80 b#0; 4 70 b#0"},
    {"what a gate refused, another may count", START(200, "", TWO) START(209, "", TWO) START(210, "", TWO),
     "2 1 a#0; 3 90 b#0"},
    {"lines as nobody writes them",
     "{ \"limits\": \"a=gcra:1\\u002f10000000/1\", \"type\": \"mail\", \"more\": [1, {}], \"cost\": 1,"
     " \"slot\": 100000000, \"start\": 100000000 }\n" START(109, "", "a=gcra:1/10000000/1"),
     "2 1 a#0"},
    {"what came back was no start",
     START(100, ID(1), TWO) BACK(100, 1) START(101, ID(1), TWO) START(102, ID(2), TWO) BACK(102, 2)
         START(111, ID(2), TWO),
     ""},
    {"a slot that came back is its own only",
     START(100, ID(1), "a=gcra:1/10000000/1") BACK(99, 1) BACK(100, 2)
         START(101, ID(2), "a=gcra:1/10000000/1"),
     "4 9 a#0"},
    {"and not one of a job that has ended",
     START(100, ID(1), "a=gcra:1/10000000/1") END(101, 1) BACK(100, 1)
         START(102, ID(2), "a=gcra:1/10000000/1"),
     "4 8 a#0"},
    {"what came back is not in flight",
     START(100, ID(1), "a=concurrency:1") BACK(100, 1) START(101, ID(2), "a=concurrency:1") END(102, 2), ""},
    {"each key has a gate",
     START(100, KEY(x), KEYED) START(101, KEY(y), KEYED) START(102, KEY(x), KEYED) START(103, "", KEYED),
     "3 8 a#0/x; 4 97 a#1"},
    {"without a key the key is -", START(100, "", KEYED) START(101, KEY(-), KEYED), "2 9 a#0/-"},
    {"a cost that never fits", START(100, COST(2), "a=gcra:1/10000000/1"), "1 never a#0"},
    {"a cost takes as many",
     START(100, COST(2), "a=gcra:1/10000000/2") START(119, COST(2), "a=gcra:1/10000000/2"), "2 1 a#0"},
    {"adapt is judged by what was set",
     START(100, "", "a=gcra:1/10000000/1,adapt=500..1000") START(110, "", "a=gcra:1/10000000/1")
         START(119, "", "a=gcra:1/10000000/1,adapt=500..1000"),
     "3 1 a#0"},
    {"pauses and weights are no rules",
     START(100, "", "a=gcra:1/10000000/1") START(109, "", "a=gcra:1/10000000/1 pause:1/1 weights:1"),
     "2 1 a#0"},

    {"one in flight", START(100, ID(1), "a=concurrency:1") END(110, 1) START(110, ID(2), "a=concurrency:1"),
     ""},
    {"two in flight",
     START(100, ID(1), "a=concurrency:1") START(104, ID(2), "a=concurrency:1") END(110, 1) END(110, 2),
     "2 6 a#0"},
    {"costs do not count in flight",
     START(100, ID(1) COST(5), "a=concurrency:2") START(104, ID(2) COST(5), "a=concurrency:2") END(110, 1)
         END(110, 2),
     ""},
    {"in flight by key",
     START(100, ID(1) KEY(x), "a=concurrency:1,by=key") START(101, ID(2) KEY(y), "a=concurrency:1,by=key")
         START(102, ID(3) KEY(x), "a=concurrency:1,by=key") END(103, 1) END(104, 2) END(105, 3),
     "3 1 a#0/x"},
    {"the same job again ends what a killed worker ran",
     START(100, ID(1), "a=concurrency:1") START(150, ID(1), "a=concurrency:1") END(160, 1)
         START(160, ID(2), "a=concurrency:1") END(170, 2),
     ""},
    {"a killed worker's last line ends what it ran",
     START(100, ID(1), "a=concurrency:1") END(140, 7) OPENED START(140, ID(2), "a=concurrency:1") END(900, 2),
     ""},
    {"but not before",
     START(100, ID(1), "a=concurrency:1") END(140, 7) OPENED START(139, ID(2), "a=concurrency:1"), "4 1 a#0"},
    {"what a killed worker ran ended at its own last line, though others write to the same file",
     OPENED_BY(x) OPENED_BY(y) START(100, ID(1) BY(x), "a=concurrency:1") END_BY(110, 7, x)
         START(120, ID(2) BY(y), "a=concurrency:1") END_BY(130, 2, y)
             START(140, ID(1) BY(y), "a=concurrency:1") END_BY(150, 1, y),
     ""},
    {"but not before, though others begin to write",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") OPENED_BY(y)
         START(101, ID(2) BY(y), "a=concurrency:1") END_BY(102, 1, x) END_BY(102, 2, y),
     "4 1 a#0"},
    {"who writes as one before is another",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") END_BY(101, 7, x) OPENED_BY(x)
         START(101, ID(2) BY(x), "a=concurrency:1") END_BY(102, 1, x) END_BY(102, 2, x),
     ""},
    {"what a worker ran when its leases lapsed ended then",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") LAPSED_BY(110, x) END_BY(130, 1, x)
         START(110, ID(2) BY(y), "a=concurrency:1") END_BY(120, 2, y),
     ""},
    {"but not before, nor what another runs, nor what begins later",
     OPENED_BY(x) START(100, ID(1) BY(x), "a=concurrency:1") LAPSED_BY(110, x) END_BY(130, 1, x) START(
         109, ID(2) BY(y), "a=concurrency:1") END_BY(120, 2, y) START(119, ID(3) BY(x), "a=concurrency:1")
         END_BY(131, 3, x) START(130, ID(4) BY(y), "a=concurrency:1") END_BY(132, 4, y),
     "5 1 a#0; 7 1 a#0; 9 1 a#0"},
    {"fewer may be in flight now",
     START(100, ID(1), "a=concurrency:2") START(101, ID(2), "a=concurrency:2")
         START(103, ID(3), "a=concurrency:1") END(104, 1) END(105, 2) END(106, 3),
     "3 2 a#0"},

    {"of jobs one is counted for each, whatever it costs",
     START(100, COST(5), "a=gcra:1/10000000/1,of=jobs") START(110, COST(5), "a=gcra:1/10000000/1,of=jobs")
         START(119, COST(5), "a=gcra:1/10000000/1,of=jobs"),
     "3 1 a#0"},
    {"and whatever it cost in truth",
     START(100, ID(1) COST(3), "a=gcra:1/10000000/1,of=jobs") SPENT(0, 1) END(101, 1)
         START(109, ID(2), "a=gcra:1/10000000/1,of=jobs") START(110, ID(3), "a=gcra:1/10000000/1,of=jobs")
             SPENT(9, 3) END(111, 3) START(120, ID(4), "a=gcra:1/10000000/1,of=jobs"),
     "4 1 a#0"},
    {"a gate that begins to count jobs keeps what is used",
     START(100, COST(2), "a=gcra:1/10000000/2") START(110, COST(9), "a=gcra:1/10000000/2,of=jobs")
         START(119, COST(2), "a=gcra:1/10000000/2,of=jobs"),
     "3 1 a#0"},

    {"less spent than granted",
     START(100, ID(1) COST(3), "a=gcra:1/10000000/3") SPENT(1, 1) END(101, 1)
         START(101, COST(2), "a=gcra:1/10000000/3") START(102, "", "a=gcra:1/10000000/3"),
     "5 8 a#0"},
    {"more spent than granted is not held against the next at once",
     START(100, ID(1), "a=gcra:1/10000000/1") SPENT(3, 1) END(109, 1) START(110, "", "a=gcra:1/10000000/1"),
     ""},
    {"and excuses no more than it is",
     START(100, ID(1), "a=gcra:1/10000000/1") SPENT(3, 1) END(109, 1) START(109, "", "a=gcra:1/10000000/1"),
     "4 21 a#0"},
    {"but later",
     START(100, ID(1), "a=gcra:1/10000000/1") SPENT(3, 1) END(101, 1) START(129, "", "a=gcra:1/10000000/1"),
     "4 1 a#0"},
    {"nothing more than that",
     START(100, ID(1), "a=gcra:1/10000000/1") SPENT(3, 1) END(101, 1) START(130, "", "a=gcra:1/10000000/1"),
     ""},

    {"a slower rule: what is in use stays in use",
     START(100, "", "a=gcra:1/10000000/1") START(109, "", "a=gcra:1/50000000/1"), "2 40.995 a#0"},
    {"a faster rule lets more through at once",
     START(100, "", "a=gcra:1/50000000/1") START(110, "", "a=gcra:1/10000000/1"), ""},
    {"another algorithm: what is in use stays in use",
     START(100, "", "a=fixed-window:2/100000000/0") START(101, "", "a=fixed-window:2/100000000/0")
         START(102, "", "a=sliding-log:2/100000000") START(201, "", "a=sliding-log:2/100000000"),
     "3 98.995 a#0"},
    {"a rule that comes back finds what was used under it, and since then",
     START(100, AHEAD(0), "a=gcra:2/100000000/2") START(100, AHEAD(0), "a=gcra:2/100000000/2")
         START(101, AHEAD(0), "a=gcra:1/1000000/1") START(140, AHEAD(0), "a=gcra:2/100000000/2")
             START(151, AHEAD(0), "a=gcra:2/100000000/2"),
     "4 11 a#0"},
    {"but when its starts do not say when they were granted",
     START(100, AHEAD(0), "a=gcra:2/100000000/2") START(100, "", "a=gcra:2/100000000/2")
         START(101, AHEAD(0), "a=gcra:1/1000000/1") START(140, AHEAD(0), "a=gcra:2/100000000/2"),
     ""},
    {"not what others used, when it has been away for longer than that and for its period",
     START(100, AHEAD(0), "a=gcra:1/10000000/1") START(109, AHEAD(0), "a=gcra:1/1000000/1")
         START(112, AHEAD(0), "a=gcra:1/1000000/1") START(113, AHEAD(0), "a=gcra:1/10000000/1"),
     ""},
    {"nor when all of it was back before it went",
     START(100, AHEAD(0), "a=gcra:1/10000000/1") START(110, AHEAD(0), "a=gcra:1/1000000/1")
         START(111, AHEAD(0), "a=gcra:1/10000000/1"),
     ""},
    {"a rule that was put before others is another gate",
     START(100, "", "a=gcra:1/10000000/1") START(101, "", "a=concurrency:9 gcra:1/10000000/1"), ""},
};

static void describe(char out[BY_HAND_MAX])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < verified.violations && i < VERIFY_NAMED_MAX; i++) {
        const struct verify_violation *n = &verified.named[i];
        char early[32] = "never";

        if (n->early_us != VERIFY_NEVER)
            snprintf(early, sizeof early, "%g", (double)n->early_us / 1e6);
        len += (size_t)snprintf(out + len, BY_HAND_MAX - len, "%s%zu %s %s#%zu%s%s", i ? "; " : "", n->line,
                                early, n->limit, n->index, *n->key ? "/" : "", n->key);
    }
}

TEST(test_traces_by_hand)
{
    bool good = true;

    for (size_t i = 0; i < COUNT(by_hand); i++) {
        char found[BY_HAND_MAX];

        traces_write(by_hand[i].text);
        replay(1);
        describe(found);
        if (strcmp(found, by_hand[i].finds) != 0) {
            print_error("%s: found '%s', not '%s'\n", by_hand[i].name, found, by_hand[i].finds);
            good = false;
        }
    }
    assert_true(good);
}

/* Two types, one limit: one gate. The order of files does not matter. */
TEST(test_a_shared_limit_in_any_order_of_files)
{
    static const char *const text =
        "{\"slot\":%d000000,\"start\":%d000000,\"type\":\"%s\",\"limits\":\"account=gcra:1/10000000/1\"}\n";
    const int orders[][TRACES] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}};

    for (int i = 0; i < TRACES; i++) {
        FILE *f = fopen(trace_paths[i], "w");

        assert_non_null(f);
        fprintf(f, text, 120 - 5 * i, 120 - 5 * i, i == 1 ? "sms" : "mail");
        fprintf(f, text, 120 - 5 * i, 120 - 5 * i, "fax");
        assert_int_equal(fclose(f), 0);
    }
    for (size_t i = 0; i < COUNT(orders); i++) {
        char found[BY_HAND_MAX];
        size_t torn_line;

        verify_free(&verified);
        assert_int_equal(verify_init(&verified, &trace_error), 0);
        for (int j = 0; j < TRACES; j++)
            assert_int_equal(verify_read(&verified, trace_paths[orders[i][j]], &torn_line, &trace_error), 0);
        assert_int_equal(verify_replay(&verified, &trace_error), 0);
        describe(found);
        assert_string_equal(found, "2 10 account#0; 1 5 account#0; 2 5 account#0; 2 10 account#0");
        assert_string_equal(verified.named[1].type, "sms");
        assert_string_equal(verified.named[1].file, trace_paths[1]);
        assert_int_equal(verified.rule_count, 1);
        assert_int_equal(verified.type_count, 3);
        assert_int_equal(verified.types[0].violations, 3);
        assert_int_equal(verified.types[2].violations, 1);
    }
}

TEST(test_the_fullest_key)
{
    traces_write(START(100, KEY(x), "a=sliding-log:3/10000000,by=key")
                     START(101, KEY(y), "a=sliding-log:3/10000000,by=key")
                         START(102, KEY(y), "a=sliding-log:3/10000000,by=key")
                             START(103, "", "a=concurrency:2") START(104, "", "a=concurrency:2"));
    replay(1);
    assert_int_equal(verified.violations, 0);
    assert_int_equal(verified.rule_count, 1);
    assert_int_equal(verified.rules[0].keys, 3);

    traces_write(START(100, KEY(x), "a=sliding-log:3/10000000,by=key")
                     START(101, KEY(y), "a=sliding-log:3/10000000,by=key")
                         START(102, KEY(y), "a=sliding-log:3/10000000,by=key"));
    replay(1);
    assert_int_equal(verified.rules[0].keys, 2);
    assert_string_equal(verified.rules[0].worst_key, "y");
    assert_int_equal(verified.rules[0].worst.windows[2].most, 2);
    assert_int_equal(verified.rules[0].worst.windows[2].allowed, 3);
}

/* ahead_us < 0: it does not say so. */
static void add_granted(int file, int64_t slot_us, int64_t ahead_us, const char *rules)
{
    char ahead[32] = "";

    if (ahead_us >= 0)
        snprintf(ahead, sizeof ahead, ",\"ahead\":%" PRId64, ahead_us);
    fprintf(traces.files[file],
            "{\"slot\":%" PRId64 "%s,\"start\":%" PRId64 ",\"type\":\"mail\",\"limits\":\"mail=%s\"}\n",
            slot_us, ahead, slot_us, rules);
}

/* Rules change while gates are live, as they do in Redis: what is in use is counted at the change, and slots
 * are granted ahead of it. No start that a live gate granted is accused. */
static void check_changes(uint64_t *random)
{
    static const char *const rules[] = {
        "gcra:10/1000000/1",         "gcra:100/1000000/10",       "gcra:7/1000000/7",
        "token-bucket:20/1000000/5", "fixed-window:10/1000000/0", "sliding-log:10/1000000",
        "sliding-window:10/1000000", "gcra:60/1000000/1",
    };
    bool tells = random_in(random, 0, 1); /* how far ahead */
    int64_t ahead_us = tells ? GATE_AHEAD_MOST_US : GATE_AHEAD_US;
    int64_t now_us = BEGIN_US, first_us = INT64_MAX; /* the first start under the present rule */
    const char *stored = rules[random_in(random, 0, COUNT(rules) - 1)];
    struct rule rule;
    struct gate live;

    assert_int_equal(rule_read(stored, &rule, &trace_error), 0);
    gate_init(&live, &rule);
    traces_open();
    for (int i = 0; i < 300; i++) {
        int64_t s_us;

        if (first_us < (tells ? INT64_MAX : now_us - GATE_AHEAD_US) && random_in(random, 0, 9) == 0) {
            stored = rules[random_in(random, 0, COUNT(rules) - 1)];
            assert_int_equal(rule_read(stored, &rule, &trace_error), 0);
            assert_int_equal(gate_change(&live, &rule, ++now_us), 0); /* no two calls at one time */
            first_us = INT64_MAX;
        }
        s_us = gate_start(&live, now_us, 1);
        if (s_us > now_us + ahead_us)
            now_us = s_us - random_in(random, 0, ahead_us);
        assert_int_equal(gate_take(&live, s_us, 1, 1), 0);
        add_granted((int)random_in(random, 0, 2), s_us, tells ? s_us - now_us : -1, stored);
        first_us = s_us < first_us ? s_us : first_us;
        now_us += random_in(random, 0, 9) ? 0 : random_in(random, 0, 2000000);
    }
    traces_close();
    gate_free(&live);
    replay(3);
    fail_if(verified.violations, "WEIR_SEED=%" PRIu64 ": %s:%zu is %" PRId64 "us too early", seed,
            verified.named[0].file, verified.named[0].line, verified.named[0].early_us);
}

TEST(test_changes_accuse_nobody)
{
    uint64_t random = seed = random_seed();

    for (int i = 0; i < 300; i++)
        check_changes(&random);
}

TEST(test_an_end_long_before_its_start_is_named)
{
    static const char *const set_back = START(100, ID(1), "a=concurrency:1") END(99, 1);
    static const char *const before =
        START(100, ID(1), "a=concurrency:1") "{\"end\":98999999,\"type\":\"mail\",\"id\":\"1\"}\n";
    char says[128];
    size_t torn_line;

    traces_write(set_back);
    replay(1);
    traces_write(before);
    snprintf(says, sizeof says, "%s:2: end is before the job's start in line 1; ", trace_paths[0]);
    verify_free(&verified);
    assert_int_equal(verify_init(&verified, &trace_error), 0);
    assert_int_equal(verify_read(&verified, trace_paths[0], &torn_line, &trace_error), WEIR_EINPUT);
    assert_memory_equal(trace_error.text, says, strlen(says));
}

/* ---- True costs */

#define RUNNING_MOST 20

struct run {
    int64_t slot_us, end_us, cost, spent;
    int file;
    size_t id;
};

/* A live gate as workers use it: starts ahead of their time, ends that settle what was spent. */
struct live {
    struct gate gate;
    struct run running[RUNNING_MOST];
    int count;
    int64_t now_us;
};

static void end_run(struct live *l, int i)
{
    struct run run = l->running[i];

    l->running[i] = l->running[--l->count];
    if (run.spent < run.cost)
        gate_give(&l->gate, l->now_us, run.slot_us, run.cost - run.spent);
    else if (run.spent > run.cost)
        assert_int_equal(gate_charge(&l->gate, l->now_us, run.spent - run.cost), 0);
    if (run.spent == run.cost)
        return;
    fprintf(traces.files[run.file],
            "{\"spent\":%" PRId64 ",\"slot\":%" PRId64 ",\"type\":\"mail\",\"id\":\"%d.%zu\"}\n"
            "{\"end\":%" PRId64 ",\"type\":\"mail\",\"id\":\"%d.%zu\"}\n",
            run.spent, run.slot_us, run.file, run.id, run.end_us, run.file, run.id);
}

/* Time passes; what ends meanwhile is settled then. */
static void pass_until(struct live *l, int64_t until_us)
{
    for (;;) {
        int first = -1;

        for (int i = 0; i < l->count; i++)
            if (l->running[i].end_us <= until_us &&
                (first < 0 || l->running[i].end_us < l->running[first].end_us))
                first = i;
        if (first < 0)
            break;
        l->now_us = l->running[first].end_us > l->now_us ? l->running[first].end_us : l->now_us;
        end_run(l, first);
    }
    l->now_us = until_us > l->now_us ? until_us : l->now_us;
}

static void start_run(struct live *l, const char *stored, uint64_t *random)
{
    struct run *run = &l->running[l->count];
    int64_t burst = l->gate.rule.burst;

    *run = (struct run){.cost = random_in(random, 1, burst), .file = (int)random_in(random, 0, TRACES - 1)};
    run->spent = random_in(random, 0, 2) ? random_in(random, 0, run->cost) : random_in(random, 1, burst + 2);
    run->slot_us = gate_start(&l->gate, l->now_us, run->cost);
    if (run->slot_us > l->now_us + GATE_AHEAD_US)
        return;
    run->end_us = run->slot_us + random_in(random, 0, random_in(random, 0, 1) ? 2000 : 700000);
    gate_remember(&l->gate, l->now_us);
    assert_int_equal(gate_take(&l->gate, run->slot_us, 1, run->cost), 0);
    traces_add_cost(run->file, "mail", run->slot_us, 0, stored, run->cost);
    run->id = traces.lines[run->file];
    l->count++;
}

static void check_true_costs(uint64_t *random)
{
    static const char *const rules[] = {
        "gcra:7/1000000/5",         "gcra:3/1000001/4",      "token-bucket:30/1000007/9",
        "gcra:10/1000000/5",        "gcra:999983/1000003/9", "fixed-window:7/1000000/0",
        "sliding-window:9/1000000", "sliding-log:7/1000000",
    };
    const char *stored = rules[random_in(random, 0, COUNT(rules) - 1)];
    struct live l = {.now_us = BEGIN_US};
    struct rule rule;

    assert_int_equal(rule_read(stored, &rule, &trace_error), 0);
    gate_init(&l.gate, &rule);
    traces_open();
    for (int i = 0; i < 400; i++) {
        int64_t opens_us = gate_start(&l.gate, l.now_us, 1);

        if (l.count < RUNNING_MOST)
            start_run(&l, stored, random);
        pass_until(&l, random_in(random, 0, 1) ? opens_us - random_in(random, 0, GATE_AHEAD_US)
                                               : l.now_us + random_in(random, 0, 20000));
    }
    pass_until(&l, l.now_us + 1000000);
    traces_close();
    gate_free(&l.gate);
    replay(TRACES);
    fail_if(verified.violations, "WEIR_SEED=%" PRIu64 ": %s: %s:%zu is %" PRId64 "us too early", seed, stored,
            verified.named[0].file, verified.named[0].line, verified.named[0].early_us);
}

/* Whatever jobs spend: no start that a live gate granted is accused. */
TEST(test_true_costs_accuse_nobody)
{
    uint64_t random = seed = random_seed();

    for (int i = 0; i < 300; i++)
        check_true_costs(&random);
}

TESTS(traces_begin, traces_end)
