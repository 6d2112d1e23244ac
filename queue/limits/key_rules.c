#include "queue/limits/key_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/client/answer.h"
#include "core/client/pages.h"
#include "core/given.h"
#include "core/script/script.h"
#include "queue/limits/rate.h"
#include "throttle/key.h"

static int check_change(struct weir *w, const struct key_change *change, struct rule_set *rules)
{
    if (limit_name_check("limit", change->limit, &w->error) < 0)
        return w->error.status;
    if (!*change->key)
        return error_set(&w->error, WEIR_EINPUT, "key '': empty; give the value that jobs have");
    if (!change->rules)
        return 0;
    if (change->closes && change->for_us == RATE_ENDLESS)
        return error_set(&w->error, WEIR_EINPUT,
                         "key %.60s: closed after no time at all; say for how long the rules hold",
                         change->key);
    if (rate_parse(w, change->rules, rules) < 0)
        return w->error.status;
    for (size_t i = 0; i < rules->count; i++)
        if (*rules->at[i].by)
            return error_set(&w->error, WEIR_EINPUT,
                             "key %.60s: its rules go by the path of the limit; leave by=%.60s out",
                             change->key, rules->at[i].by);
    return 0;
}

/* Asks for a change; its rows have many words. */
static int ask_change(struct weir *w, const struct key_change *change, const struct rule_set *rules,
                      json_t **answer)
{
    struct args a = {0};

    rate_set_key_request(&a, w->prefix, -1, change, rules);
    return client_ask(w, "rate_set_key", &a, answer);
}

/* What an answer says that changed nothing. */
static int refused(struct weir *w, const struct key_change *change, const json_t *answer)
{
    int64_t revision = answer_int(answer, "conflict");

    if (*answer_text(answer, "missing"))
        return rate_none(w, "limit", change->limit, RATE_LISTED);
    if (json_object_get(answer, "conflict"))
        return revision ? error_set(&w->error, WEIR_ENOTNOW,
                                    "key %.60s of limit %s: changed meanwhile, its revision is %" PRId64
                                    "; look at it, and give that one",
                                    change->key, change->limit, revision)
                        : error_set(&w->error, WEIR_ENOTNOW,
                                    "key %.60s of limit %s: has no rules of its own, so its revision is 0",
                                    change->key, change->limit);
    if (!change->rules && !json_object_get(answer, "was"))
        return error_set(
            &w->error, WEIR_ENOTFOUND,
            "key %.60s of limit %s: has no rules of its own; weir rate list %s --keys shows who has",
            change->key, change->limit, change->limit);
    return 0;
}

int key_rules_change(struct weir *w, const struct key_change *change, json_t **answer)
{
    struct rule_set rules;
    int status = check_change(w, change, &rules);

    *answer = NULL;
    if (status == 0)
        status = client_at_home(w, change->limit, strlen(change->limit));
    if (status == 0)
        status = ask_change(w, change, change->rules ? &rules : NULL, answer);
    if (status == 0)
        status = refused(w, change, *answer);
    if (status == 0 && !change->dry)
        status = rate_apply(w, *answer);
    if (status != 0) {
        json_decref(*answer);
        *answer = NULL;
    }
    return status;
}

/* ---- Reading */

struct reading {
    json_t *keys; /* by key: a page may have one again */
    int64_t now_us, count;
    bool missing;
};

static int take_page(const json_t *page, void *arg)
{
    struct reading *r = arg;
    json_t *row;
    size_t i;

    r->now_us = answer_int(page, "now");
    r->count = answer_int(page, "count");
    r->missing = *answer_text(page, "missing");
    json_array_foreach(json_object_get(page, "keys"), i, row) {
        json_object_set_new(row, "by", json_string(answer_text(page, "by")));
        json_object_set(r->keys, answer_text(row, "key"), row);
    }
    return 0;
}

int key_rules_read(struct weir *w, const char *limit, const char *key, json_t **rows, int64_t *now_us,
                   int64_t *count)
{
    struct reading r = {.keys = json_object()};
    char made[KEY_NAMED_SIZE] = "";
    int status;

    *rows = NULL;
    if (limit_name_check("limit", limit, &w->error) < 0 || client_at_home(w, limit, strlen(limit)) < 0) {
        json_decref(r.keys);
        return w->error.status;
    }
    if (key)
        key_name(key, made);
    status = pages_walk(&(struct pages){.w = w,
                                        .script = "rate_key_rules",
                                        .now_us = -1,
                                        .arg = &r,
                                        .words = ASK_WORDS(limit, made),
                                        .take = take_page,
                                        .here = true});
    if (status == 0 && r.missing)
        status = rate_none(w, "limit", limit, RATE_LISTED);
    *now_us = r.now_us;
    *count = r.count;
    if (status == 0)
        *rows = json_incref(r.keys);
    json_decref(r.keys);
    return status;
}

/* ---- Limits and keys of them */

/* Gives the key of "LIMIT/KEY" rules of its own; NULL: removes them. */
static int change_key(struct weir *w, const char *name, const char *rules)
{
    char limit[RATE_LIMIT_SIZE];
    struct key_change change = {.limit = limit, .rules = rules, .for_us = RATE_ENDLESS, .revision = -1};
    json_t *answer;
    int status;

    rate_part(name, limit, &change.key);
    status = key_rules_change(w, &change, &answer);
    json_decref(answer);
    return status;
}

int weir_rate_set(struct weir *w, const char *name, const char *rules)
{
    if (GIVEN(w, PASSED(name), PASSED(rules)) < 0)
        return WEIR_EUSAGE;
    return strchr(name, '/') ? change_key(w, name, rules) : rate_set(w, name, rules, 0, NULL, NULL, NULL);
}

int weir_rate_remove(struct weir *w, const char *name)
{
    if (GIVEN(w, PASSED(name)) < 0)
        return WEIR_EUSAGE;
    return strchr(name, '/') ? change_key(w, name, NULL) : rate_remove(w, name, false);
}
