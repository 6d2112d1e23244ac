#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "throttle/verify/verify_input.h"

/* A file of these bytes, without a disk. */
static int make_file(const uint8_t *data, size_t size, char path[32])
{
    int fd = memfd_create("trace", MFD_CLOEXEC);

    must_hold(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

int fuzz_trace(const uint8_t *data, size_t size)
{
    char path[32];
    int fd = make_file(data, size, path);
    struct verify v;
    struct error e;
    size_t torn;

    if (verify_init(&v, &e) == 0 && verify_read(&v, path, &torn, &e) == 0 && verify_replay(&v, &e) == 0) {
        for (size_t i = 0; i < v.type_count; i++)
            must_hold(v.types[i].violations <= v.violations);
        for (size_t i = 0; i < v.rule_count; i++)
            must_hold(v.rules[i].starts <=
                      TYPE_RULES_MAX * v.starts); /* a start may name a limit more than once */
    }
    verify_free(&v);
    close(fd);
    return 0;
}
