#include "throttle/take/take.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/client/client.h"
#include "core/client/reply.h"
#include "core/clock.h"
#include "core/given.h"
#include "core/script/script.h"
#include "throttle/key.h"
#include "throttle/take/denials.h"

#define ASSUMED_RETRY_S 1 /* when Redis may be back */

/* Reads a cost by name, which is kept as cost_write has it. */
static bool read_costs(const char *text, char costs[COST_TEXT_SIZE])
{
    struct job_cost cost;
    struct error ignored;

    if (cost_read(text, COST_TAKEN, &cost, &ignored) < 0)
        return false;
    cost_write(&cost, costs);
    return true;
}

int take_make(struct take_question *q, const char *name, size_t name_len, const char *key, int64_t cost,
              const char *costs, const char **why)
{
    struct error ignored;

    *q = (struct take_question){.cost = cost ? cost : 1};
    if (name_len < sizeof q->name)
        memcpy(q->name, name, name_len);
    *why = NULL;
    if (limit_name_check("limit", q->name, &ignored) < 0)
        *why = "not a valid name of a limit; use 1 to 128 of A-Z a-z 0-9 _ . -";
    else if (key && !*key)
        *why = "the key is empty; give one, or none";
    else if (cost < 0 || (cost && costs) || (costs && !read_costs(costs, q->costs)))
        *why = "wrong cost; give how many slots to take, 1 or more";
    else if (key)
        key_name(key, q->key);
    return *why ? WEIR_EINPUT : 0;
}

int take_read(struct take_question *q, const char *target, int64_t cost, const char *costs, const char **why)
{
    size_t name_len = strcspn(target, "/");

    return take_make(q, target, name_len, target[name_len] ? target + name_len + 1 : NULL, cost, costs, why);
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

static void add_cost(struct args *a, const struct take_question *q)
{
    if (*q->costs)
        args_add(a, q->costs);
    else
        args_add_int(a, q->cost);
}

void take_add(struct args *a, const struct take_question *q)
{
    args_add(a, q->name);
    args_add(a, q->key);
    add_cost(a, q);
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
    {"concurrency", WEIR_EINPUT,
     "its concurrency rule counts jobs in flight, which a take cannot give back; take from a limit without "
     "one"},
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

bool take_is_elsewhere(const struct redisReply *r, size_t i, int *count)
{
    struct redisReply *const *field = r->element + i * FIELDS;
    int64_t partitions = reply_int(field[BURST], 0);

    if (field[STATUS]->type != REDIS_REPLY_STRING || strcmp(field[STATUS]->str, "elsewhere") != 0)
        return false;
    if (partitions >= 1 && partitions <= PARTITIONS_MOST)
        *count = (int)partitions;
    return true;
}

void take_assume(bool allowed, struct weir_take *out)
{
    *out =
        (struct weir_take){.allowed = allowed, .assumed = 1, .retry_after_s = allowed ? -1 : ASSUMED_RETRY_S};
}

/* ---- The library */

#define WAITS 1  /* status of an item that has no answer yet */
#define ROUNDS 2 /* the first may tell how many partitions there are */

/* The questions of one call to Redis, gathered until there are TAKE_MOST. */
struct chunk {
    struct weir *w;
    const char *rule; /* as it was given */
    int flags;
    int failed; /* the partition could not be asked: a status, of all that follows there too */
    struct args args;
    size_t count;
    struct weir_take_item *item[TAKE_MOST];
};

/* True for a failure of Redis, not of the question. */
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

    if (item->costs)
        return;
    if (!c->w->denials)
        c->w->denials = denials_new();
    if (c->w->denials)
        denials_keep(c->w->denials, &q, asked_us, &item->take);
}

static size_t name_len(const struct weir_take_item *item)
{
    return strcspn(item->target, "/");
}

static void read_answers(struct chunk *c, const struct redisReply *reply, int64_t asked_us)
{
    for (size_t i = 0; i < c->count; i++) {
        struct weir_take_item *item = c->item[i];

        if (take_is_elsewhere(reply, i, &c->w->count)) {
            item->status = WAITS;
            continue;
        }
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

    return c->w->denials && !item->costs && !(c->flags & (WEIR_TAKE_PEEK | WEIR_TAKE_ASK)) &&
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
    item->status = take_read(&q, item->target, item->cost, item->costs, &item->why);
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

/* Asks those that live on partition p; those that turn out not to wait on. */
static int ask_at(struct chunk *c, int p, struct weir_take_item *items, size_t count)
{
    bool there = false;

    c->failed = 0;
    for (size_t i = 0; i < count; i++) {
        if (items[i].status != WAITS ||
            partition_home(items[i].target, name_len(&items[i]), c->w->count) != p)
            continue;
        if (!there)
            c->failed = client_at(c->w, p);
        there = true;
        add_item(c, &items[i]);
    }
    ask(c);
    return c->failed;
}

static bool some_wait(const struct weir_take_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (items[i].status == WAITS)
            return true;
    return false;
}

/* All partitions, until nobody waits; the first failure. */
static int ask_all(struct chunk *c, struct weir_take_item *items, size_t count)
{
    int failed = 0;

    for (int round = 0; round < ROUNDS && some_wait(items, count); round++)
        for (int p = 0; p < client_count(c->w); p++) {
            int status = ask_at(c, p, items, count);

            failed = failed ? failed : status;
        }
    for (size_t i = 0; i < count; i++)
        if (items[i].status == WAITS) {
            items[i].status = WEIR_ENOTNOW;
            items[i].why = TAKE_NOWHERE;
        }
    return failed;
}

static void begin_item(struct weir_take_item *item)
{
    item->why = !item->target       ? "the target is NULL; name a limit"
                : item->reserved[0] ? "reserved is not NULL; make the whole item zero first"
                                    : NULL;
    item->status = item->why ? WEIR_EUSAGE : WAITS;
}

static int take_many(struct weir *w, struct weir_take_item *items, size_t count, const char *rule, int flags)
{
    struct chunk c;
    int failed;

    c.w = w;
    c.rule = rule;
    c.flags = flags;
    c.count = 0;
    c.args = (struct args){0};
    for (size_t i = 0; i < count; i++)
        begin_item(&items[i]);
    failed = ask_all(&c, items, count);
    args_free(&c.args);
    return is_away(failed) && (flags & (WEIR_TAKE_OR_ALLOW | WEIR_TAKE_OR_DENY)) ? 0 : failed;
}

/* Items of a program that knows others than we: they are asked as ours, and their answers given back. */
static int take_foreign(struct weir *w, char *items, size_t size, size_t count, const char *rule, int flags)
{
    struct weir_take_item *own = calloc(count, sizeof *own);
    int status;

    if (!own)
        return error_no_memory(&w->error, "weir_take_many");
    for (size_t i = 0; i < count; i++)
        give_struct(&own[i], sizeof *own, items + i * size, size);
    status = take_many(w, own, count, rule, flags);
    for (size_t i = 0; i < count; i++)
        give_struct(items + i * size, size, &own[i], sizeof *own);
    free(own);
    return status;
}

int weir_take_many_sized(struct weir *w, struct weir_take_item *items, size_t size, size_t count,
                         const char *rule, int flags)
{
    if (GIVEN(w, PASSED_MANY(items, count)) < 0)
        return WEIR_EUSAGE;
    return size == sizeof *items ? take_many(w, items, count, rule, flags)
                                 : take_foreign(w, (char *)items, size, count, rule, flags);
}

static int take_one(struct weir *w, struct weir_take_item item, const char *rule, int flags,
                    struct weir_take *take, size_t size)
{
    int status = take_many(w, &item, 1, rule, flags);

    give_struct(take, size, &item.take, sizeof item.take);
    if (status < 0 || item.status == 0)
        return status;
    return error_set(&w->error, item.status, "take %.100s: %s", item.target, item.why);
}

int weir_take_sized(struct weir *w, const char *target, const char *rule, int64_t cost, int flags,
                    struct weir_take *take, size_t size)
{
    if (GIVEN(w, PASSED(target), PASSED(take)) < 0)
        return WEIR_EUSAGE;
    return take_one(w, (struct weir_take_item){.target = target, .cost = cost}, rule, flags, take, size);
}

/* ---- In line */

#define LEAD_US 1000     /* before its slot it asks again: behind a worker, whose turn it may be */
#define HEARS_US 50000   /* who waits for longer listens whether its slot comes sooner */
#define LOOK_US 200000   /* between looks whether it is stopped: a signal may come just before it sleeps */
#define LONGEST_S 1e9    /* more is as long as it takes */
#define AGAIN_US 1000000 /* who cannot hear its bell tries again */

void take_wait_request(struct args *a, const char *prefix, int64_t now_us, const struct take_wait *wait,
                       int64_t most_us, bool leave)
{
    script_begin(a, wait->ttl_us ? "hold" : "take_wait", prefix, now_us);
    args_add(a, leave ? "leave" : "wait");
    args_add(a, wait->rules);
    args_add(a, wait->q.name);
    args_add(a, wait->q.key);
    add_cost(a, &wait->q);
    args_add(a, wait->place);
    args_add(a, wait->tag);
    args_add_int(a, most_us < 0 ? -1 : most_us);
    if (wait->ttl_us) {
        args_add_int(a, wait->ttl_us);
        args_add(a, wait->who);
    }
}

static void copy(char *out, size_t size, const struct redisReply *r)
{
    snprintf(out, size, "%s", r->type == REDIS_REPLY_STRING ? r->str : "");
}

static const char *verb_of(const struct take_wait *wait)
{
    return wait->ttl_us ? "hold" : "take";
}

int take_wait_reply(const struct redisReply *r, struct take_wait *wait, struct weir_take *out,
                    struct error *e)
{
    const char *why;
    int status;

    if (reply_array(r, FIELDS + 3, "take_wait", e) < 0)
        return e->status;
    status = take_answer(r, 0, out, &why);
    if (status < 0)
        return error_set(e, status, "%s %.100s: %s", verb_of(wait), wait->q.name, why);
    wait->now_us = reply_int(r->element[FIELDS], 0);
    copy(wait->place, sizeof wait->place, r->element[FIELDS + 1]);
    copy(wait->bell, sizeof wait->bell, r->element[FIELDS + 2]);
    return 0;
}

static void random_tag(char tag[24])
{
    uint64_t random = 0;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = (uint64_t)clock_mono_us() ^ (uint64_t)getpid() << 40;
    snprintf(tag, 24, "%016llx", (unsigned long long)random);
}

/* One caller of take_in_line. */
struct waiter {
    struct weir *w;
    struct take_wait wait;
    const volatile sig_atomic_t *stopped;
    int64_t asked_us, answered_us; /* the last question */
    int64_t asked_boot_us;         /* by CLOCK_BOOTTIME */
    int64_t due_us;                /* when its slot comes, by our clock */
    struct redis *ear;             /* listens to the bell; NULL: nothing does */
};

static int64_t us_of(double seconds)
{
    return (int64_t)ceil(seconds * 1e6);
}

static int ask_place(struct waiter *waiter, int64_t most_us, struct weir_take *take)
{
    struct weir *w = waiter->w;
    struct redisReply *reply = NULL;
    struct args a = {0};
    int status;

    take_wait_request(&a, w->prefix, -1, &waiter->wait, most_us, false);
    waiter->asked_us = clock_mono_us();
    waiter->asked_boot_us = clock_boot_us();
    status = client_call(w, &a, &reply, NULL);
    waiter->answered_us = clock_mono_us();
    args_free(&a);
    if (status == 0)
        status = take_wait_reply(reply, &waiter->wait, take, &w->error);
    if (reply)
        freeReplyObject(reply);
    waiter->due_us = waiter->asked_us + us_of(take->retry_after_s);
    return status;
}

/* What comes of it does not matter: a place that nobody takes is passed over. */
static void leave_line(struct waiter *waiter)
{
    struct redisReply *reply = NULL;
    struct error ignored;
    struct args a = {0};

    take_wait_request(&a, waiter->w->prefix, -1, &waiter->wait, -1, true);
    if (redis_call(waiter->w->redis, &a, &reply, NULL, &ignored) == 0)
        freeReplyObject(reply);
    args_free(&a);
}

static void stop_listening(struct waiter *waiter)
{
    redis_free(waiter->ear);
    waiter->ear = NULL;
}

static void listen_for_bell(struct waiter *waiter)
{
    struct error ignored;
    struct args a = {0};

    stop_listening(waiter);
    waiter->ear = redis_new_plain(waiter->w->redis);
    if (!waiter->ear)
        return;
    args_add(&a, "BLPOP");
    args_add(&a, waiter->wait.bell);
    args_add(&a, "0");
    if (redis_append(waiter->ear, &a, &ignored) < 0 || redis_flush(waiter->ear, &ignored) < 0)
        stop_listening(waiter);
    args_free(&a);
}

/* Something has come: when the slot is, by Redis's clock, or an error. */
static void hear(struct waiter *waiter)
{
    struct redisReply *reply = NULL;
    struct error ignored;

    if (redis_result(waiter->ear, &reply, &ignored) < 0) {
        stop_listening(waiter);
        return;
    }
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
        waiter->due_us = waiter->asked_us + reply_int(reply->element[1], 0) - waiter->wait.now_us;
    freeReplyObject(reply);
    if (waiter->due_us - clock_mono_us() > HEARS_US)
        listen_for_bell(waiter);
    else
        stop_listening(waiter);
}

static bool would_listen(const struct waiter *waiter)
{
    return !waiter->ear && waiter->due_us - clock_mono_us() > HEARS_US;
}

/* Until it is to ask again, or is stopped. What the bell has said while nobody listened is lost: who hears it again asks. */
static void sleep_in_line(struct waiter *waiter)
{
    int64_t again_us;

    if (would_listen(waiter))
        listen_for_bell(waiter);
    again_us = clock_mono_us() + AGAIN_US;
    while (!*waiter->stopped && clock_mono_us() < waiter->due_us - LEAD_US) {
        int64_t look_us = clock_mono_us() + LOOK_US, due_us = waiter->due_us - LEAD_US;

        if (waiter->ear) {
            if (redis_await(waiter->ear, due_us < look_us ? due_us : look_us))
                hear(waiter);
        } else if (clock_mono_us() < again_us || !would_listen(waiter)) {
            clock_sleep_until(due_us < look_us ? due_us : look_us);
        } else {
            listen_for_bell(waiter);
            if (waiter->ear)
                return;
            again_us = clock_mono_us() + AGAIN_US;
        }
    }
}

/* Until it is allowed, or denied for good. */
static int stand_in_line(struct waiter *waiter, int64_t most_us, struct weir_take *take)
{
    int64_t begun_us = clock_mono_us();
    int status;

    for (;;) {
        int64_t left_us = most_us - (clock_mono_us() - begun_us);

        status = ask_place(waiter, most_us < 0 ? -1 : left_us > 0 ? left_us : 0, take);
        if (status < 0 || !*waiter->wait.place)
            return status;
        sleep_in_line(waiter);
        if (*waiter->stopped) {
            leave_line(waiter);
            return 0;
        }
    }
}

/* Of a waiter that is made but for its question. Allowed: its slot has come. */
static int wait_in_line(struct weir *w, struct waiter *waiter, const char *target, int64_t cost,
                        const char *costs, int64_t most_us, struct weir_take *take)
{
    const char *why;
    int status;

    *take = (struct weir_take){0};
    if (take_read(&waiter->wait.q, target, cost, costs, &why) < 0)
        return error_set(&w->error, WEIR_EINPUT, "%s %.100s: %s", verb_of(&waiter->wait), target, why);
    random_tag(waiter->wait.tag);
    status = client_at_home(w, waiter->wait.q.name, strlen(waiter->wait.q.name));
    if (status == 0)
        status = stand_in_line(waiter, most_us, take);
    stop_listening(waiter);
    if (status == 0 && take->allowed) {
        clock_sleep_until(waiter->answered_us + us_of(take->retry_after_s));
        take->retry_after_s = -1;
    }
    return status;
}

int take_in_line(struct weir *w, const char *target, const char *rule, int64_t cost, const char *costs,
                 int flags, int64_t most_us, const volatile sig_atomic_t *stopped, struct weir_take *take)
{
    struct waiter waiter = {.w = w, .stopped = stopped};
    int status;

    *take = (struct weir_take){0};
    if (take_rules(rule, waiter.wait.rules, &w->error) < 0)
        return w->error.status;
    status = wait_in_line(w, &waiter, target, cost, costs, most_us, take);
    if (is_away(status) && flags & (WEIR_TAKE_OR_ALLOW | WEIR_TAKE_OR_DENY)) {
        take_assume(flags & WEIR_TAKE_OR_ALLOW, take);
        return 0;
    }
    return status;
}

int take_on_lease(struct weir *w, const char *target, int64_t cost, const char *costs, int64_t most_us,
                  const volatile sig_atomic_t *stopped, struct take_lease *lease, struct weir_take *take)
{
    struct waiter waiter = {.w = w, .stopped = stopped, .wait = {.ttl_us = lease->ttl_us, .who = lease->who}};
    int status = wait_in_line(w, &waiter, target, cost, costs, most_us, take);

    lease->asked_us = waiter.asked_boot_us;
    snprintf(lease->token, sizeof lease->token, "%s~%s", waiter.wait.q.name, waiter.wait.tag);
    return status;
}

/* As weir_take_wait. */
static int take_wait(struct weir *w, const struct weir_take_item *item, const char *rule, int flags,
                     double most_s, struct weir_take *take, size_t size)
{
    static const volatile sig_atomic_t never_stopped;
    struct weir_take own;
    int status;
    int64_t most_us = most_s < 0 ? -1 : most_s < LONGEST_S ? us_of(most_s) : -1;

    if (flags & WEIR_TAKE_PEEK)
        return error_set(&w->error, WEIR_EUSAGE,
                         "take %.100s: a peek takes nothing to wait for; leave WEIR_TAKE_PEEK out",
                         item->target);
    status =
        take_in_line(w, item->target, rule, item->cost, item->costs, flags, most_us, &never_stopped, &own);
    give_struct(take, size, &own, sizeof own);
    return status;
}

int weir_take_wait_sized(struct weir *w, const char *target, const char *rule, int64_t cost, int flags,
                         double most_s, struct weir_take *take, size_t size)
{
    const struct weir_take_item item = {.target = target, .cost = cost};

    if (GIVEN(w, PASSED(target), PASSED(take)) < 0)
        return WEIR_EUSAGE;
    return take_wait(w, &item, rule, flags, most_s, take, size);
}

int weir_take_costs_sized(struct weir *w, const char *target, const char *rule, const char *costs, int flags,
                          double most_s, struct weir_take *take, size_t size)
{
    const struct weir_take_item item = {.target = target, .costs = costs};

    if (GIVEN(w, PASSED(target), PASSED(costs), PASSED(take)) < 0)
        return WEIR_EUSAGE;
    return most_s == 0 ? take_one(w, item, rule, flags, take, size)
                       : take_wait(w, &item, rule, flags, most_s, take, size);
}
