/* --json: one document, or one object a line for lists, on standard output. */
#pragma once

#include "cli/cli.h"
#include "view/write.h"

/* Prints doc as one line and frees it; NULL: there was no memory to make it. */
static inline int json_print(struct cli *cli, json_t *doc)
{
    bool done = doc && view_write(stdout, doc, VIEW_ALL);

    json_decref(doc);
    if (!done)
        return error_set(&cli->error, WEIR_EINTERNAL,
                         "%s: the JSON could not be printed; free memory or disk space", cli->command->name);
    putchar('\n');
    return 0;
}

/* Says what an action has done to the one that its first operand names. */
static inline int print_done(struct cli *cli, const char *kind, const char *what)
{
    const char *name = cli->operands[0];

    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:s}", "name", name, "action", cli->action->name));
    output("%s%s%s\n", kind, name, what);
    return 0;
}
