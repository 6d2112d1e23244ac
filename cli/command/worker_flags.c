/* The flags of weir worker, and the same in weir.conf: read, checked, and a worker that is made of them. */
#include "cli/command/worker.h"
#include "cli/which_redis.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/duration.h"
#include "worker/worker.h"

#define EXECUTORS_MAX 65536 /* as weir.h says */
#define UNSET (-1)
#define NOT_GIVEN LLONG_MIN
#define TYPES_SIZE 1024 /* of "mail,sms" before the = */

void worker_flags_init(struct worker_flags *f)
{
    const struct flag table[] = {
        {"queues", 'q', FLAG_TEXT, "Q1,Q2",
         "queues to serve, in strict order; Q=N: by weight; mail.*: all that begin so, *: all; default "
         "\"default\"",
         &f->queues},
        {"executors", 'c', FLAG_INT, "N", "jobs at a time; default 10", &f->executors},
        {"load", 0, FLAG_REPEATED, "FILE.so", "C handlers", &f->load},
        {"exec", 0, FLAG_REPEATED, "TYPE=COMMAND", "a command for each job", &f->exec},
        {"pipe", 0, FLAG_REPEATED, "TYPE=COMMAND", "a command that stays and takes jobs as lines", &f->pipe},
        {"in-flight", 0, FLAG_INT, "N", "jobs at a time in each of those; default 1", &f->in_flight},
        {"http", 0, FLAG_REPEATED, "TYPE=URL", "jobs are sent there", &f->http},
        {"http-header", 0, FLAG_TEXT, "FILE", "headers of all these requests: lines Name: value",
         &f->http_header},
        {"http-secret", 0, FLAG_TEXT, "FILE", "signs all these requests; one secret, or two, each in a line",
         &f->http_secret},
        {"timeout", 0, FLAG_REPEATED, "TYPE=DUR", "time limit of jobs that name none; default: none",
         &f->timeout},
        {"kill-after", 0, FLAG_DURATION, "DUR", "from TERM to KILL of a job over its time; default 5s",
         &f->kill_after_us},
        {"backoff", 0, FLAG_REPEATED, "TYPE=FIRST..MOST", "waits before retries, doubling", &f->backoff},
        {"keep", 0, FLAG_REPEATED, "TYPE=DUR", "keeps done jobs and their results for that long", &f->keep},
        {"lease", 0, FLAG_DURATION, "DUR", "how long a silent worker keeps its jobs; default 30s",
         &f->lease_us},
        {"grace", 0, FLAG_DURATION, "DUR", "how long handlers may run on after a stop; default 25s",
         &f->grace_us},
        {"trace", 0, FLAG_TEXT, "FILE", "one line a start, appended, for weir verify", &f->trace},
        {"unknown", 0, FLAG_TEXT, "hold|dead",
         "what becomes of jobs whose type no worker has run for a minute; default hold", &f->unknown},
        {"dead-most", 0, FLAG_INT, "N",
         "weir dead keep --most decides; this one counts where that is not set", &f->dead_most},
        {"dead-age", 0, FLAG_DURATION, "DUR", "the same of weir dead keep --age", &f->dead_age_us},
        {"pause-most", 0, FLAG_DURATION, "DUR", "the longest pause that a handler may ask for; default 1d",
         &f->pause_most_us},
        {"wait", 0, FLAG_BOOL, NULL, "quiet, stop: return when they have no jobs left", &f->others.wait},
        {"yes", 'y', FLAG_BOOL, NULL, "quiet, resume, stop: do not ask; of all needed off a terminal",
         &f->others.yes},
        {"drain", 0, FLAG_BOOL, NULL,
         "end when nothing waits or runs; later retries do not count, nor what is paused until it is "
         "resumed: then exit 75",
         &f->drain},
        {"drain-max", 0, FLAG_DURATION, "DUR", "give up draining after that long: exit 75", &f->drain_max_us},
        {"log-done", 0, FLAG_BOOL, NULL, "a line of the log for each job that is done", &f->log_done},
        {"log", 0, FLAG_TEXT, "FORMAT", CLI_LOG_HELP, &f->log},
        {"log-level", 0, FLAG_TEXT, "LEVEL", CLI_LOG_LEVEL_HELP, &f->log_level},
        {.name = NULL},
    };

    _Static_assert(sizeof table == sizeof f->table, "WORKER_FLAG_COUNT");
    *f = (struct worker_flags){.unknown = "hold",
                               .executors = 10,
                               .in_flight = 1,
                               .dead_most = NOT_GIVEN,
                               .lease_us = UNSET,
                               .grace_us = UNSET,
                               .drain_max_us = UNSET,
                               .kill_after_us = UNSET,
                               .dead_age_us = UNSET,
                               .pause_most_us = UNSET};
    memcpy(f->table, table, sizeof table);
}

bool worker_flags_have_handlers(const struct worker_flags *f)
{
    return f->load.count + f->exec.count + f->pipe.count + f->http.count > 0;
}

/* ---- weir.conf */

static bool has_type(const char *types, const char *type, size_t len)
{
    for (; *types; types += strcspn(types, ",") + (types[strcspn(types, ",")] == ','))
        if (strcspn(types, ",") == len && strncmp(types, type, len) == 0)
            return true;
    return false;
}

/* Checks that no section before has one of these types. */
static int check_types(struct cli *cli, const struct setting *first)
{
    char place[CONFIG_PLACE_SIZE];

    for (const struct setting *s = cli->config.at; s < first; s++)
        for (const char *at = first->title; *at; at += strspn(at, ",")) {
            size_t len = strcspn(at, ",");

            if (strcmp(s->section, "handler") == 0 && has_type(s->title, at, len))
                return error_set(
                    &cli->error, WEIR_ECONFIG,
                    "%.300s: [handler %.100s]: type %.*s has a handler in line %d; leave one out",
                    config_place(first, place), first->title, (int)len, at, s->line);
            at += len;
        }
    return 0;
}

static int read_handler(struct cli *cli, struct worker_flags *f, const struct setting *first)
{
    int before = f->exec.count + f->pipe.count + f->http.count, more;
    bool all = strcmp(first->title, "*") == 0; /* it may have options alone */
    char place[CONFIG_PLACE_SIZE];

    if (check_types(cli, first) < 0 ||
        cli_read_section(cli, f->table, first->section, first->title, cli_is_of_type) < 0)
        return cli->error.status;
    more = f->exec.count + f->pipe.count + f->http.count - before;
    if (more == 1 || (more == 0 && all))
        return 0;
    return error_set(&cli->error, WEIR_ECONFIG, "%.300s: [handler %.100s] has %s", config_place(first, place),
                     first->title,
                     more > 1 ? "more than one handler; leave one of exec, pipe and http"
                              : "no handler; give exec, pipe or http");
}

/* Behind those of the file, as the last one counts. */
static int add_values(struct cli *cli, struct flag_values *values, const struct flag_values *more)
{
    if (values->count + more->count > FLAG_VALUES_MAX)
        return error_set(&cli->error, WEIR_ECONFIG,
                         "worker: more than %d values of a flag; name several types at once, as mail,sms",
                         FLAG_VALUES_MAX);
    memcpy(values->at + values->count, more->at, (size_t)more->count * sizeof *more->at);
    values->count += more->count;
    return 0;
}

int worker_flags_read_handlers(struct cli *cli, struct worker_flags *f)
{
    struct flag_values *const options[] = {&f->timeout, &f->backoff, &f->keep};
    struct flag_values said[sizeof options / sizeof *options];
    const struct setting *first;
    size_t at = 0;
    int status = 0;

    if (!cli_gave(cli, "load") && (cli_gave(cli, "exec") || cli_gave(cli, "pipe") || cli_gave(cli, "http")))
        f->load.count = 0;
    if (cli_gave(cli, "exec") || cli_gave(cli, "pipe") || cli_gave(cli, "http") || cli_gave(cli, "load"))
        return 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        said[i] = *options[i];
        options[i]->count = 0;
    }
    while (status == 0 && (first = config_next_title(&cli->config, "handler", &at)))
        status = read_handler(cli, f, first);
    for (size_t i = 0; status == 0 && i < sizeof options / sizeof *options; i++)
        status = add_values(cli, options[i], &said[i]);
    return status;
}

/* ---- TYPE=VALUE */

static void split(const char *text, char types[TYPES_SIZE], const char **value)
{
    const char *equals = strchr(text, '=');

    snprintf(types, TYPES_SIZE, "%.*s", (int)(equals - text), text);
    *value = equals + 1;
}

static int check_pairs(struct cli *cli, const struct flag_values *given, const char *flag, const char *what,
                       const char *example)
{
    for (int i = 0; i < given->count; i++) {
        const char *text = given->at[i], *equals = strchr(text, '=');

        if (!equals || equals == text || !equals[1 + strspn(equals + 1, " ")])
            return cli_usage(cli, "%s --%s %.100s: not TYPE=%s; write --%s %s", cli->command->name, flag,
                             text, what, flag, example);
        if (equals - text >= TYPES_SIZE)
            return cli_usage(cli, "%s --%s %.100s...: its types are longer than %d bytes; give it twice",
                             cli->command->name, flag, text, TYPES_SIZE - 1);
    }
    return 0;
}

/* Reads "30s" as seconds. */
static int read_seconds(struct cli *cli, const char *flag, const char *text, double *seconds)
{
    struct error why;
    int64_t us;

    if (duration_parse(text, &us, &why) < 0)
        return cli_usage(cli, "%s --%s: %s", cli->command->name, flag, why.text);
    if (us == 0)
        return cli_usage(cli, "%s --%s %.100s: no time at all; give more than 0s", cli->command->name, flag,
                         text);
    *seconds = (double)us / 1e6;
    return 0;
}

/* "10s..1h" */
static int read_backoff(struct cli *cli, const char *text, struct weir_type_options *o)
{
    const char *dots = strstr(text, "..");
    char first[64];

    if (!dots || (size_t)(dots - text) >= sizeof first)
        return cli_usage(cli, "%s --backoff %.100s: not FIRST..MOST, such as 10s..1h", cli->command->name,
                         text);
    snprintf(first, sizeof first, "%.*s", (int)(dots - text), text);
    if (read_seconds(cli, "backoff", first, &o->backoff_first_s) < 0)
        return cli->error.status;
    return read_seconds(cli, "backoff", dots + 2, &o->backoff_most_s);
}

/* Types collect the options of types: each option is known by the type that it names. */
struct types {
    char name[3 * FLAG_VALUES_MAX][TYPES_SIZE];
    struct weir_type_options options[3 * FLAG_VALUES_MAX];
    int count;
};

static struct weir_type_options *options_of(struct types *t, const char *type)
{
    for (int i = 0; i < t->count; i++)
        if (strcmp(t->name[i], type) == 0)
            return &t->options[i];
    strcpy(t->name[t->count], type);
    t->options[t->count] = (struct weir_type_options){0};
    return &t->options[t->count++];
}

static int read_types(struct cli *cli, const struct worker_flags *f, struct types *t)
{
    const char *value;
    char type[TYPES_SIZE];
    int status = 0;

    t->count = 0;
    for (int i = 0; status == 0 && i < f->timeout.count; i++) {
        split(f->timeout.at[i], type, &value);
        status = read_seconds(cli, "timeout", value, &options_of(t, type)->timeout_s);
    }
    for (int i = 0; status == 0 && i < f->keep.count; i++) {
        split(f->keep.at[i], type, &value);
        status = read_seconds(cli, "keep", value, &options_of(t, type)->keep_s);
    }
    for (int i = 0; status == 0 && i < f->backoff.count; i++) {
        split(f->backoff.at[i], type, &value);
        status = read_backoff(cli, value, options_of(t, type));
    }
    return status;
}

/* ---- Checked */

static int check_numbers(struct cli *cli, const struct worker_flags *f)
{
    const struct {
        const char *flag;
        long long value, most;
    } numbers[] = {
        {"executors", f->executors, EXECUTORS_MAX},
        {"in-flight", f->in_flight, 10000},
        {"dead-most", f->dead_most == NOT_GIVEN ? 1 : f->dead_most, 1000000000},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value < 1 || numbers[i].value > numbers[i].most)
            return cli_usage(cli, "%s --%s %lld: out of range; give 1 to %lld", cli->command->name,
                             numbers[i].flag, numbers[i].value, numbers[i].most);
    if (f->in_flight != 1 && f->pipe.count == 0)
        return cli_usage(cli, "%s --in-flight: only --pipe has it; leave it out", cli->command->name);
    if ((f->http_header || f->http_secret) && f->http.count == 0)
        return cli_usage(cli, "%s --http-%s: only --http has it; leave it out", cli->command->name,
                         f->http_header ? "header" : "secret");
    return 0;
}

static int check_times(struct cli *cli, const struct worker_flags *f)
{
    const struct {
        const char *flag;
        int64_t us;
    } times[] = {{"lease", f->lease_us},
                 {"drain-max", f->drain_max_us},
                 {"kill-after", f->kill_after_us},
                 {"dead-age", f->dead_age_us},
                 {"pause-most", f->pause_most_us}};

    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i].us == 0)
            return cli_usage(cli, "%s --%s: no time at all; give more than 0s", cli->command->name,
                             times[i].flag);
    if (f->drain_max_us != UNSET && !f->drain)
        return cli_usage(cli, "%s --drain-max: says how long --drain may take; add --drain",
                         cli->command->name);
    return 0;
}

int worker_flags_check(struct cli *cli, const struct worker_flags *f)
{
    struct types types;

    if (cli_log(cli, f->log, f->log_level) < 0 || check_numbers(cli, f) < 0 || check_times(cli, f) < 0)
        return cli->error.status;
    if (strcmp(f->unknown, "hold") != 0 && strcmp(f->unknown, "dead") != 0)
        return cli_usage(cli, "%s --unknown %.100s: unknown word; give hold or dead", cli->command->name,
                         f->unknown);
    if (check_pairs(cli, &f->exec, "exec", "COMMAND", "'thumbnail=./make-it'") < 0 ||
        check_pairs(cli, &f->pipe, "pipe", "COMMAND", "'mail=python3 mail.py'") < 0 ||
        check_pairs(cli, &f->http, "http", "URL", "'mail=http://127.0.0.1:8000/mail'") < 0 ||
        check_pairs(cli, &f->timeout, "timeout", "DUR", "mail=30s") < 0 ||
        check_pairs(cli, &f->keep, "keep", "DUR", "mail=1h") < 0 ||
        check_pairs(cli, &f->backoff, "backoff", "FIRST..MOST", "mail=10s..1h") < 0)
        return cli->error.status;
    return read_types(cli, f, &types);
}

/* 0 means the default to the library, so that no grace at all is the shortest there is. */
static double seconds(int64_t us)
{
    return us == UNSET ? 0 : us == 0 ? 1e-6 : (double)us / 1e6;
}

struct weir_worker *worker_flags_make(const struct cli *cli, const struct worker_flags *f, const char *url)
{
    return weir_worker_new(&(struct weir_worker_options){
        .redis_url = url,
        .ns = cli->ns,
        .queues = f->queues,
        .executors = (int)f->executors,
        .lease_s = seconds(f->lease_us),
        .grace_s = seconds(f->grace_us),
        .trace_file = f->trace,
        .drain = f->drain,
        .drain_max_s = seconds(f->drain_max_us),
        .unknown_dead = strcmp(f->unknown, "dead") == 0,
        .kill_after_s = seconds(f->kill_after_us),
        .dead_most = f->dead_most == NOT_GIVEN ? 0 : f->dead_most,
        .dead_age_s = seconds(f->dead_age_us),
        .pause_most_s = seconds(f->pause_most_us),
        .log_done = f->log_done,
    });
}

/* Lets a handler pass that is only tried, and cannot be called on this machine. */
static int judge(const struct worker_flags *f, int status)
{
    return f->tried && status == WEIR_ECONFIG ? 0 : status;
}

static int add_handlers(struct weir_worker *worker, const struct worker_flags *f)
{
    const char *value;
    char type[TYPES_SIZE];
    int status = weir_worker_http_files(worker, f->http_header, f->http_secret);

    for (int i = 0; status == 0 && i < f->load.count; i++)
        status = weir_worker_load(worker, f->load.at[i]);
    for (int i = 0; status == 0 && i < f->exec.count; i++) {
        split(f->exec.at[i], type, &value);
        status = judge(f, weir_worker_exec(worker, type, value));
    }
    for (int i = 0; status == 0 && i < f->pipe.count; i++) {
        split(f->pipe.at[i], type, &value);
        status = judge(f, weir_worker_pipe(worker, type, value, (int)f->in_flight));
    }
    for (int i = 0; status == 0 && i < f->http.count; i++) {
        split(f->http.at[i], type, &value);
        status = judge(f, weir_worker_http(worker, type, value));
    }
    return status;
}

static int add_types(struct cli *cli, struct weir_worker *worker, const struct worker_flags *f)
{
    struct types types;
    int status = read_types(cli, f, &types);

    for (int i = 0; status == 0 && i < types.count; i++)
        status = weir_worker_type(worker, types.name[i], &types.options[i]);
    return status;
}

int worker_flags_fill(struct cli *cli, struct weir_worker *worker, const struct worker_flags *f)
{
    int status = add_handlers(worker, f);

    if (status == 0)
        status = add_types(cli, worker, f);
    if (status < 0 && cli->error.status == 0)
        error_set(&cli->error, status, "%s", weir_worker_message(worker));
    return status;
}

int worker_flags_try(struct cli *cli, struct worker_flags *f)
{
    struct weir_worker *worker = worker_flags_make(cli, f, cli->redis_url ? cli->redis_url : REDIS_USUAL);
    int status;

    if (!worker)
        return error_no_memory(&cli->error, "config");
    f->tried = true;
    f->http_header = f->http_secret = NULL;
    f->load.count = 0;
    status = worker_flags_fill(cli, worker, f);
    if (status == 0 && (status = worker_check(worker)) < 0)
        error_set(&cli->error, status, "%s", weir_worker_message(worker));
    weir_worker_free(worker);
    return status;
}
