#include "view/write.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "view/hidden.h"
#include "view/output.h"

void view_add_body(json_t *doc, struct span body)
{
    json_object_set_new(doc, VIEW_BODY, json_stringn_nocheck(body.at, body.len));
}

static void put_base64(FILE *to, struct span bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)bytes.at;

    for (size_t left = bytes.len; left > 0; left -= left > 3 ? 3 : left, at += 3) {
        uint32_t bits =
            (uint32_t)at[0] << 16 | (left > 1 ? (uint32_t)at[1] << 8 : 0) | (left > 2 ? at[2] : 0);

        putc(digits[bits >> 18], to);
        putc(digits[bits >> 12 & 63], to);
        putc(left > 1 ? digits[bits >> 6 & 63] : '=', to);
        putc(left > 2 ? digits[bits & 63] : '=', to);
    }
}

/* name: VIEW_BODY or VIEW_RESULT. */
static void put_bytes(FILE *to, const char *name, struct span bytes, enum view_bodies bodies)
{
    struct error ignored;
    bool shown = bodies == VIEW_ALL && json_check(bytes.at, bytes.len, &ignored) == 0;

    if (shown || bodies == VIEW_NO_BODIES || strcmp(name, VIEW_BODY) != 0) {
        output_to(to, "\"%s\":%s", name + 1, shown ? "" : "null");
        if (shown)
            output_json(bytes.at, bytes.len, to);
    } else {
        fputs("\"raw\":\"", to);
        put_base64(to, bytes);
        putc('"', to);
    }
}

/* True when there is a body in it, somewhere. */
static bool has_body(const json_t *value)
{
    const char *name;
    json_t *inner;
    size_t i;

    if (!json_is_object(value) && !json_is_array(value))
        return false;
    if (json_is_string(json_object_get(value, VIEW_BODY)))
        return true;
    json_object_foreach((json_t *)value, name, inner)
        if (has_body(inner))
            return true;
    json_array_foreach(value, i, inner)
        if (has_body(inner))
            return true;
    return false;
}

static bool put_plain(FILE *to, const json_t *value)
{
    char *text = value ? json_dumps(value, OUTPUT_JSON_FLAGS | JSON_ENCODE_ANY) : NULL;
    bool done = text && output_json(text, strlen(text), to) == 0;

    free(text);
    return done;
}

static bool put_name(FILE *to, const char *name)
{
    json_t *text = json_string(name);
    bool done = put_plain(to, text);

    json_decref(text);
    putc(':', to);
    return done;
}

static bool put_member(FILE *to, const char *name, const json_t *value, enum view_bodies bodies)
{
    json_t *hidden = bodies == VIEW_NO_BODIES ? view_hidden(name, value) : NULL;
    bool done = put_name(to, name) && view_write(to, hidden ? hidden : value, bodies);

    json_decref(hidden);
    return done;
}

static bool put_object(FILE *to, const json_t *object, enum view_bodies bodies)
{
    const char *name, *between = "";
    json_t *value;
    bool done = putc('{', to) != EOF;

    json_object_foreach((json_t *)object, name, value) {
        fputs(between, to);
        between = ",";
        if (json_is_string(value) && (strcmp(name, VIEW_BODY) == 0 || strcmp(name, VIEW_RESULT) == 0))
            put_bytes(to, name, (struct span){json_string_value(value), json_string_length(value)}, bodies);
        else
            done = done && put_member(to, name, value, bodies);
    }
    putc('}', to);
    return done;
}

static bool put_array(FILE *to, const json_t *array, enum view_bodies bodies)
{
    const char *between = "";
    json_t *value;
    bool done = putc('[', to) != EOF;
    size_t i;

    json_array_foreach(array, i, value) {
        fputs(between, to);
        between = ",";
        done = done && view_write(to, value, bodies);
    }
    putc(']', to);
    return done;
}

bool view_write(FILE *to, const json_t *doc, enum view_bodies bodies)
{
    bool done = !json_is_object(doc) && !json_is_array(doc) ? put_plain(to, doc)
                : bodies == VIEW_ALL && !has_body(doc)      ? put_plain(to, doc)
                : json_is_array(doc)                        ? put_array(to, doc, bodies)
                                                            : put_object(to, doc, bodies);

    return done && !ferror(to);
}
