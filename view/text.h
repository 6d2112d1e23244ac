/* Words of others, which may be any bytes: a handler's reason, what stands in a broken job. */
#pragma once

#include "queue/job/job_cost.h"
#include "view/json.h"

/* Makes UTF-8 of a span of any bytes: all that is no printable character is \xNN; bytes that are valid stay. The caller's to free; NULL:
 * out of memory. */
char *text_of(struct span bytes);
/* Returns the bytes of a string in an answer; none when it is no string. */
struct span text_bytes(const json_t *string);
/* Makes UTF-8 of the beginning and the end of a span, cut in between to about most bytes, of which a reason's end matters more. The
 * caller's to free; NULL: out of memory. */
char *text_of_ends(struct span bytes, size_t most);
/* Makes JSON of a span's text; null when it is empty. */
json_t *text_json(struct span bytes);
/* Makes JSON of a word that is there, which may be empty. */
json_t *text_word(const char *word);
/* Writes a cost, a number or an object, as people write it: "3,tokens=900"; a number alone has its thousands apart. */
const char *text_cost(const json_t *cost, char out[COST_TEXT_SIZE]);
/* What stands around a word that has no quote in it where a shell reads it: "'", or "" where it needs none. */
const char *text_quote(const char *word);
/* Returns the byte that "%XX" stands for; -1: no such escape stands there. The text ends by a NUL. */
int text_escaped(const char *at);
