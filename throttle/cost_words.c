#include "throttle/cost_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTED_MOST 40 /* bytes of a wrong word that a message repeats */
#define DIGITS_MOST 10 /* of COST_MAX */

static int quoted(size_t len)
{
    return len < QUOTED_MOST ? (int)len : QUOTED_MOST;
}

static int wrong_name(const char *name, size_t len, struct error *e)
{
    if (len == strlen("jobs") && memcmp(name, "jobs", len) == 0)
        return error_set(e, WEIR_EINPUT, "jobs is one for each job, whatever it costs; leave it out");
    return error_set(e, WEIR_EINPUT, "'%.*s' is no name; use 1 to 32 of a-z 0-9 _, a letter first",
                     quoted(len), name);
}

int64_t *cost_slots(struct job_cost *cost, const char *name, size_t len)
{
    for (int i = 0; i < cost->count; i++)
        if (strlen(cost->named[i].name) == len && memcmp(cost->named[i].name, name, len) == 0)
            return &cost->named[i].slots;
    return NULL;
}

/* Adds plain slots, of which a true cost may have none. */
static bool say_plain(struct job_cost *cost, int64_t slots)
{
    if (cost->plain != COST_UNSAID)
        return false;
    cost->plain = slots;
    return true;
}

int cost_add(struct job_cost *cost, enum cost_kind kind, const char *name, size_t name_len, const char *text,
             size_t len, struct error *e)
{
    bool plain = name_len == 0 || (name_len == strlen("plain") && memcmp(name, "plain", name_len) == 0);
    int64_t least = plain ? (int64_t)kind : 0;
    char digits[DIGITS_MOST + 1] = "";

    if (!plain && !cost_is_name(name, name_len))
        return wrong_name(name, name_len, e);
    if (len <= DIGITS_MOST)
        memcpy(digits, text, len);
    if (!*digits || digits[strspn(digits, "0123456789")] || atoll(digits) < least || atoll(digits) > COST_MAX)
        return error_set(e, WEIR_EINPUT, "%.*s%smust be a whole number from %d to %" PRId64 ", not '%.*s'",
                         (int)name_len, name, name_len ? " " : "", (int)least, COST_MAX, quoted(len), text);
    if (plain ? say_plain(cost, atoll(digits)) : cost_say(cost, name, name_len, atoll(digits)))
        return 0;
    if (!plain && cost->count == COST_NAMES_MAX)
        return error_set(e, WEIR_EINPUT, "%.*s is one name too many; give up to %d", (int)name_len, name,
                         COST_NAMES_MAX);
    return error_set(e, WEIR_EINPUT, "%.*s comes twice; give it once", plain ? 5 : (int)name_len,
                     plain ? "plain" : name);
}

int cost_read(const char *text, enum cost_kind kind, struct job_cost *cost, struct error *e)
{
    *cost = cost_of(COST_UNSAID);
    for (const char *part = text;; part += strcspn(part, ",") + 1) {
        size_t len, name_len;
        bool named;

        part += strspn(part, " ");
        len = strcspn(part, ",");
        name_len = strcspn(part, "=,");
        named = name_len < len;

        if (named ? cost_add(cost, kind, part, name_len, part + name_len + 1, len - name_len - 1, e)
                  : cost_add(cost, kind, "", 0, part, len, e))
            return e->status;
        if (!part[len])
            return 0;
    }
}

void cost_print(const struct job_cost *cost, char out[COST_TEXT_SIZE])
{
    cost_write(cost, out);
    for (char *at = out; *at; at++)
        if (*at == ':')
            *at = '=';
}
