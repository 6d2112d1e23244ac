#include "cli/top/line.h"

#include <string.h>

#include "cli/top/keys.h"

#define UTF8_MOST 4

static size_t encode(int ch, char out[UTF8_MOST])
{
    static const int firsts[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = ch < 0x80 ? 1 : ch < 0x800 ? 2 : ch < 0x10000 ? 3 : 4;

    for (size_t i = len; i-- > 1; ch >>= 6)
        out[i] = (char)(0x80 | (ch & 0x3f));
    out[0] = (char)(firsts[len] | ch);
    return len;
}

static void erase_last(char *line)
{
    size_t len = strlen(line);

    while (len > 0 && ((unsigned char)line[--len] & 0xc0) == 0x80) {
    }
    line[len] = '\0';
}

void line_key(char *line, size_t size, int key)
{
    size_t len = strlen(line), more;
    char bytes[UTF8_MOST];

    if (key == KEY_IS_ERASE)
        erase_last(line);
    if (key == KEY_IS_KILL)
        *line = '\0';
    if (key < ' ' || key == KEY_IS_ERASE || key >= KEY_IS_UP)
        return;
    more = encode(key, bytes);
    if (len + more >= size)
        return;
    memcpy(line + len, bytes, more);
    line[len + more] = '\0';
}
