/* The values of flags, from the command line and from files: which a file may have, how one is read, and in which line a wrong one stands. */
#include "cli/cli.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/likely.h"
#include "throttle/cost_words.h"
#include "throttle/rule.h"

/* ---- One value */

static int set_int(struct cli *cli, const char *where, const struct flag *f, const char *text)
{
    const char *at = text ? text + (*text == '-') : NULL;
    int64_t value;

    assert(text);
    if (!count_read(&at, INT64_MAX / 100, &value) || *at)
        return cli_usage(cli, "%s --%s %.60s: not a whole number; write --%s 10", where, f->name, text,
                         f->name);
    *(long long *)f->target = *text == '-' ? -value : value;
    return 0;
}

/* Its text is kept, as the library takes it. */
static int set_cost(struct cli *cli, const char *where, const struct flag *f, const char *text)
{
    struct job_cost cost;
    struct error why;

    if (cost_read(text, f->kind == FLAG_COST ? COST_TAKEN : COST_TRUE, &cost, &why) < 0)
        return cli_usage(cli, "%s --%s %.60s: %s", where, f->name, text, why.text);
    *(const char **)f->target = text;
    return 0;
}

static int set_duration(struct cli *cli, const char *where, const struct flag *f, const char *text)
{
    struct error why;

    if ((f->kind == FLAG_AGO ? ago_parse(text, 1, clock_wall_us(), f->target, &why)
                             : duration_parse(text, f->target, &why)) < 0)
        return cli_usage(cli, "%s --%s: %s", where, f->name, why.text);
    return 0;
}

static int add_value(struct cli *cli, const char *where, const struct flag *f, const char *text)
{
    struct flag_values *values = f->target;

    if (!values) /* whoever reads the section takes them from there */
        return 0;
    if (values->count == FLAG_VALUES_MAX)
        return cli_usage(cli, "%s --%s: given more than %d times; give fewer", where, f->name,
                         FLAG_VALUES_MAX);
    values->at[values->count++] = text;
    return 0;
}

int cli_set_flag(struct cli *cli, const char *where, const struct flag *f, const char *text)
{
    switch (f->kind) {
    case FLAG_BOOL:
        *(bool *)f->target = true;
        return 0;
    case FLAG_TEXT:
        *(const char **)f->target = text;
        return 0;
    case FLAG_OPTIONAL_TEXT:
        *(const char **)f->target = text ? text : "";
        return 0;
    case FLAG_INT:
        return set_int(cli, where, f, text);
    case FLAG_COST:
    case FLAG_TRUE_COST:
        return set_cost(cli, where, f, text);
    case FLAG_DURATION:
    case FLAG_AGO:
        return set_duration(cli, where, f, text);
    case FLAG_REPEATED:
        return add_value(cli, where, f, text);
    }
    return 0;
}

bool cli_gave(const struct cli *cli, const char *flag)
{
    for (int i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i], flag) == 0)
            return true;
    return false;
}

/* ---- Of a file */

/* Says "worker --executors 0: ..." as "/etc/weir/weir.conf:3: executors = 0: ..." */
static void say_line(struct error *e, const struct setting *s, const char *command)
{
    struct error was = *e;
    size_t name_len = strlen(s->name), len;
    const char *rest = was.text + strlen(command) + 1, *flag;
    char place[CONFIG_PLACE_SIZE], *out = e->text, *end = e->text + sizeof e->text;

    out += snprintf(out, sizeof e->text, "%.300s: ", config_place(s, place));
    for (; (flag = strstr(rest, "--")) && out < end; rest = flag + 2 + len) {
        len = strncmp(flag + 2, s->name, name_len) == 0 ? name_len : 0;
        out += snprintf(out, (size_t)(end - out), "%.*s%s%s", (int)(flag - rest), rest, len ? s->name : "--",
                        len && flag[2 + len] == ' ' ? " =" : "");
    }
    if (out < end)
        snprintf(out, (size_t)(end - out), "%s", rest);
    e->status = WEIR_ECONFIG;
}

/* What the library says of the values that the flags have handed to it. */
static const char *const said_of[][2] = {
    {"namespace '", "namespace"},  {"worker: '", "queues"},      {"worker: queue", "queues"},
    {"worker: weights", "queues"}, {"worker: a lease", "lease"}, {"worker: a longest pause", "pause-most"}};

static const char *name_said_of(const char *text)
{
    for (size_t i = 0; i < sizeof said_of / sizeof *said_of; i++)
        if (strncmp(text, said_of[i][0], strlen(said_of[i][0])) == 0)
            return said_of[i][1];
    return strncmp(text, "worker: ", 8) == 0 && strstr(text, " executors; use") ? "executors" : NULL;
}

/* True when the error is about that name of the command, or about the handler of that section. */
static bool is_about(const struct cli *cli, const struct setting *s)
{
    const char *text = cli->error.text, *at;
    size_t len = strlen(cli->command->name);

    if (strncmp(text, cli->command->name, len) == 0 && strncmp(text + len, " --", 3) == 0)
        return strncmp(text + len + 3, s->name, strlen(s->name)) == 0 &&
               !isalnum((unsigned char)text[len + 3 + strlen(s->name)]) &&
               text[len + 3 + strlen(s->name)] != '-';
    if (name_said_of(text))
        return strcmp(s->name, name_said_of(text)) == 0;
    if (strncmp(text, "worker: type ", 13) == 0)
        return strncmp(text + 13, s->title, strlen(s->title)) == 0 && text[13 + strlen(s->title)] == ':';
    if (strncmp(text, "handler ", 8) != 0 || strcmp(s->section, "handler") != 0)
        return false;
    len = strcspn(text + 8, ":");
    at = strstr(s->title, strndupa(text + 8, len < 128 ? len : 128));
    return at && (at == s->title || at[-1] == ',') && (at[len] == ',' || !at[len]);
}

int cli_name_line(struct cli *cli, int status)
{

    for (size_t i = 0; i < cli->config.count; i++) {
        const struct setting *s = &cli->config.at[i];
        struct error was = cli->error;
        char place[CONFIG_PLACE_SIZE];

        if (!s->line || cli_gave(cli, s->name) || !is_about(cli, s))
            continue;
        if (strncmp(was.text + strlen(cli->command->name), " --", 3) == 0)
            say_line(&cli->error, s, cli->command->name);
        else
            error_set(&cli->error, WEIR_ECONFIG, "%.300s: %s", config_place(s, place), was.text);
        return cli->error.status;
    }
    return status;
}

bool cli_is_of_type(const struct flag *flag)
{
    return flag->value && strncmp(flag->value, "TYPE=", 5) == 0;
}

static int unknown_name(struct cli *cli, const struct flag *flags, const struct setting *s,
                        bool (*takes)(const struct flag *))
{
    const char *names[FLAGS_MAX + 1] = {NULL}, *likely;
    char place[CONFIG_PLACE_SIZE], where[160] = "before the first section";
    int count = 0;

    for (; flags->name; flags++)
        if (!takes || takes(flags))
            names[count++] = flags->name;
    likely = likely_word(s->name, names);
    if (*s->section)
        snprintf(where, sizeof where, "in [%s%s%.100s]", s->section, *s->title ? " " : "", s->title);
    return error_set(&cli->error, WEIR_ECONFIG, "%.300s: %.60s: unknown name %s; %s%s%s",
                     config_place(s, place), s->name, where,
                     likely ? "did you mean " : "weir help weir.conf lists them", likely ? likely : "",
                     likely ? "?" : "");
}

/* Checks that a name which has one value, as all of a type have, is said once in its section. */
static int check_once(struct cli *cli, const struct flag *f, const struct setting *s)
{
    char place[CONFIG_PLACE_SIZE];

    for (const struct setting *other = cli->config.at; other < s; other++)
        if ((f->kind != FLAG_REPEATED || cli_is_of_type(f)) && other->file == s->file &&
            strcmp(other->section, s->section) == 0 && strcmp(other->title, s->title) == 0 &&
            strcmp(other->name, s->name) == 0)
            return error_set(&cli->error, WEIR_ECONFIG, "%.300s: %.60s: stands in line %d too; leave one out",
                             config_place(s, place), s->name, other->line);
    return 0;
}

static int set_from_file(struct cli *cli, const struct flag *f, const struct setting *s)
{
    bool no = strcmp(s->value, "no") == 0;
    const char *text = cli_is_of_type(f) ? config_join(&cli->config, s->title, s->value) : s->value;
    char place[CONFIG_PLACE_SIZE];

    if (!text)
        return error_no_memory(&cli->error, cli->command->name);
    if (f->kind == FLAG_BOOL && !no && strcmp(s->value, "yes") != 0)
        return error_set(&cli->error, WEIR_ECONFIG, "%.300s: %s = %.60s: must be yes or no",
                         config_place(s, place), s->name, s->value);
    if ((f->kind == FLAG_BOOL && no) || cli_set_flag(cli, cli->command->name, f, text) == 0)
        return 0;
    say_line(&cli->error, s, cli->command->name);
    return cli->error.status;
}

int cli_read_section(struct cli *cli, const struct flag *flags, const char *section, const char *title,
                     bool (*takes)(const struct flag *))
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < cli->config.count; i++) {
        const struct setting *s = &cli->config.at[i];
        const struct flag *f = flags;

        if (!s->line || strcmp(s->section, section) != 0 || strcmp(s->title, title) != 0)
            continue;
        while (f->name && (strcmp(f->name, s->name) != 0 || (takes && !takes(f))))
            f++;
        status = f->name ? check_once(cli, f, s) : unknown_name(cli, flags, s, takes);
        if (status == 0)
            status = set_from_file(cli, f, s);
    }
    return status;
}

bool cli_is_of_section(const struct flag *f)
{
    return strcmp(f->name, "wait") != 0 && strcmp(f->name, "yes") != 0 && !cli_is_of_type(f);
}

bool cli_is_of_all(const struct flag *f)
{
    return strcmp(f->name, "json") != 0 && strcmp(f->name, "help") != 0 && strcmp(f->name, "config") != 0;
}
