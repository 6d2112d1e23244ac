/* Names and values that come with a request, an object of texts: behind its "?", of a form, or the members of a JSON
 * object, whose numbers and flags are their texts too. */
#ifndef SERVE_FIELDS_H
#define SERVE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

#include "view/json.h"

#define FIELDS_MOST 32

/* Decodes %XX, and "+" as a blank with plus, to `to`, which has room for len + 1 bytes. false: it is malformed, or has
 * a NUL. */
bool url_decode(const char *from, size_t len, bool plus, char *to);
/* "a=1&b=x+y". NULL: malformed, a name twice, or more than FIELDS_MOST. The caller's. */
json_t *fields_of_form(const char *text, size_t len);
/* A JSON object of scalars; null is left out. NULL: it is none. */
json_t *fields_of_json(const char *text, size_t len);
/* NULL: not there, or empty. */
const char *field_text(const json_t *fields, const char *name);
/* One that is a whole number; fallback when it is not there, -1 when it is none or below 0. */
int64_t field_number(const json_t *fields, const char *name, int64_t fallback);

#endif
