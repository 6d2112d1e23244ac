/* A limit's rules together, in both forms. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "throttle/rule.h"

#define MARK_MAX_US (INT64_C(1) << 53)

/* All keyed rules have one path: a lane's key has one meaning. */
static int check_paths(const struct rule_set *set, struct error *e)
{
    const char *path = rule_set_path(set);

    for (size_t i = 0; i < set->count; i++)
        if (*set->at[i].by && strcmp(set->at[i].by, path) != 0)
            return error_set(
                e, WEIR_EINPUT,
                "rules by=%.80s and by=%.80s: the keyed rules of a limit have one path; use the same one, or "
                "leave by= out of one rule",
                path, set->at[i].by);
    return 0;
}

int rule_set_parse(const char *const *texts, size_t n, struct rule_set *set, struct error *e)
{
    *set = (struct rule_set){0};
    if (n == 0)
        return error_set(e, WEIR_EINPUT,
                         "no rule was given; write COUNT/PERIOD, as in 100/1m or 10/s,burst=20");
    if (n > RULES_MAX)
        return error_set(e, WEIR_EINPUT,
                         "%zu rules: a limit has at most %d; put the others into a limit of their own", n,
                         RULES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (rule_parse(texts[i], &set->at[set->count++], e) < 0)
            return e->status;
        set->at[i].place = (int)i;
    }
    return check_paths(set, e);
}

const char *rule_set_path(const struct rule_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (*set->at[i].by)
            return set->at[i].by;
    return "";
}

const struct rule *rule_set_at(const struct rule_set *set, int64_t place)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->at[i].place == place)
            return &set->at[i];
    return NULL;
}

/* gaps: with the places of rules that are gone. */
static void join(const struct rule_set *set, void (*format)(const struct rule *, char *), bool gaps,
                 char *out)
{
    char *end = out;

    *end = '\0';
    for (size_t i = 0, place = 0; i < set->count; i++, place++) {
        for (; gaps && place < (size_t)set->at[i].place; place++)
            end = stpcpy(end, "- ");
        format(&set->at[i], end);
        end += strlen(end);
        if (i + 1 < set->count)
            end = stpcpy(end, " ");
    }
}

void rule_set_format(const struct rule_set *set, char out[RULE_SET_TEXT_SIZE])
{
    join(set, rule_format, false, out);
}

void rule_set_write(const struct rule_set *set, char out[RULE_SET_TEXT_SIZE])
{
    char *end;

    join(set, rule_write, true, out);
    end = out + strlen(out);
    if (set->pause_until_us)
        end += sprintf(end, " pause:%" PRId64 "/%" PRId64, set->pause_until_us, set->paused_at_us);
    if (set->weighted)
        strcpy(end, " weights:1");
}

static bool read_pause(const char *at, struct rule_set *set)
{
    return number_read(&at, MARK_MAX_US, &set->pause_until_us) && *at++ == '/' &&
           number_read(&at, MARK_MAX_US, &set->paused_at_us) && !*at;
}

/* A mark behind the rules. */
static bool read_mark(const char *word, struct rule_set *set)
{
    static const char pause[] = "pause:";

    if (strcmp(word, "weights:1") == 0)
        return set->weighted = true;
    return strncmp(word, pause, strlen(pause)) == 0 && read_pause(word + strlen(pause), set);
}

/* One word: a rule, or one that is gone, or behind the last rule a mark. *place: of the next rule. */
static int read_word(const char *word, int *place, bool *marks, struct rule_set *set, struct error *e)
{
    struct rule *rule = &set->at[set->count];

    if (set->count && read_mark(word, set)) {
        *marks = true;
        return 0;
    }
    if (*marks || *place == RULES_MAX)
        return error_set(e, WEIR_EINPUT,
                         "stored rules: '%.80s' is too much; set the limit again with weir rate set", word);
    if (strcmp(word, "-") != 0) {
        if (rule_read(word, rule, e) < 0)
            return e->status;
        rule->place = *place;
        set->count++;
    }
    ++*place;
    return 0;
}

int rule_set_read(const char *stored, struct rule_set *set, struct error *e)
{
    char copy[RULE_SET_TEXT_SIZE], *rest = copy, *word;
    bool marks = false;
    int place = 0;

    *set = (struct rule_set){0};
    if (strlen(stored) >= sizeof copy)
        return error_set(e, WEIR_EINPUT,
                         "stored rules '%.80s': too long; set the limit again with weir rate set", stored);
    strcpy(copy, stored);
    while ((word = strsep(&rest, " ")))
        if (*word && read_word(word, &place, &marks, set, e) < 0)
            return e->status;
    if (set->count == 0)
        return error_set(e, WEIR_EINPUT,
                         "stored rules '%.80s': there is none; set the limit again with weir rate set",
                         stored);
    return check_paths(set, e);
}
