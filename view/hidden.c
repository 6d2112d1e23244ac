#include "view/hidden.h"

#include <string.h>

static size_t before_slash(const char *gate)
{
    return strcspn(gate, "/");
}

/* Of lane:<queue>/<type>/<key>; other lists have no key. */
static size_t before_key_of_lane(const char *list)
{
    const char *kind = strncmp(list, "lane:", 5) == 0 ? strchr(list, '/') : NULL,
               *key = kind ? strchr(kind + 1, '/') : NULL;

    return key ? (size_t)(key - list) : strlen(list);
}

/* "weight NAME KEY N", "pause NAME/KEY ...", "resume NAME/KEY". */
size_t view_change_shown(const char *what)
{
    static const struct {
        const char *verb;
        char before;
    } of_keys[] = {{"weight ", ' '}, {"pause ", '/'}, {"resume ", '/'}};

    for (size_t i = 0; i < sizeof of_keys / sizeof *of_keys; i++) {
        size_t verb = strlen(of_keys[i].verb), name = verb;

        if (strncmp(what, of_keys[i].verb, verb) != 0)
            continue;
        name += strcspn(what + verb, " /");
        return what[name] == of_keys[i].before ? name + 1 : strlen(what);
    }
    return strlen(what);
}

/* shown: how much of the text may be shown; NULL: nothing. */
static const struct {
    const char *name;
    size_t (*shown)(const char *text);
} members[] = {
    {"key", NULL},
    {"unique", NULL},
    {"reason", NULL},
    {"failure", NULL},
    {"unreadable", NULL},
    {"gate", before_slash},
    {"list", before_key_of_lane},
    {"what", view_change_shown},
};

json_t *view_hidden(const char *name, const json_t *value)
{
    const char *text = json_string_value(value);

    for (size_t i = 0; text && i < sizeof members / sizeof *members; i++)
        if (strcmp(members[i].name, name) == 0)
            return members[i].shown ? json_stringn(text, members[i].shown(text)) : json_null();
    return NULL;
}
