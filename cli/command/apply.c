/* weir apply: makes limits, types, queues and schedules in Redis what a file says; weir export: writes what is there as such a file. Both compare texts in
 * their normal form (state.h). All is read and checked before the first change; then what frees a type comes before what binds it, so that no
 * change in between is refused, and who runs it again finds only what is left to do. */
#include <stdlib.h>
#include <string.h>

#include "cli/command/state.h"
#include "cli/commands.h"
#include "cli/document/json.h"
#include "producer/schedule.h"
#include "queue/limits/export.h"
#include "queue/limits/rate.h"
#include "queue/limits/type.h"
#include "queue/queues/queues.h"

#define WOULD_CHANGE (-2)                              /* the exit code of --dry-run, negated */
#define PAUSE_LONGEST_US (3650 * INT64_C(86400000000)) /* as the scripts of pauses have it */
#define REASON_MOST 200                                /* bytes, as queue/state/reasons.lua has it */
#define LIMITS_MOST (RATE_USES_MOST + 1)

struct applying {
    struct cli *cli;
    struct weir *w;
    json_t *want, *have;
    json_t *changes; /* {"section", "name", "value", "was"}: value null: it goes; was null: it is new */
    int64_t now_us;
    bool prune;
    const char *scheduled; /* the section of the schedule that was added last */
};

static bool is_of(const char *section, const char *kind)
{
    return strncmp(section, kind, strlen(kind)) == 0 && section[strlen(kind)] == ' ';
}

static const char *title_of(const char *section)
{
    return strchr(section, ' ') + 1;
}

/* ---- What is to change */

static void add_change(struct applying *a, const char *section, const char *name, const json_t *value,
                       const json_t *was)
{
    json_array_append_new(a->changes, json_pack("{s:s, s:s, s:O?, s:O?}", "section", section, "name", name,
                                                "value", value, "was", was));
}

/* Returns the key in "3 acme". */
static const char *key_of(const json_t *entry)
{
    return title_of(json_string_value(entry));
}

/* Finds the entry of a list that has the key; NULL: there is none. */
static const json_t *find_entry(const json_t *list, const char *key)
{
    const json_t *entry;
    size_t i;

    json_array_foreach((json_t *)list, i, entry)
    {
        if (strcmp(key_of(entry), key) == 0)
            return entry;
    }
    return NULL;
}

/* A pause that is over says nothing; "no" ends one. */
static bool differs(const struct applying *a, const char *name, const json_t *want, const json_t *have)
{
    const char *rest;
    int64_t for_us;

    if (strncmp(name, "pause", 5) == 0 &&
        section_read_pause(json_string_value(want), a->now_us, &for_us, &rest) && for_us == RATE_RESUME)
        return have && strncmp(json_string_value(want), "no", 2) == 0;
    return !json_equal(want, have);
}

static void compare_lists(struct applying *a, const char *section, const char *name, const json_t *want,
                          const json_t *have)
{
    const json_t *entry;
    size_t i;

    json_array_foreach((json_t *)want, i, entry)
    {
        const json_t *there = find_entry(have, key_of(entry));

        if (differs(a, name, entry, there))
            add_change(a, section, name, entry, there);
    }
    json_array_foreach((json_t *)have, i, entry)
    {
        if (a->prune && strcmp(name, "weight") == 0 && !find_entry(want, key_of(entry)))
            add_change(a, section, name, NULL, entry);
    }
}

/* A schedule is replaced as a whole, so what it no longer has is a change too; of others only what stands in the file, or what is pruned. */
static void compare_section(struct applying *a, const char *section, const json_t *want, const json_t *have)
{
    bool whole = a->prune || (want && is_of(section, "schedule"));
    json_t *one = json_string("1"); /* what a job costs where nobody has said it */
    json_t *value, *was;
    const char *name;

    json_object_foreach((json_t *)want, name, value)
    {
        was = json_object_get(have, name);
        was = !was && is_of(section, "type") && strcmp(name, "cost") == 0 ? one : was;
        if (json_is_array(value))
            compare_lists(a, section, name, value, was);
        else if (differs(a, name, value, was))
            add_change(a, section, name, value, was);
    }
    json_object_foreach((json_t *)have, name, was)
    {
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

static void compare(struct applying *a)
{
    const char *section;
    json_t *value;

    json_object_foreach(a->want, section, value)
    {
        compare_section(a, section, value, json_object_get(a->have, section));
    }
    json_object_foreach(a->have, section, value)
    {
        if (a->prune && !json_object_get(a->want, section))
            compare_section(a, section, NULL, value);
    }
}

/* ---- Checked */

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
    if (!changes || rate_fits(a->w, type, cost ? strtoll(cost, NULL, 10) : 1, limits, rules, count) == 0)
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
    int64_t for_us = 0;
    int status = 0;

    if (value && (dash || strcmp(name, "weight") == 0) && is_of(section, "limit") &&
        !has_keys(a, title_of(section)))
        status = error_set(e, WEIR_EINPUT,
                           "[%s] %s: it has no keys; set a rule with ,by=PATH, as in 10/s,by=args.customer",
                           section, name);
    if (status == 0 && strncmp(name, "pause", 5) == 0 &&
        section_read_pause(value, a->now_us, &for_us, &rest) && for_us > PAUSE_LONGEST_US)
        status = error_set(e, WEIR_EINPUT, "[%s] %s = %s: more than ten years; write endless", section, name,
                           value);
    if (status == 0 && !dash && strlen(rest) > REASON_MOST)
        status = error_set(e, WEIR_EINPUT, "[%s] %s: a reason of more than %d bytes; write less", section,
                           name, REASON_MOST);
    return status < 0 ? say_where(a, strndupa(section, strcspn(section, " ")), title_of(section)) : 0;
}

static int check_all(const struct applying *a)
{
    const json_t *const states[] = {a->want, a->have};
    const char *section;
    json_t *value;
    size_t k;

    json_array_foreach(a->changes, k, value)
    {
        if (check_change(a, value) < 0)
            return a->cli->error.status;
    }
    for (size_t i = 0; i < 2; i++)
        json_object_foreach((json_t *)states[i], section, value)
        {
            bool limit = is_of(section, "limit") && i == 0;

            if (limit && !json_object_get(value, "rules") && !json_object_get(a->have, section))
                return error_set(&a->cli->error, WEIR_ECONFIG,
                                 "[%s]: there is no such limit yet; give its rules", section),
                       say_where(a, "limit", title_of(section));
            if ((limit || is_of(section, "type")) && check_type(a, title_of(section)) < 0)
                return a->cli->error.status;
        }
    return 0;
}

/* ---- Written */

enum phase { FREE, FEWER, RULES, BIND, KEYS, SCHEDULES, PAUSES, REMOVE, PHASES };

/* The words of one text that another does not have. */
static void words_less(const char *text, const char *other, char out[LIMITS_MOST * LIMIT_NAME_SIZE])
{
    size_t len = 0;

    *out = '\0';
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        const char *at = other;

        n = strcspn(text, " ");
        while (*at && !(strcspn(at, " ") == n && strncmp(at, text, n) == 0))
            at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
        if (!*at)
            len += (size_t)snprintf(out + len, LIMITS_MOST * LIMIT_NAME_SIZE - len, "%.*s ", (int)n, text);
    }
}

static int count_words(const char *text)
{
    int count = 0;

    for (; *text; text += strcspn(text, " ") + (text[strcspn(text, " ")] == ' '))
        count++;
    return count;
}

/* Sets or removes the rules of a limit. Limits that get fewer rules come first, since a type has at most so many in between too. */
static int write_limit(struct applying *a, const char *name, const json_t *row, const char *rules,
                       enum phase phase)
{
    if (rules && phase == (count_words(rules) < count_words(json_text_of(row, "was")) ? FEWER : RULES))
        return rate_set(a->w, name, rules, false, NULL);
    if (phase == REMOVE && json_is_null(json_object_get(row, "value")))
        return rate_remove(a->w, name, false);
    return 0;
}

static int write_use(struct applying *a, const char *type, const char *value, const char *was,
                     enum phase phase)
{
    char words[LIMITS_MOST * LIMIT_NAME_SIZE];

    words_less(phase == FREE ? was : value, phase == FREE ? value : was, words);
    return *words && (phase == FREE || phase == BIND) ? rate_use(a->w, type, phase == BIND, words, 0) : 0;
}

static int write_cost(struct applying *a, const char *type, const char *value, const char *was,
                      enum phase phase)
{
    long long cost = *value ? strtoll(value, NULL, 10) : 1, before = *was ? strtoll(was, NULL, 10) : 1;

    return phase == (cost < before ? FREE : BIND) ? rate_use(a->w, type, true, "", cost) : 0;
}

static int write_weight(struct applying *a, const char *limit, const char *value, const char *was)
{
    const char *key = title_of(*value ? value : was);

    return rate_weigh(a->w, limit, key, key, *value ? atoi(value) : 1);
}

static int write_schedule(struct applying *a, const char *section, bool stays)
{
    const json_t *want = json_object_get(a->want, section);
    struct schedule s;
    bool replaced;
    int status;

    if (a->scheduled && strcmp(a->scheduled, section) == 0)
        return 0;
    a->scheduled = section;
    if (!stays)
        return weir_schedule_remove(a->w, title_of(section));
    status = section_schedule(title_of(section), want, &s, &a->w->error);
    if (status == 0)
        status = schedule_store(a->w, title_of(section), &s, &replaced);
    schedule_free(&s);
    return status;
}

static int write_pause(struct applying *a, const char *section, const char *name, const char *value)
{
    static const struct {
        const char *kind;
        int (*pause)(struct weir *w, const char *name, const struct pausing *how, json_t **answer);
    } kinds[] = {{"type", type_pause}, {"queue", queue_pause}, {"schedule", schedule_pause}};
    const char *rest = "", *title = title_of(section);
    struct pausing how = {.create = true};
    json_t *answer = NULL;
    int status = 0;

    if (!section_read_pause(value, a->now_us, &how.for_us, &rest))
        return 0;
    how.reason = *rest && strcmp(name, "pause") == 0 ? rest : NULL;
    if (is_of(section, "limit"))
        status = rate_pause(a->w, title, strcmp(name, "pause") == 0 ? NULL : rest, &how, &answer);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is_of(section, kinds[i].kind))
            status = kinds[i].pause(a->w, title, &how, &answer);
    json_decref(answer);
    return status;
}

static int write_row(struct applying *a, const json_t *row, enum phase phase)
{
    const char *section = json_text_of(row, "section"), *name = json_text_of(row, "name"),
               *title = title_of(section);
    const char *value = json_text_of(row, "value"), *was = json_text_of(row, "was");

    if (strncmp(name, "pause", 5) == 0)
        return phase == PAUSES ? write_pause(a, section, name, value) : 0;
    if (is_of(section, "schedule"))
        return phase == SCHEDULES ? write_schedule(a, section, json_object_get(a->want, section)) : 0;
    if (strcmp(name, "weight") == 0)
        return phase == (*value ? KEYS : FREE) ? write_weight(a, title, value, was) : 0;
    if (strcmp(name, "rules") == 0)
        return write_limit(a, title, row, json_string_value(json_object_get(row, "value")), phase);
    if (strcmp(name, "use") == 0)
        return write_use(a, title, value, was, phase);
    return write_cost(a, title, value, was, phase);
}

static int write_all(struct applying *a)
{
    size_t i;
    json_t *row;

    for (int phase = 0; phase < PHASES; phase++)
        json_array_foreach(a->changes, i, row)
        {
            if (write_row(a, row, (enum phase)phase) < 0) {
                return cli_failed(a->cli, a->w);
            }
        }
    return 0;
}

/* ---- Printed */

static void print_changes(struct cli *cli, const json_t *changes, bool dry)
{
    size_t count = json_array_size(changes), i;
    const json_t *row;
    char phrase[PHRASE_SIZE];

    json_array_foreach((json_t *)changes, i, row)
    {
        const char *value = json_string_value(json_object_get(row, "value")),
                   *was = json_string_value(json_object_get(row, "was"));

        if (cli->json && json_print(cli, json_incref((json_t *)row)) == 0)
            continue;
        output("[%s] %s%s%s%s%s\n", json_text_of(row, "section"), json_text_of(row, "name"),
               value ? " = " : ": removed", value ? value : "", was ? "; was " : "", was ? was : "");
    }
    fflush(stdout);
    if (!cli->json)
        output_to(stderr,
                  count == 0 ? "nothing to change\n"
                  : dry      ? "%s to make; nothing was changed\n"
                             : "%s made\n",
                  counted((int64_t)count, "change", phrase));
}

static int apply(struct applying *a, bool dry)
{
    int status = state_of_redis(a->cli, a->w, &a->have, &a->now_us);

    if (status < 0)
        return status;
    a->changes = json_array();
    compare(a);
    if (check_all(a) < 0)
        return a->cli->error.status;
    if (!dry && write_all(a) < 0)
        return a->cli->error.status;
    print_changes(a->cli, a->changes, dry);
    return dry && json_array_size(a->changes) > 0 ? WOULD_CHANGE : 0;
}

/* Reads the sections of the file, instead of those of weir.conf. Where there is neither, --prune would remove everything. */
static int read_file(struct cli *cli, const char *path)
{
    if (!path && (cli->config.files[0].text || cli->config.files[1].text))
        return 0;
    if (!path)
        return error_set(&cli->error, WEIR_ECONFIG, "apply: there is no weir.conf; name a FILE");
    config_free(&cli->config);
    return config_load(&cli->config, strcmp(path, "-") == 0 ? "/dev/stdin" : path, &cli->error);
}

static int run_apply(struct cli *cli, int argc, char **argv)
{
    bool dry = false;
    struct applying a = {.cli = cli};
    const struct flag flags[] = {
        {"dry-run", 0, FLAG_BOOL, NULL, "show what would change; exit 2 where something would", &dry},
        {"prune", 0, FLAG_BOOL, NULL, "remove what is not in the file", &a.prune},
        {.name = NULL}};
    int operands, status;

    if (cli_parse(cli, flags, argc, argv, &operands) < 0)
        return cli->error.status;
    if (operands > 1)
        return error_set(&cli->error, WEIR_EUSAGE, "apply: takes one FILE, or none for weir.conf");
    a.w = cli_client(cli);
    if (!a.w)
        return cli->error.status;
    status = read_file(cli, argv[0]);
    if (status == 0)
        status = state_of_file(cli, &a.want);
    if (status == 0)
        status = apply(&a, dry);
    json_decref(a.want);
    json_decref(a.have);
    json_decref(a.changes);
    weir_free(a.w);
    return status;
}

const struct command command_apply = {.name = "apply", .run = run_apply};

/* ---- weir export */

static void print_value(struct cli *cli, const char *section, const char *name, const char *value)
{
    if (!cli->json)
        output("%s = %s\n", name, value);
    else if (json_print(cli, json_pack("{s:s, s:s, s:s}", "section", section, "name", name, "value", value)) <
             0)
        clearerr(stdout);
}

static void print_section(struct cli *cli, const char *section, const json_t *values)
{
    struct section_values v;
    struct flag flags[SECTION_FLAGS];
    const char *kind;
    json_t *entry;
    size_t i, k = 0;

    while ((kind = section_flags(k, &v, flags)) && !is_of(section, kind))
        k++;
    if (!cli->json)
        output("[%s]\n", section);
    for (const struct flag *f = flags; f->name; f++) {
        json_t *value = json_object_get(values, f->name);

        if (json_is_string(value))
            print_value(cli, section, f->name, json_string_value(value));
        json_array_foreach(value, i, entry)
        {
            print_value(cli, section, f->name, json_string_value(entry));
        }
    }
    if (!cli->json)
        output("\n");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int run_export(struct cli *cli, int argc, char **argv)
{
    json_t *state, *value;
    const char **names, *section;
    struct weir *w;
    int64_t now_us;
    size_t count = 0;
    int status;

    if (cli_parse_alone(cli, NULL, argc, argv) < 0 || !(w = cli_client(cli)))
        return cli->error.status;
    status = state_of_redis(cli, w, &state, &now_us);
    weir_free(w);
    if (status < 0)
        return status;
    names = calloc(json_object_size(state) + 1, sizeof *names);
    json_object_foreach(state, section, value)
    {
        if (names)
            names[count++] = section;
    }
    if (names)
        qsort(names, count, sizeof *names, by_name);
    for (size_t i = 0; i < count; i++)
        print_section(cli, names[i], json_object_get(state, names[i]));
    if (!names)
        status = error_no_memory(&cli->error, "export");
    free(names);
    json_decref(state);
    return status;
}

const struct command command_export = {.name = "export", .run = run_export};
