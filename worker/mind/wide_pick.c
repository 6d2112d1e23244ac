/* What the next claim names. */
#include <inttypes.h>
#include <stdio.h>

#include "core/random.h"
#include "worker/mind/wide_inside.h"

#define TOGETHER_US 2000 /* what is due so soon is claimed together: slots are granted farther ahead */
#define SERVED_US (10 * INT64_C(1000000)) /* each queue is served so often; of more than SERVED less often */
#define SERVED 1000
#define GRANTED_US 50000 /* slots are granted so far ahead, at most */

void wide_draw(struct wide *w, const int *weights, uint64_t *random)
{
    int sum = 0;

    for (int i = 0; i < w->count; i++)
        sum += weights[w->order[i]];
    for (int first = 0; first < w->count - 1; first++) {
        int at = first, word;

        for (double draw = random_draw(random) * sum;
             at < w->count - 1 && (draw -= weights[w->order[at]]) >= 0;)
            at++;
        word = w->order[at];
        w->order[at] = w->order[first];
        w->order[first] = word;
        sum -= weights[word];
    }
}

/* True if the claim must serve this queue: something is due there by itself, or at a gate for which fewer queues are marked than it is wide. */
static bool is_due(const struct wide *w, const struct queue *q)
{
    if (q->due_us <= w->till_us)
        return true;
    for (int i = 0; i < q->wait_count; i++)
        if (q->waits[i].gate->left > 0 && gate_wait_end(&q->waits[i]) <= w->till_us)
            return true;
    return false;
}

static bool is_stale(const struct wide *w, const struct queue *q)
{
    return q->named_us < w->stale_us;
}

/* True if a queue is to be served because none has been for long. Where nothing waits asking is enough. */
static bool is_forgotten(const struct wide *w, const struct queue *q)
{
    bool waits = !w->knows || q->known != KNOWN_NOTHING;

    return (waits && q->served_us < w->forgotten_us) || (q->held && is_stale(w, q));
}

/* True when a queue may be asked; what is due is served soon. */
static bool may_ask(const struct wide *w, const struct queue *q)
{
    return w->names_all || (is_stale(w, q) && q->due_us > w->till_us);
}

/* True if no answer has told of one of the gates that the queue waits for since stale_us, and no queue is marked that may have it told: one of
 * all that wait there is enough, as a bell may have been lost. */
static bool is_unheard(const struct wide *w, const struct queue *q)
{
    for (int i = 0; i < q->wait_count; i++)
        if (q->waits[i].gate->heard_us < w->stale_us && q->waits[i].gate->asked == 0)
            return true;
    return false;
}

/* Counts a queue that is marked at each of its gates that opens, or was not heard of. */
static void use_gates(const struct wide *w, struct queue *q)
{
    for (int i = 0; i < q->wait_count; i++) {
        struct gate *gate = q->waits[i].gate;
        bool opens = gate->left > 0 && gate_wait_end(&q->waits[i]) <= w->till_us;

        gate->left -= opens;
        gate->asked += opens || gate->heard_us < w->stale_us;
    }
}

/* Marks queues of the first words, until n are most; returns n. */
static int mark(struct wide *w, int words, bool (*wants)(const struct wide *, const struct queue *), int n,
                int most)
{
    struct queue *q;

    for (int i = 0; i < words; i++)
        TAILQ_FOREACH(q, &w->turns[w->order[i]], turn)
        {
            if (n >= most)
                return n;
            if (!q->picked && wants(w, q)) {
                q->picked = true;
                if (wants != is_forgotten)
                    use_gates(w, q);
                n++;
            }
        }
    return n;
}

/* Counts the words up to the first with a due queue that is not marked: queues of later words wait for that one. */
static int words_till_due(const struct wide *w)
{
    const struct queue *q;

    for (int i = 0; i < w->count; i++)
        TAILQ_FOREACH(q, &w->turns[w->order[i]], turn)
        {
            if (!q->picked && is_due(w, q))
                return i + 1;
        }
    return w->count;
}

/* Marks the queue whose turn it is, too: a queue that is served for another reason takes no slot before it. */
static int mark_first(struct wide *w, int n)
{
    int64_t soon_us = w->till_us + GRANTED_US;
    bool any = false;
    struct queue *q;

    for (int i = 0; i < w->queue_count; i++)
        for (int k = 0; w->by_name[i]->picked && k < w->by_name[i]->wait_count; k++) {
            struct wait *wait = &w->by_name[i]->waits[k];

            wait->gate->may_open |= wait->gate->asked == 0 && gate_wait_end(wait) <= soon_us;
            any |= wait->gate->may_open;
        }
    for (int i = 0; any && i < w->count; i++)
        TAILQ_FOREACH(q, &w->turns[w->order[i]], turn)
    for (int k = 0; k < q->wait_count && n < WIDE_CLAIM; k++)
        if (q->waits[k].gate->may_open && q->waits[k].gate->asked == 0 &&
            gate_wait_end(&q->waits[k]) <= soon_us) {
            q->waits[k].gate->asked++;
            n += !q->picked;
            q->picked = true;
        }
    return n;
}

/* Marks those that are to be served; returns of how many words queues may be asked for. */
static int mark_next(struct wide *w)
{
    int n = mark(w, w->count, is_due, 0, w->names_all ? WIDE_CLAIM : WIDE_SHARE), words;

    words = n < WIDE_SHARE || w->names_all ? w->count : words_till_due(w);
    n = mark(w, words, is_unheard, n, WIDE_SHARE);
    n = mark(w, words, is_forgotten, n, w->knows && !w->names_all ? WIDE_SHARE : WIDE_CLAIM);
    n = mark_first(w, n);
    mark(w, w->count, is_due, n, WIDE_CLAIM);
    return words;
}

static void unmark(struct wide *w)
{
    for (int i = 0; i < w->pick_count; i++)
        w->picked[i]->picked = false;
    gates_begin_pick(&w->gates);
    w->pick_count = w->ask_count = 0;
}

/* Sets which queues are due, which no claim has named for a while, and which none has served: a bell may have been lost. Where nothing is
 * known of each, the latter two are the same. */
static void set_times(struct wide *w, int64_t now_us, int64_t stale_us)
{
    int64_t often_us = w->queue_count > SERVED ? SERVED_US * w->queue_count / SERVED : SERVED_US;

    w->till_us = now_us + TOGETHER_US;
    w->stale_us = stale_us;
    w->forgotten_us = w->knows ? now_us - often_us : stale_us;
    w->looks = w->knows && (!w->names_all || w->looked_us < stale_us);
    if (w->looks)
        w->looked_us = now_us;
}

/* Adds a queue to those that are asked. Until *before_us, by Redis's clock, no key is known to wake in them, but for those that are served before
 * they are asked again. */
static void ask(struct wide *w, struct queue *q, int64_t again_us, int64_t *before_us)
{
    char known = w->looks ? q->known : KNOWN_JOBS;

    if (known == KNOWN_KEYS && q->due_us < again_us)
        known = KNOWN_SOON;
    if (known == KNOWN_KEYS)
        *before_us = min_i64(*before_us, q->due_redis_us);
    w->known[w->ask_count] = known;
    w->asks[w->ask_count] = q->name;
    w->asked[w->ask_count++] = q;
}

struct names wide_pick(struct wide *w, int64_t now_us, int64_t stale_us)
{
    int64_t before_us = INT64_C(1) << 53;
    struct queue *q;
    int words;

    unmark(w);
    set_times(w, now_us, stale_us);
    words = mark_next(w);
    for (int i = 0; i < w->count; i++)
        TAILQ_FOREACH(q, &w->turns[w->order[i]], turn)
        {
            if (q->picked) {
                q->rung = false;
                w->picks[w->pick_count] = q->name;
                w->picked[w->pick_count++] = q;
            } else if (i < words && w->ask_count < WIDE_ASKED && may_ask(w, q)) {
                ask(w, q, 2 * now_us - stale_us, &before_us);
            }
        }
    snprintf(w->known + w->ask_count, sizeof w->known - (size_t)w->ask_count, "/%" PRId64, before_us);
    return wide_picked(w);
}

struct names wide_asked(const struct wide *w, const char **known)
{
    *known = w->known;
    return (struct names){w->asks, w->ask_count};
}

struct names wide_picked(const struct wide *w)
{
    return (struct names){w->picks, w->pick_count};
}

bool wide_take_held(struct wide *w)
{
    bool held = false;

    for (int i = 0; i < w->pick_count; i++) {
        held |= w->picked[i]->held;
        w->picked[i]->held = false;
    }
    return held;
}
