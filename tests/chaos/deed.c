#include "tests/chaos/deed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int history = -1;
static unsigned char *endings_had; /* by the number of the job */
static long endings_size;

int64_t deed_now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

void deed_sleep(int64_t us)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    while (us > 0 && nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static int open_in_folder(const char *name, int flags)
{
    const char *folder = getenv("CHAOS_FOLDER");
    char path[256];
    int fd;

    snprintf(path, sizeof path, "%s/%s", folder ? folder : ".", name);
    fd = open(path, flags | O_CLOEXEC);
    if (fd < 0)
        abort();
    return fd;
}

void deed_open(void)
{
    int fd = open_in_folder("endings", O_RDWR);
    struct stat status;

    history = open_in_folder("history", O_WRONLY | O_APPEND);
    if (fstat(fd, &status) < 0)
        abort();
    endings_size = status.st_size;
    endings_had = mmap(NULL, (size_t)endings_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (endings_had == MAP_FAILED)
        abort();
    close(fd);
}

static void note(const char *line, int len)
{
    if (write(history, line, (size_t)len) != len)
        abort();
}

void deed_begin(struct deed *d, const char *id, const char *text, const char *who)
{
    const char *args = strstr(text, "\"c:");
    char line[256];
    long us;

    *d = (struct deed){0};
    snprintf(d->id, sizeof d->id, "%s", id);
    snprintf(d->who, sizeof d->who, "%s", who ? who : getenv("CHAOS_WHO"));
    if (args && sscanf(args, "\"c:%ld:%7[rtd]", &us, d->endings) >= 1)
        d->take_us = us;
    note(line, snprintf(line, sizeof line, "S %s %s %d %lld\n", d->id, d->who, (int)getpid(),
                        (long long)deed_now_us()));
}

/* Only those of the plan, "j<number>", have more than one ending. */
static char choose(const struct deed *d)
{
    long job = d->id[0] == 'j' ? atol(d->id + 1) : -1;
    size_t had;

    if (!d->endings[0] || job < 0 || job >= endings_size)
        return DEED_DONE;
    had = __atomic_fetch_add(&endings_had[job], 1, __ATOMIC_RELAXED);
    return had < strlen(d->endings) ? d->endings[had] : DEED_DONE;
}

char deed_end(const struct deed *d)
{
    char ending = choose(d), line[256];

    note(line, snprintf(line, sizeof line, "E %s %s %d %lld %c\n", d->id, d->who, (int)getpid(),
                        (long long)deed_now_us(), ending));
    return ending;
}
