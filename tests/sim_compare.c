/* Redis against the model: what it has in lists, leases, counters and gates must be what the model has. */
#include "tests/sim_model.h"

#include <hiredis/hiredis.h>

#include "tests/test.h"

#define DOCTOR_EVERY 4 /* steps: it takes as long as all else that a look does */

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
    struct sim_gate *gate = sim_gate_named((struct span){item->name + 5, strlen(item->name + 5)});
    const struct sim_rule *rule = rule_of(item->name + 5);

    sim_fail_if(!gate, "%s is a gate that nobody needs", item->name);
    sim_fail_if(!gate_state_read(sim_text(item->at[0]), &state), "%s: %s", item->name, item->at[0]->str);
    if (!sim_is_text(state.rule, gate->rule)) {
        if (gate->pause_until_us > 0 && (!rule || !sim_is_text(state.rule, rule->text)))
            rule = rule_before(item->name + 5);
        if (!rule || !sim_is_text(state.rule, rule->text))
            sim_fail("%s is written under %.*s, which is not its rule", item->name, (int)state.rule.len,
                     state.rule.at);
        sim_gate_follow(gate, rule);
    }
    gate->adapts |= rule && rule->adapt_high > 0;
    if (rule && (state.adapted || sim_is_slow(rule)))
        gate->slow_until_us = turns.now_us + sim_slowest_us(&rule->rule);
    gate->pause_until_us = state.pause_until_us;
    check_hold(item, gate, &state);
    sim_shadow(gate, gate->hold_until_us, gate->hold_node);
    gate->hold_until_us = state.hold_until_us;
    snprintf(gate->hold_node, sizeof gate->hold_node, "%.*s", (int)state.hold_node.len, state.hold_node.at);
    if (is_shared(gate->hold_node))
        sim_shadow(gate, gate->hold_until_us, "");
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
