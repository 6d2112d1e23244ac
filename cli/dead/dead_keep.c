/* weir dead keep: how many dead jobs are kept, how long, and how many bytes of them. */
#include <string.h>

#include "cli/confirm.h"
#include "cli/dead/dead.h"
#include "cli/document/table.h"
#include "core/clock.h"
#include "core/duration.h"
#include "queue/limits/rate.h"

#define MIB (INT64_C(1024) * 1024)
#define MOST_MOST 1000000000
#define BYTES_LEAST (2 * MIB) /* one dead job is up to 1 MiB and a little */
#define BYTES_MOST (1024 * 1024 * MIB)
#define AGE_LEAST_US INT64_C(1000000)
#define AGE_MOST_US (3650 * INT64_C(86400000000))

/* "256MiB": digits and a unit. */
static int read_size(struct cli *cli, const char *text, int64_t *bytes)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"KiB", 1024}, {"MiB", MIB}, {"GiB", 1024 * MIB}};
    const char *at = text;
    int64_t n;

    if (number_read(&at, BYTES_MOST / 1024, &n))
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(at, units[i].name) == 0) {
                *bytes = n * units[i].bytes;
                if (*bytes >= BYTES_LEAST && *bytes <= BYTES_MOST)
                    return 0;
            }
    return cli_usage(cli, "dead keep --bytes %.60s: not a size, or out of range; give 2MiB to 1024GiB", text);
}

static int read_wanted(struct cli *cli, struct dead_bounds *wanted)
{
    char age[32];

    *wanted = (struct dead_bounds){.most = dead_given.most, .age_us = dead_given.age_us};
    if (cli_gave(cli, "most") && (wanted->most < 1 || wanted->most > MOST_MOST))
        return cli_usage(cli, "dead keep --most %lld: out of range; give 1 to %d", dead_given.most,
                         MOST_MOST);
    if (cli_gave(cli, "age") && (wanted->age_us < AGE_LEAST_US || wanted->age_us > AGE_MOST_US)) {
        duration_format(wanted->age_us, age);
        return cli_usage(cli, "dead keep --age %s: out of range; give 1s to 3650d", age);
    }
    return dead_given.bytes ? read_size(cli, dead_given.bytes, &wanted->bytes) : 0;
}

/* ---- What it says */

static json_t *kept_json(const json_t *kept)
{
    int64_t bytes = answer_int_or(kept, "bytes", -1);

    return json_pack("{s:I, s:I, s:o, s:I, s:o, s:o}", "keep_jobs", (json_int_t)answer_int(kept, "keep_jobs"),
                     "keep_bytes", (json_int_t)answer_int(kept, "keep_bytes"), "keep_age",
                     json_seconds(answer_int(kept, "keep_age")), "jobs", (json_int_t)answer_int(kept, "jobs"),
                     "bytes", bytes < 0 ? json_null() : json_integer(bytes), "oldest_at",
                     json_time(answer_int(kept, "oldest_at")));
}

/* Says that the bounds hold for each partition. */
static void put_partitions(FILE *to, const json_t *doc)
{
    if (answer_int(doc, "partitions") > 1)
        output_to(to, " in each of %d partitions", (int)answer_int(doc, "partitions"));
}

static void put_jobs(FILE *to, const json_t *doc)
{
    char jobs[32], most[32];

    output_to(to, "%s of at most %s", grouped((uint64_t)answer_int(doc, "jobs"), jobs),
              grouped((uint64_t)answer_int(doc, "keep_jobs"), most));
    put_partitions(to, doc);
}

static void put_bytes(FILE *to, const json_t *doc)
{
    int64_t bytes = answer_int_or(doc, "bytes", -1);
    char there[32], most[32];

    output_to(to, "%s of at most %s", bytes < 0 ? "not counted yet" : sized(bytes, there),
              sized(answer_int(doc, "keep_bytes"), most));
    put_partitions(to, doc);
}

static void put_age(FILE *to, const json_t *doc, int64_t now_us)
{
    double oldest_s = json_number_value(json_object_get(doc, "oldest_at"));
    char text[PHRASE_SIZE];

    output_to(to, "at most %s",
              format_span((int64_t)(json_number_value(json_object_get(doc, "keep_age")) * 1e6), text));
    if (oldest_s > 0)
        output_to(to, "; the oldest died %s", format_when(now_us, (int64_t)(oldest_s * 1e6), text));
}

static const struct column sheet[] = {
    {.heading = "jobs", .put = put_jobs},
    {.heading = "bytes", .put = put_bytes},
    {.heading = "age", .put_at = put_age},
    {.heading = NULL},
};

/* forgets, dry_run: only after a change, or instead of it. */
static int print_kept(struct cli *cli, const json_t *kept, json_t *doc)
{
    int64_t forgets = answer_int(doc, "forgets");
    bool dry_run = json_is_true(json_object_get(doc, "dry_run"));
    char some[32], all[PHRASE_SIZE];
    int status;

    if (cli->json)
        return json_print(cli, doc);
    json_object_set_new(doc, "partitions", json_integer((int)json_array_size(json_object_get(kept, "each"))));
    if (dry_run)
        output("nothing was changed; it would be:\n");
    status = sheet_print(cli, stdout, sheet, doc, clock_wall_us());
    if (forgets > 0)
        output("%s of %s %s\n", grouped((uint64_t)forgets, some),
               counted(answer_int(doc, "jobs"), "dead job", all),
               dry_run ? "would be forgotten" : "will be forgotten by the next heartbeats of workers");
    json_decref(doc);
    return status;
}

/* ---- The call */

static int ask(struct cli *cli, struct weir *w, const struct dead_bounds *wanted, bool write, json_t **kept)
{
    json_decref(*kept);
    return dead_keep(w, -1, wanted, write, kept) < 0 ? cli_failed(cli, w) : 0;
}

/* Logs "dead keep --most 5000 --age 7d". */
static void note(struct weir *w)
{
    char most[40] = "", age[32] = "";

    if (dead_given.most)
        snprintf(most, sizeof most, " --most %lld", dead_given.most);
    if (dead_given.age_us)
        duration_format(dead_given.age_us, age);
    rate_note(w, "dead keep%s%s%s%s%s", most, *age ? " --age " : "", age, dead_given.bytes ? " --bytes " : "",
              dead_given.bytes ? dead_given.bytes : "");
}

static int change(struct cli *cli, struct weir *w, const struct dead_bounds *wanted, json_t **kept)
{
    char some[32], all[PHRASE_SIZE];
    int64_t forgets;
    json_t *doc;
    int status = 0;

    if (dead_count_beyond(w, -1, *kept, &forgets) < 0)
        return cli_failed(cli, w);
    if (forgets > 0 && !dead_given.dry_run)
        status = cli_confirm(cli, dead_given.yes, "dead keep", "forget %s of %s for good",
                             grouped((uint64_t)forgets, some),
                             counted(answer_int(*kept, "jobs"), "dead job", all));
    if (status == 0 && !dead_given.dry_run)
        status = ask(cli, w, wanted, true, kept);
    if (status != 0)
        return status;
    if (!dead_given.dry_run)
        note(w);
    doc = kept_json(*kept);
    json_object_set_new(doc, "forgets", json_integer(forgets));
    json_object_set_new(doc, "dry_run", json_boolean(dead_given.dry_run));
    return print_kept(cli, *kept, doc);
}

int dead_run_keep(struct cli *cli, struct weir *w)
{
    struct dead_bounds wanted;
    json_t *kept = NULL;
    int status = read_wanted(cli, &wanted);

    if (status == 0)
        status = ask(cli, w, &wanted, false, &kept);
    if (status == 0)
        status = wanted.most || wanted.age_us || wanted.bytes ? change(cli, w, &wanted, &kept)
                                                              : print_kept(cli, kept, kept_json(kept));
    json_decref(kept);
    return status;
}
