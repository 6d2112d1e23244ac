#include "cli/top/action.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAY(state, ...) snprintf((state)->said, sizeof(state)->said, __VA_ARGS__)

// clang-format off
const struct action_key action_keys[] = {
    {'p', VIEW_TYPES, "pause", ORDER_PAUSE_TYPE},
    {'r', VIEW_TYPES, "resume", ORDER_RESUME_TYPE},
    {'p', VIEW_LIMITS, "pause", ORDER_PAUSE_LIMIT},
    {'r', VIEW_LIMITS, "resume", ORDER_RESUME_LIMIT},
    {'u', VIEW_WORKERS, "quiet", ORDER_QUIET_WORKER},
    {'p', VIEW_QUEUES, "pause", ORDER_PAUSE_QUEUE},
    {'r', VIEW_QUEUES, "resume", ORDER_RESUME_QUEUE},
    {.word = NULL},
};
// clang-format on

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

void action_begin(struct state *s, int key, const void *row)
{
    const struct action_key *a = action_keys;

    while (a->word && (a->key != key || a->view != s->view))
        a++;
    if (!a->word)
        return;
    if (s->read_only)
        SAY(s, "read-only: start weir top without --read-only to %s", a->word);
    else if (s->ordered)
        SAY(s, "the last order is still on its way");
    else if (row)
        order(s, a->order, row_name(row));
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
