/* A thread with a connection of its own, for all that is no take: it may wait for Redis while the loop goes on. What it
 * is given it does in turn; more than it can hold it refuses. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct redis_thread;
struct ev_loop;
struct page_cache;
struct weir;

struct tools {
    struct weir *w;
    struct page_cache *pages;
};

struct work {
    void (*run)(struct work *work, const struct tools *tools); /* on its thread */
    void (*done)(struct work *work);                           /* on the loop, later */
    bool again;    /* run has set it: it runs once more, behind those that wait, */
    int64_t at_us; /* and not before then, by clock_mono_us() */
    bool dropped;  /* it was not run: the thread closes */
    struct work *next;
};

/* url, ns: as weir_new; borrowed. NULL: out of memory. */
struct redis_thread *redis_thread_new(struct ev_loop *loop, const char *url, const char *ns);
/* false: too many are waiting, or there is no thread; it stays the caller's. */
bool redis_thread_give(struct redis_thread *thread, struct work *work);
/* What waits is dropped; what runs is finished. */
void redis_thread_close(struct redis_thread *thread);
/* Waits for what runs, at most two seconds: then its thread is left alone, and false. */
bool redis_thread_free(struct redis_thread *thread);
