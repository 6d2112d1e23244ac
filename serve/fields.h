/* Names and values that come with a request, an object of texts: behind its "?", of a form, or the members of a JSON
 * object, whose numbers and flags are their texts too; a cost by name is "tokens=900". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"
#include "view/json.h"

#define FIELDS_MOST 32
#define FIELD_NUMBER_MOST (INT64_C(1) << 53) /* larger ones are not exact everywhere */

/* Decodes %XX, and "+" as a blank with plus, to `to`, which has room for len + 1 bytes. false: it is malformed, or has
 * a NUL. */
bool url_decode(const char *from, size_t len, bool plus, char *to);
/* "a=1&b=x+y". NULL: malformed, a name twice, or more than FIELDS_MOST. The caller's. */
json_t *fields_of_form(const char *text, size_t len);
/* Reads a JSON object of scalars, and of costs by name; null is left out. NULL: it is none. */
json_t *fields_of_json(const char *text, size_t len);
/* NULL: not there, or empty. */
const char *field_text(const json_t *fields, const char *name);
/* WEIR_EINPUT: one has another name than those, with a blank between, and "back"; or it is empty. What somebody has mistyped, or a variable
 * that is not set, must not stand for all. */
WEIR_CHECKED int fields_check(const json_t *fields, const char *known, struct error *e);
/* One that is a name; NULL: it is not there. WEIR_EINPUT: it is no valid one. */
WEIR_CHECKED int field_name(const json_t *fields, const char *name, const char **value, struct error *e);
/* One that is true or false; false: it is not there. WEIR_EINPUT: it is neither. */
WEIR_CHECKED int field_flag(const json_t *fields, const char *name, bool *flag, struct error *e);
/* One that is a whole number; fallback when it is not there, -1 when it is none, below 0 or above FIELD_NUMBER_MOST. */
int64_t field_number(const json_t *fields, const char *name, int64_t fallback);
