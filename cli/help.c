#include "cli/help.h"

#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 28
#define LINE_MOST 80
#define WHAT_IT_IS "weir: a job queue on Redis; workers hold each type of task to its rate, exactly"
#define EXIT_CODES                                                                                           \
    "Exit codes: 0 done; 1 report: something is wrong; 64 wrong usage; 65 wrong\n"                           \
    "input; 66 no such job, limit or batch; 69 Redis not reachable; 70 internal\n"                           \
    "error; 75 not now; 77 Redis refused the login or a permission; 78 wrong\n"                              \
    "configuration.\n"

/* ---- Reading a text, line by line */

struct line {
    const char *at;
    int len;
};

/* Takes the line at *text, which moves behind it; false at the end. */
static bool next_line(const char **text, struct line *line)
{
    *line = (struct line){*text, (int)strcspn(*text, "\n")};
    if (!**text)
        return false;
    *text += line->len + ((*text)[line->len] == '\n');
    return true;
}

static bool is_form(const struct line *line)
{
    return line->len > 0 && line->at[0] == '#';
}

static bool is_example(const struct line *line)
{
    return line->len > 2 && line->at[0] == '$';
}

/* Returns "set NAME RULE..." of "# set NAME RULE...". */
static struct line form_of(const struct line *line)
{
    int skipped = line->len > 1 ? 2 : 1;

    return (struct line){line->at + skipped, line->len - skipped};
}

static const char *text_of_command(const char *name)
{
    const struct help_text *h = help_texts;

    while (h->name && strcmp(h->name, name) != 0)
        h++;
    return h->name ? h->text : "";
}

static struct line summary_of(const char *command)
{
    const char *text = text_of_command(command);
    struct line line = {"", 0};

    if (next_line(&text, &line))
        next_line(&text, &line);
    return line;
}

/* ---- Forms */

static bool begins_with_word(const struct line *form, const char *word)
{
    int len = word ? (int)strlen(word) : 0;

    return len > 0 && form->len >= len && strncmp(form->at, word, (size_t)len) == 0 &&
           (form->len == len || form->at[len] == ' ');
}

/* Where the form that begins with word is; NULL: there is none. */
static const char *find_form(const char *text, const char *word)
{
    for (struct line line; next_line(&text, &line);) {
        struct line form = form_of(&line);

        if (is_form(&line) && begins_with_word(&form, word))
            return line.at;
    }
    return NULL;
}

void help_summary(const char *command, char out[WHAT_SIZE])
{
    struct line line = summary_of(command);

    snprintf(out, WHAT_SIZE, "%.*s", line.len, line.at);
}

bool help_next_form(const char *command, const char **text, char out[WHAT_SIZE])
{
    struct line line;

    *text = *text ? *text : text_of_command(command);
    while (next_line(text, &line)) {
        struct line form = form_of(&line);

        if (!is_form(&line))
            continue;
        snprintf(out, WHAT_SIZE, "%.*s", form.len, form.at);
        return true;
    }
    return false;
}

static bool is_shown(const struct command *c, const char *action, const struct flag *f, bool own)
{
    if ((c->logs && strcmp(f->name, "json") == 0) || (own && c->takes_others_flags))
        return false;
    return !own || !action || actions_have(c->actions, action, f->name);
}

/* ---- As text */

/* Prints from HELP_COLUMN on, each line below the other. */
static void print_wrapped(const char *text)
{
    int column = 0;

    for (int len; *text; text += len + (text[len] == ' ')) {
        len = (int)strcspn(text, " ");
        if (column > 0 && column + 1 + len > LINE_MOST - HELP_COLUMN) {
            output("\n%*s", HELP_COLUMN, "");
            column = 0;
        }
        output("%s%.*s", column > 0 ? " " : "", len, text);
        column += len + (column > 0);
    }
    output("\n");
}

static void print_flag(const struct flag *f)
{
    char left[96];
    int len = snprintf(left, sizeof left, "  %c%c%c --%s", f->letter ? '-' : ' ', f->letter ? f->letter : ' ',
                       f->letter ? ',' : ' ', f->name);

    if (f->value)
        len += snprintf(left + len, sizeof left - (size_t)len,
                        f->kind == FLAG_OPTIONAL_TEXT ? "[=%s]" : " %s", f->value);
    if (len > HELP_COLUMN - 2)
        output("%s\n%*s", left, HELP_COLUMN, "");
    else
        output("%-*s", HELP_COLUMN, left);
    print_wrapped(f->help);
}

/* Finds the first of the flags that weir help connection lists, which stand last. */
static int first_of_connection(const struct help_flags *flags)
{
    int i = flags->own;

    while (i < flags->count && strcmp(flags->at[i]->name, "password-file") != 0)
        i++;
    return i;
}

static void print_flags(const struct command *c, const char *word, const struct help_flags *flags)
{
    const char *heading = "Flags";

    for (int i = 0; i < first_of_connection(flags); i++) {
        if (i == flags->own)
            heading = "Flags of every command";
        if (!is_shown(c, word, flags->at[i], i < flags->own))
            continue;
        if (heading)
            output("\n%s\n", heading);
        heading = NULL;
        print_flag(flags->at[i]);
    }
}

static void print_line(const struct command *c, const struct line *line, bool indented)
{
    struct line form = form_of(line);

    if (is_form(line))
        output("weir %s%s%.*s\n", c->name, form.len ? " " : "", form.len, form.at);
    else if (line->len == 0)
        output("\n");
    else
        output("%s%.*s\n", indented || is_example(line) ? "  " : "", line->len, line->at);
}

static void print_first_example(const char *text)
{
    struct line line;

    while (next_line(&text, &line) && !is_example(&line))
        ;
    output("Example: %.*s\n\n", line.len - 2, line.at + 2);
}

/* Prints the forms that begin with word, without the blank line behind the last. */
static void print_forms(const struct command *c, const char *text, const char *word)
{
    const struct line blank = {"", 0};
    bool asked = false, owed = false;

    for (struct line line; next_line(&text, &line);) {
        struct line form = form_of(&line);

        asked = is_form(&line) ? begins_with_word(&form, word) : asked;
        if (!asked)
            continue;
        if (owed && line.len > 0)
            print_line(c, &blank, false);
        owed = line.len == 0;
        if (!owed)
            print_line(c, &line, false);
    }
}

/* Prints a whole text but for the example that it begins with. */
static void print_whole(const struct command *c, const char *text)
{
    bool in_form = false;
    struct line line;

    if (next_line(&text, &line))
        while (next_line(&text, &line)) {
            in_form |= is_form(&line);
            print_line(c, &line, in_form);
        }
}

int help_print(struct cli *cli, const char *word, const struct help_flags *flags)
{
    const struct command *c = cli->command;
    const char *text = text_of_command(c->name), *form;

    word = word && c->actions ? cli_action(word) : NULL;
    form = word ? find_form(text, word) : NULL;
    if (word && !form)
        return cli_unknown(cli, word);
    print_first_example(form ? form : text);
    if (form)
        print_forms(c, form, word);
    else
        print_whole(c, text);
    print_flags(c, word, flags);
    return 0;
}

void help_print_connection(const struct command *c, const struct help_flags *flags)
{
    const char *text = text_of_command("connection");

    print_first_example(text);
    print_whole(c, text);
    output("\nFlags of every command\n");
    for (int i = first_of_connection(flags); i < flags->count; i++)
        print_flag(flags->at[i]);
}

/* Names with blanks between them, below a section of weir.conf. */
static void print_names(const char *section, const char *what, const struct help_flags *flags, int from,
                        int to, bool (*takes)(const struct flag *))
{
    int column = LINE_MOST;

    output("\n%s: %s", section, what);
    for (int i = from; i < to; i++) {
        int len = (int)strlen(flags->at[i]->name);

        if (!takes(flags->at[i]))
            continue;
        if (column + 1 + len > LINE_MOST) {
            output("\n ");
            column = 1;
        }
        output(" %s", flags->at[i]->name);
        column += 1 + len;
    }
    output("\n");
}

void help_print_file(const struct command *c)
{
    const char *text = text_of_command("weir.conf");

    print_first_example(text);
    print_whole(c, text);
}

void help_print_section(const char *section, const struct flag *flags)
{
    output("\n[%s NAME]: weir apply\n", section);
    for (; flags->name; flags++) {
        char left[64];

        snprintf(left, sizeof left, "  %s = %s", flags->name, flags->value);
        output("%-*s", HELP_COLUMN, left);
        print_wrapped(flags->help);
    }
}

void help_print_names(const struct command *c, const struct help_flags *flags)
{
    char section[64], what[64];

    if (!config_is_of_command(c->name)) {
        print_names("Before the first section", "flags of every command", flags, flags->own, flags->count,
                    cli_is_of_all);
        return;
    }
    snprintf(section, sizeof section, "[%s]", c->name);
    snprintf(what, sizeof what, "flags of weir %s", c->name);
    print_names(section, what, flags, 0, flags->own, cli_is_of_section);
    if (strcmp(c->name, "worker") == 0)
        print_names("[handler TYPE], or TYPE,TYPE", what, flags, 0, flags->own, cli_is_of_type);
}

void help_print_overview(FILE *to, const struct command *const *commands, size_t count)
{
    output_to(to, "Example: weir enqueue mail '{\"to\":\"a@example.com\"}'\n\n" WHAT_IT_IS
                  "\n\nweir COMMAND [ARGUMENTS] [FLAGS]\n\n");
    for (size_t i = 0; i < count; i++) {
        struct line summary = summary_of(commands[i]->name);

        output_to(to, "  %-10s %.*s\n", commands[i]->name, summary.len, summary.at);
    }
    fputs("\nweir help COMMAND says more about one of them, weir help connection where\nRedis "
          "is, weir help weir.conf what a file may say.\n\n" EXIT_CODES,
          to);
}

/* ---- As Markdown: the same, in a block of code for each command */

void help_print_markdown(const struct command *c, const struct help_flags *flags)
{
    const struct help_flags own = {flags->at, flags->own, flags->own};

    output("\n## weir %s\n\n```text\n", c->name);
    print_whole(c, text_of_command(c->name));
    print_flags(c, NULL, &own);
    output("```\n");
}

void help_print_markdown_head(const struct command *c, const struct help_flags *flags)
{
    output("# The commands\n\n<!-- Printed by weir help --markdown, from cli/help/ and the tables of flags. "
           "-->\n\n"
           "`weir help COMMAND` prints the same. " EXIT_CODES "\n## Flags of every command\n\n```text\n");
    for (int i = flags->own; i < first_of_connection(flags); i++)
        print_flag(flags->at[i]);
    output("```\n\n## weir help connection\n\n```text\n");
    help_print_connection(c, flags);
    output("```\n");
}
