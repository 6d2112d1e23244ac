#include "tests/turns.h"

#include "core/script/script.h"
#include "queue/enqueue/enqueue.h"
#include "tests/test.h"

#define LIMITS_MOST 16
#define WORDS_MOST 1200 /* of a call that goes on: what a scan has found and was not taken */

struct turns turns;

int turns_start(void **state)
{
    struct redis_address address;

    server_start(&turns.server, false);
    assert_int_equal(redis_address_parse(turns.server.url, &address, &turns.error), 0);
    turns.redis = redis_new(&address);
    assert_non_null(turns.redis);
    return 0;
}

int turns_stop(void **state)
{
    freeReplyObject(turns.reply);
    json_decref(turns.answer);
    claim_free(&turns.claim);
    promoted_free(&turns.promoted);
    redis_free(turns.redis);
    server_stop(&turns.server);
    return 0;
}

int turns_flush(void **state)
{
    struct args a = {0};

    args_add(&a, "FLUSHALL");
    assert_int_equal(turns_send(&a), 0);
    turns.now_us = BEGIN_US;
    return 0;
}

/* $WEIR_TRACE: what was sent and answered, to see how a failure came about. */
static void trace_sent(const struct args *a)
{
    for (size_t i = 0, begin = 0; i < a->count; begin = a->ends[i++])
        fprintf(stderr, "%s%.*s", i ? " " : "> ", (int)(a->ends[i] - begin), a->bytes + begin);
    fputc('\n', stderr);
}

static void trace_reply(const struct redisReply *reply, int depth)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        fprintf(stderr, " %lld", reply->integer);
    else if (reply->type != REDIS_REPLY_ARRAY)
        fprintf(stderr, " %s", reply->str ? reply->str : "nil");
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
        trace_reply(reply->element[i], depth + 1);
    if (depth == 0)
        fputc('\n', stderr);
}

int turns_send(struct args *a)
{
    bool traced = getenv("WEIR_TRACE") != NULL;
    int rc;

    freeReplyObject(turns.reply);
    turns.reply = NULL;
    turns.error.text[0] = '\0';
    turns.calls++;
    if (traced)
        trace_sent(a);
    rc = redis_call(turns.redis, a, &turns.reply, NULL, &turns.error);
    if (traced && rc == 0)
        trace_reply(turns.reply, 0);
    args_free(a);
    return rc;
}

int turns_script(const char *script, const char *const *words, size_t count)
{
    struct args a = {0};

    script_begin(&a, script, PREFIX, turns.now_us);
    for (size_t i = 0; i < count; i++)
        args_add(&a, words[i]);
    return turns_send(&a);
}

int turns_ask(const char *script, const char *const *words, size_t count)
{
    int rc = turns_script(script, words, count);

    json_decref(turns.answer);
    turns.answer = NULL;
    return rc ? rc : answer_read(turns.reply, script, &turns.answer, &turns.error);
}

bool turns_ask_more(const char *script, const char *const *words, size_t count, int *rc)
{
    json_t *place = json_incref(json_object_get(turns.answer, "next"));
    const char *all[WORDS_MOST];
    size_t more = json_array_size(place);

    for (size_t i = 0; i < count; i++)
        all[i] = words[i];
    for (size_t i = 0; i < more; i++)
        all[count + i] = json_string_value(json_array_get(place, i));
    if (more)
        *rc = turns_ask(script, all, count + more);
    json_decref(place);
    return more > 0;
}

bool turns_ask_rest(int *rc)
{
    json_t *words = json_incref(json_object_get(turns.answer, "rest"));
    const char *all[WORDS_MOST];
    size_t count = json_array_size(words);

    for (size_t i = 0; i < count; i++)
        all[i] = json_string_value(json_array_get(words, i));
    if (count)
        *rc = turns_ask("rate_wake", all, count);
    json_decref(words);
    return count > 0;
}

int turns_claim(const struct claim_call *call)
{
    struct turn_replies replies;
    struct args a = {0};
    int rc;

    claim_request(&a, PREFIX, turns.now_us, call);
    rc = turns_send(&a);
    if (rc != 0 || call->done_count == 0)
        return rc ? rc : claim_reply(turns.reply, &turns.claim, &turns.error);
    replies = turn_replies(turns.reply);
    rc = settle_reply(replies.settle, &turns.stale, &turns.error);
    return rc ? rc : claim_reply(replies.claim, &turns.claim, &turns.error);
}

int turns_adopt(const char *new, const char *old, const struct span *running, size_t count,
                struct names queues, size_t *lost)
{
    struct adopt_call call = {.worker = new,
                              .old_worker = old,
                              .group = "g",
                              .lease_us = new[0] ? LEASE_US : 0,
                              .info = turns.info ? turns.info : "{\"lease\":30.0}",
                              .birth = turns.birth,
                              .seen_us = turns.seen_us,
                              .queues = queues};
    struct adopt adopt;
    struct args a = {0};
    int rc;

    adopt_request(&a, PREFIX, turns.now_us, &call);
    for (size_t i = 0; i < count; i++)
        settle_token(&a, running[i]);
    rc = turns_send(&a);
    if (rc != 0)
        return rc;
    rc = adopt_reply(turns.reply, queues.count, &adopt, &turns.error);
    if (rc == 0 && lost)
        *lost = adopt.lost_count;
    turns.left = adopt.left;
    adopt_free(&adopt);
    return rc;
}

int turns_reap(const char *worker, int64_t *taken, int64_t *workers)
{
    struct reap_call call = {worker, LEASE_US, 3, 100000, 180 * 86400 * INT64_C(1000000), "g", false};
    struct reaped reaped;
    struct args a = {0};
    int rc;

    reap_request(&a, PREFIX, turns.now_us, &call);
    rc = turns_send(&a);
    if (rc == 0)
        rc = reap_reply(turns.reply, &reaped, &turns.error);
    if (rc != 0)
        return rc;
    *taken = reaped.taken;
    *workers = reaped.workers;
    return 0;
}

int turns_promote(int most, int64_t *moved)
{
    struct args a = {0};
    int rc;

    promote_request(&a, PREFIX, turns.now_us, most);
    rc = turns_send(&a);
    promoted_free(&turns.promoted);
    rc = rc ? rc : promote_reply(turns.reply, &turns.promoted, &turns.error);
    *moved = turns.promoted.moved;
    return rc;
}

void turns_add_end(struct args *a, enum settle_verb verb, struct span token, int64_t number,
                   const char *reason)
{
    if (verb != SETTLE_RETRY && verb != SETTLE_DEAD) {
        settle_end(a, verb, token, number, reason);
        return;
    }
    settle_failed(a, 1);
    settle_token(a, token);
    settle_cause(a, verb, number == 1, 1, reason);
    if (verb == SETTLE_RETRY)
        settle_delay(a, 1, number);
}

int turns_settle_end(const char *worker, enum settle_verb verb, struct span token, int64_t delay_us,
                     const char *reason, int64_t *stale)
{
    struct args a = {0};
    int rc;

    settle_request(&a, PREFIX, turns.now_us, worker);
    turns_add_end(&a, verb, token, delay_us, reason);
    rc = turns_send(&a);
    return rc ? rc : settle_reply(turns.reply, stale, &turns.error);
}

int turns_settle_done(const char *worker, const char *type, const struct span *tokens, size_t count,
                      int64_t *stale)
{
    struct args a = {0};
    int rc;

    settle_request(&a, PREFIX, turns.now_us, worker);
    settle_done(&a, type, (struct span){"", 0}, count);
    for (size_t i = 0; i < count; i++)
        settle_token(&a, tokens[i]);
    rc = turns_send(&a);
    return rc ? rc : settle_reply(turns.reply, stale, &turns.error);
}

int turns_enqueue(const char *queue, const char *type, const char *id, int64_t delay_us)
{
    struct enqueue job = {.queue = span_str(queue),
                          .type = span_str(type),
                          .id = span_str(id),
                          .keep_ms = 1000,
                          .tag = "tag",
                          .delay_us = delay_us,
                          .at_us = -1};
    enum enqueue_result result;
    struct span answered;
    struct args a = {0};
    int rc;

    job.body = span_str(textf("{\"id\":\"%s\",\"type\":\"%s\",\"args\":{}}", id, type));
    enqueue_request(&a, PREFIX, turns.now_us, &job);
    rc = turns_send(&a);
    return rc ? rc : enqueue_reply(turns.reply, &job, &result, &answered, &turns.error);
}

/* ---- Limits */

int turns_apply(const char *queue, const char *type, bool resume, const char *const *limits,
                size_t limit_count)
{
    char cursor[32] = "0";
    const char *words[4 + LIMITS_MOST] = {queue, cursor, type, resume ? "1" : "0"};
    int rc;

    for (size_t k = 0; k < limit_count && k < LIMITS_MOST; k++)
        words[4 + k] = limits[k];
    do {
        rc = turns_ask("rate_apply", words, 4 + limit_count);
        snprintf(cursor, sizeof cursor, "%s", answer_text(turns.answer, "cursor"));
    } while (rc == 0 && *cursor);
    return rc;
}

int turns_apply_all(const char *type, bool resume, const char *const *limits, size_t limit_count)
{
    json_t *answer = json_incref(turns.answer), *queues;
    int rc = 0;

    do {
        queues = json_object_get(answer, "asleep");
        for (size_t i = 0; rc == 0 && i < json_array_size(queues); i++)
            rc = turns_apply(json_string_value(json_array_get(queues, i)), type, resume, limits, limit_count);
        json_decref(turns.answer);
        turns.answer = answer;
    } while (rc == 0 && turns_ask_rest(&rc) && (answer = json_incref(turns.answer)));
    return rc;
}

/* 0, or WEIR_EINPUT where the answer says that a limit is not there. */
static int changed(int rc)
{
    if (rc != 0 || !json_object_get(turns.answer, "missing"))
        return rc;
    return error_set(&turns.error, WEIR_EINPUT, "missing %s", answer_text(turns.answer, "missing"));
}

/* All pages, of turns.answer the last one. */
static int ask_pages(const char *script, const char *const *words, size_t count)
{
    int rc = turns_ask(script, words, count);

    while (rc == 0 && turns_ask_more(script, words, count, &rc))
        ;
    return rc;
}

/* Jobs without a key are counted anew, where the answer to rate_set says so. */
static int recount(const char *limit)
{
    json_t *set = json_incref(turns.answer);
    const char *words[] = {limit, json_string_value(json_object_get(set, "recount"))};
    int rc = words[1] ? ask_pages("rate_recount", words, 2) : 0;

    json_decref(turns.answer);
    turns.answer = set;
    return rc;
}

int turns_rate(const char *limit, const char *rules)
{
    const char *text = textf("%s%s", rules[0] >= '0' && rules[0] <= '9' ? "gcra:" : "", rules);
    const char *words[] = {limit, text, "0", "set", "tests"};
    int rc;

    rc = changed(ask_pages("rate_set", words, 5));
    if (rc == 0)
        rc = recount(limit);
    if (rc != 0)
        return rc;
    snprintf(turns.rules, sizeof turns.rules, "%s", answer_text(turns.answer, "kept"));
    return turns_apply_all("", false, &limit, 1);
}

int turns_use(const char *type, const char *verb, const char *cost, const char *const *limits, size_t count)
{
    const char *words[5 + LIMITS_MOST] = {type, verb, cost, "use", "tests"},
                          *of_type[1 + LIMITS_MOST] = {type};
    int rc;

    for (size_t i = 0; i < count && i < LIMITS_MOST; i++)
        words[5 + i] = of_type[1 + i] = limits[i];
    rc = changed(turns_ask("rate_use", words, 5 + count));
    return rc ? rc : turns_apply_all(type, false, of_type, 1 + count);
}

int turns_weight(const char *limit, const char *key, int weight)
{
    const char *number = textf("%d", weight);
    const char *words[] = {limit, key, number, "weight", "tests"};

    return changed(turns_ask("rate_weight", words, 5));
}

int turns_pause(const char *limit, int64_t for_us)
{
    const char *number = textf("%lld", (long long)for_us);
    const char *words[] = {limit, number, "", "pause", "tests"};
    int rc;

    rc = changed(turns_ask("rate_pause", words, 5));
    return rc ? rc : turns_apply_all("", for_us == 0, &limit, 1);
}

int turns_pause_key(const char *limit, const char *key, int64_t for_us)
{
    char number[32] = "";
    const char *words[] = {limit, key, "", number, "", "pause", "tests"};

    if (for_us >= 0)
        snprintf(number, sizeof number, "%lld", (long long)for_us);
    return changed(turns_ask("rate_pause_key", words, 7));
}

int turns_pausing(const char *script, const char *name, int64_t for_us)
{
    char number[32] = "";
    const char *words[] = {name, number, "", "1", "pause", "tests"};

    if (for_us >= 0)
        snprintf(number, sizeof number, "%lld", (long long)for_us);
    return changed(turns_ask(script, words, 6));
}

int turns_settle_cost(const char *worker, struct span token, int64_t cost, int64_t *stale)
{
    struct args a = {0};
    int rc;

    settle_request(&a, PREFIX, turns.now_us, worker);
    settle_cost(&a, token, &(struct job_cost){.plain = cost});
    rc = turns_send(&a);
    return rc ? rc : settle_reply(turns.reply, stale, &turns.error);
}

struct invariants turns_check(void)
{
    struct invariants seen;
    const char *why = invariants_broken(turns.redis, PREFIX, turns.now_us, LEASE_US, &seen);

    fail_if(why, "%s", why);
    return seen;
}

char *turns_digest(void)
{
    return server_ask(&turns.server, "DEBUG", "DIGEST", NULL);
}

void turns_unchanged(char *before)
{
    char *after = turns_digest();

    assert_string_equal(before, after);
    free(before);
    free(after);
}
