/* Gates of throttle/gate.lua in a real Redis, a step at a time: what the programs share that hold them against the gates in C. */
#pragma once

#include <hiredis/hiredis.h>
#include <inttypes.h>

#include "core/number.h"
#include "core/redis/redis.h"
#include "tests/client.h"
#include "tests/library.h"
#include "tests/test.h"
#include "throttle/cost.h"
#include "throttle/gate.h"

#define GATE PREFIX "gate:g#0"

static struct error error;
static uint64_t seed;

/* steps: each of ARGV[2..] is one call in small: "now rule verb cost a b node ticket", on a gate that is read
 * and written anew. It answers "start k resets remaining burst held" and the state that is left. backlog:
 * ARGV[4] starts, one after the other, each at the earliest; the clock follows. */
static const char functions[] =
    "local function number(x) return x == huge and 'never' or us(x) end\n"
    "local function take(g, s, cost, most, later, ahead)\n"
    "  if s > now + ahead then return 0 end\n"
    "  local k = gate.count(g, s + later, most, cost)\n"
    "  if k > 0 then gate.take(g, s + later, k, cost) end\n"
    "  return k\n"
    "end\n"
    "local function slots(g, c) return cost.part(c, not g.base.of_jobs and g.base.of or nil) end\n"
    "local verbs = {\n"
    "  look = function() return 0 end,\n"
    "  take = function(g, s, cost, most, later) return take(g, s, cost, most, later, gate.AHEAD) end,\n"
    "  far = function(g, s, cost, most, later) return take(g, s, cost, most, later, gate.AHEAD_MOST) end,\n"
    "  keep = function(g, s, cost, most, later)\n"
    "    gate.remember(g)\n"
    "    return take(g, s, cost, most, later, gate.AHEAD)\n"
    "  end,\n"
    "  give = function(g, _, c, at) gate.give(g, at, slots(g, c)) return 0 end,\n"
    "  charge = function(g, _, c) gate.charge(g, slots(g, c)) return 0 end,\n"
    "  pause = function(g, _, _, at) gate.pause(g, at) return 0 end,\n"
    "  resume = function(g) gate.resume(g) return 0 end,\n"
    "  release = function() gate.release('g#0') return 0 end,\n"
    "  throttled = function(g) gate.throttled(g) return 0 end,\n"
    "  hold = function(g, _, _, at, _, node, ticket) return gate.hold(g, node, ticket, at) and 1 or 0 end,\n"
    "}\n"
    "local function step(text)\n"
    "  local at, rule, verb, c, a, b, node, ticket = text:match('^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) "
    "(%S+) (%S+)$')\n"
    "  for i = 1, forgets_count do forgets[i]() end\n"
    "  forgets_count = 0\n"
    "  now, a, b, ticket = tonumber(at), tonumber(a), tonumber(b), tonumber(ticket)\n"
    "  c, rule = cost.parse(c) or tonumber(c), rules.read(rule)[1]\n"
    "  local g = gate.load('g#0', type(c) == 'table' and rules.mixed(rule) or rule)\n"
    "  local held = gate.held_until(g, node, ticket)\n"
    "  local s = gate.start(g, c, node, ticket)\n"
    "  local k = verbs[verb](g, s, c, a, b, node, ticket)\n"
    "  local most, free, resets = gate.figures(g)\n"
    "  local answer = {number(s), us(k), number(resets), us(free), us(most), us(held)}\n"
    "  gate.save()\n"
    "  return concat(answer, ' ')\n"
    "end\n"
    "script('steps', function(ARGV)\n"
    "  local out = {}\n"
    "  for i = 2, #ARGV do\n"
    "    out[#out + 1] = step(ARGV[i])\n"
    "    out[#out + 1] = call('GET', P .. 'gate:g#0') or ''\n"
    "  end\n"
    "  return out\n"
    "end)\n"
    "script('backlog', function(ARGV)\n"
    "  local g = gate.load('g#0', rules.read(ARGV[2])[1])\n"
    "  local cost, s = tonumber(ARGV[3]), now\n"
    "  for _ = 1, ARGV[4] do\n"
    "    s = gate.start(g, cost)\n"
    "    now = s\n"
    "    gate.take(g, s, 1, cost)\n"
    "  end\n"
    "  gate.save()\n"
    "  return us(s)\n"
    "end)\n"
    "script('release', function(ARGV) gate.release(ARGV[2]) gate.save() return 1 end)\n"
    "script('twice', function(ARGV)\n"
    "  local rule = rules.read(ARGV[2])[1]\n"
    "  for _ = 1, 2 do gate.take(gate.load('g#0', rule), now, 1, 1) end\n"
    "  gate.release('g#0')\n"
    "  gate.save()\n"
    "  gate.save()\n"
    "  local _, free = gate.figures(gate.load('g#0', rule))\n"
    "  return us(free)\n"
    "end)\n"
    "script('released', function(ARGV)\n"
    "  gate.release('g#0')\n"
    "  local g = gate.load('g#0', rules.read(ARGV[2])[1])\n"
    "  gate.take(g, now, 1, 3)\n"
    "  local _, free = gate.figures(g)\n"
    "  return us(free)\n"
    "end)\n"
    "script('costs', function(ARGV)\n"
    "  local texts = {}\n"
    "  for i = 2, #ARGV do\n"
    "    local c = cost.parse(ARGV[i])\n"
    "    texts[i - 1] = c and cost.text(c) or '-'\n"
    "  end\n"
    "  return texts\n"
    "end)\n"
    "script('rules', function(ARGV)\n"
    "  local known = {}\n"
    "  for i = 2, #ARGV do known[i - 1] = rules.read(ARGV[i]) and 1 or 0 end\n"
    "  return known\n"
    "end)\n"
    "script('set', function(ARGV)\n"
    "  local set = rules.read(ARGV[2])\n"
    "  return format('%d %d %d %s %s %d %s %d %s', #set, #set.keyed, #set.global, set.path or '-', set.text, "
    "rules.paused(set),\n"
    "                set.weighted and 'weighted' or '-', set[#set].index, set.in_flight and 'in flight' or "
    "'-')\n"
    "end)\n";

static inline redisReply *ask(struct args *a)
{
    redisReply *reply = NULL;

    fail_if(redis_call(redis, a, &reply, NULL, &error) < 0, "%s", error.text);
    args_free(a);
    return reply;
}

static inline int setup(void **state)
{
    static const char *const files[] = {
        "throttle/algorithm/exact.lua",
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
        NULL,
    };

    client_start_redis(state);
    library_load(&server, files, functions);
    return 0;
}

static inline void set_state(const char *text)
{
    server_do(&server, "SET", GATE, text);
}

enum verb { LOOK, TAKE, FAR, KEEP, GIVE, CHARGE, PAUSE, RESUME, RELEASE, THROTTLED, HOLD };
static const char *const verb_names[] = {"look",  "take",   "far",     "keep",      "give", "charge",
                                         "pause", "resume", "release", "throttled", "hold"};

struct step {
    char rule[RULE_TEXT_SIZE];
    int64_t now_us, cost;
    int64_t a,
        b; /* take, far (ahead), keep (and remember): most jobs, how much later than the earliest; give: when it was
                     taken; pause, hold: until when */
    int64_t ticket;
    int node;
    enum verb verb;
};

static inline bool takes(enum verb verb)
{
    return verb == TAKE || verb == FAR || verb == KEEP;
}

struct answer {
    int64_t start_us; /* GATE_NEVER */
    int64_t k, resets_us, remaining, burst, held_us;
};

/* Slots of a rule that counts tokens, or plain ones, of which some stand beside others. */
static inline const char *cost_word(const struct step *s)
{
    if (strstr(s->rule, ",of=tokens"))
        return textf("3,tokens:%" PRId64, s->cost);
    return textf("%" PRId64 "%s", s->cost, s->cost % 4 == 2 && s->cost <= COST_MAX ? ",tokens:7" : "");
}

static inline void add_step(struct args *a, const struct step *s)
{
    args_add(a, textf("%" PRId64 " %s %s %s %" PRId64 " %" PRId64 " n/%d %" PRId64, s->now_us, s->rule,
                      verb_names[s->verb], cost_word(s), s->a, s->b, s->node, s->ticket));
}

static inline int64_t read_time(const char *word)
{
    return strcmp(word, "never") == 0 ? GATE_NEVER : atoll(word);
}

static inline struct answer read_answer(const char *text)
{
    char start[32], resets[32];
    struct answer a;

    if (sscanf(text, "%31s %" SCNd64 " %31s %" SCNd64 " %" SCNd64 " %" SCNd64, start, &a.k, resets,
               &a.remaining, &a.burst, &a.held_us) != 6)
        fail_msg("steps: unexpected answer %s", text);
    a.start_us = read_time(start);
    a.resets_us = read_time(resets);
    return a;
}

/* One step on its own. */
static inline struct answer do_step(const struct step *s)
{
    struct answer answer;
    redisReply *reply;
    struct args a = {0};

    library_begin(&a, "steps", PREFIX, BEGIN_US);
    add_step(&a, s);
    reply = ask(&a);
    answer = read_answer(reply->element[0]->str);
    freeReplyObject(reply);
    return answer;
}

static inline struct answer take(int64_t now_us, const char *rule, int64_t cost, int64_t most)
{
    struct step s = {.now_us = now_us, .verb = TAKE, .cost = cost, .a = most, .ticket = 1};

    strcpy(s.rule, rule);
    return do_step(&s);
}

static inline struct answer act(enum verb verb, int64_t now_us, const char *rule, int64_t a)
{
    struct step s = {.now_us = now_us, .verb = verb, .cost = 1, .a = a, .ticket = 1};

    strcpy(s.rule, rule);
    return do_step(&s);
}
