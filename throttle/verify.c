#include "throttle/verify.h"

#include <errno.h>
#include <jansson.h>
#include <search.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "throttle/gcra.h"

static const int64_t window_us[VERIFY_WINDOWS] = {1000000, 100000};

/* One line of a trace; texts are kept once in input->texts. */
struct start {
    int64_t at_us; /* its slot; without a limit its start */
    int64_t start_us;
    const char *type;
    const char *rule; /* "": none */
    const char *file;
    size_t line;
};

struct verify_input {
    struct start *starts;
    size_t count, capacity;
    void *texts; /* tsearch tree of strings: equal texts are equal pointers */
};

static int out_of_memory(struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "verify: out of memory; give fewer traces at once");
}

int verify_init(struct verify *v, struct error *e)
{
    *v = (struct verify){.input = calloc(1, sizeof *v->input)};
    return v->input ? 0 : out_of_memory(e);
}

void verify_free(struct verify *v)
{
    if (v->input) {
        tdestroy(v->input->texts, free);
        free(v->input->starts);
        free(v->input);
    }
    free(v->types);
    *v = (struct verify){0};
}

/* ---- Reading */

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The one copy of text; NULL when out of memory. */
static const char *keep_text(struct verify_input *input, const char *text)
{
    char **node = tfind(text, &input->texts, compare_texts);
    char *copy;

    if (node)
        return *node;
    copy = strdup(text);
    node = copy ? tsearch(copy, &input->texts, compare_texts) : NULL;
    if (!node)
        free(copy);
    return node ? *node : NULL;
}

static int keep_start(struct verify_input *input, const struct start *s, const char *type, const char *rule,
                      struct error *e)
{
    struct start *kept;

    if (input->count == input->capacity) {
        size_t capacity = input->capacity ? input->capacity * 2 : 4096;
        struct start *grown = reallocarray(input->starts, capacity, sizeof *grown);

        if (!grown)
            return out_of_memory(e);
        input->starts = grown;
        input->capacity = capacity;
    }
    kept = &input->starts[input->count];
    *kept = *s;
    kept->type = keep_text(input, type);
    kept->rule = keep_text(input, rule);
    if (!kept->type || !kept->rule)
        return out_of_memory(e);
    input->count++;
    return 0;
}

/* A member that is a time: whole, and such that no sum overflows. */
static bool read_time(const json_t *line, const char *name, int64_t *us)
{
    const json_t *value = json_object_get(line, name);

    *us = json_integer_value(value);
    return json_is_integer(value) && *us >= 0 && *us < INT64_C(1) << 53;
}

static int read_members(struct verify_input *input, const json_t *line, struct start *s, struct error *e)
{
    const char *type = json_string_value(json_object_get(line, "type"));
    const json_t *rule_member = json_object_get(line, "rule");
    const char *rule = rule_member ? json_string_value(rule_member) : "";
    struct rule parsed;
    int64_t slot_us;

    if (!type || !rule)
        return error_set(e, WEIR_EINPUT, "type is missing, or type or rule is no string");
    if (limit_name_check("type", type, e) < 0 || (*rule && rule_read(rule, &parsed, e) < 0))
        return e->status;
    if (!read_time(line, "start", &s->start_us) || (*rule && !read_time(line, "slot", &slot_us)))
        return error_set(e, WEIR_EINPUT, "slot or start is no time in microseconds");
    s->at_us = *rule ? slot_us : s->start_us;
    return keep_start(input, s, type, rule, e);
}

/* Reads one line; *torn: it is no JSON at all. */
static int read_line(struct verify_input *input, const char *text, size_t len, struct start *s, bool *torn,
                     struct error *e)
{
    json_error_t why;
    json_t *line = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    int status;

    *torn = !line;
    if (!line)
        return error_set(e, WEIR_EINPUT, "no JSON (%s)", why.text);
    if (json_is_object(line))
        status = read_members(input, line, s, e);
    else
        status = error_set(e, WEIR_EINPUT, "no JSON object");
    json_decref(line);
    return status;
}

static int read_lines(struct verify_input *input, FILE *f, const char *path, size_t *torn_line,
                      struct error *e)
{
    struct start s = {.file = path, .line = 1};
    struct error why;
    size_t capacity = 0;
    char *text = NULL;
    ssize_t len;
    bool torn;
    int status = 0;

    for (; status == 0 && (len = getline(&text, &capacity, f)) > 0; s.line++) {
        status = read_line(input, text, (size_t)len, &s, &torn, &why);
        if (status < 0 && torn && text[len - 1] != '\n') {
            *torn_line = s.line;
            status = 0;
        } else if (status == WEIR_EINPUT) {
            error_set(e, status, "%.200s:%zu: %.200s; is it a trace of weir worker --trace?", path, s.line,
                      why.text);
        } else if (status < 0) {
            *e = why;
        }
    }
    free(text);
    if (status == 0 && ferror(f))
        return error_set(e, WEIR_EINPUT, "%.200s: cannot be read: %s; give a trace file", path,
                         strerror(errno));
    return status;
}

int verify_read(struct verify *v, const char *path, size_t *torn_line, struct error *e)
{
    FILE *f = fopen(path, "r");
    int status;

    *torn_line = 0;
    if (!f)
        return error_set(e, WEIR_EINPUT, "%.200s: cannot be opened: %s; give a trace file", path,
                         strerror(errno));
    status = read_lines(v->input, f, path, torn_line, e);
    fclose(f);
    return status;
}

/* ---- Replaying */

static int compare_int64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_starts(const void *a, const void *b)
{
    const struct start *x = a, *y = b;
    int order = x->type == y->type ? 0 : strcmp(x->type, y->type);

    if (!order)
        order = compare_int64(x->at_us, y->at_us);
    if (!order && x->file != y->file)
        order = strcmp(x->file, y->file);
    return order ? order : (x->line > y->line) - (x->line < y->line);
}

static void add_violation(struct verify *v, struct verify_type *type, const struct start *s, int64_t early_us)
{
    if (v->violations < VERIFY_NAMED_MAX)
        v->named[v->violations] = (struct verify_violation){
            .file = s->file, .line = s->line, .type = s->type, .early_us = early_us};
    v->violations++;
    type->violations++;
}

/* A start that comes too early takes nothing in the model (I.371: a cell that does not conform): one too many
 * is one violation and does not make all that follow it wrong. */
static void replay_slots(struct verify *v, struct verify_type *type, const struct start *s, size_t n)
{
    struct gcra model;

    gcra_init(&model, &type->rule);
    for (size_t i = 0; i < n; i++) {
        int64_t opens_us = gcra_start(&model, 0, 1);

        if (opens_us > s[i].at_us)
            add_violation(v, type, &s[i], opens_us - s[i].at_us);
        else
            gcra_take(&model, s[i].at_us, 1, 1);
    }
}

/* The most slots in any half-open window: burst - 1 and as many T as begin in it. */
static uint64_t most_allowed(const struct rule *rule, int64_t window)
{
    return (uint64_t)(rule->burst - 1) +
           (uint64_t)(((__int128)window * rule->count + rule->period_us - 1) / rule->period_us);
}

/* Of several stretches the one that is closest to its bound, or furthest above it, is kept. */
static void measure_window(struct verify_window *w, const struct rule *rule, const struct start *s, size_t n)
{
    uint64_t most = 0, allowed = most_allowed(rule, w->window_us);

    for (size_t first = 0, i = 0; i < n; i++) {
        while (s[i].at_us - s[first].at_us >= w->window_us)
            first++;
        if (i - first + 1 > most)
            most = i - first + 1;
    }
    if (!w->most || (int64_t)(most - allowed) > (int64_t)(w->most - w->allowed)) {
        w->most = most;
        w->allowed = allowed;
    }
}

static void measure_gap(struct verify_type *type, const struct start *s, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double gap =
            (double)(s[i].at_us - s[i - 1].at_us) * (double)type->rule.count / (double)type->rule.period_us;

        if (type->gap < 0 || gap < type->gap)
            type->gap = gap;
    }
}

/* What the stretches of one type add up to. */
struct use {
    double beyond; /* starts beyond the first burst */
    double earned; /* slots that came open after it */
};

static void replay_stretch(struct verify *v, struct verify_type *type, const struct start *s, size_t n,
                           struct use *use)
{
    const struct rule *rule = &type->rule;
    double span = (double)(s[n - 1].at_us - s[0].at_us);

    replay_slots(v, type, s, n);
    for (size_t i = 0; i < VERIFY_WINDOWS; i++)
        measure_window(&type->windows[i], rule, s, n);
    measure_gap(type, s, n);
    if (n > (size_t)rule->burst) {
        use->beyond += (double)n - (double)rule->burst;
        use->earned += span * (double)rule->count / (double)rule->period_us;
    }
}

static int compare_lateness(const void *a, const void *b)
{
    return compare_int64(*(const int64_t *)a, *(const int64_t *)b);
}

/* The value that a share of all is at most; nearest rank. */
static int64_t percentile(const int64_t *sorted, size_t n, size_t per_mille)
{
    return sorted[(n * per_mille + 999) / 1000 - 1];
}

static int measure_lateness(struct verify_type *type, const struct start *s, size_t n, struct error *e)
{
    int64_t *late_us = malloc(n * sizeof *late_us);
    size_t count = 0;

    if (!late_us)
        return out_of_memory(e);
    for (size_t i = 0; i < n; i++)
        if (*s[i].rule)
            late_us[count++] = s[i].start_us - s[i].at_us;
    qsort(late_us, count, sizeof *late_us, compare_lateness);
    if (count)
        type->lateness = (struct verify_lateness){
            .min_us = late_us[0],
            .p50_us = percentile(late_us, count, 500),
            .p99_us = percentile(late_us, count, 990),
            .p999_us = percentile(late_us, count, 999),
            .max_us = late_us[count - 1],
        };
    free(late_us);
    return 0;
}

/* All starts of one type, by slot. */
static int replay_type(struct verify *v, struct verify_type *type, const struct start *s, size_t n,
                       struct error *e)
{
    struct use use = {0};

    *type = (struct verify_type){.starts = n, .span_us = s[n - 1].at_us - s[0].at_us, .kept = -1, .gap = -1};
    strcpy(type->name, s[0].type);
    for (size_t i = 0; i < VERIFY_WINDOWS; i++)
        type->windows[i].window_us = window_us[i];
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && s[next].rule == s[i].rule; next++)
            ;
        type->stretches++;
        if (!*s[i].rule)
            continue;
        if (rule_read(s[i].rule, &type->rule, e) < 0)
            return e->status;
        type->limited = true;
        replay_stretch(v, type, s + i, next - i, &use);
    }
    if (use.earned > 0)
        type->kept = use.beyond / use.earned;
    return measure_lateness(type, s, n, e);
}

static size_t count_types(const struct start *s, size_t n)
{
    size_t types = 0;

    for (size_t i = 0; i < n; i++)
        types += i == 0 || s[i].type != s[i - 1].type;
    return types;
}

int verify_replay(struct verify *v, struct error *e)
{
    struct start *s = v->input->starts;
    size_t n = v->input->count;

    v->starts = n;
    if (n == 0)
        return 0;
    qsort(s, n, sizeof *s, compare_starts);
    v->types = calloc(count_types(s, n), sizeof *v->types);
    if (!v->types)
        return out_of_memory(e);
    for (size_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && s[next].type == s[i].type; next++)
            ;
        if (replay_type(v, &v->types[v->type_count], s + i, next - i, e) < 0)
            return e->status;
        v->type_count++;
    }
    return 0;
}
