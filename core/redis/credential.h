/* credential: the files that say who we are to Redis. */
#ifndef CORE_REDIS_CREDENTIAL_H
#define CORE_REDIS_CREDENTIAL_H

#include <limits.h>

/* Where a file stands: a name without a slash is that of a systemd credential, in $CREDENTIALS_DIRECTORY, where that
 * is set. */
void credential_path(const char *name, char path[PATH_MAX]);

#endif
