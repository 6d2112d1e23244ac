/* The structures: gone over as a whole, in passes, and what is told of it. After something was mended all is
 * gone over again. */
#include "queue/doctor/doctor_sweep.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/decimal.h"

#define TOLD_MOST 20 /* findings of one kind that are told one by one */
#define PASSES_MOST 5

/* ---- What was found */

/* A copy without what a terminal or JSON would choke on. */
static char *printable(const char *text)
{
    char *copy = strdup(text ? text : "");

    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    return copy;
}

static void add_check(struct doctor *d, struct doctor_check check)
{
    if (d->count == d->capacity) {
        size_t capacity = d->capacity ? 2 * d->capacity : 32;
        struct doctor_check *grown = realloc(d->checks, capacity * sizeof *grown);

        if (grown) {
            d->checks = grown;
            d->capacity = capacity;
        }
    }
    if (d->count == d->capacity || !check.text || !check.todo) {
        d->no_memory = true;
        free(check.text);
        free(check.todo);
        return;
    }
    d->checks[d->count++] = check;
}

void doctor_add(struct doctor *d, const char *name, enum doctor_state state, const char *todo,
                const char *fmt, ...)
{
    char text[1024];
    va_list rest;

    va_start(rest, fmt);
    decimal_vprint(text, sizeof text, fmt, rest);
    va_end(rest);
    add_check(d, (struct doctor_check){name, state, printable(text), printable(todo)});
}

static void drop_checks(struct doctor *d)
{
    for (size_t i = 0; i < d->count; i++) {
        free(d->checks[i].text);
        free(d->checks[i].todo);
    }
    d->count = 0;
}

void doctor_free(struct doctor *d)
{
    drop_checks(d);
    free(d->checks);
}

/* Findings by their kind as the scripts name it. todo: of those that are not mended. */
static const struct kind {
    const char *kind, *name;
    enum doctor_state state;
    bool mendable;
    const char *todo;
} kinds[] = {
    {"lane-nowhere", "lanes", DOCTOR_WRONG, true, NULL},
    {"lane-twice", "lanes", DOCTOR_WRONG, true, NULL},
    {"no-lane", "lanes", DOCTOR_WRONG, true, NULL},
    {"credit", "lanes", DOCTOR_WARNING, true, NULL},
    {"type-nowhere", "types", DOCTOR_WRONG, true, NULL},
    {"type-twice", "types", DOCTOR_WRONG, true, NULL},
    {"no-ring", "types", DOCTOR_WRONG, true, NULL},
    {"misplaced", "gates", DOCTOR_WRONG, true, NULL},
    {"gate-unlisted", "gates", DOCTOR_WRONG, true, NULL},
    {"gate-empty", "gates", DOCTOR_WRONG, true, NULL},
    {"star", "gates", DOCTOR_WRONG, true, NULL},
    {"slots", "slots", DOCTOR_WRONG, true, NULL},
    {"counters", "counters", DOCTOR_WRONG, true, NULL},
    {"counter", "counters", DOCTOR_WRONG, true, NULL},
    {"dead-bytes", "dead", DOCTOR_WRONG, true, NULL},
    {"worker-unlisted", "workers", DOCTOR_WRONG, true, NULL},
    {"worker-bare", "workers", DOCTOR_WRONG, true, NULL},
    {"silent", "workers", DOCTOR_WARNING, false,
     "start a worker: its heartbeats take back the jobs of those that are silent"},
    {"kept", "workers", DOCTOR_WRONG, false,
     "somebody else writes here: rename or delete that key; then a heartbeat takes them back"},
    {"token", "workers", DOCTOR_WRONG, false, "when its worker ends, its job goes to the dead jobs"},
    {"duty", "duty", DOCTOR_WARNING, true, NULL},
    {"lost", "data", DOCTOR_WARNING, false,
     "enqueue and schedule again what is missing, look whether all limits are there (weir rate list), and "
     "look after Redis's AOF"},
    {"went-back", "data", DOCTOR_WARNING, false,
     "enqueue again what is missing, look whether all limits are as they were (weir rate list), and look "
     "after "
     "Redis's AOF or its failover"},
    {"keyless", "limits", DOCTOR_WARNING, false,
     "weir rate set NAME RULE,by=PATH with the path that its jobs have"},
    {"held", "held", DOCTOR_WARNING, false, "start a worker that has a handler for it"},
    {"dead", "dead", DOCTOR_WARNING, false, "weir dead list"},
    {"unregistered", "registries", DOCTOR_WRONG, true, NULL},
    {"limit", "limits", DOCTOR_WRONG, false, "set it again: weir rate set NAME RULE"},
    {"limit-gone", "limits", DOCTOR_WRONG, false, "weir rate set NAME RULE, or weir rate unuse TYPE NAME"},
    {"limit-lost", "limits", DOCTOR_WARNING, false, "weir rate set NAME RULE"},
    {"weights", "limits", DOCTOR_WARNING, false, "set them again: weir rate weight NAME KEY N"},
    {"record", "later", DOCTOR_WRONG, false, "when it is due it goes to the dead jobs"},
    {"occurrence", "schedules", DOCTOR_WRONG, true, NULL},
    {"schedule", "schedules", DOCTOR_WRONG, false, "add it again: weir schedule add"},
    {"batch", "batches", DOCTOR_WRONG, false,
     "its numbers cannot be known any more; its jobs are not concerned"},
    {"batch-open", "batches", DOCTOR_WRONG, true, NULL},
    {"batch-gone", "batches", DOCTOR_WRONG, true, NULL},
    {"aside", "batches", DOCTOR_WARNING, false, "weir batch resume NAME"},
    {"queued", "queues", DOCTOR_WARNING, true, NULL},
    {"in-the-way", "keys", DOCTOR_WRONG, true, NULL},
    {"put-aside", "keys", DOCTOR_WARNING, false, "look at it, then delete it"},
    {"wrong-kind", "keys", DOCTOR_WRONG, false,
     "somebody else writes here: rename or delete it, or use another --namespace"},
    {"misnamed", "keys", DOCTOR_WRONG, false, "rename or delete it"},
    {"foreign", "keys", DOCTOR_WARNING, false, "somebody else's, or of a newer version; else delete it"},
    {"error", "errors", DOCTOR_WRONG, false, "please report it"},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)
static const char mend_todo[] = "weir doctor --repair mends it";

const struct kind *kind_find(const char *name)
{
    size_t i = 0;

    while (i < KIND_COUNT - 1 && strcmp(kinds[i].kind, name) != 0)
        i++;
    return &kinds[i];
}

bool sweep_mends(const struct sweep *s, const struct kind *kind)
{
    return s->repair && kind->mendable;
}

void sweep_tell(struct sweep *s, const struct kind *kind, const char *text, const char *todo)
{
    s->broken |= kind->state == DOCTOR_WRONG;
    if (s->told[kind - kinds]++ < TOLD_MOST)
        doctor_add(&s->found, kind->name, kind->state,
                   todo             ? todo
                   : kind->mendable ? mend_todo
                                    : kind->todo,
                   "%s", text);
}

static void tell_mended(struct sweep *s, const struct kind *kind, const char *text, const char *done)
{
    if (s->mended_count++ < TOLD_MOST)
        doctor_add(&s->mended, kind->name, DOCTOR_MENDED, NULL, "%s; mended: %s", text, done);
}

/* [1 when it was mended, what was done]; nothing is mended where a key holds something else. */
int sweep_mend(struct sweep *s, struct args *a, const struct kind *kind, const char *text)
{
    struct redisReply *reply = NULL;
    int status = sweep_call(s, a, &reply);

    if (status == WEIR_EUNREACHABLE)
        return status;
    if (status == 0 && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply_int(reply->element[0], 0) == 1)
        tell_mended(s, kind, text, text_of(reply->element[1]));
    else
        sweep_tell(s, kind, text,
                   status ? s->w->error.text
                          : "it could not be mended as it changed meanwhile: weir doctor --repair again");
    freeReplyObject(reply);
    return 0;
}

/* ---- All of it */

static int look_at_all(struct sweep *s)
{
    int status;

    drop_checks(&s->found);
    texts_clear(&s->gates);
    texts_clear(&s->gone);
    texts_clear(&s->orphans);
    memset(s->told, 0, KIND_COUNT * sizeof *s->told);
    s->mended_count = 0;
    s->keys = 0;
    s->broken = s->unsure = false;
    status = sweep_begin_counters(s);
    if (status == 0)
        status = sweep_keys(s);
    if (status == 0)
        status = sweep_judge_gates(s);
    if (status == 0)
        status = sweep_judge_counters(s);
    if (status == 0)
        status = sweep_judge_dead(s);
    return status;
}

static void tell_rest(struct sweep *s)
{
    for (size_t k = 0; k < KIND_COUNT; k++)
        if (s->told[k] > TOLD_MOST)
            doctor_add(&s->found, kinds[k].name, kinds[k].state,
                       kinds[k].mendable ? mend_todo : kinds[k].todo, "and %zu more like these",
                       s->told[k] - TOLD_MOST);
}

/* The checks of part go behind those of d. */
static void move_checks(struct doctor *d, struct doctor *part)
{
    for (size_t i = 0; i < part->count; i++)
        add_check(d, part->checks[i]);
    part->count = 0;
    d->no_memory |= part->no_memory;
    doctor_free(part);
}

static void conclude(const struct sweep *s, struct doctor *d, bool mended, double seconds)
{
    bool settled = s->mended_count == 0; /* by the last pass */
    enum doctor_state state = s->broken ? DOCTOR_WRONG : settled ? DOCTOR_OK : DOCTOR_WARNING;
    const char *todo = s->broken ? "see above" : settled ? NULL : "look once more: weir doctor";
    const char *verdict = s->broken  ? "; some of what they hold does not agree"
                          : !settled ? "; the last look still mended some of what they hold"
                          : mended   ? "; what they hold agrees now"
                                     : "; what they hold agrees";

    doctor_add(d, "structures", state, todo,
               "%" PRId64 " keys looked at in %.1f s by %" PRId64 " calls, the longest took %.1f ms%s",
               s->keys, seconds, s->calls, (double)s->longest_us / 1e3, verdict);
}

static int look_at_structures(struct sweep *s, struct doctor *d)
{
    int64_t begin_us = clock_mono_us();
    size_t mended = 0;
    int status, passes = 0;

    do {
        status = look_at_all(s);
        if (s->mended_count > TOLD_MOST)
            doctor_add(&s->mended, "structures", DOCTOR_MENDED, NULL, "and %zu more were mended",
                       s->mended_count - TOLD_MOST);
        mended += s->mended_count;
    } while (status == 0 && (s->mended_count > 0 || s->unsure) && ++passes < PASSES_MOST);
    tell_rest(s);
    d->broken = s->broken;
    move_checks(d, &s->mended);
    move_checks(d, &s->found);
    if (status == 0)
        conclude(s, d, mended > 0, (double)(clock_mono_us() - begin_us) / 1e6);
    return status;
}

int doctor_run(struct weir *w, int64_t now_us, bool repair, struct doctor *out)
{
    size_t told[KIND_COUNT] = {0};
    struct sweep s = {.w = w, .now_us = now_us, .repair = repair, .page = PAGE_BEGIN, .told = told};
    struct texts *lists[] = {&s.places, &s.suspects, &s.gates, &s.gone, &s.orphans};
    bool usable;
    int status;

    *out = (struct doctor){.count = 0};
    status = doctor_setup(w, now_us, repair, out, &usable);
    if (status == 0 && usable)
        status = look_at_structures(&s, out);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        texts_free(lists[i]);
    free(s.tallies);
    return status == 0 && out->no_memory ? sweep_no_memory(&s) : status;
}
