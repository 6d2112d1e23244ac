/* What gates do whatever their algorithm: pauses, rates that adapt, rules that change, the stored state. */
#include "throttle/gate.h"

#include <stdlib.h>
#include <string.h>

#include "throttle/algorithm/algorithms.h"
#include "throttle/zone_rule.h"

/* A rate with adapt= grows by so many thousandths every period, though not faster than every second nor slower than every minute. */
#define GROWTH 10
#define GROWTH_MIN_US 1000000
#define GROWTH_MAX_US 60000000
#define WHOLE_RATE 1000

#define TIME_MAX (INT64_C(1) << 53)

static const struct algorithm_ops *ops_of(const struct gate *g)
{
    return algorithm_of(g->rule.algorithm);
}

/* Returns the slots that a job of that cost takes. */
static int64_t slots_of(const struct gate *g, int64_t cost)
{
    if (g->base.algorithm == ALGORITHM_CONCURRENCY || g->base.of_jobs)
        return 1;
    return g->counts_named ? g->named : cost;
}

static struct rule scaled(const struct rule *base, int thousandths)
{
    struct rule rule = *base;

    if (thousandths != WHOLE_RATE)
        algorithm_of(base->algorithm)->scale(&rule, thousandths);
    return rule;
}

static int64_t growth_us(const struct rule *base)
{
    return max_i64(GROWTH_MIN_US, min_i64(GROWTH_MAX_US, base->period_us));
}

/* Brings the rule to its rate at a time. */
static void adapt(struct gate *g, int64_t now_us)
{
    int64_t rate = g->base.adapt_high;

    if (!g->base.adapt_high) {
        g->factor = 0;
        g->rule = g->base;
        return;
    }
    if (g->factor)
        rate = max_i64(g->base.adapt_low,
                       g->factor + GROWTH * (max_i64(0, now_us - g->since_us) / growth_us(&g->base)));
    if (rate >= g->base.adapt_high) {
        rate = g->base.adapt_high;
        g->factor = 0;
    }
    g->rule = scaled(&g->base, (int)rate);
}

void gate_init(struct gate *g, const struct rule *rule)
{
    *g = (struct gate){.base = *rule};
    adapt(g, 0);
}

static void free_log(struct gate *g)
{
    free(g->log);
    g->log = NULL;
    g->log_first = g->log_count = g->log_capacity = 0;
}

void gate_free(struct gate *g)
{
    free_log(g);
    while (g->former_count > 0)
        free_log(&g->former[--g->former_count]);
    free(g->former);
    g->former = NULL;
}

/* Copies a gate without its former states. */
static int copy_state(struct gate *copy, const struct gate *g)
{
    size_t entries = g->log_count - g->log_first;

    *copy = *g;
    copy->former = NULL;
    copy->former_count = 0;
    copy->log = NULL;
    copy->log_first = 0;
    copy->log_count = copy->log_capacity = entries;
    if (!entries)
        return 0;
    copy->log = malloc(entries * sizeof *copy->log);
    if (!copy->log)
        return WEIR_EINTERNAL;
    memcpy(copy->log, g->log + g->log_first, entries * sizeof *copy->log);
    return 0;
}

/* Makes room for one more former state. */
static bool make_room(struct gate *g)
{
    struct gate *grown = reallocarray(g->former, (size_t)g->former_count + 1, sizeof *grown);

    if (grown)
        g->former = grown;
    return grown;
}

int gate_copy(struct gate *copy, const struct gate *g)
{
    int status = copy_state(copy, g);

    while (status == 0 && copy->former_count < g->former_count) {
        status = !make_room(copy)
                     ? WEIR_EINTERNAL
                     : copy_state(&copy->former[copy->former_count], &g->former[copy->former_count]);
        copy->former_count += status == 0;
    }
    if (status < 0)
        gate_free(copy);
    return status;
}

void gate_price(struct gate *g, const struct job_cost *said, const struct job_cost *of_type)
{
    g->counts_named = *g->base.of != '\0';
    g->named = g->counts_named ? cost_at(&g->base, said, of_type) : 0;
}

/* ---- Starting */

bool gate_fits(const struct gate *g, int64_t cost)
{
    if (!g->base.adapt_high)
        return slots_of(g, cost) <= g->rule.burst;
    return slots_of(g, cost) <= scaled(&g->base, g->base.adapt_high).burst;
}

static int64_t not_paused(const struct gate *g, int64_t now_us)
{
    return max_i64(now_us, g->pause_until_us);
}

/* Returns when a job starts that does not fit the present rate. */
static int64_t grown(const struct gate *g, int64_t now_us, int64_t cost)
{
    int64_t step_us = growth_us(&g->base);

    if (!g->factor || !gate_fits(g, cost))
        return GATE_NEVER;
    return not_paused(g, now_us + step_us - (now_us - g->since_us) % step_us);
}

int64_t gate_start(const struct gate *g, int64_t now_us, int64_t cost)
{
    int64_t slots = slots_of(g, cost);

    if (slots > g->rule.burst)
        return grown(g, now_us, cost);
    if (slots == 0)
        return not_paused(g, now_us);
    return ops_of(g)->start(g, not_paused(g, now_us), slots);
}

int64_t gate_nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t cost)
{
    int64_t slots = slots_of(g, cost);

    if (slots > g->rule.burst)
        return grown(g, now_us, cost);
    if (slots == 0)
        return not_paused(g, now_us);
    return ops_of(g)->nth_start(g, not_paused(g, now_us), n, slots);
}

int64_t gate_count(const struct gate *g, int64_t s_us, int64_t most_jobs, int64_t cost)
{
    int64_t jobs, slots = slots_of(g, cost);

    if (s_us < g->pause_until_us)
        return 0;
    if (slots == 0)
        return most_jobs;
    jobs = (g->rule.burst - ops_of(g)->used(g, s_us)) / slots;
    return max_i64(0, min_i64(jobs, most_jobs));
}

static int note(struct gate *g, int64_t s_us, int64_t slots)
{
    for (int i = 0; i < g->former_count; i++)
        if (ops_of(&g->former[i])->note(&g->former[i], s_us, slots) < 0)
            return WEIR_EINTERNAL;
    return 0;
}

int gate_take(struct gate *g, int64_t s_us, int64_t k, int64_t cost)
{
    int64_t slots = slots_of(g, cost);

    if (k == 0 || slots == 0)
        return 0;
    if (ops_of(g)->take(g, s_us, k * slots) < 0)
        return WEIR_EINTERNAL;
    slots = g->base.algorithm == ALGORITHM_CONCURRENCY ? cost : slots_of(g, cost);
    return note(g, s_us, k * min_i64(slots, SLOTS_MOST));
}

void gate_remember(struct gate *g, int64_t now_us)
{
    if (ops_of(g)->remember)
        ops_of(g)->remember(g, now_us);
}

void gate_give(struct gate *g, int64_t now_us, int64_t s_us, int64_t slots)
{
    ops_of(g)->give(g, now_us, s_us, slots);
}

int gate_charge(struct gate *g, int64_t now_us, int64_t slots)
{
    const struct algorithm_ops *ops = ops_of(g);
    int status =
        ops->charge ? ops->charge(g, now_us, slots) : ops->take(g, max_i64(now_us, ops->last(g)), slots);

    return status < 0 ? WEIR_EINTERNAL : note(g, now_us, slots);
}

void gate_release(struct gate *g)
{
    if (g->in_flight > 0)
        g->in_flight--;
}

int64_t gate_resets(const struct gate *g, int64_t now_us)
{
    return max_i64(not_paused(g, now_us), ops_of(g)->resets(g));
}

void gate_step_back(struct gate *g, int64_t us)
{
    ops_of(g)->step_back(g, us);
    g->pause_until_us = max_i64(0, g->pause_until_us - us);
    g->since_us -= us;
    for (int i = 0; i < g->former_count; i++) {
        ops_of(&g->former[i])->step_back(&g->former[i], us);
        g->former[i].till_us -= us;
    }
}

/* ---- Several gates */

int64_t gates_start(const struct gate *gates, size_t count, int64_t now_us, int64_t cost)
{
    int64_t s_us = now_us, before_us;

    do {
        before_us = s_us;
        for (size_t i = 0; i < count && s_us != GATE_NEVER; i++)
            s_us = gate_start(&gates[i], s_us, cost);
    } while (s_us != before_us);
    return s_us;
}

int gates_take(struct gate *gates, size_t count, int64_t s_us, int64_t k, int64_t cost, int64_t *taken)
{
    for (size_t i = 0; i < count; i++)
        k = gate_count(&gates[i], s_us, k, cost);
    *taken = k;
    for (size_t i = 0; i < count; i++)
        if (gate_take(&gates[i], s_us, k, cost) < 0)
            return WEIR_EINTERNAL;
    return 0;
}

/* ---- Changing */

/* Empties a gate, as one that was never used. */
static void empty(struct gate *g)
{
    memset(g->word, 0, sizeof g->word);
    g->remembers = false;
    g->low_count = 0;
    free_log(g);
}

/* Moves the words of one state to another; the first is used up by that. */
static void move_words(struct gate *to, struct gate *from)
{
    empty(to);
    memcpy(to->word, from->word, sizeof to->word);
    to->log = from->log;
    to->log_first = from->log_first;
    to->log_count = from->log_count;
    to->log_capacity = from->log_capacity;
    from->log = NULL;
}

/* Returns the rule as a state names it: without of=, by= and adapt=. */
static struct rule bare(const struct rule *rule)
{
    struct rule r = *rule;

    memset(r.by, 0, sizeof r.by);
    memset(r.zone_name, 0, sizeof r.zone_name);
    r.adapt_low = r.adapt_high = 0;
    r.of_jobs = false;
    memset(r.of, 0, sizeof r.of);
    return r;
}

static bool same_words(const struct rule *a, const struct rule *b)
{
    struct rule rules[2] = {bare(a), bare(b)};

    return rule_equal(&rules[0], &rules[1]);
}

static bool in_flight(const struct rule *rule)
{
    return rule->algorithm == ALGORITHM_CONCURRENCY;
}

/* ---- Former states: gate.lua says what they are */

static struct gate take_former(struct gate *g, int i)
{
    struct gate f = g->former[i];

    g->former_count--;
    memmove(&g->former[i], &g->former[i + 1], (size_t)(g->former_count - i) * sizeof f);
    return f;
}

static int64_t drained_us(const struct gate *g)
{
    return ops_of(g)->resets(g);
}

static void forget_former(struct gate *g, int64_t now_us)
{
    for (int i = g->former_count; i-- > 0;) {
        struct gate *f = &g->former[i];
        bool covered = in_flight(&g->base) || f->rule.burst <= g->base.burst;

        if (now_us >= f->till_us && (covered || drained_us(f) <= now_us)) {
            struct gate gone = take_former(g, i);

            free_log(&gone);
        }
    }
}

static int64_t used_at_last(const struct gate *g, int64_t now_us, int64_t *at_us)
{
    int64_t last_us = max_i64(now_us, ops_of(g)->last(g));

    *at_us = max_i64(*at_us, last_us);
    return ops_of(g)->used(g, last_us);
}

/* Makes a former state of the state of g. */
static int leave(struct gate *g, int64_t now_us)
{
    struct gate *f;

    if (in_flight(&g->base))
        return 0;
    if (!make_room(g))
        return WEIR_EINTERNAL;
    f = &g->former[g->former_count++];
    gate_init(f, &(struct rule){0});
    f->base = f->rule = bare(&g->base);
    f->till_us = max_i64(drained_us(g), now_us + g->base.period_us);
    move_words(f, g);
    return 0;
}

static struct gate take_first_drained(struct gate *g)
{
    int first = 0;

    for (int i = 1; i < g->former_count; i++)
        if (drained_us(&g->former[i]) < drained_us(&g->former[first]))
            first = i;
    return take_former(g, first);
}

static bool is_bucket(const struct rule *rule)
{
    return algorithm_of(rule->algorithm)->bursts;
}

/* Finds a rule under which a state has at least as much in use as under a and b, whatever starts: the slower and the larger of both. False:
 * there is none. */
static bool merged_rule(const struct rule *a, const struct rule *b, struct rule *merged)
{
    char stored[RULE_TEXT_SIZE];
    struct error ignored;
    bool slower = (__int128)b->period_us * a->count > (__int128)a->period_us * b->count;

    if (is_bucket(a) && is_bucket(b)) {
        *merged = slower ? *b : *a;
        merged->algorithm = ALGORITHM_GCRA;
        merged->burst = max_i64(a->burst, b->burst);
        rule_write(merged, stored);
        return rule_read(stored, merged, &ignored) == 0;
    }
    *merged = a->count > b->count ? *a : *b;
    return a->algorithm == b->algorithm && a->period_us == b->period_us && a->offset_us == b->offset_us &&
           zone_rule_equal(&a->zone, &b->zone);
}

/* Makes one of the two former states that are drained first. Where no rule says what both have in use it is a window that lasts until
 * neither is needed. */
static int merge_former(struct gate *g, int64_t now_us)
{
    struct gate a = take_first_drained(g), b = take_first_drained(g), *f = &g->former[g->former_count];
    int64_t ignored = 0, till_us = max_i64(a.till_us, b.till_us), end_us = max_i64(till_us, drained_us(&b));
    int64_t slots = max_i64(used_at_last(&a, now_us, &ignored), used_at_last(&b, now_us, &ignored));
    struct rule rule;

    if (!merged_rule(&a.rule, &b.rule, &rule)) {
        rule = (struct rule){.algorithm = ALGORITHM_FIXED_WINDOW};
        rule.count = rule.burst = max_i64(min_i64(slots, SLOTS_MOST), max_i64(a.rule.burst, b.rule.burst));
        rule.period_us = max_i64(rule.count, min_i64(TEN_YEARS_US, end_us - now_us));
        rule.offset_us = now_us % rule.period_us;
        till_us = now_us + rule.period_us;
    }
    free_log(&a);
    free_log(&b);
    gate_init(f, &rule);
    f->till_us = till_us;
    g->former_count++;
    return ops_of(f)->fill(f, now_us, min_i64(slots, SLOTS_MOST));
}

/* Takes back the state under a rule that comes back; false: there is none. */
static bool take_back(struct gate *g, const struct rule *rule, struct gate *f)
{
    for (int i = 0; i < g->former_count; i++)
        if (same_words(&g->former[i].rule, rule)) {
            *f = take_former(g, i);
            return true;
        }
    return false;
}

/* Puts another rule in force; what was known under it comes back. */
static void begin_rule(struct gate *g, const struct rule *rule, struct gate *state, int64_t now_us)
{
    g->base = *rule;
    empty(g);
    if (state)
        move_words(g, state);
    adapt(g, now_us);
}

/* Changes the rule. Slots are granted ahead: no slot in use may count as earlier than it starts, or it is forgotten too early. What is in
 * use is counted at the rate that the new rule has now: slots of a lower rate take longer to come back. */
int gate_change(struct gate *g, const struct rule *rule, int64_t now_us)
{
    int64_t at_us = 0, slots;
    struct gate same = {0};
    bool is_back;

    forget_former(g, now_us);
    if (same_words(&g->base, rule)) {
        g->base = *rule;
        adapt(g, now_us);
        return 0;
    }
    slots = used_at_last(g, now_us, &at_us);
    is_back = take_back(g, rule, &same);
    if ((slots > 0 && leave(g, now_us) < 0) ||
        (g->former_count > GATE_FORMER && merge_former(g, now_us) < 0)) {
        free_log(&same);
        return WEIR_EINTERNAL;
    }
    begin_rule(g, rule, is_back ? &same : NULL, now_us);
    if (is_back)
        return 0;
    for (int i = 0; i < g->former_count; i++)
        slots = max_i64(slots, used_at_last(&g->former[i], now_us, &at_us));
    return ops_of(g)->fill(g, at_us, min_i64(slots, rule->burst));
}

int gate_change_between(struct gate *g, const struct rule *rule, int64_t from_us, int64_t to_us,
                        bool in_order)
{
    int64_t slots = ops_of(g)->used(g, max_i64(to_us, ops_of(g)->last(g)));
    struct gate same = {0};
    bool was_known = take_back(g, rule, &same), is_back = was_known && in_order && to_us < same.till_us;

    if (leave(g, from_us) < 0) {
        free_log(&same);
        return WEIR_EINTERNAL;
    }
    if (slots == 0)
        g->former[g->former_count - 1].till_us = 0;
    begin_rule(g, rule, is_back ? &same : NULL, to_us);
    free_log(&same);
    return was_known ? 0 : ops_of(g)->fill(g, from_us, min_i64(slots, rule->burst));
}

/* ---- The stored state: "WROTE_US PAUSE_UNTIL_US HOLD ADAPT RULE WORDS[ |FORMER|...|][ ~IN_FLIGHT]" */

/* A former state is "RULE TILL_US WORDS". */

/* This is what was read of a state; the texts point into a copy. */
struct state {
    int64_t wrote_us, pause_until_us, since_us, in_flight;
    int64_t factor;
    struct rule rule;
    char *words, *former; /* former: what follows the first bar, or NULL */
};

static bool read_numbers(const char *text, char between, int64_t *a, int64_t *b)
{
    return number_read(&text, TIME_MAX, a) && *text++ == between && number_read(&text, TIME_MAX, b) && !*text;
}

/* Cuts " ~N" off. */
static bool read_in_flight(char *words, int64_t *in_flight)
{
    char *mark = strchr(words, '~');
    const char *at;

    if (!mark)
        return true;
    at = mark + 1;
    mark[mark > words && mark[-1] == ' ' ? -1 : 0] = '\0';
    return number_read(&at, TIME_MAX, in_flight) && !*at;
}

/* Cuts " |FORMER|...|" off. */
static bool read_former(char *words, char **former)
{
    char *bar = strchr(words, '|');

    *former = NULL;
    if (!bar)
        return true;
    if (bar == words || bar[-1] != ' ' || bar[strlen(bar) - 1] != '|' || !bar[1])
        return false;
    bar[-1] = '\0';
    *former = bar + 1;
    return true;
}

static int load_former(struct gate *g, char *text)
{
    char *rule = strsep(&text, " "), *till = strsep(&text, " ");
    const char *at = till;
    struct error ignored;
    struct rule read;
    struct gate *f;

    if (!text || g->former_count == GATE_FORMER || rule_read(rule, &read, &ignored) < 0 || *read.by ||
        read.of_jobs || *read.of || read.adapt_high || in_flight(&read))
        return WEIR_EINPUT;
    if (!make_room(g))
        return WEIR_EINTERNAL;
    f = &g->former[g->former_count];
    gate_init(f, &read);
    if (!number_read(&at, TIME_MAX, &f->till_us) || *at)
        return WEIR_EINPUT;
    g->former_count++;
    return ops_of(f)->load(f, text);
}

static int load_formers(struct gate *g, char *text)
{
    int status = 0;

    for (char *one; status == 0 && *text;) {
        one = strsep(&text, "|");
        status = load_former(g, one);
    }
    return status;
}

/* True of "-" and of "ticket,until_us,node". */
static bool is_hold(const char *text)
{
    int64_t ticket, until_us;

    return strcmp(text, "-") == 0 || (number_read(&text, INT64_MAX, &ticket) && *text++ == ',' &&
                                      number_read(&text, INT64_MAX, &until_us) && *text++ == ',' && *text);
}

static bool read_state(char *text, struct state *state)
{
    char *wrote = strsep(&text, " "), *pause = strsep(&text, " "), *hold = strsep(&text, " ");
    char *adapted = strsep(&text, " "), *rule = strsep(&text, " ");
    struct error ignored;
    const char *w = wrote, *p = pause;

    if (!text || !is_hold(hold) || !number_read(&w, TIME_MAX, &state->wrote_us) || *w ||
        !number_read(&p, TIME_MAX, &state->pause_until_us) || *p)
        return false;
    state->words = text;
    if (strcmp(adapted, "-") != 0 && !read_numbers(adapted, ',', &state->factor, &state->since_us))
        return false;
    return state->factor <= WHOLE_RATE && rule_read(rule, &state->rule, &ignored) == 0 && !*state->rule.by &&
           !state->rule.of_jobs && !*state->rule.of && !state->rule.adapt_high &&
           read_in_flight(text, &state->in_flight) && read_former(text, &state->former);
}

static int apply(struct gate *g, const struct state *state, int64_t now_us)
{
    struct rule base = g->base;
    int status;

    g->base = g->rule = state->rule;
    g->in_flight = state->in_flight;
    g->pause_until_us = state->pause_until_us;
    g->factor = (int)state->factor;
    g->since_us = state->since_us;
    status = ops_of(g)->load(g, state->words);
    if (status == 0 && state->former)
        status = load_formers(g, state->former);
    if (status < 0)
        return status;
    if (state->wrote_us > now_us)
        gate_step_back(g, state->wrote_us - now_us);
    return gate_change(g, &base, now_us);
}

#define CLOSED_US INT64_C(60000000) /* a gate of concurrency */

/* Closes a gate for a period from when its state was written; else it is as if never used. */
static int close_gate(struct gate *g, const char *text, int64_t now_us)
{
    int64_t wrote_us, period_us = g->base.algorithm == ALGORITHM_CONCURRENCY ? CLOSED_US : g->base.period_us;

    if (!number_read(&text, TIME_MAX, &wrote_us) || *text != ' ' || wrote_us > now_us)
        wrote_us = now_us;
    if (wrote_us + period_us > now_us)
        g->pause_until_us = wrote_us + period_us;
    return ops_of(g)->fill(g, wrote_us, g->rule.burst);
}

int gate_read(struct gate *g, const char *text, int64_t now_us, struct error *e)
{
    struct state state = {0};
    struct rule base = g->base;
    char *copy;
    int status = WEIR_EINPUT;

    if (!text || !*text)
        return 0;
    copy = strdup(text);
    if (!copy)
        return error_no_memory(e, "gate");
    if (read_state(copy, &state))
        status = apply(g, &state, now_us);
    free(copy);
    if (status == 0)
        return 0;
    gate_free(g);
    gate_init(g, &base);
    if (status == WEIR_EINTERNAL || close_gate(g, text, now_us) < 0)
        return error_no_memory(e, "gate");
    return error_set(e, status, "gate: its state '%.80s' cannot be read; it is closed for a period", text);
}
