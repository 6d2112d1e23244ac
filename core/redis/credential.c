#include "core/redis/credential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void credential_path(const char *name, char path[PATH_MAX])
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");

    if (folder && *folder && !strchr(name, '/'))
        snprintf(path, PATH_MAX, "%s/%s", folder, name);
    else
        snprintf(path, PATH_MAX, "%s", name);
}
