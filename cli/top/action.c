#include "cli/top/action.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(state, ...) snprintf((state)->said, sizeof(state)->said, __VA_ARGS__)

// clang-format off
const struct action_key action_keys[] = {
    {'p', VIEW_TYPES, "pause", ORDER_PAUSE_LIMIT},
    {'r', VIEW_TYPES, "resume", ORDER_RESUME_LIMIT},
    {'p', VIEW_LIMITS, "pause", ORDER_PAUSE_LIMIT},
    {'r', VIEW_LIMITS, "resume", ORDER_RESUME_LIMIT},
    {'u', VIEW_WORKERS, "quiet", ORDER_QUIET_WORKER},
    {'p', VIEW_QUEUES, "pause", ORDER_PAUSE_QUEUE},
    {'r', VIEW_QUEUES, "resume", ORDER_RESUME_QUEUE},
    {.word = NULL},
};
// clang-format on

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_limit(const struct top_snapshot *now, const char *name)
{
    return bsearch(name, now->limit_rows, now->limit_count, sizeof *now->limit_rows, by_name) != NULL;
}

/* Of a type the limit that is in its way, else that of its own name. NULL: there is none. */
static const char *name_meant(struct state *s, const void *row, const struct top_snapshot *now)
{
    const struct type_status *t = row;
    const char *limit;

    if (s->view != VIEW_TYPES)
        return row_name(row);
    limit = answer_text(t->waits_for, "limit_name");
    if (is_limit(now, limit))
        return limit;
    if (is_limit(now, t->name))
        return t->name;
    SAY(s, "no limit is in the way of %s; 4 shows the queues, which can be paused", t->name);
    return NULL;
}

static void give(struct state *s)
{
    s->ordered = true;
    s->mode = MODE_LIST;
    SAY(s, "...");
}

static void order(struct state *s, enum order_kind kind, const char *name)
{
    s->order = (struct order){.kind = kind};
    snprintf(s->order.name, sizeof s->order.name, "%s", name);
    if (kind == ORDER_QUIET_WORKER)
        s->mode = MODE_ASK;
    else
        give(s);
}

void action_begin(struct state *s, int key, const void *row, const struct top_snapshot *now)
{
    const struct action_key *a = action_keys;
    const char *name;

    while (a->word && (a->key != key || a->view != s->view))
        a++;
    if (!a->word)
        return;
    if (s->read_only)
        SAY(s, "read-only: start weir top without --read-only to %s", a->word);
    else if (s->ordered)
        SAY(s, "the last order is still on its way");
    else if (row && now && (name = name_meant(s, row, now)))
        order(s, a->order, name);
}

void action_answer(struct state *s, int key)
{
    if (key == 'y' || key == 'Y') {
        give(s);
        return;
    }
    s->order.kind = ORDER_NONE;
    s->mode = MODE_LIST;
    SAY(s, "nothing was changed");
}

void action_result(struct state *s, const struct result *r)
{
    s->ordered = false;
    SAY(s, "%s", r->said);
}
