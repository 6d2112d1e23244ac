#include "serve/resource.h"

#include <stdbool.h>
#include <string.h>

#include "serve/fields.h"

static bool matches(const char *pattern, const char *path, char names[RESOURCE_NAMES][RESOURCE_NAME_SIZE])
{
    int n = 0;

    while (*pattern) {
        size_t len = strcspn(path, "/?");

        if (*pattern == '*') {
            if (len == 0 || len >= RESOURCE_NAME_SIZE || n == RESOURCE_NAMES ||
                !url_decode(path, len, false, names[n++]))
                return false;
            pattern++;
            path += len;
        } else if (*pattern++ != *path++) {
            return false;
        }
    }
    return *path == '\0' || *path == '?';
}

const struct resource *resource_find(const struct resource *table, const char *path,
                                     char names[RESOURCE_NAMES][RESOURCE_NAME_SIZE])
{
    for (; table->path; table++)
        if (matches(table->path, path, names))
            return table;
    return NULL;
}
