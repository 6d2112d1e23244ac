/* What may stand next on a command line, for the completions of shells: "word<TAB>what it is" a line. It comes from the tables that
 * commands and help have, names from Redis: those within 150 ms, else none. What is a file is left to the shell. */
#pragma once

#include "cli/help.h"

/* Names of commands, the first of words. */
void complete_command(const struct command *const *commands, size_t count, const char *word);
/* Completes the last of words, which begin with the name of c. */
void complete_word(const struct command *c, const struct help_flags *flags, char **words, int count);
