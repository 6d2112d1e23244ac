/* A cost as people write it: "3", "tokens=900", "3,images=2,tokens=900". Plain slots are a number alone, or plain=3. */
#pragma once

#include "core/error.h"
#include "throttle/cost.h"

/* What the cost is of. What a job cost in truth may be nothing of plain slots. */
enum cost_kind { COST_TRUE = 0, COST_TAKEN = 1 };

static inline bool cost_is_said(const struct job_cost *cost)
{
    return cost->plain != COST_UNSAID || cost->count > 0;
}
/* Returns the slots of a name; NULL: nothing is said of it. */
int64_t *cost_slots(struct job_cost *cost, const char *name, size_t len);
/* Adds a number, text as it stands, of "plain", "" (plain too) or a name. WEIR_EINPUT: what is wrong with it. */
WEIR_CHECKED int cost_add(struct job_cost *cost, enum cost_kind kind, const char *name, size_t name_len,
                          const char *text, size_t len, struct error *e);
/* Reads the whole text. WEIR_EINPUT: as cost_add. */
WEIR_CHECKED int cost_read(const char *text, enum cost_kind kind, struct job_cost *cost, struct error *e);
/* Writes it so. */
void cost_print(const struct job_cost *cost, char out[COST_TEXT_SIZE]);
