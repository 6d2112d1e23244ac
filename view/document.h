/* The --json document of a script's answer, by a list of its members: times and spans become seconds, words any
 * UTF-8 (view/text.h). What is not in the list is left out; what the answer has not is null. */
#pragma once

#include "core/client/answer.h"
#include "view/json.h"

struct member {
    const char *name; /* NULL ends a list */
    enum {
        MEMBER_WORD,
        MEMBER_NUMBER,
        MEMBER_COST,  /* a number, or an object of numbers by name */
        MEMBER_FLAG,  /* false when it is not there */
        MEMBER_TIME,  /* us */
        MEMBER_SINCE, /* us; below 0: unknown, which is 0 */
        MEMBER_SPAN,  /* us */
        MEMBER_PAUSE, /* as queue/state/reasons.lua describes one: for pause_document() */
        MEMBER_INNER, /* an object, or an array of them */
    } kind;
    bool optional; /* not there when the answer has it not */
    const struct member *inner;
};

#define MEMBER(its_name, its_kind, ...)                                                                      \
    {                                                                                                        \
        .name = its_name, .kind = MEMBER_##its_kind, __VA_ARGS__                                             \
    }

/* Makes a document, which is the caller's; NULL: out of memory. */
json_t *document_make(const json_t *answer, const struct member *members);
/* Makes the document of each in an array. */
json_t *document_list(const json_t *answers, const struct member *members);

/* Returns the values of an object, sorted: rows to print. order compares const json_t *const *, as qsort has them. Frees the object; NULL:
 * out of memory. */
json_t *document_rows(json_t *by_key, int (*order)(const void *a, const void *b));
/* Ends a view_...(): made is the document, NULL: out of memory, which w->error then says. */
WEIR_CHECKED int document_done(struct weir *w, json_t *made, json_t **doc);
