/* The --json document of a script's answer, by a list of its members: times and spans become seconds, words any
 * UTF-8 (cli/text.h). What is not in the list is left out; what the answer has not is null. */
#ifndef CLI_DOCUMENT_DOCUMENT_H
#define CLI_DOCUMENT_DOCUMENT_H

#include "cli/document/json.h"
#include "core/client/answer.h"

struct member {
    const char *name; /* NULL ends a list */
    enum {
        MEMBER_WORD,
        MEMBER_NUMBER,
        MEMBER_FLAG,  /* false when it is not there */
        MEMBER_TIME,  /* us */
        MEMBER_SINCE, /* us; below 0: unknown, which is 0 */
        MEMBER_SPAN,  /* us */
        MEMBER_INNER, /* an object, or an array of them */
    } kind;
    bool optional; /* not there when the answer has it not */
    const struct member *inner;
};

#define MEMBER(its_name, its_kind, ...)                                                                      \
    {                                                                                                        \
        .name = its_name, .kind = MEMBER_##its_kind, __VA_ARGS__                                             \
    }

/* The caller's; NULL: out of memory. */
json_t *document_make(const json_t *answer, const struct member *members);
/* The same of each in an array. */
json_t *document_list(const json_t *answers, const struct member *members);

#endif
