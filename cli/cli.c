/* What the commands share: their actions, the client, its errors. */
#include "cli/cli.h"

#include <string.h>

#include "cli/which_redis.h"
#include "core/likely.h"

#define ACTIONS_MOST 16 /* of one command */

/* "a, b and c" */
static void list_names(const char *const *names, char *out, size_t size)
{
    size_t len = 0;

    for (; *names && len < size; names++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", *names,
                                !names[1]   ? ""
                                : !names[2] ? " and "
                                            : ", ");
}

int cli_choose(struct cli *cli, const char *word, const void *rows, size_t size, size_t count)
{
    const char *names[ACTIONS_MOST + 1] = {NULL}, *what = cli->command->name, *likely;
    char all[256] = "";

    if (word && strcmp(word, "ls") == 0)
        word = "list";
    for (size_t i = 0; i < count && i < ACTIONS_MOST; i++) {
        names[i] = *(const char *const *)((const char *)rows + i * size);
        if (word && strcmp(names[i], word) == 0)
            return (int)i;
    }
    list_names(names, all, sizeof all);
    if (!word)
        error_set(&cli->error, WEIR_EUSAGE, "%s: what to do is missing; there are %s", what, all);
    else if ((likely = likely_word(word, names)))
        error_set(&cli->error, WEIR_EUSAGE, "%s %.60s: unknown; did you mean %s %s?", what, word, what,
                  likely);
    else
        error_set(&cli->error, WEIR_EUSAGE, "%s %.60s: unknown; there are %s", what, word, all);
    return -1;
}

struct weir *cli_client(struct cli *cli)
{
    struct weir *w = weir_new(cli_redis_url(cli), cli->ns);

    if (!w) {
        error_set(&cli->error, WEIR_EINTERNAL, "%s: out of memory; free some and try again",
                  cli->command->name);
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
