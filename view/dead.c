#include "view/dead.h"

#include "view/text.h"
#include "view/write.h"

static const struct member members[] = {
    MEMBER("since", TIME),
    MEMBER("id", WORD),
    MEMBER("type", WORD),
    MEMBER("queue", WORD),
    MEMBER("key", WORD),
    MEMBER("reason", WORD),
    MEMBER("attempts", NUMBER),
    MEMBER("interrupted", NUMBER),
    MEMBER("throttled", NUMBER),
    MEMBER("batch", WORD),
    MEMBER("unique", WORD),
    MEMBER("failed_at", TIME),
    MEMBER("failure", WORD),
    MEMBER("bytes", NUMBER),
    {.name = NULL},
};

struct span dead_body(const json_t *page, size_t i)
{
    return text_bytes(json_array_get(json_object_get(page, "raw"), i));
}

json_t *dead_document(const json_t *page, size_t i)
{
    json_t *doc = document_make(json_array_get(json_object_get(page, "found"), i), members);

    view_add_body(doc, dead_body(page, i));
    return doc;
}

/* ---- Asked */

#define ENOUGH 1 /* ends a walk */

struct list {
    json_t *rows;
    int64_t most;
};

static int add_page(const json_t *page, void *arg)
{
    size_t found = json_array_size(json_object_get(page, "found"));
    struct list *list = arg;

    for (size_t i = 0; i < found; i++) {
        if ((int64_t)json_array_size(list->rows) == list->most)
            return ENOUGH;
        json_array_append_new(list->rows, dead_document(page, i));
    }
    return 0;
}

int view_dead(struct weir *w, const struct dead_filter *filter, int64_t most, json_t **doc)
{
    struct list list = {.rows = json_array(), .most = most};
    struct dead_walk walk = {.w = w,
                             .now_us = -1,
                             .verb = "list",
                             .filter = *filter,
                             .body_bytes = filter->id_count ? INT32_MAX : 0,
                             .take = add_page,
                             .arg = &list};
    int status = dead_walk(&walk);

    *doc = NULL;
    if (status >= 0)
        return document_done(w, list.rows, doc);
    json_decref(list.rows);
    return status;
}
