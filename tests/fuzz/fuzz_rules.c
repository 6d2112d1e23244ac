#include <stdbool.h>

#include "core/duration.h"
#include "tests/fuzz/fuzz.h"
#include "throttle/rule.h"

/* What was read and written is read again as the same: a rule of a person in both forms, a stored one in its
 * own. */
static void check_rule(const struct rule *rule, bool of_person)
{
    char text[RULE_TEXT_SIZE];
    struct rule again;
    struct error e;

    must_hold(rule_most_in_period(rule) > 0);
    rule_write(rule, text);
    must_hold(rule_read(text, &again, &e) == 0 && rule_equal(rule, &again));
    rule_format(rule, text);
    if (of_person)
        must_hold(rule_parse(text, &again, &e) == 0 && rule_equal(rule, &again));
}

static void check_set(const struct rule_set *set, bool of_person)
{
    char person[RULE_SET_TEXT_SIZE], stored[RULE_SET_TEXT_SIZE];
    struct rule_set again;
    struct error e;

    must_hold(set->count >= 1 && set->count <= RULES_MAX);
    for (size_t i = 0; i < set->count; i++)
        check_rule(&set->at[i], of_person);
    rule_set_format(set, person);
    rule_set_write(set, stored);
    must_hold(rule_set_read(stored, &again, &e) == 0 && again.count == set->count);
    fuzz_touch(rule_set_path(set), strlen(rule_set_path(set)));
}

/* As the words of a command line. */
static void parse_set(char *text)
{
    const char *words[RULES_MAX + 2];
    struct rule_set set;
    struct error e;
    size_t count = 0;

    for (char *rest = text, *word; count < RULES_MAX + 2 && (word = strsep(&rest, " "));)
        words[count++] = word;
    if (rule_set_parse(words, count, &set, &e) == 0)
        check_set(&set, true);
}

static void check_duration(const char *text)
{
    char again[32];
    int64_t us, same;
    struct error e;

    if (duration_parse(text, &us, &e) < 0)
        return;
    must_hold(us >= 0);
    duration_format(us, again);
    must_hold(duration_parse(again, &same, &e) == 0 && same == us);
}

int fuzz_rules(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct rule_set set;
    struct rule rule;
    struct error e;

    if (rule_parse(text, &rule, &e) == 0)
        check_rule(&rule, true);
    if (rule_read(text, &rule, &e) == 0)
        check_rule(&rule, false);
    if (rule_set_read(text, &set, &e) == 0)
        check_set(&set, false);
    check_duration(text);
    parse_set(text);
    free(text);
    return 0;
}
