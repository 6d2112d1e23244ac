/* Files that people name, read where nothing may wait: what has no end is refused. */
#ifndef CORE_FILE_H
#define CORE_FILE_H

#include <stdio.h>

/* Opens a file to read. A terminal and a named FIFO would keep the reader until somebody writes, so they are refused unless they are the
 * standard input; what a shell gives as <(...) is taken. NULL: it cannot, and file_why() says why. */
FILE *file_open(const char *path);
/* Says what errno means after file_open(). */
const char *file_why(int error);

#endif
