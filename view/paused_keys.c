#include "view/paused_keys.h"

#include <string.h>

#include "view/document.h"
#include "view/format.h"
#include "view/text.h"

static const struct member members[] = {
    MEMBER("limit_name", WORD), MEMBER("key", WORD), MEMBER("by", WORD),
    MEMBER("paused", PAUSE),    {.name = NULL},
};

static int by_name(const void *a, const void *b)
{
    const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
    int order = strcmp(answer_text(x, "limit_name"), answer_text(y, "limit_name"));

    return order ? order : strcmp(answer_text(x, "key"), answer_text(y, "key"));
}

json_t *paused_keys_document(const json_t *rows)
{
    json_t *docs = json_object(), *row;
    const char *name;

    json_object_foreach((json_t *)rows, name, row)
        json_object_set_new(docs, name, document_make(row, members));
    return document_rows(docs, by_name);
}

void paused_key_text(const json_t *row, int64_t now_us, char *out, size_t size)
{
    const char *by = answer_text(row, "by"), *last = strrchr(by, '.');
    const json_t *paused = json_object_get(row, "paused"), *until = json_object_get(paused, "until");
    const char *reason = answer_text(paused, "reason");
    char clock[PHRASE_SIZE];

    snprintf(out, size, "%s %s is paused until %s%s%s", last ? last + 1 : by, answer_text(row, "key"),
             format_clock(now_us, json_is_number(until) ? json_us(until) : FORMAT_ENDLESS_US, clock),
             *reason ? ": " : "", reason);
}

void paused_key_resume(const json_t *row, char *out, size_t size)
{
    const char *key = answer_text(row, "key");
    const char *quote = text_quote(key);

    *out = '\0';
    if (!strpbrk(key, "'\\"))
        snprintf(out, size, "weir rate resume %s%s/%s%s", quote, answer_text(row, "limit_name"), key, quote);
}
