/* The Lua scripts: one library of Redis functions, embedded at build time (core/script/embed.sh writes
 * build/<variant>/gen/scripts.c). Each .lua file with a line "-- ARGV:" is a script, called by its name. */
#pragma once

#include "core/script/args.h"

/* What FUNCTION LOAD takes: the library weir_<digest> with the functions weir_<digest>_<script>. */
extern const char script_library[];
/* The library's name has these 12 hex digits of its text: another version of Weir has another library, and both may be at work. */
extern const char script_digest[];

/* The format of the data that they write. */
extern const int script_format;

/* The role that calls a script. A viewer's script writes nothing, and others may call it too. */
struct script {
    const char *name, *role;
};
extern const struct script scripts[]; /* by name; the last one is empty */
extern const size_t script_count;

/* The scripts of a role need these rights in Redis, as core/script/rights.awk finds them. */
struct script_role {
    const char *name, *rights;
};
extern const struct script_role script_roles[]; /* by name; the last one is empty */

/* A file of the library, and the line before its first one. */
struct script_place {
    const char *file;
    int before;
};
extern const struct script_place script_places[]; /* in order; the last one is empty */

/* Finds the file and line of a text that names a line of the library, "user_function:4711". NULL: it names none of ours. */
const char *script_place(const char *text, int *line);

#define SCRIPT_VIEWER "viewer"

/* Begins a call, FCALL weir_<digest>_<name> 1 <key> <now>. key: <prefix>role:<role of the script>, for Redis's ACL to
 * judge; a viewer's script is called by FCALL_RO, and its key is the prefix alone. prefix: the namespace's, "weir:{0}:";
 * now_us < 0 means Redis TIME, a number is the virtual time of a test, ARGV[1] of every script. */
void script_begin(struct args *a, const char *name, const char *prefix, int64_t now_us);
/* Begins a call in that role, whatever the script's is: Redis refuses the key, or the script does. */
void script_begin_as(struct args *a, const char *role, const char *name, const char *prefix, int64_t now_us);
