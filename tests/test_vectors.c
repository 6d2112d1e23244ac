/* Both implementations of rules, the gates in C and those in Lua, behind tests/vectors/run.py. `test_vectors c` and `test_vectors lua` speak
 * its lines (tests/vectors/README.md); without an argument this is a test of both. */
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <jansson.h>

#include "core/redis/redis.h"
#include "tests/client.h"
#include "tests/library.h"
#include "tests/program.h"
#include "tests/test.h"
#include "throttle/gate.h"

#define TICK_NS 1000
#define KEYS_MOST 8
#define TAKES_MOST 32

/* What an implementation does at a time, with the gates of a key. granted: nothing else comes of a take. opens_us: GATE_NEVER: never. */
struct answer {
    bool granted;
    int64_t opens_us;
};
struct implementation {
    void (*begin)(void);
    struct answer (*take)(int64_t now_us, int key, int64_t cost);
    void (*spent)(int64_t now_us, int key, int64_t start_us, int64_t cost, int64_t spent);
    void (*end)(int64_t now_us, int key);
    void (*change)(int64_t now_us);
};

static struct rule_set set;
static struct error error;
static const char *me; /* this program */

/* ---- In C: gates[0] for all, gates[k] for the k-th key */

static struct gate gates[1 + KEYS_MOST][RULES_MAX];

static struct gate *c_gate(size_t rule, int key)
{
    return &gates[*set.at[rule].by ? key : 0][rule];
}

static void c_begin(void)
{
    for (size_t key = 0; key < COUNT(gates); key++)
        for (size_t i = 0; i < RULES_MAX; i++) {
            gate_free(&gates[key][i]);
            if (i < set.count)
                gate_init(&gates[key][i], &set.at[i]);
        }
}

static struct answer c_take(int64_t now_us, int key, int64_t cost)
{
    int64_t at_us = now_us, later_us = now_us;

    do {
        at_us = later_us;
        for (size_t i = 0; i < set.count && later_us != GATE_NEVER; i++)
            later_us = gate_start(c_gate(i, key), later_us, cost);
    } while (later_us != at_us && later_us != GATE_NEVER);
    for (size_t i = 0; i < set.count && later_us == now_us; i++) {
        gate_remember(c_gate(i, key), now_us);
        assert_int_equal(gate_take(c_gate(i, key), now_us, 1, cost), 0);
    }
    return (struct answer){later_us == now_us, later_us};
}

static void c_spent(int64_t now_us, int key, int64_t start_us, int64_t cost, int64_t spent)
{
    for (size_t i = 0; i < set.count; i++) {
        struct gate *g = c_gate(i, key);

        if (g->base.of_jobs)
            continue;
        if (spent > cost)
            assert_int_equal(gate_charge(g, now_us, spent - cost), 0);
        else
            gate_give(g, now_us, start_us, cost - spent);
    }
}

static void c_end(int64_t now_us, int key)
{
    for (size_t i = 0; i < set.count; i++)
        gate_release(c_gate(i, key));
}

static void c_change(int64_t now_us)
{
    for (size_t key = 0; key < COUNT(gates); key++)
        for (size_t i = 0; i < set.count; i++)
            assert_int_equal(gate_change(&gates[key][i], &set.at[i], now_us), 0);
}

static const struct implementation in_c = {c_begin, c_take, c_spent, c_end, c_change};

/* ---- In Lua: each call is one of these functions, whose last argument is the rules in their stored form */

static const char functions[] =
    "local function gates_of(text, key)\n"
    "  local gates = {}\n"
    "  for i, rule in ipairs(rules.read(text)) do\n"
    "    gates[i] = gate.load('v#' .. i .. (rule.by and '/' .. key or ''), rule)\n"
    "  end\n"
    "  return gates\n"
    "end\n"
    "script('take', function(ARGV)\n"
    "  local gates, cost, begun = gates_of(ARGV[#ARGV], ARGV[2]), tonumber(ARGV[3]), now\n"
    "  local at, later = now, now\n"
    "  repeat\n"
    "    at, now = later, later\n"
    "    for _, g in ipairs(gates) do later = max(later, gate.start(g, cost)) end\n"
    "  until later == at or later == huge\n"
    "  now = begun\n"
    "  for _, g in ipairs(gates) do\n"
    "    if later == now then gate.remember(g) gate.take(g, now, 1, cost) end\n"
    "  end\n"
    "  gate.save()\n"
    "  return later == huge and 'never' or us(later)\n"
    "end)\n"
    "script('spent', function(ARGV)\n"
    "  local at, cost, spent = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])\n"
    "  for _, g in ipairs(gates_of(ARGV[#ARGV], ARGV[2])) do\n"
    "    local more = gate.needs(g, spent) - gate.needs(g, cost)\n"
    "    if more > 0 then gate.charge(g, more) else gate.give(g, at, -more) end\n"
    "  end\n"
    "  gate.save()\n"
    "  return ''\n"
    "end)\n"
    "script('end', function(ARGV)\n"
    "  for _, g in ipairs(gates_of(ARGV[#ARGV], ARGV[2])) do gate.release(g.name) end\n"
    "  gate.save()\n"
    "  return ''\n"
    "end)\n";

static void lua_begin(void)
{
    server_do(&server, "FLUSHDB");
}

/* Calls a function with a key, numbers and the rules; its answer is good until the next call. */
static const char *lua_call(const char *name, int64_t now_us, int key, size_t n, const int64_t *numbers)
{
    static char answer[64];
    char stored[RULE_SET_TEXT_SIZE];
    redisReply *reply = NULL;
    struct args a = {0};

    library_begin(&a, name, PREFIX, now_us);
    args_add_int(&a, key);
    for (size_t i = 0; i < n; i++)
        args_add_int(&a, numbers[i]);
    rule_set_write(&set, stored);
    args_add(&a, stored);
    fail_if(redis_call(redis, &a, &reply, NULL, &error) < 0, "%s", error.text);
    args_free(&a);
    snprintf(answer, sizeof answer, "%s", reply->str);
    freeReplyObject(reply);
    return answer;
}

static struct answer lua_take(int64_t now_us, int key, int64_t cost)
{
    const char *text = lua_call("take", now_us, key, 1, &cost);
    int64_t opens_us = strcmp(text, "never") == 0 ? GATE_NEVER : strtoll(text, NULL, 10);

    return (struct answer){opens_us == now_us, opens_us};
}

static void lua_spent(int64_t now_us, int key, int64_t start_us, int64_t cost, int64_t spent)
{
    lua_call("spent", now_us, key, 3, (int64_t[]){start_us, cost, spent});
}

static void lua_end(int64_t now_us, int key)
{
    lua_call("end", now_us, key, 0, NULL);
}

/* A gate finds out by itself that its rule is another one. */
static void lua_change(int64_t now_us)
{
}

static const struct implementation in_lua = {lua_begin, lua_take, lua_spent, lua_end, lua_change};

static const char *const lua_files[] = {"throttle/algorithm/exact.lua",
                                        "throttle/algorithm/gcra.lua",
                                        "throttle/algorithm/token_bucket.lua",
                                        "throttle/algorithm/calendar.lua",
                                        "throttle/algorithm/fixed_window.lua",
                                        "throttle/algorithm/sliding_log.lua",
                                        "throttle/algorithm/sliding_window.lua",
                                        "throttle/algorithm/concurrency.lua",
                                        "throttle/cost.lua",
                                        "throttle/rules.lua",
                                        "throttle/former.lua",
                                        "throttle/gate.lua",
                                        NULL};

/* ---- The lines */

static struct {
    int64_t epoch_us;
    int key_count, take_count;
    char keys[KEYS_MOST][32];
    struct {
        int key;
        int64_t at_us, cost;
    } takes[TAKES_MOST]; /* that were granted */
} vector;

/* The rules of a line. */
static void read_rules(const json_t *rules)
{
    const char *texts[RULES_MAX];
    size_t n = json_array_size(rules);

    for (size_t i = 0; i < n; i++)
        texts[i] = json_string_value(json_array_get(rules, i));
    fail_if(rule_set_parse(texts, n, &set, &error) < 0, "%s", error.text);
}

static int key_number(const char *key)
{
    for (int i = 0; i < vector.key_count; i++)
        if (strcmp(vector.keys[i], key) == 0)
            return i + 1;
    snprintf(vector.keys[vector.key_count], sizeof vector.keys[0], "%s", key);
    return ++vector.key_count;
}

static json_t *answer_take(const struct implementation *of, const json_t *line, int64_t now_us)
{
    const char *key = json_string_value(json_object_get(line, "key"));
    int64_t cost = json_integer_value(json_object_get(line, "take"));
    int number = key_number(key ? key : "");
    struct answer answer = of->take(now_us, number, cost);

    if (!answer.granted)
        return answer.opens_us == GATE_NEVER
                   ? json_pack("{s:b,s:n}", "granted", false, "opens")
                   : json_pack("{s:b,s:I}", "granted", false, "opens",
                               (json_int_t)(answer.opens_us - vector.epoch_us) * TICK_NS);
    vector.takes[vector.take_count].key = number;
    vector.takes[vector.take_count].at_us = now_us;
    vector.takes[vector.take_count++].cost = cost;
    return json_pack("{s:b}", "granted", true);
}

static json_t *answer_line(const struct implementation *of, const json_t *line)
{
    int64_t now_us = vector.epoch_us + json_integer_value(json_object_get(line, "at")) / TICK_NS;
    const json_t *spent = json_object_get(line, "spent"), *end = json_object_get(line, "end");
    size_t take = (size_t)json_integer_value(spent ? json_object_get(line, "of") : end);

    if (json_object_get(line, "begin")) {
        memset(&vector, 0, sizeof vector);
        vector.epoch_us = json_integer_value(json_object_get(line, "epoch")) * 1000000;
        read_rules(json_object_get(line, "rules"));
        of->begin();
        return json_pack("{s:i}", "tick", TICK_NS);
    }
    if (json_object_get(line, "take"))
        return answer_take(of, line, now_us);
    if (spent)
        of->spent(now_us, vector.takes[take].key, vector.takes[take].at_us, vector.takes[take].cost,
                  json_integer_value(spent));
    if (end)
        of->end(now_us, vector.takes[take].key);
    if (json_object_get(line, "rules")) {
        read_rules(json_object_get(line, "rules"));
        of->change(now_us);
    }
    return json_object();
}

static int speak(const struct implementation *of)
{
    char text[4096];

    while (fgets(text, sizeof text, stdin)) {
        json_t *line = json_loads(text, 0, NULL), *answer = answer_line(of, line);

        json_dumpf(answer, stdout, JSON_COMPACT);
        printf("\n");
        fflush(stdout);
        json_decref(answer);
        json_decref(line);
    }
    return 0;
}

static int speak_lua(void)
{
    void *state = NULL;

    client_start_redis(&state);
    library_load(&server, lua_files, functions);
    speak(&in_lua);
    return client_stop(&state);
}

/* ---- The tests */

static void passes(const char *implementation)
{
    char command[512];

    snprintf(command, sizeof command, "tests/vectors/run.py %s %s", me, implementation);
    assert_int_equal(system(command), 0);
}

TEST(test_the_gates_in_c_pass)
{
    passes("c");
}

TEST(test_the_gates_in_lua_pass)
{
    passes("lua");
}

int main(int argc, char **argv)
{
    me = argv[0];
    if (argc > 1)
        return strcmp(argv[1], "c") == 0 ? speak(&in_c) : speak_lua();
    return tests_run(NULL, NULL);
}
