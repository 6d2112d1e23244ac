/* weir export: limits, types, queues and schedules as sections of weir.conf, which weir apply reads. */
#include <stdlib.h>
#include <string.h>

#include "cli/apply/sections.h"
#include "cli/commands.h"
#include "cli/document/json.h"

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
    const struct section_kind *kind = section_kinds;
    json_t *entry;
    size_t i;

    while (kind->name && !section_is(section, kind->name))
        kind++;
    if (!cli->json)
        output("[%s]\n", section);
    for (const struct flag *f = kind->flags; f->name; f++) {
        json_t *value = json_object_get(values, f->name);

        if (json_is_string(value))
            print_value(cli, section, f->name, json_string_value(value));
        json_array_foreach(value, i, entry)
            print_value(cli, section, f->name, json_string_value(entry));
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
    status = sections_of_redis(cli, w, &state, &now_us);
    weir_free(w);
    if (status < 0)
        return status;
    names = calloc(json_object_size(state) + 1, sizeof *names);
    json_object_foreach(state, section, value)
        if (names)
            names[count++] = section;
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
