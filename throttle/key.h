/* The key of a keyed gate, made of any text: a text that is a name stands for itself, every other one for
 * "h." and the hex digits of its SHA-1, as with keys that Lua takes from a job's args (redis.sha1hex). So an
 * address such as 2001:db8::1 has a gate too, and the same one wherever it is asked for. A name that looks
 * like such a hash, or like "-", the key of jobs without one, is hashed too: it shares no gate with them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "throttle/limit.h"

/* True when that text is the key of jobs without one, or looks like a hash. (queue/job/body.lua) */
bool key_is_made(const char *text, size_t len);
void key_make(const char *text, size_t len, char key[LIMIT_NAME_SIZE]);
