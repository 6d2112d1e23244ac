/* weir config: what holds, and who has said it: weir.conf, the environment, the command line, or nobody. */
#include <string.h>

#include "cli/apply/sections.h"
#include "cli/command/serve.h"
#include "cli/command/worker.h"
#include "cli/commands.h"
#include "cli/document/table.h"
#include "cli/help.h"
#include "cli/which_redis.h"
#include "view/text.h"

/* Holds what is being made, for the functions that hear of flags. */
static struct {
    struct cli *cli;
    json_t *rows;
} making;

static void add_row(const struct setting *s, const char *value, const char *from)
{
    char section[200], place[CONFIG_PLACE_SIZE], masked[MASKED_SIZE];

    snprintf(section, sizeof section, "%s%s%.150s", s->section, *s->title ? " " : "", s->title);
    if (value && strcmp(s->name, "redis") == 0) {
        redis_mask(value, masked);
        value = masked;
    }
    json_array_append_new(making.rows, json_pack("{s:s, s:s, s:o, s:o}", "section", section, "name", s->name,
                                                 "value", value ? text_word(value) : json_null(), "said_by",
                                                 text_word(from ? from : config_place(s, place))));
}

/* Finds what stands behind the word in "jobs at a time; default 10". false: the help names no default. */
static bool find_default(const char *help, char out[64])
{
    const char *at = strstr(help, "default");
    size_t len;

    if (!at)
        return false;
    at += strlen("default");
    at += strspn(at, ": \"");
    len = strcspn(at, ";\"");
    snprintf(out, 64, "%.*s", (int)len, at);
    return true;
}

static void add_flag(const char *section, const struct flag *f)
{
    const struct setting *said = config_find(&making.cli->config, section, f->name);
    char usual[64];

    if (said)
        add_row(said, said->value, NULL);
    else
        add_row(&(struct setting){.section = section, .title = "", .name = f->name},
                find_default(f->help, usual) ? usual : NULL, "default");
}

static void on_common_flags(const struct command *command, const struct help_flags *flags)
{
    (void)command;
    for (int i = flags->own; i < flags->count; i++)
        if (cli_is_of_all(flags->at[i]))
            add_flag("", flags->at[i]);
}

static void on_own_flags(const struct command *command, const struct help_flags *flags)
{
    if (flags->own > 0 && making.cli->error.status == 0 &&
        cli_read_section(making.cli, flags->at[0], command->name, "", cli_is_of_section) < 0)
        return;
    for (int i = 0; i < flags->own; i++)
        if (cli_is_of_section(flags->at[i]))
            add_flag(command->name, flags->at[i]);
}

/* What has a title stands in the order of the files. */
static void add_titled(const struct config *c)
{
    for (size_t i = 0; i < c->count; i++)
        if (*c->at[i].title)
            add_row(&c->at[i], c->at[i].value, NULL);
}

static int make_rows(struct cli *cli)
{
    struct worker_flags f;
    json_t *state = NULL;

    making.cli = cli;
    making.rows = json_array();
    cli_with_flags(&command_worker, on_common_flags);
    cli_with_flags(&command_worker, on_own_flags);
    cli_with_flags(&command_serve, on_own_flags);
    worker_flags_init(&f);
    if (cli->error.status == 0 && sections_of_file(cli, &state) == 0 &&
        cli_read_section(cli, f.table, "worker", "", cli_is_of_section) == 0 &&
        worker_flags_read_handlers(cli, &f) == 0 && worker_flags_check(cli, &f) == 0 &&
        worker_flags_try(cli, &f) == 0 && serve_flags_try(cli) == 0)
        add_titled(&cli->config);
    json_decref(state);
    return cli->error.status;
}

static const struct column columns[] = {
    COLUMN("section", "section"), COLUMN("name", "name"), COLUMN("value", "value"),
    COLUMN("said by", "said_by"), {.heading = NULL},
};

static int act(struct cli *cli, struct weir *w)
{
    (void)w;
    for (int i = 0; i < CONFIG_FILES_MOST; i++)
        if (cli->config.files[i].failed)
            output_to(stderr, "weir: %s: not read: %s\n", cli->config.files[i].path,
                      strerror(cli->config.files[i].failed));
    if (make_rows(cli) < 0) {
        json_decref(making.rows);
        return cli->error.status;
    }
    return table_list(cli, columns, making.rows, 0, "");
}

const struct command command_config = {.name = "config", .run = cli_run, .no_redis = true, .act = act};
