/* A bulk: jobs are collected into chunks, a few of which are under way at any time.
 *
 * Exactly once: each chunk says which lines of the input it holds and append.lua takes it only when it is the
 * next one. Chunks are kept until they are acknowledged. Whatever goes wrong (a lost connection, forgotten
 * scripts, an answer out of turn) is mended in one way, by recover(): ask Redis how far the batch is, drop
 * what it has, send the rest again. An error that comes again without any progress between is the bulk's end;
 * so is a minute without Redis.
 *
 * A bulk with a name is a batch: append.lua gives each entry its head, so that the batch counts how it ends;
 * at the end of the input it is sealed.
 *
 * Resuming: lines that Redis has are only counted and summed until its place is reached; the sums must then
 * agree. */
#include "producer/bulk.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/clock.h"
#include "core/forks.h"
#include "producer/retry.h"
#include "producer/tally.h"
#include "queue/batch/batch.h"

#define CHUNK_JOBS 500
#define CHUNK_BYTES (128 * 1024)
#define WINDOW 3 /* chunks under way: Redis always has the next one while we fill another */
#define KEEP_UNNAMED_MS (INT64_C(3600) * 1000)
#define REST_US (2 * 1000000) /* after that long an unnamed bulk no longer counts on Redis to remember it */
#define GIVE_UP_US (INT64_C(60) * 1000000)

/* Where a job of the chunk being filled ends in bodies, and its queue. */
struct entry {
    size_t end;
    uint32_t queue;
};

struct chunk {
    struct args request;
    struct batch_state before, after;
    uint64_t jobs;
};

struct weir_bulk {
    struct weir *w;
    char batch[129];
    bool named, counts_keyless;
    char then_queue[129], then_type[129]; /* what follows; "": nothing */
    struct batch_state resume;            /* what Redis had at the beginning */
    struct batch_state at;                /* all lines given so far */
    struct weir_bulk_counts counts;
    struct error failed; /* what ended it */
    unsigned forks;

    struct batch_state begin; /* the chunk being filled: where it begins, its jobs */
    struct text bodies;
    struct entry entries[CHUNK_JOBS];
    size_t jobs;
    struct tally types, queues;

    struct chunk window[WINDOW]; /* a ring */
    size_t first, under_way;
    size_t unanswered; /* of those under way, sent on this connection */
    int64_t last_sent_us;
    int64_t lost_since_us; /* trouble without progress: since when, how often; 0: none */
    int attempts, faults;
};

static struct chunk *nth(struct weir_bulk *b, size_t n)
{
    return &b->window[(b->first + n) % WINDOW];
}

/* ---- The end */

static int fail(struct weir_bulk *b, const struct error *why)
{
    uint64_t doubtful = 0;

    for (size_t i = 0; i < b->under_way; i++)
        doubtful += nth(b, i)->jobs;
    b->failed = *why;
    if (why->status == WEIR_EUNREACHABLE && doubtful)
        error_set(&b->failed, WEIR_ENOTNOW, "%.300s; %llu jobs were taken, of %llu more it is unknown",
                  why->text, (unsigned long long)b->counts.accepted, (unsigned long long)doubtful);
    b->w->error = b->failed;
    return b->failed.status;
}

static int out_of_memory(struct weir_bulk *b)
{
    struct error e;

    error_set(&e, WEIR_EINTERNAL, "bulk: out of memory");
    return fail(b, &e);
}

/* After a fork() its jobs, and the answers under way, are the parent's. */
static bool is_of_parent(const struct weir_bulk *b)
{
    return b->forks != forks_count();
}

static int check_usable(struct weir_bulk *b)
{
    if (is_of_parent(b))
        return error_set(&b->w->error, WEIR_EUSAGE,
                         "bulk: was opened before fork(), by the parent process, which still uses it; open "
                         "another one here");
    if (b->failed.status)
        b->w->error = b->failed;
    return b->failed.status;
}

/* ---- Chunks under way */

/* Redis answered: whatever trouble there was is over. */
static void end_trouble(struct weir_bulk *b)
{
    b->lost_since_us = 0;
    b->attempts = b->faults = 0;
}

static void acknowledge(struct weir_bulk *b)
{
    b->counts.accepted += nth(b, 0)->jobs;
    b->first = (b->first + 1) % WINDOW;
    b->under_way--;
    end_trouble(b);
}

static int transmit(struct weir_bulk *b, const struct chunk *chunk, struct error *e)
{
    int status = redis_append(b->w->redis, &chunk->request, e);

    if (!status) {
        b->unanswered++;
        status = redis_flush(b->w->redis, e);
    }
    if (status == WEIR_EUNREACHABLE)
        b->unanswered = 0;
    return status;
}

static int next_answer(struct weir_bulk *b, struct redisReply **reply, struct error *e)
{
    int status = redis_result(b->w->redis, reply, e);

    b->unanswered = status == WEIR_EUNREACHABLE ? 0 : b->unanswered - 1;
    return status;
}

/* ---- Recovery */

static int read_batch(struct weir_bulk *b, struct batch_state *state, struct error *e)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    batch_request(&a, b->w->prefix, b->batch);
    status = redis_call(b->w->redis, &a, &reply, NULL, e);
    if (!status)
        status = batch_reply(reply, state, e);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

/* Drops the chunks that Redis has; it must stand where one of ours begins. */
static int drop_taken(struct weir_bulk *b, struct batch_state state, struct error *e)
{
    struct batch_state expected;

    while (b->under_way && state.lines >= nth(b, 0)->after.lines)
        acknowledge(b);
    expected = b->under_way ? nth(b, 0)->before : b->begin;
    if (state.lines == expected.lines && state.sum == expected.sum)
        return 0;
    if (state.lines < expected.lines)
        return error_set(e, WEIR_ENOTNOW,
                         "bulk: Redis has lost %llu lines that it had confirmed; see if it restarted",
                         (unsigned long long)(expected.lines - state.lines));
    return error_set(e, WEIR_ENOTNOW, "batch %s: another process is sending it too; let that end", b->batch);
}

static int resynchronize(struct weir_bulk *b, struct error *e)
{
    struct batch_state state;
    int status = read_batch(b, &state, e);

    if (!status)
        status = drop_taken(b, state, e);
    for (size_t i = 0; !status && i < b->under_way; i++)
        status = transmit(b, nth(b, i), e);
    return status;
}

/* Answers to what follows a refused chunk say nothing that the batch's state does not say. */
static void drain(struct weir_bulk *b)
{
    struct redisReply *reply;
    struct error ignored;

    while (b->unanswered > 0) {
        if (next_answer(b, &reply, &ignored) == 0)
            freeReplyObject(reply);
    }
}

static bool is_time_to_give_up(struct weir_bulk *b)
{
    if (!b->lost_since_us)
        b->lost_since_us = clock_mono_us();
    return clock_mono_us() - b->lost_since_us > GIVE_UP_US;
}

static int recover(struct weir_bulk *b, const struct error *why)
{
    struct error e = *why;
    int status = why->status;

    drain(b);
    if (status != WEIR_EUNREACHABLE) {
        if (b->faults++ > 0)
            return fail(b, why);
        status = redis_load_scripts(b->w->redis, &e);
        if (!status)
            status = resynchronize(b, &e);
    }
    while (status == WEIR_EUNREACHABLE && !is_time_to_give_up(b)) {
        retry_sleep(b->attempts++);
        status = resynchronize(b, &e);
    }
    return status ? fail(b, &e) : 0;
}

/* ---- Sending and receiving */

static int receive_one(struct weir_bulk *b)
{
    struct redisReply *reply;
    struct batch_state state;
    struct error e;
    bool accepted;
    int status = next_answer(b, &reply, &e);

    if (!status) {
        status = append_reply(reply, &state, &accepted, &e);
        freeReplyObject(reply);
    }
    if (!status && !accepted)
        status = error_set(&e, WEIR_ENOTNOW, "batch %s: Redis has %llu lines of it, not %llu", b->batch,
                           (unsigned long long)state.lines, (unsigned long long)nth(b, 0)->before.lines);
    if (status)
        return recover(b, &e);
    acknowledge(b);
    return 0;
}

static int receive_all(struct weir_bulk *b)
{
    int status = 0;

    while (!status && b->under_way > 0)
        status = receive_one(b);
    return status;
}

static void make_name(struct weir_bulk *b)
{
    memcpy(b->batch, "run.", 4);
    job_make_id(b->batch + 4);
}

/* An unnamed bulk may rest for longer than Redis remembers it: then, with nothing in doubt, it goes on under
 * a new name. */
static int begin_anew_after_rest(struct weir_bulk *b)
{
    int status;

    if (b->named || clock_mono_us() - b->last_sent_us < REST_US)
        return 0;
    status = receive_all(b);
    if (!status) {
        make_name(b);
        b->at.lines -= b->begin.lines;
        b->begin.lines = 0;
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

static void add_bodies(const struct weir_bulk *b, struct args *a)
{
    for (uint32_t i = 0; i < b->queues.used_count; i++)
        for (size_t k = 0, begin = 0; k < b->jobs; begin = b->entries[k++].end)
            if (b->entries[k].queue == b->queues.used[i])
                args_add_bytes(a, b->bodies.at + begin, b->entries[k].end - begin);
}

/* Makes a chunk under way of the one being filled. */
static struct chunk *seal_chunk(struct weir_bulk *b)
{
    struct name_count types[CHUNK_JOBS], queues[CHUNK_JOBS];
    struct chunk *chunk = nth(b, b->under_way++);
    struct append append = {.batch = b->batch,
                            .keep_ms = b->named ? 0 : KEEP_UNNAMED_MS,
                            .before = b->begin,
                            .after = b->at,
                            .types = types,
                            .queues = queues,
                            .type_count = list_counts(&b->types, types),
                            .queue_count = list_counts(&b->queues, queues)};

    append_request(&chunk->request, b->w->prefix, -1, &append);
    add_bodies(b, &chunk->request);
    chunk->before = b->begin;
    chunk->after = b->at;
    chunk->jobs = b->jobs;
    b->begin = b->at;
    b->bodies.len = 0;
    b->jobs = 0;
    tally_next_chunk(&b->types);
    tally_next_chunk(&b->queues);
    return chunk;
}

static int send_chunk(struct weir_bulk *b)
{
    struct error e;
    int status = begin_anew_after_rest(b);

    while (!status && b->under_way == WINDOW)
        status = receive_one(b);
    if (status)
        return status;
    status = transmit(b, seal_chunk(b), &e);
    b->last_sent_us = clock_mono_us();
    return status ? recover(b, &e) : 0;
}

int bulk_flush(struct weir_bulk *b)
{
    int status = check_usable(b);

    if (!status && b->at.lines > b->begin.lines)
        status = send_chunk(b);
    while (!status && b->under_way > 0)
        status = receive_one(b);
    return status;
}

/* ---- Lines */

static uint64_t add_to_sum(uint64_t sum, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        sum = (sum ^ (unsigned char)bytes.at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* The sum behind a line; only named batches are resumed and need one. */
static uint64_t sum_line(const struct weir_bulk *b, const char *line, size_t len)
{
    if (!b->named)
        return b->at.sum;
    return add_to_sum(add_to_sum(b->at.sum, (struct span){line, len}), (struct span){"\n", 1});
}

/* The same for a job that never was a line: all of it but an id that was made. */
static uint64_t sum_job(const struct weir_bulk *b, const struct job_view *view, bool id_given)
{
    const char *rest = view->type.at;
    uint64_t sum = b->at.sum;

    if (!b->named)
        return sum;
    if (id_given)
        sum = add_to_sum(sum, view->id);
    sum = add_to_sum(sum, view->queue);
    sum = add_to_sum(sum, (struct span){rest, (size_t)(b->bodies.at + b->bodies.len - rest)});
    return add_to_sum(sum, (struct span){"\n", 1});
}

static int another_input(struct weir_bulk *b, const char *how)
{
    struct error e;

    error_set(&e, WEIR_EINPUT,
              "batch %s was begun with another input: this one %s its first %llu lines; use the same, or "
              "another name",
              b->batch, how, (unsigned long long)b->resume.lines);
    return fail(b, &e);
}

static bool is_resuming(const struct weir_bulk *b)
{
    return b->at.lines < b->resume.lines;
}

/* Goes behind one line; sum: with it. */
static int pass_line(struct weir_bulk *b, uint64_t sum)
{
    bool resuming = is_resuming(b);

    b->at.lines++;
    b->at.sum = sum;
    b->counts.lines++;
    if (!resuming)
        return 0;
    b->counts.resumed++;
    b->begin = b->at;
    if (!is_resuming(b) && sum != b->resume.sum)
        return another_input(b, "differs within");
    return 0;
}

/* ---- Jobs */

static int ask_fits(struct weir_bulk *b, struct span type, int64_t cost, struct keyed_by *by, struct error *e)
{
    struct redisReply *reply = NULL;
    struct args a;
    int status;

    args_init(&a);
    fits_request(&a, b->w->prefix, -1, type, cost);
    status = redis_call(b->w->redis, &a, &reply, NULL, e);
    if (!status)
        status = fits_reply(reply, by, e);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

/* Could a job of that cost ever start? Redis is asked at the first of a type and when the cost is higher than
 * before. WEIR_EINPUT: no; the bulk goes on. */
static int check_type(struct weir_bulk *b, struct tally_name *row, struct span type, int64_t cost)
{
    bool learns = b->counts_keyless && !row->learned;
    struct keyed_by by = {.path = ""};
    struct error e;
    int status;

    if (!learns && (cost <= 1 || cost <= row->fits))
        return 0;
    status = receive_all(b);
    while (!status && (status = ask_fits(b, type, cost > 1 ? cost : 1, &by, &e)) == WEIR_EUNREACHABLE)
        status = recover(b, &e);
    if (b->failed.status)
        return status;
    if (status && cost <= 1) /* it can be taken all the same, and nothing is told */
        status = 0;
    if (status && status != WEIR_EINPUT)
        return fail(b, &e);
    end_trouble(b);
    if (status) {
        b->w->error = e;
        return status;
    }
    row->fits = cost;
    row->learned = true;
    row->by = by;
    return 0;
}

/* Counts the job of that body, the last one of bodies. */
static void count_job(struct tally_name *row, const struct job_view *job, struct span body)
{
    row->costed += job->cost > 0;
    row->cost += job->cost;
    if (*row->by.path)
        row->keyless += job_is_keyless(body, row->by.path);
}

/* Counts the job that was just written to bodies from begin on, and sends the chunk when it is full. */
static int take_job(struct weir_bulk *b, size_t begin, const struct job_view *job, struct span queue,
                    uint64_t sum)
{
    struct entry *entry = &b->entries[b->jobs];
    struct tally_name *row = tally_row(&b->types, job->type);
    uint32_t type;
    int status = row ? check_type(b, row, job->type, job->cost) : out_of_memory(b);

    if (status) {
        b->bodies.len = begin;
        return status;
    }
    if (!tally_add(&b->types, job->type, &type) || !tally_add(&b->queues, queue, &entry->queue))
        return out_of_memory(b);
    count_job(&b->types.names[type], job, (struct span){b->bodies.at + begin, b->bodies.len - begin});
    entry->end = b->bodies.len;
    b->jobs++;
    pass_line(b, sum);
    if (b->jobs < CHUNK_JOBS && b->bodies.len < CHUNK_BYTES)
        return 0;
    return send_chunk(b);
}

/* A line that names another batch than it would be counted in. */
static int check_batch(struct weir_bulk *b, const struct job_view *job)
{
    size_t len = strlen(b->batch);

    if (!job->batch.at || (b->named && job->batch.len == len + 2 && *job->batch.at == '"' &&
                           memcmp(job->batch.at + 1, b->batch, len) == 0))
        return 0;
    return error_set(&b->w->error, WEIR_EINPUT,
                     "wrong job: its \"batch\" is %.*s, but %s%s counts it; leave the member out%s",
                     job->batch.len < 100 ? (int)job->batch.len : 100, job->batch.at,
                     b->named ? "batch " : "no batch", b->named ? b->batch : "",
                     b->named ? "" : ", or give the bulk that name");
}

static struct span queue_of(const char *given, struct span own)
{
    static const struct span usual = {"default", sizeof "default" - 1};

    if (given)
        return (struct span){given, strlen(given)};
    return own.at ? own : usual;
}

/* ---- The interface */

int weir_bulk_open(struct weir *w, const char *batch, struct weir_bulk **bulk)
{
    struct weir_bulk *b;
    int status;

    *bulk = NULL;
    if (batch && !name_is_valid(batch, strlen(batch)))
        return error_set(&w->error, WEIR_EINPUT,
                         "batch '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -", batch);
    if (w->setup.status) {
        w->error = w->setup;
        return w->error.status;
    }
    b = calloc(1, sizeof *b);
    if (!b)
        return error_set(&w->error, WEIR_EINTERNAL, "bulk: out of memory");
    b->w = w;
    b->forks = forks_count();
    b->named = batch != NULL;
    tally_init(&b->types);
    tally_init(&b->queues);
    b->at = b->begin = (struct batch_state){0, CHECKSUM_NONE};
    if (batch)
        strcpy(b->batch, batch);
    else
        make_name(b);
    status = read_batch(b, &b->resume, &w->error);
    b->last_sent_us = clock_mono_us();
    if (status)
        weir_bulk_abandon(b);
    else
        *bulk = b;
    return status;
}

int weir_bulk_add(struct weir_bulk *b, const struct weir_job_spec *job)
{
    struct job_view view;
    size_t begin = b->bodies.len;
    uint64_t sum;
    int status = check_usable(b);

    if (!status && (job->delay_s != 0 || job->at_s != 0))
        status = error_set(&b->w->error, WEIR_EUSAGE, "wrong job: a bulk takes no delay_s and no at_s");
    if (!status && (job->unique || job->batch))
        status =
            error_set(&b->w->error, WEIR_EUSAGE,
                      "wrong job: a bulk takes no unique and no batch; its own name is that of its batch");
    if (!status)
        status = job_write(&b->bodies, job, &view, &b->w->error);
    if (status) {
        b->bodies.len = begin;
        return status;
    }
    sum = sum_job(b, &view, job->id != NULL);
    if (is_resuming(b)) {
        b->bodies.len = begin;
        return pass_line(b, sum);
    }
    return take_job(b, begin, &view, queue_of(NULL, view.queue), sum);
}

int weir_bulk_add_line(struct weir_bulk *b, const char *type, const char *queue, const char *line, size_t len)
{
    struct job_view view;
    size_t begin = b->bodies.len;
    uint64_t sum;
    int status = check_usable(b);

    if (status)
        return status;
    sum = sum_line(b, line, len);
    if (is_resuming(b))
        return pass_line(b, sum);
    if (queue && !name_is_valid(queue, strlen(queue)))
        return error_set(&b->w->error, WEIR_EINPUT,
                         "queue '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -", queue);
    if (type)
        status = job_wrap(&b->bodies, type, line, len, &view, &b->w->error);
    else
        status = job_rewrite(&b->bodies, line, len, &view, &b->w->error);
    if (!status)
        status = check_batch(b, &view);
    if (status) {
        b->bodies.len = begin;
        return status;
    }
    return take_job(b, begin, &view, queue_of(queue, view.queue), sum);
}

int weir_bulk_skip_line(struct weir_bulk *b, const char *line, size_t len)
{
    int status = check_usable(b);

    return status ? status : pass_line(b, sum_line(b, line, len));
}

void weir_bulk_count(const struct weir_bulk *b, struct weir_bulk_counts *counts)
{
    *counts = b->counts;
}

bool bulk_has_failed(const struct weir_bulk *b)
{
    return b->failed.status != 0;
}

bool bulk_type(const struct weir_bulk *b, size_t index, struct bulk_type *type)
{
    const struct tally_name *name = &b->types.names[index];

    if (index >= b->types.count)
        return false;
    *type = (struct bulk_type){.name = {name->text, name->len},
                               .count = name->total,
                               .costed = name->costed,
                               .cost = name->cost,
                               .keyless = name->keyless,
                               .by = name->by};
    return true;
}

void bulk_count_keyless(struct weir_bulk *b)
{
    b->counts_keyless = true;
}

int bulk_then(struct weir_bulk *b, const char *queue, const char *type)
{
    int status = check_usable(b);

    if (status)
        return status;
    if (!b->named)
        return error_set(&b->w->error, WEIR_EUSAGE,
                         "then: a job can follow a batch only; give the bulk a name");
    if (!name_is_valid(type, strlen(type)))
        return error_set(&b->w->error, WEIR_EINPUT,
                         "type '%.60s' to follow: not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -", type);
    snprintf(b->then_type, sizeof b->then_type, "%s", type);
    snprintf(b->then_queue, sizeof b->then_queue, "%s", queue ? queue : "default");
    return 0;
}

int weir_bulk_then(struct weir_bulk *b, const char *type)
{
    return bulk_then(b, NULL, type);
}

static int ask_seal(struct weir_bulk *b, struct error *e)
{
    struct redisReply *reply = NULL;
    struct batch_sealed sealed;
    struct args a;
    int status;

    args_init(&a);
    batch_seal_request(&a, b->w->prefix, -1, b->batch, true, b->then_queue,
                       *b->then_type ? b->then_type : NULL);
    status = redis_call(b->w->redis, &a, &reply, NULL, e);
    if (!status)
        status = batch_seal_reply(reply, b->batch, &sealed, e);
    freeReplyObject(reply);
    args_free(&a);
    return status;
}

static int seal_batch(struct weir_bulk *b)
{
    struct error e;
    int status;

    do
        status = ask_seal(b, &e);
    while (status == WEIR_EUNREACHABLE && recover(b, &e) == 0);
    if (b->failed.status)
        return b->failed.status;
    return status ? fail(b, &e) : 0;
}

int bulk_end(struct weir_bulk *b)
{
    int status = bulk_flush(b);

    if (!status && is_resuming(b))
        return another_input(b, "ends within");
    return !status && b->named ? seal_batch(b) : status;
}

int weir_bulk_close(struct weir_bulk *b, struct weir_bulk_counts *counts)
{
    int status = bulk_end(b);

    if (counts)
        *counts = b->counts;
    weir_bulk_abandon(b);
    return status;
}

void weir_bulk_abandon(struct weir_bulk *b)
{
    if (!b)
        return;
    if (!is_of_parent(b))
        drain(b);
    for (size_t i = 0; i < WINDOW; i++)
        args_free(&b->window[i].request);
    tally_free(&b->types);
    tally_free(&b->queues);
    text_free(&b->bodies);
    free(b);
}
