#include <string.h>

#include "cli/apply/apply.h"

static void add_change(struct applying *a, const char *section, const char *name, const json_t *value,
                       const json_t *was)
{
    json_array_append_new(a->changes, json_pack("{s:s, s:s, s:O?, s:O?}", "section", section, "name", name,
                                                "value", value, "was", was));
}

/* Finds the entry of a list that has the key of another one; NULL: there is none. */
static const json_t *find_entry(const json_t *list, const char *name, const json_t *of)
{
    const char *key = section_key(name, json_string_value(of));
    const json_t *entry;
    size_t i;

    json_array_foreach((json_t *)list, i, entry)
        if (strcmp(section_key(name, json_string_value(entry)), key) == 0)
            return entry;
    return NULL;
}

/* True when that is a time which has passed, up to which a key would have rules of its own. */
static bool is_over(const char *name, const char *value, int64_t now_us)
{
    char *copy = strdupa(value);
    struct key_change change;
    struct error ignored;

    return strcmp(name, "key-rules") == 0 && section_read_key_rules(copy, now_us, &change, &ignored) == 0 &&
           change.for_us == RATE_RESUME;
}

/* A pause that is over says nothing; "no" ends one. */
static bool differs(const struct applying *a, const char *name, const json_t *want, const json_t *have)
{
    const char *rest;
    int64_t for_us;

    if (strncmp(name, "pause", 5) == 0 &&
        section_read_pause(json_string_value(want), a->now_us, &for_us, &rest) && for_us == RATE_RESUME)
        return have && strncmp(json_string_value(want), "no", 2) == 0;
    if (is_over(name, json_string_value(want), a->now_us))
        return false;
    return !json_equal(want, have);
}

static void compare_lists(struct applying *a, const char *section, const char *name, const json_t *want,
                          const json_t *have)
{
    const json_t *entry;
    size_t i;

    json_array_foreach((json_t *)want, i, entry) {
        const json_t *there = find_entry(have, name, entry);

        if (differs(a, name, entry, there))
            add_change(a, section, name, entry, there);
    }
    json_array_foreach((json_t *)have, i, entry)
        if (a->prune && strcmp(name, "pause-key") != 0 && !find_entry(want, name, entry))
            add_change(a, section, name, NULL, entry);
}

/* A schedule is replaced as a whole, so what it no longer has is a change too; of others only what stands in the file, or what is pruned. */
static void compare_section(struct applying *a, const char *section, const json_t *want, const json_t *have)
{
    bool whole = a->prune || (want && section_is(section, "schedule"));
    json_t *one = json_string("1"); /* what a job costs where nobody has said it */
    json_t *value, *was;
    const char *name;

    json_object_foreach((json_t *)want, name, value) {
        was = json_object_get(have, name);
        was = !was && section_is(section, "type") && strcmp(name, "cost") == 0 ? one : was;
        if (json_is_array(value))
            compare_lists(a, section, name, value, was);
        else if (differs(a, name, value, was))
            add_change(a, section, name, value, was);
    }
    json_object_foreach((json_t *)have, name, was) {
        if (!whole || json_object_get(want, name) || strncmp(name, "pause", 5) == 0 ||
            (strcmp(name, "cost") == 0 && json_equal(was, one)))
            continue;
        if (json_is_array(was))
            compare_lists(a, section, name, NULL, was);
        else
            add_change(a, section, name, NULL, was);
    }
    json_decref(one);
}

void apply_compare(struct applying *a)
{
    const char *section;
    json_t *value;

    json_object_foreach(a->want, section, value)
        compare_section(a, section, value, json_object_get(a->have, section));
    json_object_foreach(a->have, section, value)
        if (a->prune && !json_object_get(a->want, section))
            compare_section(a, section, NULL, value);
}
