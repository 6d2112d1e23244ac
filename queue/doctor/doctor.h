/* doctor: looks at a Redis and at what a namespace has in it, says what is wrong and what to do, and repairs
 * what is safe to repair.
 *
 * doctor_setup.c    Redis itself: is it there, its clock, slow calls, rights, functions
 * doctor_settings.c what INFO says: version, role, settings; workers ask settings.c for the worst of it
 * doctor_access.c   which rights the user lacks; workers ask it too
 * doctor_sweep.c    what the namespace has there: passes over all of it, page by page
 * doctor_checks.c   what they found
 * doctor_*.lua      judge: what must hold of a thing; faults: the sentence, weight and repair of each; repair */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/client/answer.h"

struct weir;

enum doctor_state { DOCTOR_OK, DOCTOR_REPAIRED, DOCTOR_WARNING, DOCTOR_WRONG };
extern const char *const doctor_states[]; /* "ok", "repaired", "warning", "wrong" */

struct doctor {
    json_t *checks; /* [{"name", "state", "text", "do": null or what to do}], all printable ASCII */
    /* the partition of which findings are, named where there are several; NULL: of Redis */
    const struct weir *looks_at;
    bool only_wrong; /* what is as it should be is not added */
    bool no_memory;
    bool misconfigured; /* Redis or its settings are wrong */
    bool refused;       /* the user lacks rights */
    int broken;         /* partitions whose structures are wrong, and not all were repaired */
};

/* Looks at everything; repair: repairs what can be repaired, else nothing is written. now_us < 0: Redis's time. A
 * negative status when Redis cannot be looked at: w->error says why, and out has what was found until then.
 * Free with doctor_free, also then. */
WEIR_CHECKED int doctor_run(struct weir *w, int64_t now_us, bool repair, struct doctor *out);
/* Adds what is wrong with Redis by one INFO, of each partition where they are on several nodes, and what may become so: memory, connections and
 * persistence. Nothing is added where the user may not ask. */
WEIR_CHECKED int doctor_glance(struct weir *w, struct doctor *out);
void doctor_free(struct doctor *d);

/* ---- Between its parts */

/* Adds what was looked at; todo "" or NULL: nothing. Control characters and what is not ASCII become '?'. */
void doctor_add(struct doctor *d, const char *name, enum doctor_state state, const char *todo,
                const char *fmt, ...) WEIR_PRINTF(5, 6);
/* Redis itself; for partitions behind the first one the user's rights, and all of it on a cluster, where they may be on another node.
 * *usable: the structures can be looked at. */
WEIR_CHECKED int doctor_setup(struct weir *w, int64_t now_us, bool repair, struct doctor *d, bool *usable);
/* The settings, by what INFO says and min_replicas_to_write, which it does not. Returns whether the structures can
 * be looked at. */
bool doctor_settings(struct doctor *d, const char *info);
/* Checks what the namespace has in it. */
WEIR_CHECKED int doctor_structures(struct weir *w, int64_t now_us, bool repair, struct doctor *d);
