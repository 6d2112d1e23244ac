#include "core/utf8.h"

#include <stdio.h>
#include <string.h>

size_t utf8_printable(const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
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

size_t utf8_escaped(const char *text, size_t len, char piece[UTF8_PIECE])
{
    size_t n = utf8_printable(text, len);

    if (n == 0) {
        snprintf(piece, UTF8_PIECE, "\\x%02x", (unsigned char)*text);
        return 1;
    }
    memcpy(piece, text, n);
    piece[n] = '\0';
    return n;
}
