#include "worker/parts/wide.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#define SHARE                                                                                                \
    (WIDE_CLAIM - 8)     /* of a claim, for queues where something is due: the rest is for the others  \
                                */
#define TOGETHER_US 2000 /* what is due so soon is claimed together: slots are granted farther ahead */
#define NOW 1            /* due: long ago */
#define NEVER INT64_MAX

struct queue {
    TAILQ_ENTRY(queue) turn;
    int rank;      /* of the word that stands for it */
    bool is_named; /* by that */
    bool is_known, held, picked;
    bool rung;                /* since it was picked */
    int64_t due_us, named_us; /* in a claim, last */
    char name[];
};

TAILQ_HEAD(turns, queue);

struct wide {
    const char *const *words;
    int count, name_count;
    struct turns *turns;    /* of each word: whose turn is next */
    struct queue **by_name; /* sorted */
    int queue_count;
    bool is_complete;
    const char *picks[WIDE_CLAIM];
    struct queue *picked[WIDE_CLAIM];
    int pick_count;
    bool times_known; /* these two: */
    int64_t due_us, oldest_us;
};

/* ---- The queues that there are */

static int compare(struct span name, const char *other)
{
    size_t len = strlen(other);
    size_t common = name.len < len ? name.len : len;
    int order = common ? memcmp(name.at, other, common) : 0;

    return order ? order : (name.len > len) - (name.len < len);
}

/* Where it stands among them, or would; its suspects wait in "<queue>!". */
static int place_of(const struct wide *w, struct span name)
{
    int low = 0, high = w->queue_count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (compare(name, w->by_name[middle]->name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct queue *find(const struct wide *w, struct span name)
{
    int at = place_of(w, name);

    return at < w->queue_count && compare(name, w->by_name[at]->name) == 0 ? w->by_name[at] : NULL;
}

/* The first word that stands for it; -1: none. */
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
    q->due_us = NOW;
    q->held = true;
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

        if (!pattern_is(word.at) && !find(w, word)) {
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
    w->by_name = calloc(WIDE_QUEUES, sizeof(struct queue *));
    for (int i = 0; w->turns && i < count; i++)
        TAILQ_INIT(&w->turns[i]);
    w->count = w->turns ? count : 0;
    if (w->turns && w->by_name && add_named(w))
        return w;
    wide_free(w);
    return NULL;
}

void wide_free(struct wide *w)
{
    if (!w)
        return;
    for (int i = 0; i < w->queue_count; i++)
        free(w->by_name[i]);
    free(w->by_name);
    free(w->turns);
    free(w);
}

int wide_names(const struct wide *w)
{
    return w->name_count;
}

/* NULL: no word stands for it, or *full. */
static struct queue *learn(struct wide *w, struct span name, bool *full)
{
    struct queue *q = find(w, name);
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

/* The queue in the token of a lease: "turn.../queue/type/...". */
static struct span queue_of(struct span token)
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
        w->by_name[i]->due_us = NOW;
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

/* What scripts of other versions leave in a bell is "1". */
static bool is_several(struct span queue)
{
    return queue.len == 1 && (*queue.at == '*' || *queue.at == '1');
}

static void due_now(struct wide *w, struct queue *q)
{
    q->due_us = NOW;
    q->rung = true;
    w->times_known = false;
}

void wide_ring(struct wide *w, struct span queue)
{
    struct queue *q;
    bool full;

    if (is_several(queue)) {
        wide_claim_all(w);
        wide_hold_all(w);
        return;
    }
    if (queue.len > 1 && queue.at[queue.len - 1] == '!') /* its jobs that run alone */
        queue.len--;
    if (name_is_valid(queue.at, queue.len) && (q = learn(w, queue, &full))) {
        due_now(w, q);
        q->held = true;
    }
}

void wide_give_back(struct wide *w, struct span token)
{
    struct queue *q = find(w, queue_of(token));

    if (q)
        due_now(w, q);
}

static void know_times(struct wide *w)
{
    if (w->times_known)
        return;
    w->due_us = w->oldest_us = NEVER;
    for (int i = 0; i < w->queue_count; i++) {
        const struct queue *q = w->by_name[i];

        if (q->due_us < w->due_us)
            w->due_us = q->due_us;
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

/* ---- What a claim names */

static bool is_due(const struct queue *q, int64_t till_us)
{
    return q->due_us <= till_us;
}

static bool is_stale(const struct queue *q, int64_t till_us)
{
    return q->named_us < till_us;
}

/* Marks queues of the first words, until n are most; returns n. */
static int mark(struct wide *w, int words, bool (*wants)(const struct queue *, int64_t), int64_t till_us,
                int n, int most)
{
    struct queue *q;

    for (int i = 0; i < words; i++)
        TAILQ_FOREACH(q, &w->turns[i], turn)
        {
            if (n >= most)
                return n;
            if (!q->picked && wants(q, till_us)) {
                q->picked = true;
                n++;
            }
        }
    return n;
}

/* How many words, up to the first with a due queue that is not marked: queues of later words wait for that one. */
static int words_till_due(const struct wide *w, int64_t till_us)
{
    const struct queue *q;

    for (int i = 0; i < w->count; i++)
        TAILQ_FOREACH(q, &w->turns[i], turn)
        {
            if (!q->picked && is_due(q, till_us))
                return i + 1;
        }
    return w->count;
}

static int mark_next(struct wide *w, int64_t till_us, int64_t stale_us)
{
    int n = mark(w, w->count, is_due, till_us, 0, SHARE);

    if (n < SHARE)
        return mark(w, w->count, is_stale, stale_us, n, WIDE_CLAIM);
    n = mark(w, words_till_due(w, till_us), is_stale, stale_us, n, WIDE_CLAIM);
    return mark(w, w->count, is_due, till_us, n, WIDE_CLAIM);
}

static void unmark(struct wide *w)
{
    for (int i = 0; i < w->pick_count; i++)
        w->picked[i]->picked = false;
    w->pick_count = 0;
}

struct names wide_pick(struct wide *w, int64_t now_us, int64_t stale_us)
{
    struct queue *q;
    int n;

    unmark(w);
    n = mark_next(w, now_us + TOGETHER_US, stale_us);
    for (int i = 0; i < w->count && w->pick_count < n; i++)
        TAILQ_FOREACH(q, &w->turns[i], turn)
    if (q->picked) {
        q->rung = false;
        w->picks[w->pick_count] = q->name;
        w->picked[w->pick_count++] = q;
    }
    return wide_picked(w);
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

/* ---- What it answers */

/* How many of the picks the leases reach: the last of them that has one, and those before it. */
static int last_leased(const struct wide *w, const struct claim *claim)
{
    int reached = 0;

    for (size_t i = 0; i < claim->lease_count; i++) {
        struct span queue = queue_of(claim->leases[i].token);

        if (reached > 0 && compare(queue, w->picks[reached - 1]) == 0)
            continue;
        for (int k = reached; k < w->pick_count; k++)
            if (compare(queue, w->picks[k]) == 0)
                reached = k + 1;
    }
    return reached;
}

/* How many of the picks, from the first on, had executors to take. */
static int reached_by(const struct wide *w, const struct wide_answer *answer)
{
    const struct claim *claim = answer->claim;

    if (claim->lease_count == 0)
        return claim->more && w->pick_count > 0 ? 1 : w->pick_count;
    if (claim->more || claim->starved || claim->lease_count >= (size_t)answer->free)
        return last_leased(w, claim);
    return w->pick_count;
}

void wide_hear(struct wide *w, const struct wide_answer *answer)
{
    bool again = answer->claim->more || answer->claim->starved;
    int reached = reached_by(w, answer);

    for (int i = 0; i < reached; i++) {
        struct queue *q = w->picked[i];

        if (!q->rung)
            q->due_us = again ? answer->now_us : answer->next_us ? answer->next_us : NEVER;
        q->named_us = answer->now_us;
        TAILQ_REMOVE(&w->turns[q->rank], q, turn);
        TAILQ_INSERT_TAIL(&w->turns[q->rank], q, turn);
    }
    w->times_known = false;
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
