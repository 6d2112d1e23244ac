/* What a claim answered, against the model: what left queues and lanes, each start and its order, that no slot is left, and
 * that the next look is not too late.
 *
 * Where jobs are is checked by comparing lists: a claim takes a part from the front of a queue, which goes to
 * the ends of lanes, and what it grants comes from the heads of lanes; what is then there must be what Redis
 * has. So the order of each lane holds whichever way a job took. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim_model.h"

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
           sim_is_new_follower(sim_job_in(sim_text(queue->at[queue->count - 1 - (size_t)count]))))
        count++;
    return count;
}

/* What left the front of a queue goes to the ends of its lanes. */
static void absorb_queue(const struct snapshot *all, int q, struct sim_list *gone_jobs)
{
    struct sim_list *queue = &sim.queues[q];
    const struct item *item;
    int gone;
    const char *name = textf("queue:%s", sim_queue_names[q]);

    item = snapshot_item(all, name);
    gone = queue->count + new_followers(item) - (item ? (int)item->count : 0);
    sim_fail_if(gone < 0, "%s has grown by %d", name, -gone);
    for (int i = 0; i < gone; i++) {
        int n = queue->at[i];

        sim_jobs[n].key = sim_key_of(n);
        sim_list_insert(sim_lane_of(n), sim_lane_of(n)->count, n);
        sim_list_insert(gone_jobs, gone_jobs->count, n);
    }
    sim_list_remove(queue, 0, gone);
}

/* Lanes from before their type had keys: what leaves them goes to the lanes of its keys. */
static bool absorb_unkeyed(const struct snapshot *all, int q, int type)
{
    struct sim_list *lane = &sim.lanes[q][type][NO_KEY];
    const struct item *item;
    int gone;

    if (lane->count == 0 || sim_path(type) < 0)
        return false;
    item = snapshot_item(all, textf("lane:%s/%s/", sim_queue_names[q], sim_type_names[type]));
    gone = lane->count - (item ? (int)item->count : 0);
    for (int i = 0; i < gone; i++) {
        int n = lane->at[i];

        sim_jobs[n].key = sim_key_of(n);
        sim_list_insert(sim_lane_of(n), sim_lane_of(n)->count, n);
    }
    if (gone > 0)
        sim_list_remove(lane, 0, gone);
    return gone > 0;
}

/* The jobs of a lane as Redis has them: what was granted from its head, then what is there. */
static void actual_lane(const struct snapshot *all, int q, int type, int key, struct sim_list *actual)
{
    const struct item *item;

    for (size_t i = 0; i < turns.claim.lease_count; i++) {
        int n = sim_job_in(turns.claim.leases[i].body);

        if (sim_line_of(n) == q && sim_jobs[n].type == type && sim_jobs[n].key == key)
            sim_list_insert(actual, actual->count, n);
    }
    item = snapshot_item(all,
                         textf("lane:%s/%s/%s", sim_queue_names[q], sim_type_names[type], sim_key_text(key)));
    for (size_t i = 0; item && i < item->count; i++)
        sim_list_insert(actual, actual->count, sim_job_in(sim_text(item->at[i])));
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
    sim_fail_if(actual.count != lane->count, "lane %s/%s/%s has %d jobs, not %d", sim_queue_names[q],
                sim_type_names[type], sim_key_text(key), actual.count, lane->count);
    free(lane->at);
    *lane = actual;
}

/* attrs without one of them: the secret that stands first where the head has been in a queue, when it was enqueued. */
static void leave_out(char attrs[SIM_ATTRS], char letter)
{
    struct span found = lease_attr(span_str(attrs), letter);
    if (found.at)
        memmove(attrs + (found.at - attrs) - 2, found.at + found.len, strlen(found.at + found.len) + 1);
}

/* What stands in the head of its entry; and it may run. */
static void check_attrs(int n, const struct lease *lease)
{
    const struct sim_job *job = &sim_jobs[n];
    char attrs[SIM_ATTRS], found[SIM_ATTRS];
    struct span together;

    snprintf(found, sizeof found, "%.*s", (int)lease->attrs.len, lease->attrs.at);
    leave_out(found, 's');
    leave_out(found, 't');
    leave_out(found, 'd');
    together = lease_attr(lease->attrs, 'h');
    if (together.at ? atoi(together.at) != job->together : job->together != 0)
        sim_fail("job %d: %d suspects run together, and its head has %s", n, job->together, found);
    leave_out(found, 'h');
    leave_out(found, 'k'); /* of a suspect, how often its worker died: test_alone */
    leave_out(found, 'g');
    sim_attrs(n, attrs);
    sim_fail_if(strcmp(found, attrs) != 0, "job %d: its head has %s, not %s", n, found, attrs);
    sim_fail_if(lease->enqueued_us != job->enqueued_us, "job %d: was enqueued at %lld, not %lld", n,
                (long long)lease->enqueued_us, (long long)job->enqueued_us);
    sim_fail_if(lease->since_us != job->since_us, "job %d: waits since %lld, not %lld", n,
                (long long)lease->since_us, (long long)job->since_us);
    if (job->follows && !sim_is_text(lease->body, sim.batches[job->batch_followed].body))
        sim_fail("job %d is %.*s, not %s", n, (int)lease->body.len, lease->body.at,
                 sim.batches[job->batch_followed].body);
    sim_fail_if(sim.paused[job->queue], "job %d starts, and its queue is paused", n);
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
    key = sim_key_named(token.key.at, token.key.len);
    sim_fail_if(job->place != SIM_WAITING, "job %d was leased, but it is in place %d", n, job->place);
    if (!has_name(&call->types, sim_type_names[job->type]) ||
        !has_name(&call->queues, sim_queue_names[job->queue]) ||
        !sim_is_text(token.queue, sim_queue_names[job->together == 1 ? sim_line_of(n) : job->queue]))
        sim_fail("job %d of %s was leased to one who did not ask for it", n, sim_type_names[job->type]);
    sim_fail_if(key < 0 || key != job->key, "job %d has the key %s, not %.*s", n, sim_key_text(job->key),
                (int)token.key.len, token.key.at);
    place = sim_list_find(sim_lane_of(n), n);
    sim_fail_if(place != 0, "job %d was leased before job %d of %s/%s/%s", n, sim_lane_of(n)->at[0],
                sim_queue_names[job->queue], sim_type_names[job->type], sim_key_text(key));
    if (lease->attempts != job->attempts || lease->interrupted != job->interrupted ||
        lease->throttled != job->throttled)
        sim_fail("job %d: @%d,%d,%d, not @%d,%d,%d", n, lease->attempts, lease->interrupted, lease->throttled,
                 job->attempts, job->interrupted, job->throttled);
    check_attrs(n, lease);
    sim_check_slot(call, n, &token);
    sim_totals.suspects += job->together > 0;
    sim_totals.alone += job->together == 1;
    sim_list_remove(sim_lane_of(n), 0, 1);
    sim_started(n);
    job->place = SIM_LEASED;
    job->owner = owner;
    job->slot_us = token.slot_us;
    job->taken = sim_cost(n);
    job->rules = sim_rules_of(job->type);
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
        int n = sim_job_in(sim_text(dead->at[i])), place;

        if (sim_jobs[n].place != SIM_WAITING)
            continue;
        sim_fail_if(!is_lost(call, n), "job %d is dead: %s", n, dead->at[i]->str);
        sim_fail_if(sim_stops(n) != SIM_RUNS, "job %d is dead: %s; it was not to run", n, dead->at[i]->str);
        place = sim_list_find(sim_lane_of(n), n);
        sim_fail_if(place < 0, "job %d is dead and in its queue", n);
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
    sim_fail_if(far > call->far, "%d leases far ahead, of %d", far, call->far);
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
    int64_t opens_us = sim_job_opens(n, key, parked, ALL_GATES);

    if (look->left <= (gated ? look->call->prefetch : 0))
        return;
    sim_fail_if(opens_us <= turns.now_us + SIM_AHEAD,
                "job %d of %s/%s/%s%s could start at now + %lld, with room for %lld", n,
                sim_queue_names[job->queue], sim_type_names[job->type], sim_key_text(key),
                parked ? "" : ", in the queue,", (long long)(opens_us - turns.now_us), (long long)look->left);
}

/* The first job of each lane that is still in the queue. */
static void check_queue_waits(const struct look *look, int q)
{
    bool seen[SIM_TYPES][SIM_KEYS + 1] = {{false}};

    for (int i = 0; i < sim.queues[q].count; i++) {
        int n = sim.queues[q].at[i], type = sim_jobs[n].type, key = sim_key_of(n);

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
    const struct item *ring;
    int64_t dearest = 0;

    ring = snapshot_item(sim.all, textf("ring:%s/%s", sim_queue_names[q], sim_type_names[type]));
    for (size_t i = 0; ring && i < ring->count; i += 2) {
        int key = sim_key_named(ring->at[i]->str, strlen(ring->at[i]->str));

        dearest = sim_later(dearest, sim_cost(sim.lanes[q][type][key].at[0]));
    }
    return dearest;
}

/* The most that a job costs for which a node may wait at a gate: the head of its lane, or of those in its
 * ring. */
static int64_t dearest_of_node(int q, const char *node)
{
    size_t len = strcspn(node, "/");
    const char *key = node + len + 1;
    int type = sim_limit_named(node, len);

    if (!node[len])
        return dearest_in_ring(q, type);
    return sim_cost(sim.lanes[q][type][sim_key_named(key, strlen(key))].at[0]);
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
    const char *ring = textf("ring:%s/%s", sim_queue_names[q], sim_type_names[type]);

    return item_value(snapshot_item(sim.all, ring), sim_key_text(key)) == NULL;
}

/* A lane that waits: could it start, and by when must the next claim come for it? */
static void check_lane(const struct look *look, int q, int type, int key)
{
    const struct claim *claim = &turns.claim;
    int n = sim.lanes[q][type][key].at[0];
    bool asleep = is_asleep(q, type, key);
    int64_t opens_us;
    const char *node = textf("%s/%s", sim_type_names[type], sim_key_text(key));

    if (!has_its_turn(q, type, key, node, asleep))
        return;
    opens_us = sim_job_opens(n, key, true, asleep ? KEY_GATES : ALL_GATES);
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
            if (sim_is_text(turns.claim.paused[i], sim_queue_names[q]) && !sim.paused[q])
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
                opens_us = sim_job_opens(n, key, true, ALL_GATES);
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
    return sim_job_opens(lane->at[0], key, true, ALL_GATES) <= turns.now_us + SIM_AHEAD &&
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

/* Suspects were granted to one that had nothing in flight, and nothing beside them; no more than each of them allows. */
static void check_alone(int owner, int may_start)
{
    static int list[SIM_JOBS];
    int held = sim_leases(owner, list), suspects = 0, most = SIM_JOBS;

    for (int i = 0; i < held; i++)
        if (sim_jobs[list[i]].together) {
            suspects++;
            most = sim_jobs[list[i]].together < most ? sim_jobs[list[i]].together : most;
        }
    if (suspects > 0 && held > suspects)
        sim_fail("%s has %d suspects among %d jobs", sim_ids[owner].name, suspects, held);
    sim_fail_if(suspects > most, "%s has %d suspects, of which one runs with %d at most", sim_ids[owner].name,
                suspects, most);
    sim_fail_if(suspects > 0 && !turns.claim.alone, "suspects run, and the claim does not say so");
    if (turns.claim.alone && suspects == 0 && turns.claim.lease_count > 0)
        sim_fail("%zu jobs are granted to one that is to be alone", turns.claim.lease_count);
    if (may_start >= 0 && suspects == 0 && !turns.claim.more)
        sim_fail("job %d is a suspect, and could start", may_start);
}

void sim_claimed(const struct claim_call *call, int owner)
{
    int may_start = find_alone(call, owner);
    struct snapshot *all = sim_read_all();
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
    sim_compare(all);
    check_waits(call);
}
