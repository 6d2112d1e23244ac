#include "throttle/key.h"

#include <glib.h>
#include <stdio.h>
#include <string.h>

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
