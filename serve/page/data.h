/* Documents that several pages read, kept for a second: the overview of 10,000 types is read once, however many look. */
#ifndef SERVE_PAGE_DATA_H
#define SERVE_PAGE_DATA_H

#include "serve/page/pages.h"

/* The cache's; NULL: p->e says why. Sets p->now_us. */
const struct status *data_status(struct page *p);
/* All limits and their types, of all partitions, without what is known of workers. NULL: p->e says why. */
const struct limits *data_all_limits(struct page *p);
/* The limits of the partition where a limit of that name is, or types of that name are; NULL: p->e says why. */
const struct limits *data_limits(struct page *p, const char *name);

#endif
