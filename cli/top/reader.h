/* The thread that talks with Redis, on a connection of its own: it reads what is shown, again and again, and carries out orders. The
 * thread of the screen never waits for it. What it has to say it hands over, and makes a descriptor readable.
 *
 * How often it reads: every interval, and not more than a hundredth of the time of Redis is spent on it (top_snapshot_pause). */
#pragma once

#include "cli/top/order.h"

struct reader;
struct weir;

/* What is shown: the past of these is read too. */
struct wanted {
    char names[PASTS_MOST][TOP_NAME_SIZE];
    size_t count;
    bool of_limits;
};

/* Takes w, also after a failure. NULL: no thread, or out of memory. wake: see above. */
struct reader *reader_start(struct weir *w, int64_t interval_us, int wake);
void reader_want(struct reader *r, const struct wanted *wanted);
/* Carried out before anything else is read; its result is news. One at a time. An order that has waited for seconds, as Redis does not
 * answer, is not carried out any more. */
void reader_order(struct reader *r, const struct order *order);

/* What is new since the last call; each is the caller's, and NULL when nothing is. */
struct news {
    struct top_snapshot *snapshot; /* top_snapshot_free */
    struct pasts *pasts;           /* free */
    struct result *result;         /* to be freed */
    struct error error;            /* of the last reading; status 0: it worked */
    int64_t unanswered_us;         /* since when Redis is asked in vain, clock_mono_us; 0: it is not */
    int64_t interval_us;           /* until it is read again */
};
struct news reader_take(struct reader *r);

/* Waits for what runs, but not long: then its thread is left alone, and false. */
bool reader_end(struct reader *r);
