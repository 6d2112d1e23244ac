#include "queue/doctor/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/partition.h"
#include "core/client/reply.h"
#include "core/duration.h"
#include "core/redis/redis.h"

#define GROWTH_LEAST_S 600          /* over which growth is judged: less is chance, */
#define GROWTH_MOST_S INT64_C(3900) /* more is another time of day */
#define GROWTH_FAR_S (365 * 86400)  /* later says nothing */

static int64_t number_of(const char *info, const char *text)
{
    if (strncmp(text, "90%", 3) == 0)
        return number_of(info, text + 3) / 10 * 9;
    return *text >= '0' && *text <= '9' ? atoll(text) : info_number(info, text, 0);
}

static bool term_holds(const char *info, const char *term)
{
    char field[64], value[128];
    size_t len = strcspn(term, "=!<>");
    const char *wanted = term + len + (term[len] != '\0');

    snprintf(field, sizeof field, "%.*s", (int)len, term);
    if (*field == '-')
        return !info_text(info, field + 1, value, sizeof value);
    if (!info_text(info, field, value, sizeof value) || !term[len])
        return *value;
    if (term[len] == '<')
        return atoll(value) < number_of(info, wanted);
    if (term[len] == '>')
        return atoll(value) > number_of(info, wanted);
    return (strncmp(value, wanted, strlen(wanted)) == 0) == (term[len] == '=');
}

bool settings_hold(const char *info, const char *terms)
{
    char term[128];

    for (size_t len; *terms; terms += len + (terms[len] == ' ')) {
        len = strcspn(terms, " ");
        snprintf(term, sizeof term, "%.*s", (int)len, terms);
        if (!term_holds(info, term))
            return false;
    }
    return true;
}

/* One unit is enough of a guess: "3h", "25m". */
static void put_about(int64_t seconds, char out[32])
{
    int64_t unit = seconds >= 2 * 86400 ? 86400 : seconds >= 2 * 3600 ? 3600 : 60;

    duration_format((seconds / unit > 0 ? seconds / unit : 1) * unit * 1000000, out);
}

void settings_growth(const char *info, const char *memory, char out[SETTINGS_GROWTH])
{
    int64_t now_us = info_number(info, "server_time_usec", 0), used = info_number(info, "used_memory", 0),
            max = info_number(info, "maxmemory", 0), grown, over_s, full_s;
    char full[32], over[32];
    long long at_us = 0, was = 0; /* the first sample of the last hour */

    *out = '\0';
    for (bool old = true; old && *memory; memory += strcspn(memory, " "), memory += *memory == ' ')
        old = sscanf(memory, "%lld:%lld", &at_us, &was) != 2 || now_us - at_us > GROWTH_MOST_S * 1000000;
    over_s = (now_us - at_us) / 1000000;
    grown = used - was;
    if (max <= used || grown <= 0 || was <= 0 || over_s < GROWTH_LEAST_S || over_s > GROWTH_MOST_S)
        return;
    full_s = (int64_t)((double)(max - used) * (double)over_s / (double)grown);
    if (full_s > GROWTH_FAR_S)
        return;
    put_about(full_s, full);
    put_about(over_s, over);
    snprintf(out, SETTINGS_GROWTH, "weir_full_s:%lld\nweir_full_in:%s\nweir_grows_for:%s\n",
             (long long)full_s, full, over);
}

void settings_ask_growth(struct redis *redis, const char *prefix, const char *info, char out[SETTINGS_GROWTH])
{
    struct redisReply *reply = NULL;
    struct error ignored;
    struct args a = {0};
    char key[PREFIX_SIZE + 8];

    *out = '\0';
    if (info_number(info, "maxmemory", 0) == 0)
        return;
    snprintf(key, sizeof key, "%sabout", prefix);
    args_add(&a, "HGET");
    args_add(&a, key);
    args_add(&a, "memory");
    if (redis_call(redis, &a, &reply, NULL, &ignored) == 0 && reply->type == REDIS_REPLY_STRING)
        settings_growth(info, reply->str, out);
    freeReplyObject(reply);
    args_free(&a);
}

void settings_todo(const char *info, const char *parameter, char *out, size_t size)
{
    const struct service *service = service_of(info);
    char config[32];
    bool is_free = info_text(info, "weir_config", config, sizeof config) && !*config;

    if (service && service->settings)
        snprintf(out, size, "set %s in %s", parameter, service->settings);
    else if (strcmp(config, "missing") == 0)
        snprintf(out, size, "set %s in the console of your service, which has no CONFIG", parameter);
    else
        snprintf(out, size, "redis-cli CONFIG SET %s, and the same in redis.conf%s", parameter,
                 is_free ? "" : "; at a managed service, in its console");
}

static int check(const char *info, struct error *e)
{
    char policy[32], todo[256];

    if (!settings_hold(info, REDIS_EVICTS))
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
    out->has_aof = !settings_hold(reply->str, REDIS_HAS_NO_AOF);
    return check(reply->str, e);
}
