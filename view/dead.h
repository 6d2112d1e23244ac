/* Dead jobs: weir dead --json, GET /api/dead. */
#ifndef VIEW_DEAD_H
#define VIEW_DEAD_H

#include "queue/dead/dead.h"
#include "view/document.h"

/* The i-th job of a page that dead_walk() brings; with its body (view/write.h) as far as that was asked for. */
json_t *dead_document(const json_t *page, size_t i);
/* That body; the page's. */
struct span dead_body(const json_t *page, size_t i);
/* The oldest that the filter lets through, at most so many, an array; without bodies, unless it names ids. */
WEIR_CHECKED int view_dead(struct weir *w, const struct dead_filter *filter, int64_t most, json_t **doc);

#endif
