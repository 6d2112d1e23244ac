/* What the commands share: their actions, the client, its errors. */
#include "cli/cli.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print/terminal.h"
#include "cli/which_redis.h"
#include "core/likely.h"
#include "core/log/log.h"

#define ACTIONS_MOST 16           /* of one command */
#define MUCH_BYTES (32 * 1048576) /* of memory: the most that malloc takes */
#define PIECE_BYTES 65536         /* of output */

/* Lists names as "a, b and c". */
static void list_names(const char *const *names, char *out, size_t size)
{
    size_t len = 0;

    for (; *names && len < size; names++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", *names,
                                !names[1]   ? ""
                                : !names[2] ? " and "
                                            : ", ");
}

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = words; (at = strstr(at, word)); at += len)
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

bool actions_have(const struct actions *actions, const char *name, const char *flag)
{
    for (size_t i = 0; i < actions->count; i++)
        if (strcmp(actions->at[i].name, name) == 0)
            return has_word(actions->at[i].flags, flag);
    return false;
}

/* The names of the actions that have a flag; NULL: of all. */
static void find_names(const struct actions *actions, const char *flag, const char *names[ACTIONS_MOST + 1])
{
    size_t found = 0;

    for (size_t i = 0; i < actions->count && found < ACTIONS_MOST; i++)
        if (!flag || has_word(actions->at[i].flags, flag))
            names[found++] = actions->at[i].name;
    names[found] = NULL;
}

static int wrong_flag(struct cli *cli, const char *action, const char *flag)
{
    const char *names[ACTIONS_MOST + 1] = {NULL}, *what = cli->command->name;
    char who[256] = "";

    find_names(cli->command->actions, flag, names);
    list_names(names, who, sizeof who);
    return cli_usage(cli, "%s %s --%s: only %s %s %s it; leave it out", what, action, flag, what, who,
                     names[1] ? "have" : "has");
}

const char *cli_action(const char *word)
{
    return strcmp(word, "ls") == 0 ? "list" : word;
}

int cli_unknown(struct cli *cli, const char *word)
{
    const char *names[ACTIONS_MOST + 1], *what = cli->command->name, *likely;
    char all[256] = "";

    find_names(cli->command->actions, NULL, names);
    likely = word ? likely_word(word, names) : NULL;
    if (likely)
        return cli_usage(cli, "%s %.60s: unknown; did you mean %s %s?", what, word, what, likely);
    list_names(names, all, sizeof all);
    if (!word)
        return cli_usage(cli, "%s: what to do is missing; there are %s", what, all);
    return cli_usage(cli, "%s %.60s: unknown; there are %s", what, word, all);
}

int cli_takes(struct cli *cli)
{
    const char *what = cli->command->name;

    return cli_usage(cli, "%s %s: takes %s; weir help %s has examples", what, cli->action->name,
                     cli->action->operands, what);
}

int cli_choose(struct cli *cli, const char *word)
{
    const struct actions *actions = cli->command->actions;
    const struct action *a = actions->at, *end = a + actions->count;

    word = word ? cli_action(word) : NULL;
    while (a < end && !(word && strcmp(a->name, word) == 0))
        a++;
    if (a == end)
        return cli_unknown(cli, word);
    cli->action = a;
    for (int i = 0; i < cli->given_count; i++)
        if (!has_word(a->flags, cli->given[i]))
            return wrong_flag(cli, word, cli->given[i]);
    return !a->operands || (cli->operand_count >= a->least && cli->operand_count <= a->most) ? 0
                                                                                             : cli_takes(cli);
}

struct weir *cli_client(struct cli *cli)
{
    struct weir *w = weir_new(cli_redis_url(cli), cli->ns);

    if (!w) {
        error_no_memory(&cli->error, cli->command->name);
        return NULL;
    }
    if (w->setup.status) {
        cli->error = w->setup;
        weir_free(w);
        return NULL;
    }
    return w;
}

int cli_failed(struct cli *cli, const struct weir *w)
{
    cli->error = w->error;
    return cli->error.status;
}

/* What a flag says, or else the environment; *said: the name of that. */
static const char *flag_or_environment(const char *flag, const char *variable, const char **said)
{
    if (!flag)
        *said = variable;
    return flag ? flag : getenv(variable);
}

int cli_log(struct cli *cli, const char *format, const char *level)
{
    const char *of_format = "--log", *of_level = "--log-level";

    format = flag_or_environment(format, "WEIR_LOG_FORMAT", &of_format);
    level = flag_or_environment(level, "WEIR_LOG", &of_level);
    if (format && !log_set_format(format))
        return cli_usage(cli, "%s %s %.60s: unknown word; give logfmt or json", cli->command->name, of_format,
                         format);
    if (level && !log_set_level(level))
        return cli_usage(cli, "%s %s %.60s: unknown word; give error, warn, info or debug",
                         cli->command->name, of_level, level);
    return 0;
}

void cli_expect_much(void)
{
    mallopt(M_ARENA_MAX, 1); /* others grow by a page at a time */
    mallopt(M_MXFAST, 0);    /* else all that is free is joined anew whenever a larger piece is freed */
    mallopt(M_MMAP_THRESHOLD, MUCH_BYTES);
    mallopt(M_TRIM_THRESHOLD, MUCH_BYTES);
    mallopt(M_TOP_PAD, MUCH_BYTES / 16);
    if (!cli_is_terminal(stdout))
        setvbuf(stdout, NULL, _IOFBF, PIECE_BYTES);
}
