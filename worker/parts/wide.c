#include "worker/parts/wide.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "core/random.h"

#define SHARE                                                                                                \
    (WIDE_CLAIM - 8)     /* of a claim, for queues where something is due: the rest is for the others  \
                                */
#define TOGETHER_US 2000 /* what is due so soon is claimed together: slots are granted farther ahead */
#define NOW 1            /* due: long ago */
#define NEVER INT64_MAX

#define SERVED_US (10 * INT64_C(1000000)) /* each queue is served so often; of more than SERVED less often */
#define SERVED 1000
#define GRANTED_US 50000 /* slots are granted so far ahead, at most */
#define WAITS_MOST 4     /* gates of a queue, as in claim_dues.lua */
#define GATES_MOST 4096  /* that are known; then all are forgotten */

/* Jobs of some queues wait for it. */
struct gate {
    int64_t opens_us; /* for what costs least; 0: not known */
    int width;        /* of the queues that it holds alone, so many are due when it opens */
    int left, asked;  /* of these in this pick: not marked yet, marked */
    bool heard;       /* by the last answer */
    bool may_open;    /* in the next claim, for a queue that is marked for something else */
    char name[];
};

struct wait {
    struct gate *gate;
    int64_t at_us; /* not before */
};

struct queue {
    TAILQ_ENTRY(queue) turn;
    int rank;      /* of the word that stands for it */
    bool is_named; /* by that */
    bool is_known, held, picked;
    bool rung;      /* since it was picked */
    bool leased;    /* a job of it, by the last answer, */
    bool told;      /* that says something of it: */
    bool missed;    /* the claim did not come to it */
    int64_t due_us; /* but for the gates it waits for: */
    struct wait waits[WAITS_MOST];
    int wait_count;
    int64_t named_us, served_us; /* in a claim, last */
    char name[];
};

TAILQ_HEAD(turns, queue);

struct wide {
    const char *const *words;
    int count, name_count;
    bool names_all;         /* each claim does: it is not wide */
    int *order;             /* of the words in the next claim */
    struct turns *turns;    /* of each word: whose turn is next */
    struct queue **by_name; /* sorted */
    int queue_count;
    struct gate **gates; /* sorted by name */
    int gate_count;
    bool is_complete;
    bool knows;                              /* the last answer has told when each queue is due */
    int64_t till_us, stale_us, forgotten_us; /* of the last pick */
    const char *picks[WIDE_CLAIM], *asks[WIDE_ASKED];
    struct queue *picked[WIDE_CLAIM], *asked[WIDE_ASKED];
    int pick_count, ask_count;
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
    w->order = calloc((size_t)count, sizeof *w->order);
    w->by_name = calloc(WIDE_QUEUES, sizeof(struct queue *));
    w->gates = calloc(GATES_MOST, sizeof(struct gate *));
    if (!w->turns || !w->order || !w->by_name || !w->gates) {
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
    for (int i = 0; i < w->gate_count; i++)
        free(w->gates[i]);
    free(w->by_name);
    free(w->gates);
    free(w->order);
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
static bool is_any(struct span queue)
{
    return queue.len == 1 && (*queue.at == '*' || *queue.at == '1');
}

static void due_now(struct wide *w, struct queue *q)
{
    q->due_us = NOW;
    q->rung = true;
    w->times_known = false;
}

/* The next word of a text; empty: there is none. */
static struct span next_word(struct span *text)
{
    const char *end = text->len ? memchr(text->at, ' ', text->len) : NULL;
    struct span word = {text->at, end ? (size_t)(end - text->at) : text->len};
    size_t used = word.len + (end != NULL);

    *text = (struct span){text->at + used, text->len - used};
    return word;
}

static void ring_queue(struct wide *w, struct span queue)
{
    struct queue *q;
    bool full;

    if (queue.len > 1 && queue.at[queue.len - 1] == '!') /* its jobs that run alone */
        queue.len--;
    if (name_is_valid(queue.at, queue.len) && (q = learn(w, queue, &full))) {
        due_now(w, q);
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
        ring_queue(w, next_word(&queues));
}

void wide_push(struct wide *w, struct span queue)
{
    struct queue *q = find(w, queue);

    if (q)
        due_now(w, q);
}

void wide_give_back(struct wide *w, struct span token)
{
    struct queue *q = find(w, queue_of(token));

    if (q)
        due_now(w, q);
}

static int64_t latest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t wait_end(const struct wait *wait)
{
    return latest(wait->at_us, wait->gate->opens_us);
}

static int64_t due_time(const struct queue *q)
{
    int64_t at = q->due_us;

    for (int i = 0; i < q->wait_count; i++)
        if (wait_end(&q->waits[i]) < at)
            at = wait_end(&q->waits[i]);
    return at;
}

static void know_times(struct wide *w)
{
    if (w->times_known)
        return;
    w->due_us = w->oldest_us = NEVER;
    for (int i = 0; i < w->queue_count; i++) {
        const struct queue *q = w->by_name[i];
        int64_t due_us = due_time(q);

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

/* ---- What a claim names */

void wide_draw(struct wide *w, const int *weights)
{
    int sum = 0;

    for (int i = 0; i < w->count; i++)
        sum += weights[w->order[i]];
    for (int first = 0; first < w->count - 1; first++) {
        int at = first, word;

        for (double draw = random_fraction() * sum;
             at < w->count - 1 && (draw -= weights[w->order[at]]) >= 0;)
            at++;
        word = w->order[at];
        w->order[at] = w->order[first];
        w->order[first] = word;
        sum -= weights[word];
    }
}

/* Must a claim serve it, of whose gates as many queues are marked? */
static bool is_due(const struct wide *w, const struct queue *q)
{
    if (q->due_us <= w->till_us)
        return true;
    for (int i = 0; i < q->wait_count; i++)
        if (q->waits[i].gate->left > 0 && wait_end(&q->waits[i]) <= w->till_us)
            return true;
    return false;
}

static bool is_stale(const struct wide *w, const struct queue *q)
{
    return q->named_us < w->stale_us;
}

static bool is_forgotten(const struct wide *w, const struct queue *q)
{
    return q->served_us < w->forgotten_us || (q->held && is_stale(w, q));
}

/* What is due is served soon. */
static bool may_ask(const struct wide *w, const struct queue *q)
{
    return w->names_all || (is_stale(w, q) && q->due_us > w->till_us);
}

/* It is marked as due: it is one of those for which its gates open. */
static void use_gates(const struct wide *w, struct queue *q)
{
    for (int i = 0; i < q->wait_count; i++) {
        struct gate *gate = q->waits[i].gate;

        if (gate->left > 0 && wait_end(&q->waits[i]) <= w->till_us) {
            gate->left--;
            gate->asked++;
        }
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
                if (wants == is_due)
                    use_gates(w, q);
                n++;
            }
        }
    return n;
}

/* How many words, up to the first with a due queue that is not marked: queues of later words wait for that one. */
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

/* A queue that is served for another reason takes no slot before the one whose turn it is: that is marked, too. */
static int mark_first(struct wide *w, int n)
{
    int64_t soon_us = w->till_us + GRANTED_US;
    bool any = false;
    struct queue *q;

    for (int i = 0; i < w->queue_count; i++)
        for (int k = 0; w->by_name[i]->picked && k < w->by_name[i]->wait_count; k++) {
            struct wait *wait = &w->by_name[i]->waits[k];

            wait->gate->may_open |= wait->gate->asked == 0 && wait_end(wait) <= soon_us;
            any |= wait->gate->may_open;
        }
    for (int i = 0; any && i < w->count; i++)
        TAILQ_FOREACH(q, &w->turns[w->order[i]], turn)
    for (int k = 0; k < q->wait_count && n < WIDE_CLAIM; k++)
        if (q->waits[k].gate->may_open && q->waits[k].gate->asked == 0 && wait_end(&q->waits[k]) <= soon_us) {
            q->waits[k].gate->asked++;
            n += !q->picked;
            q->picked = true;
        }
    return n;
}

/* Marks those that are to be served; returns of how many words queues may be asked for. */
static int mark_next(struct wide *w)
{
    int n = mark(w, w->count, is_due, 0, w->names_all ? WIDE_CLAIM : SHARE), words;

    words = n < SHARE || w->names_all ? w->count : words_till_due(w);
    n = mark(w, words, is_forgotten, n, w->knows && !w->names_all ? SHARE : WIDE_CLAIM);
    n = mark_first(w, n);
    mark(w, w->count, is_due, n, WIDE_CLAIM);
    return words;
}

static void unmark(struct wide *w)
{
    for (int i = 0; i < w->pick_count; i++)
        w->picked[i]->picked = false;
    for (int i = 0; i < w->gate_count; i++) {
        w->gates[i]->left = w->gates[i]->width;
        w->gates[i]->asked = 0;
        w->gates[i]->may_open = false;
    }
    w->pick_count = w->ask_count = 0;
}

/* Which are due, which no claim has named for a while, and which none has served: a bell may have been lost. Where nothing is known of each, the
 * latter two are the same. */
static void set_times(struct wide *w, int64_t now_us, int64_t stale_us)
{
    int64_t often_us = w->queue_count > SERVED ? SERVED_US * w->queue_count / SERVED : SERVED_US;

    w->till_us = now_us + TOGETHER_US;
    w->stale_us = stale_us;
    w->forgotten_us = w->knows ? now_us - often_us : stale_us;
}

struct names wide_pick(struct wide *w, int64_t now_us, int64_t stale_us)
{
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
                w->asks[w->ask_count] = q->name;
                w->asked[w->ask_count++] = q;
            }
        }
    return wide_picked(w);
}

struct names wide_asked(const struct wide *w)
{
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

/* ---- What it answers */

/* How many of the picks the leases reach: the last of them that has one, and those before it. */
static int last_leased(const struct wide *w, const struct claim *claim)
{
    int reached = 0;

    for (size_t i = 0; i < claim->lease_count; i++) {
        struct span queue = queue_of(claim->leases[i].token);

        if (reached > 0 && compare(queue, w->picked[reached - 1]->name) == 0)
            continue;
        for (int k = reached; k < w->pick_count; k++)
            if (compare(queue, w->picked[k]->name) == 0) {
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

/* How many of the picks, from the first on, had executors to take. */
static int reached_by(const struct wide *w, const struct wide_answer *answer)
{
    const struct claim *claim = answer->claim;
    int last = last_leased(w, claim);

    if (claim->lease_count == 0)
        return claim->more && w->pick_count > 0 ? 1 : w->pick_count;
    return lacks_executors(answer) ? last : w->pick_count;
}

/* ---- When each is due */

static int gate_place(const struct wide *w, struct span name)
{
    int low = 0, high = w->gate_count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (compare(name, w->gates[middle]->name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What is due at their gates is due by itself. */
static void forget_gates(struct wide *w)
{
    for (int i = 0; i < w->queue_count; i++) {
        w->by_name[i]->due_us = due_time(w->by_name[i]);
        w->by_name[i]->wait_count = 0;
    }
    for (int i = 0; i < w->gate_count; i++)
        free(w->gates[i]);
    w->gate_count = 0;
}

/* NULL: out of memory. */
static struct gate *gate_of(struct wide *w, struct span name)
{
    int at = gate_place(w, name);
    struct gate *gate;

    if (at < w->gate_count && compare(name, w->gates[at]->name) == 0)
        return w->gates[at];
    if (!(gate = calloc(1, sizeof *gate + name.len + 1)))
        return NULL;
    if (w->gate_count == GATES_MOST) {
        forget_gates(w);
        at = 0;
    }
    memcpy(gate->name, name.at, name.len);
    gate->width = 1;
    memmove(w->gates + at + 1, w->gates + at, (size_t)(w->gate_count - at) * sizeof *w->gates);
    w->gates[at] = gate;
    w->gate_count++;
    return gate;
}

/* A time of Redis's clock by ours; NOW, or 0 where it is not known. */
static int64_t next_time(struct span *text, int64_t offset_us)
{
    struct span word = next_word(text);
    int64_t at = word.len ? strtoll(word.at, NULL, 10) : -1; /* the reply ends with a NUL */

    return at < 0 ? NEVER : at > NOW ? at + offset_us : at;
}

/* "<queue> <when> [<gate> <when> <opens>]..." */
static void hear_due(struct wide *w, struct span text, const struct wide_answer *answer)
{
    struct queue *q = find(w, next_word(&text));
    int64_t due_us = next_time(&text, answer->offset_us);

    if (!q)
        return;
    q->told = true;
    q->missed = due_us == 0;
    if (q->missed) {
        if (!q->picked)
            due_now(w, q); /* jobs stand there */
        return;
    }
    q->served_us = answer->now_us;
    q->wait_count = 0;
    if (!q->rung)
        q->due_us = due_us;
    while (text.len > 0) {
        struct gate *gate = gate_of(w, next_word(&text));
        int64_t at_us = next_time(&text, answer->offset_us), opens_us = next_time(&text, answer->offset_us);

        if (gate && q->wait_count < WAITS_MOST) {
            q->waits[q->wait_count++] = (struct wait){gate, at_us};
            gate->heard = true;
            if (opens_us)
                gate->opens_us = opens_us;
        } else if (at_us < q->due_us) {
            q->due_us = at_us;
        }
    }
}

static void hear_dues(struct wide *w, const struct wide_answer *answer)
{
    const struct claim *claim = answer->claim;

    for (int i = 0; i < w->gate_count; i++)
        w->gates[i]->heard = false;
    for (size_t i = 1; i < claim->due_count; i++)
        hear_due(w, claim->dues[i], answer);
    for (int i = 0; i < w->pick_count; i++)
        if (!w->picked[i]->told && !w->picked[i]->rung) { /* it is paused */
            w->picked[i]->due_us = NEVER;
            w->picked[i]->wait_count = 0;
        }
    for (int i = 0; i < w->gate_count && !lacks_executors(answer); i++) {
        struct gate *gate = w->gates[i];
        bool is_open = !gate->heard || gate->opens_us <= answer->now_us;

        if (gate->asked > 0)
            gate->width =
                is_open ? (gate->width < SHARE / 2 ? 2 * gate->width : SHARE) : (gate->width + 1) / 2;
    }
}

static void hear_next(struct queue *q, const struct wide_answer *answer)
{
    bool again = answer->claim->more || answer->claim->starved;

    q->wait_count = 0;
    q->served_us = answer->now_us;
    if (!q->rung)
        q->due_us = again ? answer->now_us : answer->on_duty && answer->next_us ? answer->next_us : NEVER;
}

/* What an answer says of all queues holds for each. */
static void hear_for_all(struct wide *w, const struct wide_answer *answer, int reached)
{
    for (int i = 0; i < (w->names_all ? w->queue_count : reached); i++)
        hear_next(w->names_all ? w->by_name[i] : w->picked[i], answer);
}

/* It was served. It goes behind the others if it got an executor, or none though something is due there. */
static void had_its_turn(struct wide *w, struct queue *q, int64_t now_us)
{
    q->named_us = now_us;
    if (!q->leased && due_time(q) > now_us)
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
