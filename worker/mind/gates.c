#include "worker/mind/gates.h"

#include <stdlib.h>
#include <string.h>

#include "core/number.h"

#define GATES_MOST 4096 /* that are known; then all are forgotten */

int name_compare(struct span name, const char *other)
{
    size_t len = strlen(other);
    size_t common = name.len < len ? name.len : len;
    int order = common ? memcmp(name.at, other, common) : 0;

    return order ? order : (name.len > len) - (name.len < len);
}

bool gates_open(struct gates *g)
{
    return (g->at = calloc(GATES_MOST, sizeof(struct gate *))) != NULL;
}

void gates_free(struct gates *g)
{
    gates_forget(g);
    free(g->at);
}

static int place_of(const struct gates *g, struct span name)
{
    int low = 0, high = g->count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (name_compare(name, g->at[middle]->name) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct gate *gates_find(const struct gates *g, struct span name)
{
    int at = place_of(g, name);

    return at < g->count && name_compare(name, g->at[at]->name) == 0 ? g->at[at] : NULL;
}

bool gates_are_full(const struct gates *g)
{
    return g->count == GATES_MOST;
}

struct gate *gates_add(struct gates *g, struct span name)
{
    struct gate *gate = calloc(1, sizeof *gate + name.len + 1);
    int at = place_of(g, name);

    if (!gate)
        return NULL;
    memcpy(gate->name, name.at, name.len);
    gate->width = 1;
    memmove(g->at + at + 1, g->at + at, (size_t)(g->count - at) * sizeof(struct gate *));
    g->at[at] = gate;
    g->count++;
    return gate;
}

void gates_forget(struct gates *g)
{
    for (int i = 0; i < g->count; i++)
        free(g->at[i]);
    g->count = 0;
}

void gates_begin_pick(struct gates *g)
{
    for (int i = 0; i < g->count; i++) {
        g->at[i]->left = g->at[i]->width;
        g->at[i]->asked = 0;
        g->at[i]->may_open = false;
    }
}

void gates_adapt(struct gates *g, int widest, int64_t now_us)
{
    for (int i = 0; i < g->count; i++) {
        struct gate *gate = g->at[i];
        bool is_open = gate->heard_us != now_us || gate->opens_us <= now_us;

        if (gate->asked > 0)
            gate->width =
                is_open ? (gate->width < widest / 2 ? 2 * gate->width : widest) : (gate->width + 1) / 2;
    }
}

int64_t gate_wait_end(const struct wait *wait)
{
    return max_i64(wait->at_us, wait->gate->opens_us);
}
