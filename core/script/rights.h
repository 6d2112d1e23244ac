/* What Redis must allow a user, by role: producer, worker, taker, viewer, operator. */
#pragma once

#include <stdbool.h>

#include "core/script/args.h"

#define RIGHTS_ROLES "operator, producer, taker, viewer or worker"

bool rights_is_role(const char *role);
/* Adds what the role's programs call themselves, and what its scripts need, one word each: "+hset", or "RW~queue:*", with R, W
 * or RW for keys behind the prefix; or "(+rpush,+type,W~queue:*)", commands for these keys alone. */
void rights_of(struct args *a, const char *role);

#define RIGHTS_WORD_SIZE 512
/* Such a word as ACL SETUSER takes it: "+hset", "~weir:{0}:queue:*", "%R~weir:{0}:limits", "(+rpush +type %W~weir:{0}:queue:*)". */
void rights_word(const char *word, size_t len, const char *prefix, char out[RIGHTS_WORD_SIZE]);
