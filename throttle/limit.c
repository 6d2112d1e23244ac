#include "throttle/limit.h"

#include <string.h>

int limit_name_check(const char *what, const char *name, struct error *e)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

    if (len == 0 || len >= LIMIT_NAME_SIZE || name[len])
        return error_set(e, WEIR_EINPUT, "%s '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -",
                         what, name);
    return 0;
}
