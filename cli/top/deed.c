#include "cli/top/deed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/top/line.h"
#include "view/format.h"

#define PAUSE_USUAL "10m"
#define SAY(state, ...) snprintf((state)->said, sizeof(state)->said, __VA_ARGS__)

/* ---- Orders and questions */

static struct order order_of(enum deed deed, const char *name)
{
    struct order order = {.deed = deed};

    snprintf(order.name, sizeof order.name, "%s", name);
    return order;
}

static void give(struct state *s, struct order order)
{
    s->order = order;
    s->ordered = true;
    SAY(s, "...");
}

void deed_drop(struct state *s)
{
    json_decref(s->ask.doc);
    s->ask = (struct ask){.kind = ASK_YES};
    if (s->mode == MODE_ASK)
        s->mode = MODE_LIST;
}

static void ask(struct state *s, enum ask_kind kind, struct order order, const char *typed)
{
    deed_drop(s);
    s->ask.kind = kind;
    s->ask.order = order;
    snprintf(s->ask.typed, sizeof s->ask.typed, "%s", typed);
    s->mode = MODE_ASK;
}

#define QUESTION(state, ...) snprintf((state)->ask.question, sizeof(state)->ask.question, __VA_ARGS__)

/* ---- Queues */

static void begin_queue_pause(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    give(s, order_of(DEED_PAUSE_QUEUE, row_name(row)));
}

static void begin_queue_resume(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    give(s, order_of(DEED_RESUME_QUEUE, row_name(row)));
}

static void begin_purge(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    give(s, order_of(DEED_COUNT_QUEUE, row_name(row)));
}

/* ---- Limits, and types: the limit that is in their way, else that of their own name */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static const struct limit_row *find_limit(const struct sight *now, const char *name)
{
    return bsearch(name, now->limit_rows, now->limit_count, sizeof *now->limit_rows, by_name);
}

static const struct limit_row *limit_meant(struct state *s, const void *row, const struct sight *now)
{
    const struct type_status *t = row;
    const struct limit_row *limit;

    if (s->view == VIEW_LIMITS)
        return row;
    limit = find_limit(now, answer_text(t->waits_for, "limit_name"));
    if (!limit)
        limit = find_limit(now, t->name);
    if (!limit)
        SAY(s, "no limit is in the way of %s; 4 shows the queues, which can be paused", t->name);
    return limit;
}

static void begin_limit_pause(struct state *s, const void *row, const struct sight *now)
{
    const struct limit_row *limit = limit_meant(s, row, now);

    if (!limit)
        return;
    ask(s, ASK_TEXT, order_of(DEED_PAUSE_LIMIT, limit->name), PAUSE_USUAL);
    QUESTION(s, "pause limit %s for: ", limit->name);
}

static void begin_limit_resume(struct state *s, const void *row, const struct sight *now)
{
    const struct limit_row *limit = limit_meant(s, row, now);

    if (limit)
        give(s, order_of(DEED_RESUME_LIMIT, limit->name));
}

/* One of its keys, which may be a million: it is typed, or chosen among some. Nobody has to wait for these. */
static void ask_for_key(struct state *s, const struct limit_row *limit, enum deed deed, const char *verb)
{
    ask(s, ASK_TEXT, order_of(deed, limit->name), "");
    QUESTION(s, "%s which key of limit %s? ", verb, limit->name);
    s->order = order_of(DEED_KEYS, limit->name);
}

static bool asks_for_key(const struct state *s)
{
    return s->mode == MODE_ASK &&
           (s->ask.order.deed == DEED_PAUSE_KEY || s->ask.order.deed == DEED_RESUME_KEY);
}

/* The key before or behind the one that is chosen is what is typed. */
static void choose_key(struct state *s, bool down)
{
    size_t count = json_array_size(s->ask.doc);

    if (count == 0)
        return;
    if (down)
        s->ask.at += s->ask.at < count;
    else
        s->ask.at = s->ask.at > 1 ? s->ask.at - 1 : 1;
    snprintf(s->ask.typed, sizeof s->ask.typed, "%s",
             answer_text(json_array_get(s->ask.doc, s->ask.at - 1), "key"));
}

static void begin_key_pause(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    ask_for_key(s, row, DEED_PAUSE_KEY, "pause");
}

static void begin_key_resume(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    ask_for_key(s, row, DEED_RESUME_KEY, "resume");
}

static void begin_rate(struct state *s, const void *row, const struct sight *now)
{
    const struct limit_row *limit = limit_meant(s, row, now);
    char rules[RULE_SET_TEXT_SIZE] = "";

    if (!limit)
        return;
    if (limit->limit->readable)
        rule_set_format(&limit->limit->set, rules);
    ask(s, ASK_RULES, order_of(DEED_SET_LIMIT, limit->name), rules);
    QUESTION(s, "rules of limit %s: ", limit->name);
}

static void begin_limit_remove(struct state *s, const void *row, const struct sight *now)
{
    const struct limit_row *limit = row;
    char jobs[PHRASE_SIZE];

    (void)now;
    ask(s, ASK_NAME, order_of(DEED_REMOVE_LIMIT, limit->name), "");
    QUESTION(s, "remove limit %s, for which %s wait? type its name: ", limit->name,
             counted(limit->jobs, "job", jobs));
}

/* ---- Workers */

static void begin_quiet(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    ask(s, ASK_YES, order_of(DEED_QUIET_WORKER, row_name(row)), "");
    QUESTION(s, "worker %s: takes no more jobs, and stays? [y/N] ", row_name(row));
}

static void begin_stop(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    ask(s, ASK_YES, order_of(DEED_STOP_WORKER, row_name(row)), "");
    QUESTION(s, "stop worker %s when its jobs have ended? [y/N] ", row_name(row));
}

/* ---- Dead jobs */

static void begin_retry(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    give(s, order_of(DEED_COUNT_RETRY, row_name(row)));
}

static void begin_dead_remove(struct state *s, const void *row, const struct sight *now)
{
    (void)now;
    give(s, order_of(DEED_COUNT_REMOVE, row_name(row)));
}

// clang-format off
const struct deed_key deed_keys[] = {
    {'p', VIEW_TYPES, "pause", begin_limit_pause},
    {'r', VIEW_TYPES, "resume", begin_limit_resume},
    {'c', VIEW_TYPES, "change the rate", begin_rate},
    {'d', VIEW_TYPES, "retry dead", begin_retry},
    {'D', VIEW_TYPES, "remove dead", begin_dead_remove},
    {'p', VIEW_LIMITS, "pause", begin_limit_pause},
    {'r', VIEW_LIMITS, "resume", begin_limit_resume},
    {'c', VIEW_LIMITS, "change the rate", begin_rate},
    {'x', VIEW_LIMITS, "pause a key", begin_key_pause},
    {'y', VIEW_LIMITS, "resume a key", begin_key_resume},
    {'R', VIEW_LIMITS, "remove", begin_limit_remove},
    {'u', VIEW_WORKERS, "quiet", begin_quiet},
    {'S', VIEW_WORKERS, "stop", begin_stop},
    {'p', VIEW_QUEUES, "pause", begin_queue_pause},
    {'r', VIEW_QUEUES, "resume", begin_queue_resume},
    {'P', VIEW_QUEUES, "purge", begin_purge},
    {.word = NULL},
};
// clang-format on

void deed_begin(struct state *s, int key, const void *row, const struct sight *now)
{
    for (const struct deed_key *d = deed_keys; d->word; d++) {
        if (d->key != key || d->view != s->view)
            continue;
        if (s->read_only)
            SAY(s, "read-only: start weir top without --read-only to %s", d->word);
        else if (s->ordered)
            SAY(s, "the last order is still on its way");
        else if (row && now)
            d->begin(s, row, now);
        return;
    }
}

/* ---- Answers */

static void answer_yes(struct state *s, int key)
{
    struct order order = s->ask.order;

    deed_drop(s);
    if (key == 'y' || key == 'Y')
        give(s, order);
    else
        SAY(s, "nothing was changed");
}

static void answer_name(struct state *s)
{
    struct order order = s->ask.order;
    bool right = strcmp(s->ask.typed, order.name) == 0;

    deed_drop(s);
    if (right)
        give(s, order);
    else
        SAY(s, "that is not its name; nothing was changed");
}

static void answer_text_typed(struct state *s)
{
    struct order order = s->ask.order;

    snprintf(order.text, sizeof order.text, "%s", s->ask.typed);
    deed_drop(s);
    give(s, order);
}

/* Rules are done once the forecast of the same text has been seen. */
static void answer_rules(struct state *s)
{
    struct order order = order_of(DEED_FORECAST, s->ask.order.name);

    if (s->ask.doc && strcmp(s->ask.foretold, s->ask.typed) == 0) {
        answer_text_typed(s);
        return;
    }
    snprintf(order.text, sizeof order.text, "%s", s->ask.typed);
    give(s, order);
}

static void answer(struct state *s)
{
    if (s->ordered)
        SAY(s, "the last order is still on its way");
    else if (s->ask.kind == ASK_NAME)
        answer_name(s);
    else if (s->ask.kind == ASK_RULES)
        answer_rules(s);
    else
        answer_text_typed(s);
}

void deed_key(struct state *s, int key)
{
    if (s->ask.kind == ASK_YES) {
        answer_yes(s, key);
    } else if (key == KEY_IS_ESCAPE) {
        deed_drop(s);
        SAY(s, "nothing was changed");
    } else if (key == KEY_IS_ENTER) {
        answer(s);
    } else if (asks_for_key(s) && (key == KEY_IS_UP || key == KEY_IS_DOWN)) {
        choose_key(s, key == KEY_IS_DOWN);
    } else {
        line_key(s->ask.typed, sizeof s->ask.typed, key);
    }
}

/* ---- Results */

static void ask_to_purge(struct state *s, const struct result *r)
{
    char jobs[PHRASE_SIZE];

    ask(s, ASK_NAME, order_of(DEED_PURGE_QUEUE, r->order.name), "");
    s->ask.order.count = r->count;
    QUESTION(s, "purge queue %s: %s removed for good; type its name: ", r->order.name,
             counted(r->count, "job", jobs));
}

static void ask_about_dead(struct state *s, const struct result *r)
{
    bool retry = r->order.deed == DEED_COUNT_RETRY;
    char jobs[PHRASE_SIZE];

    ask(s, retry ? ASK_YES : ASK_NAME, order_of(retry ? DEED_RETRY_DEAD : DEED_REMOVE_DEAD, r->order.name),
        "");
    s->ask.order.count = r->count;
    counted(r->count, "dead job", jobs);
    if (retry)
        QUESTION(s, "retry %s of %s? [y/N] ", jobs, r->order.name);
    else
        QUESTION(s, "remove %s of %s for good? type the type: ", jobs, r->order.name);
}

static void show_forecast(struct state *s, struct result *r)
{
    if (s->mode != MODE_ASK || s->ask.kind != ASK_RULES)
        return;
    json_decref(s->ask.doc);
    s->ask.doc = r->doc;
    r->doc = NULL;
    snprintf(s->ask.foretold, sizeof s->ask.foretold, "%s", r->order.text);
}

/* Those that can be paused, or resumed. Where none are known, one is typed. */
static void show_keys(struct state *s, const struct result *r)
{
    bool pause = s->ask.order.deed == DEED_PAUSE_KEY;

    if (!asks_for_key(s) || strcmp(s->ask.order.name, r->order.name) != 0)
        return;
    json_decref(s->ask.doc);
    s->ask.doc = json_incref(json_object_get(r->doc, pause ? "longest" : "paused_keys"));
    s->ask.at = 0;
}

void deed_result(struct state *s, struct result *r)
{
    enum deed deed = r->order.deed;

    if (deed == DEED_KEYS) {
        show_keys(s, r);
        return;
    }
    s->ordered = false;
    SAY(s, "%s", r->said);
    if (r->status < 0)
        return;
    if (deed == DEED_FORECAST)
        show_forecast(s, r);
    else if (deed < DEED_CHANGES && r->count == 0)
        SAY(s, "%s: there are none", r->order.name);
    else if (deed < DEED_CHANGES && s->mode != MODE_LIST) /* what is typed is no answer to this */
        SAY(s, "%s: counted; press the key again", r->order.name);
    else if (deed == DEED_COUNT_QUEUE)
        ask_to_purge(s, r);
    else if (deed == DEED_COUNT_RETRY || deed == DEED_COUNT_REMOVE)
        ask_about_dead(s, r);
}
