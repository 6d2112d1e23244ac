/* What a document does not say with --hide-args: keys and reasons are of payloads, as bodies are. */
#ifndef VIEW_HIDDEN_H
#define VIEW_HIDDEN_H

#include <stddef.h>

#include "view/json.h"

/* What stands for a member of that name, a new reference; NULL: it may be shown. */
json_t *view_hidden(const char *name, const json_t *value);
/* How much of a change of limits (rate log) stands before a key; all of it where there is none. */
size_t view_change_shown(const char *what);

#endif
