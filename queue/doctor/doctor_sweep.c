/* What a namespace has in Redis, gone through page by page from outside: no call keeps Redis longer than a few
 * milliseconds, and each page is judged within one call, so nothing is wrong only because workers go on. A page
 * names suspects, which are looked at once more at all places, or repaired, in the call that judges them. After
 * a repair all is gone through again. A repair also counts all jobs, which a look does not. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/client/pages.h"
#include "core/clock.h"
#include "core/script/script.h"
#include "queue/doctor/doctor.h"

#define TOLD_MOST 20 /* findings of one fault that are told one by one */
#define PASSES_MOST 8

#define PAGE_BEGIN 100 /* keys of the first page */
#define PAGE_MOST 400  /* each is up to ten commands */
#define PAGE_LEAST 10
#define SHORT_US 700     /* of a call: pages grow */
#define LONG_US 2000     /* they shrink */
#define REST_FROM_US 200 /* of a longer one: for as long Redis is left to the others */
#define PAGE_BYTES (1024 * 1024)

/* Findings, as doctor_faults.lua says them. */
struct told {
    json_t *by_text;  /* up to TOLD_MOST of each fault */
    json_t *by_fault; /* the first of each, and in "count" how many there are */
    size_t all;
};

/* One run, of several passes. */
struct sweep {
    struct weir *w;
    int64_t now_us;
    bool repair;
    struct doctor *d;
    int page;          /* keys, members or suspects to ask for at once */
    const char *place; /* that is gone through; "": all keys */
    int64_t begun_us;  /* the last call */
    json_t *places;    /* to be gone through */
    json_t *suspects,
        *gates; /* "family name"; gates: judged last, when all workers that have leases are registered */
    json_t *strangers;           /* suspects that wait at a gate of others -> that gate */
    json_t *types;               /* what was found of each type, as doctor.lua's sums */
    struct told found, repaired; /* in this pass; in all of them */
    size_t repaired_before;      /* this pass */
    bool no_memory, broken;
    int64_t keys;              /* of this pass */
    int64_t calls, longest_us; /* of the run */
};

/* ---- Findings */

static enum doctor_state state_of(const json_t *finding)
{
    enum doctor_state state = DOCTOR_OK;

    while (state < DOCTOR_WRONG && strcmp(answer_text(finding, "state"), doctor_states[state]) != 0)
        state++;
    return *answer_text(finding, "done") ? DOCTOR_REPAIRED : state;
}

/* Counts the findings of its fault, with this one. */
static int64_t count_fault(struct sweep *s, const struct told *told, json_t *finding)
{
    const char *fault = answer_text(finding, "fault");
    json_t *first = json_object_get(told->by_fault, fault);
    int64_t count = answer_int(first, "count") + 1;

    if (!first)
        s->no_memory |= json_object_set_nocheck(told->by_fault, fault, first = finding) != 0;
    s->no_memory |= json_object_set_new(first, "count", json_integer(count)) != 0;
    return count;
}

static void tell(struct sweep *s, json_t *finding)
{
    enum doctor_state state = state_of(finding);
    struct told *told = state == DOCTOR_REPAIRED ? &s->repaired : &s->found;
    const char *text = answer_text(finding, "text");

    s->broken |= state == DOCTOR_WRONG;
    told->all++;
    if (json_object_get(told->by_text, text)) /* SCAN may show a key twice */
        return;
    if (count_fault(s, told, finding) <= TOLD_MOST)
        s->no_memory |= json_object_set_nocheck(told->by_text, text, finding) != 0;
}

static void tell_all(struct sweep *s, const json_t *found)
{
    size_t i;
    json_t *finding;

    json_array_foreach(found, i, finding)
        if (json_is_object(finding))
            tell(s, finding);
}

static void report(struct sweep *s, const struct told *told)
{
    const char *key;
    json_t *finding;

    json_object_foreach(told->by_text, key, finding) {
        const char *done = answer_text(finding, "done");

        doctor_add(s->d, answer_text(finding, "check"), state_of(finding),
                   *done ? NULL : answer_text(finding, "todo"), "%s%s%s", key, *done ? "; repaired: " : "",
                   done);
    }
    json_object_foreach(told->by_fault, key, finding)
        if (answer_int(finding, "count") > TOLD_MOST)
            doctor_add(s->d, answer_text(finding, "check"), state_of(finding), answer_text(finding, "todo"),
                       "and %" PRId64 " more like these", answer_int(finding, "count") - TOLD_MOST);
}

/* ---- The second look */

/* Sets the next page's size by how long a call took, and leaves Redis to the others for as long, 2 ms at most. */
static void rest(struct sweep *s)
{
    int64_t took_us = clock_mono_us() - s->begun_us;

    s->calls++;
    s->longest_us = took_us > s->longest_us ? took_us : s->longest_us;
    if (took_us < SHORT_US)
        s->page = 2 * s->page < PAGE_MOST ? 2 * s->page : PAGE_MOST;
    else if (took_us > LONG_US && s->page > PAGE_LEAST) /* large members may have made it smaller still */
        s->page = s->page / 2 > PAGE_LEAST ? s->page / 2 : PAGE_LEAST;
    if (took_us > REST_FROM_US && s->now_us < 0)
        clock_sleep_until(clock_mono_us() + (took_us < LONG_US ? took_us : LONG_US));
}

static int ask_again(struct sweep *s, size_t first, json_t **answer)
{
    const char *script = s->repair ? "doctor_mend" : "doctor_again";
    size_t end = first + (size_t)s->page;
    char text[1024];
    struct args a = {0};

    script_begin(&a, script, s->w->prefix, s->now_us);
    for (size_t i = first; i < end && i < json_array_size(s->suspects); i++) {
        const json_t *thing = json_array_get(s->suspects, i);
        const char *seen = answer_text(s->strangers, json_string_value(thing));

        snprintf(text, sizeof text, "%s %s", json_string_value(thing), seen);
        if (*seen)
            args_add(&a, text);
        else
            args_add_bytes(&a, json_string_value(thing), json_string_length(thing));
    }
    s->begun_us = clock_mono_us();
    return client_ask(s->w, script, &a, answer);
}

/* Where Redis refuses what repairs write, things are only looked at. */
static int ask_or_look(struct sweep *s, size_t first, json_t **answer)
{
    int status = ask_again(s, first, answer);

    if (status == 0 || status == WEIR_EUNREACHABLE || !s->repair)
        return status;
    doctor_add(s->d, "repair", DOCTOR_WRONG, NULL, "%s", s->w->error.text);
    s->repair = false;
    return ask_again(s, first, answer);
}

static int judge(struct sweep *s)
{
    int status = 0;

    s->page = PAGE_LEAST; /* what a look at all places takes is not known */
    for (size_t first = 0, asked; status == 0 && first < json_array_size(s->suspects); first += asked) {
        json_t *answer;

        asked = (size_t)s->page;
        status = ask_or_look(s, first, &answer);
        rest(s);
        tell_all(s, json_object_get(answer, "found"));
        json_decref(answer);
    }
    json_array_clear(s->suspects);
    return status;
}

/* ---- A page */

static void ask_page(struct args *a, void *arg)
{
    struct sweep *s = arg;

    args_add(a, s->place);
    args_add_int(a, s->page);
    s->begun_us = clock_mono_us();
}

static void keep(struct sweep *s, json_t *list, const json_t *words)
{
    size_t i;
    json_t *word;

    json_array_foreach(words, i, word)
        if (json_is_string(word))
            s->no_memory |= json_array_append(list, word) != 0;
}

static void add_sums(struct sweep *s, json_t *sums)
{
    static const char *const members[] = {"lanes", "leased", "later"};
    const char *type;
    json_t *found;

    json_object_foreach(sums, type, found) {
        json_t *all = json_object_get(s->types, type);

        for (size_t i = 0; all && i < sizeof members / sizeof *members; i++) {
            int64_t sum = answer_int(all, members[i]) + answer_int(found, members[i]);

            s->no_memory |= json_object_set_new(all, members[i], json_integer(sum)) != 0;
        }
        if (!all && json_is_object(found))
            s->no_memory |= json_object_set_nocheck(s->types, type, found) != 0;
    }
}

static int take_page(const json_t *page, void *arg)
{
    struct sweep *s = arg;
    const char *thing;
    json_t *gate;

    rest(s);
    if (answer_int(page, "bytes") > PAGE_BYTES && s->page > 1)
        s->page /= 2;
    s->keys += answer_int(page, "keys");
    keep(s, s->places, json_object_get(page, "places"));
    keep(s, s->suspects, json_object_get(page, "suspects"));
    keep(s, s->gates, json_object_get(page, "gates"));
    json_object_foreach(json_object_get(page, "strangers"), thing, gate)
        s->no_memory |= json_object_set_nocheck(s->strangers, thing, gate) != 0;
    tell_all(s, json_object_get(page, "found"));
    if (s->repair)
        add_sums(s, json_object_get(page, "sums"));
    return s->no_memory ? error_no_memory(&s->w->error, "doctor") : 0;
}

static int look_at(struct sweep *s, const char *place)
{
    const struct pages pages = {.w = s->w,
                                .script = "doctor",
                                .now_us = s->now_us,
                                .arg = s,
                                .ask = ask_page,
                                .take = take_page,
                                .here = true};

    s->place = place;
    return pages_walk(&pages);
}

/* ---- All of it */

/* Whose counters were read before all else was found. */
static void suspect_counters(struct sweep *s)
{
    const char *type;
    json_t *found;

    json_object_foreach(s->types, type, found) {
        const char *before = answer_text(found, "before");
        char text[600];

        snprintf(text, sizeof text, "counters %s %" PRId64 " %" PRId64 " %" PRId64 " %s", type,
                 answer_int(found, "lanes"), answer_int(found, "leased"), answer_int(found, "later"), before);
        if (*before)
            s->no_memory |= json_array_append_new(s->suspects, json_string_nocheck(text)) != 0;
    }
}

static void begin_pass(struct sweep *s)
{
    json_object_clear(s->found.by_text);
    json_object_clear(s->found.by_fault);
    json_object_clear(s->types);
    json_array_clear(s->places);
    json_array_clear(s->gates);
    json_object_clear(s->strangers);
    s->repaired_before = s->repaired.all;
    s->keys = 0;
    s->broken = false;
}

/* Types come first: what was counted before all else is found. */
static int look_at_all(struct sweep *s)
{
    const char *thing;
    json_t *gate;
    int status;

    begin_pass(s);
    status = look_at(s, "types");
    if (status == 0)
        status = look_at(s, "");
    for (size_t i = 0; status == 0 && i < json_array_size(s->places); i++)
        status = look_at(s, json_string_value(json_array_get(s->places, i)));
    json_object_foreach(s->strangers, thing, gate)
        s->no_memory |= json_array_append_new(s->suspects, json_string_nocheck(thing)) != 0;
    if (status == 0)
        status = judge(s);
    if (!json_object_get(s->found.by_fault, "worker-unlisted"))
        keep(s, s->suspects, s->gates);
    suspect_counters(s);
    return status == 0 ? judge(s) : status;
}

static void conclude(const struct sweep *s, double seconds)
{
    bool settled = s->repaired.all == s->repaired_before; /* by the last pass */
    enum doctor_state state = s->broken ? DOCTOR_WRONG : settled ? DOCTOR_OK : DOCTOR_WARNING;
    const char *todo = s->broken ? "see above" : settled ? NULL : "look once more: weir doctor";
    const char *verdict = s->broken         ? "; some of them do not agree"
                          : !settled        ? "; the last pass still repaired some of them"
                          : s->repaired.all ? "; they agree now"
                                            : "; they agree";

    doctor_add(s->d, "structures", state, todo,
               "%" PRId64 " key%s checked in %.1f s by %" PRId64 " calls, the longest took %.1f ms%s",
               s->keys, s->keys == 1 ? "" : "s", seconds, s->calls, (double)s->longest_us / 1e3, verdict);
}

static int run_passes(struct sweep *s)
{
    int64_t begin_us = clock_mono_us();
    int status, passes = 0;

    do
        status = look_at_all(s);
    while (status == 0 && s->repaired.all > s->repaired_before && ++passes < PASSES_MOST);
    s->d->broken += s->broken;
    report(s, &s->repaired);
    report(s, &s->found);
    if (status == 0)
        conclude(s, (double)(clock_mono_us() - begin_us) / 1e6);
    return status == 0 && s->no_memory ? error_no_memory(&s->w->error, "doctor") : status;
}

int doctor_structures(struct weir *w, int64_t now_us, bool repair, struct doctor *d)
{
    struct sweep s = {.w = w,
                      .now_us = now_us,
                      .repair = repair,
                      .d = d,
                      .page = PAGE_BEGIN,
                      .places = json_array(),
                      .suspects = json_array(),
                      .gates = json_array(),
                      .strangers = json_object(),
                      .types = json_object(),
                      .found = {json_object(), json_object(), 0},
                      .repaired = {json_object(), json_object(), 0}};
    json_t *const all[] = {s.strangers,
                           s.places,
                           s.gates,
                           s.suspects,
                           s.types,
                           s.found.by_text,
                           s.found.by_fault,
                           s.repaired.by_text,
                           s.repaired.by_fault};
    int status;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        s.no_memory |= !all[i];
    status = s.no_memory ? error_no_memory(&s.w->error, "doctor") : run_passes(&s);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        json_decref(all[i]);
    return status;
}
