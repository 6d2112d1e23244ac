/* stream: jobs of a bulk on their way to one partition, in chunks, a few of which are under way at any time.
 *
 * Exactly once: each chunk says which lines of the stream it holds, and append.lua takes it only when it is the next one. Chunks
 * are kept until they are acknowledged. Whatever goes wrong (a lost connection, forgotten scripts, an answer out of turn) is
 * mended in one way: Redis is asked how far the batch is, what it has is dropped, the rest is sent again. An error that comes again
 * without any progress between is the end; so is a minute without Redis. */
#pragma once

#include "core/client/client.h"
#include "producer/tally.h"

#define CHUNK_JOBS 640
#define CHUNK_BYTES (128 * 1024)
#define WINDOW 3 /* chunks under way: Redis always has the next one while we fill another */

/* A job says where it ends among the bodies, and its type and queue in the tallies of the bulk. */
struct stream_job {
    size_t end;
    uint32_t type, queue;
};

struct stream_chunk {
    struct args request;
    struct batch_state before, after;
    struct stream_job jobs[CHUNK_JOBS]; /* as they stand in the request; end says nothing */
    size_t count;
};

struct stream {
    struct weir *w;
    struct redis *redis;
    char prefix[PREFIX_SIZE];
    int partition;
    char batch[129];
    bool named;
    struct tally *types, *queues; /* of the bulk */
    uint64_t accepted;            /* jobs that Redis has acknowledged */
    struct error error;           /* of the last failure */

    struct batch_state at, begin; /* all lines given so far; where the chunk being filled begins */
    struct text bodies;           /* its jobs */
    struct stream_job jobs[CHUNK_JOBS];
    size_t count;

    struct stream_chunk window[WINDOW]; /* a ring */
    size_t first, under_way;
    size_t unanswered; /* of those under way, sent on this connection */
    int64_t last_sent_us;
    int64_t lost_since_us; /* trouble without progress: since when, how often; 0: none */
    int attempts, faults;
};

/* Makes a stream to that partition; batch NULL: without a name. NULL: out of memory, or w->error says why. */
struct stream *stream_new(struct weir *w, int partition, const char *batch, struct tally *types,
                          struct tally *queues);
void stream_free(struct stream *s);

/* Moves a stream to another partition, before anything was sent. */
WEIR_CHECKED int stream_at(struct stream *s, int partition);
/* Reads how far Redis has the batch. */
WEIR_CHECKED int stream_read(struct stream *s, struct batch_state *state);
/* Adds a job to the chunk being filled, which is sent when it is full. A failure of this one and of those below is in s->error, and the end of
 * the bulk. */
WEIR_CHECKED int stream_add(struct stream *s, struct span body, struct stream_job job);
/* Sends the chunk being filled. */
WEIR_CHECKED int stream_send(struct stream *s);
/* Waits for all answers. */
WEIR_CHECKED int stream_receive_all(struct stream *s);
/* Mends what that failure may have broken; then the call that failed is made again. */
WEIR_CHECKED int stream_recover(struct stream *s, const struct error *why);
/* Ends whatever trouble there was, as Redis has answered. */
void stream_end_trouble(struct stream *s);
/* Waits for what is under way, and forgets it. */
void stream_drain(struct stream *s);
/* Counts the jobs under way. */
uint64_t stream_doubtful(const struct stream *s);
/* Asks whether such jobs fit until there is an answer. */
WEIR_CHECKED int stream_ask_fits(struct stream *s, struct span type, const struct job_cost *cost,
                                 struct keyed_by *by);
/* Seals the batch: nothing more comes. A job of that type follows it; type NULL: none. */
WEIR_CHECKED int stream_seal(struct stream *s, const char *queue, const char *type);
