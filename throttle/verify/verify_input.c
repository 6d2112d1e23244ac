#include "throttle/verify/verify_input.h"

#include <stdlib.h>
#include <string.h>

int input_grow(void *array, size_t count, size_t *capacity, size_t size, struct error *e)
{
    void **at = array, *grown;

    if (count < *capacity)
        return 0;
    grown = reallocarray(*at, *capacity ? *capacity * 2 : 64, size);
    if (!grown)
        return verify_out_of_memory(e);
    *at = grown;
    *capacity = *capacity ? *capacity * 2 : 64;
    return 0;
}

/* ---- Maps: open addressing, at most half full */

/* Hashes by FNV-1a, and mixes the bits as in splitmix64. */
uint64_t text_hash(uint64_t seed, const char *text)
{
    uint64_t z = UINT64_C(0xcbf29ce484222325) ^ seed;

    for (; *text; text++)
        z = (z ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static struct map_slot *slot_of(const struct map *m, uint64_t hash)
{
    size_t i = hash & (m->size - 1);

    while (m->at[i].value && m->at[i].hash != hash)
        i = (i + 1) & (m->size - 1);
    return &m->at[i];
}

uint32_t *map_find(const struct map *m, uint64_t hash)
{
    struct map_slot *slot = m->size ? slot_of(m, hash) : NULL;

    return slot && slot->value ? &slot->value : NULL;
}

static int map_grow(struct map *m)
{
    struct map grown = {.count = m->count, .size = m->size ? m->size * 2 : 256};

    grown.at = calloc(grown.size, sizeof *grown.at);
    if (!grown.at)
        return -1;
    for (size_t i = 0; i < m->size; i++)
        if (m->at[i].value)
            *slot_of(&grown, m->at[i].hash) = m->at[i];
    free(m->at);
    *m = grown;
    return 0;
}

uint32_t *map_at(struct map *m, uint64_t hash)
{
    struct map_slot *slot;

    if (m->count * 2 >= m->size && map_grow(m) < 0)
        return NULL;
    slot = slot_of(m, hash);
    if (!slot->value) {
        slot->hash = hash;
        m->count++;
    }
    return &slot->value;
}

void map_clear(struct map *m)
{
    if (m->count)
        memset(m->at, 0, m->size * sizeof *m->at);
    m->count = 0;
}

void map_free(struct map *m)
{
    free(m->at);
    *m = (struct map){0};
}

/* ---- Texts */

static int add_text(struct verify_input *input, const char *text, struct error *e)
{
    size_t capacity = input->text_capacity;
    char *copy;

    if (input_grow(&input->texts, input->text_count, &capacity, sizeof *input->texts, e) < 0 ||
        input_grow(&input->text_limits, input->text_count, &input->text_capacity, sizeof *input->text_limits,
                   e) < 0)
        return e->status;
    copy = strdup(text);
    if (!copy)
        return verify_out_of_memory(e);
    input->texts[input->text_count] = copy;
    input->text_limits[input->text_count++] = 0;
    return 0;
}

/* Two texts of one hash are told apart: the second is found one further on. */
int input_text(struct verify_input *input, const char *text, uint32_t *number, struct error *e)
{
    for (uint64_t hash = text_hash(0, text);; hash++) {
        uint32_t *value = map_at(&input->text_map, hash);

        if (!value)
            return verify_out_of_memory(e);
        if (!*value) {
            *value = (uint32_t)input->text_count + 1;
            *number = *value - 1;
            return add_text(input, text, e);
        }
        *number = *value - 1;
        if (strcmp(input->texts[*number], text) == 0)
            return 0;
    }
}

int input_init(struct verify_input *input, struct error *e)
{
    uint32_t empty;

    *input = (struct verify_input){0};
    if (input_text(input, "", &empty, e) < 0 || input_text(input, "-", &input->no_value, e) < 0)
        return e->status;
    return 0;
}

void input_free(struct verify_input *input)
{
    for (size_t i = 0; i < input->text_count; i++)
        free(input->texts[i]);
    free(input->texts);
    free(input->text_limits);
    free(input->limits);
    free(input->lines);
    free(input->rules);
    free(input->starts);
    map_free(&input->text_map);
}

/* ---- Limits */

static int find_line(struct verify_input *input, uint32_t limit, uint32_t index, uint32_t *number,
                     struct error *e)
{
    struct input_line *grown;

    for (size_t i = 0; i < input->line_count; i++)
        if (input->lines[i].limit == limit && input->lines[i].index == index) {
            *number = (uint32_t)i;
            return 0;
        }
    if (input->line_count > UINT16_MAX)
        return error_set(e, WEIR_EINPUT, "more than %d rules", UINT16_MAX);
    grown = reallocarray(input->lines, input->line_count + 1, sizeof *grown);
    if (!grown)
        return verify_out_of_memory(e);
    input->lines = grown;
    *number = (uint32_t)input->line_count;
    grown[input->line_count++] = (struct input_line){limit, index};
    return 0;
}

static int find_rule(struct verify_input *input, const struct rule *rule, uint32_t *number, struct error *e)
{
    struct rule bare = *rule, *grown;

    bare.adapt_low = bare.adapt_high = 0;
    bare.of_jobs = false;
    memset(bare.by, 0, sizeof bare.by);
    memset(bare.zone_name, 0, sizeof bare.zone_name);
    for (size_t i = 0; i < input->rule_count; i++)
        if (rule_equal(&input->rules[i], &bare)) {
            *number = (uint32_t)i;
            return 0;
        }
    grown = reallocarray(input->rules, input->rule_count + 1, sizeof *grown);
    if (!grown)
        return verify_out_of_memory(e);
    input->rules = grown;
    *number = (uint32_t)input->rule_count;
    grown[input->rule_count++] = bare;
    return 0;
}

/* One "limit=rules". */
static int read_limit(struct verify_input *input, char *text, struct input_limits *limits, struct error *e)
{
    char *rules = strchr(text, '=');
    struct rule_set set;
    uint32_t limit;

    if (!rules)
        return error_set(e, WEIR_EINPUT, "'%.64s' is not limit=rules", text);
    *rules++ = '\0';
    if (limit_name_check("limit", text, e) < 0 || rule_set_read(rules, &set, e) < 0 ||
        input_text(input, text, &limit, e) < 0)
        return e->status;
    if (set.count > TYPE_RULES_MAX - limits->count)
        return error_set(e, WEIR_EINPUT, "limits has more than %d rules", TYPE_RULES_MAX);
    for (size_t i = 0; i < set.count; i++) {
        struct input_rule *rule = &limits->at[limits->count];

        if (*set.at[i].of) /* a trace does not say what jobs cost by name */
            continue;
        limits->count++;
        rule->rule = set.at[i];
        if (find_line(input, limit, (uint32_t)set.at[i].place, &rule->line, e) < 0 ||
            find_rule(input, &set.at[i], &rule->same, e) < 0)
            return e->status;
    }
    return 0;
}

static int read_limits(struct verify_input *input, char *text, struct input_limits *limits, struct error *e)
{
    char *rest, *limit = strtok_r(text, "|", &rest);
    int status = 0;

    for (; status == 0 && limit; limit = strtok_r(NULL, "|", &rest))
        status = read_limit(input, limit, limits, e);
    return status;
}

static int add_limits(struct verify_input *input, const char *text, struct error *e)
{
    struct input_limits *grown = reallocarray(input->limits, input->limits_count + 1, sizeof *input->limits);
    char *copy = strdup(text);
    int status;

    if (grown)
        input->limits = grown;
    if (!grown || !copy) {
        free(copy);
        return verify_out_of_memory(e);
    }
    grown[input->limits_count] = (struct input_limits){0};
    status = read_limits(input, copy, &grown[input->limits_count], e);
    if (status == 0)
        input->limits_count++;
    free(copy);
    return status;
}

int input_limits(struct verify_input *input, const char *text, uint32_t *number, struct error *e)
{
    uint32_t of_text;

    *number = 0;
    if (!*text)
        return 0;
    if (input_text(input, text, &of_text, e) < 0)
        return e->status;
    if (!input->text_limits[of_text]) {
        if (add_limits(input, text, e) < 0)
            return e->status;
        input->text_limits[of_text] = (uint32_t)input->limits_count;
    }
    *number = input->text_limits[of_text];
    return 0;
}
