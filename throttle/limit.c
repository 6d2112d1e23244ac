#include "throttle/limit.h"

#include <stdio.h>
#include <string.h>

#include "core/client.h"
#include "core/reply.h"
#include "core/script.h"

#define LIST_FIELDS 6 /* of each limit in rate_list's answer */

int limit_name_check(const char *what, const char *name, struct error *e)
{
    size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");

    if (len == 0 || len >= LIMIT_NAME_SIZE || name[len])
        return error_set(e, WEIR_EINPUT, "%s '%.60s': no name; use 1 to 128 of A-Z a-z 0-9 _ . -", what,
                         name);
    return 0;
}

void rate_set_request(struct args *a, const char *prefix, int64_t now_us, const char *name, const char *rule)
{
    script_begin(a, "rate_set", prefix, now_us);
    args_add(a, name);
    args_add(a, rule);
}

int rate_set_reply(const struct redisReply *r, bool *existed, struct error *e)
{
    int status = reply_array(r, 1, "rate_set", e);

    if (status == 0)
        *existed = reply_int(r->element[0], 0) != 0;
    return status;
}

void rate_list_request(struct args *a, const char *prefix, int64_t now_us, const char *name)
{
    script_begin(a, "rate_list", prefix, now_us);
    args_add(a, name);
}

void limit_list_free(struct limit_list *list)
{
    free(list->at);
    *list = (struct limit_list){0};
}

/* Copies a string, cut where it does not fit. */
static void read_text(const struct redisReply *r, char *out, size_t size)
{
    if (r->type == REDIS_REPLY_STRING)
        snprintf(out, size, "%s", r->str);
}

/* fields: LIST_FIELDS elements of the answer. */
static void read_limit(struct redisReply *const *fields, struct limit *limit)
{
    struct error ignored;

    read_text(fields[0], limit->name, sizeof limit->name);
    read_text(fields[1], limit->stored, sizeof limit->stored);
    limit->parked = reply_int(fields[5], 0);
    limit->readable = fields[2]->len > 0 && rule_read(limit->stored, &limit->gate.rule, &ignored) == 0;
    if (limit->readable) {
        limit->gate.tat_us = reply_int(fields[2], 0);
        limit->gate.tat_rem = reply_int(fields[3], 0);
        limit->pause_until_us = reply_int(fields[4], 0);
    }
}

int rate_list_reply(const struct redisReply *r, struct limit_list *list, struct error *e)
{
    size_t count;

    if (reply_array(r, 1, "rate_list", e) < 0)
        return e->status;
    count = r->elements / LIST_FIELDS;
    *list = (struct limit_list){.at = calloc(count + 1, sizeof *list->at), .count = count};
    if (!list->at)
        return error_set(e, WEIR_EINTERNAL, "rate_list: out of memory; free some and try again");
    for (size_t i = 0; i < count; i++) {
        list->at[i].now_us = reply_int(r->element[0], 0);
        read_limit(r->element + 1 + i * LIST_FIELDS, &list->at[i]);
    }
    return 0;
}

/* When the gate is looked at again: now, or when its pause ends. */
static int64_t looked_at(const struct limit *limit)
{
    return limit->pause_until_us > limit->now_us ? limit->pause_until_us : limit->now_us;
}

int64_t limit_slots(const struct limit *limit)
{
    if (limit->pause_until_us > limit->now_us)
        return 0;
    return gcra_count(&limit->gate, limit->now_us, limit->gate.rule.burst, 1);
}

int64_t limit_next_start(const struct limit *limit)
{
    return gcra_start(&limit->gate, looked_at(limit), 1);
}

int64_t limit_last_start(const struct limit *limit)
{
    return limit->parked ? gcra_nth_start(&limit->gate, looked_at(limit), limit->parked, 1) : 0;
}

int limit_read(struct weir *w, const char *name, struct limit_list *list)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    if (name && limit_name_check("limit", name, &w->error) < 0)
        return w->error.status;
    args_init(&a);
    rate_list_request(&a, w->prefix, -1, name ? name : "");
    status = client_call(w, &a, &reply, NULL);
    if (status == 0)
        status = rate_list_reply(reply, list, &w->error);
    if (status == 0 && name && list->count == 0) {
        limit_list_free(list);
        status =
            error_set(&w->error, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them", name);
    }
    if (reply)
        freeReplyObject(reply);
    args_free(&a);
    return status;
}

/* rule: stored form, or "" to remove. */
static int change(struct weir *w, const char *name, const char *rule, bool *existed)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    rate_set_request(&a, w->prefix, -1, name, rule);
    status = client_call(w, &a, &reply, NULL);
    if (status == 0)
        status = rate_set_reply(reply, existed, &w->error);
    if (reply)
        freeReplyObject(reply);
    args_free(&a);
    return status;
}

int weir_rate_set(struct weir *w, const char *name, const char *rule)
{
    char stored[RULE_TEXT_SIZE];
    struct rule parsed;
    bool existed;

    if (limit_name_check("limit", name, &w->error) < 0 || rule_parse(rule, &parsed, &w->error) < 0)
        return w->error.status;
    rule_write(&parsed, stored);
    return change(w, name, stored, &existed);
}

int weir_rate_remove(struct weir *w, const char *name)
{
    bool existed;

    if (limit_name_check("limit", name, &w->error) < 0 || change(w, name, "", &existed) < 0)
        return w->error.status;
    if (!existed)
        return error_set(&w->error, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them",
                         name);
    return 0;
}
