/* What a document does not say with --hide-args: keys and reasons are of payloads, as bodies are. */
#pragma once

#include <stddef.h>

#include "core/error.h"
#include "view/json.h"

/* What stands for a member of that name, a new reference; NULL: it may be shown. */
json_t *view_hidden(const char *name, const json_t *value);
/* How much of a change of limits (rate log) stands before a key; all of it where there is none. */
size_t view_change_shown(const char *what);

/* Cursors of searches name lanes, and so keys. A word stands for a cursor, known to this process alone until some hundred others were
 * asked for. Threads may call these. */
#define HIDDEN_CURSOR_SIZE 17

void view_hide_cursor(const char *cursor, char word[HIDDEN_CURSOR_SIZE]);
/* Finds the cursor of a word, which is the caller's. WEIR_EINPUT: it is not known, or not any more. */
WEIR_CHECKED int view_find_cursor(const char *word, char **cursor, struct error *e);
