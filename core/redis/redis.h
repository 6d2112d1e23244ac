/* Redis: the blocking connection of producers and commands. */
#pragma once

#include <stdbool.h>

#include "core/error.h"
#include "core/script/args.h"
#include "core/wire/address.h"
#include "core/wire/fault.h"

struct redisReply; /* hiredis */

struct redis;

/* A blocking connection that is opened at its first use and, when it was lost, at the next. In the child of a
 * fork() it is closed without a word and opened anew at the first use; what was under way is the parent's.
 * Copies address. NULL only when out of memory. */
struct redis *redis_new(const struct redis_address *address);
/* Another connection to the same Redis, whatever it is: for looks at one that takes no calls, such as a replica. */
struct redis *redis_new_plain(const struct redis *r);
/* Another connection to the same Redis, of a cluster to the node that has that slot. */
struct redis *redis_new_slot(const struct redis *r, int slot);
/* True when the last failure was a wait for an answer. Who asks again may wait as long again. */
bool redis_is_silent(const struct redis *r);
/* True when the address is that of a cluster. */
bool redis_is_clustered(const struct redis *r);
void redis_free(struct redis *r);

/* Sends a command and awaits its answer. Where Sentinels or a cluster are asked, a command that was refused because the keys are elsewhere
 * now, or on their way, is sent again, for some seconds. *reply is the caller's to free (freeReplyObject); error replies become errors and
 * *reply NULL. A command that misses its function is sent again, once, behind the functions. On WEIR_EUNREACHABLE (also:
 * a replica, a Redis that is loading) the connection is closed; *sent (may be NULL) tells whether the command
 * may have reached Redis unanswered: its outcome is then unknown. */
WEIR_CHECKED int redis_call(struct redis *r, const struct args *a, struct redisReply **reply, bool *sent,
                            struct error *e);

/* Pipelining: append several commands, then read one answer for each, in order. redis_append only buffers;
 * the bytes go out with redis_flush or the first redis_result. An error answer (a missing function too: it
 * is not loaded here) is the result's error, and the connection stays usable; WEIR_EUNREACHABLE closes
 * it and loses all that was under way. */
WEIR_CHECKED int redis_append(struct redis *r, const struct args *a, struct error *e);
WEIR_CHECKED int redis_flush(struct redis *r, struct error *e);
WEIR_CHECKED int redis_result(struct redis *r, struct redisReply **reply, struct error *e);
/* Waits until an answer begins to come, or the connection is lost (true), until that time (clock_mono_us) or
 * for a signal (false). */
bool redis_await(const struct redis *r, int64_t until_us);
/* Loads the functions, if a pipeline has missed one. Nothing may be under way. */
WEIR_CHECKED int redis_load_scripts(struct redis *r, struct error *e);
