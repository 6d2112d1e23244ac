#include "queue/enqueue/enqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/client/reply.h"
#include "core/likely.h"
#include "core/script/script.h"

static void add_span(struct args *a, struct span s)
{
    args_add_bytes(a, s.at, s.len);
}

/* A time that is not given is empty. */
static void add_time(struct args *a, int64_t us)
{
    if (us < 0)
        args_add(a, "");
    else
        args_add_int(a, us);
}

static void add_lock(struct args *a, const struct enqueue *job)
{
    if (!job->unique.at)
        args_add(a, "");
    else if (job->lock_ms == LOCK_UNTIL_END)
        args_add(a, "end");
    else if (job->lock_ms == LOCK_UNTIL_START)
        args_add(a, "start");
    else
        args_add_int(a, job->lock_ms);
}

static bool is_plain(const struct enqueue *job)
{
    return job->delay_us < 0 && job->at_us < 0 && !(job->cost && cost_is_said(job->cost)) && !job->batch.at &&
           !job->unique.at;
}

static void add_cost(struct args *a, const struct job_cost *cost)
{
    char text[COST_TEXT_SIZE];

    cost_write(cost, text);
    args_add(a, text);
}

/* Adds what most jobs have nothing of. */
static void add_extras(struct args *a, const struct enqueue *job)
{
    add_time(a, job->delay_us);
    add_time(a, job->at_us);
    if (job->cost)
        add_cost(a, job->cost);
    else
        args_add(a, "");
    add_span(a, job->batch);
    add_span(a, job->unique);
    add_lock(a, job);
}

static void add_entry(struct args *a, const struct enqueue *job, int64_t now_us)
{
    char head[STAMP_HEAD_LEN + 1];

    stamp_head(now_us, head);
    args_add(a, head);
    args_extend(a, job->body.at, job->body.len);
}

void enqueue_request(struct args *a, const char *prefix, int64_t now_us, const struct enqueue *job)
{
    script_begin(a, "enqueue", prefix, now_us);
    add_span(a, job->queue);
    add_span(a, job->type);
    add_span(a, job->id);
    args_add_int(a, job->keep_ms);
    args_add(a, job->tag);
    if (!is_plain(job))
        add_extras(a, job);
    add_entry(a, job, stamp_now(now_us));
}

int enqueue_reply(const struct redisReply *r, const struct enqueue *job, enum enqueue_result *result,
                  struct span *id, struct error *e)
{
    int status;

    *result = ENQUEUE_NEW;
    *id = job->id;
    if (r && r->type == REDIS_REPLY_INTEGER)
        return 0;
    status = reply_array(r, 2, "enqueue", e);
    if (status)
        return status;
    *result = reply_int(r->element[0], 0) < 0 ? ENQUEUE_HELD : ENQUEUE_KNOWN;
    *id = (struct span){r->element[1]->str, r->element[1]->len};
    if (r->element[1]->type == REDIS_REPLY_STRING && name_is_valid(id->at, id->len))
        return 0;
    return reply_unexpected("enqueue", e);
}

void fits_request(struct args *a, const char *prefix, int64_t now_us, struct span type,
                  const struct job_cost *cost)
{
    script_begin(a, "fits", prefix, now_us);
    add_span(a, type);
    add_cost(a, cost);
}

/* Finds among the types that workers take the one that this is close to. */
static void find_likely(const struct redisReply *r, struct span type, char likely[LIMIT_NAME_SIZE])
{
    const char **names = calloc(r->elements, sizeof *names), *found;
    char word[LIMIT_NAME_SIZE];
    size_t n = 0;

    snprintf(word, sizeof word, "%.*s", (int)type.len, type.at);
    for (size_t i = 2; names && i < r->elements; i++)
        if (r->element[i]->type == REDIS_REPLY_STRING &&
            name_is_valid(r->element[i]->str, r->element[i]->len))
            names[n++] = r->element[i]->str;
    found = names ? likely_word(word, names) : NULL;
    snprintf(likely, LIMIT_NAME_SIZE, "%s", found ? found : "");
    free(names);
}

int fits_reply(const struct redisReply *r, struct span type, struct keyed_by *by, struct error *e)
{
    int status = reply_array(r, 0, "fits", e);

    *by = (struct keyed_by){.path = ""};
    if (status || r->elements < 2 || r->element[0]->type != REDIS_REPLY_STRING ||
        r->element[1]->type != REDIS_REPLY_STRING)
        return status;
    snprintf(by->path, sizeof by->path, "%s", r->element[0]->str);
    snprintf(by->limit, sizeof by->limit, "%s", r->element[1]->str);
    find_likely(r, type, by->likely);
    return 0;
}

/* Checksums travel as text: Lua's numbers have 53 bits. */
static void add_sum(struct args *a, uint64_t sum)
{
    char digits[17];

    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)sum);
    args_add_bytes(a, digits, 16);
}

static void add_counts(struct args *a, const struct name_count *counts, size_t n)
{
    args_add_int(a, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        add_span(a, counts[i].name);
        args_add_int(a, (int64_t)counts[i].count);
    }
}

void append_request(struct args *a, const char *prefix, int64_t now_us, struct append *chunk)
{
    bool named = chunk->keep_ms == 0;
    int64_t at_us = stamp_now(now_us);
    char stamp[STAMP_LEN + 1] = "";

    *chunk->head = '\0';
    if (named)
        stamp_write(at_us, stamp);
    else
        stamp_head(at_us, chunk->head);
    script_begin(a, "append", prefix, now_us);
    args_add(a, chunk->batch);
    if (chunk->keep_ms)
        args_add_int(a, chunk->keep_ms);
    else
        args_add(a, "");
    args_add_int(a, (int64_t)chunk->before.lines);
    args_add_int(a, (int64_t)(chunk->after.lines - chunk->before.lines));
    add_sum(a, chunk->before.sum);
    add_sum(a, chunk->after.sum);
    job_add_seed(a);
    args_add(a, stamp);
    add_counts(a, chunk->types, chunk->type_count);
    add_counts(a, chunk->queues, chunk->queue_count);
}

void append_job(struct args *a, const struct append *chunk, struct span body)
{
    args_add(a, chunk->head);
    args_extend(a, body.at, body.len);
}

/* lines and sum as Redis has them; both are missing where there is no such batch yet. */
static int read_state(const struct redisReply *lines, const struct redisReply *sum, struct batch_state *state,
                      struct error *e)
{
    int64_t n = lines->type == REDIS_REPLY_NIL ? 0 : reply_int(lines, -1);
    char *end;

    *state = (struct batch_state){.lines = (uint64_t)n, .sum = CHECKSUM_NONE};
    if (n == 0)
        return 0;
    if (n > 0 && sum->type == REDIS_REPLY_STRING && sum->len == 16) {
        state->sum = strtoull(sum->str, &end, 16);
        if (*end == '\0')
            return 0;
    }
    return error_set(e, WEIR_EINTERNAL,
                     "batch: its state in Redis cannot be read; was its key changed by hand?");
}

int append_reply(const struct redisReply *r, struct batch_state *state, bool *accepted, struct error *e)
{
    int status = reply_array(r, 2, "append", e);

    if (status)
        return status;
    *accepted = r->element[0]->type == REDIS_REPLY_STRING && strcmp(r->element[0]->str, "ok") == 0;
    if (*accepted)
        return 0;
    status = reply_array(r, 3, "append", e);
    return status ? status : read_state(r->element[1], r->element[2], state, e);
}

void batch_request(struct args *a, const char *prefix, const char *batch)
{
    char key[PREFIX_SIZE + sizeof "batch:" + 128];

    args_clear(a);
    snprintf(key, sizeof key, "%sbatch:%s", prefix, batch);
    args_add(a, "HMGET");
    args_add(a, key);
    args_add(a, "next");
    args_add(a, "sum");
}

int batch_reply(const struct redisReply *r, struct batch_state *state, struct error *e)
{
    int status = reply_array(r, 2, "batch", e);

    return status ? status : read_state(r->element[0], r->element[1], state, e);
}
