/* Asking before something is destroyed. */
#pragma once

#include "cli/cli.h"

/* what: what would be done, and to how many, as in "remove 3 dead jobs for good". yes: --yes was given, and
 * nothing is asked. Else it asks on a terminal, WEIR_ENOTNOW when the answer is no; elsewhere nobody can
 * answer, and that is WEIR_EUSAGE. action: "queue purge", for the message. */
WEIR_CHECKED int cli_confirm(struct cli *cli, bool yes, const char *action, const char *what, ...)
    WEIR_PRINTF(4, 5);
/* Asks about one thing that was named, "cancel job" and its name: where nobody can answer, it is done. */
WEIR_CHECKED int cli_confirm_one(struct cli *cli, bool yes, const char *action, const char *what,
                                 const char *name);
