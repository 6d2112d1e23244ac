#include "cli/confirm.h"

#include <stdarg.h>
#include <unistd.h>

#define DEED_SIZE 400

static bool is_on_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

int cli_confirm(struct cli *cli, bool yes, const char *action, const char *deed, ...)
{
    char text[DEED_SIZE], answer[16];
    va_list values;

    if (yes)
        return 0;
    va_start(values, deed);
    vsnprintf(text, sizeof text, deed, values);
    va_end(values);
    if (!is_on_terminal())
        return error_set(
            &cli->error, WEIR_EUSAGE,
            "%s: would %s, and nobody can be asked here; add --yes, or --dry-run to change nothing", action,
            text);
    output_to(stderr, "%s? [y/N] ", text);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y'))
        return 0;
    return error_set(&cli->error, WEIR_ENOTNOW, "%s: nothing was changed", action);
}
