#include "cli/confirm.h"

#include <stdarg.h>
#include <unistd.h>

bool cli_asks(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

int cli_confirm(struct cli *cli, bool yes, const char *question, ...)
{
    char answer[16];
    va_list values;

    if (yes || !cli_asks())
        return 0;
    va_start(values, question);
    vfprintf(stderr, question, values);
    va_end(values);
    fputs(" [y/N] ", stderr);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y'))
        return 0;
    return error_set(&cli->error, WEIR_ENOTNOW, "%s: nothing was changed; answer y, or give --yes",
                     cli->command->name);
}
