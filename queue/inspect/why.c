#include "queue/inspect/why.h"

#include <stdio.h>
#include <string.h>

#include "core/script/script.h"
#include "queue/inspect/find_job.h"
#include "queue/status/forecast.h"
#include "queue/status/status.h"
#include "queue/status/waits.h"

#define GATES_MAX 32    /* 16 rules, and a pause of each limit */
#define AHEAD_MOST 1000 /* entries asked for at once; fewer are looked at where they are large */

/* A look at one job that waits. */
struct look {
    struct weir *w;
    int64_t now_us; /* as it was given */
    json_t *why;    /* the document */
    const char *type;
    json_t *line;        /* why.lua's answer */
    const json_t *pause; /* of its type, in that; NULL: nobody has paused it */
    const struct limits *limits;
    struct limits own;     /* where they had to be read for it */
    json_t *last;          /* of its gates the closed one that opens last; NULL: all are open */
    int64_t before;        /* lanes of other keys that have their turn before its own */
    bool keyed;            /* it has keyed gates */
    struct job_cost costs; /* what the job costs by name */
    struct {
        struct gate gate; /* as it is now, that of its key too */
        struct rule own;  /* that of its key alone, where it has one */
        json_t *row;
    } gates[GATES_MAX];
    size_t gate_count;
};

/* Ahead are the jobs of its type before it. */
struct ahead {
    int64_t jobs, slots, least, most; /* least, most: slots of the cheapest and the dearest */
};

static void begin(const struct look *look, struct args *a, const char *script)
{
    *a = (struct args){0};
    script_begin(a, script, look->w->prefix, look->now_us);
}

static void set_time(json_t *why, const char *member, int64_t us)
{
    json_object_set_new(why, member, us == GATE_NEVER ? json_null() : json_integer(us));
}

/* What is in the way first counts: a pause is before a worker, and that before a gate. */
static void set_wait(struct look *look, json_t *waits)
{
    if (json_object_get(look->why, "waits_for") || found_ends(look->why))
        json_decref(waits);
    else
        json_object_set_new(look->why, "waits_for", waits);
}

/* ---- Its gates */

/* Adds a gate for the forecast. A state that cannot be read closes its gate for a period. */
static void add_gate(struct look *look, const struct rule *rule, json_t *row)
{
    struct gate *g = &look->gates[look->gate_count].gate;
    struct error ignored;

    look->gates[look->gate_count++].row = row;
    gate_init(g, rule);
    (void)!gate_read(g, answer_text(row, "state"), answer_int(look->line, "now"), &ignored);
    gate_price(g, &look->costs, &look->costs);
    look->keyed |= *rule->by != '\0';
}

static void read_gates(struct look *look)
{
    json_t *gates = json_object_get(look->line, "gates"), *row;
    size_t i;
    int last;

    json_array_foreach(gates, i, row) {
        bool fits = look->gate_count < GATES_MAX;
        const struct rule *rule =
            waits_gate(row, look->limits, answer_text(look->line, "key"), answer_int(look->line, "now"),
                       &look->gates[fits ? look->gate_count : 0].own);

        if (rule && fits)
            add_gate(look, rule, row);
    }
    last = waits_last(gates);
    json_array_foreach(gates, i, row)
        json_object_set_new(row, "holds_it", json_boolean((int)i == last));
    if (json_is_array(gates))
        json_object_set(look->why, "gates", gates);
    look->last = last < 0 ? NULL : json_array_get(gates, (size_t)last);
}

static int read_line(struct look *look)
{
    const json_t *line = look->line;

    look->before = answer_int(line, "before");
    (void)cost_parse(answer_text(line, "costs"), &look->costs);
    json_object_set(look->why, "now", json_object_get(line, "now"));
    json_object_set(look->why, "cost", json_object_get(line, "cost"));
    if (*answer_text(line, "misplaced")) {
        json_object_set_new(look->why, "reason",
                            json_sprintf("dead as a worker meets it: %s", answer_text(line, "misplaced")));
        return 0;
    }
    json_object_set(look->why, "served", json_object_get(line, "served"));
    if (json_object_get(line, "turns") && strncmp(answer_text(look->why, "list"), "lane:", 5) == 0)
        json_object_set(look->why, "turns_before", json_object_get(line, "turns"));
    read_gates(look);
    if (look->keyed)
        json_object_set(look->why, "key", json_object_get(line, "key"));
    look->pause = json_object_get(line, "pause");
    if (look->pause)
        set_wait(look, waits_pause("type", look->type, look->pause));
    if (!json_is_true(json_object_get(line, "served")))
        set_wait(look, waits_worker(look->type, answer_text(look->why, "queue"), answer_int(line, "resting"),
                                    answer_int(line, "resting_since")));
    return 0;
}

static int ask_line(struct look *look)
{
    struct span body = found_body(look->why);
    struct args a;
    int status = 0;

    if (!look->limits) {
        look->limits = &look->own;
        status = status_limits(look->w, look->now_us, &look->own);
    }
    if (status != 0)
        return status;
    begin(look, &a, "why");
    args_add(&a, answer_text(look->why, "list"));
    args_add(&a, look->type);
    args_add_bytes(&a, body.at, body.len);
    status = client_ask(look->w, "why", &a, &look->line);
    return status == 0 ? read_line(look) : status;
}

/* ---- The jobs before it */

static void add_ahead(struct ahead *ahead, const json_t *stretch)
{
    int64_t jobs = answer_int(stretch, "jobs"), least = answer_int(stretch, "least"),
            most = answer_int(stretch, "most");

    if (jobs == 0)
        return;
    ahead->least = ahead->jobs == 0 || least < ahead->least ? least : ahead->least;
    ahead->most = most > ahead->most ? most : ahead->most;
    ahead->jobs += jobs;
    ahead->slots += answer_int(stretch, "slots");
}

/* Counts those of its type among the first n of a list. */
static int count_ahead(struct look *look, const char *list, int64_t n, struct ahead *ahead)
{
    int64_t looked_at = 1;
    int status = 0;

    for (int64_t first = 0; status == 0 && first < n && looked_at > 0; first += looked_at) {
        json_t *stretch;
        struct args a;

        begin(look, &a, "ahead");
        args_add(&a, list);
        args_add_int(&a, first);
        args_add_int(&a, (first + AHEAD_MOST < n ? first + AHEAD_MOST : n) - 1);
        args_add(&a, look->type);
        status = client_ask(look->w, "ahead", &a, &stretch);
        add_ahead(ahead, stretch);
        looked_at = answer_int(stretch, "looked_at");
        json_decref(stretch);
    }
    return status;
}

/* Counts the jobs of its lane before it, and where its type has no keys those of the queue. */
static int count_line(struct look *look, struct ahead *ahead)
{
    const char *list = answer_text(look->why, "list");
    int64_t before = answer_int(look->why, "place") - 1;
    bool waits = strncmp(list, "queue:", 6) == 0;
    int status = count_ahead(look, answer_text(look->line, "lane"),
                             waits ? answer_int(look->line, "length") : before, ahead);

    if (status == 0 && waits && !look->keyed)
        status = count_ahead(look, list, before, ahead);
    json_object_set_new(look->why, "ahead", json_integer(ahead->jobs));
    return status;
}

/* ---- When it starts */

/* Returns the job's type as Redis has it, shallow; one that no worker has met yet has the limit of its own name at most, *own, and nothing is
 * known of its workers. */
static struct type_status type_of(const struct look *look, const struct limit **own)
{
    const struct type_status *known = limits_type(look->limits, look->type);
    struct type_status unmet = {.cost = 1, .limits = own, .served = true, .free = INT64_MAX};

    if (known)
        return *known;
    *own = limits_find(look->limits, look->type);
    snprintf(unmet.name, sizeof unmet.name, "%s", look->type);
    unmet.limit_count = *own != NULL;
    return unmet;
}

/* Is a gate in the way that does not open by time: must others end before so many jobs have started, or can
 * they never? */
static bool needs_an_end(const struct look *look, int64_t jobs)
{
    const json_t *gates = json_object_get(look->why, "gates");

    for (size_t i = 0; i < json_array_size(gates); i++)
        if (!json_is_true(json_object_get(json_array_get(gates, i), "open")) &&
            !json_object_get(json_array_get(gates, i), "opens_at"))
            return true;
    for (size_t i = 0; i < look->gate_count; i++)
        if (look->gates[i].gate.rule.algorithm == ALGORITHM_CONCURRENCY &&
            gate_nth_start(&look->gates[i].gate, answer_int(look->why, "now"), jobs, 1) == GATE_NEVER)
            return true;
    return false;
}

/* A place is behind so many jobs, itself the last, told as n jobs of one cost: where they cost more and less, slot by slot. */
struct place {
    int64_t jobs, n, cost;
};

static int64_t nth_at(const struct gate *g, const struct place *place)
{
    return g->base.of_jobs || g->counts_named ? place->jobs : place->n;
}

/* Computes when the job at a place starts from from_us on, by the rates of its key too; not before start_us. */
static int64_t pass_keys(const struct look *look, int64_t from_us, int64_t start_us,
                         const struct place *place)
{
    for (size_t i = 0; i < look->gate_count; i++) {
        const struct gate *g = &look->gates[i].gate;
        int64_t at_us = 0;

        if (*g->rule.by && g->rule.algorithm != ALGORITHM_CONCURRENCY)
            at_us = gate_nth_start(g, from_us, nth_at(g, place), place->cost);
        start_us = at_us > start_us ? at_us : start_us;
    }
    return start_us;
}

/* Passes a gate as the last of those jobs: at a keyed gate of those of its key, at another one of all. */
static int64_t pass_gate(const struct look *look, size_t i, const struct place *of_key,
                         const struct place *of_all)
{
    const struct gate *g = &look->gates[i].gate;
    bool counts = g->rule.algorithm == ALGORITHM_CONCURRENCY;

    return gate_nth_start(g, answer_int(look->why, "now"), nth_at(g, *g->rule.by ? of_key : of_all),
                          counts ? 1 : of_key->cost);
}

/* The gate that lets it start last; where all that is closed has a time, one that counts jobs in flight is not known to. */
static void find_wait(struct look *look, const struct place *of_key, const struct place *of_all,
                      int64_t start_us)
{
    json_t *gate = look->last;
    int64_t last_us = gate ? answer_int_or(gate, "opens_at", GATE_NEVER) : answer_int(look->why, "now");

    for (size_t i = 0; i < look->gate_count; i++) {
        int64_t at_us = pass_gate(look, i, of_key, of_all);

        if (at_us > last_us && (at_us < GATE_NEVER || start_us == GATE_NEVER)) {
            last_us = at_us;
            gate = look->gates[i].row;
        }
    }
    if (gate)
        set_wait(look, waits_until(gate, last_us == GATE_NEVER ? last_us : start_us));
}

static bool is_closed(const struct look *look)
{
    return json_is_true(json_object_get(look->last, "closed"));
}

/* Sets when the job starts, not before now: the limits may have been read a while ago. */
static void set_start(json_t *why, int64_t start_us, unsigned because)
{
    int64_t now_us = answer_int(why, "now");

    set_time(why, "start", start_us > now_us ? start_us : now_us);
    json_object_set_new(why, "at_the_earliest", json_boolean(because));
    if (because)
        json_object_set_new(why, "because", json_string(forecast_reason(because)));
}

/* Foretells the job at a place among those of its key. At the gates for all keys one job at least of each lane before its own comes first
 * too. */
static int foretell(struct look *look, struct place of_key, unsigned because)
{
    const struct limit *own;
    struct type_status type = type_of(look, &own);
    int64_t before = look->keyed ? look->before : 0, now_us = answer_int(look->why, "now"), start_us;
    struct place of_all = {of_key.jobs + before, of_key.n + before, of_key.cost};
    struct backlog priced = {.jobs = of_all.jobs, .slots = of_all.n, .most = 1};
    struct forecast forecast;

    type.own_costs = of_key.jobs != of_key.n;
    type.backlog = type.own_costs ? &priced : NULL;
    type.cost = of_key.cost;
    type.costs = look->costs;
    if (forecast_jobs(look->limits, &type, of_all.jobs, &forecast, &look->w->error) < 0)
        return look->w->error.status;
    start_us = pass_keys(look, forecast.from_us,
                         forecast.last_us == GATE_NEVER ? forecast.from_us : forecast.last_us, &of_key);
    if (is_closed(look) || (start_us <= now_us && needs_an_end(look, answer_int(look->why, "ahead") + 1)))
        start_us = GATE_NEVER;
    set_start(look->why, start_us, because | forecast.because);
    find_wait(look, &of_key, &of_all, start_us);
    return 0;
}

static int look_ahead(struct look *look)
{
    struct ahead ahead = {0};
    const struct limit *own;
    int64_t cost;
    unsigned because;
    bool equal;
    int status = ask_line(look);

    if (status != 0 || strcmp(answer_text(look->why, "state"), "held") == 0 ||
        json_array_size(json_object_get(look->why, "gates")) == 0)
        return status;
    status = count_line(look, &ahead);
    if (status != 0)
        return status;
    cost = answer_int(look->why, "cost");
    equal = (ahead.jobs == 0 || (ahead.least == cost && ahead.most == cost)) &&
            (look->before == 0 || !type_of(look, &own).own_costs);
    because = (look->keyed ? LATER_KEYS : 0u) |
              (json_is_true(json_object_get(look->line, "elsewhere")) ? LATER_OTHERS : 0u) |
              (equal ? 0u : LATER_COSTS) |
              (json_is_true(json_object_get(look->why, "served")) ? 0u : LATER_NO_WORKER);
    if (equal)
        return foretell(look, (struct place){ahead.jobs + 1, ahead.jobs + 1, cost}, because);
    return foretell(look, (struct place){ahead.jobs + 1, ahead.slots + cost, 1}, because);
}

/* Nothing holds it back, and nobody has time for it. */
static void wait_for_executor(struct look *look)
{
    const struct type_status *type = limits_type(look->limits, look->type);
    json_t *waits = type ? waits_executor(type) : NULL;

    if (waits)
        set_wait(look, waits);
}

/* Says of a job that does not start before somebody resumes its queue or batch, or not at all, that no time is known. */
static void set_halted(json_t *job)
{
    bool in_queue = json_object_get(job, "queue_paused"), in_batch = json_object_get(job, "batch_paused");

    if (found_ends(job) || in_queue || in_batch)
        set_start(job, GATE_NEVER, in_queue ? LATER_QUEUE_PAUSED : in_batch ? LATER_BATCH_PAUSED : 0);
}

int why_read(struct weir *w, int64_t now_us, const char *id, json_t **why)
{
    int status = find_job(w, now_us, id, why);

    return status < 0 ? status : why_found(w, now_us, NULL, why);
}

int why_found(struct weir *w, int64_t now_us, const struct limits *limits, json_t **why)
{
    struct look look = {
        .w = w, .now_us = now_us, .why = *why, .type = answer_text(*why, "type"), .limits = limits};
    bool in_line = found_in_line(*why);
    int status = 0;

    if (in_line) {
        json_object_set_new(look.why, "ahead", json_null());
        json_object_set_new(look.why, "turns_before", json_null());
        set_start(look.why, GATE_NEVER, 0);
    }
    if (in_line && *look.type)
        status = look_ahead(&look);
    if (in_line && status == 0 && look.limits && !json_object_get(look.why, "reason"))
        wait_for_executor(&look);
    if (in_line && answer_int(look.pause, "until") >= PAUSED_ENDLESS_US)
        set_start(look.why, GATE_NEVER, LATER_TYPE_PAUSED);
    if (in_line)
        set_halted(look.why);
    for (size_t i = 0; i < look.gate_count; i++)
        gate_free(&look.gates[i].gate);
    limits_free(&look.own);
    json_decref(look.line);
    if (status != 0) {
        json_decref(*why);
        *why = NULL;
    }
    return status;
}
