/* What only adds up over many pages. The counters of types are compared with the counters before and after:
 * as many as they have moved meanwhile the sum may be off. Jobs in flight are counted by one call. */
#include "queue/doctor/doctor_sweep.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "queue/dead/dead.h"

#define TYPES_PAGE 200
#define GATES_PAGE 200
#define COUNTERS 11
#define NUMBER_MOST                                                                                          \
    (INT64_C(1)                                                                                              \
     << 53) /* Lua's; more is what somebody else wrote, and sums of it overflow                   \
                        */

/* ---- Counters of types */

/* The jobs of a type that were found, and its counters before and after. */
struct tally {
    char type[132];
    int64_t lanes, leased, later;
    int64_t before[COUNTERS], after[COUNTERS];
    char seen[COUNTERS * 21];                  /* after, as it was told */
    int64_t parked_off, leased_off, later_off; /* by so many the counters are off; of the last pass */
    bool off, was_off;
};
enum counter { ENQUEUED, PULLED, PARKED, RETURNED, SERVED, DONE, RETRIED, DEAD, BACK, SCHEDULED, DROPPED };

static struct tally *tally_of(struct sweep *s, const char *type)
{
    struct tally *grown;

    for (size_t i = 0; i < s->tally_count; i++)
        if (strcmp(s->tallies[i].type, type) == 0)
            return &s->tallies[i];
    grown = realloc(s->tallies, (s->tally_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    s->tallies = grown;
    grown += s->tally_count++;
    *grown = (struct tally){.lanes = 0};
    snprintf(grown->type, sizeof grown->type, "%s", type);
    return grown;
}

static int64_t bounded(int64_t n)
{
    return n > NUMBER_MOST ? NUMBER_MOST : n < -NUMBER_MOST ? -NUMBER_MOST : n;
}

int sweep_add_sums(struct sweep *s, const struct redisReply *rows)
{
    for (size_t i = 0; i + 2 < rows->elements; i += 3) {
        struct tally *t = tally_of(s, text_of(rows->element[i]));
        const char *what = text_of(rows->element[i + 1]);
        int64_t *sum;

        if (!t)
            return sweep_no_memory(s);
        sum = strcmp(what, "lanes") == 0 ? &t->lanes : strcmp(what, "leased") == 0 ? &t->leased : &t->later;
        *sum = bounded(*sum + bounded(reply_int(rows->element[i + 2], 0)));
    }
    return 0;
}

static void read_counters(const char *text, int64_t counters[COUNTERS])
{
    for (int i = 0; i < COUNTERS; i++) {
        counters[i] = bounded(strtoll(text, NULL, 10));
        text += strcspn(text, ",");
        text += *text == ',';
    }
}

/* The counters of some types as they are; queued: jobs in queues now. */
static int ask_counters(struct sweep *s, size_t first, size_t end, int64_t *queued)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    sweep_begin_call(s, &a, "doctor_counts");
    for (size_t i = first; i < end; i++)
        args_add(&a, s->tallies[i].type);
    status = sweep_call(s, &a, &reply);
    if (status == 0)
        status = reply_array(reply, 1 + end - first, "doctor_counts", &s->w->error);
    if (status == 0)
        *queued = reply_int(reply->element[0], 0);
    for (size_t i = first; status == 0 && i < end; i++) {
        struct tally *t = &s->tallies[i];

        snprintf(t->seen, sizeof t->seen, "%s", text_of(reply->element[1 + i - first]));
        read_counters(t->seen, t->after);
    }
    freeReplyObject(reply);
    return status;
}

/* Jobs that were enqueued and that no worker has looked at, by the counters. */
static int64_t waiting_of(const struct tally *t)
{
    int64_t n = t->after[ENQUEUED] - t->after[PULLED] - t->after[PARKED] - t->after[DROPPED];

    return n > 0 ? n : 0;
}

static int mend_counters(struct sweep *s, const struct tally *t, const struct kind *kind, const char *text,
                         const char *const *counters, const int64_t *by, size_t count)
{
    struct args a;

    sweep_begin_call(s, &a, "doctor_mend");
    args_add(&a, "counters");
    args_add(&a, t->type);
    args_add(&a, t->seen);
    for (size_t i = 0; i < count; i++) {
        args_add(&a, counters[i]);
        args_add_int(&a, by[i]);
    }
    return sweep_mend(s, &a, kind, text);
}

/* No queue holds anything: what is said to wait there is gone. */
static int forget_queued(struct sweep *s, const struct kind *kind)
{
    static const char *const counters[] = {"enqueued"};
    char text[300];
    int status = 0;

    for (size_t i = 0; status == 0 && i < s->tally_count; i++) {
        int64_t by = -waiting_of(&s->tallies[i]);

        snprintf(text, sizeof text,
                 "type %s: by its counters %" PRId64 " jobs wait, and all queues are empty",
                 s->tallies[i].type, -by);
        if (by != 0)
            status = mend_counters(s, &s->tallies[i], kind, text, counters, &by, 1);
    }
    return status;
}

/* More that were enqueued and not looked at than all queues hold. What others push is not counted, so fewer
 * says nothing. All types were asked in one call. */
static int judge_queued(struct sweep *s, int64_t queued)
{
    const struct kind *kind = kind_find("queued");
    int64_t waiting = 0;
    char text[200];

    for (size_t i = 0; i < s->tally_count; i++)
        waiting += waiting_of(&s->tallies[i]);
    if (waiting <= queued)
        return 0;
    if (s->repair && queued == 0)
        return forget_queued(s, kind);
    snprintf(text, sizeof text,
             "%" PRId64 " jobs wait by the counters, %" PRId64
             " are in queues: a queue was deleted or purged by hand",
             waiting, queued);
    sweep_tell(s, kind, text,
               queued > 0 ? "once all queues are empty, weir doctor --repair sets the counters right" : NULL);
    return 0;
}

/* A counter may be off by as many as have moved while the jobs were counted, and is not wrong. */
static bool is_off(const struct tally *t, int64_t off)
{
    int64_t moves = 0;

    for (int i = 0; i < COUNTERS; i++)
        moves += llabs(t->after[i] - t->before[i]);
    return llabs(off) > moves;
}

static void compare(struct tally *t)
{
    const int64_t *n = t->after;

    t->parked_off = t->lanes - (n[PARKED] + n[RETURNED] - n[SERVED]);
    t->leased_off = t->leased - (n[PULLED] + n[SERVED] - n[DONE] - n[RETRIED] - n[DEAD] - n[BACK]);
    t->later_off = t->later - n[SCHEDULED];
    t->off = is_off(t, t->parked_off) || is_off(t, t->leased_off) || is_off(t, t->later_off);
}

/* As if so many jobs had been enqueued, leased, and of those to be parked handed back: all else that is
 * counted agrees as before. */
static int set_right(struct sweep *s, const struct tally *t, const struct kind *kind, const char *text)
{
    static const char *const counters[] = {"enqueued", "pulled", "back", "returned", "scheduled"};
    const int64_t both = t->parked_off + t->leased_off;
    const int64_t by[] = {both, both, t->parked_off, t->parked_off, t->later_off};

    return mend_counters(s, t, kind, text, counters, by, 5);
}

/* Told, and mended, only when it was off in the pass before as well: a key that SCAN has shown twice is no
 * fault of the counters. */
static int judge_counters(struct sweep *s, struct tally *t)
{
    const struct kind *kind = kind_find("counters");
    char text[400];

    compare(t);
    if (!t->off || !t->was_off) {
        s->unsure |= t->off;
        return 0;
    }
    snprintf(text, sizeof text,
             "type %s: by its counters %" PRId64 " are parked, %" PRId64 " run and %" PRId64
             " are scheduled; it is %" PRId64 ", %" PRId64 " and %" PRId64,
             t->type, t->lanes - t->parked_off, t->leased - t->leased_off, t->later - t->later_off, t->lanes,
             t->leased, t->later);
    if (!s->repair) {
        sweep_tell(s, kind, text, NULL);
        return 0;
    }
    if (memcmp(t->before, t->after, sizeof t->before) == 0)
        return set_right(s, t, kind, text);
    sweep_tell(
        s, kind, text,
        "its jobs move, so nobody can tell by how many: weir doctor --repair when workers are stopped");
    return 0;
}

int sweep_judge_counters(struct sweep *s)
{
    int64_t queued = 0;
    int status = 0;

    for (size_t first = 0; status == 0 && first < s->tally_count; first += TYPES_PAGE) {
        size_t end = first + TYPES_PAGE < s->tally_count ? first + TYPES_PAGE : s->tally_count;

        status = ask_counters(s, first, end, &queued);
        if (status == 0 && end == s->tally_count && first == 0)
            status = judge_queued(s, queued);
    }
    for (size_t i = 0; status == 0 && i < s->tally_count; i++)
        status = judge_counters(s, &s->tallies[i]);
    return status;
}

int sweep_begin_counters(struct sweep *s)
{
    int64_t queued;
    int status;

    for (size_t i = 0; i < s->tally_count; i++) {
        struct tally *t = &s->tallies[i];

        t->lanes = t->leased = t->later = 0;
        t->was_off = t->off;
    }
    status = sweep_members(s, "types");
    for (size_t first = 0; status == 0 && first < s->tally_count; first += TYPES_PAGE)
        status = ask_counters(
            s, first, first + TYPES_PAGE < s->tally_count ? first + TYPES_PAGE : s->tally_count, &queued);
    for (size_t i = 0; i < s->tally_count; i++)
        memcpy(s->tallies[i].before, s->tallies[i].after, sizeof s->tallies[i].before);
    return status;
}

/* ---- Bytes of the dead jobs */

/* All of their records, page by page: their bytes, or -1 if they moved meanwhile. */
static int sum_dead(struct sweep *s, struct dead_sizes *sizes, int64_t *bytes)
{
    int64_t counted = 0, jobs = 0;
    int status = 0;

    for (*bytes = 0; status == 0 && !sizes->ended && counted >= 0;) {
        int64_t begin_us = clock_mono_us();
        bool first = sizes->page == NULL;

        status = dead_sizes_next(s->w, s->now_us, sizes);
        sweep_rest(s, begin_us);
        if (status != 0)
            break;
        counted = first || counted == sizes->counted ? sizes->counted : -1;
        for (size_t i = 0; i < sizes->found; i++)
            *bytes += dead_size(sizes, i);
        jobs += (int64_t)sizes->found;
    }
    if (counted < 0 || jobs != sizes->jobs)
        *bytes = -1;
    return status;
}

static int judge_bytes(struct sweep *s, int64_t counted, int64_t found)
{
    const struct kind *kind = kind_find("dead-bytes");
    char text[200];
    struct args a;

    snprintf(text, sizeof text, "dead_bytes counts %" PRId64 " bytes of dead jobs, they have %" PRId64,
             counted, found);
    if (!s->repair) {
        sweep_tell(s, kind, text, NULL);
        return 0;
    }
    sweep_begin_call(s, &a, "doctor_mend");
    args_add(&a, "dead_bytes");
    args_add_int(&a, counted);
    return sweep_mend(s, &a, kind, text);
}

int sweep_judge_dead(struct sweep *s)
{
    struct dead_sizes sizes = {.ended = false};
    int64_t bytes;
    int status = sum_dead(s, &sizes, &bytes);

    if (status == 0 && bytes >= 0 && bytes != sizes.counted)
        status = judge_bytes(s, sizes.counted, bytes);
    dead_sizes_end(&sizes);
    return status == WEIR_EUNREACHABLE ? status : 0; /* a key of a wrong kind is told elsewhere */
}

/* ---- Jobs in flight */

static int mend_gate(struct sweep *s, const char *gate, const struct kind *kind, const char *text)
{
    struct args a;

    sweep_begin_call(s, &a, "doctor_mend");
    args_add(&a, "gate");
    args_add(&a, gate);
    args_add_texts(&a, &s->orphans, 0, s->orphans.count);
    return sweep_mend(s, &a, kind, text);
}

/* rows: gate, what it says, leases. */
static int judge_gates(struct sweep *s, const struct redisReply *rows)
{
    const struct kind *kind = kind_find("slots");
    char text[600];
    int status = 0;

    for (size_t i = 0; status == 0 && i + 2 < rows->elements; i += 3) {
        const char *gate = text_of(rows->element[i]);

        snprintf(text, sizeof text, "gate %s counts %" PRId64 " jobs in flight, %" PRId64 " leases took it",
                 gate, reply_int(rows->element[i + 1], 0), reply_int(rows->element[i + 2], 0));
        if (s->repair)
            status = mend_gate(s, gate, kind, text);
        else
            sweep_tell(s, kind, text, NULL);
    }
    return status;
}

static int look_at_gates(struct sweep *s, size_t first, bool *counted)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    sweep_begin_call(s, &a, "doctor_flight");
    args_add_counted(&a, &s->orphans);
    args_add_texts(&a, &s->gates, first, first + GATES_PAGE);
    status = sweep_call(s, &a, &reply);
    if (status == 0)
        status = reply_array(reply, 3, "doctor_flight", &s->w->error);
    if (status == 0)
        *counted = reply_int(reply->element[1], 0) == 1;
    if (status == 0 && !*counted)
        doctor_add(&s->found, "slots", DOCTOR_OK, NULL,
                   "not looked at: %" PRId64 " jobs run, too many to count at once",
                   reply_int(reply->element[0], 0));
    if (status == 0)
        status = judge_gates(s, array_of(reply, 2));
    freeReplyObject(reply);
    return status;
}

int sweep_judge_gates(struct sweep *s)
{
    bool counted = true;
    int status = 0;

    texts_sort(&s->gates);
    texts_sort(&s->orphans);
    for (size_t first = 0; status == 0 && counted && first < s->gates.count; first += GATES_PAGE)
        status = look_at_gates(s, first, &counted);
    return status;
}
