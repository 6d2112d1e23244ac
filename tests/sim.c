/* The model: jobs, lanes, limits and gates, and what Redis must have. sim_claims.c checks what a claim answers. */
#include "tests/sim_model.h"

#include <hiredis/hiredis.h>

#include "tests/test.h"

struct sim sim;
struct sim_job sim_jobs[SIM_JOBS];
struct sim_id sim_ids[SIM_IDS];
struct sim_totals sim_totals;
const char *const sim_queue_names[] = {"high", "mid", "low", "high!", "mid!", "low!"};
const char *const sim_type_names[] = {"t0", "t1", "t2", "t3", "t4", "t5"};
const char *const sim_limit_names[] = {"t0", "t1", "t2", "t3", "t4", "t5", "s0", "s1", "s2", "s3"};
const char *const sim_paths[] = {"args.k", "args.deep.id", "key"};

#define DOCTOR_EVERY 4 /* steps: it takes as long as all else that a look does */

/* What may stand at a path, and the key that it makes. Those behind the special ones: names. */
static const struct {
    const char *json, *key;
} values[] = {
    {"", "-"},
    {"null", "-"},
    {"[1]", "h.f629ae44b7b3dcfed444d363e626edf411ec69a8"},
    {"{\"a\":1}", "h.9f89c740ceb46d7418c924a78ac57941d5e96520"},
    {"1.5", "1.5"},
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
    sim_fail_if(rc != 0, "%s: %s", what, turns.error.text);
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

void sim_list_insert(struct sim_list *list, int at, int n)
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
    sim_list_insert(list, list->count, n);
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

int sim_key_named(const char *text, size_t len)
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
                                          "1.5",
                                          "h.f629ae44b7b3dcfed444d363e626edf411ec69a8",
                                          "h.9f89c740ceb46d7418c924a78ac57941d5e96520",
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
    return sim_jobs[n].queue + (sim_jobs[n].together ? SIM_QUEUES : 0);
}

bool sim_has_line(int line)
{
    return line % SIM_QUEUES < sim.queue_count;
}

bool sim_interrupt(int n, int with, int most)
{
    struct sim_job *job = &sim_jobs[n];

    if (with == 0 || job->together == 1 || job->interrupted == 0)
        job->interrupted++;
    if (job->interrupted < most) {
        if (with > 0)
            job->together = ((job->together && job->together < with ? job->together : with) + 1) / 2;
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
    sim_jobs[n].back_us = 0;
    sim_list_insert(queue, queue->count, n);
}

void sim_return(const int *list, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        sim_jobs[list[i]].place = SIM_WAITING;
        sim_jobs[list[i]].back_us = 0;
        sim_list_insert(sim_lane_of(list[i]), 0, list[i]);
    }
}

/* As its token says: "turn.index@slot". */
static void comes_back(struct sim_job *job)
{
    const char *at = strchr(job->token, '@'), *index = strchr(job->token, '.') + 1;

    job->place = SIM_WAITING;
    job->back_us = at && at < strchr(job->token, '/') ? atoll(at + 1) : 0;
    job->back_index = index[0] * 128 + index[1];
}

static bool was_taken_before(int a, int b)
{
    const struct sim_job *x = &sim_jobs[a], *y = &sim_jobs[b];

    if (x->back_us == 0 || y->back_us == 0)
        return false;
    return x->back_us < y->back_us || (x->back_us == y->back_us && x->back_index < y->back_index);
}

static void merge_back(struct sim_list *lane, const int *entries, int count)
{
    int merged[SIM_JOBS], n = 0, first = 0, i = 0;

    while (first < lane->count && first < 64 && was_taken_before(lane->at[first], entries[count - 1]))
        first++;
    for (int k = 0; k < first; k++) {
        while (was_taken_before(entries[i], lane->at[k]))
            merged[n++] = entries[i++];
        merged[n++] = lane->at[k];
    }
    while (i < count)
        merged[n++] = entries[i++];
    sim_list_remove(lane, 0, first);
    while (n > 0)
        sim_list_insert(lane, 0, merged[--n]);
}

void sim_come_back(const int *list, int count)
{
    bool done[SIM_JOBS] = {false};
    int entries[SIM_JOBS];

    for (int i = 0; i < count; i++)
        comes_back(&sim_jobs[list[i]]);
    for (int i = 0; i < count; i++) {
        struct sim_list *lane = sim_lane_of(list[i]);
        int n = 0;

        for (int k = i; k < count && !done[i]; k++)
            if (!done[k] && sim_lane_of(list[k]) == lane) {
                entries[n++] = list[k];
                done[k] = k > i;
            }
        if (n > 0)
            merge_back(lane, entries, n);
    }
}

void sim_return_behind(int n)
{
    struct sim_list *lane = sim_lane_of(n);

    comes_back(&sim_jobs[n]);
    sim_list_insert(lane, lane->count, n);
}

void sim_to_head(int n)
{
    sim_jobs[n].place = SIM_WAITING;
    sim_jobs[n].back_us = 0;
    sim_list_insert(&sim.queues[sim_jobs[n].queue], 0, n);
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

int sim_limit_named(const char *name, size_t len)
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
    int limit = mark ? sim_limit_named(name.at, (size_t)(mark - name.at)) : -1;
    int rule = limit >= 0 ? atoi(mark + 1) : SIM_RULES, key = NO_KEY;

    if (limit < 0 || rule >= SIM_RULES)
        return NULL;
    if (mark + 2 < end)
        key = sim_key_named(mark + 3, (size_t)(end - mark - 3));
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
    rule->of_jobs = false;
    for (; end < word + len; end += strcspn(end + 1, ", ") + 1) {
        if (strncmp(end, ",of=jobs", 8) == 0)
            rule->of_jobs = true;
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

uint64_t sim_rules_of(int type)
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

    if (rule->rule.kind == NAIVE_CONCURRENCY || rule->of_jobs)
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

int sim_key_of(int n)
{
    int path = sim_path(sim_jobs[n].type);
    char text[16];
    const char *key;

    if (path < 0)
        return NO_KEY;
    key = value_key(sim_jobs[n].values[path], text);
    return sim_key_named(key, strlen(key));
}

/* Is what a gate has in use under its rules before not known? A former one may be forgotten at any call from its time on. */
static bool is_vague(const struct sim_gate *gate)
{
    bool vague = gate->vague || gate->adapts || gate->naive.former_count == NAIVE_FORMER;

    for (size_t i = 0; i < gate->naive.former_count; i++)
        vague |= gate->naive.former[i].till_us <= turns.now_us;
    return vague;
}

/* What a gate's list becomes when it is written under that rule, now. */
static void set_naive(struct naive *naive, const struct sim_gate *gate, const struct sim_rule *rule)
{
    if (!*gate->rule) {
        naive_init(naive, &rule->rule);
        return;
    }
    naive_change(naive, &rule->rule, turns.now_us, gate->in_flight);
    if (is_vague(gate) && rule->rule.kind != NAIVE_CONCURRENCY)
        naive_fill(naive, sim_later(turns.now_us, naive->last_us), 0, rule->rule.burst);
}

/* All slots of a gate, at a tenth of its rate. */
static int64_t slowest_us(const struct naive_rule *rule)
{
    return 10 * (rule->period_us * rule->burst / rule->count + 1);
}

/* The gate is written under that rule, now. */
static void gate_follow(struct sim_gate *gate, const struct sim_rule *rule)
{
    if (strcmp(gate->rule, rule->text) == 0)
        return;
    gate->vague = *gate->rule && is_vague(gate);
    set_naive(&gate->naive, gate, rule);
    if (gate->vague && rule->rule.kind != NAIVE_CONCURRENCY)
        gate->slow_until_us = turns.now_us + slowest_us(&rule->rule);
    gate->adapts = rule->adapt_high > 0;
    snprintf(gate->rule, sizeof gate->rule, "%s", rule->text);
}

int64_t sim_later(int64_t a_us, int64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

static int64_t slots_of(const struct sim_rule *rule, int64_t cost)
{
    return rule->of_jobs ? 1 : cost;
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
    return sim_later(opens_us, gate->pause_until_us);
}

/* Until when the type is paused, or a limit of it as a whole. */
static int64_t paused_until(int type)
{
    int64_t until_us = sim.types[type].pause_until_us;

    for (int i = 0; i <= sim.types[type].use_count; i++) {
        const struct sim_limit *limit = &sim.limits[limit_of(&sim.types[type], i)];

        if (limit->set)
            until_us = sim_later(until_us, limit->pause_until_us);
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

int64_t sim_job_opens(int n, int key, bool parked, enum sim_gates gates)
{
    struct sim_need needs[SIM_NEEDS];
    const char *type = sim_type_names[sim_jobs[n].type];
    int64_t opens_us = sim_later(turns.now_us, paused_until(sim_jobs[n].type));
    const char *lane = textf("%s/%s", type, sim_key_text(key));

    for (int i = sim_needs(sim_jobs[n].type, key, needs); i-- > 0;) {
        const struct sim_gate *gate = needs[i].gate;

        if (!(gates & (needs[i].rule->keyed ? KEY_GATES : GLOBAL_GATES)))
            continue;
        if (gate->slow_until_us > turns.now_us || is_slow(needs[i].rule) ||
            (*gate->rule && strcmp(gate->rule, needs[i].rule->text) != 0 && is_vague(gate)))
            return INT64_MAX;
        if (sim_jobs[n].together && (gate->hold_until_us > turns.now_us || gate->shadow_us > turns.now_us))
            return INT64_MAX; /* by whom, and since when? */
        opens_us = sim_later(opens_us, gate_opens(&needs[i], slots_of(needs[i].rule, sim_cost(n))));
        if (gate->hold_until_us > turns.now_us && !(parked && is_own(gate->hold_node, type, lane))) {
            opens_us = sim_later(opens_us, gate->hold_until_us);
            sim_totals.holds++;
        }
        if (!(parked && is_own(gate->shadow_node, type, lane)))
            opens_us = sim_later(opens_us, gate->shadow_us);
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
        sim_fail_if(!found, "a token names %.*s, which its job does not need", (int)name.len, name.at);
        named++;
    }
    sim_fail_if(named != wanted, "a token names %d gates, not %d: %.*s", named, wanted, (int)token->gates.len,
                token->gates.at);
}

static void take_gate(int n, const struct sim_need *need, int64_t slot_us)
{
    struct sim_gate *gate = need->gate;
    int64_t slots = slots_of(need->rule, sim_cost(n));
    const char *too_much;

    sim_fail_if(slot_us < gate->pause_until_us, "job %d starts at now + %lld, and %s is paused", n,
                (long long)(slot_us - turns.now_us), gate->name);
    gate_follow(gate, need->rule);
    if (need->rule->rule.kind == NAIVE_CONCURRENCY) {
        sim_fail_if(++gate->in_flight > need->rule->rule.count, "%s: %d in flight, %lld are allowed",
                    gate->name, gate->in_flight, (long long)need->rule->rule.count);
        naive_note(&gate->naive, sim_later(slot_us, turns.now_us), sim_cost(n));
        return;
    }
    too_much = naive_start(&gate->naive, slot_us, slots, n);
    sim_fail_if(too_much, "%s (%s) by job %d of cost %lld at now + %lld: %s", gate->name, gate->rule, n,
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
            longest_us = sim_later(longest_us, rule->period_us / rule->count);
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

void sim_check_slot(const struct claim_call *call, int n, const struct token *token)
{
    struct sim_need needs[SIM_NEEDS];
    int key = sim_jobs[n].key, count = sim_needs(sim_jobs[n].type, key, needs);
    int64_t opens_us = sim_job_opens(n, key, true, ALL_GATES);

    check_taken(token, needs, count);
    if (count > 0 && token->cost != sim_cost(n))
        sim_fail("job %d took %lld, it costs %lld", n, (long long)token->cost, (long long)sim_cost(n));
    if (count == 0) {
        if (sim.models_gates && token->slot_us != 0 &&
            token->slot_us != sim.types[sim_jobs[n].type].pause_until_us)
            sim_fail("job %d has no limit, and a slot", n);
        if (sim.models_gates && paused_until(sim_jobs[n].type) > sim_later(token->slot_us, turns.now_us))
            sim_fail("job %d starts, and its type is paused", n);
        return;
    }
    if (token->slot_us < turns.now_us ||
        token->slot_us >
            turns.now_us +
                (counts_in_flight(needs, count) ? SIM_AHEAD : sim_later(SIM_AHEAD, call->ahead_us)))
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

    sim_fail_if(!token_read(sim_token(n), &token), "token %s", sim_jobs[n].token);
    while (next_name(&token.gates, &name))
        gate_named(name)->in_flight--;
}

void sim_true_cost(int n, int64_t spent)
{
    struct sim_need needs[SIM_NEEDS];
    const struct sim_job *job = &sim_jobs[n];

    for (int i = sim_needs(job->type, job->key, needs); i-- > 0 && sim.models_gates;) {
        struct sim_gate *gate = needs[i].gate;
        int64_t more;

        if (needs[i].rule->rule.kind == NAIVE_CONCURRENCY)
            continue;
        gate_follow(gate, needs[i].rule);
        more = spent < 0 ? -slots_of(needs[i].rule, job->taken)
                         : slots_of(needs[i].rule, spent) - slots_of(needs[i].rule, job->taken);
        if (more < 0 && job->rules == sim_rules_of(job->type))
            naive_give(&gate->naive, turns.now_us, job->slot_us, -more, n);
        if (more > 0)
            naive_charge(&gate->naive, turns.now_us, more);
    }
}

/* ---- Redis against the model */

/* The number in "id":"j123"; -1: it has none. */
int sim_job_in(struct span entry)
{
    static const char id[] = "\"j";
    const char *at = memmem(entry.at, entry.len, id, sizeof id - 1);
    int n = at ? atoi(at + sizeof id - 1) : -1;

    sim_fail_if(n < 0 || n >= sim.job_count, "what is no job of ours: %.*s", (int)entry.len, entry.at);
    return n;
}

struct span sim_text(const struct redisReply *r)
{
    return (struct span){r->str, r->len};
}

static void check_list(const struct snapshot *all, const char *name, const struct sim_list *list)
{
    const struct item *item = snapshot_item(all, name);
    int count = item ? (int)item->count : 0;

    for (int i = 0; i < count && i < list->count; i++) {
        int n = sim_job_in(sim_text(item->at[i])), at = sim_list_find(list, n);

        if (n != list->at[i] && (at < 0 || !sim_may_swap(n, list->at[i])))
            sim_fail("%s has job %d in place %d, not job %d", name, n, i, list->at[i]);
        list->at[at] = list->at[i];
        list->at[i] = n;
    }
    sim_fail_if(count != list->count, "%s has %d jobs, not %d", name, count, list->count);
}

static void check_lists(const struct snapshot *all)
{
    for (int q = 0; q < sim.queue_count; q++)
        check_list(all, textf("queue:%s", sim_queue_names[q]), &sim.queues[q]);
    for (int q = 0; q < SIM_LINES; q++)
        for (int t = 0; t < sim.type_count; t++)
            for (int key = 0; key <= NO_KEY; key++) {
                if (sim.lanes[q][t][key].count > 0) /* the others: check_counts */
                    check_list(
                        all, textf("lane:%s/%s/%s", sim_queue_names[q], sim_type_names[t], sim_key_text(key)),
                        &sim.lanes[q][t][key]);
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
                check_lease(item, item->at[k]->str, sim_text(item->at[k + 1]));
    }
}

static void check_counts(const struct invariants *seen)
{
    int64_t places[SIM_PLACES] = {0};

    for (int n = 0; n < sim.job_count; n++)
        places[sim_jobs[n].place]++;
    sim_fail_if(
        seen->queued + seen->parked != places[SIM_WAITING] || seen->leased != places[SIM_LEASED] ||
            seen->later != places[SIM_LATER] || seen->dead != places[SIM_DEAD] || seen->foreign != sim.raw,
        "Redis has %lld queued, %lld parked, %lld leased, %lld later, %lld dead, %lld foreign; the model "
        "%lld waiting, %lld leased, %lld later, %lld dead, %d foreign",
        (long long)seen->queued, (long long)seen->parked, (long long)seen->leased, (long long)seen->later,
        (long long)seen->dead, (long long)seen->foreign, (long long)places[SIM_WAITING],
        (long long)places[SIM_LEASED], (long long)places[SIM_LATER], (long long)places[SIM_DEAD], sim.raw);
}

/* The rule of a limit under which a gate was written, when it is one that the limit has now. */
static const struct sim_rule *rule_of(const char *name)
{
    const char *mark = strchr(name, '#');
    const struct sim_limit *limit = &sim.limits[sim_limit_named(name, (size_t)(mark - name))];
    int rule = atoi(mark + 1);

    return limit->set && rule < limit->count ? &limit->rules[rule] : NULL;
}

/* The keyed rule that was in its place before: a change of rules ends the pause of a key there, and writes its gate under it. NULL: none. */
static const struct sim_rule *rule_before(const char *name)
{
    const char *mark = strchr(name, '#');
    const struct sim_limit *limit = &sim.limits[sim_limit_named(name, (size_t)(mark - name))];
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

bool sim_is_text(struct span span, const char *text)
{
    return strlen(text) == span.len && memcmp(text, span.at, span.len) == 0;
}

/* The same type of another queue may hold a gate: that it passes a hold of its own name is of use to those
 * only who come to the gate after it; before, another may have held it. */
static bool is_shared(const char *node)
{
    size_t len = strcspn(node, "/");
    int queues = 0, type = *node ? sim_limit_named(node, len) : -1;

    for (int q = 0; q < SIM_LINES && type >= 0; q++) {
        bool has_lane = false;

        for (int key = 0; key <= NO_KEY; key++)
            has_lane |= sim.lanes[q][type][key].count > 0;
        queues += has_lane;
    }
    return queues > 1;
}

static void read_gate(const struct item *item)
{
    struct gate_state state;
    struct sim_gate *gate = gate_named((struct span){item->name + 5, strlen(item->name + 5)});
    const struct sim_rule *rule = rule_of(item->name + 5);

    sim_fail_if(!gate, "%s is a gate that nobody needs", item->name);
    sim_fail_if(!gate_state_read(sim_text(item->at[0]), &state), "%s: %s", item->name, item->at[0]->str);
    if (!sim_is_text(state.rule, gate->rule)) {
        if (gate->pause_until_us > 0 && (!rule || !sim_is_text(state.rule, rule->text)))
            rule = rule_before(item->name + 5);
        if (!rule || !sim_is_text(state.rule, rule->text))
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
    for (int q = 0; q < SIM_LINES; q++) {
        for (int t = 0; t < sim.type_count; t++)
            sim.held[q][t] = item_value(snapshot_item(all, textf("held:%s", sim_queue_names[q])),
                                        sim_type_names[t]) != NULL;
    }
}

static void read_later(const struct snapshot *all)
{
    const struct item *later = snapshot_item(all, "later");

    sim.later_us = later ? atoll(later->at[1]->str) : -1;
    for (size_t i = 0; later && i < later->count; i += 2) {
        struct sim_job *job = &sim_jobs[sim_job_in(sim_text(later->at[i]))];
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

struct snapshot *sim_read_all(void)
{
    struct snapshot *all = snapshot_read(turns.redis, PREFIX, &turns.error);

    sim_fail_if(!all, "snapshot: %s", turns.error.text);
    trace_all(all);
    return all;
}

void sim_compare(struct snapshot *all)
{
    struct invariants seen;
    const char *broken = snapshot_broken(all, turns.now_us, LEASE_US, &seen);

    if (!broken && (sim.step % DOCTOR_EVERY == 0 || getenv("WEIR_TRACE")))
        broken = doctor_broken(turns.redis, PREFIX, turns.now_us);
    sim_fail_if(broken, "%s", broken);
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
    sim_compare(sim_read_all());
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
