/* The ribbon of a limit: its last minute and what comes, drawn against the slots of each rule. */
#ifndef SERVE_PAGE_RIBBON_H
#define SERVE_PAGE_RIBBON_H

#include "serve/page/pages.h"
#include "view/document.h"

/* changes: the log of changes, the newest first; next: the jobs that start next (queue/status/coming.h). NULL: not known. */
void write_ribbon(struct page *p, const struct limits *limits, const struct limit *limit,
                  const json_t *changes, const json_t *next);

#endif
