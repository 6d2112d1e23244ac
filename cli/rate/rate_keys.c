/* weir rate keys: the keys of a limit by their backlog. */
#include <string.h>

#include "cli/document/json.h"
#include "cli/document/table.h"
#include "cli/rate/rate.h"
#include "queue/limits/rate.h"
#include "queue/limits/rate_keys.h"
#include "view/format.h"
#include "view/rate_keys.h"

static void put_state(FILE *to, const json_t *row, int64_t now_us)
{
    const char *state = json_text_of(row, "state");
    bool stopped = strcmp(state, "paused") == 0 || strcmp(state, "throttled") == 0;
    const char *reason = json_text_of(json_object_get(row, "paused"), "reason");
    char clock[PHRASE_SIZE];

    output_to(to, "%s", state);
    if (stopped)
        output_to(to, " until %s", format_clock(now_us, rate_key_until(row), clock));
    if (*reason)
        output_to(to, ": %s", reason);
    if (json_is_object(json_object_get(row, "own")))
        output_to(to, ", has rules of its own");
}

/* Of what waits for others to end there is no time. */
static void put_next(FILE *to, const json_t *row, int64_t now_us)
{
    char when[PHRASE_SIZE];

    if (json_is_true(json_object_get(json_object_get(row, "own"), "closed"))) {
        output_to(to, "when rules of its own are set again");
        return;
    }
    rate_format_when(now_us,
                     json_is_number(json_object_get(row, "next_start"))
                         ? json_us(json_object_get(row, "next_start"))
                         : GATE_NEVER,
                     when);
    output_to(to, "%s", when);
}

static const struct column columns[] = {
    COLUMN("key", "key"),
    COLUMN("parked", "parked", .show = SHOW_COUNT),
    COLUMN("oldest", "oldest_at", .show = SHOW_WHEN, .drop = 3),
    COLUMN("slots left", "slots_left", .show = SHOW_COUNT, .drop = 2),
    {.heading = "next start", .put_at = put_next, .show = SHOW_WHEN, .drop = 1},
    {.heading = "state", .put_at = put_state, .rest = true},
    {.heading = NULL},
};

/* What the list is: all keys, or the longest that were found. */
static void print_what(const json_t *doc)
{
    int64_t shown = (int64_t)json_array_size(json_object_get(doc, "longest")),
            all = json_int_of(doc, "key_count");
    char count[32];

    if (json_is_true(json_object_get(doc, "sample")))
        output("the longest that are known, of about %s keys; jobs in queues are not counted\n",
               grouped((uint64_t)all, count));
    else if (shown < all)
        output("the longest of %s keys; jobs in queues are not counted\n", grouped((uint64_t)all, count));
}

static int print_keys(struct cli *cli, json_t *doc, int64_t now_us)
{
    const json_t *rows = json_object_get(doc, "longest");
    int status = 0;

    if (cli->json)
        return json_print(cli, doc);
    if (json_array_size(rows) == 0)
        output_to(stderr, "no key of %s has jobs in lanes; those in queues are not counted\n",
                  json_text_of(doc, "name"));
    else
        status = table_print(cli, stdout, columns, rows, now_us);
    if (status == 0 && json_array_size(rows) > 0)
        print_what(doc);
    json_decref(doc);
    return status;
}

int rate_run_keys(struct cli *cli, struct weir *w)
{
    char limit[RATE_LIMIT_SIZE];
    const char *key;
    int64_t now_us;
    json_t *doc;

    if (rate_given.top < 1 || rate_given.top > RATE_KEYS_MOST)
        return cli_usage(cli, "rate keys --top %lld: must be 1 to %d", rate_given.top, RATE_KEYS_MOST);
    rate_part(cli->operands[0], limit, &key);
    if (view_rate_keys(w, limit, (int)rate_given.top, key, &doc, &now_us) < 0)
        return cli_failed(cli, w);
    return print_keys(cli, doc, now_us);
}
