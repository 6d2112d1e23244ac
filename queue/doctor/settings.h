/* settings: what Redis says of itself in INFO, as far as Weir's promises hang on it. Fields may be missing:
 * other versions and products say less. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "core/script/args.h"
#include "core/wire/service.h"

struct redis;
struct redisReply;

/* Asks whether INFO says what all of these terms say, with blanks between:
 *
 *   field             it is there                      -field          it is not
 *   field=text        it begins with the text          field!text      it is there, and does not
 *   field<number, field>number                         of numbers; number may be a field, 90%field as much of it
 *
 * What INFO does not say does not hold. */
bool settings_hold(const char *info, const char *terms);
#define REDIS_EVICTS "maxmemory_policy!noeviction maxmemory>0" /* when it is full */
#define REDIS_HAS_NO_AOF "aof_enabled=0" /* what it has acknowledged does not outlive a restart */

/* Says how a setting is changed there: "redis-cli CONFIG SET maxmemory-policy noeviction, ..."; where users cannot, as by its name or
 * weir_config, which the doctor adds (refused, missing), in the service's own console. */
void settings_todo(const char *info, const char *parameter, char *out, size_t size);

#define SETTINGS_GROWTH 160
/* Writes as lines of INFO when Redis is full: weir_full_s, weir_full_in, weir_grows_for; "": not by what `memory` of `about` has
 * (queue/state/memory.lua), or there is no maxmemory. */
void settings_growth(const char *info, const char *memory, char out[SETTINGS_GROWTH]);
/* Asks for that `memory`, where INFO has a maxmemory. */
void settings_ask_growth(struct redis *redis, const char *prefix, const char *info,
                         char out[SETTINGS_GROWTH]);

/* What a worker asks before it begins, and the answer. */
struct settings {
    bool hidden;  /* the user may not run INFO: nothing is known */
    bool has_aof; /* unknown counts as yes */
    bool in_cluster;
};
void settings_request(struct args *a);
/* WEIR_ECONFIG: a Redis on which jobs would be lost, or rates exceeded, in silence: it evicts
 * keys. Other errors as they come. */
WEIR_CHECKED int settings_reply(const struct redisReply *reply, struct settings *out, struct error *e);
