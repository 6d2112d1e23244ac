/* What the tests of single scripts share: a scene of one queue, "default", and workers that can run the types
 * "t" and "slow"; steps that must succeed; looks at what is there. Each call fails the test when something is
 * not as it must be. */
#pragma once

#include "tests/test.h"
#include "tests/turns.h"

#define SECOND_US INT64_C(1000000)
#define DAY_US (86400 * SECOND_US)
#define ACTIVE PREFIX "active:"
#define QUEUE PREFIX "queue:default"
#define LANE(type) PREFIX "lane:default/" type "/"
#define ALONE(type) PREFIX "lane:default!/" type "/" /* of jobs that are to run alone */
#define WAKE PREFIX "wake:default"
#define SLEEP PREFIX "sleep:default"
#define STATE(gate) PREFIX "gate:" gate
#define CLOSED_RULE "1/86400000000/1"  /* one a day */
#define KEY(key) "\"key\":\"" key "\"" /* a member, for enqueue_with() */

/* Any command, its answer as text or number; see server.h. */
#define redis_text(...) server_ask(&turns.server, __VA_ARGS__, NULL)
#define redis_do(...) server_do(&turns.server, __VA_ARGS__)
#define redis_number(...) server_number(&turns.server, __VA_ARGS__, NULL)
/* The answer to a command is that text; but for when jobs were enqueued, if the text does not say it. */
#define expect_text(text, ...)                                                                               \
    do {                                                                                                     \
        char *answer = redis_text(__VA_ARGS__);                                                              \
        assert_string_equal(strstr(text, ",t") ? answer : unstamped(answer), text);                          \
        free(answer);                                                                                        \
    } while (0)

extern const struct names default_queue;
extern struct claim_call ask; /* what the next claim asks for; its turn counts up by itself */

/* The tokens of the last claim that leased something, kept here since a reply ends at the next call. */
#define TOKENS_MOST 64
extern char token_texts[TOKENS_MOST][200];
extern struct span tokens[TOKENS_MOST];

/* Setup of each test: nothing in Redis, ask as above. */
int scene_begin(void **state);
/* What the next claim asks for is the usual again. */
void scene_ask_anew(void);
#define SCENE_TEST(name) TEST_WITH(name, scene_begin, NULL)
/* The same, and worker "w" has started. */
int worker_begin(void **state);
#define WORKER_TEST(name) TEST_WITH(name, worker_begin, NULL)

void must(int rc);
void start(const char *worker);
int try_claim(const char *worker, int free, int prefetch);
/* The number of leases. */
size_t claim(const char *worker, int free, int prefetch);
void settle(const char *worker, enum settle_verb verb, struct span token, int64_t delay_us,
            const char *reason);
/* Sends what settle_request() began; returns how many leases were not the worker's. */
int64_t settled(struct args *a);
/* These jobs of a type are done, and were the worker's. */
void finish(const char *worker, const char *type, const struct span *done, size_t count);
/* That job has cost so much. */
void spend(const char *worker, struct span token, int64_t cost);
/* count are due. */
void promote(int64_t count);
/* One heartbeat; returns how many leases it took back. */
int64_t heartbeat(const char *worker);
/* Heartbeats of worker, now and while that time passes, the last one at its end: returns the leases which
 * that took back. */
int64_t pass(const char *worker, int64_t us);

/* A body as it is, as any client pushes it. */
void push(const char *queue, const char *body);
void push_bytes(struct span body);
/* From now on a head in a queue is believed that names this secret: "@0,0,0,s" SECRET ",bnight;". */
#define SECRET "scene"
void use_secret(void);
/* Jobs of a type with these ids, "a b c"; or with the ids type0, type1 ... in the default queue. */
void enqueue(const char *queue, const char *type, const char *ids);
void enqueue_many(const char *type, int count);
/* A worker "big" with as many leases as it may have on a loop; turns.claim has the last of them. */
#define BIG_LEASES 12000
void start_big(void);
/* A worker has named that many types, `first` and "<head>0", "<head>1" ...; the next claims name them by their digest. */
void name_types(const char *worker, const char *first, const char *head, int count);
/* In the default queue, with further fields behind id and type: "\"key\":\"a\",\"cost\":3". */
void enqueue_with(const char *type, const char *ids, const char *fields);

/* Holds a type by these limits too, "a b c". */
void use(const char *type, const char *limits);

/* This many queues q0, q1 ...: in each a job w<queue> that waits, and three that are parked: r<queue> in the
 * lane of a ring, s<queue> in one that sleeps, h<queue> in one of a type that is held. */
void fill_queues(int count);
/* How many scripts were called so far. */
int64_t count_calls(void);
/* Commands of Redis so far, those within scripts too. */
int64_t count_commands(void);
/* What Redis's main thread has used of the processor so far: that others had it meanwhile does not count. */
int64_t server_cpu_us(void);
/* Was that more than a call may take on a quiet machine? A busy one takes more for the same work: then the bound grows as a script does whose
 * work is always the same. */
bool server_took_more(int64_t us, int64_t most_us);
/* Calls the script that a line begins with; the words behind it are its arguments, "_" is an empty one, and "TOKEN" that of a first lease. */
int call_line(const char *line);
/* The same of one that answers JSON, which is then in turns.answer. */
int ask_line(const char *line);
/* Each of these calls is refused as wrong, and changes nothing. "head | tail | tail" is the calls "head tail" and "head tail". */
void expect_refused(const char *const *calls, size_t count);
/* What is in Redis is what turns_digest() said; frees that. */
void nothing_changed_since(char *before);

/* A token from behind its turn and index, without the digest of rules: "@<slot>*<cost>/default/t/<key>~<gates>". */
const char *token_text(struct span token);
void expect_token(size_t lease, const char *expected);
/* The jobs that the last claim leased, or of a list, in order: "a b c". */
void expect_leases(const char *ids);
void expect_list(const char *key, const char *ids);
const char *list_ids(const char *key); /* good until the next call */
/* A claim with so many executors free leases these. */
void expect_leased(const char *worker, int free, const char *ids);
/* Worker "w" claims these; all keys are as they must be. */
void expect_claim(const char *ids);
/* All that the last claim did not lease is parked, and must be checked again that much later. */
void expect_next(int64_t after_us);
/* Each claim of "w" leases one, as its time comes: their ids in order. */
void expect_in_turn(const char *ids);
/* "total 3, done 1": these fields of a hash have these numbers. */
void expect_fields(const char *key, const char *fields);
/* The same of the counters of a type. */
void expect_counters(const char *type, const char *counters);
/* That lease is not the worker's: settling it changes nothing. */
void expect_stale(const char *worker, enum settle_verb verb, struct span token);
