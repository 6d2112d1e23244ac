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

#define KEY_NAMED_SIZE (2 * LIMIT_NAME_SIZE)

/* Makes the key that a person names: "-" is that of jobs without a value, and a text in quotes, as JSON has them, is that text. A number, an object
 * or an array names what a job with that value has (body.text of queue/job/body.lua). The `key` of a job is a text always: where both
 * differ, this is the key of the text, a "|", and that of the value, and the limit's path decides (rules.key of throttle/rules.lua). */
void key_name(const char *text, char named[KEY_NAMED_SIZE]);
