/* Polls: how long to wait where nothing calls. */
#ifndef WORKER_PARTITION_POLLS_H
#define WORKER_PARTITION_POLLS_H

#include <stdbool.h>
#include <stdint.h>

struct partition;

struct polls {
    int64_t workers; /* of the namespace, as far as is known */
    int64_t wait_us; /* until the next poll */
};

/* There are so many workers. */
void partition_hear_workers(struct partition *p, int64_t workers);
/* Redis is asked: the next wait is another one. */
void partition_polls(struct partition *p);
/* How long to wait after that. */
int64_t partition_poll_wait(const struct partition *p);
/* The same to the next heartbeat. */
int64_t partition_beat_wait(const struct partition *p);
/* Others look after its queues, as far as it knows. */
bool partition_is_off_duty(const struct partition *p);
/* How much earlier one of the two goes when the other does; on duty, or as the second: 0. */
int64_t partition_along_time(const struct partition *p);

#endif
