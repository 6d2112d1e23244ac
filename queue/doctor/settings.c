#include "queue/doctor/settings.h"

#include <stdio.h>
#include <string.h>

#include "core/client/reply.h"

enum eviction settings_eviction(const char *info)
{
    char policy[32];

    if (!info_text(info, "maxmemory_policy", policy, sizeof policy) || strcmp(policy, "noeviction") == 0)
        return EVICTS_NOTHING;
    return info_number(info, "maxmemory", 0) > 0 ? EVICTS : EVICTS_LATER;
}

void settings_todo(const char *info, const char *parameter, char *out, size_t size)
{
    const struct service *service = service_of(info);
    char config[32];

    info_text(info, "weir_config", config, sizeof config);
    if (service && service->settings)
        snprintf(out, size, "set %s in %s", parameter, service->settings);
    else if (strcmp(config, "missing") == 0)
        snprintf(out, size, "set %s in the console of your service, which has no CONFIG", parameter);
    else
        snprintf(out, size, "redis-cli CONFIG SET %s, and the same in redis.conf%s", parameter,
                 *config ? "; at a managed service, in its console" : "");
}

bool settings_has_aof(const char *info)
{
    return info_number(info, "aof_enabled", 1) != 0;
}

static int check(const char *info, struct error *e)
{
    char policy[32], todo[256];

    if (info_number(info, "cluster_enabled", 0) != 0)
        return error_set(
            e, WEIR_ECONFIG,
            "Redis: is a node of a cluster, which Weir does not support; use a Redis of its own");
    if (settings_eviction(info) != EVICTS)
        return 0;
    info_text(info, "maxmemory_policy", policy, sizeof policy);
    settings_todo(info, "maxmemory-policy noeviction", todo, sizeof todo);
    return error_set(
        e, WEIR_ECONFIG,
        "Redis: its maxmemory-policy is %s: when it is full it deletes jobs and limits in silence; %s",
        policy, todo);
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
