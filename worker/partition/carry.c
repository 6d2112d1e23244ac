/* Jobs that were met on the wrong partition (queue/state/away.lua) are carried to where their type lives: read here, written
 * there, removed here. Each step may be repeated, so a step that fails ends it: a heartbeat says that there are still some. A
 * page at a time goes to one partition after the other. No turn waits for that. */
#include "worker/partition/carry.h"

#include "core/log/log.h"
#include "queue/turn/away.h"
#include "worker/partition/partition.h"

static bool is_up(const struct partition *p)
{
    return !p->worker->ending.ended && p->session.registered && link_is_up(p->link);
}

/* NULL: it cannot be reached now. */
static struct partition *target(const struct partition *p, int to)
{
    struct partition *q =
        to < p->worker->partition_count && to != p->number ? p->worker->partitions[to] : NULL;

    return q && is_up(q) ? q : NULL;
}

static void ask(struct partition *at, struct args *a, link_reply *on_reply, struct partition *p)
{
    link_send(at->link, a, REQUEST_TIMEOUT_S, on_reply, p);
    args_free(a);
}

static void stop(struct partition *p)
{
    p->carrying.under_way = false;
    partition_carry(p, 0);
}

static void log_refused(struct partition *p, const struct error *e)
{
    log_once(&p->worker->logged, LOG_LEVEL_WARN,
             "jobs of partition %d that belong on partition %d wait to be carried there: %s", p->number,
             p->carrying.to, e->text);
    stop(p);
}

static void on_done(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct error e;
    int64_t left = 0;

    if (reply && away_done_reply(reply, &left, &e) != 0) {
        log_refused(p, &e);
    } else {
        if (left > 0)
            p->carrying.wanted |= UINT64_C(1) << p->carrying.to;
        stop(p);
    }
}

static void remove_arrived(struct partition *p, int64_t number)
{
    struct args a;

    args_init(&a);
    away_done_request(&a, p->prefix, -1, p->carrying.to, number);
    ask(p, &a, on_done, p);
}

static void on_arrived(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct error e;
    int64_t number;

    if (reply && away_arrive_reply(reply, &number, &e) != 0)
        log_refused(p, &e);
    else if (reply && is_up(p))
        remove_arrived(p, number);
    else
        stop(p);
}

static void bring(struct partition *p, struct partition *q, const struct redisReply *records)
{
    struct args a;

    args_init(&a);
    away_arrive_request(&a, q->prefix, -1, p->number, records);
    ask(q, &a, on_arrived, p);
}

static void on_read(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg, *q = target(p, p->carrying.to);
    struct error e;
    size_t count = 0;

    if (reply && away_read_reply(reply, &count, &e) != 0)
        log_refused(p, &e);
    else if (count > 0 && q)
        bring(p, q, reply);
    else
        stop(p);
}

static void read_for(struct partition *p, int to)
{
    struct args a;

    p->carrying.wanted &= ~(UINT64_C(1) << to);
    p->carrying.to = to;
    p->carrying.under_way = true;
    args_init(&a);
    away_read_request(&a, p->prefix, -1, to);
    ask(p, &a, on_read, p);
}

void partition_carry(struct partition *p, uint64_t away)
{
    struct carrying *c = &p->carrying;

    c->wanted |= away;
    if (c->under_way || c->wanted == 0 || p->leaving || !is_up(p))
        return;
    for (int to = 0; to < p->worker->partition_count && !c->under_way; to++)
        if (c->wanted & UINT64_C(1) << to && target(p, to))
            read_for(p, to);
}
