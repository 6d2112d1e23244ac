/* settings: what Redis says of itself in INFO, as far as Weir's promises hang on it. Fields may be missing:
 * other versions and products say less. */
#ifndef QUEUE_DOCTOR_SETTINGS_H
#define QUEUE_DOCTOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/script/args.h"

struct redisReply;

/* The value of a field, cut at size; false when it is not there. */
bool info_text(const char *info, const char *field, char *out, size_t size);
/* The same as a number; missing when it is not there or none. */
int64_t info_number(const char *info, const char *field, int64_t missing);

/* How Redis makes room when it is full. */
enum eviction {
    EVICTS_NOTHING,
    EVICTS_LATER, /* a policy that evicts, and no maxmemory at which it would */
    EVICTS,
};
enum eviction settings_eviction(const char *info);
/* Is the version one that has functions, 7.0 or later? Unknown counts as yes: loading them tells. */
bool settings_has_functions(const char *info);
/* Does it keep what it has acknowledged over a restart, to the last second? Unknown counts as yes. */
bool settings_has_aof(const char *info);

/* What a worker asks before it begins, and the answer. */
struct settings {
    bool hidden;  /* the user may not run INFO: nothing is known */
    bool has_aof; /* unknown counts as yes */
};
void settings_request(struct args *a);
/* WEIR_ECONFIG: a Redis on which jobs would be lost, or rates exceeded, in silence: it evicts keys, or is a
 * node of a cluster. Other errors as they come. */
WEIR_CHECKED int settings_reply(const struct redisReply *reply, struct settings *out, struct error *e);

#endif
