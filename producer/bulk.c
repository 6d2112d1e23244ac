/* A bulk: jobs are checked and counted here, and go to the streams of their partitions (producer/stream.h); of a namespace that is not
 * parted there is one.
 *
 * A bulk with a name is a batch, which has one partition, that of its first type: append.lua gives each entry its head, so that the
 * batch counts how it ends; at the end of the input it is sealed.
 *
 * Resuming: lines that Redis has are only counted and summed until its place is reached; the sums must then
 * agree. */
#include "producer/bulk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/client/client.h"
#include "core/forks.h"
#include "core/given.h"
#include "producer/stream.h"
#include "queue/batch/batch.h"

struct weir_bulk {
    struct weir *w;
    struct stream *streams[PARTITIONS_MOST];
    struct stream *named; /* the only one of a batch with a name */
    bool placed;          /* and its partition is known */
    bool counts_keyless;
    char then_queue[129], then_type[129]; /* what follows; "": nothing */
    struct batch_state resume;            /* what Redis had at the beginning */
    struct weir_bulk_counts counts;
    struct error failed; /* what ended it */
    unsigned forks;
    struct text body; /* of the job that is being added */
    struct tally types, queues;
};

/* ---- The end */

static uint64_t count_accepted(const struct weir_bulk *b)
{
    uint64_t jobs = 0;

    for (int p = 0; p < PARTITIONS_MOST; p++)
        jobs += b->streams[p] ? b->streams[p]->accepted : 0;
    return jobs;
}

static int fail(struct weir_bulk *b, const struct error *why)
{
    uint64_t doubtful = 0;
    int home, count;

    /* The namespace was parted since it was asked, or is another one by now. */
    if (partition_learn(why->text, &home, &count))
        b->w->count = count;
    for (int p = 0; p < PARTITIONS_MOST; p++)
        doubtful += b->streams[p] ? stream_doubtful(b->streams[p]) : 0;
    b->failed = *why;
    if (why->status == WEIR_EUNREACHABLE && doubtful)
        error_set(&b->failed, WEIR_ENOTNOW, "%.300s; %llu jobs were taken, of %llu more it is unknown",
                  why->text, (unsigned long long)count_accepted(b), (unsigned long long)doubtful);
    b->w->error = b->failed;
    return b->failed.status;
}

static int out_of_memory(struct weir_bulk *b)
{
    struct error e;

    error_no_memory(&e, "bulk");
    return fail(b, &e);
}

/* True in a child after a fork(): the jobs, and the answers under way, are the parent's. */
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

/* ---- Streams */

/* Finds or makes the stream to a partition. */
static int stream_to(struct weir_bulk *b, int p, struct stream **s)
{
    struct error e;

    if (!b->streams[p])
        b->streams[p] = stream_new(b->w, p, NULL, &b->types, &b->queues);
    *s = b->streams[p];
    if (*s)
        return 0;
    error_no_memory(&e, "bulk");
    fail(b, &e);
    return WEIR_EINTERNAL;
}

/* Places the batch on the partition of its first type, unless it has one. */
static int place_named(struct weir_bulk *b, int p)
{
    if (b->placed)
        return 0;
    if (batch_place(b->w, b->named->batch, p, &p) < 0)
        return fail(b, &b->w->error);
    if (stream_at(b->named, p) < 0)
        return fail(b, &b->named->error);
    b->placed = true;
    return 0;
}

/* Finds the stream of a type. */
static int route(struct weir_bulk *b, struct span type, struct stream **s)
{
    int p = partition_home(type.at, type.len, b->w->count);

    if (!b->named)
        return stream_to(b, p, s);
    *s = b->named;
    if (!b->placed && place_named(b, p) < 0)
        return b->failed.status;
    if (b->named->partition == p)
        return 0;
    return error_set(
        &b->w->error, WEIR_EINPUT,
        "wrong job: type %.*s lives on partition %d and batch %s on %d; a batch has one partition, that of "
        "its first type, so use another batch for it",
        (int)type.len, type.at, p, b->named->batch, b->named->partition);
}

/* Calls it for each stream. */
static int for_all(struct weir_bulk *b, int (*call)(struct stream *s))
{
    int status = 0;

    for (int p = 0; !status && p < PARTITIONS_MOST; p++)
        if (b->streams[p] && (status = call(b->streams[p])))
            return fail(b, &b->streams[p]->error);
    return status;
}

static int send_if_any(struct stream *s)
{
    return s->at.lines > s->begin.lines ? stream_send(s) : 0;
}

int bulk_flush(struct weir_bulk *b)
{
    int status = check_usable(b);

    if (!status && b->named && !b->placed && b->named->at.lines > 0)
        status = place_named(b, 0); /* lines without a job */
    if (!status)
        status = for_all(b, send_if_any);
    return status ? status : for_all(b, stream_receive_all);
}

/* ---- Lines */

static uint64_t add_to_sum(uint64_t sum, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        sum = (sum ^ (unsigned char)bytes.at[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Returns the sum behind a line; only named batches are resumed and need one. */
static uint64_t sum_line(const struct weir_bulk *b, const char *line, size_t len)
{
    if (!b->named)
        return CHECKSUM_NONE;
    return add_to_sum(add_to_sum(b->named->at.sum, (struct span){line, len}), (struct span){"\n", 1});
}

/* Returns the sum behind a job that never was a line: over all of it but an id that was made. */
static uint64_t sum_job(const struct weir_bulk *b, const struct job_view *view, bool id_given)
{
    const char *rest = view->type.at;
    uint64_t sum = b->named ? b->named->at.sum : CHECKSUM_NONE;

    if (!b->named)
        return sum;
    if (id_given)
        sum = add_to_sum(sum, view->id);
    sum = add_to_sum(sum, view->queue);
    sum = add_to_sum(sum, (struct span){rest, (size_t)(b->body.at + b->body.len - rest)});
    return add_to_sum(sum, (struct span){"\n", 1});
}

static int another_input(struct weir_bulk *b, const char *how)
{
    struct error e;

    error_set(&e, WEIR_EINPUT,
              "batch %s was begun with another input: this one %s line %llu; use the same, or "
              "another name",
              b->named->batch, how, (unsigned long long)b->resume.lines);
    return fail(b, &e);
}

static bool is_resuming(const struct weir_bulk *b)
{
    return b->named && b->named->at.lines < b->resume.lines;
}

/* Passes one line, which is in no stream, or in that of the batch; `sum` counts it. */
static int pass_line(struct weir_bulk *b, uint64_t sum)
{
    bool resuming = is_resuming(b);

    b->counts.lines++;
    if (!b->named)
        return 0;
    b->named->at.lines++;
    b->named->at.sum = sum;
    if (!resuming)
        return 0;
    b->counts.resumed++;
    b->named->begin = b->named->at;
    if (!is_resuming(b) && sum != b->resume.sum)
        return another_input(b, "differs before the end of");
    return 0;
}

/* ---- Jobs */

/* Raises the highest cost that was asked about to that of a job. False: it is not higher. */
static bool raise_cost(struct job_cost *highest, const struct job_cost *cost)
{
    bool higher = cost->plain > highest->plain;

    if (higher)
        highest->plain = cost->plain;
    for (int i = 0; i < cost->count; i++) {
        const char *name = cost->named[i].name;
        int64_t n = cost->named[i].slots, *slots = cost_slots(highest, name, strlen(name));

        if (slots && *slots >= n)
            continue;
        higher = true;
        if (slots)
            *slots = n;
        else if (!cost_say(highest, name, strlen(name), n))
            *highest = *cost; /* of all jobs together there are too many names */
    }
    return higher;
}

/* Checks that a job of that cost could ever start. Redis is asked at the first job of a type and when the cost is higher than before.
 * WEIR_EINPUT: it could not; the bulk goes on. */
static int check_type(struct weir_bulk *b, struct stream *s, struct tally_name *row,
                      const struct job_view *job)
{
    bool learns = b->counts_keyless && !row->learned, costly;
    struct job_cost cost, fits = row->fits;
    struct keyed_by by;
    int status;

    if (!learns && job->cost <= 1 && !job->costs.at)
        return 0;
    job_cost_of(job, &cost);
    costly = raise_cost(&fits, &cost);
    if (!learns && !costly)
        return 0;
    by = (struct keyed_by){.path = ""};
    status = stream_ask_fits(s, job->type, &fits, &by);
    if (status == WEIR_EUNREACHABLE || s->unanswered > 0)
        return fail(b, &s->error);
    if (status && !costly) /* it can be taken all the same, and nothing is told */
        status = 0;
    if (status && status != WEIR_EINPUT)
        return fail(b, &s->error);
    stream_end_trouble(s);
    if (status) {
        b->w->error = s->error;
        return status;
    }
    row->fits = fits;
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

/* Adds the job of b->body to the stream of its type. */
static int take_job(struct weir_bulk *b, const struct job_view *job, struct span queue, uint64_t sum)
{
    struct span body = {b->body.at, b->body.len};
    struct tally_name *row = tally_row(&b->types, job->type);
    struct stream_job place = {.type = b->types.last};
    struct stream *s;
    int status;

    if (!row)
        return out_of_memory(b);
    status = route(b, job->type, &s);
    if (!status)
        status = check_type(b, s, row, job);
    if (status)
        return status;
    if (!tally_row(&b->queues, queue))
        return out_of_memory(b);
    place.queue = b->queues.last;
    row->total++;
    count_job(row, job, body);
    if (!b->named)
        s->at.lines++;
    status = pass_line(b, sum);
    if (!status && (status = stream_add(s, body, place)))
        return fail(b, &s->error);
    return status;
}

/* Refuses a line that names another batch than it would be counted in. */
static int check_batch(struct weir_bulk *b, const struct job_view *job)
{
    const char *batch = b->named ? b->named->batch : "";
    size_t len = strlen(batch);

    if (!job->batch.at || (b->named && job->batch.len == len + 2 && *job->batch.at == '"' &&
                           memcmp(job->batch.at + 1, batch, len) == 0))
        return 0;
    return error_set(&b->w->error, WEIR_EINPUT,
                     "wrong job: its \"batch\" is %.*s, but %s%s counts it; leave the member out%s",
                     job->batch.len < 100 ? (int)job->batch.len : 100, job->batch.at,
                     b->named ? "batch " : "no batch", batch, b->named ? "" : ", or give the bulk that name");
}

static struct span queue_of(const char *given, struct span own)
{
    static const struct span usual = {"default", sizeof "default" - 1};

    if (given)
        return (struct span){given, strlen(given)};
    return own.at ? own : usual;
}

/* ---- The interface */

/* Returns who has the error of a bulk. */
static struct weir *owner_of(const struct weir_bulk *b)
{
    return b ? b->w : NULL;
}

/* Opens the stream of a batch, and reads how far the batch is. */
static int open_named(struct weir_bulk *b, const char *batch)
{
    struct weir *w = b->w;
    int count, p = 0, status = client_learn(w, &count);

    if (!status && count > 1)
        status = batch_place(w, batch, -1, &p);
    if (status)
        return status;
    b->placed = p >= 0;
    b->named = b->streams[0] = stream_new(w, b->placed ? p : 0, batch, &b->types, &b->queues);
    if (!b->named)
        return error_no_memory(&w->error, "bulk");
    status = b->placed ? stream_read(b->named, &b->resume) : 0;
    if (status)
        w->error = b->named->error;
    return status;
}

/* Opens a bulk without a name, if Redis answers, and hears whether the namespace was parted since it was asked. */
static int open_unnamed(struct weir_bulk *b)
{
    int count, status = client_at(b->w, 0);

    if (!status)
        status = client_read_count(b->w, &count);
    if (!status && count > 1)
        client_counted(b->w, count);
    return status;
}

int weir_bulk_open(struct weir *w, const char *batch, struct weir_bulk **bulk)
{
    struct weir_bulk *b;
    int status;

    if (GIVEN(w, PASSED(bulk)) < 0)
        return WEIR_EUSAGE;
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
        return error_no_memory(&w->error, "bulk");
    b->w = w;
    b->forks = forks_count();
    tally_init(&b->types);
    tally_init(&b->queues);
    b->resume = (struct batch_state){0, CHECKSUM_NONE};
    status = batch ? open_named(b, batch) : open_unnamed(b);
    if (status)
        weir_bulk_abandon(b);
    else
        *bulk = b;
    return status;
}

int weir_bulk_add_sized(struct weir_bulk *b, const struct weir_job_spec *job, size_t size)
{
    struct weir_job_spec own;
    struct job_view view;
    uint64_t sum;
    int status;

    if (!b || !job) /* asked before the words are made: each job comes here */
        return GIVEN(owner_of(b), PASSED(job));
    if (!(job = GIVEN_STRUCT(b->w, job, size, &own)))
        return WEIR_EUSAGE;
    status = check_usable(b);
    if (!status && (job->delay_s != 0 || job->at_s != 0))
        status = error_set(&b->w->error, WEIR_EUSAGE, "wrong job: a bulk takes no delay_s and no at_s");
    if (!status && (job->unique || job->batch))
        status =
            error_set(&b->w->error, WEIR_EUSAGE,
                      "wrong job: a bulk takes no unique and no batch; its own name is that of its batch");
    b->body.len = 0;
    if (!status)
        status = job_write(&b->body, job, &view, &b->w->error);
    if (status)
        return status;
    sum = sum_job(b, &view, job->id != NULL);
    if (is_resuming(b))
        return pass_line(b, sum);
    return take_job(b, &view, queue_of(NULL, view.queue), sum);
}

int weir_bulk_add_line(struct weir_bulk *b, const char *type, const char *queue, const char *line, size_t len)
{
    struct job_view view;
    uint64_t sum;
    int status;

    if (GIVEN(owner_of(b), PASSED_MANY(line, len)) < 0)
        return WEIR_EUSAGE;
    status = check_usable(b);
    if (status)
        return status;
    line = line ? line : "";
    sum = sum_line(b, line, len);
    if (is_resuming(b))
        return pass_line(b, sum);
    if (queue && !name_is_valid(queue, strlen(queue)))
        return error_set(&b->w->error, WEIR_EINPUT,
                         "queue '%.60s': not a valid name; use 1 to 128 of A-Z a-z 0-9 _ . -", queue);
    b->body.len = 0;
    if (type)
        status = job_wrap(&b->body, type, line, len, &view, &b->w->error);
    else
        status = job_rewrite(&b->body, line, len, &view, &b->w->error);
    if (!status)
        status = check_batch(b, &view);
    return status ? status : take_job(b, &view, queue_of(queue, view.queue), sum);
}

int weir_bulk_skip_line(struct weir_bulk *b, const char *line, size_t len)
{
    int status;

    if (GIVEN(owner_of(b), PASSED_MANY(line, len)) < 0)
        return WEIR_EUSAGE;
    status = check_usable(b);
    return status ? status : pass_line(b, sum_line(b, line ? line : "", len));
}

void weir_bulk_count_sized(const struct weir_bulk *b, struct weir_bulk_counts *counts, size_t size)
{
    struct weir_bulk_counts own = {0};

    if (!counts)
        return;
    if (b) {
        own = b->counts;
        own.accepted = count_accepted(b);
    }
    give_struct(counts, size, &own, sizeof own);
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
    if (GIVEN(owner_of(b), PASSED(type)) < 0)
        return WEIR_EUSAGE;
    return bulk_then(b, NULL, type);
}

static int seal_batch(struct weir_bulk *b)
{
    int status = b->placed ? 0 : place_named(b, 0);

    if (status)
        return status;
    status = stream_seal(b->named, b->then_queue, *b->then_type ? b->then_type : NULL);
    return status ? fail(b, &b->named->error) : 0;
}

int bulk_end(struct weir_bulk *b)
{
    int status = bulk_flush(b);

    if (!status && is_resuming(b))
        return another_input(b, "ends before");
    return !status && b->named ? seal_batch(b) : status;
}

int weir_bulk_close_sized(struct weir_bulk *b, struct weir_bulk_counts *counts, size_t size)
{
    int status;

    if (!b)
        return WEIR_EUSAGE;
    status = bulk_end(b);
    weir_bulk_count_sized(b, counts, size);
    weir_bulk_abandon(b);
    return status;
}

void weir_bulk_abandon(struct weir_bulk *b)
{
    if (!b)
        return;
    for (int p = 0; p < PARTITIONS_MOST; p++) {
        if (b->streams[p] && !is_of_parent(b))
            stream_drain(b->streams[p]);
        stream_free(b->streams[p]);
    }
    tally_free(&b->types);
    tally_free(&b->queues);
    text_free(&b->body);
    free(b);
}
