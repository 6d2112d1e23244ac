/* What was seen of the jobs of a type that wait, in status.lua's answer. */
#ifndef QUEUE_STATUS_STATUS_BACKLOG_H
#define QUEUE_STATUS_STATUS_BACKLOG_H

#include "core/client/answer.h"
#include "queue/status/status.h"

/* Fills type->backlog, where there is anything to say; *type has its other numbers of *t already. false: out of memory. */
WEIR_CHECKED bool status_read_backlog(const struct type_status *t, const json_t *root,
                                      struct limit_type *type);

#endif
