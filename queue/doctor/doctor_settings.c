/* What INFO says, against a table: of the rows of a check the first one that holds is told. */
#include <stdio.h>
#include <string.h>

#include "queue/doctor/doctor.h"
#include "queue/doctor/settings.h"

#define USE_REDIS_7 "use Redis 7.0 or later, or Valkey"
#define NO_EVICTION "=maxmemory-policy noeviction"
#define MAKE_ROOM "make room on its disk or in its memory, and read Redis's log"
#define MEMORY "{used_memory/MiB} of {maxmemory/MiB} MiB used"
#define FULL "full in about {weir_full_in} at the rate of the last {weir_grows_for}"
#define CONNECTIONS                                                                                          \
    "{connected_clients} of {maxclients} connections; a worker holds three and one for each further queue"

/* when: as settings_hold. {field} stands for what INFO says, {field/MiB} for the same bytes as MiB. What is to do
 * after "=" is a setting to change. A row without a text tells nothing: another check has said it. blocks: the
 * structures cannot be looked at. */
// clang-format off
static const struct setting {
    const char *check, *when;
    enum doctor_state state;
    const char *text, *todo;
    bool blocks;
} settings[] = {
    {"version", "-redis_version", DOCTOR_WARNING, "Redis does not say its version", USE_REDIS_7, false},
    {"version", "weir_functions=no", DOCTOR_WRONG, "{weir_service} has no functions, which Weir consists of", USE_REDIS_7, true},
    {"version", "-weir_service redis_version<7", DOCTOR_WRONG, "Redis {redis_version} has no functions, which Weir consists of", USE_REDIS_7, true},
    {"version", "weir_service", DOCTOR_OK, "{weir_service}, as Redis {redis_version}, which has all that Weir needs; its tests run on Redis 7.0", NULL, false},
    {"version", "valkey_version", DOCTOR_OK, "Valkey {valkey_version}, which has all that Weir needs; its tests run on Redis 7.0", NULL, false},
    {"version", "redis_version=7.0.", DOCTOR_OK, "Redis {redis_version}, on which Weir's tests run", NULL, false},
    {"version", "", DOCTOR_OK, "Redis {redis_version}, which has all that Weir needs; its tests run on 7.0", NULL, false},

    {"role", "role!master", DOCTOR_WRONG, "a replica, which takes no writes", "name its master: --redis redis://{master_host}:{master_port}", true},
    {"role", "", DOCTOR_OK, "a master, which takes writes", NULL, false},

    {"cluster", "cluster_enabled!0", DOCTOR_OK, "a node of a cluster; addresses must begin with redis+cluster://, so that Weir follows its keys", NULL, false},
    {"cluster", "", DOCTOR_OK, "not part of a cluster", NULL, false},

    {"aof", REDIS_HAS_NO_AOF " weir_snapshots=no", DOCTOR_WARNING, "off, and no snapshots are made: a restart of Redis loses all jobs, limits and schedules", "=appendonly yes", false},
    {"aof", REDIS_HAS_NO_AOF, DOCTOR_WARNING, "off: a restart of Redis loses all jobs since its last snapshot and runs others twice", "=appendonly yes", false},
    {"aof", "-aof_enabled", DOCTOR_WARNING, "Redis does not say whether it has one", "ask its provider", false},
    {"aof", "appendfsync=no", DOCTOR_WARNING, "on, and never synced: a power cut loses what the kernel has not written yet, half a minute or more", "=appendfsync everysec", false},
    {"aof", "appendfsync=always", DOCTOR_OK, "on: a restart loses nothing that was acknowledged", NULL, false},
    {"aof", "appendfsync=?", DOCTOR_OK, "on; not checked how often it is synced: the user may not run CONFIG GET", NULL, false},
    {"aof", "", DOCTOR_OK, "on: a restart loses the last second at most", NULL, false},

    {"persistence", "aof_last_write_status!ok", DOCTOR_WRONG, "the last write to the AOF failed, and Redis refuses writes until one succeeds", MAKE_ROOM, false},
    {"persistence", "rdb_last_bgsave_status!ok", DOCTOR_WRONG, "the last snapshot failed; Redis refuses writes while stop-writes-on-bgsave-error is on", MAKE_ROOM, false},
    {"persistence", "aof_last_bgrewrite_status!ok", DOCTOR_WARNING, "the last rewrite of the AOF failed: the file grows", MAKE_ROOM, false},
    {"persistence", "loading!0", DOCTOR_WARNING, "Redis is loading its data", "wait until it is done", false},
    {"persistence", REDIS_HAS_NO_AOF " weir_snapshots=no", DOCTOR_OK, NULL, NULL, false},
    {"persistence", "aof_enabled=1 rdb_saves>0", DOCTOR_OK, "the last snapshot and the last write of the AOF succeeded", NULL, false},
    {"persistence", "aof_enabled=1", DOCTOR_OK, "the last write of the AOF succeeded", NULL, false},
    {"persistence", "rdb_saves>0", DOCTOR_OK, "the last snapshot succeeded", NULL, false},
    {"persistence", "rdb_saves=0", DOCTOR_OK, "no snapshot since Redis was started", NULL, false},

    {"eviction", REDIS_EVICTS, DOCTOR_WRONG, "maxmemory-policy is {maxmemory_policy}: a full Redis deletes jobs and limits in silence; workers refuse to start", NO_EVICTION, false},
    {"eviction", "maxmemory_policy!noeviction", DOCTOR_WARNING, "maxmemory-policy is {maxmemory_policy}: once a maxmemory is set, a full Redis deletes jobs and limits in silence", NO_EVICTION, false},
    {"eviction", "", DOCTOR_OK, "nothing is evicted", NULL, false},

    {"memory", "maxmemory>0 weir_full_s<86400", DOCTOR_WARNING, MEMORY ", " FULL "; then Redis takes no more jobs, and workers go on", "raise maxmemory or drain the queues", false},
    {"memory", "maxmemory>0 used_memory>90%maxmemory", DOCTOR_WARNING, MEMORY "; a full Redis takes no more jobs, and workers go on", "raise maxmemory or drain the queues", false},
    {"memory", "maxmemory>0 weir_full_s", DOCTOR_OK, MEMORY ", " FULL, NULL, false},
    {"memory", "maxmemory>0", DOCTOR_OK, MEMORY, NULL, false},
    {"memory", "", DOCTOR_OK, "{used_memory/MiB} MiB used; no maxmemory", NULL, false},

    {"replicas", "min_slaves_good_slaves<min_replicas_to_write", DOCTOR_WRONG, "{min_slaves_good_slaves} in sync, and min-replicas-to-write is {min_replicas_to_write}: Redis takes no writes", "repair the replicas or their links", false},
    {"replicas", "connected_slaves>0 -min_slaves_good_slaves", DOCTOR_WARNING, "{connected_slaves} connected, none of which a write needs: a master that was replaced goes on taking jobs, and they are lost", "=min-replicas-to-write 1 min-replicas-max-lag 2", false},
    {"replicas", "connected_slaves>0", DOCTOR_OK, "{connected_slaves} connected, and a write needs one", NULL, false},
    {"replicas", "", DOCTOR_OK, "{connected_slaves} connected", NULL, false},

    {"clients", "maxclients>0 connected_clients>90%maxclients", DOCTOR_WARNING, CONNECTIONS, "raise maxclients", false},
    {"clients", "", DOCTOR_OK, CONNECTIONS, NULL, false},
};
// clang-format on

/* What stands for a field: "field" or "field/MiB". */
static void read_field(const char *info, const char *name, char value[128])
{
    char field[64];
    size_t len = strcspn(name, "/");

    snprintf(field, sizeof field, "%.*s", (int)len, name);
    if (name[len])
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

        if (strcmp(told, row->check) == 0 || !settings_hold(info, row->when))
            continue;
        told = row->check;
        usable &= !row->blocks;
        if (!row->text)
            continue;
        fill(info, row->text, text);
        if (row->todo && *row->todo == '=')
            settings_todo(info, row->todo + 1, todo, sizeof todo);
        else
            fill(info, row->todo, todo);
        doctor_add(d, row->check, row->state, todo, "%s", text);
    }
    return usable;
}
