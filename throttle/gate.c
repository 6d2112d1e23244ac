/* What gates do whatever their algorithm: pauses, rates that adapt, rules that change, the stored state. */
#include "throttle/gate.h"

#include <stdlib.h>
#include <string.h>

#include "throttle/algorithm/algorithms.h"

/* adapt=: the rate grows by so many thousandths every period, though not faster than every second nor slower
 * than every minute. */
#define GROWTH 10
#define GROWTH_MIN_US 1000000
#define GROWTH_MAX_US 60000000
#define WHOLE_RATE 1000

#define TIME_MAX (INT64_C(1) << 53)

static const struct algorithm_ops *ops_of(const struct gate *g)
{
    return algorithm_of(g->rule.algorithm);
}

/* What a job of that cost takes. */
static int64_t slots_of(const struct gate *g, int64_t cost)
{
    return g->rule.algorithm == ALGORITHM_CONCURRENCY ? 1 : cost;
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
    return most(GROWTH_MIN_US, least(GROWTH_MAX_US, base->period_us));
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
        rate = most(g->base.adapt_low,
                    g->factor + GROWTH * (most(0, now_us - g->since_us) / growth_us(&g->base)));
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

void gate_free(struct gate *g)
{
    free(g->log);
    g->log = NULL;
    g->log_first = g->log_count = g->log_capacity = 0;
}

int gate_copy(struct gate *copy, const struct gate *g)
{
    size_t entries = g->log_count - g->log_first;

    *copy = *g;
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

/* ---- Starting */

bool gate_fits(const struct gate *g, int64_t cost)
{
    if (!g->base.adapt_high)
        return slots_of(g, cost) <= g->rule.burst;
    return cost <= scaled(&g->base, g->base.adapt_high).burst;
}

static int64_t not_paused(const struct gate *g, int64_t now_us)
{
    return most(now_us, g->pause_until_us);
}

/* When a job starts that does not fit the present rate. */
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
    return ops_of(g)->start(g, not_paused(g, now_us), slots);
}

int64_t gate_nth_start(const struct gate *g, int64_t now_us, int64_t n, int64_t cost)
{
    int64_t slots = slots_of(g, cost);

    if (slots > g->rule.burst)
        return grown(g, now_us, cost);
    return ops_of(g)->nth_start(g, not_paused(g, now_us), n, slots);
}

int64_t gate_count(const struct gate *g, int64_t s_us, int64_t most_jobs, int64_t cost)
{
    int64_t jobs;

    if (s_us < g->pause_until_us)
        return 0;
    jobs = (g->rule.burst - ops_of(g)->used(g, s_us)) / slots_of(g, cost);
    return most(0, least(jobs, most_jobs));
}

int gate_take(struct gate *g, int64_t s_us, int64_t k, int64_t cost)
{
    return k ? ops_of(g)->take(g, s_us, k * slots_of(g, cost)) : 0;
}

void gate_remember(struct gate *g, int64_t now_us)
{
    if (ops_of(g)->remember)
        ops_of(g)->remember(g, now_us);
}

void gate_give(struct gate *g, int64_t now_us, int64_t s_us, int64_t cost)
{
    ops_of(g)->give(g, now_us, s_us, cost);
}

int gate_charge(struct gate *g, int64_t now_us, int64_t cost)
{
    return ops_of(g)->charge(g, now_us, cost);
}

void gate_release(struct gate *g)
{
    if (g->in_flight > 0)
        g->in_flight--;
}

int64_t gate_resets(const struct gate *g, int64_t now_us)
{
    return most(not_paused(g, now_us), ops_of(g)->resets(g));
}

void gate_step_back(struct gate *g, int64_t us)
{
    ops_of(g)->step_back(g, us);
    g->pause_until_us = most(0, g->pause_until_us - us);
    g->since_us -= us;
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

/* Never used, but for its pause and what is in flight. */
static void empty(struct gate *g)
{
    memset(g->word, 0, sizeof g->word);
    g->remembers = false;
    g->low_count = 0;
    gate_free(g);
}

/* The same but for by= and adapt=, of which a state knows nothing? */
static bool same_words(const struct rule *a, const struct rule *b)
{
    struct rule bare[2] = {*a, *b};

    for (int i = 0; i < 2; i++) {
        bare[i].by[0] = '\0';
        bare[i].adapt_low = bare[i].adapt_high = 0;
    }
    return rule_equal(&bare[0], &bare[1]);
}

/* Slots are granted ahead: no slot in use may count as earlier than it starts, or it is forgotten too early.
 */
int gate_change(struct gate *g, const struct rule *rule, int64_t now_us)
{
    int64_t at_us = most(now_us, ops_of(g)->last(g)), slots = ops_of(g)->used(g, at_us);
    bool same = same_words(&g->base, rule);

    g->base = *rule;
    if (!same)
        empty(g);
    adapt(g, now_us); /* first: slots of a lower rate take longer to come back */
    return same ? 0 : ops_of(g)->fill(g, at_us, least(slots, rule->burst));
}

/* ---- The stored state: "WROTE_US PAUSE_UNTIL_US HOLD ADAPT RULE WORDS[ ~IN_FLIGHT]" */

/* What was read of it; the texts point into a copy. */
struct state {
    int64_t wrote_us, pause_until_us, since_us, in_flight;
    int64_t factor;
    struct rule rule;
    char *words;
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

static bool read_state(char *text, struct state *state)
{
    char *wrote = strsep(&text, " "), *pause = strsep(&text, " "), *hold = strsep(&text, " ");
    char *adapted = strsep(&text, " "), *rule = strsep(&text, " ");
    struct error ignored;
    const char *w = wrote, *p = pause;

    if (!text || !*hold || !number_read(&w, TIME_MAX, &state->wrote_us) || *w ||
        !number_read(&p, TIME_MAX, &state->pause_until_us) || *p)
        return false;
    state->words = text;
    if (strcmp(adapted, "-") != 0 && !read_numbers(adapted, ',', &state->factor, &state->since_us))
        return false;
    return state->factor <= WHOLE_RATE && rule_read(rule, &state->rule, &ignored) == 0 && !*state->rule.by &&
           !state->rule.adapt_high && read_in_flight(text, &state->in_flight);
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
    status = ops_of(g)->load(g, state->words, now_us);
    if (status < 0)
        return status;
    if (state->wrote_us > now_us)
        gate_step_back(g, state->wrote_us - now_us);
    return gate_change(g, &base, now_us);
}

#define CLOSED_US INT64_C(60000000) /* a gate of concurrency */

/* As if never used, but closed for a period from when that was written. */
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
        return error_set(e, WEIR_EINTERNAL, "gate: out of memory; free some and try again");
    if (read_state(copy, &state))
        status = apply(g, &state, now_us);
    free(copy);
    if (status == 0)
        return 0;
    gate_free(g);
    gate_init(g, &base);
    if (status == WEIR_EINTERNAL || close_gate(g, text, now_us) < 0)
        return error_set(e, WEIR_EINTERNAL, "gate: out of memory; free some and try again");
    return error_set(e, status, "gate: its state '%.80s' cannot be read; it is closed for a period", text);
}
