/* The words of a command that no shell reads: blanks part them, quotes keep them together. */
#pragma once

#include <stddef.h>

/* What is said of a character, its %c, that only a shell could read. */
#define WORDS_FOR_SHELL                                                                                      \
    "no shell reads COMMAND, and %c is for one; name it: sh -c '...', or put the word into single quotes"

/* Splits command into at most `most` words and a NULL behind them; they stand in out, which has its size. Returns what only a shell could read:
 * such a character, or a quote that does not end; 0: nothing. */
char words_split(const char *command, char *out, char **words, size_t most);
