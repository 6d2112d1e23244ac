/* Turns of workers that exist only in a test: each call is one script over one blocking connection to a
 * private Redis, through the request and reply functions of queue/turn/turn.h, at a time of the test's own. */
#pragma once

#include <hiredis/hiredis.h>

#include "core/client/answer.h"
#include "core/redis/redis.h"
#include "queue/turn/turn.h"
#include "tests/invariants.h"
#include "tests/server.h"
#include "tests/test.h"
#include "throttle/gate.h"

#define LEASE_US INT64_C(30000000)
#define LEAD_US (GATE_AHEAD_US / 2) /* how early a claim wants the next one, where late ones lose slots */

struct turns {
    struct server server;
    struct redis *redis;
    int64_t now_us;           /* of every call */
    json_t *answer;           /* of turns_ask */
    struct redisReply *reply; /* the last call's; the next one frees it */
    struct error error;       /* of the last call, when that failed */
    struct claim claim;       /* the last claim's */
    int64_t stale;            /* of a claim that settled */
    struct promoted promoted; /* the last promote's */
    int64_t left;             /* what the last adopt left */
    int calls;                /* so many were sent */
    char rules[600];          /* as the last turns_rate was kept */
    const char *info;         /* what workers say of themselves that adopt; NULL: their lease alone */
    char birth[128];          /* that turns_adopt knows; none, where no test says so */
    int64_t seen_us;          /* the same of the last mark */
};
extern struct turns turns;

/* Setup and teardown of a group, setup of a test: an empty Redis, at BEGIN_US. */
int turns_start(void **state);
int turns_stop(void **state);
int turns_flush(void **state);

/* Sends a and frees it. 0, or the error, which is then in turns.error. */
int turns_send(struct args *a);
/* Words and how many there are, as the calls below want them: WORDS("a", "b"). */
#define WORDS(...) (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__}))
/* The names of queues or types, as long as the block lives in which it stands. */
#define NAMES(...)                                                                                           \
    (struct names)                                                                                           \
    {                                                                                                        \
        WORDS(__VA_ARGS__)                                                                                   \
    }
/* A script with these words after the time. */
int turns_script(const char *script, const char *const *words, size_t count);
/* The same of one that answers JSON, which is then in turns.answer until the next. */
int turns_ask(const char *script, const char *const *words, size_t count);
/* The same, on from the place where turns.answer ended; false: that was the end. In *rc what turns_ask returned. */
bool turns_ask_more(const char *script, const char *const *words, size_t count, int *rc);
/* The same of rate_wake, where a change has left it something to do. */
bool turns_ask_rest(int *rc);
/* What the change has left to do whose answer is turns.answer: the other queues are woken, and lanes that sleep are looked at, page by page. */
int turns_apply_all(const char *type, bool resume, const char *const *limits, size_t limit_count);
/* All pages of rate_apply in a queue. */
int turns_apply(const char *queue, const char *type, bool resume, const char *const *limits,
                size_t limit_count);

/* Each returns what the script's reply function does. */
int turns_claim(const struct claim_call *call);
int turns_adopt(const char *new, const char *old, const struct span *running, size_t count,
                struct names queues, size_t *lost);
int turns_reap(const char *worker, int64_t *taken, int64_t *workers);
int turns_promote(int most, int64_t *moved);
/* Adds any end of one job to a settle, as settle_end does; number of a DEAD one 1: it has not started. */
void turns_add_end(struct args *a, enum settle_verb verb, struct span token, int64_t number,
                   const char *reason);
int turns_settle_end(const char *worker, enum settle_verb verb, struct span token, int64_t delay_us,
                     const char *reason, int64_t *stale);
int turns_settle_done(const char *worker, const char *type, const struct span *tokens, size_t count,
                      int64_t *stale);
int turns_enqueue(const char *queue, const char *type, const char *id, int64_t delay_us);
int turns_settle_cost(const char *worker, struct span token, int64_t cost, int64_t *stale);

/* Each changes limits and has all that waits for them looked at, as the commands do. rules: the stored form,
 * of numbers alone gcra's, "" removes the limit. verb: "use" or "unuse"; cost: a number, or "". for_us 0:
 * resume. */
int turns_rate(const char *limit, const char *rules);
int turns_use(const char *type, const char *verb, const char *cost, const char *const *limits, size_t count);
int turns_weight(const char *limit, const char *key, int weight);
int turns_pause(const char *limit, int64_t for_us);
/* script: type_pause, queue_pause. for_us: as in struct pausing; creates what is not there. */
int turns_pausing(const char *script, const char *name, int64_t for_us);
/* for_us below 0: until it is resumed. key: as it stands in Redis. */
int turns_pause_key(const char *limit, const char *key, int64_t for_us);

/* Fails the test when an invariant is broken. */
struct invariants turns_check(void);
/* A digest of all that Redis holds; the caller's to free. */
char *turns_digest(void);
/* It is still that one; frees it. */
void turns_unchanged(char *before);
