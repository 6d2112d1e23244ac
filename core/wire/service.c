#include "core/wire/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The redis_version of a service is that of the Redis they stand for, so it is looked at last. */
static const struct service services[] = {
    {"dragonfly_version", "", "Dragonfly", true, NULL, NULL},
    {"garnet_version", "", "Garnet", true, NULL, NULL},
    {"os", "Amazon ElastiCache", "Amazon ElastiCache", false, "its parameter group", "its user group"},
    {"os", "Amazon MemoryDB", "Amazon MemoryDB", false, "its parameter group", "its access control list"},
    {"rlec_version", "", "Redis Cloud or Enterprise", false, "the settings of the database in its console",
     "the roles in its console"},
    {"upstash_version", "", "Upstash", false, "the settings of the database in its console",
     "the access control of its console"},
};

const struct service *service_of(const char *info)
{
    char value[64];

    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (info_text(info, services[i].field, value, sizeof value) &&
            strncmp(value, services[i].begins, strlen(services[i].begins)) == 0)
            return &services[i];
    return NULL;
}

static bool is_old(const char *info, char version[64])
{
    return info_text(info, "redis_version", version, 64) && atoi(version) < 7;
}

int service_check(const char *info, struct error *e)
{
    const struct service *service = service_of(info);
    char version[64];

    if (service && service->no_functions)
        info_text(info, service->field, version, sizeof version);
    else if (!is_old(info, version))
        return 0;
    return error_set(
        e, WEIR_ECONFIG,
        "Redis: %s %s has no functions, which Weir consists of; use Redis 7.0 or later, or Valkey",
        service ? service->name : "version", version);
}
