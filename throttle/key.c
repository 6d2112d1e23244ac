#include "throttle/key.h"

#include <glib.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"

#define VALUE_MOST                                                                                           \
    1024 /* bytes of an object or array; a longer one is no value (NESTED_MOST of queue/job/job_text.lua) */

static bool is_name(const char *text, size_t len)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";

    for (size_t i = 0; i < len; i++)
        if (!memchr(letters, text[i], sizeof letters - 1))
            return false;
    return len > 0 && len < LIMIT_NAME_SIZE;
}

bool key_is_made(const char *text, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    if (len == 1)
        return *text == '-';
    if (len != 42 || memcmp(text, "h.", 2) != 0)
        return false;
    for (size_t i = 2; i < len; i++)
        if (!memchr(digits, text[i], sizeof digits - 1))
            return false;
    return true;
}

void key_make(const char *text, size_t len, char key[LIMIT_NAME_SIZE])
{
    gchar *hash;

    if (is_name(text, len) && !key_is_made(text, len)) {
        memcpy(key, text, len);
        key[len] = '\0';
        return;
    }
    hash = g_compute_checksum_for_data(G_CHECKSUM_SHA1, (const guchar *)text, len);
    snprintf(key, LIMIT_NAME_SIZE, "h.%s", hash);
    g_free(hash);
}

/* ---- Values */

static void write_text(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            g_string_append_c(out, '\\');
        g_string_append_c(out, *text);
    }
    g_string_append_c(out, '"');
}

/* Writes a whole number of 64 bits with all its digits, another one with as few as tell it from all others: 1.5, 1e20. */
static void write_number(GString *out, double value)
{
    char text[40], *end;
    bool whole = value >= -0x1p63 && value < 0x1p63 && value == (double)(int64_t)value;

    if (whole) {
        g_string_append_printf(out, "%.0f", value == 0 ? 0 : value);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        decimal_print(text, sizeof text, "%.*g", digits, value);
        if (decimal_read(text, &end) == value)
            break;
    }
    for (const char *at = text; *at; at++) {
        g_string_append_c(out, *at);
        if (*at == 'e') {
            if (at[1] == '-')
                g_string_append_c(out, '-');
            at += 1 + strspn(at + 2, "0");
        }
    }
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void write_value(GString *out, const json_t *value);

/* In the order of their names. */
static void write_members(GString *out, const json_t *value)
{
    GPtrArray *names = g_ptr_array_new();
    const char *name;
    json_t *member;

    json_object_foreach((json_t *)value, name, member)
        g_ptr_array_add(names, (gpointer)name);
    if (names->len > 0)
        qsort(names->pdata, names->len, sizeof *names->pdata, by_bytes);
    for (guint i = 0; i < names->len; i++) {
        g_string_append_c(out, i ? ',' : '{');
        write_text(out, names->pdata[i]);
        g_string_append_c(out, ':');
        write_value(out, json_object_get(value, names->pdata[i]));
    }
    g_string_append(out, names->len ? "}" : "{}");
    g_ptr_array_free(names, TRUE);
}

/* An empty array is an empty object, as Lua has them. */
static void write_value(GString *out, const json_t *value)
{
    if (json_is_string(value)) {
        write_text(out, json_string_value(value));
    } else if (json_is_real(value)) {
        write_number(out, json_real_value(value));
    } else if (json_array_size(value) > 0) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            g_string_append_c(out, i ? ',' : '[');
            write_value(out, json_array_get(value, i));
        }
        g_string_append_c(out, ']');
    } else if (json_is_object(value) || json_is_array(value)) {
        write_members(out, value);
    } else {
        g_string_append(out, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
    }
}

/* Makes the key of jobs that have this value; text: as it is written. */
static void value_key(const json_t *value, const char *text, char key[LIMIT_NAME_SIZE])
{
    GString *out = g_string_new(NULL);
    double number = json_number_value(value);
    bool is_long = json_is_real(value) && (number >= 0x1p53 || number <= -0x1p53) && number <= 0x1p63 &&
                   number >= -0x1p63 && !text[strspn(text, "-0123456789")];

    write_value(out, value);
    if (is_long)
        key_make(text, strlen(text), key);
    else if (!json_is_real(value) && (out->len > VALUE_MOST || strlen(text) > VALUE_MOST))
        strcpy(key, "-");
    else
        key_make(out->str, out->len, key);
    g_string_free(out, TRUE);
}

void key_name(const char *text, char named[KEY_NAMED_SIZE])
{
    char made[LIMIT_NAME_SIZE];
    json_t *value = NULL;

    if (strcmp(text, "-") == 0) {
        strcpy(named, "-");
        return;
    }
    if (*text && strchr("\"{[-0123456789", *text))
        value = json_loads(text, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL, NULL);
    if (json_is_string(value))
        key_make(json_string_value(value), json_string_length(value), named);
    else
        key_make(text, strlen(text), named);
    if (value && !json_is_string(value)) {
        value_key(value, text, made);
        if (strcmp(made, named) != 0)
            snprintf(named + strlen(named), KEY_NAMED_SIZE - strlen(named), "|%s", made);
    }
    json_decref(value);
}
