/* Server-sent events: a page's <main> whenever it has changed, looked at every two seconds, once for all who look at it. A
 * client that is slow gets the newest one next. While Redis does not answer, every two seconds the event `away` with the age of the last page
 * in milliseconds (-1: there was none). An event `here` from time to time. A page that is not there any more is sent once, and the stream ends. */
#ifndef SERVE_EVENTS_H
#define SERVE_EVENTS_H

#include "serve/shared.h"

struct events;

struct events_options {
    struct shared *shared;
    bool hide_args;
    void (*on_resumed)(void *arg); /* connections were resumed: run the daemon */
    void *arg;
};

struct events *events_new(struct ev_loop *loop, const struct events_options *options);
/* The endless answer of a connection that looks at that page; address: "/types/mail?from=50". NULL: too many are looking,
 * or there is no memory. */
struct MHD_Response *events_open(struct events *events, struct MHD_Connection *connection,
                                 const char *address, bool actions);
/* By what those who look at that page share it, in events_options.shared. malloced; NULL: out of memory. */
char *events_key(const char *address, bool actions);
/* Ends all. */
void events_close(struct events *events);
void events_free(struct events *events);

/* The inquiry of a page, and the desk that does it. NULL: out of memory, or the address is malformed. */
struct inquiry *page_inquiry(const char *address, bool fragment, bool actions, bool hide_args,
                             enum desk_kind *desk);

#endif
