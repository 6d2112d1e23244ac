/* Files that people name, read where nothing may wait: what has no end is refused. */
#pragma once

#include <stdio.h>

/* Opens a file to read. A terminal and a named FIFO would keep the reader until somebody writes, so they are refused unless they are the
 * standard input; what a shell gives as <(...) is taken. A pipe can be read once, and many files are read again, so what it gave, at most 1 MiB,
 * is kept in memory for the next who opens it; fileno() knows no such file. NULL: it cannot, and file_why() says why. */
FILE *file_open(const char *path);
/* Says what errno means after file_open(). */
const char *file_why(int error);
