/* The Lua scripts, embedded at build time (core/embed.sh writes build/<variant>/gen/scripts.c).
 * A script shares code with others by concatenation: its line "-- uses: a.lua b.lua" names the parts. */
#ifndef CORE_SCRIPT_H
#define CORE_SCRIPT_H

#include "core/args.h"

struct script {
    const char *name;   /* "claim" */
    const char *source; /* Lua text */
    const char *sha1;   /* 40 hex digits of source */
};

/* All scripts, ended by a NULL name. */
extern const struct script scripts[];

/* The script of that name; it is a bug to ask for one that is not there. */
const struct script *script_named(const char *name);

/* Begins a call: EVALSHA <sha1> 1 <prefix> <now>. prefix is the namespace's key prefix ("weir:{0}:"), KEYS[1]
 * of every script; now_us < 0 means Redis TIME, a number is the virtual time of a test, ARGV[1] of every
 * script. */
void script_begin(struct args *a, const char *name, const char *prefix, int64_t now_us);

#endif
