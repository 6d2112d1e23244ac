/* POST /hold, /hold/TOKEN/renew and /hold/TOKEN/end: the verbs of the protocol of that name, for whoever has no client; and who waits for slots
 * is answered as they come. */
#pragma once

#include "core/client/client.h"
#include "serve/resource.h"

extern const struct resource hold_resources[]; /* by.word: the verb; it has no answer() */

/* What is asked, from call to call. */
struct post_hold {
    json_t *document; /* NULL: not read yet; the caller's */
    int64_t until_us; /* so long it waits, by clock_mono_us() */
    int peer;         /* the socket of who asks */
};

/* Reads the fields of a request. name: the token; visitor: of a token of weir serve, or "". WEIR_EINPUT. */
WEIR_CHECKED int post_hold_read(struct post_hold *p, const struct resource *row, const char *name,
                                const json_t *fields, const char *visitor, struct error *e);
/* Asks once. *answer: that of the protocol, the caller's; *again_us: when to ask again, 0: it is to be answered. Who has gone meanwhile
 * holds nothing, and is not in line. *lost: as call_verb has it. */
WEIR_CHECKED int post_hold_ask(struct post_hold *p, struct weir *w, const char *verb, json_t **answer,
                               int64_t *again_us, bool *lost);
