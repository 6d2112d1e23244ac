/* A library of a test's own: core/script/base.lua, some of our Lua files, and functions that the test writes in Lua.
 */
#pragma once

#include <stdint.h>

#include "core/script/args.h"
#include "tests/server.h"

/* Loads it, in place of the one before. files: paths of modules in the order of their use, ended by NULL.
 * text ends with a call script('name', function) for each function. */
void library_load(struct server *server, const char *const *files, const char *text);
/* Begins a call of one of its functions, as script_begin does. */
void library_begin(struct args *a, const char *name, const char *prefix, int64_t now_us);
