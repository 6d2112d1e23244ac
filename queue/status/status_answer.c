#include "queue/status/status_parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/script/script.h"

/* The members that have something by names, which come in parts. */
static const char *const lists[] = {"queues", "stopped",      "oldest",  "paused",      "unread",
                                    "asleep", "held",         "workers", "paused_keys", "lanes",
                                    "types",  "paused_types", "reasons"};

/* The members that each page has, of which the last one counts. */
static const char *const numbers[] = {"now", "dead", "dead_bytes", "claimed", "later"};

static int add_seen(json_t *root, const json_t *page)
{
    json_t *seen = json_object_get(root, "seen"), *queues;
    const char *name;
    int rc = 0;

    json_object_foreach(json_object_get(page, "seen"), name, queues) {
        json_t *known = json_object_get(seen, name);

        rc |= known ? json_object_update(known, queues) : json_object_set(seen, name, queues);
    }
    return rc;
}

/* Adds the earlier one of two times since when jobs wait. */
static int add_first(json_t *root, const json_t *page)
{
    json_t *first = json_object_get(root, "first"), *at;
    const char *name;
    int rc = 0;

    json_object_foreach(json_object_get(page, "first"), name, at)
        if (json_integer_value(at) < answer_int_or(first, name, INT64_MAX))
            rc |= json_object_set(first, name, at);
    return rc;
}

/* ---- Workers */

/* The types that a worker says, an array. */
static json_t *read_list(struct status_answer *a, json_t *text)
{
    if (!a->list_text || !json_equal(a->list_text, text)) {
        json_decref(a->list_text);
        json_decref(a->list);
        a->list_text = json_incref(text);
        a->list = answer_parse(json_string_value(text), json_string_length(text));
    }
    return a->list;
}

/* What a worker says of itself stands beside the document, and may be parted from its types. */
static void read_workers(struct status_answer *a, const json_t *page)
{
    const json_t *raw = json_object_get(page, "raw");
    json_t *worker, *info, *text;
    const char *id;

    json_object_foreach(json_object_get(page, "workers"), id, worker) {
        text = json_array_get(raw, (size_t)answer_int(worker, "info"));
        info = text ? answer_parse(json_string_value(text), json_string_length(text)) : NULL;
        text = json_array_get(raw, (size_t)answer_int_or(worker, "types", -1));
        json_object_del(worker, "types");
        json_object_set(worker, "types", text ? read_list(a, text) : json_object_get(info, "types"));
        json_object_set_new(worker, "info", info ? info : json_null());
    }
}

/* ---- Asking */

static int take_page(const json_t *page, void *arg)
{
    struct status_answer *a = arg;
    json_t *root = a->root;
    int rc = add_seen(root, page) | add_first(root, page);

    read_workers(a, page);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (json_object_size(json_object_get(page, lists[i])) > 0)
            rc |= json_object_update(json_object_get(root, lists[i]), json_object_get(page, lists[i]));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        rc |= json_object_set(root, numbers[i], json_object_get(page, numbers[i]));
    if (json_object_get(page, "paused_key_count"))
        rc |= json_object_set(root, "paused_key_count", json_object_get(page, "paused_key_count"));
    return rc < 0 ? WEIR_EINTERNAL : 0;
}

static struct pages walk_from(struct weir *w, int64_t now_us, const json_t *place,
                              struct status_answer *answer)
{
    return (struct pages){.w = w,
                          .script = "status",
                          .now_us = now_us,
                          .arg = answer,
                          .take = take_page,
                          .place = place,
                          .here = true,
                          .ahead = true};
}

/* Walks through that, and through what is walked beside it. */
static int ask(struct weir *w, const struct pages *walks, size_t count, struct status_answer *answer)
{
    *answer = (struct status_answer){.root = json_pack("{s:{}, s:{}}", "seen", "first")};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        json_object_set_new(answer->root, lists[i], json_object());
    w->error.status = 0;
    if (answer->root && pages_walk_together(walks, count) == 0)
        return 0;
    if (w->error.status == 0)
        error_set(&w->error, WEIR_EINTERNAL, "status: out of memory, or unexpected answer from Redis");
    return w->error.status;
}

int status_ask(struct weir *w, int64_t now_us, const struct pages *beside, struct status_answer *answer)
{
    json_t *types = json_pack("[s, s]", "types", "0");
    const struct pages walks[] = {walk_from(w, now_us, types, answer), walk_from(w, now_us, NULL, answer),
                                  *beside};
    int rc = ask(w, walks, 3, answer);

    json_decref(types);
    return rc;
}

int status_ask_workers(struct weir *w, struct status_answer *answer)
{
    json_t *workers = json_pack("[s, s]", "workers", "0");
    const struct pages walk = walk_from(w, -1, workers, answer);
    int rc = ask(w, &walk, 1, answer);

    json_decref(workers);
    return rc;
}

void status_answer_free(struct status_answer *a)
{
    json_decref(a->root);
    json_decref(a->list_text);
    json_decref(a->list);
    *a = (struct status_answer){.root = NULL};
}
