#include "core/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int notify_fd = -1;
static struct sockaddr_un to = {.sun_family = AF_UNIX};
static socklen_t to_len;

/* Reads "/run/systemd/notify", or "@name" of an abstract socket, which has a NUL there. */
static bool read_address(const char *socket)
{
    size_t len = strlen(socket);

    if ((*socket != '/' && *socket != '@') || len >= sizeof to.sun_path)
        return false;
    memcpy(to.sun_path, socket, len);
    if (*socket == '@')
        to.sun_path[0] = '\0';
    to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

void notify_open(void)
{
    const char *socket_name = getenv("NOTIFY_SOCKET");

    if (socket_name && read_address(socket_name))
        notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

bool notify_is_open(void)
{
    return notify_fd >= 0;
}

void notify_send(const char *lines)
{
    if (notify_fd >= 0)
        (void)!sendto(notify_fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&to, to_len);
}
