/* away: carrying jobs to the partition where their type lives: the request/reply pairs of away_read (here), away_arrive (there) and
 * away_done (here). Each may be sent again; a job arrives once. */
#ifndef QUEUE_TURN_AWAY_H
#define QUEUE_TURN_AWAY_H

#include "core/client/client.h"

struct redisReply; /* hiredis */

/* Asks for the first of the jobs for partition `to`. The answer, as it came, is what away_arrive_request sends on. */
void away_read_request(struct args *a, const char *prefix, int64_t now_us, int to);
/* *count: how many; 0: there is nothing to carry. */
WEIR_CHECKED int away_read_reply(const struct redisReply *reply, size_t *count, struct error *e);

/* To that partition. from: whose records these are. */
void away_arrive_request(struct args *a, const char *prefix, int64_t now_us, int from,
                         const struct redisReply *records);
/* *number: that of the last record that is there. */
WEIR_CHECKED int away_arrive_reply(const struct redisReply *reply, int64_t *number, struct error *e);

/* Says that the records up to that number have arrived. */
void away_done_request(struct args *a, const char *prefix, int64_t now_us, int to, int64_t number);
/* *left: how many are still to be carried there. */
WEIR_CHECKED int away_done_reply(const struct redisReply *reply, int64_t *left, struct error *e);

/* All three by a blocking client, a page; it is at partition `from` then. */
WEIR_CHECKED int away_carry(struct weir *w, int64_t now_us, int from, int to, int64_t *left);

/* The partitions in such a list of an answer of claim or reap: bit p for p. */
uint64_t away_list(const struct redisReply *list);

#endif
