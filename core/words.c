#include "core/words.h"

#include <stdbool.h>
#include <string.h>

#define BLANKS " \t\n"

/* True when a shell would take this character for itself. One & within a word is part of an address. */
static bool is_shells(const char *at, char quote)
{
    if (quote)
        return quote == '"' && strchr("`$\\", *at);
    return strchr("`$\\|;<>*", *at) || (*at == '&' && (!at[1] || strchr(BLANKS "&", at[1])));
}

/* The word that begins at *at goes to *out, without its quotes; both are then behind it. Returns what only a shell could read. */
static char take(const char **at, char **out)
{
    char quote = 0;

    for (; **at && (quote || !strchr(BLANKS, **at)); ++*at) {
        if (quote && **at == quote)
            quote = 0;
        else if (!quote && (**at == '\'' || **at == '"'))
            quote = **at;
        else if (is_shells(*at, quote))
            return **at;
        else
            *(*out)++ = **at;
    }
    *(*out)++ = '\0';
    return quote;
}

char words_split(const char *command, char *out, char **words, size_t most)
{
    size_t count = 0;
    char sign = 0;

    while (!sign && count < most && *(command += strspn(command, BLANKS))) {
        words[count++] = out;
        sign = take(&command, &out);
    }
    words[count] = NULL;
    return sign;
}
