#include "serve/fields.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "queue/job/job.h"
#include "throttle/cost.h"
#include "throttle/limit.h"
#include "view/text.h"

bool url_decode(const char *from, size_t len, bool plus, char *to)
{
    for (size_t i = 0; i < len; i++) {
        int byte = plus && from[i] == '+' ? ' ' : (unsigned char)from[i];

        if (from[i] == '%') {
            byte = i + 2 < len ? text_escaped(from + i) : -1;
            if (byte < 0)
                return false;
            i += 2;
        }
        if (byte == 0)
            return false;
        *to++ = (char)byte;
    }
    *to = '\0';
    return true;
}

/* Adds one "name=value". */
static bool add_pair(json_t *fields, const char *pair, size_t len)
{
    const char *equals = memchr(pair, '=', len);
    size_t name_len = equals ? (size_t)(equals - pair) : len, value_len = equals ? len - name_len - 1 : 0;
    char *name = malloc(len + 2), *value = name ? name + name_len + 1 : NULL;
    bool done = name && url_decode(pair, name_len, true, name) &&
                url_decode(equals ? equals + 1 : "", value_len, true, value) &&
                !json_object_get(fields, name) && json_object_size(fields) < FIELDS_MOST;

    if (done)
        done = json_object_set_new_nocheck(fields, name, json_stringn_nocheck(value, strlen(value))) == 0;
    free(name);
    return done;
}

json_t *fields_of_form(const char *text, size_t len)
{
    json_t *fields = json_object();

    for (size_t at = 0, n; fields && at < len; at += n + 1) {
        const char *end = memchr(text + at, '&', len - at);

        n = end ? (size_t)(end - text) - at : len - at;
        if (n > 0 && !add_pair(fields, text + at, n)) {
            json_decref(fields);
            return NULL;
        }
    }
    return fields;
}

/* Writes numbers by name as people write a cost, "plain=3,tokens=900"; NULL: it is another object. */
static json_t *text_of_cost(const json_t *value)
{
    char text[COST_TEXT_SIZE] = "";
    const char *name;
    json_t *slots;
    size_t len = 0;

    json_object_foreach((json_t *)value, name, slots) {
        if (!json_is_integer(slots))
            return NULL;
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s=%lld", len > 0 ? "," : "", name,
                                (long long)json_integer_value(slots));
        if (len >= sizeof text)
            return NULL;
    }
    return len > 0 ? json_string(text) : NULL;
}

static json_t *text_of_scalar(const json_t *value)
{
    if (json_is_object(value))
        return text_of_cost(value);
    if (json_is_string(value))
        return json_string_length(value) == strlen(json_string_value(value)) ? json_incref((json_t *)value)
                                                                             : NULL;
    if (json_is_boolean(value))
        return json_string(json_is_true(value) ? "true" : "false");
    if (json_is_integer(value))
        return json_sprintf("%lld", (long long)json_integer_value(value));
    return NULL;
}

json_t *fields_of_json(const char *text, size_t len)
{
    json_t *given = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL), *value, *scalar;
    json_t *fields = json_is_object(given) ? json_object() : NULL;
    const char *name;

    json_object_foreach(given, name, value) {
        if (json_is_null(value))
            continue;
        scalar = fields ? text_of_scalar(value) : NULL;
        if (!scalar || json_object_size(fields) == FIELDS_MOST) {
            json_decref(scalar);
            json_decref(fields);
            fields = NULL;
            break;
        }
        json_object_set_new(fields, name, scalar);
    }
    json_decref(given);
    return fields;
}

const char *field_text(const json_t *fields, const char *name)
{
    const char *text = json_string_value(json_object_get(fields, name));

    return text && *text ? text : NULL;
}

int64_t field_number(const json_t *fields, const char *name, int64_t fallback)
{
    const char *text = field_text(fields, name);
    char *end;
    long long n;

    if (!text)
        return fallback;
    errno = 0;
    n = strtoll(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && n <= FIELD_NUMBER_MOST ? n : -1;
}

static bool is_known(const char *name, const char *known)
{
    size_t len = strlen(name), n;

    for (; *known; known += n + strspn(known + n, " ")) {
        n = strcspn(known, " ");
        if (n == len && memcmp(name, known, n) == 0)
            return true;
    }
    return strcmp(name, "back") == 0;
}

/* The form of a page, which says where it leads back to, sends fields of a pause that nobody has filled in. */
static bool is_left_empty(const json_t *fields, const char *name)
{
    return json_object_get(fields, "back") && (strcmp(name, "for") == 0 || strcmp(name, "reason") == 0);
}

int fields_check(const json_t *fields, const char *known, struct error *e)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)fields, name, value) {
        if (!is_known(name, known))
            return error_set(e, WEIR_EINPUT,
                             *known ? "%.60s: unknown; known here: %s"
                                    : "%.60s: unknown; nothing is asked for here",
                             name, known);
        if (json_string_length(value) == 0 && !is_left_empty(fields, name))
            return error_set(e, WEIR_EINPUT, "%.60s: empty; give it a value, or leave it out", name);
    }
    return 0;
}

int field_name(const json_t *fields, const char *name, const char **value, struct error *e)
{
    *value = field_text(fields, name);
    return *value ? limit_name_check(name, *value, e) : 0;
}

int field_flag(const json_t *fields, const char *name, bool *flag, struct error *e)
{
    const char *text = field_text(fields, name);

    *flag = text && strcmp(text, "true") == 0;
    if (!text || *flag || strcmp(text, "false") == 0)
        return 0;
    return error_set(e, WEIR_EINPUT, "%s: must be true or false", name);
}
