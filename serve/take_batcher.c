#include "serve/take_batcher.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/redis/link.h"
#include "throttle/take/denials.h"

#define ANSWER_TIMEOUT_S 1 /* somebody's request waits for it */
#define UNDER_WAY_MOST 2   /* one is served, the next one lies ready */

/* A name that lives on no partition 0 but an only one, as its CRC16 is a prime above 64: whoever asks there for it learns how many there are. */
#define PROBE "healthz10"

struct list {
    struct asked *first, **end;
    size_t count;
};

/* The connection to one partition. */
struct outlet {
    struct take_batcher *batcher;
    char prefix[PREFIX_SIZE];
    struct link *link;
    struct list gathered, checks;
    size_t under_way;
    bool begins;          /* it has neither come up nor failed since it was made: questions wait */
    bool failing;         /* and says so once */
    struct error failure; /* why Redis could not be asked last */
};

struct take_batcher {
    struct ev_loop *loop;
    const struct take_batcher_events *events;
    void *arg;
    char prefix[PREFIX_SIZE];
    struct redis_address address;
    struct outlet *outlets[PARTITIONS_MOST]; /* that of partition 0 is always there */
    int partitions;                          /* how many there are; 0: not known */
    struct ev_prepare prepare;
    struct denials *denials;
    bool was_up;
};

/* One call. */
struct call {
    struct outlet *outlet;
    struct list asked;
    int64_t asked_us;
};

static void list_clear(struct list *l)
{
    *l = (struct list){.end = &l->first};
}

static void list_add(struct list *l, struct asked *a)
{
    a->next = NULL;
    *l->end = a;
    l->end = &a->next;
    l->count++;
}

static struct asked *list_take(struct list *l)
{
    struct asked *a = l->first;

    l->first = a->next;
    if (!l->first)
        l->end = &l->first;
    l->count--;
    return a;
}

/* ---- The state of Redis */

static void note_failure(struct outlet *o, const struct error *why)
{
    if (!o->failing)
        log_line(LOG_LEVEL_WARN, "%s; requests are answered without it until it is back", why->text);
    o->failing = true;
    o->failure = *why;
}

static void note_success(struct outlet *o)
{
    if (o->failing)
        log_line(LOG_LEVEL_INFO, "Redis answers again");
    o->failing = false;
}

static void fail_one(const struct outlet *o, struct asked *a)
{
    a->status = WEIR_EUNREACHABLE;
    a->why = o->failure.status ? o->failure.text : "Redis: not connected yet";
}

static void fail_list(struct outlet *o, struct list *l)
{
    struct take_batcher *b = o->batcher;
    struct asked *first = l->first;

    for (struct asked *a = first; a; a = a->next)
        fail_one(o, a);
    list_clear(l);
    if (first)
        b->events->on_answers(b->arg, first);
}

/* ---- Partitions */

static struct outlet *outlet_new(struct take_batcher *b, int p);

/* NULL: out of memory. */
static struct outlet *outlet_at(struct take_batcher *b, int p)
{
    if (!b->outlets[p])
        b->outlets[p] = outlet_new(b, p);
    return b->outlets[p];
}

/* Where a question goes. */
static struct outlet *outlet_of(struct take_batcher *b, const struct asked *a)
{
    return outlet_at(b, partition_home(a->q.name, strlen(a->q.name), b->partitions));
}

/* One that is down, and was up or has failed, answers nothing. */
static bool can_ask(const struct outlet *o)
{
    return o && (link_is_up(o->link) || o->begins);
}

/* A question whose limit lives elsewhere goes there, now that it is known how many partitions there are; false: it was sent on before. */
static bool ask_elsewhere(struct take_batcher *b, struct asked *a)
{
    struct outlet *o = a->hops++ == 0 ? outlet_of(b, a) : NULL;

    if (o)
        list_add(&o->gathered, a);
    return o != NULL;
}

/* ---- Answers */

static struct question question_of(const struct asked *a)
{
    return (struct question){a->q.name, a->q.key, a->q.cost};
}

/* One partition has answered a check: asks the next one, if there is one. false: there is none, or it cannot be asked, which is its answer. */
static bool check_next(struct take_batcher *b, struct asked *a)
{
    struct outlet *o;

    a->status = 0;
    if (++a->hops >= b->partitions)
        return false;
    o = outlet_at(b, a->hops);
    if (can_ask(o))
        list_add(&o->checks, a);
    else
        fail_one(o ? o : b->outlets[0], a);
    return can_ask(o);
}

/* Reads the i-th answer of a call; false: the question waits for another one. */
static bool read_answer(const struct call *c, const struct redisReply *reply, size_t i, struct asked *a)
{
    const struct question q = question_of(a);
    struct take_batcher *b = c->outlet->batcher;
    bool elsewhere = take_is_elsewhere(reply, i, &b->partitions);

    if (a->checks)
        return !check_next(b, a);
    if (elsewhere) {
        if (ask_elsewhere(b, a))
            return false;
        a->status = WEIR_ENOTNOW;
        a->why = TAKE_NOWHERE;
        return true;
    }
    a->status = take_answer(reply, i, &a->take, &a->why);
    if (a->status == 0 && !a->take.allowed && !*a->q.costs)
        denials_keep(b->denials, &q, c->asked_us, &a->take);
    return true;
}

/* Returns the questions that have their answers, as a list. */
static struct asked *read_answers(struct call *c, const struct redisReply *reply)
{
    struct list answered;

    list_clear(&answered);
    for (size_t i = 0; c->asked.first; i++) {
        struct asked *a = list_take(&c->asked);

        if (read_answer(c, reply, i, a))
            list_add(&answered, a);
    }
    return answered.first;
}

static void on_reply(void *arg, const struct redisReply *reply)
{
    struct call *c = arg;
    struct outlet *o = c->outlet;
    struct take_batcher *b = o->batcher;
    struct asked *first;
    struct error e;

    o->under_way--;
    if (!reply) {
        error_set(&o->failure, WEIR_EUNREACHABLE, "Redis: no answer; the connection was lost");
        fail_list(o, &c->asked);
    } else if (take_reply(reply, c->asked.count, &e) < 0) {
        note_failure(o, &e);
        fail_list(o, &c->asked);
    } else {
        note_success(o);
        first = read_answers(c, reply);
        if (first)
            b->events->on_answers(b->arg, first);
    }
    free(c);
}

/* ---- Asking */

/* Sends questions of l, as many as one call takes. false: out of memory, nothing is changed. */
static bool send_call(struct outlet *o, struct list *l, bool peek)
{
    struct call *c = malloc(sizeof *c);
    struct args a = {0};

    if (!c) {
        error_no_memory(&o->failure, "serve");
        return false;
    }
    *c = (struct call){.outlet = o, .asked_us = clock_mono_us()};
    list_clear(&c->asked);
    take_request(&a, o->prefix, -1, "", peek);
    while (l->first && c->asked.count < TAKE_MOST) {
        struct asked *one = list_take(l);

        take_add(&a, &one->q);
        list_add(&c->asked, one);
    }
    o->under_way++;
    link_send(o->link, &a, ANSWER_TIMEOUT_S, on_reply, c);
    args_free(&a);
    return true;
}

static void send_gathered(struct outlet *o)
{
    bool can = link_is_up(o->link);

    while (can && o->checks.first && o->under_way < UNDER_WAY_MOST)
        can = send_call(o, &o->checks, true);
    while (can && o->gathered.first && o->under_way < UNDER_WAY_MOST)
        can = send_call(o, &o->gathered, false);
    if (can || o->begins)
        return;
    fail_list(o, &o->checks);
    fail_list(o, &o->gathered);
}

/* Before the loop waits, and before the links' own watchers send. */
static void on_prepare(struct ev_loop *loop, struct ev_prepare *prepare, int revents)
{
    struct take_batcher *b = prepare->data;

    (void)loop, (void)revents;
    for (int p = 0; p == 0 || p < b->partitions; p++)
        if (b->outlets[p])
            send_gathered(b->outlets[p]);
}

bool take_batcher_ask(struct take_batcher *b, struct asked *a)
{
    const struct question q = question_of(a);
    struct outlet *o;

    a->status = 0;
    a->checks = false;
    a->hops = 0;
    if (!*a->q.costs && denials_find(b->denials, &q, clock_mono_us(), &a->take))
        return true;
    o = outlet_of(b, a);
    if (!can_ask(o)) {
        fail_one(o ? o : b->outlets[0], a);
        return true;
    }
    list_add(&o->gathered, a);
    return false;
}

bool take_batcher_check(struct take_batcher *b, struct asked *a)
{
    struct outlet *o = b->outlets[0];

    a->q = (struct take_question){.name = PROBE, .cost = 1};
    a->status = 0;
    a->checks = true;
    a->hops = 0;
    if (can_ask(o)) {
        list_add(&o->checks, a);
        return false;
    }
    fail_one(o, a);
    return true;
}

/* ---- The connections */

static void on_up(void *arg)
{
    struct outlet *o = arg;

    o->batcher->was_up = true;
    o->begins = false;
    note_success(o);
}

static void on_down(void *arg, const struct error *why)
{
    struct outlet *o = arg;
    struct take_batcher *b = o->batcher;

    o->begins = false;
    note_failure(o, why);
    fail_list(o, &o->checks);
    fail_list(o, &o->gathered);
    if (!b->was_up && (why->status == WEIR_EREFUSED || why->status == WEIR_ECONFIG))
        b->events->on_refused(b->arg, why);
}

static const struct link_events link_events = {.on_up = on_up, .on_down = on_down};

static struct outlet *outlet_new(struct take_batcher *b, int p)
{
    struct redis_address address = b->address;
    struct outlet *o = calloc(1, sizeof *o);

    if (!o)
        return NULL;
    o->batcher = b;
    o->begins = true;
    partition_prefix(b->prefix, p, o->prefix);
    list_clear(&o->checks);
    list_clear(&o->gathered);
    address.slot = partition_slot(p);
    o->link = link_new(b->loop, &address, &link_events, o);
    if (!o->link) {
        free(o);
        return NULL;
    }
    link_start(o->link);
    return o;
}

static void outlet_free(struct outlet *o)
{
    if (!o)
        return;
    fail_list(o, &o->checks);
    fail_list(o, &o->gathered);
    link_free(o->link);
    free(o);
}

struct take_batcher *take_batcher_new(struct ev_loop *loop, const struct redis_address *address,
                                      const char *prefix, const struct take_batcher_events *events, void *arg)
{
    struct take_batcher *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    *b = (struct take_batcher){.loop = loop, .events = events, .arg = arg, .address = *address};
    strncpy(b->prefix, prefix, sizeof b->prefix - 1);
    b->denials = denials_new();
    b->outlets[0] = b->denials ? outlet_new(b, 0) : NULL;
    if (!b->outlets[0]) {
        free(b->denials);
        free(b);
        return NULL;
    }
    ev_prepare_init(&b->prepare, on_prepare);
    b->prepare.data = b;
    ev_prepare_start(loop, &b->prepare);
    return b;
}

void take_batcher_free(struct take_batcher *b)
{
    if (!b)
        return;
    ev_prepare_stop(b->loop, &b->prepare);
    for (int p = 0; p < PARTITIONS_MOST; p++)
        outlet_free(b->outlets[p]);
    free(b->denials);
    free(b);
}
