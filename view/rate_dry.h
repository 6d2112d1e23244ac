/* When what waits would have started under other rules: weir rate set --dry-run --json, GET /api/rates/NAME?rules=. */
#pragma once

#include "queue/limits/limits.h"
#include "view/document.h"

/* Makes the document of limits as they are, and of one as it would be; dropped: as rate_set() has it. */
WEIR_CHECKED int rate_dry_document(const struct limits *limits, const struct limit *after,
                                   const char *dropped, json_t **doc, struct error *e);
/* Looks at both; kept: how the rules would stand. Freed with limits_free and limit_free, also after a failure. */
WEIR_CHECKED int rate_dry_look(struct weir *w, const char *name, const struct rule_set *kept,
                               struct limits *limits, struct limit *after);
WEIR_CHECKED int view_rate_dry(struct weir *w, const char *name, const char *rules, json_t **doc);
