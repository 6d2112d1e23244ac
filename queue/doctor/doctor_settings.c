/* What INFO says, against a table: of the rows of a check the first one that holds is told. */
#include <stdio.h>
#include <string.h>

#include "queue/doctor/doctor.h"
#include "queue/doctor/settings.h"

static bool lacks_version(const char *info)
{
    char version[32];

    return !info_text(info, "redis_version", version, sizeof version);
}

static bool lacks_functions(const char *info)
{
    return !service_has_functions(info);
}

static bool is_lacking_service(const char *info)
{
    const struct service *service = service_of(info);

    return service && service->no_functions;
}

static bool is_service(const char *info)
{
    return service_of(info) != NULL;
}

static bool is_tested(const char *info)
{
    char version[32];

    return info_text(info, "redis_version", version, sizeof version) && strncmp(version, "7.0.", 4) == 0;
}

static bool lacks_aof(const char *info)
{
    return !settings_has_aof(info);
}

static bool evicts(const char *info)
{
    return settings_eviction(info) == EVICTS;
}

static bool evicts_later(const char *info)
{
    return settings_eviction(info) == EVICTS_LATER;
}

static bool is_beyond_90_percent(const char *info, const char *used, const char *most)
{
    return info_number(info, most, 0) > 0 && info_number(info, used, 0) > info_number(info, most, 0) / 10 * 9;
}

static bool is_almost_full(const char *info)
{
    return is_beyond_90_percent(info, "used_memory", "maxmemory");
}

static bool has_few_clients_left(const char *info)
{
    return is_beyond_90_percent(info, "connected_clients", "maxclients");
}

/* Those that writes need are fewer than configured: 1 where that cannot be seen. */
static bool lacks_replicas(const char *info)
{
    int64_t in_sync = info_number(info, "min_slaves_good_slaves", -1);

    return in_sync >= 0 && in_sync < info_number(info, "min_replicas_to_write", 1);
}

static bool has_replicas(const char *info)
{
    return info_number(info, "connected_slaves", 0) > 0;
}

/* A write needs none of its replicas. */
static bool needs_no_replica(const char *info)
{
    return has_replicas(info) && info_number(info, "min_slaves_good_slaves", -1) < 0;
}

static const char use_redis_7[] = "use Redis 7.0 or later, or Valkey";
static const char no_eviction[] = "=maxmemory-policy noeviction";
static const char make_room[] = "make room on its disk or in its memory, and read Redis's log";

/* {field} stands for what INFO says, {field/MiB} for the same bytes as MiB, {service} for its name. What is to do
 * after "=" is a setting to change. */
static const struct setting {
    const char *check;
    /* One of these, or neither: it holds. */
    bool (*holds)(const char *info);
    const char *field, *not ; /* the field is there, and is something else; not NULL: is anything */
    enum doctor_state state;
    const char *text, *todo;
    bool blocks; /* the structures cannot be looked at */
} settings[] = {
    {"version", lacks_version, NULL, NULL, DOCTOR_WARNING, "Redis does not say its version", use_redis_7,
     false},
    {"version", is_lacking_service, NULL, NULL, DOCTOR_WRONG,
     "{service} has no functions, which Weir consists of", use_redis_7, true},
    {"version", lacks_functions, NULL, NULL, DOCTOR_WRONG,
     "Redis {redis_version} has no functions, which Weir consists of",
     "install Redis 7.0 or later, or Valkey", true},
    {"version", NULL, "valkey_version", NULL, DOCTOR_OK,
     "Valkey {valkey_version}, which has all that Weir needs; its tests run on Redis 7.0", NULL, false},
    {"version", is_service, NULL, NULL, DOCTOR_OK,
     "{service}, as Redis {redis_version}, which has all that Weir needs; its tests run on Redis 7.0", NULL,
     false},
    {"version", is_tested, NULL, NULL, DOCTOR_OK, "Redis {redis_version}, on which Weir's tests run", NULL,
     false},
    {"version", NULL, NULL, NULL, DOCTOR_OK,
     "Redis {redis_version}, which has all that Weir needs; its tests run on 7.0", NULL, false},

    {"role", NULL, "role", "master", DOCTOR_WRONG, "a replica, which takes no writes",
     "name its master: --redis redis://{master_host}:{master_port}", true},
    {"role", NULL, NULL, NULL, DOCTOR_OK, "a master, which takes writes", NULL, false},

    {"cluster", NULL, "cluster_enabled", "0", DOCTOR_WRONG,
     "a node of a cluster, which Weir does not support", "use a Redis of its own, with cluster-enabled no",
     true},
    {"cluster", NULL, NULL, NULL, DOCTOR_OK, "not part of a cluster", NULL, false},

    {"aof", lacks_aof, NULL, NULL, DOCTOR_WARNING,
     "off: a restart of Redis loses all jobs since its last snapshot and runs others twice",
     "=appendonly yes", false},
    {"aof", NULL, NULL, NULL, DOCTOR_OK, "on: a restart loses the last second at most", NULL, false},

    {"persistence", NULL, "aof_last_write_status", "ok", DOCTOR_WRONG,
     "the last write to the AOF failed, and Redis refuses writes until one succeeds", make_room, false},
    {"persistence", NULL, "rdb_last_bgsave_status", "ok", DOCTOR_WRONG,
     "the last snapshot failed; Redis refuses writes while stop-writes-on-bgsave-error is on", make_room,
     false},
    {"persistence", NULL, "aof_last_bgrewrite_status", "ok", DOCTOR_WARNING,
     "the last rewrite of the AOF failed: the file grows", make_room, false},
    {"persistence", NULL, "loading", "0", DOCTOR_WARNING, "Redis is loading its data",
     "wait until it is done", false},
    {"persistence", NULL, NULL, NULL, DOCTOR_OK, "the last snapshot and the last write of the AOF succeeded",
     NULL, false},

    {"eviction", evicts, NULL, NULL, DOCTOR_WRONG,
     "maxmemory-policy is {maxmemory_policy}: a full Redis deletes jobs and limits in silence; workers "
     "refuse "
     "to start",
     no_eviction, false},
    {"eviction", evicts_later, NULL, NULL, DOCTOR_WARNING,
     "maxmemory-policy is {maxmemory_policy}: once a maxmemory is set, a full Redis deletes jobs and limits "
     "in silence",
     no_eviction, false},
    {"eviction", NULL, NULL, NULL, DOCTOR_OK, "nothing is evicted", NULL, false},

    {"memory", is_almost_full, NULL, NULL, DOCTOR_WARNING,
     "{used_memory/MiB} of {maxmemory/MiB} MiB used; a full Redis takes no more jobs, and workers go on",
     "raise maxmemory or drain the queues", false},
    {"memory", NULL, "maxmemory", "0", DOCTOR_OK, "{used_memory/MiB} of {maxmemory/MiB} MiB used", NULL,
     false},
    {"memory", NULL, NULL, NULL, DOCTOR_OK, "{used_memory/MiB} MiB used; no maxmemory", NULL, false},

    {"replicas", lacks_replicas, NULL, NULL, DOCTOR_WRONG,
     "{min_slaves_good_slaves} in sync, and min-replicas-to-write is {min_replicas_to_write}: Redis takes no "
     "writes",
     "repair the replicas or their links", false},
    {"replicas", needs_no_replica, NULL, NULL, DOCTOR_WARNING,
     "{connected_slaves} connected, none of which a write needs: a master that was replaced goes on taking "
     "jobs, and they are lost",
     "=min-replicas-to-write 1 min-replicas-max-lag 2", false},
    {"replicas", has_replicas, NULL, NULL, DOCTOR_OK, "{connected_slaves} connected, and a write needs one",
     NULL, false},
    {"replicas", NULL, NULL, NULL, DOCTOR_OK, "{connected_slaves} connected", NULL, false},

    {"clients", has_few_clients_left, NULL, NULL, DOCTOR_WARNING,
     "{connected_clients} of {maxclients} connections; a worker holds three and one for each further queue",
     "raise maxclients", false},
    {"clients", NULL, NULL, NULL, DOCTOR_OK,
     "{connected_clients} of {maxclients} connections; a worker holds three and one for each further queue",
     NULL, false},
};

static bool holds(const struct setting *row, const char *info)
{
    char value[128];

    if (row->holds)
        return row->holds(info);
    if (!row->field)
        return true;
    return info_text(info, row->field, value, sizeof value) && (!row->not || strcmp(value, row->not ) != 0);
}

/* What stands for a field: "field" or "field/MiB". */
static void read_field(const char *info, const char *name, char value[128])
{
    char field[64];
    size_t len = strcspn(name, "/");

    snprintf(field, sizeof field, "%.*s", (int)len, name);
    if (strcmp(field, "service") == 0)
        snprintf(value, 128, "%s", service_of(info)->name);
    else if (name[len])
        snprintf(value, 128, "%lld", (long long)((info_number(info, field, 0) + (1 << 19)) >> 20));
    else if (!info_text(info, field, value, 128))
        snprintf(value, 128, "?");
}

/* text with what INFO says in place of its fields. */
static void fill(const char *info, const char *text, char out[512])
{
    size_t len = 0;

    *out = '\0';
    while (text && *text && len < 511) {
        size_t plain = strcspn(text, "{"), end = plain + strcspn(text + plain, "}");
        char name[64], value[128] = "";

        if (text[plain] == '{') {
            snprintf(name, sizeof name, "%.*s", (int)(end - plain - 1), text + plain + 1);
            read_field(info, name, value);
            end++;
        }
        len += (size_t)snprintf(out + len, 512 - len, "%.*s%s", (int)plain, text, value);
        text += end;
    }
}

bool doctor_settings(struct doctor *d, const char *info)
{
    const char *told = "";
    char text[512], todo[512];
    bool usable = true;

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct setting *row = &settings[i];

        if (strcmp(told, row->check) == 0 || !holds(row, info))
            continue;
        told = row->check;
        usable &= !row->blocks;
        fill(info, row->text, text);
        if (row->todo && *row->todo == '=')
            settings_todo(info, row->todo + 1, todo, sizeof todo);
        else
            fill(info, row->todo, todo);
        doctor_add(d, row->check, row->state, todo, "%s", text);
    }
    return usable;
}
