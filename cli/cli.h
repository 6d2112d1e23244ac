/* The weir command: one table of subcommands, one table of flags for each. A command parses, calls the
 * library and prints: data on standard output, talk on standard error. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "cli/config.h"
#include "core/client/client.h"
#include "core/error.h"
#include "view/format.h"
#include "view/output.h"

/* A flag of a command stands in a table, which ends with a NULL name. */
enum flag_kind {
    FLAG_BOOL,
    FLAG_TEXT,
    FLAG_INT,
    FLAG_COST,
    FLAG_TRUE_COST,
    FLAG_DURATION,
    FLAG_AGO,
    FLAG_OPTIONAL_TEXT,
    FLAG_REPEATED
};
struct flag {
    const char *name; /* "max-attempts": --max-attempts N */
    char letter;      /* 'c': -c N; 0: none */
    enum flag_kind kind;
    const char *value; /* "N", for the help; NULL for FLAG_BOOL */
    const char *help;
    void *
        target; /* bool *, const char **, long long *, const char ** (of costs), int64_t * (us), const char ** ("" when given without
                     a value), struct flag_values * */
};
#define FLAG_VALUES_MAX 64
struct flag_values {
    const char *at[FLAG_VALUES_MAX];
    int count;
};

#define FLAGS_MAX 48 /* own and common ones together; the longest table has about half */

/* Flags that stand for a parameter of the address, which has the same name. */
struct redis_flags {
    const char *password_file, *password_command;
    const char *sni, *cacert, *cacertdir, *cert, *key;
    bool insecure;
};

struct help_flags;
struct action;

/* What every command is given: the flags that all take, already parsed by cli_parse. */
struct cli {
    const struct command *command;
    /* Not NULL: cli_parse hands it the flags, and fails; nothing else is done. */
    void (*on_flags)(const struct command *command, const struct help_flags *flags);
    const char *redis_url; /* --redis, else that of weir.conf, else NULL */
    struct redis_flags redis_flags;
    const char *ns; /* --namespace, else NULL */
    bool json;
    struct config config;         /* what weir.conf says, then the environment, then the flags */
    const char *given[FLAGS_MAX]; /* the command's own flags that were given: their names */
    int given_count;
    const struct action *action; /* that was named; NULL: the command has none */
    char **operands;             /* behind its name; they end with NULL */
    int operand_count;
    struct error error; /* a command that fails fills it and returns its status */
};

/* What a command does by a word behind its name. */
struct action {
    const char *name, *flags; /* flags: those that it has, with blanks between them */
    const char *operands;     /* what it takes behind its name, for a person; NULL: check() counts them */
    int least, most;          /* so many of them */
    int (*run)(struct cli *cli, struct weir *w);
};
struct actions {
    const struct action *at;
    size_t count;
};
#define ACTIONS(rows)                                                                                        \
    (const struct actions)                                                                                   \
    {                                                                                                        \
        rows, sizeof(rows) / sizeof *(rows)                                                                  \
    }
/* True when the action of that name has the flag. */
bool actions_have(const struct actions *actions, const char *name, const char *flag);

struct command {
    const char *name; /* its help is cli/help/NAME.txt */
    /* cli_run(), or what does otherwise. argv[0] is the command's name. Returns 0 or a negative weir_status, whose negation is the exit code. */
    int (*run)(struct cli *cli, int argc, char **argv);
    const struct flag *flags;      /* its own; NULL: it has none, or run() knows them */
    const struct actions *actions; /* NULL: it has none */
    bool logs;                     /* it prints no document, so it refuses --json */
    bool takes_others_flags;       /* those of another command, whose help lists them */
    bool no_config;                /* weir.conf means nothing to it */
    bool no_redis;                 /* act() gets no client */
    bool takes_operands;           /* which check() counts; those of actions are counted by their rows */
    int (*check)(struct cli *cli); /* of what was given; NULL: there is nothing to be checked */
    int (*act)(struct cli *cli, struct weir *w); /* of a command without actions */
};

/* Runs cli->command as that says: parses, checks, makes the client, acts. */
WEIR_CHECKED int cli_run(struct cli *cli, int argc, char **argv);
/* Runs the action that argv[0] names; argc counts it too. */
WEIR_CHECKED int cli_act(struct cli *cli, int argc, char **argv);
/* Finds cli->action by its name. WEIR_EUSAGE when there is none, and cli->error: which one is likely, or all of them; also for a flag or a number of
 * operands that it does not take. */
WEIR_CHECKED int cli_choose(struct cli *cli, const char *word);
/* WEIR_EUSAGE: the action takes another number of operands. */
int cli_takes(struct cli *cli);

/* Parses the command's own flags and the common ones, wherever they stand ("--" ends them); leaves the
 * operands in argv[0 .. *operands - 1] (without the command's name). Prints help and exits 0 on --help / -h.
 * WEIR_EUSAGE with the likely flag for a mistyped one. Call it first thing in run(). */
WEIR_CHECKED int cli_parse(struct cli *cli, const struct flag *flags, int argc, char **argv, int *operands);
/* Parses the flags of a command without operands. */
WEIR_CHECKED int cli_parse_alone(struct cli *cli, const struct flag *flags, int argc, char **argv);
/* Gives a flag its value; where: how messages begin. */
WEIR_CHECKED int cli_set_flag(struct cli *cli, const char *where, const struct flag *f, const char *text);
/* Reads the section of a file that has the names of these flags into their targets. WEIR_ECONFIG when a name or a value is wrong: where, and what to
 * do. takes (may be NULL) says which of them a file may have. */
WEIR_CHECKED int cli_read_section(struct cli *cli, const struct flag *flags, const char *section,
                                  const char *title, bool (*takes)(const struct flag *));
/* Which flags a file may have: before its first section; in that of a command; in [handler TYPE], those whose value begins with TYPE=, without that. */
bool cli_is_of_all(const struct flag *flag);
bool cli_is_of_section(const struct flag *flag);
bool cli_is_of_type(const struct flag *flag);
/* Says in an error about a flag in which line of a file that stands, if it does. Returns the status of the command, which may be another one then. */
int cli_name_line(struct cli *cli, int status);
/* How many words a flag takes that every command has, "--json" 1 and "--redis" 2 with its value; 0: word is none. */
int cli_common_words(const char *word);
/* How the log of a command that has one looks, and the highest level in it: the values of --log and --log-level, NULL:
 * as $WEIR_LOG_FORMAT and $WEIR_LOG say. */
#define CLI_LOG_HELP "how standard error looks: logfmt or json; default logfmt"
#define CLI_LOG_LEVEL_HELP "error, warn, info or debug; default info"
WEIR_CHECKED int cli_log(struct cli *cli, const char *format, const char *level);
/* Calls on_flags with the flags of a command, which does nothing else. */
void cli_with_flags(const struct command *command,
                    void (*on_flags)(const struct command *command, const struct help_flags *flags));
/* True when that flag was given. */
bool cli_gave(const struct cli *cli, const char *flag);
/* "ls" is "list" wherever an action stands. */
const char *cli_action(const char *word);
/* WEIR_EUSAGE: word is none of the command's actions. */
int cli_unknown(struct cli *cli, const char *word);
/* Makes the client: --redis, else $REDIS_URL, else the socket of a running weir dev in ./.weir (said on
 * standard error), else as weir.conf says, else redis://127.0.0.1:6379. NULL and cli->error on failure. Freed with weir_free. */
struct weir *cli_client(struct cli *cli);
/* Called first, before there are threads, by a command that reads all there is: what it frees it soon needs again, so that is not given
 * back to the kernel, and what it prints leaves in large pieces. */
void cli_expect_much(void);
/* Fills cli->error with what is wrong about the words of a command, as a format and its values. Returns WEIR_EUSAGE. */
#define cli_usage(cli, ...) error_set(&(cli)->error, WEIR_EUSAGE, __VA_ARGS__)
/* Copies w's error to cli->error and returns its status. */
int cli_failed(struct cli *cli, const struct weir *w);
