/* Flags: cli_parse turns a command's table into one for getopt_long, which finds the flags wherever they
 * stand; all words for people are our own, and the help is printed from the same tables.
 *
 * A flag must be written out: getopt_long would take any unambiguous beginning for it, and a script that
 * relies on one would break as soon as a command gets another flag. */
#include "cli/cli.h"

#include <assert.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/help.h"
#include "cli/print/color.h"
#include "cli/which_redis.h"
#include "core/duration.h"
#include "core/likely.h"

#define LONG_BASE 1000 /* getopt_long's value of flag i is LONG_BASE + i: clear of all letters */
#define WORD_MAX 64    /* how much of a word a message repeats */

#define COMMON_MOST 20 /* flags that every command takes */

struct parser {
    struct cli *cli;
    char where[WORD_MAX]; /* "enqueue", "rate set": how messages begin */
    struct flag common[COMMON_MOST];
    const struct flag *flags[FLAGS_MAX];
    int own, count; /* the first own of count are the command's, the others those that every command takes */
    const char *said[FLAGS_MAX]; /* on the command line; NULL: it was not. "yes" where no value is given */
    struct option longs[FLAGS_MAX + 1];
    char letters[3 * FLAGS_MAX + 2];
};

static bool has_flag(const struct parser *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->flags[i]->name, name) == 0)
            return true;
    return false;
}

/* A flag has one meaning in a command: of two with one name getopt_long would never find the second. */
static void add_flags(struct parser *p, const struct flag *flags)
{
    for (; flags && flags->name; flags++) {
        if (p->count == FLAGS_MAX || has_flag(p, flags->name))
            abort();
        p->flags[p->count++] = flags;
    }
}

static void prepare_getopt(struct parser *p)
{
    static const int has_value[] = {
        [FLAG_BOOL] = no_argument,
        [FLAG_TEXT] = required_argument,
        [FLAG_INT] = required_argument,
        [FLAG_COST] = required_argument,
        [FLAG_TRUE_COST] = required_argument,
        [FLAG_AGO] = required_argument,
        [FLAG_DURATION] = required_argument,
        [FLAG_REPEATED] = required_argument,
        [FLAG_OPTIONAL_TEXT] = optional_argument,
    };
    static const char *const colons[] = {
        [no_argument] = "", [required_argument] = ":", [optional_argument] = "::"};
    char *letters = p->letters;

    *letters++ = ':'; /* a missing value is told from an unknown flag */
    for (int i = 0; i < p->count; i++) {
        const struct flag *f = p->flags[i];

        p->longs[i] = (struct option){f->name, has_value[f->kind], NULL, LONG_BASE + i};
        if (f->letter)
            letters += sprintf(letters, "%c%s", f->letter, colons[has_value[f->kind]]);
    }
    *letters = '\0';
}

/* word is what was written: "--qeue", "--qeue=x"; or "--cert", as other clients of Redis name a flag of TLS. */
static int unknown_flag(struct parser *p, const char *word)
{
    const char *names[FLAGS_MAX + 1] = {NULL};
    char name[WORD_MAX + 1], of_tls[WORD_MAX + 8];
    const char *likely;

    for (int i = 0; i < p->count; i++)
        names[i] = p->flags[i]->name;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word + 2, "="), word + 2);
    snprintf(of_tls, sizeof of_tls, "tls-%s", name);
    likely = has_flag(p, of_tls) ? of_tls : likely_word(name, names);
    if (likely)
        return cli_usage(p->cli, "%s --%s: unknown flag; did you mean --%s?", p->where, name, likely);
    return cli_usage(p->cli, "%s --%s: unknown flag; weir help %s lists the flags", p->where, name,
                     p->cli->command->name);
}

static int unknown_letter(struct parser *p, int letter)
{
    return cli_usage(
        p->cli,
        "%s -%c: unknown flag; weir help %s lists the flags, and -- stands before an argument that "
        "begins with -",
        p->where, letter, p->cli->command->name);
}

static int missing_value(struct parser *p, const char *word)
{
    return cli_usage(p->cli, "%s %s: needs a value; weir help %s says which", p->where, word,
                     p->cli->command->name);
}

/* As of a shell variable that is not set: nobody means by that what leaving the flag out means. */
static int empty_value(struct parser *p, const struct flag *f)
{
    return cli_usage(p->cli, "%s --%s: its value is empty; give one, or leave the flag out", p->where,
                     f->name);
}

/* Notes a flag of the command's own; those that every command takes stand behind them. */
static void note_given(struct parser *p, const struct flag *f)
{
    for (int i = 0; i < p->own; i++)
        if (p->flags[i] == f && !cli_gave(p->cli, f->name))
            p->cli->given[p->cli->given_count++] = f->name;
}

static const struct flag *flag_of_letter(const struct parser *p, int letter)
{
    for (int i = 0; i < p->count; i++)
        if (p->flags[i]->letter == letter)
            return p->flags[i];
    return NULL;
}

/* Parses one answer of getopt_long(); word is the argument that it came from, when that was a long flag. */
static int parse_one(struct parser *p, int found, const char *word)
{
    const struct flag *f = found >= LONG_BASE ? p->flags[found - LONG_BASE] : flag_of_letter(p, found);

    if (found == ':')
        return missing_value(p, word);
    if (found == '?' && optopt >= LONG_BASE)
        return cli_usage(p->cli, "%s --%s: takes no value; leave out what stands behind the =", p->where,
                         p->flags[optopt - LONG_BASE]->name);
    if (found == '?' && optopt)
        return unknown_letter(p, optopt);
    if (found == '?' || (found >= LONG_BASE && strcspn(word + 2, "=") != strlen(f->name)))
        return unknown_flag(p, word);
    for (int i = 0; i < p->count; i++)
        p->said[i] = p->flags[i] == f ? (optarg ? optarg : "yes") : p->said[i];
    if (optarg && !*optarg)
        return empty_value(p, f);
    note_given(p, f);
    return cli_set_flag(p->cli, p->where, f, optarg);
}

/* Joins "--wait 30s": a duration behind a flag whose value may be missing is its value. */
static void join_value(const struct parser *p, int found, int argc, char **argv)
{
    const struct flag *f = found >= LONG_BASE ? p->flags[found - LONG_BASE] : NULL;
    struct error ignored;
    int64_t us;

    if (f && f->kind == FLAG_OPTIONAL_TEXT && !optarg && optind < argc &&
        duration_parse(argv[optind], &us, &ignored) == 0)
        optarg = argv[optind++];
}

static int parse_all(struct parser *p, int argc, char **argv)
{
    int found, status = 0;

    optind = 0; /* glibc: start anew */
    opterr = 0;
    while (status == 0) {
        const char *word;

        optarg = NULL;
        found = getopt_long(argc, argv, p->letters, p->longs, NULL);
        if (found == -1)
            break;
        word = argv[optind - 1];
        if (optarg && optarg == word)
            word = argv[optind - 2];
        join_value(p, found, argc, argv);
        status = parse_one(p, found, word);
    }
    return status;
}

void cli_with_flags(const struct command *command,
                    void (*on_flags)(const struct command *command, const struct help_flags *flags))
{
    struct cli cli = {.command = command, .on_flags = on_flags};
    char *argv[] = {(char *)command->name, NULL};
    int status = command->run(&cli, 1, argv);

    (void)status; /* it always fails, and has done nothing */
}

/* ---- Files, and the environment */

/* What the environment says in place of a flag. */
static const char *const variables[][2] = {{"redis", "$REDIS_URL"},
                                           {"namespace", "$WEIR_NAMESPACE"},
                                           {"log", "$WEIR_LOG_FORMAT"},
                                           {"log-level", "$WEIR_LOG"}};

/* Adds what the environment and the command line say to what the files do. */
static int add_said(struct parser *p)
{
    struct cli *cli = p->cli;
    int status = 0;

    for (int i = 0; status == 0 && i < p->count; i++) {
        struct setting s = {i < p->own ? cli->command->name : "", "", p->flags[i]->name, NULL, NULL, 0};

        for (size_t k = 0; status == 0 && k < sizeof variables / sizeof *variables; k++)
            if (strcmp(variables[k][0], s.name) == 0 && (s.value = getenv(variables[k][1] + 1)) && *s.value) {
                s.file = variables[k][1];
                status = config_say(&cli->config, &s, &cli->error);
            }
        if (status == 0 && (s.value = p->said[i])) {
            s.file = "the command line";
            status = config_say(&cli->config, &s, &cli->error);
        }
    }
    return status;
}

static bool is_of_connection(const char *name)
{
    return strcmp(name, "redis") == 0 || strncmp(name, "password-", 9) == 0 || strncmp(name, "tls-", 4) == 0;
}

/* Settles which address holds. What describes it belongs to it: of the files counts what does not stand before the address that holds. */
static void settle_connection(struct config *c)
{
    const struct setting *redis = config_find(c, "", "redis");
    const char *from = redis ? redis->file : NULL;
    bool elsewhere = dev_is_here(), before = from;
    size_t kept = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct setting s = c->at[i];

        before = before && s.file != from;
        if (*s.section || !s.line || !is_of_connection(s.name) || !(elsewhere || before))
            c->at[kept++] = s;
    }
    c->count = kept;
}

/* ---- The password of --redis */

/* Finds where the parameters of an address begin, or its end; a password that nobody has encoded may have a ? too. */
static char *find_parameters(char *url)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz-";
    char *query = strchr(url, '?');

    return query && query[1 + strspn(query + 1, name)] == '=' ? query : url + strlen(url);
}

/* Finds what stands between :// and the last @; there is no login when a path begins there. */
static char *find_login(char *url, size_t *len)
{
    char *login = strstr(url, "://"), *at = memrchr(url, '@', (size_t)(find_parameters(url) - url));

    if (!login || login[3] == '/' || !at || at < login + 3)
        return NULL;
    *len = (size_t)(at - (login + 3));
    return login + 3;
}

/* Finds the password of Sentinels among the parameters. */
static char *find_sentinel_password(char *url, size_t *len)
{
    static const char name[] = "sentinel-password=";
    char *at = strstr(find_parameters(url), name);

    if (!at)
        return NULL;
    *len = strcspn(at + strlen(name), "&");
    return at + strlen(name);
}

/* Everybody can read the arguments of a process: the passwords go on in a copy. */
static int hide_login(struct cli *cli)
{
    static char *copy;
    char *url = (char *)cli->redis_url, *login, *sentinel; /* a word of argv */
    bool has_password;
    size_t len = 0, sentinel_len = 0;

    login = url ? find_login(url, &len) : NULL;
    sentinel = url ? find_sentinel_password(url, &sentinel_len) : NULL;
    if (!login && !sentinel)
        return 0;
    free(copy); /* of the command before */
    copy = strdup(url);
    if (!copy)
        return error_no_memory(&cli->error, cli->command->name);
    cli->redis_url = copy;
    has_password = sentinel || memchr(login, ':', len);
    if (login)
        memset(login, '*', len);
    if (sentinel)
        memset(sentinel, '*', sentinel_len);
    if (has_password)
        fputs("weir: --redis: the password is visible in the process list; use REDIS_URL or --password-file "
              "instead\n",
              stderr);
    return 0;
}

/* What the flags that all commands take have said, besides what stands in struct cli. */
struct given {
    bool help, utc;
    const char *color, *config;
};

static void add_common_flags(struct parser *p, struct cli *cli, struct given *given)
{
    struct redis_flags *redis = &cli->redis_flags;
    const struct flag common[] = {
        {"redis", 0, FLAG_TEXT, "URL",
         "where Redis is, such as redis://host:6379/0; weir help connection says more", &cli->redis_url},
        {"namespace", 0, FLAG_TEXT, "NAME",
         "what all keys in Redis begin with, else $WEIR_NAMESPACE; default weir", &cli->ns},
        {"config", 0, FLAG_TEXT, "FILE", "in place of the usual files; weir help weir.conf says more",
         &given->config},
        {"json", 0, FLAG_BOOL, NULL, "JSON on standard output, and nothing else there", &cli->json},
        {"utc", 0, FLAG_BOOL, NULL, "times are UTC, not local", &given->utc},
        {"color", 0, FLAG_TEXT, "WHEN", "auto, always or never; auto: on a terminal without $NO_COLOR",
         &given->color},
        {"help", 'h', FLAG_BOOL, NULL, "this text", &given->help},
        {"password-file", 0, FLAG_TEXT, "FILE", "a file with the password of Redis", &redis->password_file},
        {"password-command", 0, FLAG_TEXT, "COMMAND",
         "a command that prints the password; run at each connect", &redis->password_command},
        {"tls-cacert", 0, FLAG_TEXT, "FILE",
         "of rediss://: the issuer's certificate; default: the system's issuers", &redis->cacert},
        {"tls-cacertdir", 0, FLAG_TEXT, "DIR", "a folder of issuers' certificates", &redis->cacertdir},
        {"tls-cert", 0, FLAG_TEXT, "FILE", "the certificate to show to Redis", &redis->cert},
        {"tls-key", 0, FLAG_TEXT, "FILE", "the key of --tls-cert, when that file does not have it",
         &redis->key},
        {"tls-sni", 0, FLAG_TEXT, "NAME", "the name of the server, where it is not the host", &redis->sni},
        {"tls-insecure", 0, FLAG_BOOL, NULL, "takes any certificate, an impostor's too", &redis->insecure},
        {.name = NULL},
    };

    static_assert(sizeof common <= sizeof p->common, "COMMON_MOST is too small");
    memcpy(p->common, common, sizeof common);
    add_flags(p, p->common);
}

int cli_common_words(const char *word)
{
    struct parser p = {.count = 0};
    size_t len = strcspn(word, "=");

    add_common_flags(&p, &(struct cli){.ns = NULL}, &(struct given){.help = false});
    for (int i = 0; i < p.count; i++)
        if (strncmp(word, "--", 2) == 0 && strlen(p.flags[i]->name) == len - 2 &&
            strncmp(word + 2, p.flags[i]->name, len - 2) == 0)
            return p.flags[i]->kind == FLAG_BOOL || word[len] ? 1 : 2;
    return 0;
}

/* Everybody can read that file. */
static void warn_of_password(struct cli *cli)
{
    const struct setting *redis = config_find(&cli->config, "", "redis");
    size_t len = 0;
    char *login = redis && redis->line ? find_login((char *)redis->value, &len) : NULL;

    if (!(login && memchr(login, ':', len)) &&
        !(redis && redis->line && find_sentinel_password((char *)redis->value, &len)))
        return;
    for (size_t i = 0; i < CONFIG_FILES_MOST; i++)
        if (cli->config.files[i].path == redis->file && cli->config.files[i].open_to_all)
            output_to(stderr,
                      "weir: %s:%d: everybody can read the password; chmod o-r %s, or use password-file\n",
                      redis->file, redis->line, redis->file);
}

/* Reads files and environment in places where the command line says nothing. */
static int read_config(struct parser *p, const struct flag *flags, const char *path)
{
    struct cli *cli = p->cli;
    bool address = cli->redis_url;
    int status = config_load(&cli->config, path, &cli->error);

    if (status == 0)
        status = add_said(p);
    if (status < 0)
        return status;
    settle_connection(&cli->config);
    status = cli_read_section(cli, p->common, "", "", cli_is_of_all);
    if (status == 0 && flags && config_is_of_command(cli->command->name))
        status = cli_read_section(cli, flags, cli->command->name, "", cli_is_of_section);
    if (status == 0 && !address)
        warn_of_password(cli);
    return status;
}

static int obey_common_flags(struct cli *cli, const struct parser *p, const struct given *given)
{
    if (cli->json && cli->command->logs)
        return cli_usage(cli, "%s --json: it prints no document; leave it out", p->where);
    if (given->utc)
        format_in_utc();
    if (given->color && !color_set(given->color))
        return cli_usage(cli, "%s --color %.20s: must be auto, always or never", p->where, given->color);
    return 0;
}

int cli_parse(struct cli *cli, const struct flag *flags, int argc, char **argv, int *operands)
{
    struct given given = {.help = false};
    struct parser p = {.cli = cli};
    const char *name = cli->command->name;
    int status;

    snprintf(p.where, sizeof p.where, strcmp(name, argv[0]) == 0 ? "%s" : "%s %s", name, argv[0]);
    add_flags(&p, flags);
    p.own = p.count;
    add_common_flags(&p, cli, &given);
    prepare_getopt(&p);
    status = parse_all(&p, argc, argv);
    if (cli->on_flags) {
        cli->on_flags(cli->command, &(struct help_flags){p.flags, p.own, p.count});
        return WEIR_EUSAGE;
    }
    if (given.help) {
        status = help_print(cli, argv[optind], &(struct help_flags){p.flags, p.own, p.count});
        if (status == 0)
            exit(0);
        return status;
    }
    if (status == 0)
        status = hide_login(cli);
    if (status == 0 && !cli->command->no_config)
        status = read_config(&p, flags, given.config);
    if (status == 0)
        status = obey_common_flags(cli, &p, &given);
    if (status < 0)
        return status;
    *operands = argc - optind;
    memmove(argv, argv + optind, (size_t)*operands * sizeof *argv);
    argv[*operands] = NULL;
    return 0;
}

int cli_parse_alone(struct cli *cli, const struct flag *flags, int argc, char **argv)
{
    int operands, status = cli_parse(cli, flags, argc, argv, &operands);

    if (status == 0 && operands > 0)
        status = cli_usage(cli, "%s %.100s: takes no arguments; weir help %s lists the flags",
                           cli->command->name, argv[0], cli->command->name);
    return status;
}
