/* weir job show and weir why: one sheet. */
#ifndef CLI_COMMAND_JOB_H
#define CLI_COMMAND_JOB_H

#include "cli/document/json.h"
#include "view/job.h"

/* Prints such a document as a sheet, also its members "args" and "body" where they were added, and frees it. */
WEIR_CHECKED int job_print(struct cli *cli, json_t *doc, int64_t now_us);

#endif
