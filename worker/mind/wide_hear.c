/* What the answer to the claim of the last pick changes. */
#include <stdlib.h>

#include "worker/mind/wide_inside.h"

#define CHANGED_US 1000000 /* slots that come back let a gate open sooner by less, as a rule */

/* ---- What it answers */

/* Returns how many of the picks the leases reach: the last pick that has one, and those before it. */
static int last_leased(const struct wide *w, const struct claim *claim)
{
    int reached = 0;

    for (size_t i = 0; i < claim->lease_count; i++) {
        struct span queue = wide_queue_of(claim->leases[i].token);

        if (reached > 0 && name_compare(queue, w->picked[reached - 1]->name) == 0)
            continue;
        for (int k = reached; k < w->pick_count; k++)
            if (name_compare(queue, w->picked[k]->name) == 0) {
                w->picked[k]->leased = true;
                reached = k + 1;
            }
    }
    return reached;
}

static bool lacks_executors(const struct wide_answer *answer)
{
    const struct claim *claim = answer->claim;

    return claim->more || claim->starved || claim->lease_count >= (size_t)answer->free;
}

/* Returns how many of the picks, from the first on, had executors to take. */
static int reached_by(const struct wide *w, const struct wide_answer *answer)
{
    const struct claim *claim = answer->claim;
    int last = last_leased(w, claim);

    if (claim->lease_count == 0)
        return claim->more && w->pick_count > 0 ? 1 : w->pick_count;
    return lacks_executors(answer) ? last : w->pick_count;
}

/* ---- When each is due */

/* Forgets the gates: what is due at them is due by itself. */
static void forget_gates(struct wide *w)
{
    for (int i = 0; i < w->queue_count; i++) {
        w->by_name[i]->due_us = wide_due_time(w->by_name[i]);
        w->by_name[i]->wait_count = 0;
    }
    gates_forget(&w->gates);
}

/* Finds or adds a gate. NULL: out of memory. */
static struct gate *gate_of(struct wide *w, struct span name)
{
    struct gate *gate = gates_find(&w->gates, name);

    if (gate)
        return gate;
    if (gates_are_full(&w->gates))
        forget_gates(w);
    return gates_add(&w->gates, name);
}

/* Notes when a gate opens. Where that is far sooner than was known, its rule was changed, and what was known of each queue is as old. */
static void gate_opens(struct wide *w, struct gate *gate, int64_t opens_us, int64_t now_us)
{
    bool is_news = gate->opens_us > max_i64(opens_us, now_us) + CHANGED_US;

    gate->opens_us = opens_us;
    for (int i = 0; is_news && i < w->queue_count; i++)
        for (int k = 0; k < w->by_name[i]->wait_count; k++)
            if (w->by_name[i]->waits[k].gate == gate)
                w->by_name[i]->waits[k].at_us = min_i64(w->by_name[i]->waits[k].at_us, opens_us);
}

/* Reads a time of Redis's clock and turns it into ours; WIDE_NOW, or 0 where it is not known. */
static int64_t next_time(struct span *text, int64_t offset_us)
{
    struct span word = span_cut(text, ' ');
    int64_t at = word.len ? strtoll(word.at, NULL, 10) : -1; /* the reply ends with a NUL */

    return at < 0 ? WIDE_NEVER : at > WIDE_NOW ? at + offset_us : at;
}

/* Hears "<queue> <when> <what> [<gate> <when> <opens>]...". */
static void hear_due(struct wide *w, struct span text, const struct wide_answer *answer)
{
    struct queue *q = wide_find(w, span_cut(&text, ' '));
    int64_t due_us = next_time(&text, answer->offset_us);

    if (!q)
        return;
    q->told = true;
    q->missed = due_us == 0;
    if (q->missed) {
        if (!q->picked)
            wide_due_now(w, q); /* jobs stand there */
        return;
    }
    q->served_us = answer->now_us;
    q->known = *span_cut(&text, ' ').at;
    q->due_redis_us = due_us < WIDE_NEVER ? due_us - answer->offset_us : INT64_C(1) << 53;
    q->wait_count = 0;
    if (!q->rung)
        q->due_us = due_us;
    while (text.len > 0) {
        struct gate *gate = gate_of(w, span_cut(&text, ' '));
        int64_t at_us = next_time(&text, answer->offset_us), opens_us = next_time(&text, answer->offset_us);

        if (gate && q->wait_count < WAITS_MOST) {
            q->waits[q->wait_count++] = (struct wait){gate, at_us};
            gate->heard_us = answer->now_us;
            if (opens_us)
                gate_opens(w, gate, opens_us, answer->now_us);
        } else if (at_us < q->due_us) {
            q->due_us = at_us;
        }
    }
}

static void hear_dues(struct wide *w, const struct wide_answer *answer)
{
    const struct claim *claim = answer->claim;

    for (size_t i = 0; i < claim->due_count; i++)
        hear_due(w, claim->dues[i], answer);
    for (int i = 0; i < w->pick_count; i++)
        if (!w->picked[i]->told && !w->picked[i]->rung) { /* it is paused */
            w->picked[i]->due_us = WIDE_NEVER;
            w->picked[i]->known = KNOWN_JOBS;
            w->picked[i]->wait_count = 0;
        }
    if (!lacks_executors(answer))
        gates_adapt(&w->gates, WIDE_SHARE, answer->now_us);
}

static void hear_next(struct queue *q, const struct wide_answer *answer)
{
    bool again = answer->claim->more || answer->claim->starved;

    q->wait_count = 0;
    q->served_us = answer->now_us;
    if (!q->rung)
        q->due_us = again                                ? answer->now_us
                    : answer->on_duty && answer->next_us ? answer->next_us
                                                         : WIDE_NEVER;
}

/* Hears what an answer says of all queues, which holds for each. */
static void hear_for_all(struct wide *w, const struct wide_answer *answer, int reached)
{
    for (int i = 0; i < (w->names_all ? w->queue_count : reached); i++)
        hear_next(w->names_all ? w->by_name[i] : w->picked[i], answer);
}

/* Puts a queue that was served behind the others of its word, if it got an executor, or got none though something is due there. */
static void had_its_turn(struct wide *w, struct queue *q, int64_t now_us)
{
    q->named_us = now_us;
    if (!q->leased && wide_due_time(q) > now_us)
        return;
    TAILQ_REMOVE(&w->turns[q->rank], q, turn);
    TAILQ_INSERT_TAIL(&w->turns[q->rank], q, turn);
}

void wide_hear(struct wide *w, const struct wide_answer *answer)
{
    int reached;

    for (int i = 0; i < w->pick_count; i++)
        w->picked[i]->leased = w->picked[i]->told = w->picked[i]->missed = false;
    reached = reached_by(w, answer);
    w->knows = answer->claim->told && answer->on_duty;
    if (w->knows)
        hear_dues(w, answer);
    else
        hear_for_all(w, answer, reached);
    for (int i = 0; i < w->ask_count; i++)
        w->asked[i]->named_us = answer->now_us;
    for (int i = 0; i < (w->knows ? w->pick_count : reached); i++)
        if (!w->picked[i]->missed)
            had_its_turn(w, w->picked[i], answer->now_us);
    w->times_known = false;
}
