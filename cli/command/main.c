/* weir: the table of commands, their dispatch, help and version. An error is printed here, once, as one line;
 * the exit code is the negated status. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/apply/sections.h"
#include "cli/commands.h"
#include "cli/complete.h"
#include "cli/help.h"
#include "cli/signals.h"
#include "cli/which_redis.h"
#include "core/likely.h"
#include "view/text.h"

static int run_help(struct cli *cli, int argc, char **argv);

static const struct command command_help = {.name = "help", .no_config = true, .run = run_help};

static const struct command *const commands[] = {
    &command_enqueue, &command_worker,   &command_job,    &command_queue,   &command_type, &command_batch,
    &command_dead,    &command_schedule, &command_rate,   &command_take,    &command_hold, &command_report,
    &command_top,     &command_status,   &command_log,    &command_why,     &command_plan, &command_verify,
    &command_serve,   &command_dev,      &command_doctor, &command_init,    &command_acl,  &command_config,
    &command_apply,   &command_export,   &command_help,   &command_version,
};
#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* Finds words of other tools. */
static const char *synonym_of(const char *word)
{
    static const char *const synonyms[][2] = {
        {"limit", "rate"},   {"limits", "rate"}, {"throttle", "rate"}, {"cron", "schedule"},
        {"stats", "status"}, {"ls", "status"},   {"list", "status"},   {"watch", "top"},
        {"push", "enqueue"}, {"add", "enqueue"}, {"run", "worker"},    {"start", "worker"},
        {"work", "worker"},  {"retry", "dead"},  {"failed", "dead"},   {"cancel", "job"},
        {"pause", "type"},   {"resume", "type"}, {"drain", "worker"},  {"purge", "queue"},
        {"check", "doctor"}, {"import", "apply"}};

    for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
        if (strcmp(word, synonyms[i][0]) == 0)
            return synonyms[i][1];
    return NULL;
}

static int unknown_command(struct error *e, const char *word)
{
    const char *names[COMMAND_COUNT + 1] = {NULL};
    const char *likely;

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = commands[i]->name;
    likely = synonym_of(word);
    likely = likely ? likely : likely_word(word, names);
    if (likely)
        return error_set(e, WEIR_EUSAGE, "%.100s: unknown command; did you mean %s?", word, likely);
    return error_set(e, WEIR_EUSAGE, "%.100s: unknown command; weir help lists them", word);
}

static int print_version(struct cli *cli, struct weir *w)
{
    (void)w;
    output(cli->json ? "{\"version\":\"%s\"}\n" : "weir %s\n", WEIR_VERSION);
    return 0;
}

const struct command command_version = {
    .name = "version", .run = cli_run, .no_config = true, .no_redis = true, .act = print_version};

static int run_command(const struct command *command, struct error *e, int argc, char **argv)
{
    struct cli cli = {.command = command};
    int status = command->run(&cli, argc, argv);

    if (status < 0) {
        cli_name_source(&cli);
        status = cli_name_line(&cli, status);
    }
    config_free(&cli.config);
    *e = cli.error;
    return status;
}

/* Prints weir help weir.conf. */
static void print_file_page(void)
{
    help_print_file(&command_help);
    cli_with_flags(&command_version, help_print_names);
    cli_with_flags(&command_worker, help_print_names);
    cli_with_flags(&command_serve, help_print_names);
    for (const struct section_kind *k = section_kinds; k->name; k++)
        help_print_section(k->name, k->flags);
}

/* doc/cli.md */
static void print_markdown(void)
{
    cli_with_flags(&command_help, help_print_markdown_head);
    output("\n## weir help weir.conf\n\n```text\n");
    print_file_page();
    output("```\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        cli_with_flags(commands[i], help_print_markdown);
}

/* Keeps the words of weir help --complete for on_complete(). */
static char **typed;
static int typed_count;

static void on_complete(const struct command *command, const struct help_flags *flags)
{
    complete_word(command, flags, typed, typed_count);
}

/* words are what stands behind "weir"; the last one is to be completed. */
static void complete(char **words, int count)
{
    const struct command *command;

    for (int skipped; count > 1 && (skipped = cli_common_words(words[0])) > 0 && skipped < count;
         count -= skipped)
        words += skipped;
    command = find_command(words[0]);
    typed = words;
    typed_count = count;
    if (count == 1 || (count == 2 && command == &command_help && words[1][0] != '-'))
        complete_command(commands, COMMAND_COUNT, words[count - 1]);
    else if (command)
        cli_with_flags(command, on_complete);
}

/* "weir help rate set" is "weir rate set --help": only the command knows its flags. */
static int run_help(struct cli *cli, int argc, char **argv)
{
    const struct command *command;
    char *asked[8] = {NULL};
    bool markdown = false, completes = false;
    const struct flag flags[] = {
        {"markdown", 0, FLAG_BOOL, NULL, "doc/cli.md: the help of all commands", &markdown},
        {"complete", 0, FLAG_BOOL, NULL, "for shells: what may stand for the last of the words behind --",
         &completes},
        {.name = NULL}};
    int operands, count;

    if (cli_parse(cli, flags, argc, argv, &operands) < 0)
        return cli->error.status;
    if (markdown) {
        print_markdown();
        return 0;
    }
    if (completes) {
        if (operands > 0)
            complete(argv, operands);
        return 0;
    }
    if (operands == 0) {
        help_print_overview(stdout, commands, COMMAND_COUNT);
        return 0;
    }
    if (strcmp(argv[0], "connection") == 0) {
        cli_with_flags(&command_help, help_print_connection);
        return 0;
    }
    if (strcmp(argv[0], "weir.conf") == 0) {
        print_file_page();
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
    static const char *const aliases[][2] = {
        {"--help", "help"}, {"-h", "help"}, {"--version", "version"}, {"-V", "version"}};

    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(word, aliases[i][0]) == 0)
            return aliases[i][1];
    return word;
}

/* Flags of every command may stand before it: "weir --redis URL status". They are moved behind it. */
static void move_flags(int argc, char **argv)
{
    int at = 1;
    char *word;

    for (int words; at < argc && (words = cli_common_words(argv[at])) > 0;)
        at += words;
    if (at == 1 || at >= argc || argv[at][0] == '-')
        return;
    word = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof *argv);
    argv[1] = word;
}

static int dispatch(int argc, char **argv, struct error *e)
{
    const struct command *command;

    if (argc < 2) {
        help_print_overview(stderr, commands, COMMAND_COUNT);
        return WEIR_EUSAGE;
    }
    move_flags(argc, argv);
    argv[1] = (char *)command_word(argv[1]);
    command = find_command(argv[1]);
    if (command)
        return run_command(command, e, argc - 1, argv + 1);
    if (argv[1][0] == '-')
        return error_set(e, WEIR_EUSAGE,
                         "%.100s: a flag where a command should be; write weir COMMAND %.100s; weir help "
                         "lists the commands",
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

/* Checks the output at the exit, also behind the help of a command, which exits at once. */
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

static bool wants_json(char **argv)
{
    while (*argv && strcmp(*argv, "--") != 0)
        if (strcmp(*argv++, "--json") == 0)
            return true;
    return false;
}

/* Prints why it failed: a line, or with --json {"error", "exit"}. */
static void print_error(const struct error *e, int code, bool json)
{
    json_t *doc = json ? json_pack("{s:o, s:i}", "error", text_word(e->text), "exit", code) : NULL;

    if (doc && json_dumpf(doc, stderr, JSON_COMPACT) == 0)
        fputc('\n', stderr);
    else
        output_to(stderr, "weir: %s\n", e->text);
    json_decref(doc);
}

int main(int argc, char **argv)
{
    struct error e = {.text = ""};
    bool json = wants_json(argv);
    int status = fill_closed_streams(&e);

    signals_fresh();
    on_exit(check_output, NULL);
    if (status == 0)
        status = dispatch(argc, argv, &e);
    if (status < 0 && *e.text)
        print_error(&e, -status, json);
    return -status;
}
