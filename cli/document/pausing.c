#include "cli/document/pausing.h"

#include <string.h>

#include "cli/document/json.h"
#include "cli/document/text.h"
#include "core/clock.h"
#include "view/pause.h"

struct pausing pausing_given = {.create_by = "--create pauses one that is yet to come"};

int pausing_check(struct cli *cli)
{
    if (!cli_gave(cli, "for"))
        pausing_given.for_us = RATE_ENDLESS;
    else if (pausing_given.for_us == 0)
        return error_set(&cli->error, WEIR_EINPUT,
                         "%s pause --for 0s: no time at all; %s resume ends a pause", cli->command->name,
                         cli->command->name);
    return 0;
}

static void put(const char *what, const json_t *pause)
{
    output("%s", what);
    pause_put(stdout, pause, clock_wall_us());
}

int pausing_print(struct cli *cli, const char *name, bool was, struct json_t *doc)
{
    const json_t *paused = json_object_get(doc, "paused"), *before = json_object_get(doc, "before");
    const char *quote = text_quote(name);

    if (cli->json || !doc)
        return json_print(cli, doc);
    output("%s %s ",
           strcmp(cli->command->name, "rate") ? cli->command->name
           : strchr(name, '/')                ? "key"
                                              : "limit",
           name);
    if (json_is_object(paused)) {
        put("is paused ", paused);
        output("; weir %s resume %s%s%s ends that", cli->command->name, quote, name, quote);
        if (json_is_object(before))
            put("; before, it was paused ", before);
    } else if (json_is_object(before)) {
        put("resumed; it was paused ", before);
    } else if (was) {
        output("resumed; it was paused for a provider");
    } else {
        output("was not paused");
    }
    output("\n");
    json_decref(doc);
    return 0;
}

int pausing_change(struct cli *cli, struct weir *w,
                   int (*pause)(struct weir *w, const char *name, const struct pausing *how, json_t **answer))
{
    const char *name = cli->operands[0];
    const struct pausing resume = {.for_us = RATE_RESUME};
    json_t *answer, *doc;

    if (pause(w, name, strcmp(cli->action->name, "resume") == 0 ? &resume : &pausing_given, &answer) < 0)
        return cli_failed(cli, w);
    doc = pausing_document(name, answer);
    json_decref(answer);
    return pausing_print(cli, name, false, doc);
}
