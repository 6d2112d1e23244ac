/* What limits say of the types of a status: what they wait for, when the next of their jobs starts, and the last. */
#ifndef QUEUE_STATUS_STATUS_OUTLOOK_H
#define QUEUE_STATUS_STATUS_OUTLOOK_H

#include "core/client/answer.h"
#include "queue/status/status.h"

/* Gives all limits of a partition the types of *status; root: the answer that these were read from. limits_free also after a failure. */
WEIR_CHECKED int status_give_types(const struct status *status, const json_t *root, struct limits *limits,
                                   struct error *e);
/* Fills what follows from the limits of a type: its rate, next_start_us, finish_us, waits_for. */
WEIR_CHECKED int status_foretell(struct type_status *type, const struct limits *limits, struct error *e);

#endif
