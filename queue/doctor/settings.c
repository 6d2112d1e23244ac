#include "queue/doctor/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"

bool info_text(const char *info, const char *field, char *out, size_t size)
{
    size_t len = strlen(field);

    for (const char *line = info; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, field, len) != 0 || line[len] != ':')
            continue;
        line += len + 1;
        snprintf(out, size, "%.*s", (int)strcspn(line, "\r\n"), line);
        return true;
    }
    *out = '\0';
    return false;
}

int64_t info_number(const char *info, const char *field, int64_t missing)
{
    char text[32], *end;
    long long value;

    if (!info_text(info, field, text, sizeof text) || !*text)
        return missing;
    value = strtoll(text, &end, 10);
    return *end ? missing : value;
}

enum eviction settings_eviction(const char *info)
{
    char policy[32];

    if (!info_text(info, "maxmemory_policy", policy, sizeof policy) || strcmp(policy, "noeviction") == 0)
        return EVICTS_NOTHING;
    return info_number(info, "maxmemory", 0) > 0 ? EVICTS : EVICTS_LATER;
}

bool settings_has_functions(const char *info)
{
    char version[32];

    return !info_text(info, "redis_version", version, sizeof version) || atoi(version) >= 7;
}

bool settings_has_aof(const char *info)
{
    return info_number(info, "aof_enabled", 1) != 0;
}

static int check(const char *info, struct error *e)
{
    char policy[32];

    if (info_number(info, "cluster_enabled", 0) != 0)
        return error_set(
            e, WEIR_ECONFIG,
            "Redis: is a node of a cluster, which Weir does not support; use a Redis of its own");
    if (settings_eviction(info) != EVICTS)
        return 0;
    info_text(info, "maxmemory_policy", policy, sizeof policy);
    return error_set(
        e, WEIR_ECONFIG,
        "Redis: its maxmemory-policy is %s: when it is full it deletes jobs and limits in silence; "
        "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
        policy);
}

void settings_request(struct args *a)
{
    args_clear(a);
    args_add(a, "INFO");
}

int settings_reply(const struct redisReply *reply, struct settings *out, struct error *e)
{
    *out = (struct settings){.has_aof = true};
    if (reply->type == REDIS_REPLY_ERROR) {
        enum redis_fault fault = redis_fault(reply->str);

        out->hidden = fault == REDIS_FAULT_RIGHTS || fault == REDIS_FAULT_COMMAND;
        return out->hidden ? 0 : redis_fault_error(e, reply->str);
    }
    if (reply->type != REDIS_REPLY_STRING)
        return 0;
    out->has_aof = settings_has_aof(reply->str);
    return check(reply->str, e);
}
