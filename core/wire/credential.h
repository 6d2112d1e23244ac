/* credential: what says who we are to Redis and is not in the address: files, and a command that prints a password. */
#pragma once

#include <limits.h>

#include "core/error.h"
#include "core/wire/address.h"

/* Where a file stands: a name without a slash is that of a systemd credential, in $CREDENTIALS_DIRECTORY, where that
 * is set. */
void credential_path(const char *name, char path[PATH_MAX]);

/* True when a file or a command must be asked for the password. */
bool credential_is_asked(const struct redis_address *address);
#define CREDENTIAL_COMMAND_S 10 /* how long the command may take; then it is killed */
/* Asks it: what it holds or prints, without one newline at its end. Waits. address->password is filled in. WEIR_ECONFIG: no
 * such file, or program; WEIR_EUNREACHABLE: the command fails. No line shows the password. */
WEIR_CHECKED int credential_ask(struct redis_address *address, struct error *e);
