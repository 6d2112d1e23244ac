/* What several pages read, kept for a moment: the overview of 10,000 types is read once, however many look. */
#ifndef SERVE_PAGE_DATA_H
#define SERVE_PAGE_DATA_H

#include "serve/page/pages.h"

/* Returns the status, which is the cache's; NULL: p->e says why. Sets p->now_us. */
const struct status *data_status(struct page *p);
/* Foretells a type, which data_status leaves out. */
void data_foretell(struct page *p, const struct type_status *type);
/* Returns what weir report says of what data_status returned, without keys. NULL: p->w says why it is not known. */
const struct json_t *data_report(struct page *p);
/* The limits of each partition, with what is known of their types; NULL: p->e says why. */
const struct limits *data_all_limits(struct page *p, int *partitions);
/* Returns the limits of the partition that has a limit of that name, or else a type. */
const struct limits *data_limits(struct page *p, const char *name);

/* A name is not in it: was it read so long ago that a new one may be missing? Then it is read again by the next of these calls, and
 * what they have returned is gone. */
bool data_is_outdated(struct page *p);

#endif
