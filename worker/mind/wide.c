#include <stdlib.h>
#include <string.h>

#include "worker/mind/wide_inside.h"

/* ---- The queues that there are */

/* Finds the place of a queue among those that are known, or where it would stand. Of "<queue>!", where suspects wait, it is that of the queue. */
static int place_of(const struct wide *w, struct span name)
{
    int low = 0, high = w->queue_count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (name_compare(name, w->by_name[middle]->name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct queue *wide_find(const struct wide *w, struct span name)
{
    int at = place_of(w, name);

    return at < w->queue_count && name_compare(name, w->by_name[at]->name) == 0 ? w->by_name[at] : NULL;
}

/* Returns which word is the first that stands for a queue; -1: none does. */
static int rank_of(const struct wide *w, struct span name)
{
    for (int i = 0; i < w->count; i++)
        if (pattern_serves(w->words[i], name))
            return i;
    return -1;
}

static struct queue *add(struct wide *w, struct span name, int rank)
{
    struct queue *q = w->queue_count < WIDE_QUEUES ? calloc(1, sizeof *q + name.len + 1) : NULL;
    int at = place_of(w, name);

    if (!q)
        return NULL;
    memcpy(q->name, name.at, name.len);
    q->rank = rank;
    q->is_named = !pattern_is(w->words[rank]);
    q->due_us = WIDE_NOW;
    q->held = true;
    q->known = KNOWN_NOTHING;
    memmove(w->by_name + at + 1, w->by_name + at, (size_t)(w->queue_count - at) * sizeof *w->by_name);
    w->by_name[at] = q;
    w->queue_count++;
    TAILQ_INSERT_HEAD(&w->turns[rank], q, turn);
    w->times_known = false;
    return q;
}

static bool add_named(struct wide *w)
{
    for (int i = 0; i < w->count; i++) {
        struct span word = {w->words[i], strlen(w->words[i])};

        if (!pattern_is(word.at) && !wide_find(w, word)) {
            if (!add(w, word, i))
                return false;
            w->name_count++;
        }
    }
    return true;
}

struct wide *wide_new(const char *const *words, int count)
{
    struct wide *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->words = words;
    w->turns = calloc((size_t)count, sizeof *w->turns);
    w->order = calloc((size_t)count, sizeof *w->order);
    w->by_name = calloc(WIDE_QUEUES, sizeof(struct queue *));
    if (!w->turns || !w->order || !w->by_name || !gates_open(&w->gates)) {
        wide_free(w);
        return NULL;
    }
    w->count = count;
    for (int i = 0; i < count; i++) {
        TAILQ_INIT(&w->turns[i]);
        w->order[i] = i;
    }
    if (add_named(w)) {
        w->names_all = w->name_count == count && count <= WIDE_CLAIM;
        return w;
    }
    wide_free(w);
    return NULL;
}

void wide_free(struct wide *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->queue_count; i++)
        free(w->by_name[i]);
    gates_free(&w->gates);
    free(w->by_name);
    free(w->order);
    free(w->turns);
    free(w);
}

int wide_names(const struct wide *w)
{
    return w->name_count;
}

/* Learns a queue. NULL: no word stands for it, or (*full) there are too many. */
static struct queue *learn(struct wide *w, struct span name, bool *full)
{
    struct queue *q = wide_find(w, name);
    int rank;

    *full = false;
    if (!q && (rank = rank_of(w, name)) >= 0)
        *full = !(q = add(w, name, rank));
    if (q)
        q->is_known = true;
    return q;
}

bool wide_learn(struct wide *w, struct span queue)
{
    bool full;

    learn(w, queue, &full);
    return !full;
}

void wide_forget_others(struct wide *w)
{
    int kept = 0;

    for (int i = 0; i < w->queue_count; i++) {
        struct queue *q = w->by_name[i];

        if (q->is_known || q->is_named || q->picked) {
            q->is_known = false;
            w->by_name[kept++] = q;
        } else {
            TAILQ_REMOVE(&w->turns[q->rank], q, turn);
            free(q);
        }
    }
    w->queue_count = kept;
    w->is_complete = true;
    w->times_known = false;
}

bool wide_is_complete(const struct wide *w)
{
    return w->is_complete;
}

/* ---- What is due */

struct span wide_queue_of(struct span token)
{
    const char *at = memchr(token.at, '/', token.len);
    size_t left = at ? token.len - (size_t)(++at - token.at) : 0;
    const char *end = at ? memchr(at, '/', left) : NULL;
    struct span queue = {at, end ? (size_t)(end - at) : 0};

    if (queue.len > 0 && queue.at[queue.len - 1] == '!')
        queue.len--;
    return queue;
}

void wide_claim_all(struct wide *w)
{
    for (int i = 0; w && i < w->queue_count; i++) {
        w->by_name[i]->due_us = WIDE_NOW;
        w->by_name[i]->rung = true;
    }
    if (w)
        w->times_known = false;
}

void wide_hold_all(struct wide *w)
{
    for (int i = 0; w && i < w->queue_count; i++)
        w->by_name[i]->held = true;
}

/* True for a token that stands for all queues. Scripts of other versions leave "1". */
static bool is_any(struct span queue)
{
    return queue.len == 1 && (*queue.at == '*' || *queue.at == '1');
}

void wide_due_now(struct wide *w, struct queue *q)
{
    q->due_us = WIDE_NOW;
    q->rung = true;
    w->times_known = false;
}

static void ring_queue(struct wide *w, struct span queue)
{
    struct queue *q;
    bool full;

    if (queue.len > 1 && queue.at[queue.len - 1] == '!') /* the lanes of suspects */
        queue.len--;
    if (name_is_valid(queue.at, queue.len) && (q = learn(w, queue, &full))) {
        wide_due_now(w, q);
        q->held = true;
    }
}

void wide_ring(struct wide *w, struct span queues)
{
    if (is_any(queues)) {
        wide_claim_all(w);
        wide_hold_all(w);
        return;
    }
    while (queues.len > 0)
        ring_queue(w, span_cut(&queues, ' '));
}

void wide_push(struct wide *w, struct span queue)
{
    struct queue *q = wide_find(w, queue);

    if (q)
        wide_due_now(w, q);
}

void wide_give_back(struct wide *w, struct span token)
{
    struct queue *q = wide_find(w, wide_queue_of(token));

    if (q)
        wide_due_now(w, q);
}

int64_t wide_due_time(const struct queue *q)
{
    int64_t at = q->due_us;

    for (int i = 0; i < q->wait_count; i++)
        if (gate_wait_end(&q->waits[i]) < at)
            at = gate_wait_end(&q->waits[i]);
    return at;
}

static void know_times(struct wide *w)
{
    if (w->times_known)
        return;
    w->due_us = w->oldest_us = WIDE_NEVER;
    for (int i = 0; i < w->queue_count; i++) {
        const struct queue *q = w->by_name[i];
        int64_t due_us = wide_due_time(q);

        if (due_us < w->due_us)
            w->due_us = due_us;
        if (q->named_us < w->oldest_us)
            w->oldest_us = q->named_us;
    }
    w->times_known = true;
}

int64_t wide_due(struct wide *w)
{
    know_times(w);
    return w->due_us;
}

int64_t wide_oldest(struct wide *w)
{
    know_times(w);
    return w->oldest_us;
}

int wide_count(const struct wide *w)
{
    return w->queue_count;
}

int wide_page(const struct wide *w, int first, const char *names[], int most)
{
    int n = 0;

    for (int i = first; i < w->queue_count && n < most; i++)
        names[n++] = w->by_name[i]->name;
    return n;
}
