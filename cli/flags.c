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
#include "core/likely.h"
#include "throttle/rule.h"

#define LONG_BASE 1000 /* getopt_long's value of flag i is LONG_BASE + i: clear of all letters */
#define WORD_MAX 64    /* how much of a word a message repeats */

#define COMMON_MOST 20 /* flags that every command takes */

struct parser {
    struct cli *cli;
    char where[WORD_MAX]; /* "enqueue", "rate set": how messages begin */
    struct flag common[COMMON_MOST];
    const struct flag *flags[FLAGS_MAX];
    int own, count; /* the first own of count are the command's, the others those that every command takes */
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
        [FLAG_BOOL] = no_argument,           [FLAG_TEXT] = required_argument,
        [FLAG_INT] = required_argument,      [FLAG_DURATION] = required_argument,
        [FLAG_REPEATED] = required_argument, [FLAG_OPTIONAL_TEXT] = optional_argument,
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
        return error_set(&p->cli->error, WEIR_EUSAGE, "%s --%s: unknown flag; did you mean --%s?", p->where,
                         name, likely);
    return error_set(&p->cli->error, WEIR_EUSAGE, "%s --%s: unknown flag; weir help %s lists the flags",
                     p->where, name, p->cli->command->name);
}

static int unknown_letter(struct parser *p, int letter)
{
    return error_set(
        &p->cli->error, WEIR_EUSAGE,
        "%s -%c: unknown flag; weir help %s lists the flags, and -- stands before an argument that "
        "begins with -",
        p->where, letter, p->cli->command->name);
}

static int missing_value(struct parser *p, const char *word)
{
    return error_set(&p->cli->error, WEIR_EUSAGE, "%s %s: needs a value; weir help %s says which", p->where,
                     word, p->cli->command->name);
}

/* As of a shell variable that is not set: nobody means by that what leaving the flag out means. */
static int empty_value(struct parser *p, const struct flag *f)
{
    return error_set(&p->cli->error, WEIR_EUSAGE,
                     "%s --%s: its value is empty; give one, or leave the flag out", p->where, f->name);
}

static int set_int(struct parser *p, const struct flag *f, const char *text)
{
    const char *at = text ? text + (*text == '-') : NULL;
    int64_t value;

    assert(text);
    if (!count_read(&at, INT64_MAX / 100, &value) || *at)
        return error_set(&p->cli->error, WEIR_EUSAGE, "%s --%s %.60s: not a whole number; write --%s 10",
                         p->where, f->name, text, f->name);
    *(long long *)f->target = *text == '-' ? -value : value;
    return 0;
}

static int set_duration(struct parser *p, const struct flag *f, const char *text)
{
    struct error why;

    if (duration_parse(text, f->target, &why) < 0)
        return error_set(&p->cli->error, WEIR_EUSAGE, "%s --%s: %s", p->where, f->name, why.text);
    return 0;
}

static int add_value(struct parser *p, const struct flag *f, const char *text)
{
    struct flag_values *values = f->target;

    if (values->count == FLAG_VALUES_MAX)
        return error_set(&p->cli->error, WEIR_EUSAGE, "%s --%s: given more than %d times; give fewer",
                         p->where, f->name, FLAG_VALUES_MAX);
    values->at[values->count++] = text;
    return 0;
}

/* Notes a flag of the command's own; those that every command takes stand behind them. */
static void note_given(struct parser *p, const struct flag *f)
{
    for (int i = 0; i < p->own; i++)
        if (p->flags[i] == f && !cli_gave(p->cli, f->name))
            p->cli->given[p->cli->given_count++] = f->name;
}

static int set_flag(struct parser *p, const struct flag *f, const char *text)
{
    if (text && !*text)
        return empty_value(p, f);
    note_given(p, f);
    switch (f->kind) {
    case FLAG_BOOL:
        *(bool *)f->target = true;
        return 0;
    case FLAG_TEXT:
        *(const char **)f->target = text;
        return 0;
    case FLAG_OPTIONAL_TEXT:
        *(const char **)f->target = text ? text : "";
        return 0;
    case FLAG_INT:
        return set_int(p, f, text);
    case FLAG_DURATION:
        return set_duration(p, f, text);
    case FLAG_REPEATED:
        return add_value(p, f, text);
    }
    return 0;
}

static const struct flag *flag_of_letter(const struct parser *p, int letter)
{
    for (int i = 0; i < p->count; i++)
        if (p->flags[i]->letter == letter)
            return p->flags[i];
    return NULL;
}

/* One answer of getopt_long; word is the argument that it came from, when that was a long flag. */
static int parse_one(struct parser *p, int found, const char *word)
{
    const struct flag *f = found >= LONG_BASE ? p->flags[found - LONG_BASE] : flag_of_letter(p, found);

    if (found == ':')
        return missing_value(p, word);
    if (found == '?' && optopt >= LONG_BASE)
        return error_set(&p->cli->error, WEIR_EUSAGE,
                         "%s --%s: takes no value; leave out what stands behind the =", p->where,
                         p->flags[optopt - LONG_BASE]->name);
    if (found == '?' && optopt)
        return unknown_letter(p, optopt);
    if (found == '?' || (found >= LONG_BASE && strcspn(word + 2, "=") != strlen(f->name)))
        return unknown_flag(p, word);
    return set_flag(p, f, optarg);
}

/* "--wait 30s": a duration behind a flag whose value may be missing is its value. */
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

bool cli_gave(const struct cli *cli, const char *flag)
{
    for (int i = 0; i < cli->given_count; i++)
        if (strcmp(cli->given[i], flag) == 0)
            return true;
    return false;
}

/* ---- The password of --redis */

/* Where the parameters of an address begin, or its end; a password that nobody has encoded may have a ? too. */
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

/* The password of Sentinels, among the parameters. */
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
    const char *color;
};

static void add_common_flags(struct parser *p, struct cli *cli, struct given *given)
{
    struct redis_flags *redis = &cli->redis_flags;
    const struct flag common[] = {
        {"redis", 0, FLAG_TEXT, "URL",
         "where Redis is, such as redis://host:6379/0; weir help connection says more", &cli->redis_url},
        {"namespace", 0, FLAG_TEXT, "NAME",
         "what all keys in Redis begin with; else $WEIR_NAMESPACE, else weir", &cli->ns},
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

static int obey_common_flags(struct cli *cli, const struct parser *p, const struct given *given)
{
    if (cli->json && cli->command->logs)
        return error_set(&cli->error, WEIR_EUSAGE, "%s --json: it prints no document; leave it out",
                         p->where);
    if (given->utc)
        format_in_utc();
    if (given->color && !color_set(given->color))
        return error_set(&cli->error, WEIR_EUSAGE, "%s --color %.20s: must be auto, always or never",
                         p->where, given->color);
    return hide_login(cli);
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
        status =
            error_set(&cli->error, WEIR_EUSAGE, "%s %.100s: takes no arguments; weir help %s lists the flags",
                      cli->command->name, argv[0], cli->command->name);
    return status;
}
