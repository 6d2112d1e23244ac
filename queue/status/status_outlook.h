/* What limits say of the types of a status: which of them hold them. */
#ifndef QUEUE_STATUS_STATUS_OUTLOOK_H
#define QUEUE_STATUS_STATUS_OUTLOOK_H

#include "core/client/answer.h"
#include "queue/status/status.h"

/* Gives all limits of a partition the types of *status, and notes which of these are limited; root: the answer that these were read from. limits_free also after a failure. */
WEIR_CHECKED int status_give_types(struct status *status, const json_t *root, struct limits *limits,
                                   struct error *e);

#endif
