/* The keys of a limit by their backlog: weir rate keys --json, GET /api/rates/NAME/keys. */
#ifndef VIEW_RATE_KEYS_H
#define VIEW_RATE_KEYS_H

#include "view/document.h"

#define RATE_KEYS_SHOWN 20

/* Makes the document of an answer of rate_keys_read(); asked: the one key that was asked for, or NULL. */
json_t *rate_keys_document(const char *limit, const json_t *answer, const char *asked);
/* Reads one key; key NULL: the longest. now_us (may be NULL): Redis's time. */
WEIR_CHECKED int view_rate_keys(struct weir *w, const char *limit, int most, const char *key, json_t **doc,
                                int64_t *now_us);
/* Returns "customer" of the path args.customer. */
const char *rate_keys_word(const char *by);
/* Adds to a limit's document its paused keys; nothing where that cannot be read. */
void limit_add_paused_keys(struct weir *w, const char *name, json_t *doc);

#endif
