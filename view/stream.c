#include "view/stream.h"

static ssize_t on_write(void *to, const char *bytes, size_t len)
{
    struct error ignored;

    return text_add(to, bytes, len, &ignored) == 0 ? (ssize_t)len : 0;
}

FILE *view_stream(struct text *to)
{
    return fopencookie(to, "w", (cookie_io_functions_t){.write = on_write});
}
