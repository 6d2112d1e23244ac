/* What the files of the doctor that go over the structures share; doctor.h names them. A function that can
 * fail returns 0 or a negative status, and then s->w->error says why. */
#ifndef QUEUE_DOCTOR_DOCTOR_SWEEP_H
#define QUEUE_DOCTOR_DOCTOR_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/redis/client.h"
#include "core/redis/reply.h"
#include "queue/doctor/doctor.h"
#include "queue/job/job.h"

#define PAGE_BEGIN 100 /* keys of the first page */

struct kind;
struct tally;

/* Some texts. */
struct texts {
    struct span *at; /* each is its owner's copy */
    size_t count, capacity;
};

/* One run, of several passes over all that there is. */
struct sweep {
    struct weir *w;
    int64_t now_us;
    bool repair;
    int page;              /* keys or members to ask for at once */
    struct texts places;   /* to be gone through */
    struct texts suspects; /* family, name, family, name ... */
    struct texts gates;    /* that count jobs in flight */
    struct texts gone;     /* limits that gates are named after and that are not there */
    struct texts orphans;  /* workers that are not registered */
    struct tally *tallies;
    size_t tally_count;
    struct doctor mended, found; /* found: in this pass */
    size_t *told;                /* findings of this pass, of each kind */
    size_t mended_count;         /* of this pass */
    bool broken, unsure;         /* unsure: counters seem wrong that did not before */
    int64_t keys;                /* of this pass */
    int64_t calls, longest_us;   /* of the run */
};

/* The text, "" when it is none. */
static inline const char *text_of(const struct redisReply *r)
{
    return r->type == REDIS_REPLY_STRING ? r->str : "";
}

/* The i-th element, when it is an array; else an empty one. */
static inline const struct redisReply *array_of(const struct redisReply *r, size_t i)
{
    static const struct redisReply none = {.type = REDIS_REPLY_ARRAY};

    return r->element[i]->type == REDIS_REPLY_ARRAY ? r->element[i] : &none;
}

/* ---- doctor.c: what is told */

/* The kind of findings that the scripts give this name; one that is unknown is an error to be reported. */
const struct kind *kind_find(const char *name);
/* Are findings of this kind to be mended now? */
bool sweep_mends(const struct sweep *s, const struct kind *kind);
/* Adds a finding to those of this pass. todo: NULL for that of its kind. */
void sweep_tell(struct sweep *s, const struct kind *kind, const char *text, const char *todo);
/* Sends a call of doctor_mend, frees it, and tells what has become of the finding. Not mended is no failure;
 * WEIR_EUNREACHABLE is. */
WEIR_CHECKED int sweep_mend(struct sweep *s, struct args *a, const struct kind *kind, const char *text);

/* ---- doctor_pages.c: asking, page by page */

/* Frees the texts and leaves their list empty; texts_free: the list too. */
void texts_clear(struct texts *t);
void texts_free(struct texts *t);
/* Sorts them, each once. */
void texts_sort(struct texts *t);
/* Adds those from first to before end, as far as there are so many. */
void args_add_texts(struct args *a, const struct texts *t, size_t first, size_t end);
/* Adds how many there are, and all of them. */
void args_add_counted(struct args *a, const struct texts *t);

/* Out of memory: the status. */
int sweep_no_memory(struct sweep *s);
/* Begins a call of a script; sweep_call ends it. */
void sweep_begin_call(struct sweep *s, struct args *a, const char *script);
/* Sends a and frees it, sets the next page's size by how long that took, and leaves Redis to the others for
 * as long, 2 ms at most. *reply is the caller's. */
WEIR_CHECKED int sweep_call(struct sweep *s, struct args *a, struct redisReply **reply);
/* A call that began then has ended: counts it, and leaves Redis to the others. Returns how long it took. */
int64_t sweep_rest(struct sweep *s, int64_t begin_us);
/* Judges all keys, tells or mends what is wrong, and gathers what is to be compared. */
WEIR_CHECKED int sweep_keys(struct sweep *s);
/* The same for the members of one key, named as doctor.lua names places; what seems wrong there may still
 * await its second look. */
WEIR_CHECKED int sweep_members(struct sweep *s, const char *place);

/* ---- doctor_counts.c: what only adds up over many pages */

/* Takes what doctor.lua has counted on a page; rows: type, what, n. */
WEIR_CHECKED int sweep_add_sums(struct sweep *s, const struct redisReply *rows);
/* Before the keys: the types that are registered, and their counters. */
WEIR_CHECKED int sweep_begin_counters(struct sweep *s);
/* After them: compares the counters with what was found. */
WEIR_CHECKED int sweep_judge_counters(struct sweep *s);
/* Compares what dead_bytes says with the dead jobs, if none moves meanwhile. */
WEIR_CHECKED int sweep_judge_dead(struct sweep *s);
/* Compares what the gates count with the leases. */
WEIR_CHECKED int sweep_judge_gates(struct sweep *s);

#endif
