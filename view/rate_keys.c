#include "view/rate_keys.h"

#include <stdlib.h>
#include <string.h>

#include "queue/limits/rate_keys.h"
#include "view/format.h"
#include "view/key_rules.h"
#include "view/paused_keys.h"
#include "view/text.h"

static const struct member members[] = {
    MEMBER("key", WORD),
    MEMBER("gate", WORD),
    MEMBER("parked", NUMBER),
    MEMBER("state", WORD),
    MEMBER("oldest_at", TIME),
    MEMBER("next_start", TIME),
    MEMBER("slots_left", NUMBER),
    MEMBER("paused", PAUSE),
    MEMBER("throttled_until", TIME),
    {.name = NULL},
};

static const char *state_of(const json_t *row, int64_t now_us)
{
    if (json_object_get(row, "paused"))
        return "paused";
    if (answer_int(row, "throttled_until") > now_us)
        return "throttled";
    return answer_int_or(row, "next_start", INT64_MAX) > now_us ? "closed" : "open";
}

/* As it was asked for, as its jobs have it, or as whoever paused it named it; else as the script names it. */
static const char *text_of_key(const json_t *row, const char *limit, const json_t *paused, const char *asked)
{
    const char *text = asked ? asked : answer_text(row, "text"), *key = answer_text(row, "key");
    char field[320];

    if (*text)
        return text;
    snprintf(field, sizeof field, "%s/%s", limit, key);
    text = answer_text(json_object_get(paused, field), "key");
    return *text ? text : key;
}

static json_t *row_document(const char *limit, const json_t *row, const json_t *answer, const char *asked)
{
    int64_t now_us = answer_int(answer, "now");
    json_t *full = json_copy((json_t *)row), *doc;

    json_object_set_new(full, "key",
                        text_word(text_of_key(row, limit, json_object_get(answer, "paused_keys"), asked)));
    json_object_set_new(full, "state", json_string(state_of(row, now_us)));
    if (json_object_get(row, "enqueued_at"))
        json_object_set(full, "oldest_at", json_object_get(row, "enqueued_at"));
    doc = document_make(full, members);
    if (doc)
        json_object_set_new(doc, "own", key_rules_document(json_object_get(row, "own")));
    json_decref(full);
    return doc;
}

/* Sorts the most jobs first, then by name. */
static int by_backlog(const void *a, const void *b)
{
    const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
    int64_t more = json_int_of(y, "parked") - json_int_of(x, "parked");

    return more ? (more > 0 ? 1 : -1) : strcmp(json_text_of(x, "key"), json_text_of(y, "key"));
}

/* Makes the document of an answer of rate_keys_read(); asked: the one key that was asked for, or NULL. */
static json_t *rate_keys_document(const char *limit, const json_t *answer, const char *asked)
{
    json_t *keys = json_object(), *row;
    size_t i;

    json_array_foreach(json_object_get(answer, "keys"), i, row)
        json_object_set_new(keys, answer_text(row, "key"), row_document(limit, row, answer, asked));
    return json_pack("{s:o, s:o, s:I, s:I, s:b, s:o, s:o, s:I, s:I}", "name", text_word(limit), "by",
                     text_word(answer_text(answer, "by")), "parked", (json_int_t)answer_int(answer, "parked"),
                     "key_count", (json_int_t)answer_int(answer, "key_count"), "sample",
                     json_is_true(json_object_get(answer, "sample")), "longest",
                     document_rows(keys, by_backlog), "paused_keys",
                     paused_keys_document(json_object_get(answer, "paused_keys")), "paused_key_count",
                     (json_int_t)answer_int(answer, "paused_key_count"), "own_key_count",
                     (json_int_t)answer_int(answer, "own_key_count"));
}

int view_rate_keys(struct weir *w, const char *limit, int most, const char *key, json_t **doc,
                   int64_t *now_us)
{
    json_t *answer;
    int status = rate_keys_read(w, limit, most, key, &answer);

    *doc = NULL;
    if (status == 0 && now_us)
        *now_us = answer_int(answer, "now");
    if (status == 0)
        status = document_done(w, rate_keys_document(limit, answer, key), doc);
    json_decref(answer);
    return status;
}

int64_t rate_key_until(const json_t *row)
{
    const json_t *paused = json_object_get(row, "paused"), *until = json_object_get(paused, "until");

    if (json_is_object(paused))
        return json_is_number(until) ? json_us(until) : FORMAT_ENDLESS_US;
    return json_us(json_object_get(row, "throttled_until"));
}

void limit_add_paused_keys(struct weir *w, const char *name, json_t *doc)
{
    json_t *answer;
    bool known = rate_keys_read(w, name, 0, NULL, &answer) == 0;

    json_object_set_new(doc, "paused_keys",
                        paused_keys_document(known ? json_object_get(answer, "paused_keys") : NULL));
    json_object_set_new(doc, "paused_key_count",
                        json_integer(known ? (json_int_t)answer_int(answer, "paused_key_count") : 0));
    json_object_set_new(doc, "own_key_count",
                        json_integer(known ? (json_int_t)answer_int(answer, "own_key_count") : 0));
    json_decref(answer);
}
