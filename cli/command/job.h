/* weir job show and weir why: one document, and one sheet. */
#ifndef CLI_COMMAND_JOB_H
#define CLI_COMMAND_JOB_H

#include "cli/document/json.h"

/* Of what find_job or why_read says. */
json_t *job_document(const json_t *job);
/* Prints such a document as a sheet, also its members "args" and "body" where they were added, and frees it. */
WEIR_CHECKED int job_print(struct cli *cli, json_t *doc, int64_t now_us);

#endif
