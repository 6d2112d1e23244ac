/* Redis itself. It is asked over a connection that needs none of Weir's functions, so that a replica, or a Redis
 * that is too old, can be reported as such. What the user may not look at is a warning, and no error. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/answer.h"
#include "core/client/reply.h"
#include "core/clock.h"
#include "core/script/rights.h"
#include "core/script/script.h"
#include "queue/doctor/doctor.h"
#include "queue/doctor/doctor_access.h"
#include "queue/doctor/settings.h"

#define ROUND_TRIPS 5
#define SLOW_US 50000    /* a round trip that slows every turn down */
#define CLOCK_US 1000000 /* a difference of clocks that times in messages show */
#define SLOWLOG_MOST "128"
#define LIBRARIES_MOST 64
#define RIGHTS_TODO_SIZE (ACCESS_RULE_SIZE + 200)

struct setup {
    struct weir *w;
    struct redis *redis;      /* plain */
    char prefix[PREFIX_SIZE]; /* for rules */
    struct doctor *d;
    int64_t now_us;
    bool repair;
    char user[128];
    const struct service *service; /* NULL: unknown */
    struct error error;            /* of the last question */
};

/* Asks one question. NULL: no answer, see s->error. The answer is the caller's. */
static struct redisReply *ask(struct setup *s, const char *word, ...) __attribute__((sentinel));
static struct redisReply *ask(struct setup *s, const char *word, ...)
{
    struct redisReply *reply = NULL;
    struct args a = {0};
    va_list rest;

    s->error.status = 0;
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

/* What to do about a command that Redis has not. */
static const char *missing_todo(const struct setup *s)
{
    return s->service ? "the service forbids it: ask its provider"
                      : "take rename-command out of redis.conf, or ask the provider";
}

/* What to do about rights, as ACL SETUSER takes them, that the user lacks. */
static void rights_todo(const struct setup *s, const char *rule, char todo[RIGHTS_TODO_SIZE])
{
    if (s->service && s->service->users)
        snprintf(todo, RIGHTS_TODO_SIZE, "give the user in %s:%s", s->service->users, rule);
    else
        snprintf(todo, RIGHTS_TODO_SIZE, "redis-cli ACL SETUSER %s%s", s->user, rule);
}

/* The user may not ask that, or Redis has no such command. */
static void add_hidden(struct setup *s, const char *name, const char *command)
{
    char todo[RIGHTS_TODO_SIZE], rule[ACCESS_RULE_SIZE] = "", right[64];

    if (s->error.status == WEIR_ECONFIG && s->service) {
        doctor_add(s->d, name, DOCTOR_OK, NULL, "not checked: %s has no %s", s->service->name, command);
        return;
    }
    if (s->error.status == WEIR_ECONFIG) {
        doctor_add(s->d, name, DOCTOR_WARNING, missing_todo(s), "cannot be asked: Redis has no %s", command);
        return;
    }
    snprintf(right, sizeof right, "+%s", command);
    access_add(rule, right);
    rights_todo(s, rule, todo);
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

/* Reads a setting; `unknown` where that cannot be seen. */
static void read_setting(struct setup *s, const char *name, const char *unknown, char value[64])
{
    struct redisReply *reply = ask(s, "CONFIG", "GET", name, NULL);
    bool seen = reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 1 &&
                reply->element[1]->type == REDIS_REPLY_STRING;

    snprintf(value, 64, "%s", seen ? reply->element[1]->str : unknown);
    freeReplyObject(reply);
}

/* Adds what INFO does not say: how many replicas must be in sync for a write, 1 where that cannot be seen;
 * whether snapshots are made, and how often the AOF is synced, where that can be seen; whether users may change settings
 * (weir_config is "refused" or "missing" when not), and the service. */
static char *read_info(struct setup *s)
{
    struct redisReply *info = ask(s, "INFO", NULL);
    char *text = NULL, wanted[64], fsync[64], save[64], growth[SETTINGS_GROWTH];

    if (!info || info->type != REDIS_REPLY_STRING) {
        freeReplyObject(info);
        return NULL;
    }
    s->service = service_of(info->str);
    settings_ask_growth(s->redis, s->w->prefix, info->str, growth);
    read_setting(s, "save", "?", save);
    read_setting(s, "appendfsync", "?", fsync);
    read_setting(s, "min-replicas-to-write", "1", wanted);
    if (asprintf(&text,
                 "%s\n%smin_replicas_to_write:%s\nappendfsync:%s\nweir_snapshots:%s\nweir_config:%s\n%s%s\n"
                 "weir_functions:%s\n",
                 info->str, growth, wanted, fsync, *save ? "yes" : "no",
                 s->error.status == WEIR_ECONFIG ? "missing"
                 : s->error.status               ? "refused"
                                                 : "",
                 s->service ? "weir_service:" : "", s->service ? s->service->name : "",
                 s->service && s->service->no_functions ? "no" : "") < 0)
        text = NULL;
    freeReplyObject(info);
    return text;
}

/* Returns whether the structures can be looked at. */
static bool check_info(struct setup *s)
{
    char *info = read_info(s);
    bool usable = true;

    if (info) {
        usable = doctor_settings(s->d, info);
    } else if (!is_lost(s)) {
        add_hidden(s, "info", "info");
    }
    free(info);
    return usable;
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
        doctor_add(s->d, "clock", DOCTOR_WARNING, "synchronize both clocks by NTP",
                   "Redis's clock is %.1f s %s this machine's; rates use Redis's clock, times given here "
                   "this machine's",
                   (double)llabs(apart_us) / 1e6, apart_us > 0 ? "ahead of" : "behind");
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

    if (!reply && is_forbidden(s)) { /* it shows what others ask of this Redis: only an operator has it */
        doctor_add(s->d, "latency", DOCTOR_OK, NULL, "not checked: the user may not run slowlog|get");
        return;
    }
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

static void judge_blocking(struct setup *s, const char *right, struct access *found)
{
    if (s->error.status == WEIR_EREFUSED)
        access_add(found->rule, right);
    else if (s->error.status == WEIR_ECONFIG)
        access_miss(found, right + 1);
}

/* Commands that workers call themselves, tried with a time that is none: Redis looks at the user's rights
 * first. */
static void try_blocking(struct setup *s, struct access *found)
{
    char key[PREFIX_SIZE + 16];

    snprintf(key, sizeof key, "%s%s", s->w->prefix, "bell:doctor");
    freeReplyObject(ask(s, "BLPOP", key, "never", NULL));
    judge_blocking(s, "+blpop", found);
    freeReplyObject(ask(s, "BLMOVE", key, key, "LEFT", "LEFT", "never", NULL));
    judge_blocking(s, "+blmove", found);
}

/* All that an operator needs, who may do everything. */
static void add_all_rights(struct setup *s, char rule[ACCESS_RULE_SIZE])
{
    char right[RIGHTS_WORD_SIZE];
    struct args a = {0};

    rights_of(&a, "operator");
    for (size_t i = 0, from = 0; i < a.count; from = a.ends[i++]) {
        rights_word(a.bytes + from, a.ends[i] - from, s->prefix, right);
        if (right[0] == '+')
            access_add(rule, right);
    }
    args_free(&a);
}

/* True when there are other partitions, which a rule should name too. */
static bool name_all(struct setup *s)
{
    struct error before = s->w->error;
    int count;

    if (client_learn(s->w, &count) == 0 && count > 1)
        partition_pattern(s->prefix, s->prefix);
    s->w->error = before;
    return strchr(s->prefix, '*') != NULL;
}

/* Finds the rights of a role that the user lacks; not 0: it may not even ask. */
static int try_role(struct setup *s, const char *role, struct access *found)
{
    struct redisReply *reply = NULL;
    struct args a = {0};
    int status;

    *found = (struct access){.rule = ""};
    access_request(&a, role, s->w->prefix, s->now_us);
    status = client_call(s->w, &a, &reply, NULL);
    args_free(&a);
    if (status == 0)
        status = access_reply(reply, s->prefix, found, &s->w->error);
    if (status == 0 && *found->rule && name_all(s))
        status = access_reply(reply, s->prefix, found, &s->w->error);
    freeReplyObject(reply);
    return status;
}

/* The role whose rights the user has, where an operator's call is refused; NULL: none. */
static const char *role_of_user(struct setup *s)
{
    static const char *const roles[] = {"viewer", "worker", "producer", "taker"};
    struct error before = s->w->error;
    struct access found;
    const char *role = NULL;

    for (size_t i = 0; !role && i < sizeof roles / sizeof *roles; i++)
        if (try_role(s, roles[i], &found) == 0 && !*found.rule && !*found.missing)
            role = roles[i];
    s->w->error = before;
    return role;
}

/* A viewer sees all that the doctor looks at. */
static void judge_role(struct setup *s, const char *role, bool *usable)
{
    *usable = strcmp(role, SCRIPT_VIEWER) == 0;
    doctor_add(s->d, "permissions", *usable ? DOCTOR_OK : DOCTOR_WARNING,
               *usable ? NULL : "run weir doctor as an operator or viewer: weir acl viewer",
               "user %s has the rights of a %s%s", s->user, role,
               *usable ? "" : ", who may not look at the structures");
}

/* Judges what an operator lacks; `status` is that of the question. */
static void judge_lacks(struct setup *s, int status, struct access *found)
{
    char *rule = found->rule, right[RIGHTS_WORD_SIZE], todo[RIGHTS_TODO_SIZE];

    if (status != 0) {
        name_all(s);
        rights_word("RW~*", 4, s->prefix, right);
        access_add(rule, right);
        if (!strstr(s->w->error.text, "access one of the keys") &&
            !strstr(s->w->error.text, "No permissions to access a key")) /* Redis 7.2, Valkey */
            add_all_rights(s, rule);
    }
    s->d->refused = true;
    rights_todo(s, rule, todo);
    doctor_add(s->d, "permissions", DOCTOR_WRONG, todo, "user %s lacks rights%s%s", s->user,
               status ? ": " : "", status ? s->w->error.text : "");
}

static int check_rights(struct setup *s, bool *usable)
{
    struct access found;
    int status = try_role(s, "operator", &found);
    const char *role = NULL;

    if (status != 0 && status != WEIR_EREFUSED)
        return status;
    if (status == 0)
        try_blocking(s, &found);
    *usable = status == 0 && !*found.missing && !*found.rule;
    if (*found.missing)
        doctor_add(s->d, "commands", DOCTOR_WRONG, missing_todo(s), "Redis has no %s, which Weir calls",
                   found.missing);
    if (status == 0 && !*found.rule)
        doctor_add(s->d, "permissions", DOCTOR_OK, NULL, "user %s may run all that Weir uses", s->user);
    else if (status != 0 && (role = role_of_user(s)))
        judge_role(s, role, usable);
    else
        judge_lacks(s, status, &found);
    return 0;
}

/* ---- Functions */

/* Adds the digests of other versions of Weir; false: not allowed to look. */
static bool add_old_libraries(struct setup *s, struct args *a)
{
    struct redisReply *reply = ask(s, "FUNCTION", "LIST", "LIBRARYNAME", "weir_*", NULL);

    if (!reply)
        return false;
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements && i < LIBRARIES_MOST; i++) {
        const struct redisReply *library = reply->element[i];
        const char *name = library->elements > 1 && library->element[1]->type == REDIS_REPLY_STRING
                               ? library->element[1]->str
                               : "";

        if (strncmp(name, "weir_", 5) == 0 && strcmp(name + 5, script_digest) != 0)
            args_add(a, name + 5);
    }
    freeReplyObject(reply);
    return true;
}

static void delete_libraries(struct setup *s, const json_t *unused)
{
    size_t deleted = 0, all = json_array_size(unused);

    for (size_t i = 0; i < all; i++) {
        const char *digest = json_string_value(json_array_get(unused, i));
        char name[64];
        struct redisReply *reply;

        snprintf(name, sizeof name, "weir_%s", digest ? digest : "");
        reply = ask(s, "FUNCTION", "DELETE", name, NULL);
        deleted += reply != NULL;
        freeReplyObject(reply);
    }
    if (deleted == all)
        doctor_add(s->d, "functions", DOCTOR_REPAIRED, NULL, "older libraries that were deleted: %zu",
                   deleted);
    else
        add_hidden(s, "functions", "function|delete");
}

static void judge_libraries(struct setup *s, int64_t all, const json_t *unused)
{
    if (all == 0)
        doctor_add(s->d, "functions", DOCTOR_OK, NULL, "this version's are loaded");
    else if (json_array_size(unused) == 0)
        doctor_add(s->d, "functions", DOCTOR_OK, NULL,
                   "this version's are loaded; older libraries, which may be in use: %" PRId64, all);
    else if (s->repair)
        delete_libraries(s, unused);
    else
        doctor_add(s->d, "functions", DOCTOR_WARNING, "weir doctor --repair deletes them",
                   "older libraries that no worker uses: %zu", json_array_size(unused));
}

static int check_functions(struct setup *s)
{
    struct args a = {0};
    json_t *answer;
    int status;

    script_begin(&a, "doctor_workers", s->w->prefix, s->now_us);
    if (!add_old_libraries(s, &a)) {
        args_free(&a);
        add_hidden(s, "functions", "function|list");
        return 0;
    }
    status = client_ask(s->w, "doctor_workers", &a, &answer);
    if (status == 0)
        judge_libraries(s, answer_int(answer, "all"), json_object_get(answer, "unused"));
    json_decref(answer);
    return status;
}

/* ---- All of it */

static int look_at_redis(struct setup *s, bool *usable)
{
    bool known = s->w->at > 0 && !redis_is_clustered(s->w->redis);
    int status = known ? 0 : check_reach(s);

    if (status != 0)
        return status;
    ask_user(s);
    if (known)
        return check_rights(s, usable);
    *usable = check_info(s);
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
    size_t before = json_array_size(d->checks);
    int status;

    *usable = false;
    if (w->setup.status) {
        w->error = w->setup;
        return w->error.status;
    }
    strcpy(s.prefix, w->prefix);
    s.redis = redis_new_plain(w->redis);
    if (!s.redis)
        return error_no_memory(&w->error, "doctor");
    status = look_at_redis(&s, usable);
    if (status != 0 && s.error.status == status)
        w->error = s.error;
    redis_free(s.redis);
    for (size_t i = before; i < json_array_size(d->checks); i++)
        d->misconfigured |=
            strcmp(answer_text(json_array_get(d->checks, i), "state"), doctor_states[DOCTOR_WRONG]) == 0;
    return status;
}
