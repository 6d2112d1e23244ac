/* The clock itself is tests/preload/clock.c, which is preloaded. */
#include "tests/clock_shift.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/program.h"
#include "tests/test.h"

void clock_shift_set(const char *file, int64_t shift_us)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0 || write(fd, &shift_us, sizeof shift_us) != sizeof shift_us)
        fail_msg("cannot write %s: %s", file, strerror(errno));
    close(fd);
}

void clock_shift_enter(const char *file)
{
    setenv("LD_PRELOAD", built("tests/preload/clock.so"), 1);
    setenv("WEIR_TEST_CLOCK", file, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0); /* a sanitized program wants its own to be first */
}

void clock_shift_leave(void)
{
    unsetenv("LD_PRELOAD");
    unsetenv("WEIR_TEST_CLOCK");
}
