/* Answers that several requests share: whoever asks for what is being asked, or was answered less than a second ago, gets
 * that answer. So a hundred browsers ask Redis as often as one. */
#pragma once

#include <microhttpd.h>

#include "serve/work_item.h"

struct ev_loop;
struct shared;

/* Who waits for an answer; part of what waits. */
struct waiter {
    /* On the loop. item and answer belong to shared. item NULL: the thread closes, and there is no answer. */
    void (*on_answer)(struct waiter *waiter, const struct work_item *item, struct answer *answer);
    struct waiter *next;
};

/* threads: THREAD_COUNT of them, borrowed. */
struct shared *shared_new(struct ev_loop *loop, struct redis_thread *const *threads);
void shared_free(struct shared *shared);
/* Asks item of that thread; takes it, whatever happens. key: items of the same key have the same answer; NULL: it has an answer of its
 * own. False: the thread has too much to do, or there is no memory. on_answer may be called before it returns. */
bool shared_ask(struct shared *shared, enum redis_thread_kind thread, const char *key, struct work_item *item,
                struct waiter *waiter);
/* The response of an answer, NULL: no memory. It stays for whoever holds it. */
struct MHD_Response *answer_response(const struct answer *answer);
struct answer *answer_hold(struct answer *answer);
void answer_release(struct answer *answer);
/* Something was changed: answers that were begun before are shared no more. */
void shared_drop(struct shared *shared);
