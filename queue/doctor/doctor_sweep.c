/* What a namespace has in Redis, gone through page by page from outside: no call keeps Redis longer than a few
 * milliseconds, and each page is judged within one call, so nothing is wrong only because workers go on. A page
 * names suspects, which are looked at a second time a moment later, or repaired, which judges them once more.
 * What adds up over pages are suspects too, at the end of a pass: their names say what was found. After a repair
 * all is gone through again. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "core/client/pages.h"
#include "core/clock.h"
#include "core/decimal.h"
#include "core/script/script.h"
#include "queue/dead/dead.h"
#include "queue/doctor/doctor.h"

#define TOLD_MOST 20 /* findings of one fault that are told one by one */
#define PASSES_MOST 5

#define PAGE_BEGIN 100 /* keys of the first page */
#define PAGE_MOST 400  /* each is up to ten commands */
#define PAGE_LEAST 10
#define SHORT_US 700     /* of a call: pages grow */
#define LONG_US 2000     /* they shrink */
#define REST_FROM_US 200 /* of a longer one: for as long Redis is left to the others */
#define PAGE_BYTES (1024 * 1024)
#define SUSPECTS_MOST 200
#define MOMENT_US 20000 /* until the second look */
#define NUMBER_MOST (INT64_C(1) << 53)

/* One run, of several passes. Sets are objects whose members are true. */
struct sweep {
    struct weir *w;
    int64_t now_us;
    bool repair;
    int page;               /* keys, members or suspects to ask for at once */
    const char *place;      /* that is gone through; "": all keys */
    int64_t begun_us;       /* the last call */
    json_t *places;         /* to be gone through */
    json_t *suspects;       /* "family name" */
    json_t *gates;          /* set: that count jobs in flight */
    json_t *gone, *orphans; /* sets: limits that gates are named after, workers; neither is registered */
    json_t *types;          /* what was found of each type, as doctor.lua's sums */
    json_t *off;            /* set: types whose counters did not agree in a pass */
    json_t *told;           /* by fault: a finding, and in count how many there are */
    struct doctor repaired, found; /* found: in this pass */
    size_t repaired_count;         /* of this pass */
    bool no_memory, broken, unsure;
    int64_t keys;              /* of this pass */
    int64_t calls, longest_us; /* of the run */
};

static int no_memory(struct sweep *s)
{
    return error_set(&s->w->error, WEIR_EINTERNAL, "doctor: out of memory; free some and try again");
}

/* ---- Sets and lists */

static void add_to_set(struct sweep *s, json_t *set, const char *name)
{
    s->no_memory |= json_object_set_new_nocheck(set, name, json_true()) != 0;
}

static void keep(struct sweep *s, json_t *list, const json_t *words)
{
    size_t i;
    json_t *word;

    json_array_foreach(words, i, word)
    {
        if (!json_is_string(word))
            continue;
        if (json_is_object(list))
            add_to_set(s, list, json_string_value(word));
        else
            s->no_memory |= json_array_append(list, word) != 0;
    }
}

WEIR_PRINTF(2, 3) static void suspect(struct sweep *s, const char *fmt, ...)
{
    char text[1024];
    va_list rest;

    va_start(rest, fmt);
    decimal_vprint(text, sizeof text, fmt, rest);
    va_end(rest);
    s->no_memory |= json_array_append_new(s->suspects, json_stringn_nocheck(text, strlen(text))) != 0;
}

static void add_set(struct args *a, json_t *set)
{
    const char *name;
    json_t *ignored;

    args_add_int(a, (int64_t)json_object_size(set));
    json_object_foreach(set, name, ignored)
    {
        args_add(a, name);
    }
}

/* ---- Calls */

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

/* ---- Findings */

static enum doctor_state state_of(const char *name)
{
    return strcmp(name, "ok") == 0 ? DOCTOR_OK : strcmp(name, "warning") == 0 ? DOCTOR_WARNING : DOCTOR_WRONG;
}

/* How many there are of this fault, with this one. */
static int64_t count_fault(struct sweep *s, json_t *finding)
{
    const char *fault = answer_text(finding, "fault");
    json_t *first = json_object_get(s->told, fault);
    int64_t count = answer_int(first, "count") + 1;

    if (!first)
        s->no_memory |= json_object_set_nocheck(s->told, fault, first = finding) != 0;
    s->no_memory |= json_object_set_new(first, "count", json_integer(count)) != 0;
    return count;
}

static void tell(struct sweep *s, json_t *finding)
{
    const char *name = answer_text(finding, "check"), *text = answer_text(finding, "text");
    const char *done = answer_text(finding, "done");
    enum doctor_state state = state_of(answer_text(finding, "state"));

    if (strcmp(answer_text(finding, "fault"), "counters-unsure") == 0) {
        s->unsure = true;
        add_to_set(s, s->off, text);
    } else if (*done) {
        if (s->repaired_count++ < TOLD_MOST)
            doctor_add(&s->repaired, name, DOCTOR_REPAIRED, NULL, "%s; repaired: %s", text, done);
    } else {
        s->broken |= state == DOCTOR_WRONG;
        if (count_fault(s, finding) <= TOLD_MOST)
            doctor_add(&s->found, name, state, answer_text(finding, "todo"), "%s", text);
    }
}

static void tell_all(struct sweep *s, const json_t *found)
{
    size_t i;
    json_t *finding;

    json_array_foreach(found, i, finding)
    {
        if (json_is_object(finding))
            tell(s, finding);
    }
}

static void tell_rest(struct sweep *s)
{
    const char *fault;
    json_t *first;

    json_object_foreach(s->told, fault, first)
    {
        if (answer_int(first, "count") > TOLD_MOST)
            doctor_add(&s->found, answer_text(first, "check"), state_of(answer_text(first, "state")),
                       answer_text(first, "todo"), "and %" PRId64 " more like these",
                       answer_int(first, "count") - TOLD_MOST);
    }
}

/* ---- The second look */

static int ask_again(struct sweep *s, size_t first, size_t end, json_t **answer)
{
    const char *script = s->repair ? "doctor_mend" : "doctor_again";
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, script, s->w->prefix, s->now_us);
    add_set(&a, s->gone);
    add_set(&a, s->orphans);
    for (size_t i = first; i < end && i < json_array_size(s->suspects); i++) {
        const json_t *thing = json_array_get(s->suspects, i);

        args_add_bytes(&a, json_string_value(thing), json_string_length(thing));
    }
    s->begun_us = clock_mono_us();
    status = client_ask(s->w, script, &a, answer);
    rest(s);
    return status;
}

/* Where Redis refuses what repairs write, things are only looked at. */
static int ask_or_look(struct sweep *s, size_t first, size_t end, json_t **answer)
{
    int status = ask_again(s, first, end, answer);

    if (status == 0 || status == WEIR_EUNREACHABLE || !s->repair)
        return status;
    doctor_add(&s->repaired, "repair", DOCTOR_WRONG, NULL, "%s", s->w->error.text);
    s->repair = false;
    return ask_again(s, first, end, answer);
}

static int judge(struct sweep *s)
{
    int status = 0;

    for (size_t first = 0; status == 0 && first < json_array_size(s->suspects);) {
        size_t end = first + (size_t)s->page;
        json_t *answer;

        status = ask_or_look(s, first, end, &answer);
        if (status == 0)
            tell_all(s, json_object_get(answer, "found"));
        json_decref(answer);
        first = end;
    }
    json_array_clear(s->suspects);
    return status;
}

static int look_again(struct sweep *s)
{
    if (json_array_size(s->suspects) > 0 && s->now_us < 0)
        clock_sleep_until(clock_mono_us() + MOMENT_US);
    return judge(s);
}

/* ---- A page */

static void add_sums(struct sweep *s, json_t *sums)
{
    static const char *const members[] = {"lanes", "leased", "later"};
    const char *type;
    json_t *found;

    json_object_foreach(sums, type, found)
    {
        json_t *all = json_object_get(s->types, type);

        for (size_t i = 0; all && i < sizeof members / sizeof *members; i++) {
            int64_t sum = answer_int(all, members[i]) + answer_int(found, members[i]);

            sum = sum > NUMBER_MOST ? NUMBER_MOST : sum < 0 ? 0 : sum;
            s->no_memory |= json_object_set_new(all, members[i], json_integer(sum)) != 0;
        }
        if (!all && json_is_object(found))
            s->no_memory |= json_object_set_nocheck(s->types, type, found) != 0;
    }
}

static void ask_page(struct args *a, void *arg)
{
    struct sweep *s = arg;

    args_add(a, s->place);
    args_add_int(a, s->page);
    s->begun_us = clock_mono_us();
}

static int take_page(const json_t *page, void *arg)
{
    struct sweep *s = arg;

    rest(s);
    if (answer_int(page, "bytes") > PAGE_BYTES && s->page > 1)
        s->page /= 2;
    s->keys += answer_int(page, "keys");
    keep(s, s->places, json_object_get(page, "places"));
    keep(s, s->gates, json_object_get(page, "gates"));
    keep(s, s->gone, json_object_get(page, "gone"));
    keep(s, s->orphans, json_object_get(page, "workers"));
    keep(s, s->suspects, json_object_get(page, "suspects"));
    add_sums(s, json_object_get(page, "sums"));
    tell_all(s, json_object_get(page, "found"));
    if (s->no_memory)
        return no_memory(s);
    return json_array_size(s->suspects) >= SUSPECTS_MOST ? look_again(s) : 0;
}

static int look_at(struct sweep *s, const char *place)
{
    const struct pages pages = {
        .w = s->w, .script = "doctor", .now_us = s->now_us, .arg = s, .ask = ask_page, .take = take_page};

    s->place = place;
    return pages_walk(&pages);
}

static int look_at_keys(struct sweep *s)
{
    int status = look_at(s, "");

    for (size_t i = 0; status == 0 && i < json_array_size(s->places); i++)
        status = look_at(s, json_string_value(json_array_get(s->places, i)));
    return status == 0 ? look_again(s) : status;
}

/* ---- What adds up over pages */

static void suspect_counters(struct sweep *s)
{
    const char *type, *before;
    json_t *found;

    json_object_foreach(s->types, type, found)
    {
        before = answer_text(found, "before");
        if (*before)
            suspect(s, "counters %s %" PRId64 " %" PRId64 " %" PRId64 " %d %s", type,
                    answer_int(found, "lanes"), answer_int(found, "leased"), answer_int(found, "later"),
                    json_object_get(s->off, type) != NULL, before);
    }
    suspect(s, "queued");
}

static void suspect_gates(struct sweep *s)
{
    const char *gate;
    json_t *ignored;

    if (json_object_size(s->gates) > 0)
        suspect(s, "flight");
    json_object_foreach(s->gates, gate, ignored)
    {
        suspect(s, "slots %s", gate);
    }
}

/* Adds up the bytes of all dead jobs, oldest first; they say nothing when jobs came or went meanwhile. */
static int suspect_dead(struct sweep *s)
{
    struct dead_sizes sizes = {.ended = false};
    int64_t bytes = 0, jobs = 0, counted = -1;
    int status = 0;

    for (bool first = true; status == 0 && !sizes.ended; first = false) {
        s->begun_us = clock_mono_us();
        status = dead_sizes_next(s->w, s->now_us, &sizes);
        rest(s);
        counted = first ? sizes.counted : counted;
        for (size_t i = 0; status == 0 && i < sizes.found; i++, jobs++)
            bytes += dead_size(&sizes, i);
    }
    if (status == 0 && counted == sizes.counted && jobs == sizes.jobs && counted >= 0 && counted != bytes)
        suspect(s, "dead_bytes %" PRId64 " %" PRId64, counted, bytes);
    dead_sizes_end(&sizes);
    return status == WEIR_EUNREACHABLE ? status : 0; /* a key of a wrong kind is told elsewhere */
}

/* ---- All of it */

static void begin_pass(struct sweep *s)
{
    json_t *const lists[] = {s->gates, s->gone, s->orphans, s->types, s->told};

    doctor_clear(&s->found);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        json_object_clear(lists[i]);
    json_array_clear(s->places);
    s->repaired_count = 0;
    s->keys = 0;
    s->broken = s->unsure = false;
}

/* Types come first: what was counted before all else is found. */
static int look_at_all(struct sweep *s)
{
    int status;

    begin_pass(s);
    status = look_at(s, "types");
    if (status == 0)
        status = look_at_keys(s);
    if (status != 0)
        return status;
    suspect_gates(s);
    suspect_counters(s);
    status = suspect_dead(s);
    return status == 0 ? judge(s) : status;
}

static void conclude(const struct sweep *s, struct doctor *d, bool repaired, double seconds)
{
    bool settled = s->repaired_count == 0; /* by the last pass */
    enum doctor_state state = s->broken ? DOCTOR_WRONG : settled ? DOCTOR_OK : DOCTOR_WARNING;
    const char *todo = s->broken ? "see above" : settled ? NULL : "look once more: weir doctor";
    const char *verdict = s->broken  ? "; some of them do not agree"
                          : !settled ? "; the last pass still repaired some of them"
                          : repaired ? "; they agree now"
                                     : "; they agree";

    doctor_add(d, "structures", state, todo,
               "%" PRId64 " key%s checked in %.1f s by %" PRId64 " calls, the longest took %.1f ms%s",
               s->keys, s->keys == 1 ? "" : "s", seconds, s->calls, (double)s->longest_us / 1e3, verdict);
}

static int run_passes(struct sweep *s, struct doctor *d)
{
    int64_t begin_us = clock_mono_us();
    size_t repaired = 0;
    int status, passes = 0;

    do {
        status = look_at_all(s);
        if (s->repaired_count > TOLD_MOST)
            doctor_add(&s->repaired, "structures", DOCTOR_REPAIRED, NULL, "and %zu more were repaired",
                       s->repaired_count - TOLD_MOST);
        repaired += s->repaired_count;
    } while (status == 0 && (s->repaired_count > 0 || s->unsure) && ++passes < PASSES_MOST);
    tell_rest(s);
    d->broken = s->broken;
    doctor_move(d, &s->repaired);
    doctor_move(d, &s->found);
    if (status == 0)
        conclude(s, d, repaired > 0, (double)(clock_mono_us() - begin_us) / 1e6);
    return status == 0 && s->no_memory ? no_memory(s) : status;
}

int doctor_structures(struct weir *w, int64_t now_us, bool repair, struct doctor *d)
{
    struct sweep s = {.w = w, .now_us = now_us, .repair = repair, .page = PAGE_BEGIN};
    json_t **const lists[] = {&s.places, &s.suspects},
                   **const objects[] = {&s.gates, &s.gone, &s.orphans, &s.types, &s.off, &s.told};
    int status;

    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        s.no_memory |= !(*lists[i] = json_array());
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        s.no_memory |= !(*objects[i] = json_object());
    status = s.no_memory ? no_memory(&s) : run_passes(&s, d);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        json_decref(*lists[i]);
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        json_decref(*objects[i]);
    return status;
}
