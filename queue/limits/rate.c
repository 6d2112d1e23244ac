#include "queue/limits/rate.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/redis/client.h"
#include "core/redis/reply.h"
#include "core/redis/script.h"
#include "throttle/key.h"

#define WHAT_SIZE (RULE_SET_TEXT_SIZE + 2 * LIMIT_NAME_SIZE + 64)
#define USES_MAX 16 /* limits of a type: each has a rule, and a type has at most so many */
#define LONGEST_PAUSE_S (3650.0 * 86400)

/* ---- Requests: each ends its fixed arguments with what is done and by whom, for the log */

/* The log is JSON: what is not ASCII stays out of it. */
static bool is_printable(const char *text)
{
    while (isprint((unsigned char)*text))
        text++;
    return !*text;
}

static void add_by(struct args *a)
{
    char host[256] = "", by[320];
    struct passwd entry, *found = NULL;
    char buffer[4096];

    gethostname(host, sizeof host - 1);
    (void)getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found);
    if (found)
        snprintf(by, sizeof by, "%.60s@%s", found->pw_name, host);
    else
        snprintf(by, sizeof by, "%u@%s", (unsigned)getuid(), host);
    args_add(a, is_printable(by) ? by : "unknown");
}

void rate_set_request(struct args *a, const char *prefix, int64_t now_us, const char *name,
                      const struct rule_set *rules, bool dry)
{
    char text[RULE_SET_TEXT_SIZE] = "", what[WHAT_SIZE];

    script_begin(a, "rate_set", prefix, now_us);
    args_add(a, name);
    if (rules)
        rule_set_write(rules, text);
    args_add(a, text);
    args_add_int(a, dry);
    if (rules)
        rule_set_format(rules, text);
    snprintf(what, sizeof what, "%s %s%s%s", rules ? "set" : "remove", name, rules ? " " : "", text);
    args_add(a, what);
    add_by(a);
}

void rate_use_request(struct args *a, const char *prefix, int64_t now_us, const char *type, bool use,
                      const char *const *limits, size_t count, int64_t cost)
{
    char what[WHAT_SIZE + USES_MAX * LIMIT_NAME_SIZE];
    size_t len;

    script_begin(a, "rate_use", prefix, now_us);
    args_add(a, type);
    args_add(a, use ? "use" : "unuse");
    if (cost)
        args_add_int(a, cost);
    else
        args_add(a, "");
    len = (size_t)snprintf(what, sizeof what, "%s %s", use ? "use" : "unuse", type);
    for (size_t i = 0; i < count && len < sizeof what; i++)
        len += (size_t)snprintf(what + len, sizeof what - len, " %s", limits[i]);
    if (cost && len < sizeof what)
        snprintf(what + len, sizeof what - len, " --cost %" PRId64, cost);
    args_add(a, what);
    add_by(a);
    for (size_t i = 0; i < count; i++)
        args_add(a, limits[i]);
}

void rate_weight_request(struct args *a, const char *prefix, int64_t now_us, const char *limit,
                         const char *key, int64_t weight)
{
    char what[WHAT_SIZE], made[LIMIT_NAME_SIZE];

    key_make(key, strlen(key), made);
    script_begin(a, "rate_weight", prefix, now_us);
    args_add(a, limit);
    args_add(a, made);
    args_add_int(a, weight);
    snprintf(what, sizeof what, "weight %s %.200s %" PRId64, limit, is_printable(key) ? key : made, weight);
    args_add(a, what);
    add_by(a);
}

void rate_pause_request(struct args *a, const char *prefix, int64_t now_us, const char *limit, int64_t for_us)
{
    char what[WHAT_SIZE], span[32] = "";

    script_begin(a, "rate_pause", prefix, now_us);
    args_add(a, limit);
    args_add_int(a, for_us);
    if (for_us)
        duration_format(for_us, span);
    snprintf(what, sizeof what, "%s %s%s%s", for_us ? "pause" : "resume", limit, for_us ? " " : "", span);
    args_add(a, what);
    add_by(a);
}

void rate_apply_request(struct args *a, const char *prefix, int64_t now_us, const char *queue,
                        const char *cursor, const char *type, const char *limit, bool resume)
{
    script_begin(a, "rate_apply", prefix, now_us);
    args_add(a, queue);
    args_add(a, cursor);
    args_add(a, type ? type : "");
    args_add_int(a, resume);
    if (limit)
        args_add(a, limit);
}

/* ---- Answers */

static int unexpected(const char *script, struct error *e)
{
    return error_set(e, WEIR_EINTERNAL, "%s: unexpected answer from Redis; is another version at work?",
                     script);
}

/* The queues from element `first` on. */
static int read_asleep(const struct redisReply *r, size_t first, const char *script, struct rate_change *out,
                       struct error *e)
{
    out->asleep = calloc(r->elements + 1, sizeof *out->asleep);
    if (!out->asleep)
        return error_set(e, WEIR_EINTERNAL, "%s: out of memory; free some and try again", script);
    for (size_t i = first; i < r->elements; i++) {
        const struct redisReply *queue = r->element[i];

        if (queue->type != REDIS_REPLY_STRING || queue->len >= sizeof *out->asleep)
            return unexpected(script, e);
        strcpy(out->asleep[out->asleep_count++], queue->str);
    }
    return 0;
}

int rate_set_reply(const struct redisReply *r, struct rate_change *out, struct error *e)
{
    *out = (struct rate_change){0};
    if (reply_array(r, 2, "rate_set", e) < 0)
        return e->status;
    out->was = reply_int(r->element[0], 0) != 0;
    if (r->element[1]->type != REDIS_REPLY_STRING)
        return unexpected("rate_set", e);
    if (r->element[1]->len > 0 && rule_set_read(r->element[1]->str, &out->kept, e) < 0)
        return e->status;
    return read_asleep(r, 2, "rate_set", out, e);
}

int rate_change_reply(const struct redisReply *r, const char *script, struct rate_change *out,
                      struct error *e)
{
    *out = (struct rate_change){0};
    if (reply_array(r, 1, script, e) < 0)
        return e->status;
    if (r->element[0]->type == REDIS_REPLY_INTEGER) {
        out->was = r->element[0]->integer != 0;
        return read_asleep(r, 1, script, out, e);
    }
    if (r->elements < 2 || r->element[1]->type != REDIS_REPLY_STRING)
        return unexpected(script, e);
    snprintf(out->missing, sizeof out->missing, "%s", r->element[1]->str);
    return 0;
}

void rate_change_free(struct rate_change *change)
{
    free(change->asleep);
    *change = (struct rate_change){0};
}

int rate_apply_reply(const struct redisReply *r, char cursor[RATE_CURSOR_SIZE], struct error *e)
{
    if (reply_array(r, 1, "rate_apply", e) < 0)
        return e->status;
    if (r->element[0]->type != REDIS_REPLY_STRING || r->element[0]->len >= RATE_CURSOR_SIZE)
        return unexpected("rate_apply", e);
    strcpy(cursor, r->element[0]->str);
    return 0;
}

/* ---- Calls */

static int no_limit(struct weir *w, const char *name)
{
    return error_set(&w->error, WEIR_ENOTFOUND, "limit %s: there is none; weir rate list shows them", name);
}

/* One page; the cursor moves on. */
static int apply_page(struct weir *w, struct args *a, char cursor[RATE_CURSOR_SIZE])
{
    struct redisReply *reply = NULL;
    int status = client_call(w, a, &reply, NULL);

    if (status == 0)
        status = rate_apply_reply(reply, cursor, &w->error);
    if (reply)
        freeReplyObject(reply);
    return status;
}

/* Looks at the lanes that sleep in the queues of a change, of a type or at the gates of a limit. */
static int apply(struct weir *w, const struct rate_change *change, const char *type, const char *limit,
                 bool resume)
{
    struct args a;
    int status = 0;

    args_init(&a);
    for (size_t i = 0; status == 0 && i < change->asleep_count; i++) {
        char cursor[RATE_CURSOR_SIZE] = "0";

        do {
            rate_apply_request(&a, w->prefix, -1, change->asleep[i], cursor, type, limit, resume);
            status = apply_page(w, &a, cursor);
        } while (status == 0 && *cursor);
    }
    args_free(&a);
    return status;
}

int rate_apply_all(struct weir *w, const struct redisReply *r, size_t first, const char *script)
{
    struct rate_change change = {0};
    int status = read_asleep(r, first, script, &change, &w->error);

    if (status == 0)
        status = apply(w, &change, NULL, NULL, false);
    rate_change_free(&change);
    return status;
}

/* Sends a; script NULL: it is rate_set's. Whatever happens, *change is to be freed. */
static int call_change(struct weir *w, struct args *a, const char *script, struct rate_change *change)
{
    struct redisReply *reply = NULL;
    int status = client_call(w, a, &reply, NULL);

    *change = (struct rate_change){0};
    if (status == 0 && script)
        status = rate_change_reply(reply, script, change, &w->error);
    else if (status == 0)
        status = rate_set_reply(reply, change, &w->error);
    if (reply)
        freeReplyObject(reply);
    args_free(a);
    return status;
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

static int no_memory(struct weir *w)
{
    return error_set(&w->error, WEIR_EINTERNAL, "rate: out of memory; free some and try again");
}

static int parse_rules(struct weir *w, const char *text, struct rule_set *set)
{
    const char *words[RULES_MAX + 1];
    char *copy = strdup(text);
    int status;

    if (!copy)
        return no_memory(w);
    status = rule_set_parse(words, split(copy, words, RULES_MAX), set, &w->error);
    free(copy);
    return status;
}

int rate_set(struct weir *w, const char *name, const char *rules, bool dry, struct rule_set *kept)
{
    struct rate_change change;
    struct rule_set set;
    struct args a;
    int status;

    if (limit_name_check("limit", name, &w->error) < 0 || parse_rules(w, rules, &set) < 0)
        return w->error.status;
    args_init(&a);
    rate_set_request(&a, w->prefix, -1, name, &set, dry);
    status = call_change(w, &a, NULL, &change);
    if (status == 0 && !dry)
        status = apply(w, &change, NULL, name, false);
    if (status == 0 && kept)
        *kept = change.kept;
    rate_change_free(&change);
    return status;
}

int weir_rate_set(struct weir *w, const char *name, const char *rules)
{
    return rate_set(w, name, rules, false, NULL);
}

int rate_remove(struct weir *w, const char *name, bool dry)
{
    struct rate_change change;
    struct args a;
    int status;

    if (limit_name_check("limit", name, &w->error) < 0)
        return w->error.status;
    args_init(&a);
    rate_set_request(&a, w->prefix, -1, name, NULL, dry);
    status = call_change(w, &a, NULL, &change);
    if (status == 0 && !change.was)
        status = no_limit(w, name);
    if (status == 0 && !dry)
        status = apply(w, &change, NULL, name, false);
    rate_change_free(&change);
    return status;
}

int weir_rate_remove(struct weir *w, const char *name)
{
    return rate_remove(w, name, false);
}

static int check_uses(struct weir *w, const char *type, const char *const *limits, size_t count)
{
    if (limit_name_check("type", type, &w->error) < 0)
        return w->error.status;
    if (count > USES_MAX)
        return error_set(&w->error, WEIR_EINPUT, "type %s: more than %d limits; name fewer", type, USES_MAX);
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
                    int64_t cost)
{
    struct rate_change change;
    struct args a;
    int status;

    args_init(&a);
    rate_use_request(&a, w->prefix, -1, type, use, limits, count, cost);
    status = call_change(w, &a, "rate_use", &change);
    if (status == 0 && *change.missing)
        status = missing_use(w, type, use, change.missing);
    if (status == 0)
        status = apply(w, &change, type, NULL, false);
    rate_change_free(&change);
    return status;
}

int rate_use(struct weir *w, const char *type, bool use, const char *limits, int64_t cost)
{
    const char *words[USES_MAX + 1];
    char *copy = strdup(limits);
    size_t count;
    int status;

    if (!copy)
        return no_memory(w);
    count = split(copy, words, USES_MAX);
    status = check_uses(w, type, words, count);
    if (status == 0 && cost < 0)
        status =
            error_set(&w->error, WEIR_EINPUT, "cost %" PRId64 ": below 1; give the slots a job takes", cost);
    if (status == 0 && count == 0 && cost == 0)
        status =
            error_set(&w->error, WEIR_EINPUT, "type %s: no limit is named; weir rate list shows them", type);
    if (status == 0)
        status = call_use(w, type, use, words, count, cost);
    free(copy);
    return status;
}

int weir_rate_use(struct weir *w, const char *type, const char *limits, int64_t cost)
{
    return rate_use(w, type, true, limits, cost);
}

int weir_rate_unuse(struct weir *w, const char *type, const char *limits)
{
    return rate_use(w, type, false, limits, 0);
}

int weir_rate_weight(struct weir *w, const char *limit, const char *key, int weight)
{
    struct rate_change change;
    struct args a;
    int status;

    if (limit_name_check("limit", limit, &w->error) < 0)
        return w->error.status;
    if (!*key)
        return error_set(&w->error, WEIR_EINPUT, "key '': empty; give the value that jobs have");
    args_init(&a);
    rate_weight_request(&a, w->prefix, -1, limit, key, weight);
    status = call_change(w, &a, "rate_weight", &change);
    if (status == 0 && *change.missing)
        status = no_limit(w, limit);
    rate_change_free(&change);
    return status;
}

int rate_pause(struct weir *w, const char *limit, int64_t for_us, bool *was)
{
    struct rate_change change;
    struct args a;
    int status;

    if (limit_name_check("limit", limit, &w->error) < 0)
        return w->error.status;
    args_init(&a);
    rate_pause_request(&a, w->prefix, -1, limit, for_us);
    status = call_change(w, &a, "rate_pause", &change);
    if (status == 0 && *change.missing)
        status = no_limit(w, limit);
    if (status == 0)
        status = apply(w, &change, NULL, limit, for_us == 0);
    if (status == 0 && was)
        *was = change.was;
    rate_change_free(&change);
    return status;
}

int weir_rate_pause(struct weir *w, const char *limit, double for_s)
{
    if (!(for_s > 0 && for_s <= LONGEST_PAUSE_S))
        return error_set(&w->error, WEIR_EINPUT,
                         "pause of %g s: must be above 0 and at most ten years (3650d)", for_s);
    return rate_pause(w, limit, (int64_t)ceil(for_s * 1e6), NULL);
}

int weir_rate_resume(struct weir *w, const char *limit)
{
    return rate_pause(w, limit, 0, NULL);
}

/* ---- The log */

void rate_log_free(struct rate_log *log)
{
    for (size_t i = 0; i < log->count; i++)
        free(log->at[i]);
    free(log->at);
    *log = (struct rate_log){0};
}

static int read_log(const struct redisReply *r, struct rate_log *log, struct error *e)
{
    if (reply_array(r, 0, "rate_log", e) < 0)
        return e->status;
    log->at = calloc(r->elements + 1, sizeof *log->at);
    for (size_t i = r->elements; log->at && i > 0; i--) {
        const char *text = r->element[i - 1]->type == REDIS_REPLY_STRING ? r->element[i - 1]->str : "";

        log->at[log->count] = strdup(text);
        if (!log->at[log->count++])
            return error_set(e, WEIR_EINTERNAL, "rate log: out of memory; free some and try again");
    }
    return log->at ? 0 : error_set(e, WEIR_EINTERNAL, "rate log: out of memory; free some and try again");
}

int rate_log_read(struct weir *w, struct rate_log *log)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    *log = (struct rate_log){0};
    args_init(&a);
    script_begin(&a, "rate_log", w->prefix, -1);
    status = client_call(w, &a, &reply, NULL);
    if (status == 0)
        status = read_log(reply, log, &w->error);
    if (status < 0)
        rate_log_free(log);
    if (reply)
        freeReplyObject(reply);
    args_free(&a);
    return status;
}
