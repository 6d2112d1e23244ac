/* A stream into a text that grows where it stands: open_memstream() copies all that was written each time it grows, and megabytes are
 * written here. */
#pragma once

#include <stdio.h>

#include "queue/job/job.h"

/* *to is complete once the stream is closed, and the caller frees it, whatever fclose() says: then it may lack something. NULL: out of memory. */
FILE *view_stream(struct text *to);
