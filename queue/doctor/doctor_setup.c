/* Redis itself. It is asked over a connection that does without our functions, so that also a replica, or one
 * that is too old, can be told so. What the user may not look at is said to be so; it is no error. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/redis/client.h"
#include "core/redis/reply.h"
#include "core/redis/script.h"
#include "queue/doctor/doctor.h"
#include "queue/doctor/doctor_access.h"
#include "queue/doctor/settings.h"

#define ROUND_TRIPS 5
#define SLOW_US 50000    /* a round trip that slows every turn down */
#define CLOCK_US 1000000 /* a difference of clocks that times in messages show */
#define SLOWLOG_MOST "128"
#define LIBRARIES_MOST 64

struct setup {
    struct weir *w;
    struct redis *redis; /* plain */
    struct doctor *d;
    int64_t now_us;
    bool repair;
    char user[128];
    struct error error; /* of the last question */
};

/* One question; NULL: no answer, see s->error. The answer is the caller's. */
static struct redisReply *ask(struct setup *s, const char *word, ...) __attribute__((sentinel));
static struct redisReply *ask(struct setup *s, const char *word, ...)
{
    struct redisReply *reply = NULL;
    struct args a;
    va_list rest;

    s->error.status = 0;
    args_init(&a);
    va_start(rest, word);
    for (; word; word = va_arg(rest, const char *))
        args_add(&a, word);
    va_end(rest);
    if (redis_call(s->redis, &a, &reply, NULL, &s->error) != 0)
        reply = NULL;
    args_free(&a);
    return reply;
}

static bool is_lost(const struct setup *s)
{
    return s->error.status == WEIR_EUNREACHABLE;
}

/* The user is logged in, and may not ask that. */
static bool is_forbidden(const struct setup *s)
{
    return s->error.status == WEIR_EREFUSED && strstr(s->error.text, "NOPERM");
}

static const char missing_todo[] = "take rename-command out of redis.conf";

/* The user may not ask that, or Redis has no such command. */
static void add_hidden(struct setup *s, const char *name, const char *command)
{
    char todo[ACCESS_RULE_SIZE + 200], rule[ACCESS_RULE_SIZE] = "";

    if (s->error.status == WEIR_ECONFIG) {
        doctor_add(s->d, name, DOCTOR_WARNING, missing_todo, "cannot be asked: Redis has no %s", command);
        return;
    }
    access_add(rule, command);
    snprintf(todo, sizeof todo, "redis-cli ACL SETUSER %s%s", s->user, rule);
    doctor_add(s->d, name, DOCTOR_WARNING, todo, "not allowed to look: the user may not run %s", command);
}

/* ---- Reached */

static void ask_user(struct setup *s)
{
    struct redisReply *reply = ask(s, "ACL", "WHOAMI", NULL);

    snprintf(s->user, sizeof s->user, "%s", reply && reply->type == REDIS_REPLY_STRING ? reply->str : "USER");
    freeReplyObject(reply);
}

static int check_reach(struct setup *s)
{
    int64_t best_us = INT64_MAX, worst_us = 0;

    for (int i = 0; i <= ROUND_TRIPS; i++) { /* the first one connects */
        int64_t begin_us = clock_mono_us(), took_us;

        freeReplyObject(ask(s, "PING", NULL));
        if (is_lost(s) || (i == 0 && s->error.status && !is_forbidden(s)))
            return s->error.status;
        took_us = clock_mono_us() - begin_us;
        if (i > 0 && took_us > worst_us)
            worst_us = took_us;
        if (i > 0 && took_us < best_us)
            best_us = took_us;
    }
    doctor_add(s->d, "redis", best_us > SLOW_US ? DOCTOR_WARNING : DOCTOR_OK,
               best_us > SLOW_US ? "run workers near their Redis" : NULL,
               "it answers; a round trip takes %.2f ms, the longest of %d %.2f ms", (double)best_us / 1e3,
               ROUND_TRIPS, (double)worst_us / 1e3);
    return 0;
}

/* ---- What INFO says */

static void check_version(struct setup *s, const char *info)
{
    char version[32], other[32];

    if (!info_text(info, "redis_version", version, sizeof version))
        doctor_add(s->d, "version", DOCTOR_WARNING, "use Redis 7.0 or later, or Valkey",
                   "Redis does not tell its version");
    else if (!settings_has_functions(info))
        doctor_add(s->d, "version", DOCTOR_WRONG, "install Redis 7.0 or later, or Valkey",
                   "Redis %s has no functions, which Weir consists of", version);
    else if (info_text(info, "dragonfly_version", other, sizeof other))
        doctor_add(s->d, "version", DOCTOR_WARNING, "use Redis 7.0 or later, or Valkey",
                   "Dragonfly %s: Weir was never tried on it", other);
    else if (info_text(info, "valkey_version", other, sizeof other))
        doctor_add(s->d, "version", DOCTOR_OK, NULL,
                   "Valkey %s, which has all that Weir needs; its tests run on Redis 7.0", other);
    else
        doctor_add(s->d, "version", DOCTOR_OK, NULL,
                   strncmp(version, "7.0.", 4) == 0
                       ? "Redis %s, on which Weir's tests run"
                       : "Redis %s, which has all that Weir needs; its tests run on 7.0",
                   version);
}

static void check_role(struct setup *s, const char *info)
{
    char role[32], host[128] = "", todo[200];

    if (!info_text(info, "role", role, sizeof role) || strcmp(role, "master") == 0) {
        doctor_add(s->d, "role", DOCTOR_OK, NULL, "a master, which takes writes");
        return;
    }
    info_text(info, "master_host", host, sizeof host);
    snprintf(todo, sizeof todo, "name its master: --redis redis://%s:%" PRId64, host,
             info_number(info, "master_port", 6379));
    doctor_add(s->d, "role", DOCTOR_WRONG, todo, "a replica, which takes no writes");
}

static void check_cluster(struct setup *s, const char *info)
{
    if (info_number(info, "cluster_enabled", 0) != 0)
        doctor_add(s->d, "cluster", DOCTOR_WRONG, "use a Redis of its own, with cluster-enabled no",
                   "a node of a cluster, which Weir does not support");
    else
        doctor_add(s->d, "cluster", DOCTOR_OK, NULL, "not part of a cluster");
}

static void check_aof(struct setup *s, const char *info)
{
    if (settings_has_aof(info))
        doctor_add(s->d, "aof", DOCTOR_OK, NULL, "on: a restart keeps all but what the last second brought");
    else
        doctor_add(s->d, "aof", DOCTOR_WARNING,
                   "redis-cli CONFIG SET appendonly yes, and appendonly yes in redis.conf",
                   "off: a restart of Redis loses all jobs since its last snapshot and runs others twice");
}

static bool is_bad(const char *info, const char *field)
{
    char status[16];

    return info_text(info, field, status, sizeof status) && strcmp(status, "ok") != 0;
}

static void check_persistence(struct setup *s, const char *info)
{
    bool loading = info_number(info, "loading", 0) != 0;

    if (is_bad(info, "aof_last_write_status"))
        doctor_add(s->d, "persistence", DOCTOR_WRONG, "make room on its disk, see Redis's log",
                   "the last write to the AOF failed, and Redis refuses writes until one succeeds");
    else if (is_bad(info, "rdb_last_bgsave_status"))
        doctor_add(s->d, "persistence", DOCTOR_WRONG,
                   "make room on its disk or in its memory, see Redis's log",
                   "the last snapshot failed; Redis refuses writes while stop-writes-on-bgsave-error is on");
    else if (is_bad(info, "aof_last_bgrewrite_status"))
        doctor_add(s->d, "persistence", DOCTOR_WARNING,
                   "make room on its disk or in its memory, see Redis's log",
                   "the last rewrite of the AOF failed: the file grows");
    else
        doctor_add(s->d, "persistence", loading ? DOCTOR_WARNING : DOCTOR_OK,
                   loading ? "wait until it has" : NULL,
                   loading ? "Redis is loading its data"
                           : "the last snapshot and the last write of the AOF succeeded");
}

static void check_eviction(struct setup *s, const char *info)
{
    static const char todo[] = "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf";
    enum eviction eviction = settings_eviction(info);
    char policy[32] = "";

    info_text(info, "maxmemory_policy", policy, sizeof policy);
    if (eviction == EVICTS)
        doctor_add(s->d, "eviction", DOCTOR_WRONG, todo,
                   "maxmemory-policy is %s: a full Redis deletes jobs and limits in silence; workers refuse "
                   "to start",
                   policy);
    else if (eviction == EVICTS_LATER)
        doctor_add(s->d, "eviction", DOCTOR_WARNING, todo,
                   "maxmemory-policy is %s: once a maxmemory is set, a full Redis deletes jobs and limits in "
                   "silence",
                   policy);
    else
        doctor_add(s->d, "eviction", DOCTOR_OK, NULL, "nothing is evicted");
}

static void check_memory(struct setup *s, const char *info)
{
    int64_t used = info_number(info, "used_memory", 0), most = info_number(info, "maxmemory", 0);
    double mib = 1024 * 1024;

    if (most == 0)
        doctor_add(s->d, "memory", DOCTOR_OK, NULL, "%.0f MiB used; no maxmemory", (double)used / mib);
    else if (used > most / 10 * 9)
        doctor_add(s->d, "memory", DOCTOR_WARNING, "raise maxmemory or drain the queues",
                   "%.0f of %.0f MiB used; a full Redis takes no more jobs, and workers go on",
                   (double)used / mib, (double)most / mib);
    else
        doctor_add(s->d, "memory", DOCTOR_OK, NULL, "%.0f of %.0f MiB used", (double)used / mib,
                   (double)most / mib);
}

/* How many replicas must be in sync for a write: 1 where that cannot be seen. */
static int64_t replicas_wanted(struct setup *s)
{
    struct redisReply *reply = ask(s, "CONFIG", "GET", "min-replicas-to-write", NULL);
    bool told = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 1;
    int64_t wanted = told ? reply_int(reply->element[1], 1) : 1;

    freeReplyObject(reply);
    return wanted;
}

static void check_replicas(struct setup *s, const char *info)
{
    int64_t replicas = info_number(info, "connected_slaves", 0);
    int64_t in_sync = info_number(info, "min_slaves_good_slaves", -1), wanted;

    if (in_sync >= 0 && in_sync < (wanted = replicas_wanted(s)))
        doctor_add(s->d, "replicas", DOCTOR_WRONG, "mend the replicas or their links",
                   "%" PRId64 " in sync, and min-replicas-to-write is %" PRId64 ": Redis takes no writes",
                   in_sync, wanted);
    else if (replicas > 0 && in_sync < 0)
        doctor_add(
            s->d, "replicas", DOCTOR_WARNING,
            "redis-cli CONFIG SET min-replicas-to-write 1 min-replicas-max-lag 2, and the same in redis.conf",
            "%" PRId64 " connected, none of which a write needs: a master that was replaced goes on taking "
            "jobs, and they are lost",
            replicas);
    else
        doctor_add(s->d, "replicas", DOCTOR_OK, NULL,
                   replicas > 0 ? "%" PRId64 " connected, and a write needs one" : "%" PRId64 " connected",
                   replicas);
}

static void check_clients(struct setup *s, const char *info)
{
    int64_t clients = info_number(info, "connected_clients", 0), most = info_number(info, "maxclients", 0);
    bool full = most > 0 && clients > most / 10 * 9;

    doctor_add(s->d, "clients", full ? DOCTOR_WARNING : DOCTOR_OK, full ? "raise maxclients" : NULL,
               "%" PRId64 " of %" PRId64 " connections; a worker holds three and one for each further queue",
               clients, most);
}

/* Returns whether the structures can be looked at. */
static bool check_info(struct setup *s, const char *info)
{
    static void (*const checks[])(struct setup * s, const char *info) = {
        check_version,  check_role,   check_cluster,  check_aof,     check_persistence,
        check_eviction, check_memory, check_replicas, check_clients,
    };
    char role[32];

    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        checks[i](s, info);
    return settings_has_functions(info) && info_number(info, "cluster_enabled", 0) == 0 &&
           (!info_text(info, "role", role, sizeof role) || strcmp(role, "master") == 0);
}

/* ---- Clock, slow log */

/* 0: what stands there is no time. */
static int64_t seconds_us(const struct redisReply *time)
{
    int64_t seconds = reply_int(time->element[0], 0), us = reply_int(time->element[1], 0);

    return seconds >= 0 && seconds < INT64_MAX / 1000000 && us >= 0 && us < 1000000 ? seconds * 1000000 + us
                                                                                    : 0;
}

static void check_clock(struct setup *s)
{
    int64_t begin_us = clock_mono_us(), here_us, apart_us;
    struct redisReply *reply = ask(s, "TIME", NULL);

    here_us = clock_wall_us() - (clock_mono_us() - begin_us) / 2;
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < 2) {
        freeReplyObject(reply);
        add_hidden(s, "clock", "time");
        return;
    }
    apart_us = seconds_us(reply) - here_us;
    freeReplyObject(reply);
    if (apart_us > CLOCK_US || apart_us < -CLOCK_US)
        doctor_add(
            s->d, "clock", DOCTOR_WARNING, "set the clocks of both machines by NTP",
            "Redis's clock is %.1f s %s this machine's; rates go by Redis's, times given here by this one's",
            (double)llabs(apart_us) / 1e6, apart_us > 0 ? "before" : "behind");
    else
        doctor_add(s->d, "clock", DOCTOR_OK, NULL, "as this machine's");
}

/* One entry of the slow log: how long a call of ours took, us; 0: it is none. */
static int64_t slow_call(const struct redisReply *entry)
{
    const struct redisReply *words =
        entry->type == REDIS_REPLY_ARRAY && entry->elements > 3 ? entry->element[3] : NULL;

    if (!words || words->type != REDIS_REPLY_ARRAY || words->elements < 2 ||
        words->element[1]->type != REDIS_REPLY_STRING)
        return 0;
    return strncmp(words->element[1]->str, "weir_", 5) == 0 ? reply_int(entry->element[2], 0) : 0;
}

static void check_latency(struct setup *s)
{
    struct redisReply *reply = ask(s, "SLOWLOG", "GET", SLOWLOG_MOST, NULL);
    int64_t longest_us = 0;
    int count = 0;

    if (!reply) {
        add_hidden(s, "latency", "slowlog|get");
        return;
    }
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        int64_t took_us = slow_call(reply->element[i]);

        count += took_us > 0;
        longest_us = took_us > longest_us ? took_us : longest_us;
    }
    freeReplyObject(reply);
    if (count > 0)
        doctor_add(s->d, "latency", DOCTOR_WARNING,
                   "see redis-cli SLOWLOG GET; look for swapping, slow disks and large jobs",
                   "%d of Weir's calls are in the slow log, the longest took %.1f ms", count,
                   (double)longest_us / 1e3);
    else
        doctor_add(s->d, "latency", DOCTOR_OK, NULL, "none of Weir's calls is in the slow log");
}

/* ---- Rights */

static void judge_blocking(struct setup *s, const char *command, struct access *found)
{
    if (s->error.status == WEIR_EREFUSED)
        access_add(found->rule, command);
    else if (s->error.status == WEIR_ECONFIG)
        access_miss(found, command);
}

/* Commands that workers call themselves, tried with a time that is none: Redis looks at the user's rights
 * first. */
static void try_blocking(struct setup *s, struct access *found)
{
    char key[PREFIX_SIZE + 16];

    snprintf(key, sizeof key,
             "%s"
             "bell:doctor",
             s->w->prefix);
    freeReplyObject(ask(s, "BLPOP", key, "never", NULL));
    judge_blocking(s, "blpop", found);
    freeReplyObject(ask(s, "BLMOVE", key, key, "LEFT", "LEFT", "never", NULL));
    judge_blocking(s, "blmove", found);
}

/* All that a user needs. */
static void add_all_rights(char rule[ACCESS_RULE_SIZE])
{
    static const char *const others[] = {"fcall", "function|load", "blpop", "blmove", "info", "ping"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        access_add(rule, others[i]);
    for (const char *const *command = script_commands; *command; command++)
        access_add(rule, *command);
}

/* Which of the commands of scripts it may not run; -1: it may run no script. */
static int try_scripts(struct setup *s, struct access *found)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    access_request(&a, s->w->prefix, s->now_us);
    status = client_call(s->w, &a, &reply, NULL);
    args_free(&a);
    if (status == 0)
        status = access_reply(reply, s->w->prefix, found, &s->w->error);
    freeReplyObject(reply);
    return status;
}

static int check_rights(struct setup *s, bool *usable)
{
    struct access found = {.rule = ""};
    char *rule = found.rule, todo[ACCESS_RULE_SIZE + 200];
    int status = try_scripts(s, &found);

    if (status != 0 && status != WEIR_EREFUSED)
        return status;
    if (status != 0) {
        snprintf(rule, sizeof found.rule, " '~%s*'", s->w->prefix);
        if (!strstr(s->w->error.text, "access one of the keys"))
            add_all_rights(rule);
    } else {
        try_blocking(s, &found);
    }
    *usable = !*found.missing && !*rule;
    if (*found.missing)
        doctor_add(s->d, "commands", DOCTOR_WRONG, missing_todo, "Redis has no %s, which Weir calls",
                   found.missing);
    if (!*rule) {
        doctor_add(s->d, "permissions", DOCTOR_OK, NULL, "user %s may run all that Weir uses", s->user);
        return 0;
    }
    s->d->refused = true;
    snprintf(todo, sizeof todo, "redis-cli ACL SETUSER %s%s", s->user, rule);
    doctor_add(s->d, "permissions", DOCTOR_WRONG, todo, "user %s lacks rights%s%s", s->user,
               status ? ": " : "", status ? s->w->error.text : "");
    return 0;
}

/* ---- Functions */

struct libraries {
    char names[LIBRARIES_MOST][64];
    size_t count;
};

/* Those of other versions of Weir; false: not allowed to look. */
static bool list_libraries(struct setup *s, struct libraries *old)
{
    struct redisReply *reply = ask(s, "FUNCTION", "LIST", "LIBRARYNAME", "weir_*", NULL);

    if (!reply)
        return false;
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const struct redisReply *library = reply->element[i];
        const char *name = library->elements > 1 && library->element[1]->type == REDIS_REPLY_STRING
                               ? library->element[1]->str
                               : "";

        if (strncmp(name, "weir_", 5) == 0 && strcmp(name + 5, script_digest) != 0 &&
            old->count < LIBRARIES_MOST)
            snprintf(old->names[old->count++], sizeof old->names[0], "%s", name);
    }
    freeReplyObject(reply);
    return true;
}

/* Leaves those that no worker uses. A worker that does not say what it uses may use any. */
static int drop_used(struct setup *s, struct libraries *old)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    script_begin(&a, "doctor_workers", s->w->prefix, s->now_us);
    status = client_call(s->w, &a, &reply, NULL);
    args_free(&a);
    for (size_t i = 0; status == 0 && i < reply->elements; i++) {
        const char *digest = reply->element[i]->type == REDIS_REPLY_STRING ? reply->element[i]->str : "";

        for (size_t k = old->count; k > 0; k--)
            if (!*digest || strcmp(old->names[k - 1] + 5, digest) == 0)
                memmove(&old->names[k - 1], &old->names[k], (--old->count - (k - 1)) * sizeof old->names[0]);
    }
    freeReplyObject(reply);
    return status;
}

static void delete_libraries(struct setup *s, const struct libraries *old)
{
    size_t deleted = 0;

    for (size_t i = 0; i < old->count; i++) {
        struct redisReply *reply = ask(s, "FUNCTION", "DELETE", old->names[i], NULL);

        deleted += reply != NULL;
        freeReplyObject(reply);
    }
    if (deleted == old->count)
        doctor_add(s->d, "functions", DOCTOR_MENDED, NULL,
                   "%zu older libraries that no worker uses were deleted", deleted);
    else
        add_hidden(s, "functions", "function|delete");
}

static int check_functions(struct setup *s)
{
    struct libraries old = {.count = 0};
    size_t all;
    int status;

    if (!list_libraries(s, &old)) {
        add_hidden(s, "functions", "function|list");
        return 0;
    }
    all = old.count;
    status = all > 0 ? drop_used(s, &old) : 0;
    if (status != 0)
        return status;
    if (old.count == 0)
        doctor_add(s->d, "functions", DOCTOR_OK, NULL,
                   all ? "this version's are loaded; of %zu older ones all may be in use"
                       : "this version's are loaded",
                   all);
    else if (s->repair)
        delete_libraries(s, &old);
    else
        doctor_add(s->d, "functions", DOCTOR_WARNING, "weir doctor --repair deletes them",
                   "%zu older libraries that no worker uses are loaded", old.count);
    return 0;
}

/* ---- All of it */

static int look_at_redis(struct setup *s, bool *usable)
{
    struct redisReply *info;
    int status = check_reach(s);

    if (status != 0)
        return status;
    ask_user(s);
    info = ask(s, "INFO", NULL);
    *usable = true;
    if (info && info->type == REDIS_REPLY_STRING)
        *usable = check_info(s, info->str);
    else if (!is_lost(s))
        add_hidden(s, "info", "info");
    freeReplyObject(info);
    check_clock(s);
    check_latency(s);
    if (is_lost(s))
        return s->error.status;
    if (*usable)
        status = check_rights(s, usable);
    *usable = *usable && status == 0;
    return *usable ? check_functions(s) : status;
}

int doctor_setup(struct weir *w, int64_t now_us, bool repair, struct doctor *d, bool *usable)
{
    struct setup s = {.w = w, .d = d, .now_us = now_us, .repair = repair, .user = "USER"};
    int status;

    *usable = false;
    if (w->setup.status) {
        w->error = w->setup;
        return w->error.status;
    }
    s.redis = redis_new_plain(w->redis);
    if (!s.redis)
        return error_set(&w->error, WEIR_EINTERNAL, "doctor: out of memory; free some and try again");
    status = look_at_redis(&s, usable);
    if (status != 0 && s.error.status == status)
        w->error = s.error;
    redis_free(s.redis);
    for (size_t i = 0; i < d->count; i++)
        d->misconfigured |= d->checks[i].state == DOCTOR_WRONG;
    return status;
}
