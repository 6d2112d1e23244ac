/* A worker that serves patterns asks every second which queues there are, a page at a time. */
#include "worker/match.h"

#include "core/clock.h"
#include "core/log/log.h"
#include "worker/worker.h"

#define MATCH_US (1000 * MS)
#define PAGE_MOST 500

static void log_full(struct weir_worker *w)
{
    log_once(
        &w->logged, LOG_LEVEL_WARN,
        "more than %d queues match: the others are not served until some are empty; use narrower patterns",
        WIDE_QUEUES);
}

static void hear_page(struct weir_worker *w, const struct matched *page)
{
    int known = wide_count(w->wide);
    bool all = true;

    for (size_t i = 0; i < page->count; i++)
        all &= wide_learn(w->wide, page->queues[i]);
    if (wide_count(w->wide) > known)
        worker_claim_soon(w, false);
    if (!all)
        log_full(w);
    w->matching.cursor = page->next;
    if (page->next == 0)
        wide_forget_others(w->wide);
    w->matching.at_us = page->next ? 0 : clock_mono_us() + MATCH_US;
}

static void on_matched(void *arg, const struct redisReply *reply)
{
    struct weir_worker *w = arg;
    struct matched page;
    struct error e;

    if (reply && match_reply(reply, &page, &e) != 0) {
        worker_refused(w, &e);
    } else if (reply) {
        hear_page(w, &page);
        matched_free(&page);
    }
    worker_answered(w);
}

/* And all of those that it knows are claimed from again. */
void worker_match_soon(struct weir_worker *w)
{
    wide_claim_all(w->wide);
    w->matching.at_us = 0;
}

int64_t worker_match_time(struct weir_worker *w)
{
    return w->wide && worker_takes_jobs(w) ? w->matching.at_us : NEVER;
}

void worker_match(struct weir_worker *w, struct args *a)
{
    struct names words = {w->options.queues, w->options.queue_count};

    match_request(a, w->options.prefix, -1, w->matching.cursor, PAGE_MOST, words);
    worker_send(w, a, on_matched);
}
