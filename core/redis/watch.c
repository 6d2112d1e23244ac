#include "core/redis/watch.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/wire/wire.h"

#define NEWS_US 100000    /* at most ten questions a second, whatever they say */
#define SOME_US 5000000   /* while not all are heard */
#define WHOLE_US 30000000 /* while all are: one may be cut off from the others */
#define READS_IN_A_ROW 16

static const char channel[] = "+switch-master";

struct watch {
    /* the master's name, with the blank that follows it in a message */
    char name[sizeof((struct redis_address *)0)->master + 1];
    int seeds; /* that there are */
    int fd;
    int count;
    bool news;
    struct wire *wires[SEEDS_MOST];
};

struct watch *watch_new(const struct redis_address *address)
{
    struct watch *w = calloc(1, sizeof *w);
    struct redis_address seed;

    if (!w)
        return NULL;
    w->fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->fd < 0) {
        free(w);
        return NULL;
    }
    snprintf(w->name, sizeof w->name, "%s ", address->master);
    while (w->seeds < SEEDS_MOST && redis_address_seed(address, w->seeds, &seed))
        w->seeds++;
    return w;
}

static void drop(struct watch *w, int i)
{
    wire_close(w->wires[i]);
    free(w->wires[i]);
    w->wires[i] = w->wires[--w->count];
}

void watch_free(struct watch *w)
{
    if (!w)
        return;
    while (w->count > 0)
        drop(w, w->count - 1);
    close(w->fd);
    free(w);
}

static bool subscribe(struct wire *wire)
{
    struct error e;
    struct args a = {0};
    int status;

    args_add(&a, "SUBSCRIBE");
    args_add(&a, channel);
    status = wire_add(wire, &a, &e);
    args_free(&a);
    return status == 0 && wire_send(wire, &e) == 0;
}

void watch_add(struct watch *w, struct wire *wire)
{
    struct wire *own = malloc(sizeof *own);
    struct epoll_event event = {.events = EPOLLIN};

    if (!own)
        return;
    wire_move(own, wire);
    w->wires[w->count++] = own;
    event.data.ptr = own;
    if (!subscribe(own) || epoll_ctl(w->fd, EPOLL_CTL_ADD, own->fd, &event) < 0)
        drop(w, w->count - 1);
}

int watch_fd(const struct watch *w)
{
    return w->fd;
}

/* News are [ "message", channel, "name old-host old-port new-host new-port" ]. */
static bool is_news(const struct watch *w, const struct redisReply *reply)
{
    const struct redisReply *text =
        reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 ? reply->element[2] : NULL;

    return text && text->type == REDIS_REPLY_STRING && strncmp(text->str, w->name, strlen(w->name)) == 0;
}

/* Hears one Sentinel. Below 0: it says nothing any more, or may not be asked to. */
static int hear_one(struct watch *w, struct wire *wire)
{
    struct redisReply *reply;
    struct error e;
    int n = 1, status = 0;

    for (int i = 0; i < READS_IN_A_ROW && n > 0; i++) {
        n = wire_receive(wire, &e);
        while (n > 0 && !status && (status = wire_reply(wire, &reply, &e)) > 0) {
            w->news |= is_news(w, reply);
            status = reply->type == REDIS_REPLY_ERROR ? -1 : 0;
            freeReplyObject(reply);
        }
    }
    return n < 0 ? n : status;
}

void watch_hear(struct watch *w)
{
    struct epoll_event events[SEEDS_MOST];
    int n = epoll_wait(w->fd, events, SEEDS_MOST, 0);

    for (int k = 0; k < n; k++)
        for (int i = 0; i < w->count; i++)
            if (w->wires[i] == events[k].data.ptr && hear_one(w, w->wires[i]) < 0) {
                epoll_ctl(w->fd, EPOLL_CTL_DEL, w->wires[i]->fd, NULL); /* a child may hold it open */
                drop(w, i);
            }
}

int64_t watch_rest_us(const struct watch *w)
{
    if (w && w->news)
        return NEWS_US;
    return w && w->count == w->seeds ? WHOLE_US : SOME_US;
}
