#include "throttle/take.h"

#include <string.h>

#include "core/client.h"
#include "core/clock.h"
#include "core/reply.h"
#include "core/script.h"
#include "throttle/denials.h"
#include "throttle/key.h"

#define ASSUMED_RETRY_S 1 /* when Redis may be back */

int take_make(struct take_question *q, const char *name, size_t name_len, const char *key, int64_t cost,
              const char **why)
{
    struct error ignored;

    *q = (struct take_question){.cost = cost ? cost : 1};
    if (name_len < sizeof q->name)
        memcpy(q->name, name, name_len);
    *why = NULL;
    if (limit_name_check("limit", q->name, &ignored) < 0)
        *why = "no name of a limit; use 1 to 128 of A-Z a-z 0-9 _ . -";
    else if (key && !*key)
        *why = "the key is empty; give one, or none";
    else if (cost < 0)
        *why = "wrong cost; give how many slots to take, 1 or more";
    else if (key)
        key_make(key, strlen(key), q->key);
    return *why ? WEIR_EINPUT : 0;
}

int take_read(struct take_question *q, const char *target, int64_t cost, const char **why)
{
    size_t name_len = strcspn(target, "/");

    return take_make(q, target, name_len, target[name_len] ? target + name_len + 1 : NULL, cost, why);
}

int take_rules(const char *text, char stored[RULE_SET_TEXT_SIZE], struct error *e)
{
    char copy[RULE_SET_TEXT_SIZE], *rest = copy, *word;
    const char *words[RULES_MAX + 1];
    struct rule_set set;
    size_t count = 0;

    *stored = '\0';
    if (!text)
        return 0;
    if (strlen(text) >= sizeof copy)
        return error_set(e, WEIR_EINPUT, "rule '%.60s...': too long; give up to %d rules", text, RULES_MAX);
    strcpy(copy, text);
    while (count <= RULES_MAX && (word = strsep(&rest, " ")))
        if (*word)
            words[count++] = word;
    if (count == 0)
        words[count++] = "";
    if (rule_set_parse(words, count, &set, e) < 0)
        return e->status;
    rule_set_write(&set, stored);
    return 0;
}

void take_request(struct args *a, const char *prefix, int64_t now_us, const char *rules, bool peek)
{
    script_begin(a, "take", prefix, now_us);
    args_add(a, peek ? "1" : "0");
    args_add(a, rules);
}

void take_add(struct args *a, const struct take_question *q)
{
    args_add(a, q->name);
    args_add(a, q->key);
    args_add_int(a, q->cost);
}

enum take_field { STATUS, BURST, REMAINING, RETRY_AFTER, RESET_AFTER, FIELDS };

int take_reply(const struct redisReply *r, size_t count, struct error *e)
{
    return reply_array(r, count * FIELDS, "take", e);
}

/* What take.lua answers instead when the limit does not allow the question. */
static const struct refusal {
    const char *word;
    int status;
    const char *why;
} refusals[] = {
    {"missing", WEIR_ENOTFOUND, "there is no such limit; set it with weir rate set, or give a rule"},
    {"unkeyed", WEIR_EINPUT, "the limit has no keys; leave the key out, or set a rule with ,by="},
    {"keyless", WEIR_EINPUT, "the limit is kept for each key; write NAME/KEY"},
    {"differs", WEIR_EINPUT, "the limit has other rules; leave yours out, or take from another name"},
    {"concurrency", WEIR_EINPUT, "a concurrency rule counts jobs in flight, which a take cannot give back"},
    {"unreadable", WEIR_ECONFIG, "the limit's rules cannot be read; set them again with weir rate set"},
    {"foreign", WEIR_ECONFIG,
     "its key in Redis, gate:LIMIT#..., holds something that is not Weir's; move it away"},
};

static int refused(const struct redisReply *word, const char **why)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (word->type == REDIS_REPLY_STRING && strcmp(refusals[i].word, word->str) == 0) {
            *why = refusals[i].why;
            return refusals[i].status;
        }
    *why = "unknown answer of take.lua; use one version of weir";
    return WEIR_EINTERNAL;
}

int take_answer(const struct redisReply *r, size_t i, struct weir_take *out, const char **why)
{
    struct redisReply *const *field = r->element + i * FIELDS;
    int64_t retry_after_us = reply_int(field[RETRY_AFTER], -1);

    if (field[STATUS]->type != REDIS_REPLY_INTEGER)
        return refused(field[STATUS], why);
    *out = (struct weir_take){
        .allowed = field[STATUS]->integer == 1,
        .never = field[STATUS]->integer == 2,
        .limit = reply_int(field[BURST], 0),
        .remaining = reply_int(field[REMAINING], 0),
        .retry_after_s = retry_after_us < 0 ? -1 : (double)retry_after_us / 1e6,
        .reset_after_s = (double)reply_int(field[RESET_AFTER], 0) / 1e6,
    };
    return 0;
}

void take_assume(bool allowed, struct weir_take *out)
{
    *out =
        (struct weir_take){.allowed = allowed, .assumed = 1, .retry_after_s = allowed ? -1 : ASSUMED_RETRY_S};
}

/* ---- The library */

/* The questions of one call to Redis, gathered until there are TAKE_MOST. */
struct chunk {
    struct weir *w;
    const char *rule; /* as it was given */
    int flags;
    int failed; /* Redis could not be asked: a status, of all that follows too */
    struct args args;
    size_t count;
    struct weir_take_item *item[TAKE_MOST];
};

/* Is that a failure of Redis, not of the question? */
static bool is_away(int status)
{
    return status == WEIR_EUNREACHABLE || status == WEIR_ENOTNOW || status == WEIR_EREFUSED ||
           status == WEIR_EINTERNAL;
}

/* Answers one that Redis could not be asked for. */
static void fail_item(const struct chunk *c, struct weir_take_item *item)
{
    bool allow = c->flags & WEIR_TAKE_OR_ALLOW;

    if (is_away(c->failed) && (allow || (c->flags & WEIR_TAKE_OR_DENY))) {
        take_assume(allow, &item->take);
        return;
    }
    item->status = c->failed;
    item->why = "Redis could not be asked";
}

static int begin_chunk(struct chunk *c)
{
    char rules[RULE_SET_TEXT_SIZE];

    if (take_rules(c->rule, rules, &c->w->error) < 0)
        return c->w->error.status;
    take_request(&c->args, c->w->prefix, -1, rules, c->flags & WEIR_TAKE_PEEK);
    return 0;
}

static struct question question_of(const struct chunk *c, const struct weir_take_item *item)
{
    return (struct question){item->target, c->rule ? c->rule : "", item->cost};
}

static void remember(const struct chunk *c, const struct weir_take_item *item, int64_t asked_us)
{
    const struct question q = question_of(c, item);

    if (!c->w->denials)
        c->w->denials = denials_new();
    if (c->w->denials)
        denials_keep(c->w->denials, &q, asked_us, &item->take);
}

static void read_answers(struct chunk *c, const struct redisReply *reply, int64_t asked_us)
{
    for (size_t i = 0; i < c->count; i++) {
        struct weir_take_item *item = c->item[i];

        item->status = take_answer(reply, i, &item->take, &item->why);
        if (item->status == 0 && !item->take.allowed)
            remember(c, item, asked_us);
    }
}

/* Asks what was gathered. */
static void ask(struct chunk *c)
{
    struct redisReply *reply = NULL;
    int64_t asked_us = clock_mono_us();

    if (c->count == 0)
        return;
    c->failed = client_call(c->w, &c->args, &reply, NULL);
    if (c->failed == 0)
        c->failed = take_reply(reply, c->count, &c->w->error);
    if (c->failed == 0)
        read_answers(c, reply, asked_us);
    for (size_t i = 0; c->failed && i < c->count; i++)
        fail_item(c, c->item[i]);
    if (reply)
        freeReplyObject(reply);
    c->count = 0;
}

static bool is_remembered(const struct chunk *c, struct weir_take_item *item)
{
    const struct question q = question_of(c, item);

    return c->w->denials && !(c->flags & (WEIR_TAKE_PEEK | WEIR_TAKE_ASK)) &&
           denials_find(c->w->denials, &q, clock_mono_us(), &item->take);
}

static void add_item(struct chunk *c, struct weir_take_item *item)
{
    struct take_question q;

    item->status = 0;
    item->why = NULL;
    if (is_remembered(c, item))
        return;
    item->take = (struct weir_take){0};
    item->status = take_read(&q, item->target, item->cost, &item->why);
    if (item->status < 0)
        return;
    if (c->count == 0 && !c->failed)
        c->failed = begin_chunk(c);
    if (c->failed) {
        fail_item(c, item);
        return;
    }
    take_add(&c->args, &q);
    c->item[c->count++] = item;
    if (c->count == TAKE_MOST)
        ask(c);
}

int weir_take_many(struct weir *w, struct weir_take_item *items, size_t count, const char *rule, int flags)
{
    struct chunk c;

    c.w = w;
    c.rule = rule;
    c.flags = flags;
    c.failed = 0;
    c.count = 0;
    args_init(&c.args);
    for (size_t i = 0; i < count; i++)
        add_item(&c, &items[i]);
    ask(&c);
    args_free(&c.args);
    return is_away(c.failed) && (flags & (WEIR_TAKE_OR_ALLOW | WEIR_TAKE_OR_DENY)) ? 0 : c.failed;
}

int weir_take(struct weir *w, const char *target, const char *rule, int64_t cost, int flags,
              struct weir_take *take)
{
    struct weir_take_item item = {.target = target, .cost = cost};
    int status = weir_take_many(w, &item, 1, rule, flags);

    *take = item.take;
    if (status < 0 || item.status == 0)
        return status;
    return error_set(&w->error, item.status, "take %.100s: %s", target, item.why);
}
