#include "queue/limits/rate.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/answer.h"
#include "core/clock.h"
#include "core/decimal.h"
#include "core/given.h"
#include "core/likely.h"
#include "core/script/script.h"
#include "throttle/key.h"

#define CURSOR_SIZE 24
/* A change takes so many calls: each checks 200 types, and all begin anew when a limit is changed meanwhile. */
#define CALLS_MOST 20000

/* Adds the names of a page of rate_list: each row begins with one. */
static int add_names(const json_t *page, void *arg)
{
    const json_t *rows = json_object_get(page, "raw");

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *row = json_string_value(json_array_get(rows, i));

        json_array_append_new(arg, json_stringn_nocheck(row, strcspn(row, "\n")));
    }
    return 0;
}

int rate_none(struct weir *w, const char *what, const char *name, const char *else_do)
{
    json_t *found = json_array();
    int status =
        pages_walk(&(struct pages){.w = w,
                                   .script = "rate_list",
                                   .now_us = -1,
                                   .arg = found,
                                   .words = ASK_WORDS(strcmp(what, "type") == 0 ? "types" : "limits"),
                                   .take = add_names,
                                   .here = true});
    size_t count = status == 0 ? json_array_size(found) : 0;
    const char **names = calloc(count + 1, sizeof *names), *likely;

    for (size_t i = 0; names && i < count; i++)
        names[i] = json_string_value(json_array_get(found, i));
    likely = names ? likely_word(name, names) : NULL;
    error_set(&w->error, WEIR_ENOTFOUND, "%s %s: there is none; %s%s%s", what, name,
              likely ? "did you mean " : else_do, likely ? likely : "", likely ? "?" : "");
    free((void *)names);
    json_decref(found);
    return w->error.status;
}

/* What a change has left to do. */
struct change {
    const char *type, *limit; /* of which the sleeping lanes are looked at, as for rate_apply_request */
    bool resume;
};

/* Remembers the first key of another kind that a page met, in *wrong: the change is made, and all that can be looked at is. */
static void note_wrong(struct error *wrong, const char *queue, const char *key)
{
    if (*key && !*wrong->text)
        error_set(
            wrong, WEIR_ECONFIG,
            "changed, but not all that waits in queue %s was looked at: %s; weir doctor --repair mends it",
            queue, key);
}

/* Looks at the lanes that sleep in a queue, page by page: of a type or at the gates of a limit. Between two pages Redis is left to others for
 * as long as the one before took: there may be a million, and jobs of keys that are new to a limit start meanwhile. */
static int apply_queue(struct weir *w, const char *queue, const struct change *change, struct error *wrong)
{
    char cursor[CURSOR_SIZE] = "0";
    int64_t began_us, took_us = 0;
    int status;

    do {
        struct args a = {0};
        json_t *answer;

        if (took_us > 0)
            clock_sleep_until(clock_mono_us() + took_us);
        began_us = clock_mono_us();
        rate_apply_request(&a, w->prefix, -1, queue, cursor, change->type, change->limit, change->resume);
        status = client_ask(w, "rate_apply", &a, &answer);
        took_us = clock_mono_us() - began_us;
        snprintf(cursor, sizeof cursor, "%s", answer_text(answer, "cursor"));
        note_wrong(wrong, queue, answer_text(answer, "wrong"));
        json_decref(answer);
    } while (status == 0 && *cursor);
    return status;
}

/* Applies a change to the lanes that sleep in the queues that an answer names. */
static int apply_page(struct weir *w, const json_t *answer, const struct change *change, struct error *wrong)
{
    const json_t *queues = json_object_get(answer, "asleep");
    int status = 0;

    for (size_t i = 0; status == 0 && i < json_array_size(queues); i++) {
        const char *queue = json_string_value(json_array_get(queues, i));

        status = apply_queue(w, queue ? queue : "", change, wrong);
    }
    return status;
}

/* Adds what a member of an answer says to ask on. */
static void add_words(struct args *a, const json_t *answer, const char *member)
{
    const json_t *words = json_object_get(answer, member);

    for (size_t i = 0; i < json_array_size(words); i++)
        args_add(a, json_string_value(json_array_get(words, i)));
}

static bool has_words(const json_t *answer, const char *member)
{
    return json_array_size(json_object_get(answer, member)) > 0;
}

/* Applies a change in all queues, behind its answer. */
static int apply(struct weir *w, json_t *answer, const struct change *change)
{
    json_t *page = json_incref(answer);
    struct error wrong = {0};
    int status = apply_page(w, page, change, &wrong);

    for (int calls = 0; status == 0 && calls < CALLS_MOST && has_words(page, "rest"); calls++) {
        struct args a = {0};

        script_begin(&a, "rate_wake", w->prefix, -1);
        add_words(&a, page, "rest");
        json_decref(page);
        status = client_ask(w, "rate_wake", &a, &page);
        if (status == 0)
            status = apply_page(w, page, change, &wrong);
    }
    json_decref(page);
    if (status == 0 && *wrong.text) {
        w->error = wrong;
        status = WEIR_ECONFIG;
    }
    return status;
}

int rate_apply(struct weir *w, struct json_t *answer)
{
    return apply(w, answer, &(struct change){NULL, NULL, false});
}

/* Sends a change of a limit; WEIR_ENOTFOUND: there is none of that name. *answer is to be freed. */
static int ask_change(struct weir *w, const char *script, struct args *a, const char *limit, json_t **answer)
{
    int status = client_ask(w, script, a, answer);

    return status == 0 && *answer_text(*answer, "missing") ? rate_none(w, "limit", limit, RATE_LISTED)
                                                           : status;
}

/* Splits text at its blanks, in place; returns how many words there are, most + 1 when there are more. */
static size_t split(char *text, const char **words, size_t most)
{
    size_t count = 0;
    char *word;

    while ((word = strsep(&text, " ")))
        if (*word && count <= most)
            words[count++] = word;
    return count;
}

int rate_parse(struct weir *w, const char *text, struct rule_set *set)
{
    const char *words[RULES_MAX + 1];
    char *copy = strdup(text);
    int status;

    if (!copy)
        return error_no_memory(&w->error, "rate");
    status = rule_set_parse(words, split(copy, words, RULES_MAX), set, &w->error);
    free(copy);
    return status;
}

/* Sends rate_set until all types of the limit are checked, each time on from where the last answer says that it ended. rules NULL: removes it. */
static int ask_set(struct weir *w, const char *name, const struct rule_set *rules, unsigned how,
                   json_t **answer)
{
    int status, calls = 0;

    *answer = NULL;
    do {
        struct args a = {0};

        rate_set_request(&a, w->prefix, -1, name, rules, how);
        add_words(&a, *answer, "next");
        json_decref(*answer);
        status = client_ask(w, "rate_set", &a, answer);
    } while (status == 0 && has_words(*answer, "next") && ++calls < CALLS_MOST);
    if (status == 0 && has_words(*answer, "next"))
        status = error_set(
            &w->error, WEIR_ENOTNOW,
            "limit %s: its types cannot be checked while limits are changed all the time; try again", name);
    return status;
}

static int pass_page(const json_t *page, void *arg)
{
    (void)page, (void)arg;
    return 0;
}

/* Jobs without a key of the types of a limit are counted anew, where rate_set says so. */
static int recount(struct weir *w, const char *name, const json_t *set)
{
    const char *before = json_string_value(json_object_get(set, "recount"));

    return !before ? 0
                   : pages_walk(&(struct pages){.w = w,
                                                .script = "rate_recount",
                                                .now_us = -1,
                                                .words = ASK_WORDS(name, before),
                                                .take = pass_page,
                                                .here = true});
}

/* Sends a change of rules, and what is left to do after it. */
static int change_rules(struct weir *w, const char *name, const struct rule_set *rules, unsigned how,
                        json_t **answer)
{
    int status = ask_set(w, name, rules, how, answer);

    if (status == 0 && !(how & RATE_DRY))
        status = apply(w, *answer, &(struct change){.limit = name});
    return status == 0 ? recount(w, name, *answer) : status;
}

int rate_set(struct weir *w, const char *name, const char *rules, unsigned how, struct rule_set *kept,
             char dropped[RULE_PATH_SIZE], int64_t *lost)
{
    struct rule_set set;
    json_t *answer;
    int status;

    if (limit_name_check("limit", name, &w->error) < 0 || rate_parse(w, rules, &set) < 0 ||
        client_at_home(w, name, strlen(name)) < 0)
        return w->error.status;
    status = change_rules(w, name, &set, how, &answer);
    if (status == 0 && dropped)
        snprintf(dropped, RULE_PATH_SIZE, "%s", answer_text(answer, "dropped"));
    if (status == 0 && lost)
        *lost = answer_int(answer, "lost");
    if (status == 0 && kept)
        status = rule_set_read(answer_text(answer, "kept"), kept, &w->error);
    json_decref(answer);
    return status;
}

int rate_remove(struct weir *w, const char *name, bool dry)
{
    json_t *answer;
    int status;

    if (limit_name_check("limit", name, &w->error) < 0 || client_at_home(w, name, strlen(name)) < 0)
        return w->error.status;
    status = change_rules(w, name, NULL, dry ? RATE_DRY : 0, &answer);
    if (status == 0 && !json_is_true(json_object_get(answer, "was")))
        status = rate_none(w, "limit", name, RATE_LISTED);
    json_decref(answer);
    return status;
}

static int check_uses(struct weir *w, const char *type, const char *const *limits, size_t count)
{
    if (limit_name_check("type", type, &w->error) < 0)
        return w->error.status;
    if (count > RATE_USES_MOST)
        return error_set(&w->error, WEIR_EINPUT, "type %s: more than %d limits; name fewer", type,
                         RATE_USES_MOST);
    for (size_t i = 0; i < count; i++)
        if (limit_name_check("limit", limits[i], &w->error) < 0)
            return w->error.status;
    return 0;
}

/* What a missing limit means, and what to do. */
static int missing_use(struct weir *w, const char *type, bool use, const char *limit)
{
    if (use)
        return error_set(&w->error, WEIR_ENOTFOUND,
                         "limit %s: there is none; set it first: weir rate set %s RULE", limit, limit);
    return error_set(&w->error, WEIR_ENOTFOUND,
                     "type %s: does not use limit %s; weir rate show LIMIT says which types use it", type,
                     limit);
}

static int call_use(struct weir *w, const char *type, bool use, const char *const *limits, size_t count,
                    const struct job_cost *cost)
{
    json_t *answer;
    struct args a = {0};
    int status;

    rate_use_request(&a, w->prefix, -1, type, use, limits, count, cost);
    status = client_ask(w, "rate_use", &a, &answer);
    if (status == 0 && *answer_text(answer, "missing"))
        status = missing_use(w, type, use, answer_text(answer, "missing"));
    if (status == 0)
        status = apply(w, answer, &(struct change){.type = type});
    json_decref(answer);
    return status;
}

int rate_use(struct weir *w, const char *type, bool use, const char *limits, const char *cost)
{
    const char *words[RATE_USES_MOST + 1];
    struct job_cost said;
    struct error why;
    char *copy = strdup(limits);
    size_t count;
    int status;

    if (!copy)
        return error_no_memory(&w->error, "rate");
    count = split(copy, words, RATE_USES_MOST);
    status = check_uses(w, type, words, count);
    if (status == 0 && cost && cost_read(cost, COST_TAKEN, &said, &why) < 0)
        status = error_set(&w->error, why.status, "cost: %s", why.text);
    if (status == 0 && count == 0 && !cost)
        status =
            error_set(&w->error, WEIR_EINPUT, "type %s: no limit is named; weir rate list shows them", type);
    if (status == 0)
        status = client_at_home(w, type, strlen(type));
    if (status == 0)
        status = call_use(w, type, use, words, count, cost ? &said : NULL);
    free(copy);
    return status;
}

int weir_rate_use(struct weir *w, const char *type, const char *limits, int64_t cost)
{
    char text[32];

    if (GIVEN(w, PASSED(type), PASSED(limits)) < 0)
        return WEIR_EUSAGE;
    snprintf(text, sizeof text, "%" PRId64, cost);
    return rate_use(w, type, true, limits, cost ? text : NULL);
}

int weir_rate_costs(struct weir *w, const char *type, const char *costs)
{
    if (GIVEN(w, PASSED(type), PASSED(costs)) < 0)
        return WEIR_EUSAGE;
    return rate_use(w, type, true, "", costs);
}

int weir_rate_unuse(struct weir *w, const char *type, const char *limits)
{
    if (GIVEN(w, PASSED(type), PASSED(limits)) < 0)
        return WEIR_EUSAGE;
    return rate_use(w, type, false, limits, NULL);
}

int rate_weigh(struct weir *w, const char *limit, const char *key, const char *made, int weight)
{
    json_t *answer;
    struct args a = {0};
    int status;

    if (client_at_home(w, limit, strlen(limit)) < 0)
        return w->error.status;
    rate_weigh_request(&a, w->prefix, -1, limit, key, made, weight);
    status = ask_change(w, "rate_weight", &a, limit, &answer);
    json_decref(answer);
    return status;
}

int weir_rate_weight(struct weir *w, const char *limit, const char *key, int weight)
{
    char made[KEY_NAMED_SIZE];

    if (GIVEN(w, PASSED(limit), PASSED(key)) < 0)
        return WEIR_EUSAGE;
    if (limit_name_check("limit", limit, &w->error) < 0)
        return w->error.status;
    if (!*key)
        return error_set(&w->error, WEIR_EINPUT, "key '': empty; give the value that jobs have");
    key_name(key, made);
    return rate_weigh(w, limit, key, made, weight);
}

/* Refuses what cannot be paused. */
static int check_pause(struct weir *w, const char *limit, const char *key)
{
    if (limit_name_check("limit", limit, &w->error) < 0)
        return w->error.status;
    if (key && !*key)
        return error_set(&w->error, WEIR_EINPUT, "key '': empty; give the value that jobs have");
    return 0;
}

int rate_pause(struct weir *w, const char *limit, const char *key, const struct pausing *how,
               json_t **answered)
{
    json_t *answer = NULL;
    struct args a = {0};
    int status = check_pause(w, limit, key);

    if (status == 0)
        status = client_at_home(w, limit, strlen(limit));
    if (answered)
        *answered = NULL;
    if (status != 0)
        return status;
    if (key)
        rate_pause_key_request(&a, w->prefix, -1, limit, key, how);
    else
        rate_pause_request(&a, w->prefix, -1, limit, how);
    status = ask_change(w, key ? "rate_pause_key" : "rate_pause", &a, limit, &answer);
    if (status == 0)
        status = apply(w, answer, &(struct change){.limit = limit, .resume = how->for_us == RATE_RESUME});
    if (status == 0 && answered)
        *answered = json_incref(answer);
    json_decref(answer);
    return status;
}

void rate_part(const char *text, char limit[RATE_LIMIT_SIZE], const char **key)
{
    size_t len = strcspn(text, "/");

    *key = text[len] ? text + len + 1 : NULL;
    len = len < RATE_LIMIT_SIZE ? len : RATE_LIMIT_SIZE - 1;
    memcpy(limit, text, len);
    limit[len] = '\0';
}

int weir_rate_pause(struct weir *w, const char *limit, double for_s)
{
    char name[RATE_LIMIT_SIZE];
    const char *key;

    if (GIVEN(w, PASSED(limit)) < 0)
        return WEIR_EUSAGE;
    rate_part(limit, name, &key);
    if (isinf(for_s) && for_s > 0)
        return rate_pause(w, name, key, &(struct pausing){.for_us = RATE_ENDLESS}, NULL);
    if (!(for_s > 0 && for_s * 1e6 <= RATE_PAUSE_LONGEST_US))
        return error_set(&w->error, WEIR_EINPUT,
                         "pause of %g s: must be above 0 and at most ten years (3650d)", for_s);
    return rate_pause(w, name, key, &(struct pausing){.for_us = (int64_t)ceil(for_s * 1e6)}, NULL);
}

int weir_rate_resume(struct weir *w, const char *limit)
{
    char name[RATE_LIMIT_SIZE];
    const char *key;

    if (GIVEN(w, PASSED(limit)) < 0)
        return WEIR_EUSAGE;
    rate_part(limit, name, &key);
    return rate_pause(w, name, key, &(struct pausing){.for_us = RATE_RESUME}, NULL);
}

/* ---- The log */

static double time_of(const char *text)
{
    json_t *change = text ? json_loads(text, 0, NULL) : NULL;
    double at = json_number_value(json_object_get(change, "at"));

    json_decref(change);
    return at;
}

/* Merges two lists, the newest first, into one that is the caller's; NULL: out of memory. */
static json_t *merge(const json_t *a, const json_t *b)
{
    json_t *all = json_array();
    size_t i = 0, k = 0;

    while (i < json_array_size(a) || k < json_array_size(b)) {
        json_t *x = json_array_get(a, i), *y = json_array_get(b, k);
        bool first = x && (!y || time_of(json_string_value(x)) >= time_of(json_string_value(y)));

        json_array_append(all, first ? x : y);
        i += first;
        k += !first;
    }
    return all;
}

struct reading_log {
    bool all;
    json_t *changes;
};

/* Merges more entries into what was read before. false: out of memory. */
static bool add_log(struct reading_log *log, const json_t *more)
{
    json_t *before = log->changes;

    log->changes = merge(before, more);
    json_decref(before);
    return log->changes;
}

static int read_log(struct weir *w, void *arg)
{
    struct reading_log *log = arg;
    json_t *answer;
    int status = client_ask_words(w, -1, "rate_log", ASK_WORDS(NULL), &answer);

    if (status == 0 && !(add_log(log, json_object_get(answer, "changes")) &&
                         (!log->all || add_log(log, json_object_get(answer, "acts")))))
        status = error_no_memory(&w->error, "rate");
    json_decref(answer);
    return status;
}

int rate_log_read(struct weir *w, bool all, json_t **changes)
{
    struct reading_log log = {.all = all};
    int status = client_look_at_all(w, read_log, &log);

    if (status != 0) {
        json_decref(log.changes);
        log.changes = NULL;
    }
    *changes = log.changes;
    return status;
}

void rate_note(struct weir *w, const char *fmt, ...)
{
    const struct error before = w->error;
    char what[400];
    json_t *answer;
    struct args a = {0};
    va_list args;

    va_start(args, fmt);
    decimal_vprint(what, sizeof what, fmt, args);
    va_end(args);
    note_request(&a, w->prefix, what);
    if (client_ask(w, "note", &a, &answer) < 0)
        w->error = before;
    json_decref(answer);
}
