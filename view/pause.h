/* Pauses, whatever is paused: how all documents have them. */
#pragma once

#include "view/document.h"

/* Describes one of queue/state/reasons.lua: {"since", "until", "reason"}, until null: somebody must resume it; reason "": none was given. null:
 * there is none. */
json_t *pause_document(const json_t *pause);
/* Makes the document of an answer to a pause or a resume: {"name", "paused", "before"}, as it is, and as it was before. */
json_t *pausing_document(const char *name, const json_t *answer);
/* Makes such a document of a limit, with "key" where it is about one of its keys. */
json_t *pausing_key_document(const char *limit, const char *key, const json_t *answer);
/* Puts "since 09:36 until 10:00: INC-123" of such a document. */
void pause_put(FILE *to, const json_t *doc, int64_t now_us);
