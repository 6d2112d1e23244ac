#include "queue/limits/export.h"

#include <string.h>

#include "core/client/pages.h"
#include "core/script/script.h"
#include "throttle/cost_words.h"

struct exported {
    json_t *rows;
    int64_t now_us;
};

static int take_page(const json_t *page, void *arg)
{
    struct exported *all = arg;

    json_array_extend(all->rows, json_object_get(page, "rows"));
    all->now_us = answer_int_or(page, "now", all->now_us);
    return 0;
}

int rate_export(struct weir *w, json_t **rows, int64_t *now_us)
{
    struct exported all = {.rows = json_array()};
    int status = pages_walk(
        &(struct pages){.w = w, .script = "rate_export", .now_us = -1, .arg = &all, .take = take_page});

    if (status < 0) {
        json_decref(all.rows);
        all.rows = NULL;
    }
    *rows = all.rows;
    *now_us = all.now_us;
    return status;
}

int rate_fits(struct weir *w, const char *type, const char *cost, const char *const *limits,
              const char *const *rules, size_t count)
{
    char text[COST_TEXT_SIZE];
    struct job_cost said;
    json_t *answer;
    struct args a = {0};
    int status;

    if (cost_read(cost, COST_TAKEN, &said, &w->error) < 0)
        return w->error.status;
    cost_write(&said, text);
    if (client_at_home(w, type, strlen(type)) < 0)
        return w->error.status;
    script_begin(&a, "rate_fits", w->prefix, -1);
    args_add(&a, type);
    args_add(&a, text);
    for (size_t i = 0; i < count; i++) {
        args_add(&a, limits[i]);
        args_add(&a, rules[i]);
    }
    status = client_ask(w, "rate_fits", &a, &answer);
    json_decref(answer);
    return status;
}
