/* What another rate would do: the finishing times of all types that a limit holds, before it is set. */
#ifndef SERVE_PAGE_CHANGE_H
#define SERVE_PAGE_CHANGE_H

#include "serve/page/pages.h"

/* A table of its types with their last starts now and under the rules that the query's "rules" says; a form that asks
 * that, and one that applies it; a slider over rates that are forecast with the page, for page.js. */
void write_change_form(struct page *p, const struct limits *limits, const struct limit *limit);

#endif
