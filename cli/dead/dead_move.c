/* weir dead retry and remove: all of them, page by page, or with --dry-run only how many there are. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/confirm.h"
#include "cli/dead/dead.h"
#include "cli/document/table.h"
#include "cli/document/text.h"
#include "cli/print/bar.h"
#include "cli/print/terminal.h"
#include "core/clock.h"
#include "queue/inspect/job_act.h"
#include "queue/limits/rate.h"
#include "throttle/limit.h"
#include "view/dead.h"

#define SHOW_EVERY_US 100000
#define NAMES_SIZE 300 /* of ids that are not there */

/* A retry or a remove, and what it has met so far. */
struct move {
    const char *verb, *done; /* "retry", "retried" */
    struct cli *cli;
    json_t *reasons;             /* counted: as dead_groups_add() leaves them */
    json_t *missing;             /* the ids that were not met: an object */
    char batch[LIMIT_NAME_SIZE]; /* one that was cancelled, of those jobs; "" */
    int64_t jobs, without_queue, cancelled, looked_at, shown_us;
};

/* ---- Walks */

static void show_progress(struct move *m)
{
    int64_t now_us = clock_mono_us();
    char looked[32], moved[32];

    if (now_us - m->shown_us < SHOW_EVERY_US)
        return;
    m->shown_us = now_us;
    bar_show(-1, BAR_LEFT_UNKNOWN, "%s looked at  %s %s", grouped((uint64_t)m->looked_at, looked),
             grouped((uint64_t)m->jobs, moved), m->done);
}

static int take_page(const json_t *page, void *arg)
{
    const json_t *ids = json_object_get(page, "ids");
    struct move *m = arg;

    m->looked_at += answer_int(page, "looked_at");
    m->jobs += answer_int(page, "jobs");
    m->without_queue += answer_int(page, "without_queue");
    m->cancelled += answer_int(page, "cancelled");
    if (*answer_text(page, "batch"))
        snprintf(m->batch, sizeof m->batch, "%s", answer_text(page, "batch"));
    for (size_t i = 0; i < json_array_size(ids); i++)
        json_object_del(m->missing, text_bytes(json_array_get(ids, i)).at);
    if (!json_object_get(page, "reasons") && cli_is_terminal(stderr))
        show_progress(m);
    return dead_groups_add(m->reasons, page);
}

static void free_walk(struct move *m)
{
    json_decref(m->reasons);
    json_decref(m->missing);
}

/* Goes through all dead jobs that are meant; verb: as struct dead_walk has it. */
static int walk(struct move *m, struct weir *w, const char *verb)
{
    struct dead_walk walk = {.w = w,
                             .verb = verb,
                             .filter = dead_given.filter,
                             .into = dead_given.into,
                             .take = take_page,
                             .arg = m};
    struct cli *cli = m->cli;
    int status;

    free_walk(m);
    m->reasons = json_object();
    m->missing = json_object();
    m->jobs = m->without_queue = m->cancelled = m->looked_at = m->shown_us = 0;
    for (size_t i = 0; i < walk.filter.id_count; i++)
        json_object_set_new_nocheck(m->missing, walk.filter.ids[i], json_true());
    status = dead_go(cli, &walk);
    if (m->shown_us)
        bar_clear();
    if (status < 0 && m->jobs > 0 && strcmp(verb, m->verb) == 0) {
        struct error why = cli->error;

        error_set(&cli->error, status, "%.350s; %" PRId64 " were %s before", why.text, m->jobs, m->done);
    }
    return status;
}

/* Lists "a, b and 3 more". */
static void list_missing(const json_t *missing, char text[NAMES_SIZE])
{
    size_t left = json_object_size(missing), len = 0;
    const char *id;
    json_t *ignored;

    json_object_foreach((json_t *)missing, id, ignored) {
        if (len + strlen(id) + sizeof ", " > NAMES_SIZE - sizeof " and 1000000 more")
            break;
        len += (size_t)snprintf(text + len, NAMES_SIZE - len, "%s%s", len ? ", " : "", id);
        left--;
    }
    if (left > 0)
        snprintf(text + len, NAMES_SIZE - len, " and %zu more", left);
}

/* WEIR_ENOTFOUND: an id was not there. WEIR_EINPUT: nothing of the document had a queue, or a batch that was not cancelled. */
static int check_met(const struct move *m, const json_t *doc)
{
    bool none = answer_int(doc, "jobs") == 0;
    char names[NAMES_SIZE];

    if (m->cancelled > 0 && none)
        return job_batch_over("dead retry", m->batch, &m->cli->error);
    if (m->without_queue > 0 && none)
        return error_set(&m->cli->error, WEIR_EINPUT,
                         "dead retry: which queue they were in is not known; name one with --into QUEUE");
    if (json_object_size(m->missing) == 0 || m->without_queue + m->cancelled > 0)
        return 0;
    list_missing(m->missing, names);
    return error_set(&m->cli->error, WEIR_ENOTFOUND,
                     "dead %s %s: not among the dead jobs; weir dead list names them", m->verb, names);
}

/* ---- What it says */

static void print_counts(const struct move *m, const json_t *doc)
{
    bool dry_run = json_is_true(json_object_get(doc, "dry_run"));
    int64_t left = answer_int(doc, "without_queue");
    char text[PHRASE_SIZE];

    output("%s%s %s\n", counted(answer_int(doc, "jobs") - (dry_run ? left : 0), "dead job", text),
           dry_run ? " would be" : "", m->done);
    if (m->cancelled > 0)
        output("%s of batch %s %s: it was cancelled\n", grouped((uint64_t)m->cancelled, text), m->batch,
               dry_run ? "would stay" : "left");
    if (left > 0)
        output("%s without a queue %s: name one with --into QUEUE\n", grouped((uint64_t)left, text),
               dry_run ? "would stay" : "left");
}

/* Frees the document. */
static int print_move(const struct move *m, json_t *doc)
{
    int status, met = check_met(m, doc);

    if (m->cli->json) {
        status = json_print(m->cli, doc);
    } else {
        status = dead_print_groups(m->cli, stdout, json_object_get(doc, "reasons"), true);
        if (met == 0 || answer_int(doc, "jobs") > 0) /* else the error says it all */
            print_counts(m, doc);
        json_decref(doc);
    }
    return status == 0 ? met : status;
}

static int try_it(struct move *m, struct weir *w)
{
    size_t most = m->cli->json ? 0 : DEAD_GROUPS_SHOWN;
    int status = walk(m, w, "count");

    if (status < 0)
        return status;
    if (strcmp(m->verb, "retry") != 0)
        m->cancelled = 0;
    if (strcmp(m->verb, "retry") != 0 || dead_given.into)
        m->without_queue = 0;
    return print_move(m, json_pack("{s:b, s:I, s:I, s:I, s:o}", "dry_run", 1, "jobs",
                                   (json_int_t)(m->jobs - m->cancelled), "without_queue",
                                   (json_int_t)m->without_queue, "batch_cancelled", (json_int_t)m->cancelled,
                                   "reasons", dead_groups(json_incref(m->reasons), most)));
}

static int do_it(struct move *m, struct weir *w)
{
    int status = walk(m, w, m->verb);

    if (m->jobs > 0)
        rate_note(w, "dead %s: %" PRId64, m->verb, m->jobs);
    return status < 0 ? status
                      : print_move(m, dead_move_document(m->verb, m->jobs, m->without_queue, m->cancelled));
}

/* Shows what would be removed, and asks; of none, the removing says so. 0: go on. */
static int confirm(struct move *m, struct weir *w)
{
    char text[PHRASE_SIZE];
    json_t *reasons;
    int status = walk(m, w, "count");

    if (status < 0 || m->jobs == 0)
        return status;
    reasons = dead_groups(json_incref(m->reasons), DEAD_GROUPS_SHOWN);
    status = dead_print_groups(m->cli, stderr, reasons, true);
    json_decref(reasons);
    return status < 0 ? status
                      : cli_confirm(m->cli, false, "dead remove", "remove %s for good",
                                    counted(m->jobs, "dead job", text));
}

static int run_move(struct move *m, struct weir *w)
{
    bool asks = strcmp(m->verb, "remove") == 0 && !dead_given.dry_run && !dead_given.yes;
    int status = asks ? confirm(m, w) : 0;

    if (status == 0)
        status = dead_given.dry_run ? try_it(m, w) : do_it(m, w);
    free_walk(m);
    return status;
}

int dead_run_retry(struct cli *cli, struct weir *w)
{
    return run_move(&(struct move){.verb = "retry", .done = "retried", .cli = cli}, w);
}

int dead_run_remove(struct cli *cli, struct weir *w)
{
    return run_move(&(struct move){.verb = "remove", .done = "removed", .cli = cli}, w);
}
