/* Before the first job: is this a Redis to run on, and does it let us? */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/script/args.h"

struct partition;

struct precheck {
    bool checked; /* Redis's settings are */
    const char
        *hint; /* what the log is to say of the settings, once the worker has said who it is; NULL: nothing */
    int64_t again_us; /* when to check them again */
};

/* True when Redis was asked for rights and settings, and they are good. False: the answer will wake the scheduler. */
bool precheck_passes(struct partition *p);
/* Logs once what the settings gave occasion to, as the worker has begun. */
void precheck_tell_settings(struct partition *p);
/* Asks once a minute (once a lease, where that is shorter) whether the settings have become wrong. */
void precheck_again(struct partition *p, struct args *a, int64_t now);
