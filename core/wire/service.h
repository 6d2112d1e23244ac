/* service: who answers, by what INFO says: a Redis of one's own, a managed service, or another program that
 * speaks Redis's protocol. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"

/* Reads the value of a field, cut at size; false when it is not there. */
bool info_text(const char *info, const char *field, char *out, size_t size);
/* Reads a field of INFO as a number; `missing` when it is not there or none. */
int64_t info_number(const char *info, const char *field, int64_t missing);

struct service {
    const char *field, *begins; /* INFO has this field, and it begins so */
    const char *name;
    bool no_functions;
    const char *settings; /* where its settings are changed; NULL: by redis-cli and redis.conf */
    const char *users;    /* where rights are given; NULL: by redis-cli */
};
/* NULL: none that is known by name. */
const struct service *service_of(const char *info);
/* Of one that has refused them. WEIR_ECONFIG: it has none, which the line says by its name and version. */
WEIR_CHECKED int service_check(const char *info, struct error *e);
