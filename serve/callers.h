/* The connections of weir serve, and how long each may take to send a request: one that sends a byte now and then would otherwise hold its
 * place for ever. Its head must be there in time after the connection was opened or had its last answer; its body in time after the
 * head, the more has come the later. Then it is ended; of a body that had begun with 408. While an answer is made or sent nothing is due. */
#pragma once

#include <ev.h>
#include <microhttpd.h>
#include <stdint.h>

struct callers_patience {
    int64_t head_us, body_us;
    int64_t bytes_per_s; /* of a body: so many more are a second more */
};

struct callers {
    struct callers_patience patience;
    struct caller *first;
    struct ev_loop *loop;
    struct ev_timer timer;
};

/* A caller is a connection. A request that is refused before it gets to a handler leaves nothing else behind. */
struct caller {
    struct MHD_Connection *connection;
    char *address; /* of the request that begins, as it came; NULL: of a take */
    enum { CALLER_SENDS_HEAD, CALLER_SENDS_BODY, CALLER_WAITS } state;
    int64_t since_us;  /* monotonic */
    int64_t body_size; /* what has come of it */
    struct caller *next, **back;
};

void callers_init(struct callers *all, struct ev_loop *loop, const struct callers_patience *patience);
/* No caller may be left. */
void callers_end(struct callers *all);
/* NULL: out of memory. */
struct caller *caller_new(struct callers *all, struct MHD_Connection *connection);
void caller_free(struct caller *caller);
/* Hear how far a request is: its head is there; a piece of its body; all of it; it is answered, and the caller may send the next. */
void caller_sent_head(struct caller *caller);
void caller_sent_body(struct caller *caller, size_t size);
void caller_sent_all(struct caller *caller);
void caller_answered(struct caller *caller);
