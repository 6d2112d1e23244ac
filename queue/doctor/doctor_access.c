#include "queue/doctor/doctor_access.h"

#include <stdio.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/rights.h"
#include "core/script/script.h"

#define RULE_TOLD 150 /* a longer rule makes no line that anybody reads */

void access_add(char rule[ACCESS_RULE_SIZE], const char *right)
{
    size_t len = strlen(rule);

    snprintf(rule + len, ACCESS_RULE_SIZE - len, strpbrk(right, "|~") ? " '%s'" : " %s", right);
}

void access_request(struct args *a, const char *role, const char *prefix, int64_t now_us)
{
    script_begin_as(a, role, "doctor_access", prefix, now_us);
    args_add(a, role);
}

void access_miss(struct access *access, const char *command)
{
    size_t len = strlen(access->missing);

    snprintf(access->missing + len, sizeof access->missing - len, "%s%s", len ? ", " : "", command);
}

int access_reply(const struct redisReply *reply, const char *prefix, struct access *access, struct error *e)
{
    int status = reply_array(reply, 0, "doctor_access", e);
    char right[RIGHTS_WORD_SIZE];

    *access = (struct access){.rule = ""};
    for (size_t i = 0; status == 0 && i < reply->elements; i++) {
        const struct redisReply *word = reply->element[i];

        if (word->type != REDIS_REPLY_STRING)
            continue;
        if (word->str[0] == '?') {
            access_miss(access, word->str + 1);
            continue;
        }
        rights_word(word->str, word->len, prefix, right);
        access_add(access->rule, right);
    }
    return status;
}

int access_check(const struct redisReply *reply, const char *prefix, const char *user, struct error *e)
{
    struct access access;
    int status = access_reply(reply, prefix, &access, e);
    const char *rule = access.rule;

    if (status == 0 && *access.missing)
        return error_set(e, WEIR_ECONFIG,
                         "Redis: has no %.300s, which Weir calls; take rename-command out of redis.conf",
                         access.missing);
    if (status != 0 || !*rule)
        return status;
    if (!*user)
        user = "default";
    if (strlen(rule) > RULE_TOLD)
        return error_set(e, WEIR_EREFUSED, "Redis: user %s lacks rights; weir acl worker prints them", user);
    return error_set(e, WEIR_EREFUSED, "Redis: user %s lacks rights; redis-cli ACL SETUSER %s%s", user, user,
                     rule);
}
