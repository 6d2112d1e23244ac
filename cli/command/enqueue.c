/* weir enqueue: one job, or (cli/command/bulk.c) a file of them. */
#include "cli/command/enqueue.h"
#include "cli/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/document/json.h"
#include "cli/print/terminal.h"
#include "core/clock.h"
#include "core/duration.h"
#include "producer/enqueue.h"
#include "queue/job/json_number.h"

#define TIME_MOST_US INT64_C(4102444800000000) /* the year 2100 */

/* ---- Times */

static int wrong_time(struct cli *cli, const char *text, const char *why)
{
    return cli_usage(cli, "enqueue --at %.60s: %s", text, why);
}

static int read_time(struct cli *cli, const char *text, double *seconds)
{
    struct span number = {text, strlen(text)};
    struct error ignored;
    char why[PHRASE_SIZE] = "";
    int64_t us;
    bool is_number = strspn(text, "0123456789.") == number.len && json_check(text, number.len, &ignored) == 0;

    if (is_number && !json_read_seconds(number, TIME_MOST_US, &us))
        return wrong_time(
            cli, text,
            "the number is too large: seconds since 1970, before 2100, are meant; of milliseconds "
            "leave out the last three digits");
    if (!is_number && !moment_read(text, &us) && !format_read_time(text, clock_wall_us(), &us, why))
        return wrong_time(cli, text,
                          *why ? why
                               : "not a time; write '2026-11-21 09:00', 09:00, 2026-11-21, "
                                 "2026-11-21T09:00:00+01:00, or seconds since 1970");
    if (us <= 0 || us > TIME_MOST_US)
        return wrong_time(cli, text, "not between 1970 and 2100");
    *seconds = (double)us / 1e6;
    return 0;
}

/* ---- One job */

/* Reads all of standard input, ended by a NUL. */
static int read_input(struct cli *cli, char **args)
{
    size_t len;

    *args = malloc(JOB_BODY_MAX + 2);
    if (!*args)
        return error_no_memory(&cli->error, "enqueue");
    len = fread(*args, 1, JOB_BODY_MAX + 1, stdin);
    (*args)[len] = '\0';
    if (ferror(stdin))
        return error_set(&cli->error, WEIR_EINPUT,
                         "standard input: cannot be read: %s; give the args as a word, or pipe them in",
                         strerror(errno));
    if (len > JOB_BODY_MAX)
        return error_set(
            &cli->error, WEIR_EINPUT,
            "standard input: more than %d bytes; keep large data elsewhere and enqueue where it is",
            JOB_BODY_MAX);
    if (strlen(*args) < len)
        return error_set(&cli->error, WEIR_EINPUT, "wrong args, not JSON: a NUL byte at byte %zu",
                         strlen(*args) + 1);
    return 0;
}

int enqueue_check_args(struct cli *cli, const char *args)
{
    struct error why;

    if (!args || json_check(args, strlen(args), &why) == 0)
        return 0;
    return error_set(&cli->error, WEIR_EINPUT,
                     "args '%.60s': %s; give one JSON value, such as '{\"id\":42}' or '\"text\"'", args,
                     why.text);
}

static int print_one(struct cli *cli, const struct enqueue_flags *f, const char *id,
                     enum enqueue_result result)
{
    if (cli->json && result == ENQUEUE_HELD)
        return json_print(cli, json_pack("{s:s, s:b, s:b}", "id", id, "new", 0, "locked", 1));
    if (cli->json)
        return json_print(cli, json_pack("{s:s, s:b}", "id", id, "new", result == ENQUEUE_NEW));
    output("%s\n", id);
    if (result == ENQUEUE_KNOWN)
        output_to(stderr, "weir: %s was enqueued before; nothing was changed\n", id);
    if (result == ENQUEUE_HELD)
        output_to(stderr,
                  "weir: %.*s is held by job %s; nothing was enqueued; weir job show %s says where it is\n",
                  (int)strcspn(f->unique, ":"), f->unique, id, id);
    return 0;
}

/* The job is in: what cannot be told is no failure. A person at a terminal hears what comes next. */
static void warn(const struct cli *cli, struct weir *w, const struct weir_job_spec *spec, const char *id)
{
    struct keyed_by by;

    if (!cli->json && cli_is_terminal(stdout))
        output_to(stderr, "weir: weir why %s says what it waits for; weir worker --exec %s=COMMAND runs it\n",
                  id, spec->type);
    if (enqueue_keyless(w, spec, &by) != 0)
        return;
    if (*by.likely)
        output_to(stderr,
                  "weir: %s: no worker names that type, and this is its first job; did you mean %s?\n",
                  spec->type, by.likely);
    if (*by.path)
        output_to(
            stderr,
            "weir: %s: this job has nothing at %s, by which limit %s tells its jobs apart; all such jobs "
            "share one "
            "gate\n",
            spec->type, by.path, by.limit);
}

static int enqueue_one(struct cli *cli, struct weir *w, const struct enqueue_flags *f)
{
    struct weir_job_spec spec = {.type = f->type,
                                 .args = f->args,
                                 .queue = f->queue,
                                 .id = f->id,
                                 .key = f->key,
                                 .unique = f->unique,
                                 .batch = f->batch,
                                 .traceparent = f->traceparent,
                                 .meta = f->meta,
                                 .costs = f->cost,
                                 .max_attempts = f->max_attempts == NOT_GIVEN ? 0 : (int)f->max_attempts,
                                 .timeout_s = f->timeout_us < 0 ? 0 : (double)f->timeout_us / 1e6,
                                 .delay_s = f->in_us < 0 ? 0 : (double)f->in_us / 1e6};
    char id[WEIR_ID_SIZE], *input = NULL;
    enum enqueue_result result;
    int status = f->at ? read_time(cli, f->at, &spec.at_s) : 0;

    if (!status && f->args && strcmp(f->args, "-") == 0) {
        status = read_input(cli, &input);
        spec.args = input;
    }
    if (!status)
        status = enqueue_check_args(cli, spec.args);
    if (!status) {
        status = enqueue_job(w, &spec, id, &result);
        status = status ? cli_failed(cli, w) : print_one(cli, f, id, result);
        if (!status && result == ENQUEUE_NEW)
            warn(cli, w, &spec, id);
    }
    free(input);
    return status;
}

/* ---- Flags */

/* Flags of one job beside --from, and of many without it. */
static int check_number(struct cli *cli, const struct enqueue_flags *f)
{
    static const char line[] = "is for one job; write it into the lines of the file",
                      alone[] = "is for one job, and no line of a file says it; enqueue such jobs one by one",
                      bulk[] = "is for many jobs; name their file with --from";
    const struct {
        const char *flag;
        bool given;
        const char *use;
    } given[] = {
        {"id", f->id, line},
        {"in", f->in_us >= 0, alone},
        {"at", f->at, alone},
        {"key", f->key, line},
        {"cost", f->cost, line},
        {"max-attempts", f->max_attempts != NOT_GIVEN, line},
        {"timeout", f->timeout_us >= 0, line},
        {"unique", f->unique, alone},
        {"traceparent", f->traceparent, line},
        {"meta", f->meta, line},
        {"then", f->then, bulk},
        {"skip-invalid", f->skip_invalid, bulk},
    };

    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].given && (given[i].use == bulk) != (f->from != NULL))
            return cli_usage(cli, "enqueue --%s: %s", given[i].flag, given[i].use);
    return 0;
}

static int check_flags(struct cli *cli, const struct enqueue_flags *f)
{
    if (check_number(cli, f) < 0)
        return cli->error.status;
    if (f->type && strcmp(f->type, "-") == 0) /* a valid name, which nobody means */
        return cli_usage(
            cli, "enqueue -: the type is missing; write weir enqueue TYPE -, or weir enqueue --from - "
                 "where lines are jobs");
    if (f->then && !f->batch)
        return cli_usage(cli, "enqueue --then: follows a batch; give the bulk a name with --batch");
    if (f->in_us >= 0 && f->at)
        return cli_usage(cli, "enqueue --in --at: each says when it runs; give one of them");
    if (f->max_attempts != NOT_GIVEN && (f->max_attempts < 1 || f->max_attempts > 1000000))
        return cli_usage(cli, "enqueue --max-attempts %lld: out of range; give 1 to 1000000",
                         f->max_attempts);
    if (f->timeout_us == 0)
        return cli_usage(cli, "enqueue --timeout: no time at all; give more than 0s, or leave the flag out");
    if (f->from && f->type && !name_is_valid(f->type, strlen(f->type)))
        return cli_usage(cli, "enqueue TYPE '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         f->type);
    if (f->queue && !name_is_valid(f->queue, strlen(f->queue)))
        return error_set(&cli->error, WEIR_EINPUT,
                         "queue '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -", f->queue);
    return 0;
}

static struct enqueue_flags given = {.in_us = -1, .timeout_us = -1, .max_attempts = NOT_GIVEN};

static const struct flag flags[] = {
    {"queue", 'q', FLAG_TEXT, "Q", "the queue; default \"default\"", &given.queue},
    {"id", 0, FLAG_TEXT, "ID", "your own id, accepted once a day", &given.id},
    {"in", 0, FLAG_DURATION, "DUR", "run at the earliest that long from now", &given.in_us},
    {"at", 0, FLAG_TEXT, "TIME", "run at the earliest then: a local time, RFC 3339, or seconds since 1970",
     &given.at},
    {"key", 0, FLAG_TEXT, "K", "the value that a keyed limit goes by", &given.key},
    {"cost", 0, FLAG_COST, "N",
     "slots it takes of each rate, or tokens=N of rules of=tokens; default: as its type, else 1",
     &given.cost},
    {"max-attempts", 0, FLAG_INT, "N", "how often it is tried; default 25", &given.max_attempts},
    {"timeout", 0, FLAG_DURATION, "DUR", "how long an attempt may take", &given.timeout_us},
    {"unique", 0, FLAG_TEXT, "KEY[:DUR]", "one job of that key: until it has ended, :waiting, or :DUR",
     &given.unique},
    {"traceparent", 0, FLAG_TEXT, "TP", "W3C trace context, for the handler", &given.traceparent},
    {"meta", 0, FLAG_TEXT, "JSON", "anything else, for the handler", &given.meta},
    {"batch", 0, FLAG_TEXT, "NAME", "counts it there; with --from: it can be run again", &given.batch},
    {"from", 'f', FLAG_TEXT, "FILE", "many jobs, one a line; - is standard input", &given.from},
    {"then", 0, FLAG_TEXT, "TYPE", "with --from --batch: a job of TYPE when all have ended", &given.then},
    {"skip-invalid", 0, FLAG_BOOL, NULL, "with --from: leave out wrong lines, and name the first 20",
     &given.skip_invalid},
    {.name = NULL},
};

static int check(struct cli *cli)
{
    int operands = cli->operand_count;

    if (operands > (given.from ? 1 : 2) || (!given.from && operands == 0))
        return cli_usage(cli, "enqueue: needs %s; weir help enqueue has examples",
                         given.from ? "at most TYPE beside --from" : "TYPE and at most ARGS, or --from FILE");
    given.type = operands > 0 ? cli->operands[0] : NULL;
    given.args = operands > 1 ? cli->operands[1] : NULL;
    return check_flags(cli, &given);
}

static int act(struct cli *cli, struct weir *w)
{
    return given.from ? enqueue_bulk(cli, w, &given) : enqueue_one(cli, w, &given);
}

const struct command command_enqueue = {
    .name = "enqueue", .run = cli_run, .flags = flags, .takes_operands = true, .check = check, .act = act};
