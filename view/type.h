/* A type as it is shown. */
#pragma once

#include <stdio.h>

#include "queue/status/status.h"
#include "view/document.h"

/* NULL: out of memory. */
json_t *type_document(const struct type_status *type);
/* Lists all types by their names. NULL: out of memory. */
json_t *types_document(const struct status *status);

/* Prints when its last job starts, of a document as above: "in 4m (12:30:00), at the earliest"; nothing where that is not known. */
void type_put_end(FILE *to, const json_t *type, int64_t now_us);
