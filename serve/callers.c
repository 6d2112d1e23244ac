#include "serve/callers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/clock.h"

#define LOOKS 8 /* so often in the shorter time */

/* libmicrohttpd takes no answer while a body comes. Nothing was sent of one yet. */
static const char too_slow[] =
    "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json\r\n"
    "Content-Length: 60\r\n\r\n"
    "{\"error\":\"the body came too slowly; send less in a request\"}";

static int64_t due_us(const struct callers_patience *p, const struct caller *c)
{
    if (c->state == CALLER_WAITS)
        return INT64_MAX;
    return c->since_us + (c->state == CALLER_SENDS_HEAD
                              ? p->head_us
                              : p->body_us + c->body_size * INT64_C(1000000) / p->bytes_per_s);
}

/* Ends a connection: libmicrohttpd sees that, and frees it. */
static void end(struct caller *c)
{
    int fd = MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;

    if (c->state == CALLER_SENDS_BODY && c->body_size > 0)
        (void)send(fd, too_slow, strlen(too_slow), MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_RDWR);
    c->state = CALLER_WAITS;
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int revents)
{
    struct callers *all = timer->data;
    int64_t now_us = clock_mono_us();

    (void)loop, (void)revents;
    for (struct caller *c = all->first; c; c = c->next)
        if (due_us(&all->patience, c) <= now_us)
            end(c);
}

void callers_init(struct callers *all, struct ev_loop *loop, const struct callers_patience *patience)
{
    int64_t least_us = patience->head_us < patience->body_us ? patience->head_us : patience->body_us;
    double every_s = (double)least_us / 1e6 / LOOKS;

    *all = (struct callers){.patience = *patience, .loop = loop};
    ev_timer_init(&all->timer, on_timer, every_s, every_s);
    all->timer.data = all;
    ev_timer_start(loop, &all->timer);
}

void callers_end(struct callers *all)
{
    ev_timer_stop(all->loop, &all->timer);
}

struct caller *caller_new(struct callers *all, struct MHD_Connection *connection)
{
    struct caller *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    *c = (struct caller){.connection = connection, .next = all->first, .back = &all->first};
    if (c->next)
        c->next->back = &c->next;
    all->first = c;
    caller_answered(c);
    return c;
}

void caller_free(struct caller *c)
{
    *c->back = c->next;
    if (c->next)
        c->next->back = c->back;
    free(c->address);
    free(c);
}

void caller_sent_head(struct caller *c)
{
    c->state = CALLER_SENDS_BODY;
    c->since_us = clock_mono_us();
    c->body_size = 0;
}

void caller_sent_body(struct caller *c, size_t size)
{
    c->body_size += (int64_t)size;
}

void caller_sent_all(struct caller *c)
{
    c->state = CALLER_WAITS;
}

void caller_answered(struct caller *c)
{
    c->state = CALLER_SENDS_HEAD;
    c->since_us = clock_mono_us();
}
