#include "cli/print/color.h"

#include <stdarg.h>
#include <string.h>

#include "cli/print/terminal.h"
#include "view/output.h"

enum when { AUTO, ALWAYS, NEVER };
static const char *const words[] = {[AUTO] = "auto", [ALWAYS] = "always", [NEVER] = "never"};
static enum when chosen;

bool color_set(const char *when)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(when, words[i]) == 0) {
            chosen = (enum when)i;
            return true;
        }
    return false;
}

bool color_is_on(FILE *to)
{
    return chosen != NEVER && (chosen == ALWAYS || cli_is_terminal(to));
}

static bool has_color(FILE *to, enum tone tone)
{
    return tone != TONE_PLAIN && color_is_on(to);
}

void tone_begin(FILE *to, enum tone tone)
{
    static const char *const codes[] = {
        [TONE_PLAIN] = "", [TONE_WRONG] = "\033[31m", [TONE_WARNING] = "\033[33m", [TONE_GOOD] = "\033[32m"};

    if (has_color(to, tone))
        fputs(codes[tone], to);
}

void tone_end(FILE *to, enum tone tone)
{
    if (has_color(to, tone))
        fputs("\033[0m", to);
}

void output_toned(FILE *to, enum tone tone, const char *fmt, ...)
{
    va_list values;

    tone_begin(to, tone);
    va_start(values, fmt);
    output_list(to, fmt, values);
    va_end(values);
    tone_end(to, tone);
}
