/* weir rate: the words behind an action, for several of them. */
#include <stdlib.h>
#include <string.h>

#include "cli/document/text.h"
#include "cli/rate/rate.h"

char *rate_join(char **argv)
{
    size_t size = 1;
    char *text;

    for (char **word = argv; *word; word++)
        size += strlen(*word) + 1;
    text = calloc(1, size);
    for (char **word = argv; text && *word; word++) {
        strcat(text, *word);
        if (word[1])
            strcat(text, " ");
    }
    return text;
}

void rate_print_dropped(const char *name, const char *dropped, const char *rule)
{
    if (*dropped)
        output_to(
            stderr,
            "weir: %s: its rules were for each %s and are now one for all jobs; to keep them apart: weir "
            "rate set %s %s,by=%s\n",
            name, dropped, name, rule, dropped);
}

json_t *rate_use_json(char **argv)
{
    json_t *limits = json_array();

    for (char **name = argv + 2; *name; name++)
        json_array_append_new(limits, text_word(*name));
    return json_pack("{s:o,s:s,s:o}", "type", text_word(argv[1]), "action", argv[0], "limits", limits);
}
