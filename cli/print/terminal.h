/* What a terminal allows. */
#ifndef CLI_PRINT_TERMINAL_H
#define CLI_PRINT_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Is it a terminal, and colours or bars allowed there (NO_COLOR, TERM=dumb)? */
bool cli_is_terminal(FILE *stream);
/* Columns of a line there: $COLUMNS, else those of the terminal; 0: no end. */
int cli_line_width(FILE *stream);

#endif
