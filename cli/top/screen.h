/* The terminal, by ncurses, which sends what has changed only. It is put back as it was at every end: screen_end() does it, and for
 * signals that end the process at once a handler that is safe there. */
#pragma once

#include "cli/top/canvas.h"
#include "core/error.h"

/* WEIR_EUSAGE: this is no terminal that can show it. */
WEIR_CHECKED int screen_check(struct error *e);
/* Begins, also where TERM names a terminal that is not known. wake: made readable by signals that end it (screen_ended). */
WEIR_CHECKED int screen_begin(bool color, int wake, struct error *e);
void screen_end(void);
/* The terminal is as it was, for a command, until screen_show() takes it back. */
void screen_leave(void);
void screen_size(int *rows, int *columns);
/* True when it can show nothing but ASCII. */
bool screen_is_ascii(void);
void screen_show(const struct canvas *c);
/* The next key (keys.h) that was pressed; KEY_IS_NONE: none. */
int screen_key(void);
/* The signal that ends it, 0: none. */
int screen_ended(void);
