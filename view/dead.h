/* Dead jobs: weir dead --json, GET /api/dead. */
#pragma once

#include "queue/dead/dead.h"
#include "view/document.h"

/* Makes the document of the i-th job of a page that dead_walk() brings; with its body (view/write.h) as far as that was asked for. */
json_t *dead_document(const json_t *page, size_t i);
/* Returns the i-th body; it is the page's. */
struct span dead_body(const json_t *page, size_t i);
/* {"jobs", "more"}: the oldest that the filter lets through, at most so many, and fewer where their bodies are large;
 * more: there are others. */
WEIR_CHECKED int view_dead(struct weir *w, const struct dead_filter *filter, int64_t most, json_t **doc);
/* Adds the "reasons" of a page of counted jobs to groups, an object. A group is of jobs of one type whose reasons differ in numbers and ids alone. */
WEIR_CHECKED int dead_groups_add(json_t *groups, const json_t *page);
/* The groups as rows {"type", "reason", "jobs", "first_at", "last_at", "id": of the first}, the largest first. Those beyond most, of 0: none, are one row at the
 * end, without type, reason and id: {"groups": how many, "jobs", "first_at", "last_at"}. Frees the object; NULL: out of memory. */
json_t *dead_groups(json_t *groups, size_t most);
/* {"reasons"}: the groups of those that the filter lets through, as dead_groups() has them. */
WEIR_CHECKED int view_dead_groups(struct weir *w, const struct dead_filter *filter, size_t most,
                                  json_t **doc);
/* Of jobs that were retried or removed. without_queue: that were not retried, as nobody knows into which queue; cancelled: as their
 * batch was cancelled. */
json_t *dead_move_document(const char *verb, int64_t jobs, int64_t without_queue, int64_t cancelled);
/* Retries or removes one; into: as struct dead_walk has it. WEIR_ENOTFOUND, WEIR_EINPUT: which queue it was in is not
 * known, or its batch was cancelled. */
WEIR_CHECKED int view_dead_move(struct weir *w, const char *verb, const char *id, const char *into,
                                json_t **doc);
/* WEIR_ENOTFOUND: it is not among them. */
WEIR_CHECKED int view_dead_one(struct weir *w, const char *id, json_t **doc);
