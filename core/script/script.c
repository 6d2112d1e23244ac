#include "core/script/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_SIZE 192 /* a prefix, and role:<role> */

static int by_name(const void *name, const void *script)
{
    return strcmp(name, ((const struct script *)script)->name);
}

static const char *role_of(const char *name)
{
    const struct script *found = bsearch(name, scripts, script_count, sizeof *scripts, by_name);

    return found ? found->role : SCRIPT_VIEWER;
}

void script_begin_as(struct args *a, const char *role, const char *name, const char *prefix, int64_t now_us)
{
    bool views = strcmp(role, SCRIPT_VIEWER) == 0;
    char function[64], key[KEY_SIZE];

    snprintf(function, sizeof function, "weir_%s_%s", script_digest, name);
    snprintf(key, sizeof key, views ? "%s" : "%srole:%s", prefix, role);
    args_clear(a);
    args_add(a, views ? "FCALL_RO" : "FCALL");
    args_add(a, function);
    args_add(a, "1");
    args_add(a, key);
    if (now_us < 0)
        args_add(a, "");
    else
        args_add_int(a, now_us);
}

const char *script_place(const char *text, int *line)
{
    static const char mark[] = "user_function:";
    const char *at = strstr(text, script_digest) ? strstr(text, mark) : NULL;
    long number = at ? strtol(at + sizeof mark - 1, NULL, 10) : 0;
    const struct script_place *place = NULL;

    for (const struct script_place *p = script_places; p->file && p->before < number; p++)
        place = p;
    *line = place ? (int)number - place->before : 0;
    return place ? place->file : NULL;
}

void script_begin(struct args *a, const char *name, const char *prefix, int64_t now_us)
{
    script_begin_as(a, role_of(name), name, prefix, now_us);
}
