/* What status.lua answers, a page a call, as one document. */
#ifndef QUEUE_STATUS_STATUS_ANSWER_H
#define QUEUE_STATUS_STATUS_ANSWER_H

#include "core/client/pages.h"
#include "queue/status/status.h"

struct status_answer {
    json_t *
        root; /* the members of all pages; a worker has "info", what it says of itself, and "types": an array or absent */
    json_t *list_text,
        *list; /* the types that a worker said last, as text and read: most workers say the same */
};

/* Asks the partition that calls go to for all of it, and walks `beside` at the same time. status_answer_free also after a failure, which
 * is in w->error. */
WEIR_CHECKED int status_ask(struct weir *w, int64_t now_us, const struct pages *beside,
                            struct status_answer *answer);
/* Asks for workers alone, and for what is on each page. */
WEIR_CHECKED int status_ask_workers(struct weir *w, struct status_answer *answer);
void status_answer_free(struct status_answer *answer);

#endif
