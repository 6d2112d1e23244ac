/* Draining: a worker that has nothing to do asks whether anything is left; if not, it leaves. */
#include "worker/partition/drained.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/partition.h"

#define DRAINED_US (50 * MS)     /* between questions whether anything is left, */
#define DRAINED_PAGE_US (2 * MS) /* and for each page of it */
#define DRAINING_US (5000 * MS)  /* between lines that say what is left */

/* Of a worker that serves more queues than it can name at once: in how many parts it asks for them. */
static int pages(const struct partition *p)
{
    return p->wide ? 1 + wide_count(p->wide) / WIDE_CLAIM : 0;
}

/* All is done but what waits for a person. */
static void end_drained(struct partition *p, const struct drained *d)
{
    char paused[80] = "", aside[80] = "";
    struct error e = {0};

    if (d->paused > 0)
        snprintf(paused, sizeof paused, "%" PRId64 " in paused queues (weir queue list)", d->paused);
    if (d->aside > 0)
        snprintf(aside, sizeof aside, "%" PRId64 " aside, of paused batches (weir batch list)", d->aside);
    if (d->paused + d->aside > 0)
        error_set(&e, WEIR_ENOTNOW,
                  "worker: drained, but jobs are left: %s%s%s; resume them and run it again", paused,
                  *paused && *aside ? ", " : "", aside);
    if (e.status != 0)
        worker_fail(p->worker, &e);
    partition_leave(p);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Each page says the same of types. Was this the last one? */
static bool add_page(struct draining *draining, const struct drained *d)
{
    struct drained *sum = &draining->sum;

    sum->waiting += d->waiting;
    sum->paused += d->paused;
    sum->parked = larger(sum->parked, d->parked);
    sum->running = larger(sum->running, d->running);
    sum->due = larger(sum->due, d->due);
    sum->aside = larger(sum->aside, d->aside);
    return --draining->pages_left == 0;
}

static void judge(struct partition *p, const struct drained *d)
{
    if (d->waiting + d->parked + d->running + d->due == 0) {
        if (!p->settling.finished.head && !p->claims.more && (!p->wide || wide_is_complete(p->wide)))
            end_drained(p, d);
    } else if (clock_mono_us() - p->draining.logged_us > DRAINING_US) {
        log_line(LOG_LEVEL_INFO,
                 "draining: %" PRId64 " waiting, %" PRId64 " parked, %" PRId64 " running, %" PRId64 " due",
                 d->waiting, d->parked, d->running, d->due);
        p->draining.logged_us = clock_mono_us();
    }
}

static void on_drained(void *arg, const struct redisReply *reply)
{
    struct partition *p = arg;
    struct drained d;
    struct error e;

    if (reply && drained_reply(reply, &d, &e) != 0)
        partition_refused(p, &e);
    else if (reply && add_page(&p->draining, &d))
        judge(p, &p->draining.sum);
    partition_answered(p);
}

void partition_ask_drained(struct partition *p, struct args *a)
{
    const char *page[WIDE_CLAIM];
    struct names queues = partition_queues(p);
    int first = 0;

    p->draining.sum = (struct drained){0};
    p->draining.pages_left = p->wide ? pages(p) : 1;
    for (int left = p->draining.pages_left; left > 0; left--) {
        if (p->wide)
            queues = (struct names){page, wide_page(p->wide, first, page, WIDE_CLAIM)};
        first += queues.count;
        drained_request(a, p->prefix, -1, queues, handlers_types(&p->worker->handlers));
        partition_send(p, a, on_drained);
    }
}

int64_t partition_drained_time(struct partition *p)
{
    return p->worker->options.drain && partition_takes_jobs(p) && !p->claims.more && partition_is_idle(p)
               ? p->claims.sent_us + DRAINED_US + pages(p) * DRAINED_PAGE_US
               : NEVER;
}
