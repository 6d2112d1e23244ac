#include "queue/call/call.h"

#include <stdio.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"

static const struct {
    const char *verb, *script;
} scripts_of[] = {
    {"about", "call_about"},     {"batch", "call_produce"}, {"bulk", "call_produce"},
    {"cancel", "call_cancel"},   {"end", "call_take"},      {"hold", "call_take"},
    {"enqueue", "call_produce"}, {"job", "call_job"},       {"rate", "call_take"},
    {"renew", "call_take"},      {"take", "call_take"},
};

static const char *script_of(const char *verb)
{
    for (size_t i = 0; i < sizeof scripts_of / sizeof *scripts_of; i++)
        if (strcmp(scripts_of[i].verb, verb) == 0)
            return scripts_of[i].script;
    return NULL;
}

/* Reads the partition that an answer {"elsewhere":"weir:{3}:"} names; -1: it is another answer. */
static int elsewhere(const struct redisReply *reply)
{
    static const char begin[] = "{\"elsewhere\":\"";
    int p;

    if (reply->type != REDIS_REPLY_STRING || strncmp(reply->str, begin, sizeof begin - 1) != 0)
        return -1;
    return sscanf(reply->str + strcspn(reply->str + 1, "{") + 1, "{%d}", &p) == 1 && p >= 0 &&
                   p < PARTITIONS_MOST
               ? p
               : -1;
}

static int ask(struct weir *w, const char *verb, struct span document, struct redisReply **reply, bool *lost)
{
    struct args a = {0};
    int status;

    script_begin(&a, script_of(verb), w->prefix, -1);
    args_add(&a, verb);
    args_add_bytes(&a, document.at, document.len);
    status = client_call(w, &a, reply, lost);
    args_free(&a);
    return status;
}

int call_verb(struct weir *w, const char *verb, struct span document, struct text *answer, bool *lost)
{
    struct redisReply *reply = NULL;
    int status, p = 0;

    *lost = false;
    for (int hops = 0; p >= 0 && hops <= PARTITIONS_MOST; hops++) {
        freeReplyObject(reply);
        reply = NULL;
        status = client_at(w, p);
        if (!status)
            status = ask(w, verb, document, &reply, lost);
        if (status)
            return status;
        p = elsewhere(reply);
    }
    status = reply->type == REDIS_REPLY_STRING && p < 0 ? text_add(answer, reply->str, reply->len, &w->error)
                                                        : reply_unexpected(verb, &w->error);
    freeReplyObject(reply);
    return status;
}
