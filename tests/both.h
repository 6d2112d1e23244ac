/* Both kinds of connection to one address: the blocking one, and the link on an event loop. */
#pragma once

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/redis/link.h"
#include "core/redis/redis.h"

#define BOTH_LIMIT_US 60000000

/* Both come to that status and line, or are refused with it; a line says what to do. status 0: both work. */
void both_come_to(const char *to, int status, const char *says);
void both_work(const char *to);
/* Has it come to that? Fails the test otherwise. */
void both_check(const char *to, int is, const struct error *e, int status, const char *says);

/* ---- The blocking one */

struct redis *both_redis(const char *to);
/* One command of one or two words; 0, or the error. */
int both_call(struct redis *r, const char *verb, const char *word, size_t len, struct redisReply **reply,
              struct error *e);
int both_ping(struct redis *r, struct error *e);
/* Opens one, pings, closes it. */
int both_try_blocking(const char *to, struct error *e);

/* ---- The link */

struct heard {
    bool up, down;
    struct error why;
    int64_t ticked_us, stood_us; /* for how long the loop has stood still at most */
    size_t len;                  /* of an answer */
};

/* On a loop that turns every 10 ms. */
struct linked {
    struct ev_loop *loop;
    struct link *link;
    ev_timer tick;
    struct heard heard;
};

/* l stays where it is. */
void both_open_link(struct linked *l, const char *to);
void both_close_link(struct linked *l);
/* Runs the loop until the condition holds. */
#define BOTH_RUN_UNTIL(l, condition)                                                                         \
    for (int64_t end_us_ = clock_mono_us() + BOTH_LIMIT_US; !(condition); ev_run((l)->loop, EVRUN_ONCE))     \
        if (clock_mono_us() > end_us_)                                                                       \
    fail_msg("waited in vain for: %s (%s)", #condition, (l)->heard.why.text)
/* Opens one until it is up or down, closes it: 0, or why. */
int both_try_link(const char *to, struct error *e);
