#include "queue/limits/export.h"

#include <string.h>

#include "core/script/script.h"

struct exported {
    json_t *rows;
    int64_t now_us;
};

static int read_partition(struct weir *w, void *arg)
{
    struct exported *all = arg;
    json_t *answer = NULL, *next = NULL;
    int status;

    do {
        struct args a;

        args_init(&a);
        script_begin(&a, "rate_export", w->prefix, -1);
        for (size_t i = 0; i < json_array_size(next); i++)
            args_add(&a, json_string_value(json_array_get(next, i)));
        json_decref(answer);
        status = client_ask(w, "rate_export", &a, &answer);
        json_array_extend(all->rows, json_object_get(answer, "rows"));
        all->now_us = answer_int_or(answer, "now", all->now_us);
        next = json_object_get(answer, "next");
    } while (status == 0 && json_array_size(next) == 2);
    json_decref(answer);
    return status;
}

int rate_export(struct weir *w, json_t **rows, int64_t *now_us)
{
    struct exported all = {.rows = json_array()};
    int status = client_look_at_all(w, read_partition, &all);

    if (status < 0) {
        json_decref(all.rows);
        all.rows = NULL;
    }
    *rows = all.rows;
    *now_us = all.now_us;
    return status;
}

int rate_fits(struct weir *w, const char *type, int64_t cost, const char *const *limits,
              const char *const *rules, size_t count)
{
    json_t *answer;
    struct args a;
    int status;

    if (client_at_home(w, type, strlen(type)) < 0)
        return w->error.status;
    args_init(&a);
    script_begin(&a, "rate_fits", w->prefix, -1);
    args_add(&a, type);
    args_add_int(&a, cost);
    for (size_t i = 0; i < count; i++) {
        args_add(&a, limits[i]);
        args_add(&a, rules[i]);
    }
    status = client_ask(w, "rate_fits", &a, &answer);
    json_decref(answer);
    return status;
}
