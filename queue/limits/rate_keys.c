#include "queue/limits/rate_keys.h"

#include <stdio.h>
#include <string.h>

#include "core/client/pages.h"
#include "throttle/key.h"

/* The last page has all. */
static int take_page(const json_t *page, void *arg)
{
    json_t **answer = arg;

    json_decref(*answer);
    *answer = json_incref((json_t *)page);
    return 0;
}

int rate_keys_read(struct weir *w, const char *limit, int most, const char *key, json_t **answer)
{
    char made[KEY_NAMED_SIZE] = "", number[16];
    int status;

    *answer = NULL;
    if (limit_name_check("limit", limit, &w->error) < 0 || client_at_home(w, limit, strlen(limit)) < 0)
        return w->error.status;
    if (key)
        key_name(key, made);
    snprintf(number, sizeof number, "%d", most);
    status = pages_walk(&(struct pages){.w = w,
                                        .script = "rate_keys",
                                        .now_us = -1,
                                        .arg = answer,
                                        .words = ASK_WORDS(limit, number, made),
                                        .take = take_page,
                                        .here = true});
    if (status == 0 && *answer_text(*answer, "missing"))
        status =
            error_set(&w->error, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them", limit);
    if (status != 0) {
        json_decref(*answer);
        *answer = NULL;
    }
    return status;
}
