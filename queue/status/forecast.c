#include "queue/status/forecast.h"

#include <string.h>

#include "core/client/answer.h"
#include "core/number.h"

#define GATES_MAX 16      /* rules over all limits of a type */
#define STEPS_MAX 1000000 /* starts that are gone through where several gates decide: half a second */

const char *forecast_reason(unsigned because)
{
    static const struct {
        unsigned because;
        const char *words;
    } reasons[] = {
        {LATER_QUEUE_PAUSED, "their queue is paused"},
        {LATER_BATCH_PAUSED, "their batch is paused"},
        {LATER_TYPE_PAUSED, "their type is paused"},
        {LATER_NO_WORKER, "no worker takes them"},
        {LATER_CLOSED, "keys wait for rules of their own to be set again"},
        {LATER_STOPPED, "the keys of some are paused"},
        {LATER_EXECUTORS, "executors may be too few"},
        {LATER_LIMIT, "a limit cannot be read"},
        {LATER_KEYS, "each key has a gate of its own"},
        {LATER_IN_FLIGHT, "jobs in flight must end"},
        {LATER_TYPES, "how many of which type are left is not counted"},
        {LATER_OTHERS, "others may come first"},
        {LATER_COSTS, "some name their costs"},
        {LATER_ADAPTS, "the rate adapts"},
        {LATER_SCHEDULED, "some are scheduled or to be retried"},
    };

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (because & reasons[i].because)
            return reasons[i].words;
    return "";
}

/* A price is so many jobs of one cost. Where jobs cost more and less they are told as many jobs of cost 1, and all is how many there are. */
struct price {
    int64_t jobs, cost, all;
};

/* Returns the jobs of a price as a gate counts them. */
static int64_t jobs_at(const struct gate *g, const struct price *price)
{
    return g->base.of_jobs || g->counts_named ? price->all : price->jobs;
}

/* ---- The gates that decide */

/* A line has copies of gates, which a forecast uses up. */
struct line {
    struct gate gates[GATES_MAX];
    size_t count;
    int64_t from_us; /* no start before: now, or the end of a pause */
};

/* The gates are left as they are: they are large, and most lines have one or two. */
static void line_begin(struct line *line, int64_t from_us)
{
    line->count = 0;
    line->from_us = from_us;
}

static void line_free(struct line *line)
{
    for (size_t i = 0; i < line->count; i++)
        gate_free(&line->gates[i]);
}

static unsigned doubt_of(const struct rule *rule)
{
    return (rule->algorithm == ALGORITHM_CONCURRENCY ? LATER_IN_FLIGHT : 0u) | (*rule->by ? LATER_KEYS : 0u) |
           (rule->adapt_high ? LATER_ADAPTS : 0u);
}

static int line_add(struct line *line, const struct limit *limit, const struct type_status *type,
                    struct forecast *out)
{
    if (limit_looked_at(limit) > line->from_us)
        line->from_us = limit_looked_at(limit);
    if (!limit->readable)
        out->because |= LATER_LIMIT;
    for (size_t i = 0; limit->readable && i < limit->set.count; i++) {
        const struct rule *rule = &limit->set.at[i];
        bool rate = rule->algorithm != ALGORITHM_CONCURRENCY && !*rule->by;

        out->because |= doubt_of(rule) | (*rule->of && type->own_costs ? LATER_COSTS : 0u);
        if (!rate || line->count == GATES_MAX)
            continue;
        if (gate_copy(&line->gates[line->count], &limit->gates[i]) < 0)
            return WEIR_EINTERNAL;
        type_price(type, &line->gates[line->count++]);
    }
    return 0;
}

/* True when a gate would let all of the jobs start now. Then it delays none of them, however late the others let them start. */
static bool lets_all(const struct gate *g, int64_t from_us, const struct price *price)
{
    int64_t jobs = jobs_at(g, price);

    return gate_start(g, from_us, price->cost) <= from_us &&
           gate_count(g, from_us, jobs, price->cost) >= jobs;
}

/* Leaves out the gates that do not decide, but for the last one. */
static void line_narrow(struct line *line, const struct price *price)
{
    size_t kept = 0;

    for (size_t i = 0; i < line->count; i++)
        if ((kept > 0 || i + 1 < line->count) && lets_all(&line->gates[i], line->from_us, price))
            gate_free(&line->gates[i]);
        else
            line->gates[kept++] = line->gates[i];
    line->count = kept;
}

/* The latest of what each gate alone says: the line's last start is not before it. */
static int64_t line_last_alone(const struct line *line, const struct price *price)
{
    int64_t last_us = line->from_us;

    for (size_t i = 0; i < line->count; i++) {
        const struct gate *g = &line->gates[i];
        int64_t at_us = gate_nth_start(g, line->from_us, jobs_at(g, price), price->cost);

        if (at_us > last_us)
            last_us = at_us;
    }
    return last_us;
}

/* Takes the gates that count jobs, or slots by name, out of a line whose jobs cost more and less; returns what these say alone. */
static int64_t line_part(struct line *line, const struct price *price)
{
    int64_t last_us = line->from_us;
    size_t kept = 0;

    for (size_t i = 0; i < line->count; i++) {
        struct gate *g = &line->gates[i];

        if (g->base.of_jobs || g->counts_named) {
            last_us = max_i64(last_us, gate_nth_start(g, line->from_us, price->all, 1));
            gate_free(g);
        } else {
            line->gates[kept++] = *g;
        }
    }
    line->count = kept;
    return last_us;
}

/* Computes when the last job of a line starts. Where several gates decide it goes start by start; after so many each gate tells the rest alone. */
static int line_last(struct line *line, struct price price, struct forecast *out)
{
    int64_t least_us = 0;

    line_narrow(line, &price);
    if (line->count > 1 && price.jobs != price.all)
        least_us = line_part(line, &price);
    for (int step = 0; line->count > 1 && price.jobs > 0 && step < STEPS_MAX; step++) {
        int64_t taken;

        line->from_us = gates_start(line->gates, line->count, line->from_us, price.cost);
        if (line->from_us == GATE_NEVER)
            break;
        if (gates_take(line->gates, line->count, line->from_us, price.jobs, price.cost, &taken) < 0)
            return WEIR_EINTERNAL;
        price.jobs -= taken;
        price.all -= taken;
    }
    out->last_us = line->from_us;
    if (line->from_us < GATE_NEVER && price.jobs > 0) {
        out->because |= line->count > 1 ? LATER_OTHERS : 0u;
        out->last_us = line_last_alone(line, &price);
    }
    out->last_us = max_i64(out->last_us, least_us);
    return 0;
}

/* ---- What jobs cost */

/* True when each job of the type costs the same, as far as is known. */
static bool is_even(const struct type_status *type)
{
    const struct backlog *b = type->backlog;

    return !type->own_costs || !b || b->jobs == 0 || b->least == b->most;
}

static int64_t even_cost(const struct type_status *type)
{
    return type->own_costs && type->backlog && type->backlog->jobs > 0 ? type->backlog->least : type->cost;
}

/* Slots by name that a job of the type says, on average, as far as is known. */
static struct job_cost said_on_average(const struct type_status *type)
{
    return type->own_costs && type->backlog ? type->backlog->each : cost_of(COST_UNSAID);
}

void type_price(const struct type_status *type, struct gate *g)
{
    struct job_cost said = said_on_average(type);

    gate_price(g, &said, &type->costs);
}

double limits_cost_at(const struct rule *rule, const struct type_status *type)
{
    struct job_cost said = said_on_average(type);

    return rule->of_jobs ? 1 : *rule->of ? (double)cost_at(rule, &said, &type->costs) : limits_cost(type);
}

double limits_cost(const struct type_status *type)
{
    return is_even(type) ? (double)even_cost(type)
                         : (double)type->backlog->slots / (double)type->backlog->jobs;
}

/* Slot by slot where they differ, which is not later than job by job. */
static struct price price_of(const struct type_status *type, int64_t n)
{
    int64_t slots;

    if (is_even(type))
        return (struct price){n, even_cost(type), n};
    slots = n == type->backlog->jobs ? type->backlog->slots : (int64_t)((double)n * limits_cost(type));
    return (struct price){slots, 1, n};
}

static unsigned doubt_of_costs(const struct type_status *type)
{
    bool known = type->backlog && type->backlog->counted && is_even(type);

    return type->own_costs && !known ? LATER_COSTS : 0u;
}

int64_t type_next_cost(const struct type_status *type)
{
    if (type->own_costs && type->backlog && type->backlog->head > 0)
        return type->backlog->head;
    return type->own_costs ? 1 : type->cost;
}

/* ---- Whose turn it is */

/* A view has gates of limits, shallow: they are only looked at. */
struct view {
    struct gate gates[GATES_MAX];
    size_t count;
    int64_t from_us; /* no start before: now, the end of a pause or of a hold */
};

static void view_begin(struct view *view, int64_t from_us)
{
    view->count = 0;
    view->from_us = from_us;
}

static void view_add(struct view *view, const struct limit *limit, const struct type_status *type)
{
    int64_t from_us = limit_looked_at(limit);

    for (size_t i = 0; limit->readable && i < limit->set.count; i++) {
        if (*limit->set.at[i].by || view->count == GATES_MAX)
            continue;
        view->gates[view->count] = limit->gates[i];
        type_price(type, &view->gates[view->count++]);
        from_us = limit->held_until_us[i] > from_us ? limit->held_until_us[i] : from_us;
    }
    view->from_us = from_us > view->from_us ? from_us : view->from_us;
}

static int64_t view_start(const struct view *view, int64_t cost)
{
    return view->count > 0 ? gates_start(view->gates, view->count, view->from_us, cost) : view->from_us;
}

/* True when somebody must resume the type, or all jobs of it stand in queues that are paused. */
static bool is_in_pause(const struct type_status *type)
{
    return type->pause_until_us == GATE_NEVER || (type->backlog && *type->backlog->queue);
}

/* Returns the time from which a type is looked at: now, or the end of its own pause. */
static int64_t looked_at(const struct limits *limits, const struct type_status *type)
{
    return type->pause_until_us > limits->now_us ? type->pause_until_us : limits->now_us;
}

bool type_is_stopped(const struct type_status *type)
{
    return type->backlog && type->backlog->stopped > 0 && type_backlog(type) <= type->backlog->stopped;
}

/* When its next job starts by its own gates, if no other type comes first. */
static int64_t own_start(const struct limits *limits, const struct type_status *type)
{
    struct view view;
    int64_t start_us;

    if (is_in_pause(type))
        return GATE_NEVER;
    if (type_is_stopped(type))
        return type->backlog->stopped_until_us;
    view_begin(&view, looked_at(limits, type));
    for (size_t i = 0; i < type->limit_count; i++) {
        if (!type->limits[i]->readable)
            return GATE_NEVER;
        view_add(&view, type->limits[i], type);
    }
    start_us = view_start(&view, type_next_cost(type));
    return type->backlog && type->backlog->opens_us > start_us ? type->backlog->opens_us : start_us;
}

/* When a limit lets the next job of a dearer type start, which waits for no other limit; 0: it has none that waits for time. */
static int64_t turn_of(const struct limits *limits, const struct limit *limit, const struct type_status *type)
{
    struct view view;
    int64_t start_us;

    if (type_backlog(type) == 0 || !type->served)
        return 0;
    view_begin(&view, limits->now_us);
    view_add(&view, limit, type);
    start_us = view_start(&view, type_next_cost(type));
    return start_us > limits->now_us && start_us < GATE_NEVER && own_start(limits, type) == start_us
               ? start_us
               : 0;
}

/* Finds the gate of a limit that opens last for the next job of a type. */
static size_t last_gate(const struct limit *limit, const struct type_status *type)
{
    int64_t last_us = 0;
    size_t last = 0;

    for (size_t i = 0; i < limit->set.count; i++) {
        struct gate g = limit->gates[i]; /* shallow: only looked at */
        int64_t at_us;

        type_price(type, &g);
        at_us = *limit->set.at[i].by ? 0 : gate_start(&g, limit->now_us, type_next_cost(type));

        if (at_us > last_us) {
            last_us = at_us;
            last = i;
        }
    }
    return last;
}

bool type_awaits_turn(const struct limits *limits, const struct type_status *type, struct type_turn *out)
{
    int64_t cost = type_next_cost(type);

    *out = (struct type_turn){.until_us = GATE_NEVER};
    if (type_parked(type) == 0 || !type->served || type->free == 0 ||
        own_start(limits, type) > limits->now_us)
        return false;
    for (size_t i = 0; i < type->limit_count; i++) {
        const struct limit *limit = type->limits[i];
        size_t count;
        const struct hold *holds = limits_holds(limits, limit->name, &count);

        for (size_t k = 0; k < count; k++) {
            const struct type_status *other = holds[k].type;
            int64_t until_us = type_next_cost(other) > cost && limit_holds(other, limit->name)
                                   ? turn_of(limits, limit, other)
                                   : 0;

            if (until_us > 0 && until_us < out->until_us)
                *out = (struct type_turn){limit, last_gate(limit, other), until_us};
        }
    }
    return out->limit;
}

/* ---- A type */

/* True when jobs of another type wait for that limit too. */
static bool is_shared(const struct limits *limits, const struct type_status *type, const char *limit)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, limit, &count);

    for (size_t i = 0; i < count; i++) {
        const struct type_status *other = holds[i].type;

        if (type_backlog(other) > 0 && strcmp(other->name, type->name) != 0)
            return true;
    }
    return false;
}

/* Executors are enough where each job has one, or where jobs wait while one is free: then it is the limits
 * that hold them. */
static unsigned doubt_of_workers(const struct type_status *type, int64_t n)
{
    bool enough = type->free >= n || (type->free > 0 && type_parked(type) > 0);

    return (type->in_pause ? LATER_QUEUE_PAUSED : 0u) | (type->served ? 0u : LATER_NO_WORKER) |
           (enough ? 0u : LATER_EXECUTORS);
}

static unsigned doubt_of_keys(const struct type_status *type)
{
    if (!type->backlog || type->backlog->stopped == 0)
        return 0;
    return type->backlog->closed ? LATER_CLOSED : type_is_stopped(type) ? 0u : LATER_STOPPED;
}

/* Fills the line with the gates of all limits of the type. */
static int line_make(struct line *line, const struct limits *limits, const struct type_status *type,
                     const struct limit *instead, struct forecast *out)
{
    bool there = false;
    int status = 0;

    for (size_t i = 0; status == 0 && i < type->limit_count; i++) {
        const struct limit *limit = type->limits[i];
        bool is_it = instead && strcmp(instead->name, limit->name) == 0;

        there |= is_it;
        if (is_shared(limits, type, limit->name))
            out->because |= LATER_OTHERS;
        status = line_add(line, is_it ? instead : limit, type, out);
    }
    if (status == 0 && instead && !there && limit_holds(type, instead->name))
        status = line_add(line, instead, type, out);
    return status;
}

static int foretell(const struct limits *limits, const struct type_status *type, int64_t n,
                    const struct limit *instead, struct forecast *out)
{
    struct price price = price_of(type, n);
    struct type_turn turn;
    struct line line;
    int status;

    line_begin(&line,
               !instead && type_awaits_turn(limits, type, &turn) ? turn.until_us : looked_at(limits, type));
    *out = (struct forecast){.last_us = limits->now_us};
    status = line_make(&line, limits, type, instead, out);
    out->from_us = line.from_us;
    if (status == 0 && !is_in_pause(type) && type_is_stopped(type))
        out->last_us = type->backlog->stopped_until_us;
    else if (status == 0 && (is_in_pause(type) || (n > 0 && line.count == 0 && out->because)))
        out->last_us = GATE_NEVER;
    else if (status == 0 && n > 0)
        status = line_last(&line, price, out);
    out->because |= (line.count > 0 ? doubt_of_costs(type) : 0u) | doubt_of_workers(type, n) |
                    (type->pause_until_us == GATE_NEVER ? LATER_TYPE_PAUSED : 0u) | doubt_of_keys(type);
    line_free(&line);
    return status;
}

int forecast_jobs(const struct limits *limits, const struct type_status *type, int64_t n,
                  struct forecast *out, struct error *e)
{
    return foretell(limits, type, n, NULL, out) < 0 ? error_no_memory(e, "forecast") : 0;
}

static const char *text_at(const json_t *words, size_t i)
{
    const char *text = json_string_value(json_array_get(words, i));

    return text ? text : "";
}

/* The keyed rule of a lane's gate, whose words in a row of backlog.lua begin at `at`; NULL: it says nothing of time. own: room for one that the key has
 * for itself. */
static const struct rule *key_rule(const struct limits *limits, const struct limit *instead,
                                   const json_t *words, size_t at, struct rule *own)
{
    const char *name = text_at(words, at), *own_text = text_at(words, at + 3);
    const struct limit *limit =
        instead && strcmp(name, instead->name) == 0 ? instead : limits_find(limits, name);
    const struct rule *rule =
        limit && limit->readable ? rule_set_at(&limit->set, answer_int_at(words, at + 1)) : NULL;
    struct error ignored;

    if (*own_text && !(limit && limit->drops_keys) && rule_read(own_text, own, &ignored) == 0)
        rule = own;
    if (!rule || !*rule->by || rule->algorithm == ALGORITHM_CONCURRENCY)
        return NULL;
    return rule;
}

/* When the last job of a lane starts from from_us on, as far as one gate of its key goes; words: that gate, from at on. 0: it says nothing of
 * time. */
static int64_t key_last(const struct limits *limits, const struct type_status *type,
                        const struct limit *instead, const json_t *words, size_t at, struct price price,
                        int64_t from_us)
{
    int64_t last_us;
    struct rule own;
    const struct rule *rule = key_rule(limits, instead, words, at, &own);
    struct error ignored;
    struct gate g;

    if (!rule || price.jobs < 1)
        return 0;
    gate_init(&g, rule);
    (void)!gate_read(&g, text_at(words, at + 2), limits->now_us, &ignored);
    type_price(type, &g);
    last_us = gate_nth_start(&g, from_us, jobs_at(&g, &price), price.cost);
    gate_free(&g);
    return last_us < GATE_NEVER ? last_us : 0;
}

/* Returns when the longest lanes have started from from_us on, by all gates of their keys. */
static int64_t keys_last(const struct limits *limits, const struct type_status *type,
                         const struct limit *instead, int64_t from_us)
{
    const json_t *lanes = type->backlog ? type->backlog->lanes : NULL;
    int64_t last_us = 0;

    for (size_t i = 0; i < json_array_size(lanes); i++) {
        const json_t *lane = json_array_get(lanes, i), *words = json_object_get(lane, "gates");
        struct price price = {answer_int(lane, is_even(type) ? "jobs" : "slots"),
                              is_even(type) ? even_cost(type) : 1, answer_int(lane, "jobs")};

        for (size_t at = 0; at + 3 < json_array_size(words); at += 4) {
            int64_t at_us = key_last(limits, type, instead, words, at, price, from_us);

            last_us = at_us > last_us ? at_us : last_us;
        }
    }
    return last_us;
}

/* Returns the type as it would be under that limit, shallow: what drops the rules of single keys opens those that are closed. b: room for its backlog. */
static struct type_status type_under(const struct type_status *type, const struct limit *instead,
                                     struct backlog *b)
{
    struct type_status under = *type;

    if (!instead || !instead->drops_keys || !type->backlog || !type->backlog->closed ||
        strcmp(text_at(type->backlog->stop, 0), instead->name) != 0)
        return under;
    *b = *type->backlog;
    b->stopped = 0;
    under.backlog = b;
    return under;
}

int forecast_type(const struct limits *limits, const struct type_status *known, const struct limit *instead,
                  struct forecast *out, struct error *e)
{
    struct backlog changed;
    const struct type_status under = type_under(known, instead, &changed), *type = &under;
    bool halted = is_in_pause(type) || type_is_stopped(type);
    int64_t stopped = type->backlog && !halted ? type->backlog->stopped : 0, keys_us;

    if (foretell(limits, type, type_backlog(type) - stopped, instead, out) < 0)
        return error_no_memory(e, "forecast");
    keys_us = halted || (out->because & LATER_LIMIT) ? 0 : keys_last(limits, type, instead, out->from_us);
    if (keys_us > 0 && (out->last_us == GATE_NEVER || keys_us > out->last_us))
        out->last_us = keys_us;
    return 0;
}

/* ---- A limit */

/* What waits for a limit, as if it were of one type that has no other one. */
static struct price sum_types(const struct limits *limits, const struct limit *limit, unsigned *because)
{
    struct price sum = {0, 1, 0};
    int64_t slots = 0;
    bool even = true;
    size_t count;
    const struct hold *holds = limits_holds(limits, limit->name, &count);

    for (size_t i = 0; i < count; i++) {
        const struct type_status *t = holds[i].type;
        int64_t jobs = type_backlog(t) - (t->backlog ? t->backlog->stopped : 0);
        struct price price = price_of(t, jobs);

        if (jobs == 0 || t->pause_until_us == GATE_NEVER)
            continue;
        even = even && is_even(t) && (sum.jobs == 0 || sum.cost == price.cost);
        sum = (struct price){sum.jobs + jobs, price.cost, sum.all + jobs};
        slots += price.jobs * price.cost;
        *because |= doubt_of_costs(t);
    }
    *because |= even ? 0u : LATER_COSTS;
    return even ? sum : (struct price){slots, 1, sum.all};
}

/* Lets each job take of the gates that count slots by name what one of all that wait takes, on average. */
static void price_all(struct line *line, const struct limits *limits, const struct limit *limit)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, limit->name, &count);

    for (size_t i = 0; i < line->count; i++) {
        double slots = 0, jobs = 0;

        for (size_t k = 0; k < count; k++) {
            double n = (double)type_backlog(holds[k].type);

            slots += n * limits_cost_at(&line->gates[i].base, holds[k].type);
            jobs += n;
        }
        if (jobs > 0 && line->gates[i].counts_named)
            line->gates[i].named = (int64_t)(slots / jobs + 0.5);
    }
}

int forecast_limit(const struct limits *limits, const struct limit *limit, struct forecast *out,
                   struct error *e)
{
    struct line line = {.from_us = limits->now_us};
    struct forecast of_type;
    unsigned costs = 0;
    struct price sum = sum_types(limits, limit, &costs);
    size_t count;
    const struct hold *holds = limits_holds(limits, limit->name, &count);
    int status;

    *out = (struct forecast){.last_us = limits->now_us};
    status = line_add(&line, limit, &(struct type_status){.cost = 1}, out);
    price_all(&line, limits, limit);
    if (status == 0 && sum.jobs > 0 && line.count > 0)
        status = line_last(&line, sum, out);
    out->because |= line.count > 0 ? costs : 0u;
    line_free(&line);
    if (status < 0)
        return error_no_memory(e, "forecast");
    for (size_t i = 0; i < count; i++) {
        const struct type_status *t = holds[i].type;

        if (type_backlog(t) == 0)
            continue;
        if (forecast_type(limits, t, NULL, &of_type, e) < 0)
            return e->status;
        out->because |= of_type.because & ~(unsigned)LATER_OTHERS;
        out->last_us = of_type.last_us > out->last_us ? of_type.last_us : out->last_us;
    }
    return 0;
}

int64_t type_next_start(const struct limits *limits, const struct type_status *type)
{
    int64_t own_us = own_start(limits, type);
    struct type_turn turn;

    return type_awaits_turn(limits, type, &turn) && turn.until_us > own_us ? turn.until_us : own_us;
}

/* Returns the next start of a limit that holds no type yet. */
static int64_t limit_next_start(const struct limit *limit)
{
    struct view view;

    view_begin(&view, limit->now_us);
    view_add(&view, limit, &(struct type_status){.cost = 1});
    return view_start(&view, 1);
}

/* True when all workers that run the type were told to take no more jobs. */
static bool is_quiet(const struct type_status *type)
{
    return !type->served && type->resting > 0;
}

bool limits_are_quiet(const struct limits *limits, const struct limit *limit)
{
    size_t count, quiet = 0;
    const struct hold *holds = limits_holds(limits, limit->name, &count);

    for (size_t i = 0; i < count; i++) {
        const struct type_status *t = holds[i].type;

        if (type_backlog(t) > 0 && !is_quiet(t))
            return false;
        quiet += type_backlog(t) > 0;
    }
    return quiet > 0;
}

bool limits_are_closed(const struct limits *limits, const struct limit *limit)
{
    size_t count;
    const struct hold *holds = limits_holds(limits, limit->name, &count);
    bool closed = false;

    for (size_t i = 0; i < count; i++) {
        const struct type_status *t = holds[i].type;

        if (type_backlog(t) > 0 && !type_is_stopped(t))
            return false;
        closed = closed || (t->backlog && t->backlog->closed);
    }
    return closed;
}

int64_t limits_next_start(const struct limits *limits, const struct limit *limit)
{
    bool backlog = limits_backlog(limits, limit->name) > 0;
    size_t count;
    const struct hold *holds = limits_holds(limits, limit->name, &count);
    int64_t first_us = GATE_NEVER;

    for (size_t i = 0; i < count; i++) {
        const struct type_status *t = holds[i].type;
        int64_t at_us;

        if (backlog && type_backlog(t) == 0)
            continue;
        at_us = type_next_start(limits, t);
        first_us = at_us < first_us ? at_us : first_us;
    }
    return count > 0 ? first_us : limit_next_start(limit);
}

/* ---- Its rate */

/* Slots a second that a rule lets through now; 0: it does not say. */
static double rate_of(const struct limit *limit, size_t i)
{
    const struct rule *rule = &limit->set.at[i];
    double rate;

    if (rule->algorithm == ALGORITHM_CONCURRENCY || *rule->by)
        return 0;
    rate = 1e6 * (double)rule->count / (double)rule->period_us;
    return limit->factor[i] ? rate * (double)limit->factor[i] / 1000 : rate;
}

const struct rule *limits_rule(const struct type_status *type, double *rate)
{
    const struct rule *found = NULL;

    *rate = 0;
    for (size_t i = 0; i < type->limit_count; i++) {
        const struct limit *limit = type->limits[i];

        for (size_t k = 0; limit->readable && k < limit->set.count; k++) {
            const struct rule *rule = &limit->set.at[k];

            if (rule->algorithm == ALGORITHM_CONCURRENCY || *rule->by || limits_cost_at(rule, type) == 0 ||
                (found && (double)rule->count * (double)found->period_us * limits_cost_at(found, type) >=
                              (double)found->count * (double)rule->period_us * limits_cost_at(rule, type)))
                continue;
            found = rule;
            *rate = rate_of(limit, k) / limits_cost_at(rule, type);
        }
    }
    return found;
}

double limits_pace(const struct limits *limits, const struct type_status *type, int64_t n,
                   const struct rule **rule)
{
    struct price price = price_of(type, n);
    int64_t latest_us = 0;
    double deciding = 0;

    *rule = NULL;
    for (size_t i = 0; i < type->limit_count; i++) {
        const struct limit *limit = type->limits[i];

        for (size_t k = 0; limit->readable && k < limit->set.count; k++) {
            struct gate g = limit->gates[k]; /* shallow: only looked at */
            double each = limits_cost_at(&limit->set.at[k], type),
                   rate = each > 0 ? rate_of(limit, k) / each : 0;
            int64_t last_us;

            type_price(type, &g);
            last_us = gate_nth_start(&g, limits->now_us, jobs_at(&g, &price), price.cost);
            if (rate > 0 && (last_us > latest_us || (last_us == latest_us && rate < deciding))) {
                latest_us = last_us;
                deciding = rate;
                *rule = &limit->set.at[k];
            }
        }
    }
    return deciding;
}
