#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
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

FILE *file_open(const char *path)
{
    bool is_input = strcmp(path, "/dev/stdin") == 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0 && is_input) /* a socket, or of another user */
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    else if (fd >= 0)
        fcntl(fd, F_SETFL, 0);
    if (fd < 0 || is_input || has_end(fd))
        return fd < 0 ? NULL : fdopen(fd, "r");
    close(fd);
    errno = ENOTSUP;
    return NULL;
}

const char *file_why(int error)
{
    return error == ENOTSUP ? "a FIFO or a device, which may have no end" : strerror(error);
}
