/* weir dead keep: how many dead jobs are kept, how long, and how many bytes of them. */
#include <inttypes.h>
#include <string.h>

#include "cli/confirm.h"
#include "cli/dead/dead.h"
#include "cli/document/json.h"
#include "cli/document/outlook.h"
#include "core/duration.h"

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
    return error_set(&cli->error, WEIR_EUSAGE,
                     "dead keep --bytes %.60s: no size, or out of range; give 2MiB to 1024GiB", text);
}

static int read_wanted(struct cli *cli, const struct dead_flags *flags, struct dead_bounds *wanted)
{
    bool counted = flags->most != DEAD_NOT_GIVEN, aged = flags->age_us != DEAD_NO_AGE;

    *wanted = (struct dead_bounds){.most = counted ? flags->most : 0, .age_us = aged ? flags->age_us : 0};
    if (counted && (wanted->most < 1 || wanted->most > MOST_MOST))
        return error_set(&cli->error, WEIR_EUSAGE, "dead keep --most %" PRId64 ": out of range; give 1 to %d",
                         wanted->most, MOST_MOST);
    if (aged && (wanted->age_us < AGE_LEAST_US || wanted->age_us > AGE_MOST_US))
        return error_set(&cli->error, WEIR_EUSAGE, "dead keep --age: out of range; give 1s to 3650d");
    return flags->bytes ? read_size(cli, flags->bytes, &wanted->bytes) : 0;
}

/* ---- What it says */

static json_t *kept_json(const struct dead_kept *k)
{
    return json_pack("{s:I, s:I, s:o, s:I, s:o, s:o}", "keep_jobs", (json_int_t)k->bounds.most, "keep_bytes",
                     (json_int_t)k->bounds.bytes, "keep_age", json_seconds(k->bounds.age_us), "jobs",
                     (json_int_t)k->jobs, "bytes", k->bytes < 0 ? json_null() : json_integer(k->bytes),
                     "oldest_at", json_time(k->oldest_us));
}

static void print_kept(const struct dead_kept *k)
{
    char used[32], most[32], died[40];

    output("%-8s%s of at most %s\n", "jobs", grouped((uint64_t)k->jobs, used),
           grouped((uint64_t)k->bounds.most, most));
    output("%-8s%s of at most %s\n", "bytes", k->bytes < 0 ? "not counted yet" : sized(k->bytes, used),
           sized(k->bounds.bytes, most));
    duration_format(k->bounds.age_us, most);
    if (k->oldest_us > 0)
        cli_format_time(k->oldest_us, died);
    output("%-8sat most %s%s%s\n", "age", most, k->oldest_us > 0 ? "; the oldest died " : "",
           k->oldest_us > 0 ? died : "");
}

static int show(struct cli *cli, const struct dead_kept *kept)
{
    if (cli->json)
        return json_print(cli, kept_json(kept));
    print_kept(kept);
    return 0;
}

/* After a change, or instead of it. */
static int tell(struct cli *cli, const struct dead_kept *kept, int64_t forgets, bool dry_run)
{
    char some[32], all[32];
    json_t *doc;

    if (!cli->json) {
        print_kept(kept);
        if (forgets > 0)
            output("%s of %s dead jobs %s\n", grouped((uint64_t)forgets, some),
                   grouped((uint64_t)kept->jobs, all),
                   dry_run ? "would be forgotten" : "are forgotten by the next heartbeats of workers");
        return 0;
    }
    doc = kept_json(kept);
    if (doc && (json_object_set_new(doc, "forgets", json_integer(forgets)) < 0 ||
                json_object_set_new(doc, "dry_run", json_boolean(dry_run)) < 0)) {
        json_decref(doc);
        doc = NULL;
    }
    return json_print(cli, doc);
}

/* ---- The call */

static int ask(struct cli *cli, struct weir *w, const struct dead_bounds *wanted, bool write,
               struct dead_kept *kept)
{
    return dead_keep(w, -1, wanted, write, kept) < 0 ? cli_failed(cli, w) : 0;
}

static int change(struct cli *cli, struct weir *w, const struct dead_flags *flags,
                  const struct dead_bounds *wanted, struct dead_kept *kept)
{
    char some[32], all[32];
    int64_t forgets;
    int status = 0;

    if (dead_count_beyond(w, -1, kept, &forgets) < 0)
        return cli_failed(cli, w);
    if (flags->dry_run)
        return tell(cli, kept, forgets, true);
    if (forgets > 0)
        status = cli_confirm(cli, flags->yes, "dead keep", "forget %s of %s dead jobs for good",
                             grouped((uint64_t)forgets, some), grouped((uint64_t)kept->jobs, all));
    if (status == 0)
        status = ask(cli, w, wanted, true, kept);
    return status == 0 ? tell(cli, kept, forgets, false) : status;
}

int dead_run_keep(struct cli *cli, struct weir *w, const struct dead_flags *flags)
{
    struct dead_bounds wanted;
    struct dead_kept kept;
    int status = read_wanted(cli, flags, &wanted);

    if (status == 0)
        status = ask(cli, w, &wanted, false, &kept);
    if (status != 0)
        return status;
    return wanted.most || wanted.age_us || wanted.bytes ? change(cli, w, flags, &wanted, &kept)
                                                        : show(cli, &kept);
}
