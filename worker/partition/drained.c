/* Draining: a worker that has nothing to do asks whether anything is left; if not, it leaves. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log/log.h"
#include "core/number.h"
#include "worker/partition/inside.h"

#define DRAINING_US (5000 * MS) /* between lines that say what is left */

static void add_left(const struct worker *w, struct drained *left)
{
    for (int i = 0; i < w->partition_count; i++) {
        left->paused += w->partitions[i]->draining.sum.paused;
        left->stopped += w->partitions[i]->draining.sum.stopped;
        left->aside += w->partitions[i]->draining.sum.aside;
    }
}

static void say_left(char *text, size_t size, int64_t jobs, const char *where)
{
    size_t len = strlen(text);

    if (jobs > 0)
        snprintf(text + len, size - len, "%s%" PRId64 " %s", len ? ", " : "", jobs, where);
}

/* Ends a worker that has drained: all is done but what waits for a person. */
static void end_drained(struct worker *w)
{
    struct drained left = {0};
    struct error e = {0};
    char text[240] = "";

    add_left(w, &left);
    say_left(text, sizeof text, left.paused, "in paused queues (weir queue list)");
    say_left(text, sizeof text, left.stopped, "of paused types and keys (weir status)");
    say_left(text, sizeof text, left.aside, "aside, of paused batches (weir batch list)");
    if (*text) {
        error_set(&e, WEIR_ENOTNOW, "worker: drained, but jobs are left: %s; resume them and run it again",
                  text);
        worker_fail(w, &e);
    }
    for (int i = 0; i < w->partition_count; i++)
        leaving_begin(w->partitions[i]);
}

static void note_left(struct worker *w)
{
    for (int i = 0; i < w->partition_count; i++)
        w->partitions[i]->draining.empty = 0;
}

/* Notes that nothing is left in a partition. A job of another partition may bring something: of several, all must be empty
 * twice in a row, while nothing runs here. So it is with patterns: that nothing was left is known once no type has come since for them. */
static void note_empty(struct partition *p)
{
    struct worker *w = p->worker;

    if (!worker_is_idle(w)) {
        note_left(w);
        return;
    }
    p->draining.empty++;
    for (int i = 0; i < w->partition_count; i++)
        if (w->partitions[i]->draining.empty <
            (w->partition_count > 1 || w->handlers->pattern_count > 0 ? 2 : 1))
            return;
    end_drained(w);
}

/* Adds a page to the sum. Pages come in order: those of all types, for the same queues; then those for other queues, which say the same of
 * types. Returns whether it was the last one. */
static bool add_page(struct draining *draining, const struct drained *d)
{
    struct drained *sum = &draining->sum, *part = &draining->part;
    bool first = draining->came % draining->of_types == 0;

    if (first) {
        *part = (struct drained){0};
        sum->waiting += d->waiting;
        sum->paused += d->halted;
    }
    sum->paused += d->paused;
    sum->stopped += d->stopped;
    part->parked += d->parked;
    part->running += d->running;
    part->aside += d->aside;
    sum->due = max_i64(sum->due, d->due);
    sum->parked = max_i64(sum->parked, part->parked);
    sum->running = max_i64(sum->running, part->running);
    sum->aside = max_i64(sum->aside, part->aside);
    return ++draining->came == draining->pages;
}

static void judge(struct partition *p, const struct drained *d)
{
    if (d->waiting + d->parked + d->running + d->due == 0) {
        if (!p->settling.finished.head && !p->mind.claims.more &&
            (!p->worker->options.wide || wide_is_complete(p->mind.wide)))
            note_empty(p);
        return;
    }
    note_left(p->worker);
    if (clock_mono_us() - p->draining.logged_us > DRAINING_US) {
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
        request_refused(p, &e);
    else if (reply && add_page(&p->draining, &d))
        judge(p, &p->draining.sum);
    request_answered(p);
}

/* Asks about all types, for some queues. */
static void ask_types(struct partition *p, struct args *a, struct names queues)
{
    struct names all = handlers_types(p->worker->handlers);
    int most = when_drained_types(&p->mind);

    for (int i = 0; i < p->draining.of_types; i++) {
        int left = all.count - i * most;
        struct names types = {all.at + (size_t)i * (size_t)most, left < most ? left : most};

        drained_request(a, p->prefix, -1, queues, types);
        request_send(p, a, on_drained);
    }
}

static void ask_left(struct partition *p, struct args *a)
{
    const char *page[WIDE_CLAIM];
    struct names queues = claiming_queues(p);
    int first = 0;

    p->worker->minds.type_count = p->worker->handlers->count;
    p->draining.sum = (struct drained){0};
    p->draining.came = 0;
    p->draining.pages = when_drained_pages(&p->mind);
    p->draining.of_types = p->draining.pages / when_drained_queue_pages(&p->mind);
    for (int left = when_drained_queue_pages(&p->mind); left > 0; left--) {
        if (p->worker->options.wide)
            queues = (struct names){page, wide_page(p->mind.wide, first, page, WIDE_CLAIM)};
        first += queues.count;
        ask_types(p, a, queues);
    }
}

/* ---- The types of patterns */

#define MATCH_MOST 500 /* types that a call looks at */

static void ask_types_of_patterns(struct partition *p, struct args *a, uint64_t cursor);

/* Takes the types of a page, and asks for the next one; behind the last one, what is left. */
static void hear_types(struct partition *p, const struct matched *page)
{
    struct handlers *handlers = p->worker->handlers;
    int known = handlers->count;
    bool all = true;
    struct args a = {0};

    for (size_t i = 0; i < page->count; i++)
        all &= handlers_take(handlers, page->names[i]) != NULL;
    if (handlers->count > known || !all)
        note_left(p->worker);
    if (page->next)
        ask_types_of_patterns(p, &a, page->next);
    else
        ask_left(p, &a);
}

static void on_types(void *arg, const struct redisReply *reply)
{
    match_hear(arg, reply, hear_types);
}

static void ask_types_of_patterns(struct partition *p, struct args *a, uint64_t cursor)
{
    match_request(a, p->prefix, -1, "types", cursor, MATCH_MOST, handlers_patterns(p->worker->handlers));
    request_send(p, a, on_types);
}

void drained_ask(struct partition *p, struct args *a)
{
    if (p->worker->handlers->pattern_count > 0)
        ask_types_of_patterns(p, a, 0);
    else
        ask_left(p, a);
}
