#include "core/client/pages.h"

#include "core/script/script.h"

/* Asks for the page behind *page, and puts it there. */
static int next_page(const struct pages *p, json_t **page)
{
    const json_t *place = json_object_get(*page, "next");
    json_t *next;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, p->script, p->w->prefix, p->now_us);
    if (p->ask)
        p->ask(&a, p->arg);
    for (size_t i = 0; i < json_array_size(place); i++) {
        const json_t *word = json_array_get(place, i);

        if (json_is_integer(word))
            word = json_array_get(json_object_get(*page, "raw"), (size_t)json_integer_value(word));
        args_add_bytes(&a, json_is_string(word) ? json_string_value(word) : "", json_string_length(word));
    }
    status = client_ask(p->w, p->script, &a, &next);
    json_decref(*page);
    *page = next;
    return status;
}

int pages_walk(const struct pages *p)
{
    json_t *page = NULL;
    int status;

    do {
        status = next_page(p, &page);
        if (status == 0)
            status = p->take(page, p->arg);
    } while (status == 0 && json_array_size(json_object_get(page, "next")) > 0);
    json_decref(page);
    return status;
}
