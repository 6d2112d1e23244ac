#include "queue/hold/hold.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/client/pages.h"
#include "core/client/reply.h"
#include "core/given.h"
#include "core/script/script.h"
#include "queue/limits/rate_request.h"
#include "throttle/limit.h"
#include "throttle/take/take.h"

#define LONGEST_S 1e9 /* more is as long as it takes */

int hold_take(struct weir *w, const char *target, int64_t cost, const char *costs, double ttl_s,
              double most_s, const volatile sig_atomic_t *stopped, struct weir_hold *hold, int64_t *asked_us)
{
    char who[RATE_BY_SIZE];
    struct take_lease lease = {.ttl_us = llround((ttl_s > 0 ? ttl_s : HOLD_TTL_USUAL_S) * 1e6), .who = who};
    struct weir_take take;
    int status;

    *hold = (struct weir_hold){0};
    if (!(ttl_s >= 0 && ttl_s <= HOLD_TTL_MOST_S) || lease.ttl_us < 1)
        return error_set(&w->error, WEIR_EUSAGE, "hold %.100s: wrong ttl; give up to a day", target);
    rate_by(who);
    status = take_on_lease(w, target, cost, costs,
                           most_s < 0 || most_s > LONGEST_S ? -1 : (int64_t)ceil(most_s * 1e6), stopped,
                           &lease, &take);
    *asked_us = lease.asked_us;
    if (status < 0)
        return status;
    *hold = (struct weir_hold){.allowed = take.allowed,
                               .never = take.never,
                               .limit = take.limit,
                               .remaining = take.remaining,
                               .retry_after_s = take.retry_after_s};
    if (take.allowed)
        snprintf(hold->token, sizeof hold->token, "%s", lease.token);
    return 0;
}

static int take_hold(struct weir *w, const char *target, int64_t cost, const char *costs, double ttl_s,
                     double most_s, struct weir_hold *hold, size_t size)
{
    static const volatile sig_atomic_t never_stopped;
    struct weir_hold own;
    int64_t asked_us;
    int status = hold_take(w, target, cost, costs, ttl_s, most_s, &never_stopped, &own, &asked_us);

    give_struct(hold, size, &own, sizeof own);
    return status;
}

int weir_hold_sized(struct weir *w, const char *target, int64_t cost, double ttl_s, double most_s,
                    struct weir_hold *hold, size_t size)
{
    if (GIVEN(w, PASSED(target), PASSED(hold)) < 0)
        return WEIR_EUSAGE;
    return take_hold(w, target, cost, NULL, ttl_s, most_s, hold, size);
}

int weir_hold_costs_sized(struct weir *w, const char *target, const char *costs, double ttl_s, double most_s,
                          struct weir_hold *hold, size_t size)
{
    if (GIVEN(w, PASSED(target), PASSED(costs), PASSED(hold)) < 0)
        return WEIR_EUSAGE;
    return take_hold(w, target, 0, costs, ttl_s, most_s, hold, size);
}

/* True for "<limit>~<tag>", a tag of letters and digits; *name_len: of the limit. */
static bool is_token(const char *token, size_t *name_len)
{
    char name[LIMIT_NAME_SIZE] = "";
    struct error ignored;
    const char *tag = token + (*name_len = strcspn(token, "~"));

    if (*name_len >= sizeof name || !*tag++ || !*tag)
        return false;
    while (isalnum((unsigned char)*tag))
        tag++;
    memcpy(name, token, *name_len);
    return !*tag && limit_name_check("limit", name, &ignored) == 0;
}

/* Calls a script about a token; spent NULL: it takes none. */
static int call_about(struct weir *w, const char *script, const char *token, const char *spent)
{
    size_t name_len;
    struct redisReply *reply = NULL;
    struct args a = {0};
    int status;

    if (!is_token(token, &name_len))
        return error_set(&w->error, WEIR_EINPUT,
                         "hold %.160s: no token of a hold; weir rate show NAME lists them", token);
    if (client_at_home(w, token, name_len) < 0)
        return w->error.status;
    script_begin(&a, script, w->prefix, -1);
    args_add(&a, token);
    if (spent)
        args_add(&a, spent);
    status = client_call(w, &a, &reply, NULL);
    args_free(&a);
    if (status == 0)
        status = reply_array(reply, 1, script, &w->error);
    if (status == 0 && reply_int(reply->element[0], 0) != 1)
        status = error_set(&w->error, WEIR_ENOTFOUND,
                           "hold %.160s: it is not held any more; it has ended, or was not renewed in time",
                           token);
    if (reply)
        freeReplyObject(reply);
    return status;
}

int weir_hold_renew(struct weir *w, const char *token)
{
    if (GIVEN(w, PASSED(token)) < 0)
        return WEIR_EUSAGE;
    return call_about(w, "hold_renew", token, NULL);
}

int weir_hold_end(struct weir *w, const char *token, int64_t spent)
{
    char text[32] = "";

    if (GIVEN(w, PASSED(token)) < 0)
        return WEIR_EUSAGE;
    if (spent > 1000000000)
        return error_set(&w->error, WEIR_EUSAGE, "hold %.160s: spent is above 10^9", token);
    if (spent >= 0)
        snprintf(text, sizeof text, "%" PRId64, spent);
    return call_about(w, "hold_end", token, text);
}

int weir_hold_spent(struct weir *w, const char *token, const char *spent)
{
    char text[COST_TEXT_SIZE];
    struct job_cost cost;
    struct error why;

    if (GIVEN(w, PASSED(token), PASSED(spent)) < 0)
        return WEIR_EUSAGE;
    if (cost_read(spent, COST_TRUE, &cost, &why) < 0)
        return error_set(&w->error, why.status, "hold %.160s: spent: %s", token, why.text);
    cost_write(&cost, text);
    return call_about(w, "hold_end", token, text);
}

struct list {
    const char *limit;
    json_t *rows;
};

static void ask_page(struct args *a, void *arg)
{
    args_add(a, ((const struct list *)arg)->limit);
}

static int take_page(const json_t *page, void *arg)
{
    return json_array_extend(((struct list *)arg)->rows, json_object_get(page, "holds")) < 0 ? WEIR_EINTERNAL
                                                                                             : 0;
}

int hold_list(struct weir *w, const char *limit, json_t **rows)
{
    struct list list = {.limit = limit, .rows = json_array()};
    const struct pages pages = {.w = w,
                                .script = "hold_list",
                                .now_us = -1,
                                .arg = &list,
                                .ask = ask_page,
                                .take = take_page,
                                .here = true};
    int status =
        list.rows ? client_at_home(w, limit, strlen(limit)) : error_no_memory(&w->error, "hold_list");

    *rows = NULL;
    if (status == 0)
        status = pages_walk(&pages);
    if (status == 0)
        *rows = list.rows;
    else
        json_decref(list.rows);
    return status;
}
