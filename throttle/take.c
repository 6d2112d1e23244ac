#include "throttle/take.h"

#include <string.h>

#include "core/client.h"
#include "core/reply.h"
#include "core/script.h"

int take_make(struct take *t, const char *target, const char *rule, int64_t cost, bool peek, struct error *e)
{
    const char *slash = strchr(target, '/');
    size_t name_len = slash ? (size_t)(slash - target) : strlen(target);
    struct rule parsed;

    *t = (struct take){.cost = cost ? cost : 1, .peek = peek};
    if (name_len < sizeof t->name)
        memcpy(t->name, target, name_len);
    if (limit_name_check("limit", t->name, e) < 0 || (slash && limit_name_check("key", slash + 1, e) < 0))
        return e->status;
    if (slash)
        strcpy(t->key, slash + 1);
    if (cost < 0)
        return error_set(e, WEIR_EINPUT, "cost %lld: below 1; give how many slots to take", (long long)cost);
    if (rule) {
        if (rule_parse(rule, &parsed, e) < 0)
            return e->status;
        rule_write(&parsed, t->rule);
    }
    return 0;
}

void take_request(struct args *a, const char *prefix, int64_t now_us, const struct take *t)
{
    script_begin(a, "take", prefix, now_us);
    args_add(a, t->name);
    args_add(a, t->key);
    args_add(a, t->rule);
    args_add_int(a, t->cost);
    args_add_int(a, t->peek);
}

/* What take.lua answers instead when the limit does not allow the question. */
static const struct refusal {
    const char *word;
    int status;
    const char *text;
} refusals[] = {
    {"missing", WEIR_ENOTFOUND, "there is none; set it with weir rate set, or give a rule"},
    {"unkeyed", WEIR_EINPUT, "it has no keys; leave the key out"},
    {"differs", WEIR_EINPUT, "it has another rule; leave the rule out, or take from another name"},
    {"unreadable", WEIR_EINPUT, "its rule cannot be read; set it again with weir rate set"},
};

static int refused(const char *word, const struct take *t, struct error *e)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (strcmp(refusals[i].word, word) == 0)
            return error_set(e, refusals[i].status, "limit %s: %s", t->name, refusals[i].text);
    return error_set(e, WEIR_EINTERNAL, "take: unknown answer '%.60s'; use one version of weir", word);
}

enum take_field { ALLOWED, BURST, REMAINING, RETRY_AFTER, RESET_AFTER, NEVER, FIELDS };

int take_reply(const struct redisReply *r, const struct take *t, struct weir_take *out, struct error *e)
{
    int64_t field[FIELDS];

    if (r && r->type == REDIS_REPLY_STRING)
        return refused(r->str, t, e);
    if (reply_array(r, FIELDS, "take", e) < 0)
        return e->status;
    for (size_t i = 0; i < FIELDS; i++)
        field[i] = reply_int(r->element[i], 0);
    *out = (struct weir_take){
        .allowed = field[ALLOWED] != 0,
        .never = field[NEVER] != 0,
        .limit = field[BURST],
        .remaining = field[REMAINING],
        .retry_after_s = field[RETRY_AFTER] < 0 ? -1 : (double)field[RETRY_AFTER] / 1e6,
        .reset_after_s = (double)field[RESET_AFTER] / 1e6,
    };
    return 0;
}

int weir_take(struct weir *w, const char *target, const char *rule, int64_t cost, int flags,
              struct weir_take *take)
{
    struct redisReply *reply = NULL;
    struct args a;
    struct take t;
    int status;

    if (take_make(&t, target, rule, cost, flags & WEIR_TAKE_PEEK, &w->error) < 0)
        return w->error.status;
    args_init(&a);
    take_request(&a, w->prefix, -1, &t);
    status = client_call(w, &a, &reply, NULL);
    if (status == 0)
        status = take_reply(reply, &t, take, &w->error);
    if (reply)
        freeReplyObject(reply);
    args_free(&a);
    return status;
}
