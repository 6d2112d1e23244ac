/* weir rate set, show, list and remove of one key of a limit, which has rules of its own. */
#include <stdlib.h>
#include <string.h>

#include "cli/document/json.h"
#include "cli/document/pausing.h"
#include "cli/document/table.h"
#include "cli/document/text.h"
#include "cli/rate/rate.h"
#include "core/clock.h"
#include "queue/limits/key_rules.h"
#include "queue/limits/rate.h"
#include "view/key_rules.h"
#include "view/rate_keys.h"

/* ---- Changes */

static void print_dry(const json_t *doc)
{
    int64_t dear = json_int_of(doc, "too_dear");
    char jobs[PHRASE_SIZE], count[32];

    output("%s%s in lanes", json_is_true(json_object_get(doc, "at_least")) ? "at least " : "",
           counted(json_int_of(doc, "jobs"), "job", jobs));
    if (dear > 0)
        output(", and %s of them can never start: they cost more than the new rules let start at once",
               grouped((uint64_t)dear, count));
    output("\n");
}

static int print_change(struct cli *cli, const struct key_change *change, const json_t *answer)
{
    json_t *doc = key_change_document(change, answer);
    const json_t *is = json_object_get(doc, "own"), *was = json_object_get(doc, "own_before");
    int64_t now_us = clock_wall_us();

    if (cli->json || !doc)
        return json_print(cli, doc);
    output("%s/%s: ", change->limit, change->key);
    if (change->dry)
        output("nothing was changed; it would have ");
    if (json_is_object(is))
        key_rules_put(stdout, is, now_us);
    else
        output(change->dry ? "the rules of the limit" : "has the rules of the limit again");
    if (json_is_object(was)) {
        output("; before: ");
        key_rules_put(stdout, was, now_us);
    }
    output("\n");
    if (change->dry)
        print_dry(doc);
    json_decref(doc);
    return 0;
}

static int change_key(struct cli *cli, struct weir *w, const struct key_change *change)
{
    json_t *answer;
    int status;

    if (key_rules_change(w, change, &answer) < 0)
        return cli_failed(cli, w);
    status = print_change(cli, change, answer);
    json_decref(answer);
    return status;
}

int rate_set_key(struct cli *cli, struct weir *w, const char *limit, const char *key)
{
    char *rules = rate_join(cli->operands + 1);
    int status;

    if (!rules)
        return error_no_memory(&cli->error, "rate");
    status = change_key(cli, w,
                        &(struct key_change){.limit = limit,
                                             .key = key,
                                             .rules = rules,
                                             .for_us = pausing_given.for_us,
                                             .closes = rate_given.otherwise,
                                             .revision = rate_given.revision,
                                             .dry = rate_given.dry_run});
    free(rules);
    return status;
}

int rate_remove_key(struct cli *cli, struct weir *w, const char *limit, const char *key)
{
    return change_key(
        cli, w,
        &(struct key_change){
            .limit = limit, .key = key, .for_us = RATE_ENDLESS, .revision = -1, .dry = rate_given.dry_run});
}

/* ---- show */

static void put_own(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *own = json_object_get(doc, "own");

    if (json_is_object(own))
        key_rules_put(to, own, now_us);
    else
        output_to(to, "those of the limit");
}

static const struct column sheet[] = {
    COLUMN("key", "key"),
    COLUMN("limit", "name"),
    COLUMN("by", "by"),
    {.heading = "rules", .put_at = put_own},
    COLUMN("parked", "parked", .show = SHOW_COUNT),
    COLUMN("slots left", "slots_left", .show = SHOW_COUNT),
    COLUMN("next start", "next_start", .show = SHOW_WHEN, .drop = 1),
    COLUMN("state", "state"),
    {.heading = NULL},
};

int rate_show_key(struct cli *cli, struct weir *w, const char *limit, const char *key)
{
    json_t *keys, *doc;
    int64_t now_us;
    int status = view_rate_keys(w, limit, 1, key, &keys, &now_us);

    if (status < 0)
        return cli_failed(cli, w);
    doc = json_copy(json_array_get(json_object_get(keys, "longest"), 0));
    json_object_set_new(doc, "name", json_string(limit));
    json_object_set(doc, "by", json_object_get(keys, "by"));
    json_decref(keys);
    if (cli->json)
        return json_print(cli, doc);
    status = sheet_print(cli, stdout, sheet, doc, now_us);
    json_decref(doc);
    return status;
}

/* ---- list */

#define KEY_SHOWN 128 /* bytes: SHOWN of queue/job/body.lua */

static void put_key(FILE *to, const json_t *row)
{
    char *key = text_of_ends(text_bytes(json_object_get(row, "key")), KEY_SHOWN);

    output_to(to, "%s", key ? key : "");
    free(key);
}

static const struct column columns[] = {
    {.heading = "key", .put = put_key},
    {.heading = "rules", .put_at = key_rules_put, .rest = true},
    {.heading = NULL},
};

int rate_list_keys(struct cli *cli, struct weir *w, const char *limit)
{
    int64_t now_us;
    json_t *rows;

    if (view_key_rules(w, limit, &rows, &now_us) < 0)
        return cli_failed(cli, w);
    return table_list(cli, columns, rows, now_us,
                      "no key has rules of its own; weir rate set NAME/KEY RULE gives it some");
}
