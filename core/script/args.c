#include "core/script/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void args_free(struct args *a)
{
    free(a->bytes);
    free(a->ends);
    *a = (struct args){0};
}

void args_clear(struct args *a)
{
    a->len = a->count = 0;
    a->failed = false;
}

/* Makes room for need elements of size each; *at and *capacity stay as they are when there is no memory. */
static bool grow(void **at, size_t *capacity, size_t need, size_t size)
{
    size_t wanted = *capacity ? *capacity : 64;
    void *bigger;

    if (need <= *capacity)
        return true;
    if (need > SIZE_MAX / 2 / size)
        return false;
    while (wanted < need)
        wanted *= 2;
    bigger = realloc(*at, wanted * size);
    if (!bigger)
        return false;
    *at = bigger;
    *capacity = wanted;
    return true;
}

void args_add(struct args *a, const char *word)
{
    args_add_bytes(a, word, strlen(word));
}

void args_add_bytes(struct args *a, const void *word, size_t len)
{
    void *bytes = a->bytes, *ends = a->ends;

    if (!grow(&bytes, &a->capacity, a->len + len, 1))
        a->failed = true;
    a->bytes = bytes;
    if (!grow(&ends, &a->ends_capacity, a->count + 1, sizeof *a->ends))
        a->failed = true;
    a->ends = ends;
    if (a->failed)
        return;
    if (len > 0)
        memcpy(a->bytes + a->len, word, len);
    a->len += len;
    a->ends[a->count++] = a->len;
}

void args_extend(struct args *a, const void *bytes, size_t len)
{
    if (a->count == 0)
        return;
    a->count--;
    args_add_bytes(a, bytes, len);
}

void args_add_int(struct args *a, int64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)value);

    args_add_bytes(a, digits, (size_t)len);
}
