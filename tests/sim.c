/* Where jobs are is checked by comparing lists: a claim takes a part from the front of a queue, which goes to
 * the ends of lanes, and what it grants comes from the heads of lanes; what is then there must be what Redis
 * has. So the order of each lane holds whichever way a job took. */
#include "tests/sim.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct sim sim;
struct sim_job sim_jobs[SIM_JOBS];
struct sim_id sim_ids[SIM_IDS];
struct sim_totals sim_totals;
const char *const sim_queue_names[] = {"high", "mid", "low", "high!", "mid!", "low!"};
const char *const sim_type_names[] = {"t0", "t1", "t2", "t3", "t4", "t5"};
const char *const sim_limit_names[] = {"t0", "t1", "t2", "t3", "t4", "t5", "s0", "s1", "s2", "s3"};
const char *const sim_paths[] = {"args.k", "args.deep.id", "key"};

#define DOCTOR_EVERY 4  /* steps: it takes as long as all else that a look does */
#define NO_KEY SIM_KEYS /* of a type that goes by none */

/* What may stand at a path, and the key that it makes. Those behind the special ones: names. */
static const struct {
    const char *json, *key;
} values[] = {
    {"", "-"},
    {"null", "-"},
    {"[1]", "-"},
    {"{\"a\":1}", "-"},
    {"1.5", "-"},
    {"42", "42"},
    {"true", "true"},
    {"\"a b/ü\"", "h.d103516d31165a1ffeda9f8f045b95cf266ec082"},
    {"\"\"", "h.da39a3ee5e6b4b0d3255bfef95601890afd80709"},
    {"\"-\"", "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"},
};
enum { SPECIAL = sizeof values / sizeof *values };

void sim_fail(const char *fmt, ...)
{
    char text[1500];
    va_list rest;

    va_start(rest, fmt);
    vsnprintf(text, sizeof text, fmt, rest);
    va_end(rest);
    fail_msg("WEIR_SEED=%llu: step %d: %s", (unsigned long long)sim.seed, sim.step, text);
    abort();
}

void sim_must(int rc, const char *what)
{
    if (rc != 0)
        sim_fail("%s: %s", what, turns.error.text);
}

int64_t sim_pick(int64_t low, int64_t high)
{
    return random_in(&sim.random, low, high);
}

bool sim_chance(int one_in)
{
    return sim_pick(1, one_in) == 1;
}

/* ---- Lists */

static void list_insert(struct sim_list *list, int at, int n)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->at = realloc(list->at, (size_t)list->capacity * sizeof *list->at);
    }
    memmove(list->at + at + 1, list->at + at, (size_t)(list->count - at) * sizeof *list->at);
    list->at[at] = n;
    list->count++;
}

void sim_list_remove(struct sim_list *list, int at, int count)
{
    if (count == 0)
        return;
    list->count -= count;
    memmove(list->at + at, list->at + at + count, (size_t)(list->count - at) * sizeof *list->at);
}

void sim_list_add(struct sim_list *list, int n)
{
    list_insert(list, list->count, n);
}

int sim_list_find(const struct sim_list *list, int n)
{
    for (int i = 0; i < list->count; i++)
        if (list->at[i] == n)
            return i;
    return -1;
}

/* ---- Jobs */

static const char *value_json(int value, char out[16])
{
    if (value < SPECIAL)
        return values[value].json;
    snprintf(out, 16, "\"k%d\"", value - SPECIAL);
    return out;
}

static int key_named(const char *text, size_t len)
{
    for (int key = 0; key < SIM_KEYS; key++)
        if (strlen(sim_key_text(key)) == len && memcmp(sim_key_text(key), text, len) == 0)
            return key;
    return len == 0 ? NO_KEY : -1;
}

static const char *value_key(int value, char out[16])
{
    if (value < SPECIAL)
        return values[value].key;
    snprintf(out, 16, "k%d", value - SPECIAL);
    return out;
}

const char *sim_key_text(int key)
{
    static char text[16];
    static const char *const special[] = {"-",
                                          "42",
                                          "true",
                                          "h.d103516d31165a1ffeda9f8f045b95cf266ec082",
                                          "h.da39a3ee5e6b4b0d3255bfef95601890afd80709",
                                          "h.3bc15c8aae3e4124dd409035f32ea2fd6835efc9"};
    const int count = sizeof special / sizeof *special;

    if (key == NO_KEY)
        return "";
    if (key < count)
        return special[key];
    snprintf(text, sizeof text, "k%d", key - count);
    return text;
}

static int random_value(int path)
{
    if (!sim_chance(8))
        return (int)sim_pick(SPECIAL, SPECIAL + sim.key_count - 1);
    return path == 2 ? 0 : (int)sim_pick(0, SPECIAL - 1); /* what stands in "key" is a name */
}

int sim_new_job(int queue, int type, int64_t cost)
{
    int n = sim.job_count++;

    sim_jobs[n] = (struct sim_job){
        .queue = queue, .type = type, .cost = cost, .place = SIM_DONE, .batch = -1, .lock = -1};
    for (int path = 0; path < SIM_PATHS; path++)
        sim_jobs[n].values[path] = random_value(path);
    return n;
}

void sim_body(int n, char *out, size_t size)
{
    const struct sim_job *job = &sim_jobs[n];
    char texts[SIM_PATHS][16], cost[40] = "", key[40] = "", k[80] = "", deep[80] = "";
    const char *json[SIM_PATHS], *type = sim_type_names[job->type];

    for (int path = 0; path < SIM_PATHS; path++)
        json[path] = value_json(job->values[path], texts[path]);
    if (job->cost > 0)
        snprintf(cost, sizeof cost, ",\"cost\":%lld", (long long)job->cost);
    if (*json[2])
        snprintf(key, sizeof key, ",\"key\":%s", json[2]);
    if (*json[0])
        snprintf(k, sizeof k, ",\"k\":%s", json[0]);
    if (*json[1])
        snprintf(deep, sizeof deep, ",\"deep\":{\"x\":[],\"id\":%s}", json[1]);
    if (n % 4 || job->in_order)
        snprintf(out, size, "{\"id\":\"j%d\",\"type\":\"%s\"%s%s,\"args\":{\"to\":[1,2]%s%s}}", n, type, key,
                 cost, k, deep);
    else
        snprintf(out, size, " { \"args\" : {\"a\":\"}\"%s%s}, \"id\" : \"j%d\" %s, \"type\" :\"%s\"%s} ", k,
                 deep, n, key, type, cost);
}

int sim_line_of(int n)
{
    return sim_jobs[n].queue + (sim_jobs[n].alone ? SIM_QUEUES : 0);
}

bool sim_has_line(int line)
{
    return line % SIM_QUEUES < sim.queue_count;
}

bool sim_interrupt(int n, bool worker_died, int most)
{
    struct sim_job *job = &sim_jobs[n];

    if (!worker_died || job->alone || job->interrupted == 0)
        job->interrupted++;
    if (job->interrupted < most) {
        job->alone |= worker_died;
        return false;
    }
    sim_end_job(n, SIM_DEAD);
    return true;
}

struct sim_list *sim_lane_of(int n)
{
    return &sim.lanes[sim_line_of(n)][sim_jobs[n].type][sim_jobs[n].key];
}

void sim_to_queue(int n)
{
    struct sim_list *queue = &sim.queues[sim_jobs[n].queue];

    sim_jobs[n].place = SIM_WAITING;
    list_insert(queue, queue->count, n);
}

void sim_return(const int *list, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        sim_jobs[list[i]].place = SIM_WAITING;
        list_insert(sim_lane_of(list[i]), 0, list[i]);
    }
}

void sim_to_head(int n)
{
    sim_jobs[n].place = SIM_WAITING;
    list_insert(&sim.queues[sim_jobs[n].queue], 0, n);
}

/* By turn and index of their tokens. */
static int token_order(const void *a, const void *b)
{
    const char *x = sim_jobs[*(const int *)a].token, *y = sim_jobs[*(const int *)b].token;
    long long turn_x = atoll(x), turn_y = atoll(y);

    return turn_x != turn_y ? (turn_x < turn_y ? -1 : 1) : memcmp(strchr(x, '.'), strchr(y, '.'), 3);
}

int sim_leases(int owner, int list[SIM_JOBS])
{
    int count = 0;

    for (int n = 0; n < sim.job_count; n++)
        if (sim_jobs[n].place == SIM_LEASED && sim_jobs[n].owner == owner)
            list[count++] = n;
    qsort(list, (size_t)count, sizeof *list, token_order);
    return count;
}

struct span sim_token(int n)
{
    return (struct span){sim_jobs[n].token, strlen(sim_jobs[n].token)};
}

int64_t sim_cost(int n)
{
    return sim_jobs[n].cost > 0 ? sim_jobs[n].cost : sim.types[sim_jobs[n].type].cost;
}

/* ---- Limits and gates */

static int limit_named(const char *name, size_t len)
{
    for (int i = 0; i < SIM_LIMITS; i++)
        if (strlen(sim_limit_names[i]) == len && memcmp(sim_limit_names[i], name, len) == 0)
            return i;
    return -1;
}

static struct sim_gate *gate_at(int limit, int rule, int key)
{
    struct sim_gate **at = &sim.gates[limit][rule][key];

    if (!*at) {
        *at = calloc(1, sizeof **at);
        snprintf((*at)->name, sizeof(*at)->name, "%s#%d%s%s", sim_limit_names[limit], rule,
                 key == NO_KEY ? "" : "/", sim_key_text(key));
    }
    return *at;
}

/* limit#index or limit#index/key; NULL: not one of ours. */
static struct sim_gate *gate_named(struct span name)
{
    const char *mark = memchr(name.at, '#', name.len), *end = name.at + name.len;
    int limit = mark ? limit_named(name.at, (size_t)(mark - name.at)) : -1;
    int rule = limit >= 0 ? atoi(mark + 1) : SIM_RULES, key = NO_KEY;

    if (limit < 0 || rule >= SIM_RULES)
        return NULL;
    if (mark + 2 < end)
        key = key_named(mark + 3, (size_t)(end - mark - 3));
    return key < 0 ? NULL : gate_at(limit, rule, key);
}

static void read_rule(struct sim_limit *limit, const char *word, size_t len)
{
    struct sim_rule *rule = &limit->rules[limit->count++];
    const char *end = naive_rule_read(word, &rule->rule);

    assert_non_null(end);
    snprintf(rule->text, sizeof rule->text, "%.*s", (int)(end - word), word);
    rule->keyed = false;
    rule->adapt_high = 0;
    for (; end < word + len; end += strcspn(end + 1, ", ") + 1) {
        if (strncmp(end, ",adapt=", 7) == 0)
            rule->adapt_high = atoi(strstr(end, "..") + 2);
        if (strncmp(end, ",by=", 4) != 0)
            continue;
        rule->keyed = true;
        for (int path = 0; path < SIM_PATHS; path++)
            if (strncmp(end + 4, sim_paths[path], strcspn(end + 4, ", ")) == 0)
                limit->path = path;
    }
}

void sim_limit_is(int n, const char *text)
{
    struct sim_limit *limit = &sim.limits[n];

    limit->name = sim_limit_names[n];
    limit->set = *text != '\0';
    memcpy(limit->was, limit->rules, sizeof limit->was);
    limit->was_count = limit->count;
    limit->count = 0;
    limit->path = -1;
    limit->text = 14695981039346656037u;
    for (const char *c = text; *c; c++)
        limit->text = (limit->text ^ (unsigned char)*c) * 1099511628211u;
    while (*text) {
        size_t len = strcspn(text, " ");

        read_rule(limit, text, len);
        text += len + (text[len] == ' ');
    }
}

static int limit_of(const struct sim_type *type, int i)
{
    return i == 0 ? (int)(type - sim.types) : type->uses[i - 1];
}

/* All rules of a type: another number where they are others. */
static uint64_t rules_of(int type)
{
    uint64_t all = 0;

    for (int i = 0; i <= sim.types[type].use_count; i++) {
        const struct sim_limit *limit = &sim.limits[limit_of(&sim.types[type], i)];

        if (limit->set)
            all = (all ^ limit->text ^ (uint64_t)limit_of(&sim.types[type], i)) * 1099511628211u;
    }
    return all;
}

int sim_path(int type)
{
    for (int i = 0; i <= sim.types[type].use_count; i++) {
        const struct sim_limit *limit = &sim.limits[limit_of(&sim.types[type], i)];

        if (limit->set && limit->path >= 0)
            return limit->path;
    }
    return -1;
}

/* The most that a job may cost; adapting leaves a bucket as large as it is. */
static int64_t rule_cost_most(const struct sim_rule *rule)
{
    int64_t most = rule->rule.burst;

    if (rule->rule.kind == NAIVE_CONCURRENCY)
        return INT64_MAX;
    if (rule->rule.kind >= NAIVE_FIXED_WINDOW && rule->adapt_high > 0)
        most = most * rule->adapt_high / 1000;
    return most > 0 ? most : 1;
}

int64_t sim_cost_most(int type)
{
    struct sim_need needs[SIM_NEEDS];
    int64_t most = INT64_MAX;

    for (int i = sim_needs(type, 0, needs); i-- > 0;)
        if (rule_cost_most(needs[i].rule) < most)
            most = rule_cost_most(needs[i].rule);
    return most;
}

int sim_needs(int type, int key, struct sim_need needs[SIM_NEEDS])
{
    int count = 0;

    for (int i = 0; i <= sim.types[type].use_count; i++) {
        int n = limit_of(&sim.types[type], i);
        struct sim_limit *limit = &sim.limits[n];

        for (int k = 0; limit->set && k < limit->count && count < SIM_NEEDS; k++) {
            struct sim_rule *rule = &limit->rules[k];

            if (rule->keyed && key == NO_KEY) /* a lane from before there were keys */
                continue;
            needs[count++] = (struct sim_need){limit, rule, gate_at(n, k, rule->keyed ? key : NO_KEY)};
        }
    }
    return count;
}

/* The key under which a job is parked or starts now. */
static int key_of(int n)
{
    int path = sim_path(sim_jobs[n].type);
    char text[16];
    const char *key;

    if (path < 0)
        return NO_KEY;
    key = value_key(sim_jobs[n].values[path], text);
    return key_named(key, strlen(key));
}

/* What a gate's list becomes when it is written under that rule, now. */
static void set_naive(struct naive *naive, const struct sim_gate *gate, const struct sim_rule *rule)
{
    if (rule->rule.kind == NAIVE_CONCURRENCY) {
        naive_free(naive);
        *naive = (struct naive){.rule = rule->rule};
    } else if (!*gate->rule) {
        naive_init(naive, &rule->rule);
    } else if (naive->rule.kind == NAIVE_CONCURRENCY) {
        naive_fill(naive, &rule->rule, turns.now_us, 0, gate->in_flight);
    } else if (gate->adapts) {
        naive_fill(naive, &rule->rule, turns.now_us, 0, rule->rule.burst);
    } else {
        naive_change(naive, &rule->rule, turns.now_us);
    }
}

/* The gate is written under that rule, now. */
static void gate_follow(struct sim_gate *gate, const struct sim_rule *rule)
{
    if (strcmp(gate->rule, rule->text) == 0)
        return;
    set_naive(&gate->naive, gate, rule);
    gate->adapts = rule->adapt_high > 0;
    snprintf(gate->rule, sizeof gate->rule, "%s", rule->text);
}

static int64_t later_of(int64_t a_us, int64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

/* When the gate opens for a job of that cost, by the model; not before now. */
static int64_t gate_opens(const struct sim_need *need, int64_t cost)
{
    const struct sim_gate *gate = need->gate;
    int64_t opens_us;
    struct naive changed;

    if (need->rule->rule.kind == NAIVE_CONCURRENCY) {
        opens_us = gate->in_flight < need->rule->rule.count ? turns.now_us : INT64_MAX;
    } else if (!*gate->rule) {
        opens_us = cost <= need->rule->rule.burst ? turns.now_us : INT64_MAX;
    } else if (strcmp(gate->rule, need->rule->text) == 0) {
        opens_us = naive_opens(&gate->naive, turns.now_us, cost);
    } else {
        naive_copy(&changed, &gate->naive);
        set_naive(&changed, gate, need->rule);
        opens_us = naive_opens(&changed, turns.now_us, cost);
        naive_free(&changed);
    }
    return later_of(opens_us, gate->pause_until_us);
}

/* Until when a limit of the type is paused as a whole. */
static int64_t paused_until(int type)
{
    int64_t until_us = 0;

    for (int i = 0; i <= sim.types[type].use_count; i++) {
        const struct sim_limit *limit = &sim.limits[limit_of(&sim.types[type], i)];

        if (limit->set)
            until_us = later_of(until_us, limit->pause_until_us);
    }
    return until_us;
}

static bool is_own(const char *node, const char *type, const char *lane)
{
    return strcmp(node, type) == 0 || strcmp(node, lane) == 0;
}

/* Is the rate never that of the rule itself? */
static bool is_slow(const struct sim_rule *rule)
{
    return rule->adapt_high > 0 && rule->adapt_high < 1000;
}

/* When a job starts at the latest, for all that these gates do; INT64_MAX: nobody knows. parked: it stands in
 * its lane, whose own holds do not keep it. */
enum which { GLOBAL_GATES = 1, KEY_GATES = 2, ALL_GATES = 3 };
static int64_t job_opens(int n, int key, bool parked, enum which which)
{
    struct sim_need needs[SIM_NEEDS];
    const char *type = sim_type_names[sim_jobs[n].type];
    int64_t opens_us = later_of(turns.now_us, paused_until(sim_jobs[n].type));
    char lane[80];

    snprintf(lane, sizeof lane, "%s/%s", type, sim_key_text(key));
    for (int i = sim_needs(sim_jobs[n].type, key, needs); i-- > 0;) {
        const struct sim_gate *gate = needs[i].gate;

        if (!(which & (needs[i].rule->keyed ? KEY_GATES : GLOBAL_GATES)))
            continue;
        if (gate->slow_until_us > turns.now_us || is_slow(needs[i].rule))
            return INT64_MAX;
        if (sim_jobs[n].alone && (gate->hold_until_us > turns.now_us || gate->shadow_us > turns.now_us))
            return INT64_MAX; /* by whom, and since when? */
        opens_us = later_of(opens_us, gate_opens(&needs[i], sim_cost(n)));
        if (gate->hold_until_us > turns.now_us && !(parked && is_own(gate->hold_node, type, lane))) {
            opens_us = later_of(opens_us, gate->hold_until_us);
            sim_totals.holds++;
        }
        if (!(parked && is_own(gate->shadow_node, type, lane)))
            opens_us = later_of(opens_us, gate->shadow_us);
    }
    return opens_us;
}

/* ---- Starts and ends */

static void check_taken(const struct token *token, const struct sim_need *needs, int count)
{
    struct span list = token->gates, name;
    int named = 0, wanted = 0;

    for (int i = 0; i < count; i++)
        wanted += needs[i].rule->rule.kind == NAIVE_CONCURRENCY;
    while (next_name(&list, &name)) {
        bool found = false;

        for (int i = 0; i < count; i++)
            found |= needs[i].rule->rule.kind == NAIVE_CONCURRENCY && needs[i].gate == gate_named(name);
        if (!found)
            sim_fail("a token names %.*s, which its job does not need", (int)name.len, name.at);
        named++;
    }
    if (named != wanted)
        sim_fail("a token names %d gates, not %d: %.*s", named, wanted, (int)token->gates.len,
                 token->gates.at);
}

static void take_gate(int n, const struct sim_need *need, int64_t slot_us)
{
    struct sim_gate *gate = need->gate;
    const char *too_much;

    if (slot_us < gate->pause_until_us)
        sim_fail("job %d starts at now + %lld, and %s is paused", n, (long long)(slot_us - turns.now_us),
                 gate->name);
    if (need->rule->rule.kind == NAIVE_CONCURRENCY) {
        if (++gate->in_flight > need->rule->rule.count)
            sim_fail("%s: %d in flight, %lld are allowed", gate->name, gate->in_flight,
                     (long long)need->rule->rule.count);
        return;
    }
    gate_follow(gate, need->rule);
    too_much = naive_start(&gate->naive, slot_us, sim_cost(n), n);
    if (too_much)
        sim_fail("%s (%s) by job %d of cost %lld at now + %lld: %s", gate->name, gate->rule, n,
                 (long long)sim_cost(n), (long long)(slot_us - turns.now_us), too_much);
}

static void shadow(struct sim_gate *gate, int64_t until_us, const char *node)
{
    if (until_us <= gate->shadow_us)
        return;
    gate->shadow_us = until_us;
    snprintf(gate->shadow_node, sizeof gate->shadow_node, "%s", node);
}

/* A gate is held for one slot of its own at most; the start that ends it leaves no trace of it. */
static int64_t longest_hold(const struct sim_need *needs, int count)
{
    int64_t longest_us = 0;

    for (int i = 0; i < count; i++) {
        const struct naive_rule *rule = &needs[i].rule->rule;

        if (rule->kind != NAIVE_CONCURRENCY)
            longest_us = later_of(longest_us, rule->period_us / rule->count);
    }
    return longest_us;
}

static bool counts_in_flight(const struct sim_need *needs, int count)
{
    for (int i = 0; i < count; i++)
        if (needs[i].rule->rule.kind == NAIVE_CONCURRENCY)
            return true;
    return false;
}

/* The slot of a job that was granted now, from every gate or from none. */
static void check_slot(const struct claim_call *call, int n, const struct token *token)
{
    struct sim_need needs[SIM_NEEDS];
    int key = sim_jobs[n].key, count = sim_needs(sim_jobs[n].type, key, needs);
    int64_t opens_us = job_opens(n, key, true, ALL_GATES);

    check_taken(token, needs, count);
    if (count > 0 && token->cost != sim_cost(n))
        sim_fail("job %d took %lld, it costs %lld", n, (long long)token->cost, (long long)sim_cost(n));
    if (count == 0) {
        if (token->slot_us != 0)
            sim_fail("job %d has no limit, and a slot", n);
        return;
    }
    if (token->slot_us < turns.now_us ||
        token->slot_us >
            turns.now_us + (counts_in_flight(needs, count) ? SIM_AHEAD : later_of(SIM_AHEAD, call->ahead_us)))
        sim_fail("job %d starts at now + %lld", n, (long long)(token->slot_us - turns.now_us));
    sim_totals.slots++;
    if (sim.models_gates && token->slot_us < paused_until(sim_jobs[n].type))
        sim_fail("job %d starts at now + %lld, and its limit is paused", n,
                 (long long)(token->slot_us - turns.now_us));
    for (int i = 0; i < count && sim.models_gates; i++)
        if (needs[i].rule->keyed && token->slot_us < needs[i].limit->key_until_us[key])
            sim_fail("job %d starts at now + %lld, and its key is paused", n,
                     (long long)(token->slot_us - turns.now_us));
    if (!sim.models_gates) {
        for (int i = 0; i < count; i++)
            if (needs[i].rule->rule.kind == NAIVE_CONCURRENCY)
                take_gate(n, &needs[i], INT64_MAX);
        return;
    }
    if (opens_us < INT64_MAX && token->slot_us > opens_us + longest_hold(needs, count))
        sim_fail("job %d starts at now + %lld; it could at now + %lld", n,
                 (long long)(token->slot_us - turns.now_us), (long long)(opens_us - turns.now_us));
    for (int i = 0; i < count; i++) {
        take_gate(n, &needs[i], token->slot_us);
        if (count > 1) /* it may have held this one until now */
            shadow(needs[i].gate, turns.now_us + longest_hold(&needs[i], 1), "");
    }
}

void sim_unlease(int n)
{
    struct token token;
    struct span name;

    if (!token_read(sim_token(n), &token))
        sim_fail("token %s", sim_jobs[n].token);
    while (next_name(&token.gates, &name))
        gate_named(name)->in_flight--;
}

void sim_true_cost(int n, int64_t cost)
{
    struct sim_need needs[SIM_NEEDS];
    const struct sim_job *job = &sim_jobs[n];

    for (int i = sim_needs(job->type, job->key, needs); i-- > 0 && sim.models_gates;) {
        struct sim_gate *gate = needs[i].gate;

        if (needs[i].rule->rule.kind == NAIVE_CONCURRENCY)
            continue;
        gate_follow(gate, needs[i].rule);
        if (cost < job->taken && job->rules == rules_of(job->type))
            naive_give(&gate->naive, turns.now_us, job->slot_us, job->taken - cost, n);
        if (cost > job->taken)
            naive_charge(&gate->naive, turns.now_us, cost - job->taken);
    }
}

/* ---- Redis against the model */

/* The number in "id":"j123"; -1: it has none. */
int sim_job_in(struct span entry)
{
    static const char id[] = "\"j";
    const char *at = memmem(entry.at, entry.len, id, sizeof id - 1);
    int n = at ? atoi(at + sizeof id - 1) : -1;

    if (n < 0 || n >= sim.job_count)
        sim_fail("what is no job of ours: %.*s", (int)entry.len, entry.at);
    return n;
}

static struct span text_of(const struct redisReply *r)
{
    return (struct span){r->str, r->len};
}

static void check_list(const struct snapshot *all, const char *name, const struct sim_list *list)
{
    const struct item *item = snapshot_item(all, name);
    int count = item ? (int)item->count : 0;

    for (int i = 0; i < count && i < list->count; i++) {
        int n = sim_job_in(text_of(item->at[i])), at = sim_list_find(list, n);

        if (n != list->at[i] && (at < 0 || !sim_may_swap(n, list->at[i])))
            sim_fail("%s has job %d in place %d, not job %d", name, n, i, list->at[i]);
        list->at[at] = list->at[i];
        list->at[i] = n;
    }
    if (count != list->count)
        sim_fail("%s has %d jobs, not %d", name, count, list->count);
}

static void check_lists(const struct snapshot *all)
{
    char name[200];

    for (int q = 0; q < sim.queue_count; q++) {
        snprintf(name, sizeof name, "queue:%s", sim_queue_names[q]);
        check_list(all, name, &sim.queues[q]);
    }
    for (int q = 0; q < SIM_LINES; q++)
        for (int t = 0; t < sim.type_count; t++)
            for (int key = 0; key <= NO_KEY; key++) {
                snprintf(name, sizeof name, "lane:%s/%s/%s", sim_queue_names[q], sim_type_names[t],
                         sim_key_text(key));
                if (sim.lanes[q][t][key].count > 0) /* the others: check_counts */
                    check_list(all, name, &sim.lanes[q][t][key]);
            }
}

static void check_lease(const struct item *active, const char *token, struct span entry)
{
    int n = sim_job_in(entry);
    const struct sim_job *job = &sim_jobs[n];
    struct lease lease;

    if (job->place != SIM_LEASED || strcmp(job->token, token) != 0 ||
        strcmp(sim_ids[job->owner].name, active->name + strlen("active:")) != 0)
        sim_fail("%s leases job %d by %s; the model has it in place %d with %s of %s", active->name, n, token,
                 job->place, job->token, sim_ids[job->owner].name);
    if (!lease_read_entry(entry, &lease) || (lease_attr(lease.attrs, 'c').at != NULL) != job->cancelled)
        sim_fail("%s: job %d %s cancelled: %.*s", active->name, n, job->cancelled ? "is" : "is not",
                 (int)entry.len, entry.at);
}

static void check_leases(const struct snapshot *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct item *item = &all->items[i];

        if (strncmp(item->name, "active:", 7) != 0)
            continue;
        for (size_t k = 0; k < item->count; k += 2)
            if (strcmp(item->at[k]->str, "@") != 0)
                check_lease(item, item->at[k]->str, text_of(item->at[k + 1]));
    }
}

static void check_counts(const struct invariants *seen)
{
    int64_t places[SIM_PLACES] = {0};

    for (int n = 0; n < sim.job_count; n++)
        places[sim_jobs[n].place]++;
    if (seen->queued + seen->parked != places[SIM_WAITING] || seen->leased != places[SIM_LEASED] ||
        seen->later != places[SIM_LATER] || seen->dead != places[SIM_DEAD] || seen->foreign != sim.raw)
        sim_fail(
            "Redis has %lld queued, %lld parked, %lld leased, %lld later, %lld dead, %lld foreign; the model "
            "%lld waiting, %lld leased, %lld later, %lld dead, %d foreign",
            (long long)seen->queued, (long long)seen->parked, (long long)seen->leased, (long long)seen->later,
            (long long)seen->dead, (long long)seen->foreign, (long long)places[SIM_WAITING],
            (long long)places[SIM_LEASED], (long long)places[SIM_LATER], (long long)places[SIM_DEAD],
            sim.raw);
}

/* The rule of a limit under which a gate was written, when it is one that the limit has now. */
static const struct sim_rule *rule_of(const char *name)
{
    const char *mark = strchr(name, '#');
    const struct sim_limit *limit = &sim.limits[limit_named(name, (size_t)(mark - name))];
    int rule = atoi(mark + 1);

    return limit->set && rule < limit->count ? &limit->rules[rule] : NULL;
}

/* The keyed rule that was in its place before: a change of rules ends the pause of a key there, and writes its gate under it. NULL: none. */
static const struct sim_rule *rule_before(const char *name)
{
    const char *mark = strchr(name, '#');
    const struct sim_limit *limit = &sim.limits[limit_named(name, (size_t)(mark - name))];
    int rule = atoi(mark + 1);

    return rule < limit->was_count && limit->was[rule].keyed ? &limit->was[rule] : NULL;
}

/* By a worker that has nothing else in flight, for a job that is to run alone. */
static bool is_kept(struct span node)
{
    return node.len > 0 && node.at[node.len - 1] == '!';
}

/* A gate is held for one slot at most; one that counts what is in flight is not. */
static void check_hold(const struct item *item, const struct sim_gate *gate, const struct gate_state *state)
{
    struct naive_rule rule;

    if (state->hold_until_us <= state->wrote_us || gate->adapts)
        return;
    if (is_kept(state->hold_node)) {
        if (state->hold_until_us > state->wrote_us + SIM_KEPT)
            sim_fail("%s is kept for long: %s", item->name, item->at[0]->str);
        return;
    }
    assert_non_null(naive_rule_read(state->rule.at, &rule));
    if ((state->hold_until_us - state->wrote_us) * rule.count > rule.period_us)
        sim_fail("%s is held for more than a slot: %s", item->name, item->at[0]->str);
}

static bool is_text(struct span span, const char *text)
{
    return strlen(text) == span.len && memcmp(text, span.at, span.len) == 0;
}

/* The same type of another queue may hold a gate: that it passes a hold of its own name is of use to those
 * only who come to the gate after it; before, another may have held it. */
static bool is_shared(const char *node)
{
    size_t len = strcspn(node, "/");
    int queues = 0, type = *node ? limit_named(node, len) : -1;

    for (int q = 0; q < SIM_LINES && type >= 0; q++) {
        bool has_lane = false;

        for (int key = 0; key <= NO_KEY; key++)
            has_lane |= sim.lanes[q][type][key].count > 0;
        queues += has_lane;
    }
    return queues > 1;
}

/* All slots of a gate, at a tenth of its rate. */
static int64_t slowest_us(const struct naive_rule *rule)
{
    return 10 * (rule->period_us * rule->burst / rule->count + 1);
}

static void read_gate(const struct item *item)
{
    struct gate_state state;
    struct sim_gate *gate = gate_named((struct span){item->name + 5, strlen(item->name + 5)});
    const struct sim_rule *rule = rule_of(item->name + 5);

    if (!gate)
        sim_fail("%s is a gate that nobody needs", item->name);
    if (!gate_state_read(text_of(item->at[0]), &state))
        sim_fail("%s: %s", item->name, item->at[0]->str);
    if (!is_text(state.rule, gate->rule)) {
        if (gate->pause_until_us > 0 && (!rule || !is_text(state.rule, rule->text)))
            rule = rule_before(item->name + 5);
        if (!rule || !is_text(state.rule, rule->text))
            sim_fail("%s is written under %.*s, which is not its rule", item->name, (int)state.rule.len,
                     state.rule.at);
        gate_follow(gate, rule);
    }
    gate->adapts |= rule && rule->adapt_high > 0;
    if (rule && (state.adapted || is_slow(rule)))
        gate->slow_until_us = turns.now_us + slowest_us(&rule->rule);
    gate->pause_until_us = state.pause_until_us;
    check_hold(item, gate, &state);
    shadow(gate, gate->hold_until_us, gate->hold_node);
    gate->hold_until_us = state.hold_until_us;
    snprintf(gate->hold_node, sizeof gate->hold_node, "%.*s", (int)state.hold_node.len, state.hold_node.at);
    if (is_shared(gate->hold_node))
        shadow(gate, gate->hold_until_us, "");
}

static void read_held(const struct snapshot *all)
{
    char name[200];

    for (int q = 0; q < SIM_LINES; q++) {
        snprintf(name, sizeof name, "held:%s", sim_queue_names[q]);
        for (int t = 0; t < sim.type_count; t++)
            sim.held[q][t] = item_value(snapshot_item(all, name), sim_type_names[t]) != NULL;
    }
}

static void read_later(const struct snapshot *all)
{
    const struct item *later = snapshot_item(all, "later");

    sim.later_us = later ? atoll(later->at[1]->str) : -1;
    for (size_t i = 0; later && i < later->count; i += 2) {
        struct sim_job *job = &sim_jobs[sim_job_in(text_of(later->at[i]))];
        int64_t due_us = atoll(later->at[i + 1]->str);

        if (job->place != SIM_LATER || (job->due_us >= 0 && job->due_us != due_us))
            sim_fail("later has %s, due at %lld", later->at[i]->str, (long long)due_us);
        job->due_us = due_us;
    }
}

/* $WEIR_TRACE: all that Redis has now. */
static void trace_all(const struct snapshot *all)
{
    for (size_t i = 0; getenv("WEIR_TRACE") && i < all->count; i++) {
        const struct item *item = &all->items[i];

        fprintf(stderr, "  %s:", item->name);
        for (size_t k = 0; k < item->count; k++)
            fprintf(stderr, " %s", item->at[k]->str);
        fputc('\n', stderr);
    }
}

static struct snapshot *read_all(void)
{
    struct snapshot *all = snapshot_read(turns.redis, PREFIX, &turns.error);

    if (!all)
        sim_fail("snapshot: %s", turns.error.text);
    trace_all(all);
    return all;
}

static void compare(struct snapshot *all)
{
    struct invariants seen;
    const char *broken = snapshot_broken(all, turns.now_us, LEASE_US, &seen);

    if (!broken && (sim.step % DOCTOR_EVERY == 0 || getenv("WEIR_TRACE")))
        broken = doctor_broken(turns.redis, PREFIX, turns.now_us);
    if (broken)
        sim_fail("%s", broken);
    check_lists(all);
    check_leases(all);
    check_counts(&seen);
    for (size_t i = 0; i < all->count; i++)
        if (strncmp(all->items[i].name, "gate:", 5) == 0)
            read_gate(&all->items[i]);
    read_held(all);
    read_later(all);
    if (sim.lives)
        sim_check_life(all);
    snapshot_free(sim.all);
    sim.all = all;
}

void sim_look(void)
{
    compare(read_all());
}

/* ---- Claims */

static bool has_name(const struct names *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->at[i], name) == 0)
            return true;
    return false;
}

/* How many jobs at the tail of a queue have followed their batches since the last look. */
static int new_followers(const struct item *queue)
{
    int count = 0;

    while (queue && count < (int)queue->count &&
           sim_is_new_follower(sim_job_in(text_of(queue->at[queue->count - 1 - (size_t)count]))))
        count++;
    return count;
}

/* What left the front of a queue goes to the ends of its lanes. */
static void absorb_queue(const struct snapshot *all, int q, struct sim_list *gone_jobs)
{
    struct sim_list *queue = &sim.queues[q];
    char name[64];
    const struct item *item;
    int gone;

    snprintf(name, sizeof name, "queue:%s", sim_queue_names[q]);
    item = snapshot_item(all, name);
    gone = queue->count + new_followers(item) - (item ? (int)item->count : 0);
    if (gone < 0)
        sim_fail("%s has grown by %d", name, -gone);
    for (int i = 0; i < gone; i++) {
        int n = queue->at[i];

        sim_jobs[n].key = key_of(n);
        list_insert(sim_lane_of(n), sim_lane_of(n)->count, n);
        list_insert(gone_jobs, gone_jobs->count, n);
    }
    sim_list_remove(queue, 0, gone);
}

/* Lanes from before their type had keys: what leaves them goes to the lanes of its keys. */
static bool absorb_unkeyed(const struct snapshot *all, int q, int type)
{
    struct sim_list *lane = &sim.lanes[q][type][NO_KEY];
    char name[64];
    const struct item *item;
    int gone;

    if (lane->count == 0 || sim_path(type) < 0)
        return false;
    snprintf(name, sizeof name, "lane:%s/%s/", sim_queue_names[q], sim_type_names[type]);
    item = snapshot_item(all, name);
    gone = lane->count - (item ? (int)item->count : 0);
    for (int i = 0; i < gone; i++) {
        int n = lane->at[i];

        sim_jobs[n].key = key_of(n);
        list_insert(sim_lane_of(n), sim_lane_of(n)->count, n);
    }
    if (gone > 0)
        sim_list_remove(lane, 0, gone);
    return gone > 0;
}

/* The jobs of a lane as Redis has them: what was granted from its head, then what is there. */
static void actual_lane(const struct snapshot *all, int q, int type, int key, struct sim_list *actual)
{
    char name[200];
    const struct item *item;

    for (size_t i = 0; i < turns.claim.lease_count; i++) {
        int n = sim_job_in(turns.claim.leases[i].body);

        if (sim_line_of(n) == q && sim_jobs[n].type == type && sim_jobs[n].key == key)
            list_insert(actual, actual->count, n);
    }
    snprintf(name, sizeof name, "lane:%s/%s/%s", sim_queue_names[q], sim_type_names[type], sim_key_text(key));
    item = snapshot_item(all, name);
    for (size_t i = 0; item && i < item->count; i++)
        list_insert(actual, actual->count, sim_job_in(text_of(item->at[i])));
}

/* A lane that got jobs both of the lane that had no key and of the queue, in one claim: each in their order,
 * but one may stand before the other. */
static void merge_lane(const struct snapshot *all, int q, int type, int key,
                       const struct sim_list *from_queue)
{
    struct sim_list *lane = &sim.lanes[q][type][key], actual = {0};
    int next[2] = {0, 0};

    actual_lane(all, q, type, key, &actual);
    for (int i = 0; i < actual.count && actual.count == lane->count; i++) {
        bool of_queue = sim_list_find(from_queue, actual.at[i]) >= 0;
        int *at = &next[of_queue];

        while (*at < lane->count && (sim_list_find(from_queue, lane->at[*at]) >= 0) != of_queue)
            (*at)++;
        if (*at == lane->count || lane->at[(*at)++] != actual.at[i])
            sim_fail("lane %s/%s/%s: job %d is not in its order", sim_queue_names[q], sim_type_names[type],
                     sim_key_text(key), actual.at[i]);
    }
    if (actual.count != lane->count)
        sim_fail("lane %s/%s/%s has %d jobs, not %d", sim_queue_names[q], sim_type_names[type],
                 sim_key_text(key), actual.count, lane->count);
    free(lane->at);
    *lane = actual;
}

/* attrs without one of them: the secret that stands first where the head has been in a queue, when it was enqueued. */
static void leave_out(char attrs[200], char letter)
{
    struct span found = lease_attr(span_str(attrs), letter);
    if (found.at)
        memmove(attrs + (found.at - attrs) - 2, found.at + found.len, strlen(found.at + found.len) + 1);
}

/* What stands in the head of its entry; and it may run. */
static void check_attrs(int n, const struct lease *lease)
{
    const struct sim_job *job = &sim_jobs[n];
    char attrs[200], found[200];

    snprintf(found, sizeof found, "%.*s", (int)lease->attrs.len, lease->attrs.at);
    leave_out(found, 's');
    leave_out(found, 't');
    sim_attrs(n, attrs);
    if (strcmp(found, attrs) != 0)
        sim_fail("job %d: its head has %s, not %s", n, found, attrs);
    if (lease->enqueued_us != job->enqueued_us)
        sim_fail("job %d: was enqueued at %lld, not %lld", n, (long long)lease->enqueued_us,
                 (long long)job->enqueued_us);
    if (job->follows && !is_text(lease->body, sim.batches[job->batch_followed].body))
        sim_fail("job %d is %.*s, not %s", n, (int)lease->body.len, lease->body.at,
                 sim.batches[job->batch_followed].body);
    if (sim.paused[job->queue])
        sim_fail("job %d starts, and its queue is paused", n);
    if (sim_stops(n) != SIM_RUNS)
        sim_fail("job %d starts; it was cancelled, or its batch is paused or was", n);
}

/* A lease: the job at the head of its lane. */
static void grant(const struct claim_call *call, int owner, const struct lease *lease)
{
    int n = sim_job_in(lease->body);
    struct sim_job *job = &sim_jobs[n];
    struct token token;
    int key, place;

    if (!token_read(lease->token, &token))
        sim_fail("a token that cannot be read: %.*s", (int)lease->token.len, lease->token.at);
    key = key_named(token.key.at, token.key.len);
    if (job->place != SIM_WAITING)
        sim_fail("job %d was leased, but it is in place %d", n, job->place);
    if (!has_name(&call->types, sim_type_names[job->type]) ||
        !has_name(&call->queues, sim_queue_names[job->queue]) ||
        !is_text(token.queue, sim_queue_names[sim_line_of(n)]))
        sim_fail("job %d of %s was leased to one who did not ask for it", n, sim_type_names[job->type]);
    if (key < 0 || key != job->key)
        sim_fail("job %d has the key %s, not %.*s", n, sim_key_text(job->key), (int)token.key.len,
                 token.key.at);
    place = sim_list_find(sim_lane_of(n), n);
    if (place != 0)
        sim_fail("job %d was leased before job %d of %s/%s/%s", n, sim_lane_of(n)->at[0],
                 sim_queue_names[job->queue], sim_type_names[job->type], sim_key_text(key));
    if (lease->attempts != job->attempts || lease->interrupted != job->interrupted ||
        lease->throttled != job->throttled)
        sim_fail("job %d: @%d,%d,%d, not @%d,%d,%d", n, lease->attempts, lease->interrupted, lease->throttled,
                 job->attempts, job->interrupted, job->throttled);
    check_attrs(n, lease);
    check_slot(call, n, &token);
    sim_totals.alone += job->alone;
    sim_list_remove(sim_lane_of(n), 0, 1);
    sim_started(n);
    job->place = SIM_LEASED;
    job->owner = owner;
    job->slot_us = token.slot_us;
    job->taken = sim_cost(n);
    job->rules = rules_of(job->type);
    snprintf(job->token, sizeof job->token, "%.*s", (int)lease->token.len, lease->token.at);
}

static bool is_lost(const struct claim_call *call, int n)
{
    return sim_cost(n) > sim_cost_most(sim_jobs[n].type) ||
           (call->unknown_dead && !has_name(&call->types, sim_type_names[sim_jobs[n].type]));
}

/* Jobs that can never start, or that nobody knows. */
static void absorb_dead(const struct snapshot *all, const struct claim_call *call)
{
    const struct item *dead = snapshot_item(all, "dead");

    for (size_t i = 0; dead && i < dead->count; i += 2) {
        int n = sim_job_in(text_of(dead->at[i])), place;

        if (sim_jobs[n].place != SIM_WAITING)
            continue;
        if (!is_lost(call, n))
            sim_fail("job %d is dead: %s", n, dead->at[i]->str);
        if (sim_stops(n) != SIM_RUNS)
            sim_fail("job %d is dead: %s; it was not to run", n, dead->at[i]->str);
        place = sim_list_find(sim_lane_of(n), n);
        if (place < 0)
            sim_fail("job %d is dead and in its queue", n);
        sim_list_remove(sim_lane_of(n), place, 1);
        sim_end_job(n, SIM_DEAD);
    }
}

/* Strictly: a job with a gate takes an executor, and where they are reserved no other does. */
static void check_room(const struct claim_call *call)
{
    int limited = 0, unlimited = 0, far = 0;

    for (size_t i = 0; i < turns.claim.lease_count; i++) {
        far += turns.claim.leases[i].slot_us > turns.now_us + SIM_AHEAD;
        limited += turns.claim.leases[i].slot_us != 0;
        unlimited += turns.claim.leases[i].slot_us == 0 && !turns.claim.alone;
    }
    if (far > call->far)
        sim_fail("%d leases far ahead, of %d", far, call->far);
    if (call->reserved && unlimited > call->prefetch)
        sim_fail("%d leases without limits, for %d in advance", unlimited, call->prefetch);
    if (limited > call->free || turns.claim.lease_count > (size_t)(call->free + call->prefetch))
        sim_fail("%zu leases, %d with limits, for %d executors and %d in advance", turns.claim.lease_count,
                 limited, call->free, call->prefetch);
}

struct look {
    const struct claim_call *call;
    int64_t left; /* of free and prefetch */
};

static void check_idle_job(const struct look *look, int n, int key, bool parked)
{
    const struct sim_job *job = &sim_jobs[n];
    struct sim_need needs[SIM_NEEDS];
    bool gated = sim_needs(job->type, key, needs) > 0;
    int64_t opens_us = job_opens(n, key, parked, ALL_GATES);

    if (look->left <= (gated ? look->call->prefetch : 0))
        return;
    if (opens_us <= turns.now_us + SIM_AHEAD)
        sim_fail("job %d of %s/%s/%s%s could start at now + %lld, with room for %lld", n,
                 sim_queue_names[job->queue], sim_type_names[job->type], sim_key_text(key),
                 parked ? "" : ", in the queue,", (long long)(opens_us - turns.now_us),
                 (long long)look->left);
}

/* The first job of each lane that is still in the queue. */
static void check_queue_waits(const struct look *look, int q)
{
    bool seen[SIM_TYPES][SIM_KEYS + 1] = {{false}};

    for (int i = 0; i < sim.queues[q].count; i++) {
        int n = sim.queues[q].at[i], type = sim_jobs[n].type, key = key_of(n);

        if (sim_jobs[n].follows && sim_jobs[n].fired_call == turns.calls)
            continue; /* it has come with this claim: a peek at the queue sees it */
        if (!seen[type][key] && sim.lanes[q][type][key].count == 0 &&
            has_name(&look->call->types, sim_type_names[type]))
            check_idle_job(look, n, key, false);
        seen[type][key] = true;
    }
}

/* The most that the first job of a lane in the ring of a type costs. */
static int64_t dearest_in_ring(int q, int type)
{
    char name[64];
    const struct item *ring;
    int64_t dearest = 0;

    snprintf(name, sizeof name, "ring:%s/%s", sim_queue_names[q], sim_type_names[type]);
    ring = snapshot_item(sim.all, name);
    for (size_t i = 0; ring && i < ring->count; i += 2) {
        int key = key_named(ring->at[i]->str, strlen(ring->at[i]->str));

        dearest = later_of(dearest, sim_cost(sim.lanes[q][type][key].at[0]));
    }
    return dearest;
}

/* The most that a job costs for which a node may wait at a gate: the head of its lane, or of those in its
 * ring. */
static int64_t dearest_of_node(int q, const char *node)
{
    size_t len = strcspn(node, "/");
    const char *key = node + len + 1;
    int type = limit_named(node, len);

    if (!node[len])
        return dearest_in_ring(q, type);
    return sim_cost(sim.lanes[q][type][key_named(key, strlen(key))].at[0]);
}

/* Who waits at a gate, first: a job that costs more than it, and is to start before it? */
static bool waits_behind(int q, const char *node, int64_t cost)
{
    char waits[64];
    int len = snprintf(waits, sizeof waits, "wait:%s/", sim_queue_names[q]);

    for (size_t i = 0; i < sim.all->count; i++) {
        const struct item *wait = &sim.all->items[i];

        if (strncmp(wait->name, waits, (size_t)len) != 0 || !item_value(wait, node))
            continue;
        return strcmp(wait->at[0]->str, node) != 0 && dearest_of_node(q, wait->at[0]->str) > cost;
    }
    return false;
}

/* Is it the turn of the first job of a lane? Who waits for a job that costs more waits as long as that: the
 * others of its ring, and those behind it at a gate. */
static bool has_its_turn(int q, int type, int key, const char *lane_node, bool asleep)
{
    int n = sim.lanes[q][type][key].at[0];
    int64_t cost = sim_cost(n);

    if (asleep)
        return !waits_behind(q, lane_node, cost);
    return dearest_in_ring(q, type) <= cost && !waits_behind(q, sim_type_names[type], cost);
}

/* Does a lane wait at a gate of its key? */
static bool is_asleep(int q, int type, int key)
{
    char ring[64];

    snprintf(ring, sizeof ring, "ring:%s/%s", sim_queue_names[q], sim_type_names[type]);
    return item_value(snapshot_item(sim.all, ring), sim_key_text(key)) == NULL;
}

/* A lane that waits: could it start, and by when must the next claim come for it? */
static void check_lane(const struct look *look, int q, int type, int key)
{
    const struct claim *claim = &turns.claim;
    int n = sim.lanes[q][type][key].at[0];
    char node[80];
    bool asleep = is_asleep(q, type, key);
    int64_t opens_us;

    snprintf(node, sizeof node, "%s/%s", sim_type_names[type], sim_key_text(key));
    if (!has_its_turn(q, type, key, node, asleep))
        return;
    opens_us = job_opens(n, key, true, asleep ? KEY_GATES : ALL_GATES);
    if (opens_us < INT64_MAX && (claim->next_us < 0 || claim->next_us > opens_us))
        sim_fail("%s/%s opens at now + %lld for job %d; next is %lld", sim_queue_names[q], node,
                 (long long)(opens_us - turns.now_us), n,
                 (long long)(claim->next_us < 0 ? -1 : claim->next_us - turns.now_us));
    check_idle_job(look, n, key, true);
}

/* It names those of its queues that are paused. */
static void check_paused(const struct claim_call *call)
{
    size_t paused = 0;

    for (int q = 0; q < sim.queue_count; q++)
        paused += sim.paused[q] && has_name(&call->queues, sim_queue_names[q]);
    if (turns.claim.paused_count != paused)
        sim_fail("claim names %zu queues as paused, not %zu", turns.claim.paused_count, paused);
    for (size_t i = 0; i < paused; i++)
        for (int q = 0; q < sim.queue_count; q++)
            if (is_text(turns.claim.paused[i], sim_queue_names[q]) && !sim.paused[q])
                sim_fail("claim names %s as paused", sim_queue_names[q]);
}

/* Nothing that could start waits while there is room for it, and the next look is in time. */
static void check_waits(const struct claim_call *call)
{
    const struct claim *claim = &turns.claim;
    struct look look = {call, call->free + call->prefetch - (int64_t)claim->lease_count};

    if (claim->later_us != sim.later_us)
        sim_fail("later is %lld, not %lld", (long long)claim->later_us, (long long)sim.later_us);
    check_paused(call);
    if (claim->more || claim->alone)
        return;
    if (claim->next_us >= 0 && claim->next_us <= turns.now_us)
        sim_fail("next is now + %lld, but there is no more to take",
                 (long long)(claim->next_us - turns.now_us));
    for (int q = 0; q < sim.queue_count && sim.models_gates; q++) {
        if (!has_name(&call->queues, sim_queue_names[q]) || sim.paused[q])
            continue;
        check_queue_waits(&look, q);
        for (int t = 0; t < sim.type_count; t++)
            for (int key = 0; key <= NO_KEY && has_name(&call->types, sim_type_names[t]) && !sim.held[q][t];
                 key++)
                if (sim.lanes[q][t][key].count > 0)
                    check_lane(&look, q, t, key);
    }
}

int64_t sim_opens(const struct names *queues, const struct names *types)
{
    int64_t first_us = INT64_MAX;

    for (int q = 0; q < sim.queue_count; q++)
        for (int t = 0; t < sim.type_count; t++)
            for (int key = 0; key <= NO_KEY; key++) {
                char node[80];
                int64_t opens_us;
                int n;

                if (sim.lanes[q][t][key].count == 0 || sim.held[q][t] || sim.paused[q] ||
                    !has_name(queues, sim_queue_names[q]) || !has_name(types, sim_type_names[t]))
                    continue;
                n = sim.lanes[q][t][key].at[0];
                snprintf(node, sizeof node, "%s/%s", sim_type_names[t], sim_key_text(key));
                opens_us = job_opens(n, key, true, ALL_GATES);
                if (opens_us < first_us && has_its_turn(q, t, key, node, is_asleep(q, t, key)))
                    first_us = opens_us;
            }
    return first_us;
}

/* Is there a place for one more worker that has nothing else in flight? As it was before the claim. */
static bool has_place(int owner)
{
    const struct item *alone = snapshot_item(sim.all, "alone"), *all = snapshot_item(sim.all, "workers");
    size_t taken = 0, most = all ? all->count / 2 / 4 : 0;

    if (item_value(alone, sim_ids[owner].name))
        return true;
    for (size_t i = 0; alone && i < alone->count; i += 2)
        taken += item_value(all, alone->at[i]->str) != NULL;
    return taken < (most > 0 ? most : 1);
}

/* Could the first job of a lane of those that run alone start now? */
static bool may_run_alone(const struct claim_call *call, int line, int type, int key)
{
    const struct sim_list *lane = &sim.lanes[line][type][key];
    char node[80];

    if (lane->count == 0 || !has_name(&call->types, sim_type_names[type]) ||
        sim_stops(lane->at[0]) != SIM_RUNS || (sim_path(type) < 0) != (key == NO_KEY))
        return false;
    snprintf(node, sizeof node, "%s/%s", sim_type_names[type], sim_key_text(key));
    return job_opens(lane->at[0], key, true, ALL_GATES) <= turns.now_us + SIM_AHEAD &&
           has_its_turn(line, type, key, node, is_asleep(line, type, key));
}

/* A job that is to run alone and could start now, for a worker that has nothing in flight; -1: none that must
 * be granted. */
static int find_alone(const struct claim_call *call, int owner)
{
    static int list[SIM_JOBS];

    if (!call->alone || call->free < 1 || !sim.all || !sim.models_gates || sim_leases(owner, list) > 0 ||
        !has_place(owner))
        return -1;
    for (int i = 0; i < call->queues.count; i++) {
        int q = 0;

        while (strcmp(sim_queue_names[q], call->queues.at[i]) != 0)
            q++;
        for (int t = 0; t < sim.type_count && !sim.paused[q]; t++)
            for (int key = 0; key <= NO_KEY; key++)
                if (may_run_alone(call, q + SIM_QUEUES, t, key))
                    return sim.lanes[q + SIM_QUEUES][t][key].at[0];
        if (sim.queues[q].count > 0 && !item_value(snapshot_item(sim.all, "alone"), sim_ids[owner].name))
            break;
    }
    return -1;
}

/* What runs alone was granted to one that had nothing in flight, and nothing beside it. */
static void check_alone(int owner, int may_start)
{
    static int list[SIM_JOBS];
    int held = sim_leases(owner, list), alone = 0;

    for (int i = 0; i < held; i++)
        alone += sim_jobs[list[i]].alone;
    if (alone > 0 && held > 1)
        sim_fail("job %d is to run alone; %s has %d jobs", list[0], sim_ids[owner].name, held);
    if (alone > 0 && !turns.claim.alone)
        sim_fail("a job runs alone, and the claim does not say so");
    if (turns.claim.alone && alone == 0 && turns.claim.lease_count > 0)
        sim_fail("%zu jobs are granted to one that is to be alone", turns.claim.lease_count);
    if (may_start >= 0 && alone == 0 && !turns.claim.more)
        sim_fail("job %d is to run alone, and could", may_start);
}

void sim_claimed(const struct claim_call *call, int owner)
{
    int may_start = find_alone(call, owner);
    struct snapshot *all = read_all();
    struct sim_list from_queue = {0};
    bool mixed[SIM_LINES][SIM_TYPES];

    if (turns.claim.now_us != turns.now_us || turns.claim.broken_count != 0)
        sim_fail("claim: another time, or broken limits");
    check_room(call);
    sim_totals.claims++;
    sim_totals.starts += (long long)turns.claim.lease_count;
    for (int q = 0; q < SIM_LINES; q++)
        for (int t = 0; t < sim.type_count; t++)
            mixed[q][t] = absorb_unkeyed(all, q, t);
    for (int q = 0; q < sim.queue_count; q++)
        absorb_queue(all, q, &from_queue);
    absorb_dead(all, call);
    if (sim.lives)
        sim_absorb_halted(all, &from_queue);
    for (int q = 0; q < SIM_LINES; q++)
        for (int t = 0; t < sim.type_count; t++)
            for (int key = 0; mixed[q][t] && key < NO_KEY; key++)
                merge_lane(all, q, t, key, &from_queue);
    free(from_queue.at);
    for (size_t i = 0; i < turns.claim.lease_count; i++)
        grant(call, owner, &turns.claim.leases[i]);
    check_alone(owner, may_start);
    sim_check_halted();
    compare(all);
    check_waits(call);
}

/* ---- Worlds */

void sim_begin(uint64_t seed)
{
    sim_end();
    turns_flush(NULL);
    sim = (struct sim){.seed = seed, .random = seed, .models_gates = true, .later_us = -1};
    for (int i = 0; i < SIM_LIMITS; i++)
        sim_limit_is(i, "");
    for (int t = 0; t < SIM_TYPES; t++)
        sim.types[t] = (struct sim_type){.name = sim_type_names[t], .cost = 1};
    sim_life_begin();
}

static void free_lists(struct sim_list *lists, int count)
{
    for (int i = 0; i < count; i++) {
        free(lists[i].at);
        lists[i] = (struct sim_list){0};
    }
}

void sim_end(void)
{
    struct sim_gate **gates = &sim.gates[0][0][0];

    for (size_t i = 0; i < sizeof sim.gates / sizeof *gates; i++)
        if (gates[i]) {
            naive_free(&gates[i]->naive);
            free(gates[i]);
            gates[i] = NULL;
        }
    snapshot_free(sim.all);
    sim.all = NULL;
    sim_life_end();
    free_lists(sim.queues, SIM_QUEUES);
    free_lists(&sim.lanes[0][0][0], SIM_LINES * SIM_TYPES * (SIM_KEYS + 1));
}
