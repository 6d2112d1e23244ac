#include "view/document.h"

#include <stdlib.h>

#include "queue/job/job_cost.h"
#include "view/pause.h"
#include "view/text.h"

json_t *document_list(const json_t *answers, const struct member *members)
{
    json_t *list = json_array(), *row;
    size_t i;

    json_array_foreach(answers, i, row)
        json_array_append_new(list, document_make(row, members));
    return list;
}

/* Makes a cost of a number, or of the text that scripts write. */
static json_t *cost_json(const json_t *value)
{
    char text[COST_JSON_SIZE];
    struct job_cost cost;

    if (!json_is_string(value) || !cost_parse(json_string_value(value), &cost))
        return json_integer(json_integer_value(value));
    cost_write_json(&cost, text);
    return json_loads(text, JSON_DECODE_ANY, NULL);
}

/* value: what the answer has of that name, or NULL. */
static json_t *value_json(const json_t *answer, const json_t *value, const struct member *m)
{
    if (m->kind == MEMBER_FLAG)
        return json_boolean(json_is_true(value));
    if (!value || json_is_null(value))
        return json_null();
    switch (m->kind) {
    case MEMBER_WORD:
        return text_json(text_bytes(value));
    case MEMBER_NUMBER:
        return json_integer(answer_int(answer, m->name));
    case MEMBER_COST:
        return cost_json(value);
    case MEMBER_TIME:
        return json_time(answer_int(answer, m->name));
    case MEMBER_SINCE:
        return json_since(answer_int(answer, m->name));
    case MEMBER_PAUSE:
        return pause_document(value);
    case MEMBER_SPAN:
        return json_seconds(answer_int(answer, m->name));
    default:
        return json_is_array(value) ? document_list(value, m->inner) : document_make(value, m->inner);
    }
}

json_t *document_make(const json_t *answer, const struct member *members)
{
    json_t *doc = json_object();

    for (; members->name; members++) {
        const json_t *value = json_object_get(answer, members->name);

        if (!members->optional || value)
            json_object_set_new(doc, members->name, value_json(answer, value, members));
    }
    return doc;
}

json_t *document_rows(json_t *by_key, int (*order)(const void *a, const void *b))
{
    json_t **values = calloc(json_object_size(by_key) + 1, sizeof *values), *rows = json_array(), *value;
    const char *key;
    size_t count = 0;

    json_object_foreach(by_key, key, value)
        if (values)
            values[count++] = value;
    if (values)
        qsort(values, count, sizeof *values, order);
    for (size_t i = 0; i < count; i++)
        json_array_append(rows, values[i]);
    if (json_array_size(rows) < json_object_size(by_key)) {
        json_decref(rows);
        rows = NULL;
    }
    free(values);
    json_decref(by_key);
    return rows;
}

int document_done(struct weir *w, json_t *made, json_t **doc)
{
    *doc = made;
    return made ? 0 : error_set(&w->error, WEIR_EINTERNAL, "out of memory; free some and try again");
}
