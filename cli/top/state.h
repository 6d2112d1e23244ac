/* What weir top shows, and how keys change it: the view, the order, the row that is chosen, what is typed. It knows neither terminal
 * nor Redis: what is to be done there, it says. */
#ifndef CLI_TOP_STATE_H
#define CLI_TOP_STATE_H

#include "cli/top/columns.h"
#include "cli/top/keys.h"
#include "cli/top/order.h"

/* A view keeps these while others are shown. */
struct pane {
    int sorted; /* the column */
    bool backwards;
    char filter[LINE_SIZE];
    char chosen[TOP_NAME_SIZE]; /* the name of the row; "": the first */
    size_t at, top;             /* its place, and the first one that is on the screen */
};

enum mode { MODE_LIST, MODE_FILTER, MODE_HELP, MODE_ASK };

/* A question before something is done. */
enum ask_kind {
    ASK_YES,   /* y or N */
    ASK_NAME,  /* its name is to be typed: it destroys */
    ASK_TEXT,  /* for how long, or which key */
    ASK_RULES, /* other rules, whose forecast is shown first */
};
struct ask {
    enum ask_kind kind;
    struct order order; /* what is done then */
    char question[SAID_SIZE];
    char typed[LINE_SIZE];
    char foretold[LINE_SIZE]; /* ASK_RULES: the rules that the forecast is of; "": there is none */
    json_t *doc; /* that forecast; of a question for a key those there are, a list; NULL: it has not come */
    size_t at;   /* of these the one that is chosen, from 1; 0: none is */
};

struct state {
    enum view view;
    struct pane panes[VIEW_COUNT];
    enum mode mode;
    size_t room; /* rows that the screen has for the table */
    bool read_only, quit;
    struct ask ask;
    struct order order;   /* to be given to the reader, and then cleared; DEED_NONE: none is */
    bool ordered;         /* one was, and its result has not come */
    char said[SAID_SIZE]; /* of the last deed, or what is wrong; until the next key */
};

void state_begin(struct state *s, bool read_only);
struct pane *state_pane(struct state *s);
/* The rows have changed: the same one stays chosen and on the screen. */
void state_settle(struct state *s, const struct rows *rows);
void state_key(struct state *s, int key, const struct rows *rows, const struct sight *now);
/* The row that is chosen; NULL: there is none. */
const void *state_row(const struct state *s, const struct rows *rows);

#endif
