#include "cli/document/text.h"

#include <stdlib.h>
#include <string.h>

#include "view/output.h"

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
