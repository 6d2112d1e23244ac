/* verify's way through all that was read: starts in the order of their slots; each at its gates, gates one
 * after the other; what was found is put together by rule, by type and by the first violations. */
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "throttle/verify/verify_input.h"

/* ---- Order */

struct place {
    int64_t at_us;
    uint32_t start;
};

/* Compares starts of one time by the names of their files and their lines, so that the order on the command line does not matter. */
static int compare_places(const void *a, const void *b, void *arg)
{
    const struct place *x = a, *y = b;
    const struct verify_input *input = arg;
    const struct start *s = &input->starts[x->start], *t = &input->starts[y->start];
    int order = by_number(x->at_us, y->at_us);

    if (!order && s->file != t->file)
        order = strcmp(input->texts[s->file], input->texts[t->file]);
    return order ? order : (s->line > t->line) - (s->line < t->line);
}

static int order_starts(struct verify_input *input, struct error *e)
{
    struct place *places = malloc(input->count * sizeof *places);
    struct start *ordered = malloc(input->count * sizeof *ordered);
    int status = 0;

    if (!places || !ordered) {
        free(ordered);
        status = verify_out_of_memory(e);
        goto out;
    }
    for (size_t i = 0; i < input->count; i++)
        places[i] = (struct place){input->starts[i].at_us, (uint32_t)i};
    qsort_r(places, input->count, sizeof *places, compare_places, input);
    for (size_t i = 0; i < input->count; i++)
        ordered[i] = input->starts[places[i].start];
    free(input->starts);
    input->starts = ordered;
    input->capacity = input->count;
out:
    free(places);
    return status;
}

/* Ends starts without an end line when the same job started again, at the latest. */
static int end_at_next_start(struct verify_input *input, struct error *e)
{
    struct map next = {0}; /* of a job some start of which has not ended: its next start, from 1 */
    int status = 0;

    for (size_t i = 0; status == 0 && i < input->count; i++)
        if (input->starts[i].job && input->starts[i].limits && !input->starts[i].ended) {
            uint32_t *value = map_at(&next, input->starts[i].job);

            if (value)
                *value = UINT32_MAX; /* none yet */
            else
                status = verify_out_of_memory(e);
        }
    for (size_t i = input->count; status == 0 && i-- > 0;) {
        struct start *s = &input->starts[i];
        uint32_t *value = s->job ? map_find(&next, s->job) : NULL;

        if (!value)
            continue;
        if (!s->ended && *value != UINT32_MAX) {
            int64_t ran_us = input->starts[*value - 1].at_us - s->at_us;

            if (ran_us < s->end_us - s->start_us)
                s->end_us = s->start_us + ran_us;
        }
        *value = (uint32_t)i + 1;
    }
    map_free(&next);
    return status;
}

/* ---- Events: each start at each of its gates */

struct events {
    struct event *at;
    size_t count;
};

static int make_events(const struct verify_input *input, struct events *events, struct error *e)
{
    size_t count = 0;

    for (size_t i = 0; i < input->count; i++)
        if (input->starts[i].limits)
            count += input->limits[input->starts[i].limits - 1].count;
    events->at = malloc((count + 1) * sizeof *events->at);
    if (!events->at)
        return verify_out_of_memory(e);
    for (size_t i = 0; i < input->count; i++) {
        const struct start *s = &input->starts[i];
        size_t rules = s->limits ? input->limits[s->limits - 1].count : 0;

        for (size_t place = 0; place < rules; place++) {
            const struct input_rule *rule = &input->limits[s->limits - 1].at[place];
            uint32_t key = !*rule->rule.by ? 0 : s->key ? s->key : input->no_value;

            events->at[events->count++] = (struct event){
                .start = (uint32_t)i, .key = key, .line = (uint16_t)rule->line, .place = (uint16_t)place};
        }
    }
    return 0;
}

static uint32_t key_of(const struct event *event)
{
    return event->key;
}

static uint32_t line_of(const struct event *event)
{
    return event->line;
}

/* Sorts by a number below numbers; what is equal stays in its order. */
static int sort_events(struct events *events, uint32_t (*number_of)(const struct event *), size_t numbers,
                       struct error *e)
{
    size_t *next = calloc(numbers + 1, sizeof *next);
    struct event *sorted = malloc((events->count + 1) * sizeof *sorted);

    if (!next || !sorted) {
        free(next);
        free(sorted);
        return verify_out_of_memory(e);
    }
    for (size_t i = 0; i < events->count; i++)
        next[number_of(&events->at[i]) + 1]++;
    for (size_t i = 0; i < numbers; i++)
        next[i + 1] += next[i];
    for (size_t i = 0; i < events->count; i++)
        sorted[next[number_of(&events->at[i])]++] = events->at[i];
    free(next);
    free(events->at);
    events->at = sorted;
    return 0;
}

/* ---- Rules */

/* Returns how far a use is above its bounds, or how close to them. */
static int64_t excess(const struct verify_use *use)
{
    return use->allowed_at_once
               ? use->most_at_once - use->allowed_at_once
               : use->windows[VERIFY_WINDOWS - 1].most - use->windows[VERIFY_WINDOWS - 1].allowed;
}

static bool is_worse(const struct verify_use *a, const struct verify_use *b)
{
    if (a->violations + a->crowded != b->violations + b->crowded)
        return a->violations + a->crowded > b->violations + b->crowded;
    return excess(a) != excess(b) ? excess(a) > excess(b) : a->starts > b->starts;
}

/* Replays all events of one rule, in which those of one key stand together. */
static int replay_rule(const struct verify_input *input, struct event *events, size_t n,
                       struct verify_rule *rule, struct broken_list *broken, struct error *e)
{
    const struct input_line *line = &input->lines[events[0].line];
    uint32_t last = 0;

    *rule = (struct verify_rule){.limit = input->texts[line->limit], .index = line->index, .starts = n};
    for (size_t i = 0; i < n; i++)
        if (events[i].start >= last) {
            last = events[i].start;
            rule->rule = event_rule(input, &events[i])->rule;
        }
    for (size_t i = 0, next; i < n; i = next) {
        const char *key = input->texts[events[i].key];
        struct verify_use use;

        for (next = i + 1; next < n && events[next].key == events[i].key; next++)
            ;
        if (gate_replay(input, events + i, next - i, &use, broken, e) < 0)
            return e->status;
        rule->violations += use.violations;
        rule->crowded += use.crowded;
        if (rule->keys++ == 0 || is_worse(&use, &rule->worst)) {
            rule->worst = use;
            rule->worst_key = key;
        }
    }
    return 0;
}

static int compare_rules(const void *a, const void *b)
{
    const struct verify_rule *x = a, *y = b;
    int order = strcmp(x->limit, y->limit);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int replay_rules(struct verify *v, struct events *events, struct broken_list *broken, struct error *e)
{
    const struct verify_input *input = v->input;

    v->rules = calloc(input->line_count + 1, sizeof *v->rules);
    if (!v->rules)
        return verify_out_of_memory(e);
    for (size_t i = 0, next; i < events->count; i = next) {
        for (next = i + 1; next < events->count && events->at[next].line == events->at[i].line; next++)
            ;
        if (replay_rule(input, events->at + i, next - i, &v->rules[v->rule_count], broken, e) < 0)
            return e->status;
        v->rule_count++;
    }
    qsort(v->rules, v->rule_count, sizeof *v->rules, compare_rules);
    return 0;
}

/* ---- Violations */

static int compare_broken(const void *a, const void *b)
{
    const struct broken *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return x->started - y->started;
}

static void name_violations(struct verify *v, struct broken_list *broken)
{
    const struct verify_input *input = v->input;

    for (size_t i = 0; i < broken->count; i++)
        *(broken->at[i].started ? &v->crowded : &v->violations) += 1;
    if (broken->count)
        qsort(broken->at, broken->count, sizeof *broken->at, compare_broken);
    for (size_t i = 0; i < broken->count && i < VERIFY_NAMED_MAX; i++) {
        const struct broken *b = &broken->at[i];
        const struct start *s = &input->starts[b->start];
        const struct rule *rule = &input->limits[s->limits - 1].at[b->place].rule;

        v->named[i] = (struct verify_violation){
            .file = input->texts[s->file],
            .line = s->line,
            .type = input->texts[s->type],
            .limit = input->texts[input->lines[b->line].limit],
            .key = !*rule->by ? "" : input->texts[s->key ? s->key : input->no_value],
            .index = input->lines[b->line].index,
            .rule = *rule,
            .started = b->started,
            .early_us = b->early_us,
        };
    }
}

/* ---- Types */

static int compare_lateness(const void *a, const void *b)
{
    return by_number(*(const int64_t *)a, *(const int64_t *)b);
}

/* Returns the value that a share of all is at most, by the nearest rank. */
static int64_t percentile(const int64_t *sorted, size_t n, size_t per_mille)
{
    return sorted[(n * per_mille + 999) / 1000 - 1];
}

/* True when a start is later than its slot is good, and than clocks are apart. */
static bool is_after_slot(const struct start *s)
{
    return s->start_us - s->at_us > VERIFY_CLOCKS_US && s->start_us - s->at_us > 2 * (int64_t)s->good_us;
}

static void measure_lateness(struct verify_type *type, int64_t *late_us, size_t n)
{
    type->limited = n > 0;
    if (n == 0)
        return;
    qsort(late_us, n, sizeof *late_us, compare_lateness);
    while (type->before_slot < n && late_us[type->before_slot] < -VERIFY_CLOCKS_US)
        type->before_slot++;
    type->lateness = (struct verify_lateness){
        .min_us = late_us[0],
        .p50_us = percentile(late_us, n, 500),
        .p99_us = percentile(late_us, n, 990),
        .p999_us = percentile(late_us, n, 999),
        .max_us = late_us[n - 1],
    };
}

/* Measures all starts of one type. late_us has room for them. */
static void measure_type(const struct verify_input *input, struct verify_type *type, uint32_t name,
                         int64_t *late_us)
{
    int64_t first_us = -1, last_us = 0;
    size_t late = 0;

    *type = (struct verify_type){.name = input->texts[name]};
    for (size_t i = 0; i < input->count; i++) {
        const struct start *s = &input->starts[i];

        if (s->type != name)
            continue;
        type->starts++;
        first_us = first_us < 0 ? s->at_us : first_us;
        last_us = s->at_us;
        if (!s->limits)
            continue;
        late_us[late++] = s->start_us - s->at_us;
        type->after_slot += is_after_slot(s);
    }
    type->span_us = last_us - first_us;
    measure_lateness(type, late_us, late);
}

static int compare_types(const void *a, const void *b)
{
    const struct verify_type *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int measure_types(struct verify *v, const struct broken_list *broken, struct error *e)
{
    const struct verify_input *input = v->input;
    uint32_t *number_of =
        calloc(input->text_count, sizeof *number_of); /* the place of each text in types, from 1 */
    int64_t *late_us = malloc(input->count * sizeof *late_us);
    size_t capacity = 0;
    int status = number_of && late_us ? 0 : verify_out_of_memory(e);

    for (size_t i = 0; status == 0 && i < input->count; i++) {
        uint32_t name = input->starts[i].type;

        if (number_of[name])
            continue;
        status = input_grow(&v->types, v->type_count, &capacity, sizeof *v->types, e);
        if (status == 0) {
            measure_type(input, &v->types[v->type_count], name, late_us);
            v->before_slot += v->types[v->type_count].before_slot;
            v->after_slot += v->types[v->type_count].after_slot;
            number_of[name] = (uint32_t)++v->type_count;
        }
    }
    for (size_t i = 0; status == 0 && i < broken->count; i++) {
        struct verify_type *type = &v->types[number_of[input->starts[broken->at[i].start].type] - 1];

        *(broken->at[i].started ? &type->crowded : &type->violations) += 1;
    }
    if (status == 0)
        qsort(v->types, v->type_count, sizeof *v->types, compare_types);
    free(late_us);
    free(number_of);
    return status;
}

/* ---- All of it */

int verify_replay(struct verify *v, struct error *e)
{
    struct verify_input *input = v->input;
    struct broken_list broken = {0};
    struct events events = {0};
    int status;

    v->starts = input->count;
    if (input->count == 0)
        return 0;
    status = order_starts(input, e);
    if (status == 0)
        status = end_at_next_start(input, e);
    if (status == 0)
        status = make_events(input, &events, e);
    if (status == 0)
        status = sort_events(&events, key_of, input->text_count, e);
    if (status == 0)
        status = sort_events(&events, line_of, input->line_count, e);
    if (status == 0)
        status = replay_rules(v, &events, &broken, e);
    if (status == 0) {
        name_violations(v, &broken);
        status = measure_types(v, &broken, e);
    }
    free(events.at);
    free(broken.at);
    return status;
}
