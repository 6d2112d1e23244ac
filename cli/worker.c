/* weir worker: runs jobs until told to stop. The work is the library's; here are the flags, the handlers that
 * they name, and the signals. */
#include "cli/worker.h"

#include <signal.h>
#include <string.h>

#define EXECUTORS_MAX 1024 /* as weir.h says */
#define UNSET (-1)

static int run_worker(struct cli *cli, int argc, char **argv);

const struct command command_worker = {
    .name = "worker",
    .usage = "--load FILE.so | --exec TYPE=COMMAND ... [FLAGS]",
    .summary = "Runs jobs until told to stop.",
    .text =
        "Handlers come from shared objects (--load; written in C against weir.h) and from commands (--exec: "
        "one\n"
        "process a job, no shell; the job as JSON on standard input and in WEIR_JOB_ID, WEIR_JOB_TYPE and\n"
        "WEIR_JOB_ATTEMPT; exit 0 done, 75 throttled, 65 dead at once, others retry).\n"
        "\n"
        "TERM or INT: takes no more jobs, finishes, and hands back what is not finished within --grace; a "
        "second\n"
        "one hands back now. TSTP: takes no more jobs and stays.\n"
        "\n"
        "  weir worker --load ./weekly_summary_handler.so -c 20 -q high,default\n"
        "  weir worker --exec 'thumbnail=/usr/local/bin/make-thumbnail --size 400'\n",
    .run = run_worker,
};

void worker_flags_init(struct worker_flags *f)
{
    const struct flag table[] = {
        {"queues", 'q', FLAG_TEXT, "Q1,Q2", "default; in strict order; any =N makes all weighted",
         &f->queues},
        {"executors", 'c', FLAG_INT, "N", "jobs at a time, 10", &f->executors},
        {"load", 0, FLAG_REPEATED, "FILE.so", "C handlers; may be given again", &f->load},
        {"exec", 0, FLAG_REPEATED, "TYPE=COMMAND", "a command as handler; may be given again", &f->exec},
        {"lease", 0, FLAG_DURATION, "DUR", "how long a silent worker keeps its jobs, 30s", &f->lease_us},
        {"grace", 0, FLAG_DURATION, "DUR", "how long handlers may go on after a stop, 25s", &f->grace_us},
        {"trace", 0, FLAG_TEXT, "FILE", "one line a start, appended, for weir verify", &f->trace},
        {"unknown", 0, FLAG_TEXT, "hold|dead", "jobs of types without a handler: hold", &f->unknown},
        {"drain", 0, FLAG_BOOL, NULL, "end when nothing is left to do", &f->drain},
        {"drain-max", 0, FLAG_DURATION, "DUR", "give up draining after that long: exit 75", &f->drain_max_us},
        {.name = NULL},
    };

    _Static_assert(sizeof table == sizeof f->table, "WORKER_FLAG_COUNT");
    *f = (struct worker_flags){
        .unknown = "hold", .executors = 10, .lease_us = UNSET, .grace_us = UNSET, .drain_max_us = UNSET};
    memcpy(f->table, table, sizeof table);
}

static int check_exec(struct cli *cli, const char *text)
{
    const char *equals = strchr(text, '=');

    if (!equals || equals == text || !equals[1 + strspn(equals + 1, " ")])
        return error_set(&cli->error, WEIR_EUSAGE,
                         "%s --exec %.100s: not TYPE=COMMAND; write --exec 'thumbnail=./make-it'",
                         cli->command->name, text);
    return 0;
}

int worker_flags_check(struct cli *cli, const struct worker_flags *f)
{
    const char *name = cli->command->name;

    if (f->executors < 1 || f->executors > EXECUTORS_MAX)
        return error_set(&cli->error, WEIR_EUSAGE, "%s --executors %lld: out of range; give 1 to %d", name,
                         f->executors, EXECUTORS_MAX);
    if (f->lease_us == 0 || f->drain_max_us == 0)
        return error_set(&cli->error, WEIR_EUSAGE, "%s --%s: no time at all; give more than 0s", name,
                         f->lease_us == 0 ? "lease" : "drain-max");
    if (f->drain_max_us != UNSET && !f->drain)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "%s --drain-max: says how long --drain may take; add --drain", name);
    if (strcmp(f->unknown, "hold") != 0 && strcmp(f->unknown, "dead") != 0)
        return error_set(&cli->error, WEIR_EUSAGE, "%s --unknown %.100s: unknown word; give hold or dead",
                         name, f->unknown);
    for (int i = 0; i < f->exec.count; i++)
        if (check_exec(cli, f->exec.at[i]) < 0)
            return cli->error.status;
    return 0;
}

/* 0 means the default to the library, so that no grace at all is the shortest there is. */
static double seconds(int64_t us)
{
    return us == UNSET ? 0 : us == 0 ? 1e-6 : (double)us / 1e6;
}

static struct weir_worker *make_worker(const struct cli *cli, const struct worker_flags *f)
{
    return weir_worker_new(&(struct weir_worker_options){
        .redis_url = cli_redis_url(cli),
        .ns = cli->ns,
        .queues = f->queues,
        .executors = (int)f->executors,
        .lease_s = seconds(f->lease_us),
        .grace_s = seconds(f->grace_us),
        .trace_file = f->trace,
        .drain = f->drain,
        .drain_max_s = seconds(f->drain_max_us),
        .unknown_dead = strcmp(f->unknown, "dead") == 0,
    });
}

static int add_handlers(struct weir_worker *worker, const struct worker_flags *f)
{
    int status = 0;

    for (int i = 0; status == 0 && i < f->load.count; i++)
        status = weir_worker_load(worker, f->load.at[i]);
    for (int i = 0; status == 0 && i < f->exec.count; i++) {
        const char *equals = strchr(f->exec.at[i], '=');
        char type[256];

        snprintf(type, sizeof type, "%.*s", (int)(equals - f->exec.at[i]), f->exec.at[i]);
        status = weir_worker_exec(worker, type, equals + 1);
    }
    return status;
}

static struct weir_worker *running;

static void on_stop(int signal_number)
{
    (void)signal_number;
    weir_worker_stop(running);
}

static void on_quiet(int signal_number)
{
    (void)signal_number;
    weir_worker_quiet(running);
}

static void handle_signals(struct weir_worker *worker)
{
    struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    struct sigaction quiet = {.sa_handler = on_quiet, .sa_flags = SA_RESTART};
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    running = worker;
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTSTP, &quiet, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

static void ignore_signals(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGTERM, &ignore, NULL);
    sigaction(SIGINT, &ignore, NULL);
    sigaction(SIGTSTP, &ignore, NULL);
}

static int run_worker(struct cli *cli, int argc, char **argv)
{
    struct weir_worker *worker;
    struct worker_flags f;
    int operands, status;

    worker_flags_init(&f);
    if (cli_parse(cli, f.table, argc, argv, &operands) < 0 || worker_flags_check(cli, &f) < 0)
        return cli->error.status;
    if (operands)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "worker %.100s: takes no arguments; weir help worker lists the flags", argv[0]);
    if (f.load.count + f.exec.count == 0)
        return error_set(&cli->error, WEIR_EUSAGE,
                         "worker: no handlers; give --load FILE.so or --exec TYPE=COMMAND");
    worker = make_worker(cli, &f);
    if (!worker)
        return error_set(&cli->error, WEIR_EINTERNAL, "worker: out of memory; free some and try again");
    handle_signals(worker);
    status = add_handlers(worker, &f);
    if (status == 0)
        status = weir_worker_run(worker);
    if (status < 0)
        error_set(&cli->error, status, "%s", weir_worker_message(worker));
    ignore_signals();
    weir_worker_free(worker);
    return status;
}
