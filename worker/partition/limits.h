/* The limits of the worker's types, as they were at the last heartbeat: its answer says whether they have changed. */
#pragma once

#include "core/script/args.h"
#include "queue/limits/known.h"

struct partition;

struct limits_here {
    struct known_limits known; /* limits of the types that it runs */
    bool old;                  /* Redis may have older ones, or none */
    bool newer;                /* it may have newer ones */
    int types;                 /* for how many types it asked last */
};

/* Notes that Redis may have lost limits, or have older ones. */
void limits_are_old(struct partition *p);
/* Restores limits before anything else: writes again what Redis has lost, and learns what there is. */
void limits_restore(struct partition *p);
/* Hears that Redis has that revision of the limits, as a heartbeat says. */
void limits_hear_revision(struct partition *p, struct span newest);
/* True when limits have changed. Then a turn asks for each page of what has. */
bool limits_must_learn(const struct partition *p);
/* Asks for the next page of what has changed. */
void limits_learn(struct partition *p, struct args *a);
