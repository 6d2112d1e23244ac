/* A document as text: one line of JSON, without the newline. What is no ASCII is escaped.
 *
 * The body of a job is never decoded and encoded again: a document has it as a string of any bytes, the member
 * VIEW_BODY, which is written as "body", its JSON as it stands but for the newlines between its tokens; or, when it
 * is no JSON, as "raw", its bytes in base64. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "queue/job/job.h"
#include "view/json.h"

#define VIEW_BODY "#body"
#define VIEW_RESULT "#result" /* likewise what a job has left, of which no JSON is null */

/* VIEW_NO_BODIES: "body" is null, and so is or ends before it what hidden.h knows to be of payloads. */
enum view_bodies { VIEW_ALL, VIEW_NO_BODIES };

/* Adds the body of a job. */
void view_add_body(json_t *doc, struct span body);
/* false: it could not be written, all of it. */
bool view_write(FILE *to, const json_t *doc, enum view_bodies bodies);
