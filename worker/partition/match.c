/* A worker that serves patterns asks which queues there are, three times in the time of two polls, a page at a time. */
#include "core/clock.h"
#include "core/log/log.h"
#include "worker/partition/inside.h"

#define PAGE_MOST 500

static void log_full(struct partition *p)
{
    log_once(
        &p->worker->logged, LOG_LEVEL_WARN,
        "more than %d queues match: the others are not served until some are empty; use narrower patterns",
        WIDE_QUEUES);
}

static void hear_page(struct partition *p, const struct matched *page)
{
    int known = wide_count(p->mind.wide);
    bool all = true;

    for (size_t i = 0; i < page->count; i++)
        all &= wide_learn(p->mind.wide, page->names[i]);
    if (wide_count(p->mind.wide) > known)
        partition_claim_soon(p, false);
    if (!all)
        log_full(p);
    p->matching.cursor = page->next;
    if (page->next == 0)
        wide_forget_others(p->mind.wide);
    p->matching.at_us = page->next ? 0 : clock_mono_us() + p->mind.polls.wait_us * 2 / 3;
}

void match_hear(struct partition *p, const struct redisReply *reply,
                void (*hear)(struct partition *p, const struct matched *page))
{
    struct matched page;
    struct error e;

    if (reply && match_reply(reply, &page, &e) != 0) {
        request_refused(p, &e);
    } else if (reply) {
        hear(p, &page);
        matched_free(&page);
    }
    request_answered(p);
}

static void on_matched(void *arg, const struct redisReply *reply)
{
    match_hear(arg, reply, hear_page);
}

void match_soon(struct partition *p)
{
    p->matching.at_us = 0;
}

void match_ask(struct partition *p, struct args *a)
{
    struct names words = {p->worker->options.queues, p->worker->options.queue_count};

    match_request(a, p->prefix, -1, "queues", p->matching.cursor, PAGE_MOST, words);
    request_send(p, a, on_matched);
}
