#include "core/given.h"

#include <stdarg.h>
#include <stddef.h>

int given(struct error *e, const char *function, ...)
{
    int status = e ? 0 : WEIR_EUSAGE;
    const char *name;
    va_list pairs;

    va_start(pairs, function);
    while (status == 0 && (name = va_arg(pairs, const char *)))
        if (!va_arg(pairs, const char *))
            status = error_set(e, WEIR_EUSAGE, "%s: %s is NULL; weir.h says what it must be", function, name);
    va_end(pairs);
    return status;
}
