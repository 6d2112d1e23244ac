/* The model's limits and gates: what a job needs, when it opens, and what is taken at each start. */
#include "tests/sim_model.h"

#include "tests/test.h"

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
struct sim_gate *sim_gate_named(struct span name)
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
    key = sim_value_key(sim_jobs[n].values[path], text);
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
int64_t sim_slowest_us(const struct naive_rule *rule)
{
    return 10 * (rule->period_us * rule->burst / rule->count + 1);
}

/* The gate is written under that rule, now. */
void sim_gate_follow(struct sim_gate *gate, const struct sim_rule *rule)
{
    if (strcmp(gate->rule, rule->text) == 0)
        return;
    gate->vague = *gate->rule && is_vague(gate);
    set_naive(&gate->naive, gate, rule);
    if (gate->vague && rule->rule.kind != NAIVE_CONCURRENCY)
        gate->slow_until_us = turns.now_us + sim_slowest_us(&rule->rule);
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
bool sim_is_slow(const struct sim_rule *rule)
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
        if (gate->slow_until_us > turns.now_us || sim_is_slow(needs[i].rule) ||
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
            found |= needs[i].rule->rule.kind == NAIVE_CONCURRENCY && needs[i].gate == sim_gate_named(name);
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
    sim_gate_follow(gate, need->rule);
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

void sim_shadow(struct sim_gate *gate, int64_t until_us, const char *node)
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
            sim_shadow(needs[i].gate, turns.now_us + longest_hold(&needs[i], 1), "");
    }
}

void sim_unlease(int n)
{
    struct token token;
    struct span name;

    sim_fail_if(!token_read(sim_token(n), &token), "token %s", sim_jobs[n].token);
    while (next_name(&token.gates, &name))
        sim_gate_named(name)->in_flight--;
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
        sim_gate_follow(gate, needs[i].rule);
        more = spent < 0 ? -slots_of(needs[i].rule, job->taken)
                         : slots_of(needs[i].rule, spent) - slots_of(needs[i].rule, job->taken);
        if (more < 0 && job->rules == sim_rules_of(job->type))
            naive_give(&gate->naive, turns.now_us, job->slot_us, -more, n);
        if (more > 0)
            naive_charge(&gate->naive, turns.now_us, more);
    }
}
