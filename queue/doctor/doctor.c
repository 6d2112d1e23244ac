#include "queue/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/decimal.h"

/* A copy without what a terminal or JSON would choke on. */
static char *printable(const char *text)
{
    char *copy = strdup(text ? text : "");

    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
            *c = '?';
    return copy;
}

static void free_check(struct doctor_check *check)
{
    free(check->name);
    free(check->text);
    free(check->todo);
}

static void add_check(struct doctor *d, struct doctor_check check)
{
    if (d->count == d->capacity) {
        size_t capacity = d->capacity ? 2 * d->capacity : 32;
        struct doctor_check *grown = realloc(d->checks, capacity * sizeof *grown);

        if (grown) {
            d->checks = grown;
            d->capacity = capacity;
        }
    }
    if (d->count == d->capacity || !check.name || !check.text || !check.todo) {
        d->no_memory = true;
        free_check(&check);
        return;
    }
    d->checks[d->count++] = check;
}

void doctor_add(struct doctor *d, const char *name, enum doctor_state state, const char *todo,
                const char *fmt, ...)
{
    char text[1024];
    va_list rest;

    va_start(rest, fmt);
    decimal_vprint(text, sizeof text, fmt, rest);
    va_end(rest);
    add_check(d, (struct doctor_check){printable(name), state, printable(text), printable(todo)});
}

void doctor_clear(struct doctor *d)
{
    while (d->count > 0)
        free_check(&d->checks[--d->count]);
}

void doctor_move(struct doctor *to, struct doctor *from)
{
    for (size_t i = 0; i < from->count; i++)
        add_check(to, from->checks[i]);
    from->count = 0;
    to->no_memory |= from->no_memory;
    doctor_free(from);
    *from = (struct doctor){.count = 0};
}

void doctor_free(struct doctor *d)
{
    doctor_clear(d);
    free(d->checks);
}

int doctor_run(struct weir *w, int64_t now_us, bool repair, struct doctor *out)
{
    bool usable;
    int status;

    *out = (struct doctor){.count = 0};
    status = doctor_setup(w, now_us, repair, out, &usable);
    if (status == 0 && usable)
        status = doctor_structures(w, now_us, repair, out);
    if (status == 0 && out->no_memory)
        status = error_set(&w->error, WEIR_EINTERNAL, "doctor: out of memory; free some and try again");
    return status;
}
