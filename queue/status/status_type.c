#include "queue/status/status_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"

const struct jobs_count jobs_counts[] = {
#define AT(member) offsetof(struct type_status, member)
    {"waiting", JOBS_NOW, AT(waiting)},     {"parked", JOBS_NOW, AT(parked)},
    {"held", JOBS_NOW, AT(held)},           {"running", JOBS_NOW, AT(running)},
    {"scheduled", JOBS_NOW, AT(scheduled)}, {"dead_kept", JOBS_NOW, AT(dead_kept)},
    {"done", JOBS_ENDED, AT(done)},         {"retried", JOBS_ENDED, AT(retried)},
    {"dead", JOBS_ENDED, AT(dead)},         {"cancelled", JOBS_ENDED, AT(cancelled)},
    {"aside", JOBS_NOW, AT(aside)},         {"reaped", JOBS_LOST, AT(reaped)},
    {"stale", JOBS_LOST, AT(stale)},        {.name = NULL},
#undef AT
};

int64_t type_number(const struct type_status *type, size_t at)
{
    int64_t n;

    memcpy(&n, (const char *)type + at, sizeof n);
    return n;
}

double status_rate(const json_t *marks, int64_t count, int64_t now_us)
{
    int64_t mark_us = answer_int(marks, "mark_us"), last_us = answer_int(marks, "last_us");
    bool lively = now_us - mark_us < 2000000 && last_us > 0 && now_us - last_us < 10000000;
    int64_t since_us = lively ? last_us : mark_us, before = answer_int(marks, lively ? "last" : "mark");

    if (mark_us == 0 || now_us <= since_us)
        return 0;
    return (double)positive(count - before) / ((double)(now_us - since_us) / 1e6);
}

static void use_counters(struct type_status *t, const json_t *counts, int64_t now_us)
{
    int64_t pulled = answer_int(counts, "pulled"), parked = answer_int(counts, "parked"),
            served = answer_int(counts, "served");

    t->done = answer_int(counts, "done");
    t->retried = answer_int(counts, "retried");
    t->dead = answer_int(counts, "dead");
    t->dead_kept = positive(t->dead - answer_int(counts, "revived") - answer_int(counts, "removed") -
                            answer_int(counts, "forgotten"));
    t->cancelled = answer_int(counts, "cancelled");
    t->reaped = answer_int(counts, "reaped");
    t->stale = answer_int(counts, "stale");
    t->scheduled = positive(answer_int(counts, "scheduled"));
    t->waiting = positive(answer_int(counts, "enqueued") - pulled - parked - answer_int(counts, "dropped"));
    t->running = positive(pulled + served - t->done - t->retried - t->dead - answer_int(counts, "back"));
    t->parked = positive(parked + answer_int(counts, "returned") - served);
    t->aside = positive(answer_int(counts, "set_aside"));
    t->rate_now = status_rate(counts, pulled + served - answer_int(counts, "unstarted"), now_us);
}

static struct keyless read_keyless(const json_t *row)
{
    struct keyless k = {.jobs = positive(answer_int(row, "jobs")), .of = answer_int(row, "of")};

    snprintf(k.path, sizeof k.path, "%s", answer_text(row, "path"));
    snprintf(k.limit, sizeof k.limit, "%s", answer_text(row, "limit"));
    return k;
}

void status_type_read(struct type_status *t, const char *name, const json_t *row, int64_t now_us)
{
    *t = (struct type_status){.next_start_us = -1, .finish_us = -1};
    snprintf(t->name, sizeof t->name, "%s", name);
    use_counters(t, json_object_get(row, "counts"), now_us);
    t->cost = positive(answer_int(row, "cost") - 1) + 1;
    (void)cost_parse(answer_text(row, "costs"), &t->costs);
    t->own_costs = json_is_true(json_object_get(row, "own_costs"));
    t->in_pause = json_is_true(json_object_get(row, "in_pause"));
    t->keyless = read_keyless(json_object_get(row, "keyless"));
}
