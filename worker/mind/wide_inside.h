/* Inside wide.h: the queues, the gates that their jobs wait for, and the last pick.
 *
 *   wide.c       queues, turns    which queues there are, what bells say of them, when each is due
 *   gates.c      gates            the gates, by name
 *   wide_pick.c  picks, asks      what the next claim names
 *   wide_hear.c                   what its answer changes */
#pragma once

#include <sys/queue.h>

#include "core/number.h"
#include "worker/mind/gates.h"
#include "worker/mind/wide.h"

#define WIDE_SHARE (WIDE_CLAIM - 8) /* of a claim, for queues where something is due */
#define WIDE_NOW 1                  /* due: long ago */
#define WIDE_NEVER INT64_MAX
#define WAITS_MOST 4      /* gates of a queue, as in claim_dues.lua */
#define KNOWN_NOTHING 'n' /* waits there, as in claim_dues.lua */
#define KNOWN_KEYS 'k'    /* that sleep */
#define KNOWN_SOON 'w'    /* the same, but what wakes there is not to be asked for */
#define KNOWN_JOBS 'j'    /* alone matter there: what waits is for others */

struct queue {
    TAILQ_ENTRY(queue) turn;
    int rank;      /* the place of the word that stands for it */
    bool is_named; /* that word is its name, no pattern */
    bool is_known, held, picked;
    bool rung;            /* it has become due since it was picked */
    bool leased;          /* the last answer brought a job of it */
    bool told;            /* the last answer told of it */
    bool missed;          /* the last claim did not come to it */
    char known;           /* to wait there: claim_dues.lua has the letters */
    int64_t due_us;       /* when it is due, gates that it waits for apart, */
    int64_t due_redis_us; /* by Redis's clock, as an answer has told it */
    struct wait waits[WAITS_MOST];
    int wait_count;
    int64_t named_us, served_us; /* when a claim last named it, last served it */
    char name[];
};

TAILQ_HEAD(turns, queue);

struct wide {
    const char *const *words;
    int count, name_count;
    bool names_all;         /* each claim names all queues: the worker is not wide */
    int *order;             /* of the words in the next claim */
    struct turns *turns;    /* of each word: whose turn is next */
    struct queue **by_name; /* sorted */
    int queue_count;
    struct gates gates;
    bool is_complete;
    bool knows;                              /* the last answer has told when each queue is due */
    int64_t till_us, stale_us, forgotten_us; /* of the last pick */
    bool looks; /* the last pick asks for what waits, too: where each names all queues, only now and then, */
    int64_t looked_us; /* and when one last did */
    const char *picks[WIDE_CLAIM], *asks[WIDE_ASKED];
    char known[WIDE_ASKED + 24]; /* to wait in those that are asked, as a claim says it */
    struct queue *picked[WIDE_CLAIM], *asked[WIDE_ASKED];
    int pick_count, ask_count;
    bool times_known; /* the two times below are known */
    int64_t due_us, oldest_us;
};

/* Finds a queue by its name; NULL: it is not known. */
struct queue *wide_find(const struct wide *w, struct span name);
/* Returns the queue in the token of a lease; empty: it names none. */
struct span wide_queue_of(struct span token);
/* Notes that something is due in that queue now. */
void wide_due_now(struct wide *w, struct queue *q);
/* Returns when something is due in that queue, also for the gates that its jobs wait for. */
int64_t wide_due_time(const struct queue *q);
