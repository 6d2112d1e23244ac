#include <stdlib.h>
#include <string.h>

#include "cli/apply/apply.h"
#include "queue/limits/export.h"

#define REASON_MOST 200 /* bytes, as queue/state/reasons.lua has it */

static const json_t *section_at(const json_t *state, const char *kind, const char *title)
{
    char name[200];

    snprintf(name, sizeof name, "%s %.150s", kind, title);
    return json_object_get(state, name);
}

static bool changes_rules(const struct applying *a, const char *limit)
{
    const json_t *want = section_at(a->want, "limit", limit), *have = section_at(a->have, "limit", limit);

    return want && !json_equal(json_object_get(want, "rules"), json_object_get(have, "rules"));
}

/* True when a limit goes by a path, and will by another one. Of two such limits of a type the first that is changed would be refused. */
static bool changes_path(const struct applying *a, const char *limit)
{
    const json_t *want = section_at(a->want, "limit", limit), *have = section_at(a->have, "limit", limit);
    const char *to = strstr(json_text_of(want, "rules"), ",by="),
               *from = strstr(json_text_of(have, "rules"), ",by=");

    size_t len = to ? strcspn(to + 1, ", ") : 0;

    return to && from && (strcspn(from + 1, ", ") != len || strncmp(to + 1, from + 1, len) != 0);
}

/* What a type will have; NULL: nothing. */
static const char *after(const struct applying *a, const char *type, const char *name)
{
    const json_t *want = section_at(a->want, "type", type), *have = section_at(a->have, "type", type);
    const char *value = json_string_value(json_object_get(want, name));

    return value || a->prune ? value : json_string_value(json_object_get(have, name));
}

/* The stored form of what a limit will have; "": what it has. */
static int rules_after(const struct applying *a, const char *limit, char out[RULE_SET_TEXT_SIZE])
{
    const char *words[RULES_MAX + 1],
        *rules = json_string_value(json_object_get(section_at(a->want, "limit", limit), "rules"));
    char copy[RULE_SET_TEXT_SIZE], *rest = copy;
    struct rule_set set;
    size_t count = 0;

    *out = '\0';
    if (!rules)
        return 0;
    snprintf(copy, sizeof copy, "%s", rules);
    for (char *word; count < RULES_MAX && (word = strsep(&rest, " "));)
        words[count++] = word;
    if (rule_set_parse(words, count, &set, &a->cli->error) < 0)
        return a->cli->error.status;
    rule_set_write(&set, out);
    return 0;
}

/* Adds a line of the file, where a section of it has that name. */
static int say_where(const struct applying *a, const char *kind, const char *title)
{
    struct error was = a->cli->error;
    char place[CONFIG_PLACE_SIZE];

    for (size_t i = 0; i < a->cli->config.count; i++) {
        const struct setting *s = &a->cli->config.at[i];

        if (strcmp(s->section, kind) == 0 && strcmp(s->title, title) == 0)
            return error_set(&a->cli->error, was.status, "%.300s: %s", config_place(s, place), was.text);
    }
    return was.status;
}

static int check_type(const struct applying *a, const char *type)
{
    char stored[LIMITS_MOST][RULE_SET_TEXT_SIZE], copy[LIMITS_MOST * LIMIT_NAME_SIZE], *rest = copy;
    const char *limits[LIMITS_MOST], *rules[LIMITS_MOST], *use = after(a, type, "use"),
                                                          *cost = after(a, type, "cost");
    bool changes = use != json_string_value(json_object_get(section_at(a->have, "type", type), "use")) ||
                   section_at(a->want, "type", type);
    size_t count = 0, moved = 0;

    snprintf(copy, sizeof copy, "%s%s%s", type, use ? " " : "", use ? use : "");
    for (char *word; count < LIMITS_MOST && (word = strsep(&rest, " ")); count++) {
        bool own = count == 0,
             stays = section_at(a->want, "limit", word) || (!a->prune && section_at(a->have, "limit", word));

        if (!own && !stays)
            return error_set(&a->cli->error, WEIR_ENOTFOUND,
                             "type %s: there %s no limit %s; add [limit %s] to the file", type,
                             a->prune ? "will be" : "is", word, word),
                   say_where(a, "type", type);
        limits[count] = word;
        rules[count] = stored[count];
        changes |= changes_rules(a, word);
        moved += changes_path(a, word);
        if (rules_after(a, word, stored[count]) < 0)
            return say_where(a, "limit", word);
    }
    if (moved > 1)
        return error_set(&a->cli->error, WEIR_EINPUT,
                         "type %s: two of its limits would go by another path at once; leave one out of its "
                         "use first",
                         type),
               say_where(a, "type", type);
    if (!changes || rate_fits(a->w, type, cost ? cost : "1", limits, rules, count) == 0)
        return 0;
    cli_failed(a->cli, a->w);
    return say_where(a, "type", type);
}

/* True when the limit tells jobs apart by a key, which weights and pauses of keys need. */
static bool has_keys(const struct applying *a, const char *limit)
{
    const json_t *want = json_object_get(section_at(a->want, "limit", limit), "rules");
    const json_t *rules = want ? want : json_object_get(section_at(a->have, "limit", limit), "rules");

    return rules && strstr(json_string_value(rules), ",by=");
}

static int check_change(const struct applying *a, const json_t *change)
{
    const char *section = json_text_of(change, "section"), *name = json_text_of(change, "name"), *rest = "";
    const char *value = json_string_value(json_object_get(change, "value")), *dash = strchr(name, '-');
    struct error *e = &a->cli->error;
    size_t reason_len = 0;
    int64_t for_us = 0;
    int status = 0;

    if (value && (dash || strcmp(name, "weight") == 0) && section_is(section, "limit") &&
        !has_keys(a, section_title(section)))
        status = error_set(e, WEIR_EINPUT,
                           "[%s] %s: it has no keys; set a rule with ,by=PATH, as in 10/s,by=args.customer",
                           section, name);
    if (status == 0 && strncmp(name, "pause", 5) == 0 &&
        section_read_pause(value, a->now_us, &for_us, &rest) && for_us > RATE_PAUSE_LONGEST_US)
        status = error_set(e, WEIR_EINPUT, "[%s] %s = %s: more than ten years; write endless", section, name,
                           value);
    if (strcmp(name, "pause-key") == 0)
        section_paused_key(rest, &reason_len);
    else if (!dash)
        reason_len = strlen(rest);
    if (status == 0 && reason_len > REASON_MOST)
        status = error_set(e, WEIR_EINPUT, "[%s] %s: a reason of more than %d bytes; write less", section,
                           name, REASON_MOST);
    return status < 0 ? say_where(a, strndupa(section, strcspn(section, " ")), section_title(section)) : 0;
}

/* Refuses another path for a limit of which keys keep rules of their own: those would be of another kind of keys. */
static int check_keys(const struct applying *a, const char *limit)
{
    const json_t *want = section_at(a->want, "limit", limit), *have = section_at(a->have, "limit", limit);
    const char *rules = json_string_value(json_object_get(want, "rules"));
    bool goes = rules && (changes_path(a, limit) || !strstr(rules, ",by="));
    size_t keys = json_array_size(json_object_get(have, "key-rules")),
           kept = json_array_size(json_object_get(want, "key-rules"));

    if (!goes || keys == 0 || (a->prune && kept == 0))
        return 0;
    return error_set(
               &a->cli->error, WEIR_EINPUT,
               "limit %s: keys that have rules of their own: %zu, and it would go by another path; apply it "
               "without them and with --prune first",
               limit, keys),
           say_where(a, "limit", limit);
}

int apply_check(const struct applying *a)
{
    const json_t *const states[] = {a->want, a->have};
    const char *section;
    json_t *value;
    size_t k;

    json_array_foreach(a->changes, k, value)
        if (check_change(a, value) < 0)
            return a->cli->error.status;
    for (size_t i = 0; i < 2; i++)
        json_object_foreach((json_t *)states[i], section, value) {
            bool limit = section_is(section, "limit") && i == 0;

            if (limit && !json_object_get(value, "rules") && !json_object_get(a->have, section))
                return error_set(&a->cli->error, WEIR_ECONFIG,
                                 "[%s]: there is no such limit yet; give its rules", section),
                       say_where(a, "limit", section_title(section));
            if (limit && check_keys(a, section_title(section)) < 0)
                return a->cli->error.status;
            if ((limit || section_is(section, "type")) && check_type(a, section_title(section)) < 0)
                return a->cli->error.status;
        }
    return 0;
}
