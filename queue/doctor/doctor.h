/* doctor: looks at a Redis and at what a namespace has in it, says what is not as it should be and what to
 * do, and mends what is safe to mend.
 *
 * doctor_setup.c    Redis itself: role, version, settings, rights
 * doctor_access.c   which rights the user lacks; workers ask it too
 * doctor.c          the structures: passes over all of them, and what is told
 * doctor_pages.c    asking page by page what is wrong, a second look at it, and having it mended
 * doctor_counts.c   what adds up over pages: the counters of types, jobs in flight */
#ifndef QUEUE_DOCTOR_DOCTOR_H
#define QUEUE_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

struct weir;

enum doctor_state { DOCTOR_OK, DOCTOR_MENDED, DOCTOR_WARNING, DOCTOR_WRONG };

struct doctor_check {
    const char *name; /* static */
    enum doctor_state state;
    char *text, *todo; /* printable ASCII; todo: "" when there is nothing to do */
};

struct doctor {
    struct doctor_check *checks;
    size_t count, capacity;
    bool no_memory;
    bool misconfigured; /* Redis or its settings are wrong */
    bool refused;       /* the user lacks rights */
    bool broken;        /* structures are wrong, and not all were mended */
};

/* Looks at everything; repair: mends what can be mended, else nothing is written. now_us < 0: Redis's time. A
 * negative status when Redis cannot be looked at: w->error says why, and out has what was found until then.
 * Free with doctor_free, also then. */
WEIR_CHECKED int doctor_run(struct weir *w, int64_t now_us, bool repair, struct doctor *out);
void doctor_free(struct doctor *d);

/* ---- Between its parts */

/* Adds what was looked at; todo may be NULL. Control characters and what is no ASCII become '?'. */
void doctor_add(struct doctor *d, const char *name, enum doctor_state state, const char *todo,
                const char *fmt, ...) WEIR_PRINTF(5, 6);
/* Redis itself. *usable: the structures can be looked at. */
WEIR_CHECKED int doctor_setup(struct weir *w, int64_t now_us, bool repair, struct doctor *d, bool *usable);

#endif
