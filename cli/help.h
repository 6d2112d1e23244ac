/* Help: a text file for each command, cli/help/NAME.txt, and the command's table of flags.
 *
 *   $ weir rate set mail 10/s              an example
 *   Sets, lists and removes limits.        the summary, one line
 *
 *   What holds for all forms.
 *
 *   # set NAME RULE... [--dry-run]         a form, with the flags that only some forms have
 *   What it does. Lines that begin with two blanks stay as they are.
 *
 *   $ weir rate set mail 100/1m,burst=20   its examples
 *
 * Behind them stand the flags: of an action those that its row names. connection.txt and weir.conf.txt are pages of their own. The summary has at most 67
 * characters, so that weir help fits 80 columns; other lines have 78. */
#pragma once

#include <stdio.h>

#include "cli/cli.h"

struct help_text {
    const char *name, *text;
};
extern const struct help_text help_texts[]; /* ends with a NULL name */

/* A command's own flags, and those that every command takes. */
struct help_flags {
    const struct flag *const *at;
    int own, count;
};

/* All of it, or of a command that has actions the forms of one, and its flags. WEIR_EUSAGE and cli->error when there is none of that name. */
WEIR_CHECKED int help_print(struct cli *cli, const char *word, const struct help_flags *flags);
/* Where Redis is: the page behind --redis, with its flags. The text has no form, so c is not looked at. */
void help_print_connection(const struct command *c, const struct help_flags *flags);
/* The page of weir.conf, which has no form either; and the names that a section has, behind it. */
void help_print_file(const struct command *c);
void help_print_names(const struct command *c, const struct help_flags *flags);
void help_print_section(const char *section, const struct flag *flags);
/* Prints all commands, a line each. */
void help_print_overview(FILE *to, const struct command *const *commands, size_t count);
/* Finds the summary of a command, and its forms one by one ("set NAME RULE..."), from *text on, NULL at first; false: there is none. */
#define WHAT_SIZE 128
void help_summary(const char *command, char out[WHAT_SIZE]);
bool help_next_form(const char *command, const char **text, char out[WHAT_SIZE]);
/* doc/cli.md: what it begins with, then a section for each command. */
void help_print_markdown_head(const struct command *c, const struct help_flags *flags);
void help_print_markdown(const struct command *c, const struct help_flags *flags);
