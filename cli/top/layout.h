/* The whole screen, drawn into a canvas: a verdict, the views, a table, more about the row that is chosen, keys. */
#pragma once

#include "cli/top/state.h"

#define LAYOUT_ROWS 24 /* a smaller screen says what it needs */
#define LAYOUT_COLUMNS 80

/* How it stands with Redis. */
struct health {
    int64_t silent_us; /* since its last answer; 0: it answers */
    char why[480];     /* what it said, "": nothing */
    int64_t interval_us;
    char where[128]; /* the namespace */
};

/* Rows of a screen that the table has. */
size_t layout_room(const struct canvas *c);
void layout_draw(struct canvas *c, const struct state *s, const struct frame *f, const struct rows *rows,
                 const struct health *health);
