/* What weir top shows, and how keys change it: the view, the order, the row that is chosen, what is typed. It knows neither terminal
 * nor Redis: what is to be done there, it says. */
#pragma once

#include "cli/top/columns.h"
#include "cli/top/keys.h"
#include "cli/top/order.h"

#define LINE_SIZE 512 /* of what is typed */

/* A view keeps these while others are shown. */
struct pane {
    int sorted; /* the column */
    bool backwards;
    char filter[LINE_SIZE];
    char chosen[TOP_NAME_SIZE]; /* the name of the row; "": the first */
    size_t at, top;             /* its place, and the first one that is on the screen */
};

enum mode {
    MODE_LIST,
    MODE_FILTER,
    MODE_COMMAND, /* a line for weir is typed */
    MODE_HELP,
    MODE_ASK, /* y or N, before state.order is given */
};

struct state {
    enum view view;
    struct pane panes[VIEW_COUNT];
    enum mode mode;
    size_t room; /* rows that the screen has for the table */
    bool read_only, quit;
    char command[LINE_SIZE]; /* what is typed behind "weir" */
    bool entered;            /* it is to be run, and then cleared */
    struct order order; /* to be given to the reader while `ordered`, and then cleared; ORDER_NONE: none is */
    bool ordered;       /* one is, and its result has not come */
    char said[SAID_SIZE]; /* of the last order, or what is wrong; until the next key */
};

void state_begin(struct state *s, bool read_only);
struct pane *state_pane(struct state *s);
/* The rows have changed: the same one stays chosen and on the screen. */
void state_settle(struct state *s, const struct rows *rows);
void state_key(struct state *s, int key, const struct rows *rows);
/* The row that is chosen; NULL: there is none. */
const void *state_row(const struct state *s, const struct rows *rows);
