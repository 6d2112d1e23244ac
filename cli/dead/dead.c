/* weir dead: jobs that will not run again without a person: listed, shown, retried, removed. */
#include "cli/dead/dead.h"
#include "cli/commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confirm.h"
#include "cli/document/json.h"
#include "cli/document/outlook.h"
#include "cli/document/text.h"
#include "cli/print/terminal.h"
#include "core/clock.h"

#define IDS_MOST 1000
#define LIMIT_DEFAULT 50
#define SHOW_EVERY_US 100000
#define GROUPS_SHOWN 20
#define NOT_GIVEN (-1)
#define REASON_KEPT 200 /* bytes by which reasons are told apart */

static int run_dead(struct cli *cli, int argc, char **argv);

const struct command command_dead = {.name = "dead", .run = run_dead};

/* ---- What there is, by type and reason */

/* type -> reason -> [ jobs, those without a queue ] */
struct summary {
    json_t *types;
    int64_t jobs, without_queue;
};

static int no_memory(struct cli *cli)
{
    return error_set(&cli->error, WEIR_EINTERNAL, "dead: out of memory; free some and try again");
}

static json_t *member(json_t *object, const char *name, json_t *fresh)
{
    json_t *value = name ? json_object_get(object, name) : NULL;

    if (!value && name && json_object_set(object, name, fresh) == 0)
        value = fresh;
    return value;
}

static int add_group(struct summary *s, const struct dead_group *group)
{
    char *type = text_of(group->type), *reason = text_of_ends(group->reason, REASON_KEPT);
    json_t *none = json_object(), *zero = json_integer(0), *reasons, *count;
    int status = -1;

    reasons = none ? member(s->types, type, none) : NULL;
    count = reasons && zero ? member(reasons, reason, zero) : NULL;
    if (count)
        status = json_integer_set(count, json_integer_value(count) + group->count);
    s->jobs += group->count;
    s->without_queue += group->without_queue;
    json_decref(none);
    json_decref(zero);
    free(type);
    free(reason);
    return status;
}

/* Goes through all that the filter lets through; s->types is the caller's to release, also after a failure.
 */
static int summarize(struct cli *cli, struct weir *w, const struct dead_filter *filter, struct summary *s)
{
    struct dead_walk walk = {.w = w, .now_us = -1, .verb = DEAD_COUNT, .filter = *filter};
    struct dead_group group;
    int status = 0;

    *s = (struct summary){.types = json_object()};
    if (!s->types)
        return no_memory(cli);
    while (status == 0 && !walk.ended) {
        if (dead_next(&walk) < 0)
            status = cli_failed(cli, w);
        for (size_t i = 0; status == 0 && i < walk.found; i++) {
            dead_group(&walk, i, &group);
            if (add_group(s, &group) < 0)
                status = no_memory(cli);
        }
    }
    dead_end(&walk);
    return status;
}

struct line {
    const char *type, *reason;
    int64_t jobs;
};

static int by_count(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    return x->jobs != y->jobs ? (x->jobs < y->jobs) - (x->jobs > y->jobs) : strcmp(x->reason, y->reason);
}

/* All groups in an array, the largest first; the caller's to free, its texts the summary's. */
static struct line *sort_lines(const struct summary *s, size_t *count)
{
    const char *type, *reason;
    json_t *reasons, *jobs;
    struct line *lines;

    *count = 0;
    json_object_foreach(s->types, type, reasons)
    {
        *count += json_object_size(reasons);
    }
    lines = calloc(*count + 1, sizeof *lines);
    *count = 0;
    json_object_foreach(s->types, type, reasons)
    {
        json_object_foreach(reasons, reason, jobs)
        {
            if (lines)
                lines[(*count)++] = (struct line){type, reason, json_integer_value(jobs)};
        }
    }
    if (lines)
        qsort(lines, *count, sizeof *lines, by_count);
    return lines;
}

static void print_lines(FILE *to, const struct line *lines, size_t count)
{
    char number[32];
    int64_t others = 0;

    for (size_t i = 0; i < count; i++)
        if (i < GROUPS_SHOWN)
            output_to(to, "%10s  %-20s  %s\n", grouped((uint64_t)lines[i].jobs, number),
                      *lines[i].type ? lines[i].type : "-", lines[i].reason);
        else
            others += lines[i].jobs;
    if (others > 0)
        output_to(to, "%10s  of %zu other reasons\n", grouped((uint64_t)others, number),
                  count - GROUPS_SHOWN);
}

static json_t *lines_json(const struct line *lines, size_t count)
{
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array,
                              json_pack("{s:s?, s:s, s:I}", "type", *lines[i].type ? lines[i].type : NULL,
                                        "reason", lines[i].reason, "jobs", (json_int_t)lines[i].jobs));
    return array;
}

/* ---- retry, remove */

/* What is done, in words. */
struct deed {
    enum dead_verb verb;
    const char *name, *done; /* "retry", "retried" */
};

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static int print_dry(struct cli *cli, const struct deed *deed, const struct dead_flags *flags,
                     const struct summary *s)
{
    int64_t left = deed->verb == DEAD_RETRY && !flags->into ? s->without_queue : 0;
    size_t count;
    struct line *lines = sort_lines(s, &count);
    char number[32];
    int status = 0;

    if (!lines)
        return no_memory(cli);
    if (cli->json) {
        status = json_print(cli, json_pack("{s:b, s:I, s:I, s:o}", "dry_run", 1, "jobs", (json_int_t)s->jobs,
                                           "without_queue", (json_int_t)left, "reasons",
                                           lines_json(lines, count)));
    } else {
        print_lines(stdout, lines, count);
        output("%s dead job%s would be %s\n", grouped((uint64_t)(s->jobs - left), number),
               plural(s->jobs - left), deed->done);
        if (left > 0)
            output("%s without a queue would stay: name one with --into QUEUE\n",
                   grouped((uint64_t)left, number));
    }
    free(lines);
    return status;
}

/* Shows what is to be removed and asks, where that is asked: 0: go on. */
static int confirm(struct cli *cli, struct weir *w, const struct dead_flags *flags)
{
    struct summary s;
    struct line *lines;
    size_t count;
    char number[32];
    int status;

    if (flags->yes)
        return 0;
    status = summarize(cli, w, &flags->filter, &s);
    lines = status == 0 ? sort_lines(&s, &count) : NULL;
    if (lines && s.jobs > 0) { /* of none, the removing says so */
        print_lines(stderr, lines, count);
        status = cli_confirm(cli, false, "dead remove", "remove %s dead job%s for good",
                             grouped((uint64_t)s.jobs, number), plural(s.jobs));
    } else if (!lines && status == 0) {
        status = no_memory(cli);
    }
    free(lines);
    json_decref(s.types);
    return status;
}

static struct span id_met(const struct dead_walk *walk, size_t i)
{
    struct dead_job job;

    if (walk->verb != DEAD_LIST)
        return dead_moved(walk, i);
    dead_job(walk, i, &job);
    return job.id;
}

/* Ids that were asked for and are still to be met. */
static void strike_out(const struct dead_walk *walk, bool *met)
{
    for (size_t i = 0; i < walk->found; i++) {
        struct span id = id_met(walk, i);

        for (size_t k = 0; k < walk->filter.id_count; k++)
            if (strlen(walk->filter.ids[k]) == id.len && memcmp(walk->filter.ids[k], id.at, id.len) == 0)
                met[k] = true;
    }
}

static void show_progress(const struct deed *deed, const struct dead_walk *walk, int64_t *shown_us)
{
    int64_t now_us = clock_mono_us();
    char looked[32], moved[32];

    if (now_us - *shown_us < SHOW_EVERY_US)
        return;
    *shown_us = now_us;
    output_to(stderr, "\r%s looked at  %s %s\033[K", grouped((uint64_t)walk->looked_at, looked),
              grouped((uint64_t)walk->moved, moved), deed->done);
}

/* Page after page to the end; met: of each id whether it was there. */
static int walk_all(struct cli *cli, const struct deed *deed, struct dead_walk *walk, bool *met)
{
    bool bar = cli_is_terminal(stderr);
    int64_t shown_us = 0;
    int status = 0;

    while (status == 0 && !walk->ended) {
        if (dead_next(walk) < 0)
            status = cli_failed(cli, walk->w);
        else
            strike_out(walk, met);
        if (bar)
            show_progress(deed, walk, &shown_us);
    }
    if (bar)
        fputs("\r\033[K", stderr);
    if (status < 0 && walk->moved > 0) {
        struct error why = cli->error;

        error_set(&cli->error, status, "%.350s; %" PRId64 " were %s before", why.text, walk->moved,
                  deed->done);
    }
    return status;
}

static int print_moved(struct cli *cli, const struct deed *deed, const struct dead_walk *walk)
{
    char number[32];

    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:I, s:I}", "action", deed->name, "jobs",
                                         (json_int_t)walk->moved, "without_queue", (json_int_t)walk->left));
    output("%s dead job%s %s\n", grouped((uint64_t)walk->moved, number), plural(walk->moved), deed->done);
    if (walk->left > 0)
        output("%s without a queue left: name one with --into QUEUE\n",
               grouped((uint64_t)walk->left, number));
    return 0;
}

/* WEIR_ENOTFOUND: an id was not there. WEIR_EINPUT: nothing had a queue. */
static int check_met(struct cli *cli, const struct deed *deed, const struct dead_walk *walk, const bool *met)
{
    const struct dead_filter *filter = &walk->filter;
    size_t missing = 0, first = 0;

    if (walk->left > 0 && walk->moved == 0)
        return error_set(&cli->error, WEIR_EINPUT,
                         "dead retry: nobody knows which queue they were in; name one with --into QUEUE");
    for (size_t i = filter->id_count; i > 0; i--)
        if (!met[i - 1]) {
            missing++;
            first = i - 1;
        }
    if (missing == 0 || walk->left > 0)
        return 0;
    if (missing == 1)
        return error_set(&cli->error, WEIR_ENOTFOUND,
                         "dead %s %.150s: not among the dead jobs; weir dead list names them", deed->name,
                         filter->ids[first]);
    return error_set(
        &cli->error, WEIR_ENOTFOUND,
        "dead %s %.150s: not among the dead jobs, and %zu more are not; weir dead list names them",
        deed->name, filter->ids[first], missing - 1);
}

static int move(struct cli *cli, struct weir *w, const struct deed *deed, const struct dead_flags *flags)
{
    struct dead_walk walk = {
        .w = w, .now_us = -1, .verb = deed->verb, .filter = flags->filter, .into = flags->into};
    bool *met = calloc(flags->filter.id_count + 1, sizeof *met);
    int status;

    if (!met)
        return no_memory(cli);
    status = walk_all(cli, deed, &walk, met);
    if (status == 0)
        status = print_moved(cli, deed, &walk);
    if (status == 0)
        status = check_met(cli, deed, &walk, met);
    dead_end(&walk);
    free(met);
    return status;
}

/* Are all ids there that were given? */
static int look_for_ids(struct cli *cli, struct weir *w, const struct deed *deed,
                        const struct dead_flags *flags)
{
    struct dead_walk walk = {.w = w, .now_us = -1, .verb = DEAD_LIST, .filter = flags->filter};
    bool *met = calloc(flags->filter.id_count + 1, sizeof *met);
    int status = 0;

    if (!met)
        return no_memory(cli);
    while (status == 0 && flags->filter.id_count > 0 && !walk.ended) {
        if (dead_next(&walk) < 0)
            status = cli_failed(cli, w);
        else
            strike_out(&walk, met);
    }
    if (status == 0)
        status = check_met(cli, deed, &walk, met);
    dead_end(&walk);
    free(met);
    return status;
}

static int run_deed(struct cli *cli, struct weir *w, const struct deed *deed, const struct dead_flags *flags)
{
    struct summary s;
    int status;

    if (flags->dry_run) {
        status = summarize(cli, w, &flags->filter, &s);
        if (status == 0)
            status = print_dry(cli, deed, flags, &s);
        if (status == 0)
            status = look_for_ids(cli, w, deed, flags);
        json_decref(s.types);
        return status;
    }
    status = deed->verb == DEAD_REMOVE ? confirm(cli, w, flags) : 0;
    return status == 0 ? move(cli, w, deed, flags) : status;
}

static int run_retry(struct cli *cli, struct weir *w, const struct dead_flags *flags)
{
    static const struct deed retry = {DEAD_RETRY, "retry", "retried"};

    return run_deed(cli, w, &retry, flags);
}

static int run_remove(struct cli *cli, struct weir *w, const struct dead_flags *flags)
{
    static const struct deed remove = {DEAD_REMOVE, "remove", "removed"};

    return run_deed(cli, w, &remove, flags);
}

/* ---- The call */

static const struct action {
    const char *name;
    int least, most; /* ids */
    bool filters, limit, raw, into, all, bounds, dry_run, yes;
    int (*run)(struct cli *cli, struct weir *w, const struct dead_flags *flags);
} actions[] = {
    {.name = "list", .filters = true, .limit = true, .run = dead_run_list},
    {.name = "show", .least = 1, .most = 1, .raw = true, .run = dead_run_show},
    {.name = "retry",
     .most = IDS_MOST,
     .filters = true,
     .into = true,
     .all = true,
     .dry_run = true,
     .run = run_retry},
    {.name = "remove",
     .most = IDS_MOST,
     .filters = true,
     .all = true,
     .dry_run = true,
     .yes = true,
     .run = run_remove},
    {.name = "keep", .bounds = true, .dry_run = true, .yes = true, .run = dead_run_keep},
};
#define ACTION_COUNT (sizeof actions / sizeof *actions)

static bool has_filter(const struct dead_filter *f)
{
    return f->type || f->queue || f->batch || f->reason || f->older_us || f->newer_us;
}

static bool has_bounds(const struct dead_flags *f)
{
    return f->most != DEAD_NOT_GIVEN || f->bytes || f->age_us != DEAD_NO_AGE;
}

static int check_flags(struct cli *cli, const struct action *action, const struct dead_flags *f)
{
    const struct {
        const char *name;
        bool given, taken;
    } flags[] = {
        {"type, --queue and the other filters", has_filter(&f->filter), action->filters},
        {"limit", f->limit != 0, action->limit},
        {"raw", f->raw, action->raw},
        {"into", f->into, action->into},
        {"all", f->all, action->all},
        {"most, --bytes and --age", has_bounds(f), action->bounds},
        {"dry-run", f->dry_run, action->dry_run},
        {"yes", f->yes, action->yes},
    };

    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].given && !flags[i].taken)
            return error_set(&cli->error, WEIR_EUSAGE, "dead %s: it takes no --%s; see weir dead --help",
                             action->name, flags[i].name);
    if (f->into && !name_is_valid(f->into, strlen(f->into)))
        return error_set(&cli->error, WEIR_EUSAGE,
                         "dead retry --into %.60s: no queue; use 1 to 128 of A-Z a-z 0-9 _ . -", f->into);
    if (f->raw && cli->json)
        return error_set(
            &cli->error, WEIR_EUSAGE,
            "dead show --raw: writes the bytes of the body and nothing else; leave out --json or --raw");
    return 0;
}

/* Is it clear which jobs are meant? */
static int check_choice(struct cli *cli, const struct action *action, const struct dead_flags *f, int ids)
{
    bool chosen = ids > 0 || has_filter(&f->filter);

    if (ids < action->least)
        return error_set(&cli->error, WEIR_EUSAGE, "dead %s: which one? give its ID, of weir dead list",
                         action->name);
    if (ids > action->most && action->most == 0)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "dead %s: it takes no ID; weir dead show ID says all of one", action->name);
    if (ids > action->most)
        return error_set(&cli->error, WEIR_EUSAGE, "dead %s: more than %d IDs; give fewer at a time",
                         action->name, action->most);
    if (action->all && !chosen && !f->all)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "dead %s: which ones? give IDs, filters such as --type TYPE, or --all",
                         action->name);
    if (f->all && chosen)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "dead %s --all: means all of them; leave out --all or the others", action->name);
    return 0;
}

/* An age of nothing would be no filter at all. */
static int check_age(struct cli *cli, const char *flag, int64_t *us)
{
    if (*us == 0)
        return error_set(&cli->error, WEIR_EUSAGE, "dead --%s: no time at all; give more than 0s", flag);
    *us = *us == NOT_GIVEN ? 0 : *us;
    return 0;
}

static int check_limit(struct cli *cli, struct dead_flags *f)
{
    if (f->limit < 0)
        return error_set(&cli->error, WEIR_EUSAGE, "dead list --limit %lld: below 1; give how many lines",
                         f->limit);
    f->limit = f->limit ? f->limit : LIMIT_DEFAULT;
    return 0;
}

static int run_action(struct cli *cli, struct dead_flags *f, int argc, char **argv)
{
    const struct action *action;
    int chosen = cli_choose(cli, argc ? argv[0] : NULL, actions, sizeof *actions, ACTION_COUNT);
    struct weir *w;
    int status;

    if (chosen < 0)
        return cli->error.status;
    action = &actions[chosen];
    if (check_age(cli, "older", &f->filter.older_us) < 0 ||
        check_age(cli, "newer", &f->filter.newer_us) < 0 || check_flags(cli, action, f) < 0 ||
        check_choice(cli, action, f, argc - 1) < 0 || check_limit(cli, f) < 0)
        return cli->error.status;
    f->filter.ids = (const char *const *)argv + 1;
    f->filter.id_count = (size_t)argc - 1;
    w = cli_client(cli);
    if (!w)
        return cli->error.status;
    status = action->run(cli, w, f);
    weir_free(w);
    return status;
}

static int run_dead(struct cli *cli, int argc, char **argv)
{
    struct dead_flags f = {.filter = {.older_us = NOT_GIVEN, .newer_us = NOT_GIVEN},
                           .most = DEAD_NOT_GIVEN,
                           .age_us = DEAD_NO_AGE};
    struct dead_filter *only = &f.filter;
    const struct flag flags[] = {
        {"type", 0, FLAG_TEXT, "TYPE", "of this type", &only->type},
        {"queue", 0, FLAG_TEXT, "QUEUE", "of this queue", &only->queue},
        {"batch", 0, FLAG_TEXT, "BATCH", "of this batch", &only->batch},
        {"reason", 0, FLAG_TEXT, "TEXT", "with that in their reason", &only->reason},
        {"older", 0, FLAG_DURATION, "DUR", "died at least so long ago", &only->older_us},
        {"newer", 0, FLAG_DURATION, "DUR", "died at most so long ago", &only->newer_us},
        {"limit", 0, FLAG_INT, "N", "list: so many lines, 50", &f.limit},
        {"raw", 0, FLAG_BOOL, NULL, "show: the bytes of its body, as they are", &f.raw},
        {"into", 0, FLAG_TEXT, "QUEUE", "retry: into this queue, instead of each its own", &f.into},
        {"all", 0, FLAG_BOOL, NULL, "retry, remove: all of them", &f.all},
        {"most", 0, FLAG_INT, "N", "keep: so many", &f.most},
        {"bytes", 0, FLAG_TEXT, "SIZE", "keep: so many bytes of them, 2MiB to 1024GiB", &f.bytes},
        {"age", 0, FLAG_DURATION, "DUR", "keep: so long", &f.age_us},
        {"dry-run", 0, FLAG_BOOL, NULL, "retry, remove, keep: say how many, change nothing", &f.dry_run},
        {"yes", 'y', FLAG_BOOL, NULL, "remove, keep: do not ask", &f.yes},
        {.name = NULL},
    };
    int operands;

    if (cli_parse(cli, flags, argc, argv, &operands) < 0)
        return cli->error.status;
    return run_action(cli, &f, operands, argv);
}
