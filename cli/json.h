/* --json: one document, or one object a line for lists, on standard output. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <jansson.h>

#include "cli/cli.h"

/* Prints doc as one line and frees it; NULL: there was no memory to make it. */
static inline int json_print(struct cli *cli, json_t *doc)
{
    if (!doc || json_dumpf(doc, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(16)) < 0) {
        json_decref(doc);
        return error_set(&cli->error, WEIR_EINTERNAL,
                         "%s: the JSON could not be printed; free memory or disk space", cli->command->name);
    }
    json_decref(doc);
    putchar('\n');
    return 0;
}

static inline json_t *json_seconds(int64_t us)
{
    return json_real((double)us / 1e6);
}

#endif
