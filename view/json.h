/* Members of JSON documents: read, and made. */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "throttle/gate.h"

/* Return a member of a document; "" and 0 where it is none. */
static inline const char *json_text_of(const json_t *doc, const char *member)
{
    const char *text = json_string_value(json_object_get(doc, member));

    return text ? text : "";
}

static inline int64_t json_int_of(const json_t *doc, const char *member)
{
    return json_integer_value(json_object_get(doc, member));
}

/* True when the member is there, a number. */
static inline bool json_has(const json_t *doc, const char *member)
{
    return json_is_number(json_object_get(doc, member));
}

static inline json_t *json_seconds(int64_t us)
{
    return json_real((double)us / 1e6);
}

static inline int64_t json_us(const json_t *seconds)
{
    return llround(json_number_value(seconds) * 1e6);
}

/* Makes a time in seconds; null when it is none or unknown. */
static inline json_t *json_time(int64_t us)
{
    return us <= 0 || us == GATE_NEVER ? json_null() : json_seconds(us);
}

/* Since when something is so; 0 when it is, and that cannot be read (us below 0); null: it is not. */
static inline json_t *json_since(int64_t us)
{
    return us == 0 ? json_null() : json_seconds(us > 0 ? us : 0);
}
