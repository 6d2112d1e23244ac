#include "core/given.h"

#include <stdarg.h>
#include <string.h>

/* "weir_enqueue_sized" is what programs know as weir_enqueue. */
static int name_len(const char *function)
{
    const char *sized = strstr(function, "_sized");

    return (int)(sized ? (size_t)(sized - function) : strlen(function));
}

int given(struct error *e, const char *function, ...)
{
    int status = e ? 0 : WEIR_EUSAGE;
    const char *name;
    va_list pairs;

    va_start(pairs, function);
    while (status == 0 && (name = va_arg(pairs, const char *)))
        if (!va_arg(pairs, const char *))
            status = error_set(e, WEIR_EUSAGE, "%.*s: %s is NULL; weir.h says what it must be",
                               name_len(function), function, name);
    va_end(pairs);
    return status;
}

const void *given_struct(struct error *e, const char *function, const void *theirs, size_t size, void *own,
                         size_t own_size)
{
    const char *bytes = theirs;

    if (size == own_size)
        return theirs;
    for (size_t i = own_size; i < size; i++)
        if (bytes[i]) {
            error_set(e, WEIR_EUSAGE,
                      "%.*s: a member is set that version " WEIR_VERSION
                      " does not know; install the libweir that the program was built with",
                      name_len(function), function);
            return NULL;
        }
    memset(own, 0, own_size);
    return memcpy(own, theirs, size < own_size ? size : own_size);
}

void give_struct(void *theirs, size_t size, const void *own, size_t own_size)
{
    size_t both = size < own_size ? size : own_size;

    memset((char *)theirs + both, 0, size - both);
    memcpy(theirs, own, both);
}
