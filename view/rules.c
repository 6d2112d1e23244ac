#include "view/rules.h"

static bool is_gcra(const struct rule *rule)
{
    return rule->algorithm == ALGORITHM_GCRA;
}

/* n T in seconds, exact as far as a double goes. */
static double span_seconds(const struct rule *rule, int64_t n)
{
    return (double)n * (double)rule->period_us / (double)rule->count / 1e6;
}

json_t *rule_document(const struct rule *rule)
{
    bool rate = rule->algorithm != ALGORITHM_CONCURRENCY;
    char text[RULE_TEXT_SIZE];
    json_t *doc;

    rule_format(rule, text);
    doc = json_pack("{s:s,s:I,s:I,s:I,s:o}", "rule", text, "count", (json_int_t)rule->count, "burst",
                    (json_int_t)rule->burst, "most_in_period", (json_int_t)rule_most_in_period(rule),
                    "period", rate ? json_seconds(rule->period_us) : json_null());
    if (rule->zone.is_set)
        json_object_set_new(doc, "zone", json_string(rule->zone_name));
    if (rule->of_jobs || *rule->of)
        json_object_set_new(doc, "counts", json_string(rule->of_jobs ? "jobs" : rule->of));
    json_object_set_new(doc, "by", *rule->by ? json_string(rule->by) : json_null());
    if (is_gcra(rule)) {
        json_object_set_new(doc, "t", json_real(span_seconds(rule, 1)));
        json_object_set_new(doc, "tau", json_real(span_seconds(rule, rule->burst - 1)));
    }
    return doc;
}

json_t *rules_document(const struct rule_set *set)
{
    json_t *rules = json_array();

    for (size_t i = 0; i < set->count; i++)
        json_array_append_new(rules, rule_document(&set->at[i]));
    return rules;
}
