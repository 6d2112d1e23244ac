#include "worker/partition/polls.h"

#include "core/random.h"
#include "worker/mind/interval.h"
#include "worker/partition/partition.h"

void partition_hear_workers(struct partition *p, int64_t workers)
{
    p->polls.workers = workers;
}

void partition_polls(struct partition *p)
{
    p->polls.wait_us = interval_of_polls(p->polls.workers, random_fraction());
}

int64_t partition_poll_wait(const struct partition *p)
{
    return p->polls.wait_us;
}

int64_t partition_beat_wait(const struct partition *p)
{
    return interval_of_beats(p->worker->options.lease_us, random_fraction());
}

bool partition_is_off_duty(const struct partition *p)
{
    return p->claims.duty_until_us == 0 && p->claims.second_us == 0;
}

int64_t partition_along_time(const struct partition *p)
{
    return partition_is_off_duty(p) ? interval_along(p->worker->options.lease_us) : 0;
}
