/* The keys that change something: what they ask first, and what is ordered then. Lower-case keys ask for what they need to know; capitals
 * destroy, and make sure. */
#ifndef CLI_TOP_DEED_H
#define CLI_TOP_DEED_H

#include "cli/top/state.h"

/* Keys of a view, for people: "p pause", ...; NULL ends them. */
struct deed_key {
    int key;
    enum view view;
    const char *word;
    /* Fills s->ask or s->order; says why it does not. */
    void (*begin)(struct state *s, const void *row, const struct sight *now);
};
extern const struct deed_key deed_keys[];

/* A key of the list; others do nothing. row: what is chosen, NULL: nothing. */
void deed_begin(struct state *s, int key, const void *row, const struct sight *now);
/* A key while something is asked. */
void deed_key(struct state *s, int key);
/* An order was carried out, or was not. May take its forecast. */
void deed_result(struct state *s, struct result *result);
/* Nothing is asked any more. */
void deed_drop(struct state *s);

#endif
