/* Words of others, which may be any bytes: a handler's reason, what stands in a broken job. */
#ifndef CLI_DOCUMENT_TEXT_H
#define CLI_DOCUMENT_TEXT_H

#include "cli/document/json.h"
#include "queue/job/job.h"

/* What a span of any bytes says, as UTF-8: all that is no printable character is \xNN; bytes that are valid
 * stay. The caller's to free; NULL: out of memory. */
char *text_of(struct span bytes);
/* The bytes of a string in an answer; none when it is no string. */
struct span text_bytes(const json_t *string);
/* Prints it, cut after about most bytes; 0: all of it. What is empty is "-". Returns whether it was cut. */
bool text_print(struct span bytes, size_t most);
/* Its beginning and its end, cut in between to about most bytes, of which a reason's end matters more. The
 * caller's to free; NULL: out of memory. */
char *text_of_ends(struct span bytes, size_t most);
/* The same as JSON; null when it is empty. */
json_t *text_json(struct span bytes);
/* The same of a word that is there, which may be empty. */
json_t *text_word(const char *word);
/* Prints doc as one line and frees it, its last member the body of a job: "body", as it stands but for the
 * newlines between its tokens, when it is JSON; else "raw", its bytes in base64. doc NULL: there was no
 * memory to make it. */
int text_print_with_body(struct cli *cli, json_t *doc, struct span body);

#endif
