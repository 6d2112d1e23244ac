/* Changes of limits, and the log of them.
 *
 * The script that makes a change has the types that wait at its gates looked at, in some hundreds of queues. Whoever made the change has rate_wake see to
 * the other queues; if nobody does, heartbeats do it. Lanes that sleep at keyed gates may be a million, so the answers name their queues, and rate_apply
 * goes over them page by page: who dies before the end leaves late wake-ups only. A batch that is halted does the same. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "queue/limits/limits.h"
#include "queue/limits/rate_request.h"

struct json_t; /* jansson */
struct weir;

#define RATE_LIMIT_SIZE (LIMIT_NAME_SIZE + 1) /* of a name, or of one that is too long for it */

/* Fills w->error: there is no such "limit" or "type" where calls go to; the name that it is close to is said, else what to do. WEIR_ENOTFOUND. */
int rate_none(struct weir *w, const char *what, const char *name, const char *else_do);
#define RATE_LISTED "weir rate list shows them"

/* Reads rules that are joined by blanks, as a person writes them. */
WEIR_CHECKED int rate_parse(struct weir *w, const char *text, struct rule_set *set);
/* What the answer to a change that may concern all limits says is left to do: the other queues are woken, and their sleeping lanes looked at. */
WEIR_CHECKED int rate_apply(struct weir *w, struct json_t *answer);

/* The changes, those whose rules or names are words of rules joined by blanks. They do all of it, rate_apply
 * too; what weir.h has are these. how: of rate_set_request. kept: how the rules stand then.
 * dropped (may be NULL): by what the limit told jobs apart until now, where the new rules do not; else "".
 * lost (may be NULL): how many keys lose rules of their own. */
WEIR_CHECKED int rate_set(struct weir *w, const char *name, const char *rules, unsigned how,
                          struct rule_set *kept, char dropped[RULE_PATH_SIZE], int64_t *lost);
WEIR_CHECKED int rate_remove(struct weir *w, const char *name, bool dry);
/* Lets a type be held by limits, or (use false) no more. cost, as people write it; NULL: it stays as it is. */
WEIR_CHECKED int rate_use(struct weir *w, const char *type, bool use, const char *limits, const char *cost);
/* made: the key as gates have it (key_name); key: as the log shows it. */
WEIR_CHECKED int rate_weigh(struct weir *w, const char *limit, const char *key, const char *made, int weight);
/* key NULL: the whole limit; else one of its keys, any text. *answer (may be NULL): as type_pause() has it, and "was": was it paused, by somebody or
 * for a provider? The caller's, NULL after a failure. */
WEIR_CHECKED int rate_pause(struct weir *w, const char *limit, const char *key, const struct pausing *how,
                            struct json_t **answer);
/* Parts "LIMIT" or "LIMIT/KEY", a key may have blanks and slashes; *key points into text, NULL: none. limit is cut where it is too long for a name.
 */
void rate_part(const char *text, char limit[RATE_LIMIT_SIZE], const char **key);

/* Logs what somebody has done, at the partition that calls go to. It was done: where it cannot be logged, nothing is said. */
void rate_note(struct weir *w, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Reads what was done, or the changes of limits and types alone, the newest first: an array of JSON texts, the caller's (json_decref). NULL after a
 * failure. */
WEIR_CHECKED int rate_log_read(struct weir *w, bool all, struct json_t **changes);
