/* A type as it is shown. */
#ifndef VIEW_TYPE_H
#define VIEW_TYPE_H

#include "queue/status/status.h"
#include "view/document.h"

/* NULL: out of memory. */
json_t *type_document(const struct type_status *type);
/* Lists all types by their names. NULL: out of memory. */
json_t *types_document(const struct status *status);

#endif
