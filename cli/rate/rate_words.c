/* weir rate: the words behind an action, for several of them; use and unuse. */
#include <stdlib.h>
#include <string.h>

#include "cli/document/text.h"
#include "cli/rate/rate.h"
#include "queue/limits/rate.h"
#include "view/rate_keys.h"

struct rate_flags rate_given = {.top = RATE_KEYS_SHOWN, .revision = -1};

char *rate_join(char **argv)
{
    size_t size = 1;
    char *text;

    for (char **word = argv; *word; word++)
        size += strlen(*word) + 1;
    text = calloc(1, size);
    for (char **word = argv; text && *word; word++) {
        strcat(text, *word);
        if (word[1])
            strcat(text, " ");
    }
    return text;
}

void rate_print_dropped(const char *name, const char *dropped, const char *rule)
{
    if (*dropped)
        output_to(
            stderr,
            "weir: %s: its rules were for each %s and are now one for all jobs; to keep them apart: weir "
            "rate set %s %s,by=%s\n",
            name, dropped, name, rule, dropped);
}

void rate_print_lost(const char *name, int64_t lost)
{
    char keys[PHRASE_SIZE];

    if (lost > 0)
        output("%s: %s without rules of %s own then\n", name, counted(lost, "key", keys),
               lost == 1 ? "its" : "their");
}

static json_t *use_json(const struct cli *cli)
{
    json_t *limits = json_array();

    for (char **name = cli->operands + 1; *name; name++)
        json_array_append_new(limits, text_word(*name));
    return json_pack("{s:o,s:s,s:o}", "type", text_word(cli->operands[0]), "action", cli->action->name,
                     "limits", limits);
}

int rate_change_use(struct cli *cli, struct weir *w, bool use)
{
    const char *type = cli->operands[0];
    char *limits = rate_join(cli->operands + 1);
    int status = 0;

    if (!limits)
        return error_no_memory(&cli->error, "rate");
    if (rate_use(w, type, use, limits, rate_given.cost) < 0)
        status = cli_failed(cli, w);
    else if (cli->json)
        status = json_print(cli, use_json(cli));
    else if (*limits)
        output("%s: %s held by %s\n", type, use ? "now also" : "no longer", limits);
    if (status == 0 && !cli->json && rate_given.cost)
        output("%s: a job costs %s\n", type, rate_given.cost);
    free(limits);
    return status;
}
