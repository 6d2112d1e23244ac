#include <stdarg.h>
#include <stdio.h>

#include "core/client/client.h"
#include "core/decimal.h"
#include "queue/doctor/doctor.h"

const char *const doctor_states[] = {[DOCTOR_OK] = "ok",
                                     [DOCTOR_REPAIRED] = "repaired",
                                     [DOCTOR_WARNING] = "warning",
                                     [DOCTOR_WRONG] = "wrong"};

/* Without what a terminal or JSON would choke on. */
static void make_printable(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
}

void doctor_add(struct doctor *d, const char *name, enum doctor_state state, const char *todo,
                const char *fmt, ...)
{
    char text[1024] = "", what[2048];
    size_t len = 0;
    va_list rest;

    if (d->only_wrong && state == DOCTOR_OK)
        return;
    if (d->looks_at && client_count(d->looks_at) > 1)
        len = (size_t)snprintf(text, sizeof text, "partition %d: ", d->looks_at->at);
    va_start(rest, fmt);
    decimal_vprint(text + len, sizeof text - len, fmt, rest);
    va_end(rest);
    snprintf(what, sizeof what, "%s", todo ? todo : "");
    make_printable(text);
    make_printable(what);
    if (!d->checks)
        d->checks = json_array();
    d->no_memory |= json_array_append_new(d->checks, json_pack("{s:s, s:s, s:s, s:s?}", "name", name, "state",
                                                               doctor_states[state], "text", text, "do",
                                                               *what ? what : NULL)) != 0;
}
