#include "view/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/utf8.h"
#include "view/format.h"

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

const char *text_quote(const char *word)
{
    return word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/")] ? "'"
                                                                                                    : "";
}

static int digit_value(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower(c) - 'a' + 10 : -1;
}

int text_escaped(const char *at)
{
    int high = *at == '%' ? digit_value(at[1]) : -1, low = high < 0 ? -1 : digit_value(at[2]);

    return low < 0 ? -1 : high << 4 | low;
}

const char *text_cost(const json_t *cost, char out[COST_TEXT_SIZE])
{
    struct job_cost said = cost_of(json_is_integer(cost) ? json_integer_value(cost) : COST_UNSAID);
    const char *name;
    json_t *slots;

    if (json_is_integer(cost))
        return grouped((uint64_t)said.plain, out);
    json_object_foreach((json_t *)cost, name, slots)
        (void)cost_say(&said, name, strlen(name), json_integer_value(slots));
    cost_print(&said, out);
    return out;
}
