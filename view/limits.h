/* Limits: weir rate --json, GET /api/rates. */
#pragma once

#include "queue/limits/limits.h"
#include "view/document.h"

/* Why a forecast is "at the earliest"; null: it is not. */
json_t *because_document(unsigned because);
/* A limit with the state of its rules, as a list has it. */
json_t *limit_document(const struct limits *limits, const struct limit *limit);
/* Describes a limit and when its last job starts, of limits_look(). WEIR_ENOTFOUND. */
WEIR_CHECKED int limit_document_whole(const struct limits *limits, const char *name, json_t **doc,
                                      struct error *e);

/* Until when one of its gates is paused, because a provider said stop; 0: none is. */
int64_t limit_provider_pause(const struct limit *limit);

/* Adds to such a document what was granted and lost within the last hour, as workers recorded it; null when that cannot be read. */
void limit_add_hour(struct weir *w, const char *name, json_t *doc);

/* Adds who holds slots of it (weir hold). */
void limit_add_holds(struct weir *w, const char *name, json_t *doc);

/* What rate set has done. */
json_t *rate_set_document(const char *name, const struct rule_set *rules, const char *dropped);

/* The limits of the partition that has one of that name, or of the last one; >= 0. Freed with limits_free, also
 * after a failure. */
WEIR_CHECKED int limits_look(struct weir *w, const char *name, struct limits *limits);
WEIR_CHECKED int view_rate(struct weir *w, const char *name, json_t **doc);
/* Lists all limits by name, an array. now_us (may be NULL): Redis's time. */
WEIR_CHECKED int view_rates(struct weir *w, json_t **doc, int64_t *now_us);
/* Reads what was done, or the changes of limits and types alone, the oldest first. *doc is there after a failure too: what could be read. */
WEIR_CHECKED int view_rate_log(struct weir *w, bool all, json_t **doc);
