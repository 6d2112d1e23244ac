/* The Lua scripts: one library of Redis functions, embedded at build time (core/script/embed.sh writes
 * build/<variant>/gen/scripts.c). Each .lua file with a line "-- ARGV:" is a script, called by its name. */
#ifndef CORE_SCRIPT_SCRIPT_H
#define CORE_SCRIPT_SCRIPT_H

#include "core/script/args.h"

/* What FUNCTION LOAD takes: the library weir_<digest> with the functions weir_<digest>_<script>. */
extern const char script_library[];
/* 12 hex digits of the text: another version of Weir has another library, and both may be at work. */
extern const char script_digest[];
/* The Redis commands that they call, in small letters; ends with NULL. */
extern const char *const script_commands[];

/* Begins a call: FCALL weir_<digest>_<name> 1 <prefix> <now>. prefix is the namespace's key prefix
 * ("weir:{0}:"), KEYS[1] of every script; now_us < 0 means Redis TIME, a number is the virtual time of a
 * test, ARGV[1] of every script. */
void script_begin(struct args *a, const char *name, const char *prefix, int64_t now_us);

#endif
