/* What a JSON number is worth. Each function gets one that was checked, as it stands. */
#pragma once

#include "queue/job/job.h"

/* True when it rounds to an infinite double. */
bool json_real_overflows(struct span number);
/* Reads an integer. False when it is none from least to most. */
bool json_read_integer(struct span value, int64_t least, int64_t most, int64_t *out);
/* Reads seconds as microseconds, rounded up. False when it is no number above 0 and up to most_us. */
bool json_read_seconds(struct span value, int64_t most_us, int64_t *us);
