/* --json: one document, or one object a line for lists, on standard output. */
#ifndef CLI_DOCUMENT_JSON_H
#define CLI_DOCUMENT_JSON_H

#include <jansson.h>
#include <math.h>

#include "cli/cli.h"
#include "throttle/gate.h"

/* Prints doc as one line and frees it; NULL: there was no memory to make it. */
static inline int json_print(struct cli *cli, json_t *doc)
{
    if (!doc || json_dump_callback(doc, output_json, NULL, OUTPUT_JSON_FLAGS) < 0) {
        json_decref(doc);
        return error_set(&cli->error, WEIR_EINTERNAL,
                         "%s: the JSON could not be printed; free memory or disk space", cli->command->name);
    }
    json_decref(doc);
    putchar('\n');
    return 0;
}

/* A member of a document; "" and 0 where it is none. */
static inline const char *json_text_of(const json_t *doc, const char *member)
{
    const char *text = json_string_value(json_object_get(doc, member));

    return text ? text : "";
}

static inline int64_t json_int_of(const json_t *doc, const char *member)
{
    return json_integer_value(json_object_get(doc, member));
}

static inline json_t *json_seconds(int64_t us)
{
    return json_real((double)us / 1e6);
}

static inline int64_t json_us(const json_t *seconds)
{
    return llround(json_number_value(seconds) * 1e6);
}

/* A time in seconds; null when it is none or unknown. */
static inline json_t *json_time(int64_t us)
{
    return us <= 0 || us == GATE_NEVER ? json_null() : json_seconds(us);
}

/* Since when something is so; 0 when it is, and that cannot be read (us below 0); null: it is not. */
static inline json_t *json_since(int64_t us)
{
    return us == 0 ? json_null() : json_seconds(us > 0 ? us : 0);
}

#endif
