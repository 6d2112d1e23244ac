/* A type as it is shown: its members, as a document and as text. */
#ifndef VIEW_TYPE_H
#define VIEW_TYPE_H

#include "queue/status/status.h"
#include "view/document.h"

/* NULL: out of memory. */
json_t *type_document(const struct type_status *type);
/* Writes another type into such a document, for who shows one after the other: to make each takes longer than all else. Without waits_for. */
void type_document_set(json_t *doc, const struct type_status *type);
/* All types by their names, as a document that is text (VIEW_TEXT): with 10,000 of them documents take longer than all else. Only for
 * view_write. NULL: out of memory. */
json_t *types_text(const struct status *status);

#endif
