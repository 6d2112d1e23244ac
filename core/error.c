#include "core/error.h"

#include "core/decimal.h"
#include <stdarg.h>

#undef error_set
#undef error_no_memory

int error_set(struct error *e, int status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    decimal_vprint(e->text, sizeof e->text, fmt, args);
    va_end(args);
    e->status = status;
    return status;
}

int error_no_memory(struct error *e, const char *what)
{
    return error_set(e, WEIR_EINTERNAL, "%s: out of memory; free some and try again", what);
}
