#include "queue/limits/rate_keys.h"

#include <string.h>

#include "core/client/pages.h"
#include "throttle/key.h"

struct question {
    const char *limit;
    int most;
    char key[LIMIT_NAME_SIZE];
    json_t *answer;
};

static void ask_page(struct args *a, void *arg)
{
    const struct question *q = arg;

    args_add(a, q->limit);
    args_add_int(a, q->most);
    args_add(a, q->key);
}

/* The last page has all. */
static int take_page(const json_t *page, void *arg)
{
    struct question *q = arg;

    json_decref(q->answer);
    q->answer = json_incref((json_t *)page);
    return 0;
}

int rate_keys_read(struct weir *w, const char *limit, int most, const char *key, json_t **answer)
{
    struct question q = {.limit = limit, .most = most};
    const struct pages pages = {.w = w,
                                .script = "rate_keys",
                                .now_us = -1,
                                .arg = &q,
                                .ask = ask_page,
                                .take = take_page,
                                .here = true};
    int status;

    *answer = NULL;
    if (limit_name_check("limit", limit, &w->error) < 0 || client_at_home(w, limit, strlen(limit)) < 0)
        return w->error.status;
    if (key)
        key_make(key, strlen(key), q.key);
    status = pages_walk(&pages);
    if (status == 0 && *answer_text(q.answer, "missing"))
        status =
            error_set(&w->error, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them", limit);
    if (status == 0)
        *answer = q.answer;
    else
        json_decref(q.answer);
    return status;
}
