/* Writes HTML. What comes from outside goes through html()'s %s and %u, or html_span(), and is escaped there:
 * bytes that are no UTF-8 and control characters become \xNN, characters that turn or hide text (bidirectional
 * marks, zero widths) become \u202E, so that a page shows what stands there and nothing else. */
#pragma once

#include "queue/job/job.h"

struct html {
    struct text out;
    bool failed; /* out of memory: what was written since is missing */
};

/* Writes form as it stands, but for
 *   %s  const char *: a text of others, escaped for text and for attributes in double quotes; of 16 KiB the beginning
 *   %t  the same for a row of many: of 1,000 bytes the beginning
 *   %r  const char *: markup of ours, as it stands
 *   %u  const char *: one part of a path, or a value in a query, escaped for that; of 16 KiB the beginning
 *   %d  int          %i  int64_t          %n  int64_t, as 1,234,567          %%  */
void html(struct html *h, const char *form, ...);
/* A text of any bytes, escaped as %s does. */
void html_span(struct html *h, struct span bytes);
void html_free(struct html *h);
