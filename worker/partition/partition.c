#include "worker/partition/inside.h"

#include <stdlib.h>

#include "core/clock.h"
#include "core/random.h"

static bool on_wake(struct partition *p, enum wake why, struct span what)
{
    struct wide *wide = p->mind.wide;

    if (wide && why == WAKE_QUEUE)
        wide_push(wide, what);
    else if (wide)
        wide_ring(wide, what);
    executors_look(p);
    if (!plan_is_woken(&p->mind, why == WAKE_BELL, clock_mono_us()))
        return false;
    partition_claim_soon(p, !wide && why != WAKE_QUEUE);
    return true;
}

static void on_cancelled(struct partition *p, struct span token, struct args *heard)
{
    heard_request(heard, p->prefix, -1, p->session.id, token);
    if (token.len == 1 && *token.at == '*')
        partition_recall_soon(p);
    else
        watch_cancel(p, token);
}

static const struct waking_events waking_events = {.on_wake = on_wake,
                                                   .on_cancelled = on_cancelled,
                                                   .stand = beside_stand,
                                                   .on_claimed = beside_hear_standing};

struct partition *partition_new(struct worker *w, int number)
{
    struct partition *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->worker = w;
    p->number = number;
    p->mind.all = &w->minds;
    p->mind.random = random_seed();
    partition_prefix(w->options.prefix, number, p->prefix);
    p->conditions.partition = p;
    turn_open(p);
    return p;
}

int partition_open(struct partition *p, struct error *e)
{
    const struct options *o = &p->worker->options;

    if ((o->wide || o->queue_count > 1) && !(p->mind.wide = wide_new(o->queues, o->queue_count)))
        return error_set(e, WEIR_EINTERNAL, "worker: out of memory");
    if (adoption_describe(p, e) != 0)
        return e->status;
    if (o->trace_file && !(p->conditions.trace = trace_open(o->trace_file, e)))
        return e->status;
    return 0;
}

/* Counts the queues that are watched, each by a connection. */
static int count_peeks(const struct partition *p)
{
    const struct options *o = &p->worker->options;
    int names = o->wide ? wide_names(p->mind.wide) : o->queue_count;

    return o->wide && names > WIDE_PEEKS ? WIDE_PEEKS : names;
}

struct redis_address partition_address(const struct partition *p)
{
    struct redis_address address = p->worker->options.address;

    address.slot = partition_slot(p->number);
    return address;
}

int partition_connect(struct partition *p, struct error *e)
{
    struct worker *w = p->worker;
    struct redis_address address = partition_address(p);

    p->link = link_new(w->loop, &address, &partition_link_events, p);
    if (p->link)
        p->waking = waking_new(w->loop, &address, p->link, count_peeks(p), &waking_events, p);
    if (!p->waking)
        return error_set(e, WEIR_EINTERNAL, "worker: out of memory");
    link_start(p->link);
    return 0;
}

void partition_disconnect(struct partition *p)
{
    if (p->waking)
        waking_free(p->waking);
    if (p->link)
        link_free(p->link);
    p->waking = NULL;
    p->link = NULL;
}

void partition_free(struct partition *p)
{
    trace_close(p->conditions.trace);
    settling_free(p);
    claim_free(&p->answer);
    counts_free(&p->recording.counts);
    known_limits_free(&p->limits.known);
    wide_free(p->mind.wide);
    free(p->adoption.info);
    free(p);
}
