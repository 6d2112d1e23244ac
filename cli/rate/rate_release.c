/* weir rate remove and rate unuse: what a limit holds no longer starts at once, so both count first and ask.
 */
#include <string.h>

#include "cli/confirm.h"
#include "cli/document/json.h"
#include "cli/rate/rate.h"
#include "queue/limits/rate.h"
#include "queue/status/status.h"
#include "view/format.h"

/* Jobs that limits hold which are to hold them no longer. */
struct release {
    int64_t jobs;  /* waiting and parked */
    int64_t loose; /* jobs that have no other limit */
};

static bool is_among(char **names, const char *name)
{
    while (*names && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

/* jobs: those of the type in all partitions. */
static void add_type(struct release *r, const struct type_status *type, int64_t jobs, char **names)
{
    size_t going = 0;

    for (size_t i = 0; i < type->limit_count; i++)
        going += is_among(names, type->limits[i]->name);
    if (going == 0)
        return;
    r->jobs += jobs;
    r->loose += going == type->limit_count ? jobs : 0;
}

/* Checks that the type was told to use all of these limits. The limit of its own name is none of them. */
static int check_used(struct weir *w, const struct all_limits *all, const char *type, char **names)
{
    for (; *names; names++) {
        bool used = false;

        for (int i = 0; i < all->count; i++) {
            const struct type_status *t = limits_type(&all->at[i], type);

            used |= t && limit_holds(t, *names) && strcmp(*names, type) != 0;
        }
        if (!used)
            return error_set(
                &w->error, WEIR_ENOTFOUND,
                "type %.128s: does not use limit %.128s; weir rate show LIMIT says which types use it", type,
                *names);
    }
    return 0;
}

/* Describes what becomes of the jobs that go. */
static void describe(const struct release *r, char out[96])
{
    char loose[32];

    if (r->loose > 0)
        snprintf(out, 96, "%s of them %s at once", grouped((uint64_t)r->loose, loose),
                 r->loose == 1 ? "has no other limit and starts" : "have no other limit and start");
    else
        snprintf(out, 96, "other limits still hold them");
}

/* Counts the jobs that would be released. type NULL: of all types, and names is one limit. */
static int count_release(struct weir *w, const char *type, char **names, struct release *r)
{
    struct status read;
    struct all_limits all;
    int status = status_read_untold(w, &read, &all);

    *r = (struct release){0};
    if (status == 0 && type)
        status = check_used(w, &all, type, names);
    for (int p = 0; status == 0 && p < all.count; p++)
        for (size_t i = 0; i < all.at[p].type_count; i++) {
            const struct type_status *t = &all.at[p].types[i];

            if (!type || strcmp(t->name, type) == 0)
                add_type(r, t, type_backlog(status_type(&read, t->name)), names);
        }
    status_free(&read);
    all_limits_free(&all);
    return status;
}

static int confirm(struct cli *cli, struct weir *w, const char *type, char **names)
{
    const char *action = type ? "rate unuse" : "rate remove";
    char jobs[PHRASE_SIZE], then[96];
    struct release r;

    if (rate_given.yes)
        return 0;
    if (count_release(w, type, names, &r) < 0)
        return cli_failed(cli, w);
    describe(&r, then);
    return cli_confirm(cli, r.jobs == 0, action, "let go %s that %s holds (%s)", counted(r.jobs, "job", jobs),
                       names[0], then);
}

static int print_dry(struct cli *cli, struct weir *w, const char *type, char **names)
{
    char jobs[PHRASE_SIZE], then[96];
    struct release r;

    if (count_release(w, type, names, &r) < 0)
        return cli_failed(cli, w);
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:b, s:I, s:I}", type ? "type" : "name",
                                         type ? type : names[0], "dry_run", 1, "jobs", (json_int_t)r.jobs,
                                         "without_limit", (json_int_t)r.loose));
    describe(&r, then);
    output("%s: nothing was changed; it would let go %s%s%s\n", type ? type : names[0],
           counted(r.jobs, "job", jobs), r.jobs > 0 ? ": " : "", r.jobs > 0 ? then : "");
    return 0;
}

int rate_run_remove(struct cli *cli, struct weir *w)
{
    const char *name = cli->operands[0], *key;
    char limit[RATE_LIMIT_SIZE];

    rate_part(name, limit, &key);
    if (key)
        return rate_remove_key(cli, w, limit, key);
    if (rate_remove(w, name, true) < 0)
        return cli_failed(cli, w);
    if (rate_given.dry_run)
        return print_dry(cli, w, NULL, cli->operands);
    if (confirm(cli, w, NULL, cli->operands) < 0)
        return cli->error.status;
    if (rate_remove(w, name, false) < 0)
        return cli_failed(cli, w);
    return print_done(cli, "", ": removed; the type of that name runs without it");
}

int rate_run_unuse(struct cli *cli, struct weir *w)
{
    if (rate_given.dry_run)
        return print_dry(cli, w, cli->operands[0], cli->operands + 1);
    if (confirm(cli, w, cli->operands[0], cli->operands + 1) < 0)
        return cli->error.status;
    return rate_change_use(cli, w, false);
}
