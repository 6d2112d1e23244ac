#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool has_end(int fd)
{
    struct statfs system;
    struct stat about;

    if (fstat(fd, &about) < 0)
        return true;
    if (S_ISFIFO(about.st_mode)) /* <(...) of a shell is of a file system of its own */
        return fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
    return !S_ISCHR(about.st_mode) || about.st_rdev == makedev(1, 3); /* /dev/null */
}

#define KEPT_MOST (1024 * 1024) /* bytes; more was not meant */

/* What a pipe gave. */
static struct kept {
    struct kept *next;
    dev_t device;
    ino_t number;
    size_t len;
    char bytes[];
} * kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static struct kept *find_kept(const struct stat *about)
{
    struct kept *k = kept;

    while (k && (k->device != about->st_dev || k->number != about->st_ino))
        k = k->next;
    return k;
}

/* Reads a pipe to its end. NULL and errno: it cannot. */
static struct kept *keep(FILE *pipe, const struct stat *about)
{
    struct kept *k = calloc(1, sizeof *k + KEPT_MOST + 1); /* only what is read takes memory */

    if (!k)
        return NULL;
    k->len = fread(k->bytes, 1, KEPT_MOST + 1, pipe);
    if (ferror(pipe) || k->len > KEPT_MOST) {
        errno = ferror(pipe) ? errno : EFBIG;
        free(k);
        return NULL;
    }
    k->device = about->st_dev;
    k->number = about->st_ino;
    k->next = kept;
    kept = k;
    return k;
}

/* Puts what a pipe gives, or gave when it was opened first, in its place. */
static FILE *open_kept(FILE *pipe, const struct stat *about)
{
    struct kept *k;

    pthread_mutex_lock(&kept_lock);
    if (!(k = find_kept(about)))
        k = keep(pipe, about);
    pthread_mutex_unlock(&kept_lock);
    fclose(pipe);
    return k ? fmemopen(k->bytes, k->len, "r") : NULL;
}

FILE *file_open(const char *path)
{
    bool is_input = strcmp(path, "/dev/stdin") == 0;
    struct stat about;
    FILE *file;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 && is_input) /* a socket, or of another user */
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    else if (fd >= 0)
        fcntl(fd, F_SETFL, 0);
    if (fd >= 0 && !is_input && !has_end(fd)) {
        close(fd);
        errno = ENOTSUP;
        return NULL;
    }
    file = fd < 0 ? NULL : fdopen(fd, "r");
    if (file && fstat(fd, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode)))
        file = open_kept(file, &about);
    return file;
}

const char *file_why(int error)
{
    return error == ENOTSUP ? "a FIFO or a device, which may have no end" : strerror(error);
}
