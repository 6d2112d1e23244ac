/* What was seen of the jobs of a type that wait, in status.lua's answer. */
#ifndef QUEUE_STATUS_STATUS_BACKLOG_H
#define QUEUE_STATUS_STATUS_BACKLOG_H

#include "core/client/answer.h"
#include "queue/status/status.h"

/* Fills type->backlog, where there is anything to say, by its other members. false: out of memory. */
WEIR_CHECKED bool status_read_backlog(struct type_status *type, const json_t *root);

#endif
