/* Asking before something is destroyed. */
#ifndef CLI_CONFIRM_H
#define CLI_CONFIRM_H

#include "cli/cli.h"

/* Would it ask? On a terminal only. */
bool cli_asks(void);
/* Asks on a terminal, unless yes; elsewhere it goes on. 0: go on; WEIR_ENOTNOW: the answer was no. */
WEIR_CHECKED int cli_confirm(struct cli *cli, bool yes, const char *question, ...) WEIR_PRINTF(3, 4);

#endif
