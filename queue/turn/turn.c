/* The scripts of a turn but claim, which is in turn_claim.c: settle, promote, adopt, reap, heard, drained, match_names. */
#include "queue/turn/turn.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/reply.h"
#include "core/script/script.h"
#include "queue/turn/words.h"
#include "throttle/cost.h"

bool turn_is_unregistered(const struct error *e)
{
    return strstr(e->text, "unregistered") != NULL;
}

bool turn_is_of_another_format(const struct error *e)
{
    return strncmp(e->text, "format: ", strlen("format: ")) == 0;
}

/* ---- settle */

void settle_request(struct args *a, const char *prefix, int64_t now_us, const char *worker)
{
    script_begin(a, "settle", prefix, now_us);
    args_add(a, worker);
}

void settle_done(struct args *a, const char *type, struct span batch, size_t n)
{
    args_add(a, "done");
    args_add(a, type);
    args_add_bytes(a, batch.at, batch.len);
    args_add_int(a, (int64_t)n);
}

void settle_token(struct args *a, struct span token)
{
    args_add_bytes(a, token.at, token.len);
}

void settle_run(struct args *a, const char *type, struct span batch, struct span first, size_t n)
{
    args_add(a, "run");
    args_add(a, type);
    args_add_bytes(a, batch.at, batch.len);
    args_add_int(a, (int64_t)n);
    settle_token(a, first);
}

bool settle_follows(struct span token, struct span before)
{
    size_t at;
    char next[TOKEN_INDEX];

    if (token.len != before.len || !token_index(before, &at))
        return false;
    memcpy(next, before.at + at, sizeof next);
    return stamp_next(next, sizeof next) && memcmp(token.at + at, next, sizeof next) == 0 &&
           memcmp(token.at, before.at, at) == 0 &&
           memcmp(token.at + at + sizeof next, before.at + at + sizeof next, token.len - at - sizeof next) ==
               0;
}

void settle_cost(struct args *a, struct span token, const struct job_cost *spent)
{
    char text[COST_TEXT_SIZE];

    cost_write(spent, text);
    args_add(a, "cost");
    args_add_bytes(a, token.at, token.len);
    args_add(a, text);
    args_add(a, "");
}

void settle_failed(struct args *a, size_t n)
{
    args_add(a, "failed");
    args_add_int(a, (int64_t)n);
}

void settle_ran(struct args *a, int64_t ran_us)
{
    if (ran_us <= 0)
        return;
    args_add(a, "ran");
    args_add_int(a, ran_us);
}

void settle_cause(struct args *a, enum settle_verb verb, bool unstarted, size_t n, const char *reason)
{
    args_add(a, verb == SETTLE_RETRY ? "retry" : unstarted ? "wrong" : "dead");
    args_add_int(a, (int64_t)n);
    args_add(a, reason ? reason : "");
}

void settle_delay(struct args *a, size_t n, int64_t delay_us)
{
    args_add_int(a, (int64_t)n);
    args_add_int(a, delay_us);
}

void settle_end(struct args *a, enum settle_verb verb, struct span token, int64_t number, const char *reason)
{
    static const char *const verbs[] = {[SETTLE_FINISH] = "finish",
                                        [SETTLE_THROTTLED] = "throttled",
                                        [SETTLE_BACK] = "back",
                                        [SETTLE_CANCELLED] = "cancelled",
                                        [SETTLE_INTERRUPTED] = "interrupted"};

    args_add(a, verbs[verb]);
    args_add_bytes(a, token.at, token.len);
    args_add_int(a, number);
    args_add(a, reason ? reason : "");
}

/* Reads a reply of one number. */
static int number_reply(const struct redisReply *reply, const char *script, int64_t *value, struct error *e)
{
    if (reply && reply->type == REDIS_REPLY_INTEGER) {
        *value = reply->integer;
        return 0;
    }
    return reply_array(reply, SIZE_MAX, script, e);
}

int settle_reply(const struct redisReply *reply, int64_t *stale, struct error *e)
{
    if (!reply || reply->type != REDIS_REPLY_ARRAY)
        return number_reply(reply, "settle", stale, e);
    if (reply_array(reply, 4, "settle", e) != 0)
        return e->status;
    *stale = reply_int(reply->element[0], 0);
    return 0;
}

bool settle_paused(const struct redisReply *reply, size_t i, struct paused *paused)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 4 + 3 * i)
        return false;
    *paused = (struct paused){.token = span_of(reply->element[3 * i + 1]),
                              .pause_us = reply_int(reply->element[3 * i + 2], 0),
                              .times = reply_int(reply->element[3 * i + 3], 0)};
    return true;
}

/* ---- promote */

void promote_request(struct args *a, const char *prefix, int64_t now_us, int most)
{
    script_begin(a, "promote", prefix, now_us);
    args_add_int(a, most);
    job_add_seed(a);
}

int promote_reply(const struct redisReply *reply, struct promoted *promoted, struct error *e)
{
    int rc = reply_array(reply, 5, "promote", e);
    struct redisReply **at;

    *promoted = (struct promoted){0};
    if (rc == 0)
        rc = reply_array(reply->element[2], 0, "promote", e);
    if (rc != 0)
        return rc;
    at = reply->element[2]->element;
    promoted->moved = reply_int(reply->element[0], 0);
    promoted->now_us = reply_int(reply->element[1], 0);
    promoted->later_us = reply_int(reply->element[3], -1);
    promoted->wrong = span_of(reply->element[4]);
    promoted->due_count = reply->element[2]->elements / 3;
    if (!(promoted->due = calloc(promoted->due_count + 1, sizeof *promoted->due)))
        return error_no_memory(e, "promote");
    for (size_t i = 0; i < promoted->due_count; i++, at += 3)
        promoted->due[i] = (struct due_schedule){span_of(at[0]), span_of(at[1]), reply_int(at[2], 0)};
    return 0;
}

void promoted_free(struct promoted *promoted)
{
    free(promoted->due);
    promoted->due = NULL;
}

/* ---- adopt */

static struct went_back back_of(const struct redisReply *reply)
{
    struct went_back back;

    if (reply->type == REDIS_REPLY_STRING && sscanf(reply->str, "%16" SCNd64 " %16" SCNd64 " %16" SCNd64,
                                                    &back.from_us, &back.to_us, &back.at_us) == 3)
        return back;
    return (struct went_back){0};
}

void adopt_request(struct args *a, const char *prefix, int64_t now_us, const struct adopt_call *call)
{
    script_begin(a, "adopt", prefix, now_us);
    args_add(a, call->worker);
    args_add(a, call->old_worker);
    args_add(a, call->group);
    args_add_int(a, call->lease_us);
    args_add(a, call->info);
    args_add(a, call->birth);
    args_add_int(a, call->seen_us);
    args_add_int(a, call->queues.count);
    add_names(a, call->queues);
    if (call->unheard)
        args_add(a, "-");
}

int adopt_reply(const struct redisReply *reply, int queue_count, struct adopt *adopt, struct error *e)
{
    size_t fixed = 3 + (size_t)queue_count;
    int rc = reply_array(reply, 7 + fixed, "adopt", e);

    memset(adopt, 0, sizeof *adopt);
    if (rc != 0)
        return rc;
    adopt->now_us = reply_int(reply->element[0], 0);
    adopt->left = reply_int(reply->element[1], 0);
    if (!(adopt->words = calloc(reply->elements, sizeof *adopt->words)))
        return error_no_memory(e, "adopt");
    adopt->birth = span_of(reply->element[2]);
    adopt->back = back_of(reply->element[3]);
    adopt->partitions = (int)reply_int(reply->element[4], 1);
    adopt->types_digest = span_of(reply->element[5]);
    adopt->workers = reply_int(reply->element[6], 0);
    for (size_t i = 7; i < reply->elements; i++)
        adopt->words[i - 7] = span_of(reply->element[i]);
    adopt->keys = adopt->words;
    adopt->lost = adopt->words + fixed;
    adopt->lost_count = reply->elements - 7 - fixed;
    return 0;
}

void adopt_free(struct adopt *adopt)
{
    free(adopt->words);
    adopt->words = NULL;
}

/* ---- reap */

void reap_request(struct args *a, const char *prefix, int64_t now_us, const struct reap_call *call)
{
    script_begin(a, "reap", prefix, now_us);
    args_add(a, call->worker);
    args_add_int(a, call->lease_us);
    args_add_int(a, call->interrupted_most);
    args_add_int(a, call->dead_most);
    args_add_int(a, call->dead_age_us);
    args_add(a, call->group);
    args_add(a, call->quiet ? "quiet" : "");
}

static enum worker_order order_of(const struct redisReply *reply)
{
    const char *word = reply->type == REDIS_REPLY_STRING ? reply->str : "";

    return strcmp(word, "quiet") == 0    ? ORDER_QUIET
           : strcmp(word, "resume") == 0 ? ORDER_RESUME
           : strcmp(word, "stop") == 0   ? ORDER_STOP
                                         : ORDER_NONE;
}

int reap_reply(const struct redisReply *reply, struct reaped *reaped, struct error *e)
{
    int rc = reply_array(reply, 13, "reap", e);
    const struct redisReply *kept;

    for (int i = 4; rc == 0 && i < 7; i++)
        rc = reply_array(reply->element[i], 0, "reap", e);
    if (rc == 0)
        rc = reply_array(reply->element[12], 0, "reap", e);
    if (rc != 0)
        return rc;
    *reaped = (struct reaped){.now_us = reply_int(reply->element[0], 0),
                              .back = back_of(reply->element[7]),
                              .taken = reply_int(reply->element[1], 0),
                              .forgotten = reply_int(reply->element[2], 0),
                              .left = reply_int(reply->element[3], 0),
                              .workers = (int64_t)reply->element[4]->elements,
                              .order = order_of(reply->element[8]),
                              .registered = reply_int(reply->element[9], 0),
                              .newest = span_of(reply->element[10]),
                              .of_others = reply_int(reply->element[11], 0) == 1};
    for (size_t i = 0; i < reply->element[5]->elements && i < REAPED_WRONG_MOST; i++)
        reaped->wrong[reaped->wrong_count++] = span_of(reply->element[5]->element[i]);
    kept = reply->element[6];
    if (kept->elements == 3)
        reaped->kept = (struct dead_bounds){reply_int(kept->element[0], 0), reply_int(kept->element[1], 0),
                                            reply_int(kept->element[2], 0)};
    return 0;
}

bool reap_job(const struct redisReply *reply, size_t i, struct reaped_job *job)
{
    const struct redisReply *list = reply->element[12];

    if (list->elements < 4 * (i + 1))
        return false;
    *job = (struct reaped_job){.id = span_of(list->element[4 * i]),
                               .type = span_of(list->element[4 * i + 1]),
                               .attempt = span_of(list->element[4 * i + 2]),
                               .dead = span_of(list->element[4 * i + 3]).len == strlen("dead"),
                               .interrupted = span_of(list->element[4 * i + 3]).len > 0};
    return true;
}

/* ---- heard */

void heard_request(struct args *a, const char *prefix, int64_t now_us, const char *worker, struct span token)
{
    script_begin(a, "cancel_heard", prefix, now_us);
    args_add(a, worker);
    settle_token(a, token);
}

/* ---- drained */

void drained_request(struct args *a, const char *prefix, int64_t now_us, struct names queues,
                     struct names types)
{
    script_begin(a, "drained", prefix, now_us);
    args_add_int(a, queues.count);
    add_names(a, queues);
    add_names(a, types);
}

int drained_reply(const struct redisReply *reply, struct drained *drained, struct error *e)
{
    int rc = reply_array(reply, 8, "drained", e);

    if (rc != 0)
        return rc;
    drained->waiting = reply_int(reply->element[0], 0);
    drained->parked = reply_int(reply->element[1], 0);
    drained->running = reply_int(reply->element[2], 0);
    drained->due = reply_int(reply->element[3], 0);
    drained->paused = reply_int(reply->element[4], 0);
    drained->aside = reply_int(reply->element[5], 0);
    drained->halted = reply_int(reply->element[6], 0);
    drained->stopped = reply_int(reply->element[7], 0);
    return 0;
}

/* ---- match_names */

void match_request(struct args *a, const char *prefix, int64_t now_us, const char *what, uint64_t cursor,
                   int most, struct names words)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, cursor);
    script_begin(a, "match_names", prefix, now_us);
    args_add(a, what);
    args_add(a, text);
    args_add_int(a, most);
    add_names(a, words);
}

int match_reply(const struct redisReply *reply, struct matched *page, struct error *e)
{
    int rc = reply_array(reply, 1, "match_names", e);
    struct span cursor;

    *page = (struct matched){0};
    if (rc != 0)
        return rc;
    cursor = span_of(reply->element[0]);
    if (sscanf(cursor.at, "%20" SCNu64, &page->next) != 1)
        return error_set(e, WEIR_EINTERNAL, "match_names: its answer has no cursor");
    if (!(page->names = calloc(reply->elements, sizeof *page->names)))
        return error_no_memory(e, "match_names");
    page->count = reply->elements - 1;
    for (size_t i = 0; i < page->count; i++)
        page->names[i] = span_of(reply->element[i + 1]);
    return 0;
}

void matched_free(struct matched *page)
{
    free(page->names);
    page->names = NULL;
}
