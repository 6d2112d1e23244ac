/* A wall clock of its own for one process: loaded by LD_PRELOAD, adds the microseconds that stand in the file
 * $WEIR_TEST_CLOCK (one int64_t, read at each call) to CLOCK_REALTIME, gettimeofday() and time(). Monotonic
 * clocks stay, and so do waits in the kernel. Redis takes its time from here, as any program does that links
 * the C library dynamically. tests/clock_shift.h writes the file. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shift_us;

__attribute__((constructor)) static void open_shift(void)
{
    const char *file = getenv("WEIR_TEST_CLOCK");
    int fd = file ? open(file, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof *shift_us, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at != MAP_FAILED)
        shift_us = at;
    if (fd >= 0)
        close(fd);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, t);
    int64_t ns;

    if (rc != 0 || !shift_us || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return rc;
    ns = t->tv_sec * INT64_C(1000000000) + t->tv_nsec + *shift_us * 1000;
    *t = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return 0;
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t *at)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
