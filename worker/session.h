/* What the worker is to Redis: its id and its lease, and what it knows of the data there. */
#ifndef WORKER_SESSION_H
#define WORKER_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "queue/turn/turn.h"

struct weir_worker;

#define WORKER_ID_SIZE 64

struct session {
    char id[WORKER_ID_SIZE]; /* "": it has never registered */
    bool permitted;          /* the user has all rights, as far as we know */
    bool registered;         /* under id, on this connection */
    bool lapsed;             /* the lease has ended since the request to register was sent */
    int64_t beat_us;         /* when the last request was sent that renews the lease, by clock_boot_us() */
    int64_t next_beat_us;    /* when the next heartbeat is due */
    char birth[128];         /* of Redis's data; "": not known yet */
    int64_t seen_us;         /* the last mark that it answered */
    int64_t back_us;         /* when it was last found that Redis went back, as far as was logged */
    int64_t down_since_us;   /* 0: connected */
    int64_t down_logged_us;  /* when the last reason for that was logged, and which */
    char down_why[sizeof((struct error *)0)->text];
};

/* The connection was lost, or cannot be had again; or is back. Each is logged once, and a reason that is another. */
void worker_connection_lost(struct weir_worker *w, const struct error *why);
void worker_connection_is_back(struct weir_worker *w);
/* The rights of the user: to be checked, found complete, refused by Redis. A script may have leased jobs
 * before it was refused: once all rights are there, the worker registers again, which hands these back. */
void worker_check_rights(struct weir_worker *w);
void worker_has_rights(struct weir_worker *w);
void worker_lose_rights(struct weir_worker *w);
/* The id holds no longer: begin anew under another one. */
void worker_unregister(struct weir_worker *w);
/* A request that registers the worker, or renews its lease, is about to be sent. */
void worker_is_registering(struct weir_worker *w);
void worker_is_renewing(struct weir_worker *w);
/* It was answered: the lease goes on from when it was sent. */
void worker_registered(struct weir_worker *w, const char *id, int64_t now);
void worker_renewed(struct weir_worker *w);
/* The lease has ended; returns when, by clock_boot_us(). */
int64_t worker_lapse(struct weir_worker *w);
/* When the next heartbeat is due. */
void worker_beat_at(struct weir_worker *w, int64_t at_us);
/* Redis has answered a mark. */
void worker_seen(struct weir_worker *w, int64_t mark_us);
/* Logs once that Redis went back. True: what it has of limits may be older now. */
bool worker_hear_back(struct weir_worker *w, const struct went_back *back);
/* What the answer to a registration says of the data. True: all that was there before is lost. */
bool worker_hear_data(struct weir_worker *w, const struct adopt *adopt);
/* A login, permission or setting that is refused before anything has worked is not an outage but a mistake,
 * and so are data that this version cannot read: ends the worker. */
bool worker_is_hopeless(struct weir_worker *w, const struct error *why);

#endif
