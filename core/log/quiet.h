/* Writing without a signal for the host program: none of SIGPIPE, when nobody reads any more, none of
 * SIGXFSZ, when a file has all the bytes that it may have. */
#pragma once

#include <sys/types.h>

/* Writes as write(2), without SIGPIPE. A signal that was pending before is the host's own, and stays. */
ssize_t quiet_write(int fd, const void *bytes, size_t len);
