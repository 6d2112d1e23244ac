/* What is due in Redis: jobs with a time, and schedules. */
#pragma once

#include "core/script/args.h"

struct partition;

void due_promote(struct partition *p, struct args *a);
