/* weir: the table of commands, their dispatch, help and version. An error is printed here, once, as one line;
 * the exit code is the negated status. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command/commands.h"
#include "cli/signals.h"
#include "core/likely.h"

static int run_version(struct cli *cli, int argc, char **argv);
static int run_help(struct cli *cli, int argc, char **argv);

const struct command command_version = {
    .name = "version",
    .usage = "",
    .summary = "Prints the version.",
    .run = run_version,
};

static const struct command command_help = {
    .name = "help",
    .usage = "[COMMAND]",
    .summary = "Says what weir or one of its commands does.",
    .run = run_help,
};

static const struct command *const commands[] = {
    &command_enqueue,  &command_worker, &command_job,  &command_queue,  &command_batch, &command_dead,
    &command_schedule, &command_rate,   &command_take, &command_status, &command_why,   &command_plan,
    &command_verify,   &command_serve,  &command_dev,  &command_doctor, &command_help,  &command_version,
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_overview(FILE *to)
{
    fputs("weir: a job queue on Redis whose workers hold every task type to its rate, exactly\n\n"
          "weir COMMAND [ARGUMENTS] [FLAGS]\n\n",
          to);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        output_to(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\nweir help COMMAND says more about one of them.\n\n"
          "Exit codes: 0 done; 64 wrong usage; 65 wrong input; 66 no such job, limit or batch; 69 Redis not "
          "reachable;\n"
          "70 internal error; 75 not now; 77 Redis refused the login or a permission; 78 wrong "
          "configuration.\n",
          to);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(struct error *e, const char *word)
{
    const char *names[COMMAND_COUNT + 1] = {NULL};
    const char *likely;

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    likely = likely_word(word, names);
    if (likely)
        return error_set(e, WEIR_EUSAGE, "%.100s: unknown command; did you mean %s?", word, likely);
    return error_set(e, WEIR_EUSAGE, "%.100s: unknown command; weir help lists them", word);
}

static int run_version(struct cli *cli, int argc, char **argv)
{
    int operands;

    if (cli_parse(cli, NULL, argc, argv, &operands) < 0)
        return cli->error.status;
    if (operands)
        return error_set(&cli->error, WEIR_EUSAGE, "version %.100s: takes no arguments; leave it out",
                         argv[0]);
    output(cli->json ? "{\"version\":\"%s\"}\n" : "weir %s\n", WEIR_VERSION);
    return 0;
}

static int run_command(const struct command *command, struct error *e, int argc, char **argv)
{
    struct cli cli = {.command = command};
    int status = command->run(&cli, argc, argv);

    *e = cli.error;
    return status;
}

/* "weir help rate set" is "weir rate set --help": only the command knows its flags. */
static int run_help(struct cli *cli, int argc, char **argv)
{
    const struct command *command;
    char *asked[8] = {NULL};
    int operands, count;

    if (cli_parse(cli, NULL, argc, argv, &operands) < 0)
        return cli->error.status;
    if (operands == 0) {
        print_overview(stdout);
        return 0;
    }
    command = find_command(argv[0]);
    if (!command)
        return unknown_command(&cli->error, argv[0]);
    for (count = 0; count < operands && count < 6; count++)
        asked[count] = argv[count];
    asked[count++] = "--help";
    return run_command(command, &cli->error, count, asked);
}

/* The words that may stand where a command does. */
static const char *command_word(const char *word)
{
    static const char *const aliases[][2] = {{"--help", "help"}, {"-h", "help"}, {"--version", "version"}};

    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(word, aliases[i][0]) == 0)
            return aliases[i][1];
    return word;
}

static int dispatch(int argc, char **argv, struct error *e)
{
    const struct command *command;

    if (argc < 2) {
        print_overview(stderr);
        return WEIR_EUSAGE;
    }
    argv[1] = (char *)command_word(argv[1]);
    command = find_command(argv[1]);
    if (command)
        return run_command(command, e, argc - 1, argv + 1);
    if (argv[1][0] == '-')
        return error_set(
            e, WEIR_EUSAGE,
            "%.100s: a flag where a command should be; write weir COMMAND %.100s, and weir help lists both",
            argv[1], argv[1]);
    return unknown_command(e, argv[1]);
}

/* What is opened later must not become standard input, output or error. The stand-in is opened the wrong way
 * round: reading from a closed standard input still fails, and so does writing to a closed output. */
static int fill_closed_streams(struct error *e)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            return error_set(e, WEIR_EINTERNAL,
                             "/dev/null: cannot stand in for a closed standard stream: %s; leave input, "
                             "output and error open",
                             strerror(errno));
    return 0;
}

/* Also behind the help of a command, which exits at once. */
static void check_output(int code, void *arg)
{
    struct error e;

    (void)arg;
    if (code != 0 || (fflush(stdout) != EOF && !ferror(stdout)))
        return;
    error_set(&e, WEIR_EINTERNAL, "standard output: %s; what was to be printed is not complete",
              strerror(errno));
    output_to(stderr, "weir: %s\n", e.text);
    _exit(-e.status);
}

int main(int argc, char **argv)
{
    struct error e = {.text = ""};
    int status = fill_closed_streams(&e);

    signals_fresh();
    on_exit(check_output, NULL);
    if (status == 0)
        status = dispatch(argc, argv, &e);
    if (status < 0 && *e.text)
        output_to(stderr, "weir: %s\n", e.text);
    return -status;
}
