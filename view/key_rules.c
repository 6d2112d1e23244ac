#include "view/key_rules.h"

#include <string.h>

#include "queue/limits/key_rules.h"
#include "throttle/rule.h"
#include "view/document.h"
#include "view/format.h"
#include "view/output.h"
#include "view/rules.h"
#include "view/text.h"

/* Fills in the words that a row does not have. NULL: out of memory. */
static json_t *row_document(const json_t *row)
{
    int64_t until_us = answer_int(row, "until");
    bool over = json_is_true(json_object_get(row, "is_over"));
    struct rule_set set;
    struct error ignored;
    bool readable = rule_set_read(answer_text(row, "rules"), &set, &ignored) == 0;

    return json_pack("{s:o, s:o, s:s, s:b, s:I}", "rules", readable ? rules_document(&set) : json_null(),
                     "until", until_us ? json_seconds(until_us) : json_null(), "at_end",
                     json_is_true(json_object_get(row, "closes")) ? "closed" : "limit", "closed", over,
                     "revision", (json_int_t)answer_int(row, "revision"));
}

json_t *key_rules_document(const json_t *row)
{
    return json_is_object(row) ? row_document(row) : json_null();
}

json_t *key_change_document(const struct key_change *change, const json_t *answer)
{
    json_t *doc = json_pack("{s:s, s:o, s:o, s:o}", "name", change->limit, "key", text_word(change->key),
                            "own", key_rules_document(json_object_get(answer, "is")), "own_before",
                            key_rules_document(json_object_get(answer, "was")));

    if (doc && change->dry) {
        json_object_set_new(doc, "dry_run", json_true());
        json_object_set_new(doc, "jobs", json_integer(answer_int(answer, "jobs")));
        json_object_set_new(doc, "too_dear", json_integer(answer_int(answer, "too_dear")));
        json_object_set_new(doc, "at_least", json_boolean(!json_is_true(json_object_get(answer, "whole"))));
    }
    return doc;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(answer_text(*(const json_t *const *)a, "key"),
                  answer_text(*(const json_t *const *)b, "key"));
}

int view_key_rules(struct weir *w, const char *limit, json_t **doc, int64_t *now_us)
{
    json_t *rows, *docs = json_object(), *row;
    int64_t count;
    const char *key;
    int status = key_rules_read(w, limit, NULL, &rows, now_us, &count);

    *doc = NULL;
    json_object_foreach(rows, key, row) {
        const char *shown = answer_text(row, "shown");
        json_t *one = row_document(row);

        json_object_set_new(one, "key", text_word(*shown ? shown : key));
        json_object_set_new(docs, key, one);
    }
    json_decref(rows);
    if (status == 0)
        return document_done(w, document_rows(docs, by_key), doc);
    json_decref(docs);
    return status;
}

void key_rules_put(FILE *to, const json_t *doc, int64_t now_us)
{
    const json_t *rules = json_object_get(doc, "rules"), *until = json_object_get(doc, "until");
    char clock[PHRASE_SIZE];

    for (size_t i = 0; i < json_array_size(rules); i++)
        output_to(to, "%s%s", i ? " " : "", answer_text(json_array_get(rules, i), "rule"));
    if (!json_is_array(rules))
        output_to(to, "rules that cannot be read");
    if (json_is_number(until))
        output_to(to, " until %s", format_clock(now_us, json_us(until), clock));
    if (json_is_number(until) && strcmp(answer_text(doc, "at_end"), "closed") == 0)
        output_to(to, ", then closed");
}
