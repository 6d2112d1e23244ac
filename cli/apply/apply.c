#include "cli/apply/apply.h"

#include <string.h>

#include "cli/commands.h"
#include "cli/document/json.h"

#define WOULD_CHANGE (-2) /* the exit code of --dry-run, negated */

static void print_changes(struct cli *cli, const json_t *changes, bool dry)
{
    size_t count = json_array_size(changes), i;
    const json_t *row;
    char phrase[PHRASE_SIZE];

    json_array_foreach((json_t *)changes, i, row) {
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
    int status = sections_of_redis(a->cli, a->w, &a->have, &a->now_us);

    if (status < 0)
        return status;
    a->changes = json_array();
    apply_compare(a);
    if (apply_check(a) < 0)
        return a->cli->error.status;
    if (!dry && apply_write(a) < 0)
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
        return cli_usage(cli, "apply: takes one FILE, or none for weir.conf");
    a.w = cli_client(cli);
    if (!a.w)
        return cli->error.status;
    status = read_file(cli, argv[0]);
    if (status == 0)
        status = sections_of_file(cli, &a.want);
    if (status == 0 && a.prune && argv[0] && json_object_size(a.want) == 0) /* of a weir export that failed */
        status = error_set(&cli->error, WEIR_EINPUT,
                           "apply --prune: %.300s has no limit, type, queue or schedule, and all would be "
                           "removed; see to it",
                           strcmp(argv[0], "-") == 0 ? "standard input" : argv[0]);
    if (status == 0)
        status = apply(&a, dry);
    json_decref(a.want);
    json_decref(a.have);
    json_decref(a.changes);
    weir_free(a.w);
    return status;
}

const struct command command_apply = {.name = "apply", .run = run_apply};
