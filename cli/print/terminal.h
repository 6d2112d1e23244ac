/* What a terminal allows. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* True when it is a terminal that allows colours or bars (NO_COLOR, TERM=dumb). */
bool cli_is_terminal(FILE *stream);
/* Columns of a line there: $COLUMNS, else those of the terminal; 0: no end. */
int cli_line_width(FILE *stream);
