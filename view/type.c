#include "view/type.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"
#include "view/stream.h"
#include "view/text.h"
#include "view/waits.h"
#include "view/write.h"

#define ROW_SIZE 2048     /* of all members of a type but waits_for; they take less than half of it */
#define WAITS_SIZE 4096   /* of waits_for: seven words at most, and less than two more for the rest */
#define WORD_MOST 400     /* longer words are written with more care, as are spans below */
#define SPAN_LEAST_US 100 /* jansson gives those an exponent */

enum kind { COUNT, KEYLESS, TIME, RATE, RATE_OR_NULL, RULE, DOUBT, WAITS };

static const struct type_member {
    const char *name;
    enum kind kind;
    size_t at;
} members[] = {
#define AT(member) offsetof(struct type_status, member)
    {"waiting", COUNT, AT(waiting)},
    {"parked", COUNT, AT(parked)},
    {"held", COUNT, AT(held)},
    {"running", COUNT, AT(running)},
    {"scheduled", COUNT, AT(scheduled)},
    {"done", COUNT, AT(done)},
    {"retried", COUNT, AT(retried)},
    {"dead", COUNT, AT(dead)},
    {"cancelled", COUNT, AT(cancelled)},
    {"aside", COUNT, AT(aside)},
    {"keyless", KEYLESS, AT(keyless)},
    {"oldest_at", TIME, AT(oldest_us)},
    {"rule", RULE, AT(rule)},
    {"rate", RATE_OR_NULL, AT(rate)},
    {"rate_now", RATE, AT(rate_now)},
    {"next_start", TIME, AT(next_start_us)},
    {"finish_at", TIME, AT(finish_us)},
    {"at_the_earliest", DOUBT, AT(because)},
    {"waits_for", WAITS, AT(waits_for)},
#undef AT
};
#define MEMBERS (sizeof members / sizeof *members)

static int64_t count_of(const struct type_status *t, const struct type_member *m)
{
    int64_t n;

    if (m->kind == KEYLESS)
        return t->keyless ? t->keyless->jobs : 0;
    memcpy(&n, (const char *)t + m->at, sizeof n);
    return n;
}

static double rate_of(const struct type_status *t, const struct type_member *m)
{
    double rate;

    memcpy(&rate, (const char *)t + m->at, sizeof rate);
    return rate;
}

/* ---- As a document */

static json_t *value_of(const struct type_status *t, const struct type_member *m)
{
    switch (m->kind) {
    case COUNT:
    case KEYLESS:
        return json_integer(count_of(t, m));
    case TIME:
        return json_time(count_of(t, m));
    case RATE_OR_NULL:
        return rate_of(t, m) > 0 ? json_real(rate_of(t, m)) : json_null();
    case RATE:
        return json_real(rate_of(t, m));
    case RULE:
        return *t->rule ? text_word(t->rule) : json_null();
    case DOUBT:
        return json_boolean(t->because != 0);
    default:
        return t->waits_for ? document_make(t->waits_for, waits_members) : json_null();
    }
}

json_t *type_document(const struct type_status *t)
{
    json_t *doc = json_object();

    for (size_t i = 0; i < MEMBERS; i++)
        json_object_set_new(doc, members[i].name, value_of(t, &members[i]));
    return doc;
}

/* Values that can be are changed in place. */
static void set_value(json_t *doc, void *at, const struct type_status *t, const struct type_member *m)
{
    json_t *value = json_object_iter_value(at);

    if (m->kind == COUNT || m->kind == KEYLESS)
        json_integer_set(value, count_of(t, m));
    else if (m->kind == RATE)
        json_real_set(value, rate_of(t, m));
    else
        json_object_iter_set_new(doc, at, m->kind == WAITS ? json_null() : value_of(t, m));
}

void type_document_set(json_t *doc, const struct type_status *t)
{
    void *at = json_object_iter(doc); /* in the order in which they were added */

    for (size_t i = 0; i < MEMBERS && at; i++, at = json_object_iter_next(doc, at))
        set_value(doc, at, t, &members[i]);
}

/* ---- As text: the same */

static char *put(char *at, const char *text)
{
    return stpcpy(at, text);
}

static char *put_number(char *at, int64_t n)
{
    char digits[24];
    size_t len = 0;

    if (n < 0)
        *at++ = '-';
    for (uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n; left > 0 || len == 0; left /= 10)
        digits[len++] = (char)('0' + left % 10);
    while (len > 0)
        *at++ = digits[--len];
    *at = '\0';
    return at;
}

/* Seconds with what is left of the six digits behind the point: a double of today says all of them. */
static char *put_seconds(char *at, int64_t us)
{
    char *end;

    at = put_number(at, us / 1000000);
    end = put_number(at, 1000000 + us % 1000000);
    *at = '.';
    while (end[-1] == '0' && end[-2] != '.')
        end--;
    *end = '\0';
    return end;
}

static char *put_time(char *at, int64_t us)
{
    return us <= 0 || us == GATE_NEVER ? put(at, "null") : put_seconds(at, us);
}

static char *put_real(char *at, double value)
{
    int len;

    if (value == 0)
        return put(at, "0.0");
    len = decimal_print(at, 40, "%.16g", value);
    return strpbrk(at, ".e") ? at + len : put(at + len, ".0");
}

static char *put_value(char *at, const struct type_status *t, const struct type_member *m)
{
    switch (m->kind) {
    case COUNT:
    case KEYLESS:
        return put_number(at, count_of(t, m));
    case TIME:
        return put_time(at, count_of(t, m));
    case RATE_OR_NULL:
        return rate_of(t, m) > 0 ? put_real(at, rate_of(t, m)) : put(at, "null");
    case RATE:
        return put_real(at, rate_of(t, m));
    case RULE:
        return *t->rule ? put(put(put(at, "\""), t->rule), "\"") : put(at, "null");
    case DOUBT:
        return put(at, t->because ? "true" : "false");
    default:
        return at;
    }
}

/* Can it stand between quotes as it is? */
static bool is_plain(struct span word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.at[i] < ' ' || word.at[i] > '~' || strchr("\"\\", word.at[i]))
            return false;
    return word.len > 0 && word.len <= WORD_MOST;
}

/* What stands in waits of that name; NULL: it needs more care. */
static char *put_waits_member(char *at, const json_t *waits, const json_t *value, const struct member *m)
{
    struct span word = text_bytes(value);
    int64_t us = answer_int(waits, m->name);

    if (m->kind == MEMBER_WORD)
        return is_plain(word) ? put(put(put(at, "\""), word.at), "\"") : NULL;
    if (m->kind == MEMBER_FLAG)
        return put(at, json_is_true(value) ? "true" : "false");
    if (!json_is_integer(value))
        return NULL;
    if (m->kind == MEMBER_NUMBER)
        return put_number(at, us);
    if (m->kind == MEMBER_TIME)
        return put_time(at, us);
    return m->kind == MEMBER_SPAN && us >= SPAN_LEAST_US ? put_seconds(at, us) : NULL;
}

/* false: it needs more care. */
static bool put_waits(char *at, const json_t *waits)
{
    const char *between = "{\"";

    for (const struct member *m = waits_members; m->name; m++) {
        const json_t *value = json_object_get(waits, m->name);

        if (!value)
            continue;
        at = put(put(put(at, between), m->name), "\":");
        at = put_waits_member(at, waits, value, m);
        if (!at)
            return false;
        between = ",\"";
    }
    put(at, *between == ',' ? "}" : "{}");
    return true;
}

static bool write_waits(FILE *to, const struct type_status *t)
{
    char text[WAITS_SIZE];
    json_t *doc;
    bool done;

    if (!t->waits_for || put_waits(text, t->waits_for))
        return fputs(t->waits_for ? text : "null", to) != EOF;
    doc = document_make(t->waits_for, waits_members);
    done = doc && view_write(to, doc, VIEW_ALL);
    json_decref(doc);
    return done;
}

/* Names and rules are ASCII without quotes: Lua passes over other names. */
static bool write_type(FILE *to, const struct type_status *t, const char *between)
{
    char row[ROW_SIZE], *at = row;

    at = put(put(put(put(at, between), "\""), t->name), "\":{");
    for (size_t i = 0; i < MEMBERS; i++) {
        at = put(put(put(at, i ? ",\"" : "\""), members[i].name), "\":");
        at = put_value(at, t, &members[i]);
    }
    fputs(row, to);
    return write_waits(to, t) && putc('}', to) != EOF;
}

json_t *types_text(const struct status *s)
{
    struct text text = {0};
    FILE *to = view_stream(&text);
    bool done = to && putc('{', to) != EOF;
    json_t *doc;

    for (size_t i = 0; done && i < s->type_count; i++)
        done = write_type(to, &s->types[i], i ? "," : "");
    done = done && putc('}', to) != EOF;
    if (to)
        done = fclose(to) == 0 && done;
    doc = done ? view_text(text.at, text.len) : NULL;
    text_free(&text);
    return doc;
}
