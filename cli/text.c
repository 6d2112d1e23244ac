#include "cli/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bytes of the printable UTF-8 character at at; 0: there is none. */
static size_t character(const unsigned char *at, size_t len)
{
    size_t n = at[0] < 0x80   ? 1
               : at[0] < 0xc2 ? 0
               : at[0] < 0xe0 ? 2
               : at[0] < 0xf0 ? 3
               : at[0] < 0xf5 ? 4
                              : 0;

    if (n == 0 || n > len || at[0] < ' ' || at[0] == 0x7f)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xc2 && at[1] < 0xa0) || (at[0] == 0xe0 && at[1] < 0xa0) ||
        (at[0] == 0xed && at[1] >= 0xa0) || (at[0] == 0xf0 && at[1] < 0x90) ||
        (at[0] == 0xf4 && at[1] >= 0x90))
        return 0; /* control characters, overlong forms, surrogates, beyond Unicode */
    return n;
}

char *text_of(struct span bytes)
{
    char *text = malloc(4 * bytes.len + 1), *to = text;

    for (size_t i = 0; text && i < bytes.len;) {
        size_t n = character((const unsigned char *)bytes.at + i, bytes.len - i);

        if (n == 0)
            to += sprintf(to, "\\x%02x", (unsigned char)bytes.at[i]);
        memcpy(to, bytes.at + i, n);
        to += n;
        i += n ? n : 1;
    }
    if (text)
        *to = '\0';
    return text;
}

void text_print(struct span bytes, size_t most)
{
    char *text = text_of(bytes);
    size_t len = text ? strlen(text) : 0;

    if (most > 0 && len > most) {
        while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
            most--;
        printf("%.*s...", (int)most, text);
    } else {
        fputs(len > 0 ? text : "-", stdout);
    }
    free(text);
}

json_t *text_json(struct span bytes)
{
    char *text = bytes.len > 0 ? text_of(bytes) : NULL;
    json_t *value = text ? json_string(text) : json_null();

    free(text);
    return value;
}
