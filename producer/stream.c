#include "producer/stream.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "producer/retry.h"
#include "queue/batch/batch.h"

#define KEEP_UNNAMED_MS (INT64_C(3600) * 1000)
#define REST_US (2 * 1000000) /* after that long an unnamed bulk no longer counts on Redis to remember it */
#define GIVE_UP_US (INT64_C(60) * 1000000)

static void make_name(struct stream *s)
{
    memcpy(s->batch, "run.", 4);
    job_make_id(s->batch + 4);
}

int stream_at(struct stream *s, int partition)
{
    int status = client_at(s->w, partition);

    if (status) {
        s->error = s->w->error;
        return status;
    }
    s->redis = s->w->redis;
    strcpy(s->prefix, s->w->prefix);
    s->partition = partition;
    return 0;
}

struct stream *stream_new(struct weir *w, int partition, const char *batch, struct tally *types,
                          struct tally *queues)
{
    struct stream *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->w = w;
    if (stream_at(s, partition) < 0) {
        free(s);
        return NULL;
    }
    s->named = batch != NULL;
    s->types = types;
    s->queues = queues;
    s->at = s->begin = (struct batch_state){0, CHECKSUM_NONE};
    if (batch)
        snprintf(s->batch, sizeof s->batch, "%s", batch);
    else
        make_name(s);
    s->last_sent_us = clock_mono_us();
    return s;
}

void stream_free(struct stream *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < WINDOW; i++)
        args_free(&s->window[i].request);
    text_free(&s->bodies);
    free(s);
}

static struct stream_chunk *nth(struct stream *s, size_t n)
{
    return &s->window[(s->first + n) % WINDOW];
}

uint64_t stream_doubtful(const struct stream *s)
{
    uint64_t jobs = 0;

    for (size_t i = 0; i < s->under_way; i++)
        jobs += s->window[(s->first + i) % WINDOW].count;
    return jobs;
}

/* ---- Chunks under way */

void stream_end_trouble(struct stream *s)
{
    s->lost_since_us = 0;
    s->attempts = s->faults = 0;
}

static void acknowledge(struct stream *s)
{
    s->accepted += nth(s, 0)->count;
    s->first = (s->first + 1) % WINDOW;
    s->under_way--;
    stream_end_trouble(s);
}

static int transmit(struct stream *s, const struct stream_chunk *chunk)
{
    int status = redis_append(s->redis, &chunk->request, &s->error);

    if (!status) {
        s->unanswered++;
        status = redis_flush(s->redis, &s->error);
    }
    if (status == WEIR_EUNREACHABLE)
        s->unanswered = 0;
    return status;
}

static int next_answer(struct stream *s, struct redisReply **reply, struct error *e)
{
    int status = redis_result(s->redis, reply, e);

    s->unanswered = status == WEIR_EUNREACHABLE ? 0 : s->unanswered - 1;
    return status;
}

/* Drops the answers to what follows a refused chunk: they say nothing that the batch's state does not say. */
void stream_drain(struct stream *s)
{
    struct redisReply *reply;
    struct error ignored;

    while (s->unanswered > 0) {
        if (next_answer(s, &reply, &ignored) == 0)
            freeReplyObject(reply);
    }
}

/* ---- Recovery */

int stream_read(struct stream *s, struct batch_state *state)
{
    struct redisReply *reply = NULL;
    struct args a = {0};
    int status;

    batch_request(&a, s->prefix, s->batch);
    status = redis_call(s->redis, &a, &reply, NULL, &s->error);
    if (!status)
        status = batch_reply(reply, state, &s->error);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

/* Drops the chunks that Redis has; it must stand where one of ours begins. */
static int drop_taken(struct stream *s, struct batch_state state)
{
    struct batch_state expected;

    while (s->under_way && state.lines >= nth(s, 0)->after.lines)
        acknowledge(s);
    expected = s->under_way ? nth(s, 0)->before : s->begin;
    if (state.lines == expected.lines && state.sum == expected.sum)
        return 0;
    if (state.lines < expected.lines)
        return error_set(&s->error, WEIR_ENOTNOW,
                         "bulk: Redis has lost %llu lines that it had confirmed; see if it restarted",
                         (unsigned long long)(expected.lines - state.lines));
    return error_set(&s->error, WEIR_ENOTNOW, "batch %s: another process is sending it too; let that end",
                     s->batch);
}

static int resynchronize(struct stream *s)
{
    struct batch_state state = {.lines = 0};
    int status = redis_load_scripts(s->redis, &s->error);

    if (!status)
        status = stream_read(s, &state);
    if (!status)
        status = drop_taken(s, state);
    for (size_t i = 0; !status && i < s->under_way; i++)
        status = transmit(s, nth(s, i));
    return status;
}

static bool is_time_to_give_up(struct stream *s)
{
    if (!s->lost_since_us)
        s->lost_since_us = clock_mono_us();
    return clock_mono_us() - s->lost_since_us > GIVE_UP_US;
}

int stream_recover(struct stream *s, const struct error *why)
{
    int status = why->status;

    s->error = *why;
    stream_drain(s);
    if (status != WEIR_EUNREACHABLE) {
        if (s->faults++ > 0)
            return status;
        status = resynchronize(s);
    }
    while (status == WEIR_EUNREACHABLE && !is_time_to_give_up(s)) {
        retry_sleep(s->attempts++);
        status = resynchronize(s);
    }
    return status;
}

/* ---- Sending and receiving */

static int receive_one(struct stream *s)
{
    struct redisReply *reply;
    struct batch_state state;
    struct error e;
    bool accepted;
    int status = next_answer(s, &reply, &e);

    if (!status) {
        status = append_reply(reply, &state, &accepted, &e);
        freeReplyObject(reply);
    }
    if (!status && !accepted)
        status = error_set(&e, WEIR_ENOTNOW, "batch %s: Redis has %llu lines of it, not %llu", s->batch,
                           (unsigned long long)state.lines, (unsigned long long)nth(s, 0)->before.lines);
    if (status)
        return stream_recover(s, &e);
    acknowledge(s);
    return 0;
}

int stream_receive_all(struct stream *s)
{
    int status = 0;

    while (!status && s->under_way > 0)
        status = receive_one(s);
    return status;
}

/* Goes on under a new name, with nothing in doubt, when an unnamed bulk has rested for longer than Redis remembers it. */
static int begin_anew_after_rest(struct stream *s)
{
    int status;

    if (s->named || clock_mono_us() - s->last_sent_us < REST_US)
        return 0;
    status = stream_receive_all(s);
    if (!status) {
        make_name(s);
        s->at.lines -= s->begin.lines;
        s->begin.lines = 0;
    }
    return status;
}

static size_t list_counts(const struct tally *t, struct name_count *counts)
{
    for (uint32_t i = 0; i < t->used_count; i++) {
        const struct tally_name *name = &t->names[t->used[i]];

        counts[i] = (struct name_count){{name->text, name->len}, name->in_chunk};
    }
    return t->used_count;
}

static void count_names(const struct stream *s)
{
    tally_next_chunk(s->types);
    tally_next_chunk(s->queues);
    for (size_t i = 0; i < s->count; i++) {
        tally_count(s->types, s->jobs[i].type);
        tally_count(s->queues, s->jobs[i].queue);
    }
}

static void add_bodies(const struct stream *s, const struct append *append, struct stream_chunk *chunk)
{
    chunk->count = 0;
    for (uint32_t i = 0; i < s->queues->used_count; i++)
        for (size_t k = 0, begin = 0; k < s->count; begin = s->jobs[k++].end)
            if (s->jobs[k].queue == s->queues->used[i]) {
                append_job(&chunk->request, append,
                           (struct span){s->bodies.at + begin, s->jobs[k].end - begin});
                chunk->jobs[chunk->count++] = s->jobs[k];
            }
}

/* Makes a chunk under way of the one being filled. */
static struct stream_chunk *seal_chunk(struct stream *s)
{
    struct name_count types[CHUNK_JOBS], queues[CHUNK_JOBS];
    struct stream_chunk *chunk = nth(s, s->under_way++);
    struct append append = {.batch = s->batch,
                            .keep_ms = s->named ? 0 : KEEP_UNNAMED_MS,
                            .before = s->begin,
                            .after = s->at,
                            .types = types,
                            .queues = queues};

    count_names(s);
    append.type_count = list_counts(s->types, types);
    append.queue_count = list_counts(s->queues, queues);
    append_request(&chunk->request, s->prefix, -1, &append);
    add_bodies(s, &append, chunk);
    chunk->before = s->begin;
    chunk->after = s->at;
    s->begin = s->at;
    s->bodies.len = 0;
    s->count = 0;
    return chunk;
}

int stream_send(struct stream *s)
{
    struct error e;
    int status = begin_anew_after_rest(s);

    while (!status && s->under_way == WINDOW)
        status = receive_one(s);
    if (status)
        return status;
    status = transmit(s, seal_chunk(s));
    s->last_sent_us = clock_mono_us();
    if (!status)
        return 0;
    e = s->error;
    return stream_recover(s, &e);
}

int stream_add(struct stream *s, struct span body, struct stream_job job)
{
    int status = text_add(&s->bodies, body.at, body.len, &s->error);

    if (status)
        return status;
    job.end = s->bodies.len;
    s->jobs[s->count++] = job;
    return s->count < CHUNK_JOBS && s->bodies.len < CHUNK_BYTES ? 0 : stream_send(s);
}

/* ---- Questions */

static int ask_fits(struct stream *s, struct span type, const struct job_cost *cost, struct keyed_by *by)
{
    struct redisReply *reply = NULL;
    struct args a = {0};
    int status;

    fits_request(&a, s->prefix, -1, type, cost);
    status = redis_call(s->redis, &a, &reply, NULL, &s->error);
    if (!status)
        status = fits_reply(reply, type, by, &s->error);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

int stream_ask_fits(struct stream *s, struct span type, const struct job_cost *cost, struct keyed_by *by)
{
    int status = stream_receive_all(s);

    if (status)
        return status;
    while ((status = ask_fits(s, type, cost, by)) == WEIR_EUNREACHABLE) {
        struct error why = s->error;

        if (stream_recover(s, &why) < 0)
            return s->error.status;
    }
    return status;
}

static int ask_seal(struct stream *s, const char *queue, const char *type)
{
    struct redisReply *reply = NULL;
    struct batch_sealed sealed;
    struct args a = {0};
    int status;

    batch_seal_request(&a, s->prefix, -1, s->batch, true, queue, type);
    status = redis_call(s->redis, &a, &reply, NULL, &s->error);
    if (!status)
        status = batch_seal_reply(reply, s->batch, &sealed, &s->error);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

int stream_seal(struct stream *s, const char *queue, const char *type)
{
    int status;

    while ((status = ask_seal(s, queue, type)) == WEIR_EUNREACHABLE) {
        struct error why = s->error;

        if ((status = stream_recover(s, &why)) < 0)
            break;
    }
    return status;
}
