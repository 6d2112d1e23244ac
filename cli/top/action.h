/* The keys that change something, and what they order. All else is done by the command line. */
#pragma once

#include "cli/top/state.h"

struct action_key {
    int key;
    enum view view;
    const char *word; /* for people; NULL ends the table */
    enum order_kind order;
};
extern const struct action_key action_keys[];

/* Begins the action of a key of the list; others do nothing. row: what is chosen, NULL: nothing. */
void action_begin(struct state *s, int key, const void *row);
/* Hears a key while something is asked. */
void action_answer(struct state *s, int key);
/* An order was carried out, or was not. */
void action_result(struct state *s, const struct result *result);
