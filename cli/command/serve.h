/* The flags of weir serve. */
#pragma once

#include "cli/cli.h"

/* Checks all values of [serve], as weir serve does when it begins, but for what depends on the machine: files and addresses. */
WEIR_CHECKED int serve_flags_try(struct cli *cli);
