/* Schedules: jobs that are enqueued again and again, each occurrence once.
 *
 * The hash `schedules` has the definition of each, JSON that is written and read here alone; `later` has a
 * record "s <name>\n" at its next occurrence. promote names what is due to a worker; that works out, with
 * what is here, which jobs it stands for and when the next occurrence is, and schedule_fire does both if
 * nobody else has.
 *
 *   definition = {"when":"0 9 * * MON","zone":"Europe/Berlin","missed":"once","queue":"default","job":"..."}
 *   job        = a body with the schedule's name as its id; that of an occurrence is "<name>.<seconds>" */
#pragma once

#include "core/script/args.h"
#include "queue/job/job.h"
#include "queue/schedule/cron.h"

#define SCHEDULE_NAME_MOST 100    /* bytes: with the time of an occurrence it is an id */
#define SCHEDULE_FIRE_MOST 1000   /* jobs in one fire */
#define SCHEDULE_LATE_US 60000000 /* an occurrence that is that much late was missed */

struct json_t;     /* jansson */
struct redisReply; /* hiredis */
struct weir;

struct schedule {
    struct json_t *document; /* owns the texts */
    struct json_t *pause;    /* of a row: as queue/state/reasons.lua has it; NULL: it is not paused */
    struct json_t *fired; /* of schedule_find's row: as queue/schedule/fired.lua has it; NULL: it never ran */
    const char *when, *zone_name, *queue;
    struct span job;      /* the body */
    struct job_view view; /* of it */
    enum weir_missed missed;
    struct cron cron;
    struct zone *zone;
};

/* Write and read "once", "skip", "all". false: it is none of these. */
const char *missed_name(enum weir_missed missed);
bool missed_read(const char *name, enum weir_missed *missed);

/* Makes the definition of a schedule, checked; *text is malloc'd. zone NULL: UTC. */
WEIR_CHECKED int schedule_make(const char *name, const char *when, const char *zone, enum weir_missed missed,
                               const struct weir_job_spec *job, struct schedule *s, char **text,
                               struct error *e);
/* Reads a definition. WEIR_ECONFIG: it is none, for anybody; WEIR_EINPUT: this machine does not know its time
 * zone. Freed by schedule_free, whatever happens. */
WEIR_CHECKED int schedule_read(struct span name, struct span definition, struct schedule *s, struct error *e);
void schedule_free(struct schedule *s);
/* Finds the next occurrence, in whole seconds; CRON_NEVER: there is none. */
int64_t schedule_next(const struct schedule *s, int64_t after_us);

/* ---- Firing */

/* Which occurrences are to run now, by the policy on missed ones, and when it is due again. */
struct schedule_plan {
    int64_t at_s[SCHEDULE_FIRE_MOST];
    int count;
    int64_t next_s; /* CRON_NEVER: no more */
};
void schedule_make_plan(const struct schedule *s, int64_t due_us, int64_t now_us, struct schedule_plan *plan);
/* Fires a schedule by its plan. s NULL: nobody can read it, so nothing is enqueued and it is not due again; plan is then not used. */
void schedule_fire_request(struct args *a, const char *prefix, int64_t now_us, struct span name,
                           struct span definition, int64_t due_us, const struct schedule *s,
                           const struct schedule_plan *plan);
/* *fired: false when somebody else was first, or it was changed. */
WEIR_CHECKED int schedule_fire_reply(const struct redisReply *reply, bool *fired, struct error *e);

/* ---- What commands do with them: each asks Redis; failures are in w->error */

/* A schedule as it stands in Redis. */
struct schedule_row {
    char name[SCHEDULE_NAME_MOST + 1];
    int status;       /* of reading it; not 0: s has what could be read */
    struct error why; /* when status is not 0 */
    struct schedule s;
    int64_t due_us; /* its next occurrence; -1: none */
    int64_t now_us; /* by Redis's clock */
};
/* Finds the schedule of that name; WEIR_ENOTFOUND when there is none, and of the row only now_us is set. row->s is the caller's to free,
 * whatever happens. */
WEIR_CHECKED int schedule_find(struct weir *w, const char *name, struct schedule_row *row);
/* Gives each to take, in no order; one may come twice. Anything but 0 of take ends that and is returned. */
WEIR_CHECKED int schedule_each(struct weir *w, int (*take)(struct schedule_row *row, void *arg), void *arg);

/* text: the definition, of s. keep: an occurrence for which the one of that name waits stays the next one.
 * *known: there was one. */
WEIR_CHECKED int schedule_put(struct weir *w, const char *name, const struct schedule *s, const char *text,
                              int64_t next_us, bool keep, bool *known);
WEIR_CHECKED int schedule_take_out(struct weir *w, const char *name);
/* Enqueues one of its jobs now, with an id of its own, which is written to id and begins with the name; its occurrences go on. */
WEIR_CHECKED int schedule_enqueue(struct weir *w, const struct schedule *s, char id[WEIR_ID_SIZE]);
