#include <stdlib.h>
#include <string.h>

#include "cli/apply/apply.h"
#include "producer/schedule.h"
#include "queue/limits/type.h"
#include "queue/queues/queues.h"
#include "throttle/cost_words.h"

enum phase { FREE, FEWER, RULES, BIND, KEYS, SCHEDULES, PAUSES, REMOVE, PHASES };

/* The words of one text that another does not have. */
static void words_less(const char *text, const char *other, char out[LIMITS_MOST * LIMIT_NAME_SIZE])
{
    size_t len = 0;

    *out = '\0';
    for (size_t n; *text; text += n + (text[n] == ' ')) {
        const char *at = other;

        n = strcspn(text, " ");
        while (*at && !(strcspn(at, " ") == n && strncmp(at, text, n) == 0))
            at += strcspn(at, " ") + (at[strcspn(at, " ")] == ' ');
        if (!*at)
            len += (size_t)snprintf(out + len, LIMITS_MOST * LIMIT_NAME_SIZE - len, "%.*s ", (int)n, text);
    }
}

static int count_words(const char *text)
{
    int count = 0;

    for (; *text; text += strcspn(text, " ") + (text[strcspn(text, " ")] == ' '))
        count++;
    return count;
}

/* Sets or removes the rules of a limit. Limits that get fewer rules come first, since a type has at most so many in between too. */
static int write_limit(struct applying *a, const char *name, const json_t *row, const char *rules,
                       enum phase phase)
{
    if (rules && phase == (count_words(rules) < count_words(json_text_of(row, "was")) ? FEWER : RULES))
        return rate_set(a->w, name, rules, false, NULL, NULL, NULL);
    if (phase == REMOVE && json_is_null(json_object_get(row, "value")))
        return rate_remove(a->w, name, false);
    return 0;
}

static int write_use(struct applying *a, const char *type, const char *value, const char *was,
                     enum phase phase)
{
    char words[LIMITS_MOST * LIMIT_NAME_SIZE];

    words_less(phase == FREE ? was : value, phase == FREE ? value : was, words);
    return *words && (phase == FREE || phase == BIND) ? rate_use(a->w, type, phase == BIND, words, NULL) : 0;
}

/* True when a part of a cost is above that of another; "" is 1. */
static bool rises(const char *value, const char *was)
{
    struct job_cost cost, before;
    struct error ignored;

    if (cost_read(*value ? value : "1", COST_TAKEN, &cost, &ignored) < 0 ||
        cost_read(*was ? was : "1", COST_TAKEN, &before, &ignored) < 0)
        return true;
    for (int i = 0; i < cost.count; i++) {
        const char *name = cost.named[i].name;
        const int64_t *slots = cost_slots(&before, name, strlen(name));

        if (cost.named[i].slots > (slots ? *slots : 1))
            return true;
    }
    return cost.plain > (before.plain == COST_UNSAID ? 1 : before.plain);
}

static int write_cost(struct applying *a, const char *type, const char *value, const char *was,
                      enum phase phase)
{
    return phase == (rises(value, was) ? BIND : FREE) ? rate_use(a->w, type, true, "", *value ? value : "1")
                                                      : 0;
}

static int write_weight(struct applying *a, const char *limit, const char *value, const char *was)
{
    const char *key = section_title(*value ? value : was);

    return rate_weigh(a->w, limit, key, key, *value ? atoi(value) : 1);
}

static int write_key_rules(struct applying *a, const char *limit, const char *value, const char *was)
{
    char *text = strdup(*value ? value : was);
    struct key_change change;
    json_t *answer = NULL;
    int status = text ? section_read_key_rules(text, a->now_us, &change, &a->w->error)
                      : error_no_memory(&a->w->error, "apply");

    if (status == 0) {
        change.limit = limit;
        change.rules = *value ? change.rules : NULL;
        status = key_rules_change(a->w, &change, &answer);
        status = status == WEIR_ENOTFOUND && !*value ? 0 : status;
    }
    json_decref(answer);
    free(text);
    return status;
}

static int write_schedule(struct applying *a, const char *section, bool stays)
{
    const json_t *want = json_object_get(a->want, section);
    struct schedule s;
    bool replaced;
    int status;

    if (a->scheduled && strcmp(a->scheduled, section) == 0)
        return 0;
    a->scheduled = section;
    if (!stays) {
        status = weir_schedule_remove(a->w, section_title(section));
        if (status == 0)
            rate_note(a->w, "schedule remove %s", section_title(section));
        return status;
    }
    status = section_schedule(section_title(section), want, &s, &a->w->error);
    if (status == 0)
        status = schedule_store(a->w, section_title(section), &s, &replaced);
    if (status == 0)
        rate_note(a->w, "schedule add %s", section_title(section));
    schedule_free(&s);
    return status;
}

static int write_pause(struct applying *a, const char *section, const char *name, const char *value)
{
    static const struct {
        const char *kind;
        int (*pause)(struct weir *w, const char *name, const struct pausing *how, json_t **answer);
    } kinds[] = {{"type", type_pause}, {"queue", queue_pause}, {"schedule", schedule_pause}};
    const char *rest = "", *key = NULL, *title = section_title(section);
    struct pausing how = {.create = true};
    json_t *answer = NULL;
    size_t reason_len;
    int status = 0;

    if (!section_read_pause(value, a->now_us, &how.for_us, &rest))
        return 0;
    reason_len = strlen(rest);
    if (strcmp(name, "pause-key") == 0)
        key = section_paused_key(rest, &reason_len);
    how.reason = reason_len > 0 ? strndupa(rest, reason_len) : NULL;
    if (section_is(section, "limit"))
        status = rate_pause(a->w, title, key, &how, &answer);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (section_is(section, kinds[i].kind))
            status = kinds[i].pause(a->w, title, &how, &answer);
    json_decref(answer);
    return status;
}

static int write_row(struct applying *a, const json_t *row, enum phase phase)
{
    const char *section = json_text_of(row, "section"), *name = json_text_of(row, "name"),
               *title = section_title(section);
    const char *value = json_text_of(row, "value"), *was = json_text_of(row, "was");

    if (strncmp(name, "pause", 5) == 0)
        return phase == PAUSES ? write_pause(a, section, name, value) : 0;
    if (section_is(section, "schedule"))
        return phase == SCHEDULES ? write_schedule(a, section, json_object_get(a->want, section)) : 0;
    if (strcmp(name, "weight") == 0)
        return phase == (*value ? KEYS : FREE) ? write_weight(a, title, value, was) : 0;
    if (strcmp(name, "key-rules") == 0)
        return phase == (*value ? KEYS : FREE) ? write_key_rules(a, title, value, was) : 0;
    if (strcmp(name, "rules") == 0)
        return write_limit(a, title, row, json_string_value(json_object_get(row, "value")), phase);
    if (strcmp(name, "use") == 0)
        return write_use(a, title, value, was, phase);
    return write_cost(a, title, value, was, phase);
}

int apply_write(struct applying *a)
{
    size_t i;
    json_t *row;

    for (int phase = 0; phase < PHASES; phase++)
        json_array_foreach(a->changes, i, row)
            if (write_row(a, row, (enum phase)phase) < 0)
                return error_set(&a->cli->error, a->w->error.status,
                                 "%.400s; what is changed stays, and a second run makes what is left",
                                 a->w->error.text);
    return 0;
}
