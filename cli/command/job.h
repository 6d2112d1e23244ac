/* What the files of weir job share: job show and weir why are one sheet. */
#pragma once

#include "cli/document/json.h"
#include "queue/inspect/job_search.h"
#include "view/job.h"

struct job_flags {
    const char *lock;
    const char *state, *type, *queue, *key, *batch, *older, *reason; /* terms of a search */
    long long limit, most;
    const char *from;
    int64_t timeout_us;
    bool yes, dry_run;
};

/* Prints such a document as a sheet, also its members "args" and "body" where they were added, and frees it. */
WEIR_CHECKED int job_print(struct cli *cli, json_t *doc, int64_t now_us);

/* Reads the search that words and the flags that are terms of one say. Fills cli->error on failure. */
WEIR_CHECKED int job_search_given(struct cli *cli, const struct job_flags *f, char **words, int count,
                                  struct job_search *s);
/* Does weir job run ID. */
WEIR_CHECKED int job_run_now(struct cli *cli, struct weir *w, const char *id);
/* An action for all that a search is for. */
WEIR_CHECKED int job_act_on(struct cli *cli, struct weir *w, const char *action, const struct job_search *s,
                            const struct job_flags *f);
/* goes_on: beyond f->most as long as it has found nothing. */
WEIR_CHECKED int job_run_list(struct cli *cli, struct weir *w, const struct job_search *s,
                              const struct job_flags *f, bool goes_on);
