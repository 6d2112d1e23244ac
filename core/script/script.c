#include "core/script/script.h"

#include <stdio.h>

void script_begin(struct args *a, const char *name, const char *prefix, int64_t now_us)
{
    char function[64];

    snprintf(function, sizeof function, "weir_%s_%s", script_digest, name);
    args_clear(a);
    args_add(a, "FCALL");
    args_add(a, function);
    args_add(a, "1");
    args_add(a, prefix);
    if (now_us < 0)
        args_add(a, "");
    else
        args_add_int(a, now_us);
}
