#include "core/likely.h"

#include <stddef.h>
#include <string.h>

#define WORD_MAX 64 /* longer words are not compared */

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;

    return least < c ? least : c;
}

/* How many letters must be inserted, left out, changed or swapped with their neighbour to make b of a. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t d[3][WORD_MAX + 1];
    size_t a_len = strlen(a), b_len = strlen(b);

    for (size_t j = 0; j <= b_len; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *row = d[i % 3], *above = d[(i + 2) % 3], *above2 = d[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = smallest(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return d[a_len % 3][b_len];
}

const char *likely_word(const char *word, const char *const *names)
{
    const char *likely = NULL;
    size_t len = strlen(word);
    size_t best = len < 4 ? 2 : 3; /* the first distance that is too far */

    if (len < 2 || len > WORD_MAX)
        return NULL;
    for (; *names; names++) {
        size_t distance;

        if (strlen(*names) > WORD_MAX)
            continue;
        distance = strncmp(*names, word, len) == 0 ? 1 : edit_distance(word, *names);
        if (distance > 1 && len < 6 && word[0] != **names)
            continue; /* port is not host */
        if (distance < best) {
            best = distance;
            likely = *names;
        }
    }
    return likely;
}
