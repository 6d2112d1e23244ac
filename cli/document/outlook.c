#include "cli/document/outlook.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/number.h"
#include "queue/status/status.h"

/* ---- Reading */

static int64_t slots_of(const struct type_status *type, const struct bulk_type *jobs)
{
    return jobs->cost + (int64_t)(jobs->count - jobs->costed) * type->cost;
}

/* What all that wait cost, of whom these are the last: the others by what of them was read, or as these do. */
static struct backlog price(const struct type_status *type, const struct bulk_type *jobs)
{
    struct backlog all = type->backlog ? *type->backlog : (struct backlog){.least = 0, .most = 1};
    int64_t ours = (int64_t)jobs->count, slots = slots_of(type, jobs),
            waiting = type_backlog(type) - all.stopped;

    if (all.jobs > 0 && waiting > ours && all.slots > slots)
        return all;
    all.jobs = waiting;
    all.slots = waiting == ours ? slots : (int64_t)((double)waiting * (double)slots / (double)ours);
    return all;
}

/* Prices the jobs up to the first ones of this bulk. */
static struct backlog price_first(const struct backlog *all, int64_t slots, int64_t ours)
{
    struct backlog first = *all;

    first.jobs = positive(all->jobs - ours) + 1;
    first.slots = positive(all->slots - slots) + slots / ours;
    return first;
}

#define FEW 0.01 /* starts a second */

/* Writes starts a second in the unit of a rule, "10,000/d"; less than one in that unit: by the day where they are few. */
static void format_pace(const struct rule *rule, double rate, char out[PACE_SIZE])
{
    double n = rate * (double)rule->period_us / 1e6;
    char number[32], period[32];

    rule_format_period(rule, period);
    if (n < 1) {
        n = rate < FEW ? rate * 86400 : rate;
        strcpy(period, rate < FEW ? "d" : "s");
    }
    if (n < 999.5)
        snprintf(number, sizeof number, "%.3g", n);
    else
        grouped((uint64_t)(n + 0.5), number);
    snprintf(out, PACE_SIZE, "%s/%s", number,
             period + (period[0] == '1' && isalpha((unsigned char)period[1])));
}

/* Foretells the jobs of this bulk. They are the last of all that wait; those that do not wait any more have started. */
static int foretell(const struct limits *limits, const struct bulk_type *jobs, struct outlook *o,
                    struct error *e)
{
    const struct type_status *known = limits_type(limits, o->type);
    struct type_status type; /* shallow */
    struct backlog priced, before;
    struct forecast first, last;
    const struct rule *rule;
    int64_t all, ours = (int64_t)jobs->count;

    o->limited = known && known->limit_count > 0;
    if (!o->limited)
        return 0;
    type = *known;
    if (jobs->costed > 0) {
        priced = price(known, jobs);
        type.backlog = &priced;
        type.own_costs = true;
    }
    all = type_backlog(&type);
    o->rate = limits_pace(limits, &type, all > 0 ? all : 1, &rule);
    if (rule)
        format_pace(rule, o->rate, o->pace);
    if (forecast_type(limits, &type, NULL, &last, e) != 0)
        return e->status;
    if (jobs->costed > 0) {
        before = price_first(&priced, slots_of(known, jobs), ours);
        type.backlog = &before;
    }
    if (forecast_jobs(limits, &type, all < ours ? 0 : all - ours + 1, &first, e) != 0)
        return e->status;
    o->first_us = first.last_us;
    o->last_us = last.last_us;
    o->because = last.because | (jobs->costed > 0 ? LATER_COSTS : 0u);
    return 0;
}

/* A reading foretells by the limits of one partition after the other. */
struct reading {
    struct weir_bulk *bulk;
    struct outlook *outlooks;
};

static int foretell_here(struct weir *w, void *arg)
{
    const struct reading *r = arg;
    struct outlook *o = r->outlooks;
    struct limits limits;
    struct bulk_type jobs;
    int status = status_limits(w, -1, &limits);

    for (size_t i = 0; !status && bulk_type(r->bulk, i, &jobs); i++) {
        if (jobs.count == 0)
            continue;
        if (!o->limited)
            status = foretell(&limits, &jobs, o, &w->error);
        o++;
    }
    limits_free(&limits);
    return status;
}

/* The types of which jobs were taken. */
static size_t read_types(struct weir_bulk *bulk, struct outlook *outlooks)
{
    struct bulk_type jobs;
    size_t n = 0;

    for (size_t i = 0; bulk_type(bulk, i, &jobs); i++) {
        struct outlook *o = &outlooks[n];

        if (jobs.count == 0)
            continue;
        snprintf(o->type, sizeof o->type, "%.*s", (int)jobs.name.len, jobs.name.at);
        o->count = jobs.count;
        o->keyless = (struct keyless){.jobs = (int64_t)jobs.keyless, .of = (int64_t)jobs.count};
        strcpy(o->keyless.path, jobs.by.path);
        strcpy(o->keyless.limit, jobs.by.limit);
        n++;
    }
    return n;
}

int outlook_read(struct weir *w, struct weir_bulk *bulk, struct outlook **outlooks, size_t *n)
{
    struct bulk_type jobs;
    size_t types = 0;

    *n = 0;
    while (bulk_type(bulk, types, &jobs))
        types++;
    *outlooks = calloc(types + 1, sizeof **outlooks);
    if (!*outlooks)
        return error_set(&w->error, WEIR_EINTERNAL, "out of memory");
    *n = read_types(bulk, *outlooks);
    return client_look_at_all(w, foretell_here, &(struct reading){bulk, *outlooks});
}

static int by_count(const void *a, const void *b)
{
    const struct outlook *x = a, *y = b;

    if (x->limited != y->limited)
        return x->limited ? -1 : 1;
    return x->count == y->count ? strcmp(x->type, y->type) : x->count < y->count ? 1 : -1;
}

void outlook_sort(struct outlook *outlooks, size_t n)
{
    qsort(outlooks, n, sizeof *outlooks, by_count);
}

/* ---- Telling */

const char *earliest(unsigned because, char out[EARLIEST_SIZE])
{
    if (because)
        snprintf(out, EARLIEST_SIZE, " at the earliest (%s)", forecast_reason(because));
    else
        *out = '\0';
    return out;
}

static json_t *time_json(const struct outlook *o, int64_t us)
{
    return o->limited && us != GATE_NEVER ? json_seconds(us) : json_null();
}

json_t *outlook_json(const struct outlook *o)
{
    return json_pack("{s:I, s:o, s:o, s:o, s:b, s:I}", "jobs", (json_int_t)o->count, "rate",
                     o->rate > 0 ? json_real(o->rate) : json_null(), "first_start", time_json(o, o->first_us),
                     "finish_at", time_json(o, o->last_us), "at_the_earliest", o->because != 0, "keyless",
                     (json_int_t)o->keyless.jobs);
}

/* who: "mail", "980 types more". */
static void print_times(const char *who, const struct outlook *o)
{
    char jobs[PHRASE_SIZE], first[PHRASE_SIZE], last[PHRASE_SIZE], doubt[EARLIEST_SIZE];
    int64_t now_us = clock_wall_us();

    output("%s: %s%s%s: ", who, counted((int64_t)o->count, "job", jobs), o->rate > 0 ? " at " : "",
           o->rate > 0 ? o->pace : "");
    if (o->last_us == GATE_NEVER && (o->because & (LATER_QUEUE_PAUSED | LATER_TYPE_PAUSED))) {
        output("none starts now: %s\n", forecast_reason(o->because));
        return;
    }
    if (o->last_us == GATE_NEVER) {
        puts("start times depend on their keys, or on jobs in flight");
        return;
    }
    if (o->count > 1 && o->first_us != GATE_NEVER)
        output("the first starts %s, the last ",
               format_when(now_us, o->first_us > now_us ? o->first_us : now_us, first));
    else
        output(o->count > 1 ? "the last starts " : "it starts ");
    output("%s%s%s\n", format_when(now_us, o->last_us > now_us ? o->last_us : now_us, last),
           o->because ? "," : "", earliest(o->because, doubt));
}

void outlook_print(const struct outlook *o)
{
    if (o->limited)
        print_times(o->type, o);
}

/* GATE_NEVER is later than any time. */
static void add_outlook(struct outlook *sum, const struct outlook *o)
{
    sum->first_us = sum->count == 0 || o->first_us < sum->first_us ? o->first_us : sum->first_us;
    sum->last_us = o->last_us > sum->last_us ? o->last_us : sum->last_us;
    sum->count += o->count;
    sum->because |= o->because;
}

void outlook_print_rest(const struct outlook *outlooks, size_t n)
{
    struct outlook sum = {.limited = true};
    char who[PHRASE_SIZE + 8], types[PHRASE_SIZE];
    size_t limited = 0;

    for (size_t i = 0; i < n; i++)
        if (outlooks[i].limited) {
            add_outlook(&sum, &outlooks[i]);
            limited++;
        }
    snprintf(who, sizeof who, "%s more", counted((int64_t)limited, "type", types));
    if (limited > 0)
        print_times(who, &sum);
}

bool keyless_most(const struct keyless *k)
{
    return k->jobs > 0 && 2 * k->jobs >= k->of;
}

void keyless_print(FILE *to, const char *type, const struct keyless *k)
{
    char jobs[32], of[PHRASE_SIZE];

    output_to(to,
              "%s: %s of %s have nothing at %s, by which limit %s tells them apart; they share one gate, as "
              "one key\n",
              type, grouped((uint64_t)k->jobs, jobs), counted(k->of, "job", of), k->path, k->limit);
}
