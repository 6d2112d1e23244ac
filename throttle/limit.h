/* Limits have names, and so have keys; the rules of a limit are rule.h's. */
#pragma once

#include "throttle/rule.h"

#define LIMIT_NAME_SIZE 129

/* Checks a name: 1 to 128 of [A-Za-z0-9_.-]; else WEIR_EINPUT. what: "limit", "key". */
WEIR_CHECKED int limit_name_check(const char *what, const char *name, struct error *e);
