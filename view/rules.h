/* Rules as JSON documents. */
#pragma once

#include "throttle/rule.h"
#include "view/json.h"

/* Describes a rule, without its state. */
json_t *rule_document(const struct rule *rule);
json_t *rules_document(const struct rule_set *set);
