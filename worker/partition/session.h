/* What the worker is to Redis: its id and its lease, and what it knows of the data there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"
#include "queue/turn/turn.h"

struct partition;

#define WORKER_ID_SIZE 64

struct session {
    char id[WORKER_ID_SIZE]; /* "": it has never registered */
    bool permitted;          /* the user has all rights, as far as we know */
    bool registered;         /* under id, on this connection */
    bool lapsed;             /* the lease has ended since the request to register was sent */
    bool dropped;    /* the lease has ended: jobs were given up that Redis may still have under our id */
    int64_t beat_us; /* when the last request was sent that renews the lease, by clock_boot_us() */
    char types_digest[48];  /* of the types that were named under id: claims name it instead of them */
    char birth[128];        /* of Redis's data; "": not known yet */
    int64_t seen_us;        /* the last mark that it answered */
    int64_t back_us;        /* when it was last found that Redis went back, as far as was logged */
    int64_t down_since_us;  /* 0: connected */
    int64_t down_logged_us; /* when the last reason for that was logged, and which */
    char down_why[sizeof((struct error *)0)->text];
};

/* Hears that the connection was lost, or cannot be had again; or is back. Each is logged once, and so is another reason. */
void session_lost(struct partition *p, const struct error *why);
void session_is_back(struct partition *p);
/* Says that the rights of the user are complete; or that they are to be checked. */
void session_permit(struct partition *p, bool permitted);
/* Begins anew under another id, as the old one holds no longer. */
void session_unregister(struct partition *p);
/* Notes that a request is about to be sent that registers the worker, or renews its lease. */
void session_is_registering(struct partition *p);
void session_is_renewing(struct partition *p);
/* Hears that the worker is registered: the lease goes on from when that was sent. */
void session_registered(struct partition *p, const char *id, struct span types_digest, int64_t now);
void session_renewed(struct partition *p);
/* Ends the lease; returns when it ended, by clock_boot_us(). */
int64_t session_lapse(struct partition *p);
/* Notes the mark that Redis has answered. */
void session_seen(struct partition *p, int64_t mark_us);
/* Logs once that Redis went back. True: what it has of limits may be older now. */
bool session_hear_back(struct partition *p, const struct went_back *back);
/* Hears what the answer to a registration says of the data. True: all that was there before is lost. */
bool session_hear_data(struct partition *p, const struct adopt *adopt);
/* Ends the worker when a login, permission or setting is refused before anything has worked: that is not an outage but a mistake, and so
 * are data that this version cannot read. */
bool session_is_hopeless(struct partition *p, const struct error *why);
