/* weir worker: runs jobs until told to stop, and reads its flags anew at HUP; or says what to do to those that run (workers.h). The work is the
 * library's. */
#include "cli/command/worker.h"
#include "cli/commands.h"
#include "cli/which_redis.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/init.h"
#include "cli/signals.h"
#include "core/log/log.h"
#include "core/notify.h"
#include "worker/worker.h"

static int run_worker(struct cli *cli, int argc, char **argv);

const struct command command_worker = {.name = "worker", .run = run_worker, .actions = &workers_actions};

/* Nobody reads standard error: the last words must not keep the worker from ending. */
static void leave_standard_error(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (null >= 0)
        dup2(null, STDERR_FILENO);
}

/* ---- HUP */

/* A worker that runs, and the words it was started with. */
struct running {
    struct weir_worker *worker;
    char **words;
    int count;
    struct config *config; /* of the last time */
};

/* Options that hold from the start of a worker to its end. */
static const char *const lasting[] = {"queues", "executors", "load", "lease", "trace", "drain", "drain-max"};

static bool is_same(const struct config *a, const struct config *b, const char *section, const char *name)
{
    const struct setting *x = config_find(a, section, name), *y = config_find(b, section, name);

    return x && y ? strcmp(x->value, y->value) == 0 : x == y;
}

static void log_lasting(const struct config *before, const struct config *now)
{
    for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
        if (!is_same(before, now, "worker", lasting[i]))
            log_line(LOG_LEVEL_WARN, "weir.conf: %s is another, which counts when the worker is started anew",
                     lasting[i]);
    if (!is_same(before, now, "", "redis") || !is_same(before, now, "", "namespace"))
        log_line(LOG_LEVEL_WARN,
                 "weir.conf: redis or namespace is another, which counts when the worker is started anew");
}

/* Reads flags and files; WEIR_EUSAGE and the like as when it starts. */
static int read_all(struct cli *cli, struct worker_flags *f, int argc, char **argv, int *operands)
{
    worker_flags_init(f);
    if (cli_parse(cli, f->table, argc, argv, operands) < 0 || *operands)
        return cli->error.status;
    if (f->others.wait || f->others.yes)
        return cli_usage(cli, "worker --%s: only worker quiet and stop have it; leave it out",
                         f->others.wait ? "wait" : "yes");
    if (cli->json)
        return cli_usage(cli, "worker --json: it prints no document; leave it out");
    if (worker_flags_read_handlers(cli, f) < 0 || worker_flags_check(cli, f) < 0)
        return cli->error.status;
    return 0;
}

static int check_handlers(struct cli *cli, const struct worker_flags *f)
{
    if (worker_flags_have_handlers(f))
        return 0;
    return cli_usage(
        cli, "worker: no handlers; give --load FILE.so, --exec or --pipe TYPE=COMMAND, --http TYPE=URL, "
             "or [handler TYPE] in weir.conf");
}

/* Reads all again, on the loop of the worker. A file that is wrong changes nothing. */
static void reload(void *arg)
{
    struct running *r = arg;
    struct cli cli = {.command = &command_worker};
    char **words = calloc((size_t)r->count + 1, sizeof *words);
    struct weir_worker *next = NULL;
    struct worker_flags f;
    int operands = 0, status = words ? 0 : error_no_memory(&cli.error, "worker");

    if (status == 0) {
        memcpy(words, r->words, (size_t)r->count * sizeof *words);
        status = read_all(&cli, &f, r->count, words, &operands);
    }
    if (status == 0 && !(next = worker_flags_make(&cli, &f, cli_redis_url(&cli))))
        status = error_no_memory(&cli.error, "worker");
    if (status == 0) {
        status = check_handlers(&cli, &f); /* none: a file that is just being written */
        f.load.count = 0;                  /* what is loaded stays */
    }
    if (status == 0)
        status = worker_flags_fill(&cli, next, &f);
    if (status == 0 && (status = worker_take_over(r->worker, next)) < 0)
        error_set(&cli.error, status, "%s", weir_worker_message(next));
    if (status < 0) {
        cli_name_line(&cli, status);
        log_line(LOG_LEVEL_ERROR, "not read anew, what holds stays: %s", cli.error.text);
        config_free(&cli.config);
    } else {
        log_line(LOG_LEVEL_INFO, "handlers and options are read anew");
        log_lasting(r->config, &cli.config);
        config_free(r->config);
        *r->config = cli.config;
    }
    weir_worker_free(next);
    free(words);
}

/* True when HUP is not for a terminal that is gone, and there is something to read again. */
static bool can_reload(const struct config *c)
{
    bool says = false;

    for (size_t i = 0; i < c->count; i++)
        says |= c->at[i].line > 0;
    return says && !isatty(STDIN_FILENO) && !isatty(STDERR_FILENO);
}

static int run_jobs(struct cli *cli, const struct worker_flags *f, struct running *running)
{
    struct weir_worker *worker = worker_flags_make(cli, f, cli_redis_url(cli));
    int status;

    if (!worker)
        return error_no_memory(&cli->error, "worker");
    running->worker = worker;
    signals_begin(worker);
    if (can_reload(&cli->config)) {
        worker_on_reload(worker, reload, running);
        signals_reload();
    }
    status = worker_flags_fill(cli, worker, f);
    if (status == 0 && (status = weir_worker_run(worker)) < 0)
        error_set(&cli->error, status, "%s", weir_worker_message(worker));
    signals_end();
    weir_worker_free(worker);
    if (!log_flush())
        leave_standard_error();
    return status;
}

static int start(struct cli *cli, struct worker_flags *f, struct running *running, int argc, char **argv)
{
    int operands = 0, status = read_all(cli, f, argc, argv, &operands);

    if (status < 0)
        return status;
    if (operands)
        return workers_run(cli, &f->others, operands, argv);
    if (check_handlers(cli, f) < 0)
        return cli->error.status;
    if (init_stay_behind(&cli->error) < 0)
        return cli->error.status;
    notify_open();
    return run_jobs(cli, f, running);
}

static int run_worker(struct cli *cli, int argc, char **argv)
{
    struct running running = {.count = argc, .config = &cli->config};
    struct worker_flags f;
    int status;

    running.words = calloc((size_t)argc + 1, sizeof *running.words);
    if (!running.words)
        return error_no_memory(&cli->error, "worker");
    memcpy(running.words, argv, (size_t)argc * sizeof *argv);
    status = start(cli, &f, &running, argc, argv);
    free(running.words);
    return status;
}
