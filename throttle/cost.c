#include "throttle/cost.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz"

static bool is_word(const char *word, const char *name, size_t len)
{
    return strlen(word) == len && memcmp(word, name, len) == 0;
}

static size_t name_len(const char *at)
{
    return strspn(at, LETTERS "0123456789_");
}

struct job_cost cost_of(int64_t plain)
{
    return (struct job_cost){.plain = plain};
}

bool cost_is_name(const char *name, size_t len)
{
    return len > 0 && len < RULE_OF_SIZE && name_len(name) >= len && strchr(LETTERS, *name) &&
           !is_word("plain", name, len) && !is_word("jobs", name, len);
}

bool cost_say(struct job_cost *cost, const char *name, size_t len, int64_t n)
{
    char text[RULE_OF_SIZE] = "";
    int i = cost->count;

    if (n < 0 || n > COST_MAX)
        return false;
    if (is_word("plain", name, len)) {
        bool first = cost->plain == COST_UNSAID;

        cost->plain = n;
        return first && n > 0;
    }
    if (!cost_is_name(name, len) || cost->count == COST_NAMES_MAX)
        return false;
    memcpy(text, name, len);
    while (i > 0 && strcmp(cost->named[i - 1].name, text) > 0)
        i--;
    if (i > 0 && strcmp(cost->named[i - 1].name, text) == 0)
        return false;
    memmove(&cost->named[i + 1], &cost->named[i], (size_t)(cost->count - i) * sizeof *cost->named);
    memcpy(cost->named[i].name, text, sizeof text);
    cost->named[i].slots = n;
    cost->count++;
    return true;
}

/* Reads digits of a whole number, without zeros before it; -1: there is none up to COST_MAX. */
static int64_t read_number(const char **at)
{
    size_t len = strspn(*at, "0123456789");
    int64_t n = 0;

    if (len == 0 || len > 10 || (**at == '0' && len > 1))
        return -1;
    for (; len > 0; len--)
        n = 10 * n + *(*at)++ - '0';
    return n <= COST_MAX ? n : -1;
}

/* Reads "NAME:N", which must stand behind the names before it in order. */
static bool read_part(const char **at, struct job_cost *cost)
{
    const char *name = *at;
    size_t len = name_len(name);

    if (!cost_is_name(name, len) || name[len] != ':')
        return false;
    *at += len + 1;
    return cost_say(cost, name, len, read_number(at)) &&
           is_word(cost->named[cost->count - 1].name, name, len);
}

bool cost_parse(const char *text, struct job_cost *cost)
{
    *cost = cost_of(COST_UNSAID);
    if (*text >= '0' && *text <= '9') {
        if (!cost_say(cost, "plain", strlen("plain"), read_number(&text)))
            return false;
        if (!*text)
            return true;
        if (*text++ != ',')
            return false;
    }
    if (!read_part(&text, cost))
        return false;
    while (*text == ',') {
        text++;
        if (!read_part(&text, cost))
            return false;
    }
    return !*text;
}

void cost_write(const struct job_cost *cost, char out[COST_TEXT_SIZE])
{
    int n = 0;

    *out = '\0';
    if (cost->plain != COST_UNSAID)
        n = snprintf(out, COST_TEXT_SIZE, "%" PRId64, cost->plain);
    for (int i = 0; i < cost->count; i++)
        n += snprintf(out + n, (size_t)(COST_TEXT_SIZE - n), "%s%s:%" PRId64, n > 0 ? "," : "",
                      cost->named[i].name, cost->named[i].slots);
}

/* Returns what is said of that part of a cost; COST_UNSAID: nothing. name "": the plain one. */
static int64_t part(const struct job_cost *cost, const char *name)
{
    if (!*name)
        return cost->plain;
    for (int i = 0; i < cost->count; i++)
        if (strcmp(cost->named[i].name, name) == 0)
            return cost->named[i].slots;
    return COST_UNSAID;
}

int64_t cost_at(const struct rule *rule, const struct job_cost *said, const struct job_cost *of_type)
{
    int64_t own, usual;

    if (rule->of_jobs || rule->algorithm == ALGORITHM_CONCURRENCY)
        return 1;
    own = part(said, rule->of);
    usual = part(of_type, rule->of);
    return own != COST_UNSAID ? own : usual != COST_UNSAID ? usual : 1;
}
