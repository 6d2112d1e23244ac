#include "cli/confirm.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#define DEED_SIZE 400

static bool is_on_terminal(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static int ask(struct cli *cli, const char *action, const char *what)
{
    char answer[16];

    output_to(stderr, "%s? [y/N] ", what);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y'))
        return 0;
    return error_set(&cli->error, WEIR_ENOTNOW, "%s: nothing was changed", action);
}

int cli_confirm(struct cli *cli, bool yes, const char *action, const char *what, ...)
{
    char text[DEED_SIZE];
    va_list values;

    if (yes)
        return 0;
    va_start(values, what);
    vsnprintf(text, sizeof text, what, values);
    va_end(values);
    if (is_on_terminal())
        return ask(cli, action, text);
    return cli_usage(cli, "%s: would %s, and nobody can be asked here; add --yes%s", action, text,
                     strstr(cli->action->flags, "dry-run") ? ", or --dry-run to change nothing" : "");
}

int cli_confirm_one(struct cli *cli, bool yes, const char *action, const char *what, const char *name)
{
    char text[DEED_SIZE];

    if (yes || !is_on_terminal())
        return 0;
    snprintf(text, sizeof text, "%s %.200s", what, name);
    return ask(cli, action, text);
}
