#include "cli/document/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"

char *text_of(struct span bytes)
{
    char *text = malloc(4 * bytes.len + UTF8_PIECE), *to = text;

    if (text)
        *text = '\0';
    for (size_t i = 0; text && i < bytes.len; to += strlen(to))
        i += utf8_escaped(bytes.at + i, bytes.len - i, to);
    return text;
}

struct span text_bytes(const json_t *string)
{
    return json_is_string(string) ? (struct span){json_string_value(string), json_string_length(string)}
                                  : (struct span){"", 0};
}

bool text_print(struct span bytes, size_t most)
{
    char *text = text_of(bytes);
    size_t len = text ? strlen(text) : 0;
    bool cut = most > 0 && len > most;

    if (cut) {
        while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
            most--;
        output("%.*s...", (int)most, text);
    } else {
        output("%s", len > 0 ? text : "-");
    }
    free(text);
    return cut;
}

static bool is_inside(const char *at)
{
    return ((unsigned char)*at & 0xc0) == 0x80;
}

char *text_of_ends(struct span bytes, size_t most)
{
    size_t head = most / 3, tail = bytes.len - (most - head);
    char *begin, *end, *text = NULL;

    if (bytes.len <= most)
        return text_of(bytes);
    while (head > 0 && is_inside(bytes.at + head))
        head--;
    while (tail < bytes.len && is_inside(bytes.at + tail))
        tail++;
    begin = text_of((struct span){bytes.at, head});
    end = text_of((struct span){bytes.at + tail, bytes.len - tail});
    if (begin && end && asprintf(&text, "%s ... %s", begin, end) < 0)
        text = NULL;
    free(begin);
    free(end);
    return text;
}

json_t *text_json(struct span bytes)
{
    char *text = bytes.len > 0 ? text_of(bytes) : NULL;
    json_t *value = text ? json_string(text) : json_null();

    free(text);
    return value;
}

json_t *text_word(const char *word)
{
    char *text = text_of(span_str(word));
    json_t *value = text ? json_string(text) : NULL;

    free(text);
    return value;
}

static void print_base64(struct span bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)bytes.at;

    for (size_t left = bytes.len; left > 0; left -= left > 3 ? 3 : left, at += 3) {
        uint32_t bits =
            (uint32_t)at[0] << 16 | (left > 1 ? (uint32_t)at[1] << 8 : 0) | (left > 2 ? at[2] : 0);

        putchar(digits[bits >> 18]);
        putchar(digits[bits >> 12 & 63]);
        putchar(left > 1 ? digits[bits >> 6 & 63] : '=');
        putchar(left > 2 ? digits[bits & 63] : '=');
    }
}

/* Never decoded and encoded again. */
static void print_body(struct span body)
{
    struct error ignored;

    if (json_check(body.at, body.len, &ignored) == 0) {
        fputs(",\"body\":", stdout);
        output_json(body.at, body.len, NULL);
    } else {
        fputs(",\"raw\":\"", stdout);
        print_base64(body);
        putchar('"');
    }
}

int text_print_with_body(struct cli *cli, json_t *doc, struct span body)
{
    char *text = doc ? json_dumps(doc, OUTPUT_JSON_FLAGS) : NULL;

    json_decref(doc);
    if (!text)
        return error_set(&cli->error, WEIR_EINTERNAL, "%s: out of memory; free some and try again",
                         cli->command->name);
    output_json(text, strlen(text) - 1, NULL); /* without the last brace */
    print_body(body);
    puts("}");
    free(text);
    return 0;
}
