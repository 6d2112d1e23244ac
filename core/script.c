#include "core/script.h"

#include <assert.h>
#include <string.h>

const struct script *script_named(const char *name)
{
    const struct script *s = scripts;

    while (s->name && strcmp(s->name, name) != 0)
        s++;
    assert(s->name);
    return s;
}

void script_begin(struct args *a, const char *name, const char *prefix, int64_t now_us)
{
    args_clear(a);
    args_add(a, "EVALSHA");
    args_add_bytes(a, script_named(name)->sha1, 40);
    args_add(a, "1");
    args_add(a, prefix);
    if (now_us < 0)
        args_add(a, "");
    else
        args_add_int(a, now_us);
}
