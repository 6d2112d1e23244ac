#include "serve/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
#define PORT_MOST 65535

static int cannot_listen(struct listener *l, const char *where, struct error *e)
{
    const char *advice =
        errno == EADDRINUSE ? "is another weir serve running?" : "choose another with --listen";
    const char *what = errno == ENOTSOCK ? "it exists and is not a socket" : strerror(errno);

    error_set(e, WEIR_ECONFIG, "serve --listen %.200s: %s; %s", where, what, advice);
    listen_close(l);
    return e->status;
}

/* ---- A unix socket */

static int bind_path(int fd, const struct sockaddr_un *address, int mode)
{
    mode_t old = mode < 0 ? 0 : umask(~(mode_t)mode & 0777);
    int status = bind(fd, (const struct sockaddr *)address, sizeof *address);

    if (mode >= 0)
        umask(old);
    return status;
}

static bool is_socket(const char *path)
{
    struct stat file;

    return lstat(path, &file) == 0 && S_ISSOCK(file.st_mode);
}

/* True when a socket lies there that its server has left behind. errno stays. */
static bool is_left_behind(const struct sockaddr_un *address)
{
    int saved = errno, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool left = fd >= 0 && is_socket(address->sun_path) &&
                connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 && errno == ECONNREFUSED;

    if (fd >= 0)
        close(fd);
    errno = saved;
    return left;
}

static int open_path(struct listener *l, const char *path, int mode, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int status;

    strcpy(address.sun_path, path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    status = l->fd < 0 ? -1 : bind_path(l->fd, &address, mode);
    if (status < 0 && errno == EADDRINUSE && is_left_behind(&address)) {
        unlink(path);
        status = bind_path(l->fd, &address, mode);
    }
    if (status < 0 && errno == EADDRINUSE && !is_socket(path))
        errno = ENOTSOCK;
    if (status < 0 || listen(l->fd, BACKLOG) < 0)
        return cannot_listen(l, path, e);
    l->is_unix = true;
    strcpy(l->path, path);
    snprintf(l->name, sizeof l->name, "unix:%s", path);
    return 0;
}

/* ---- An address */

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* Splits "HOST:PORT"; false when it is neither that nor a port. */
static bool split(const char *where, char host[256], char port[8])
{
    const char *colon = strrchr(where, ':');
    size_t len = colon ? (size_t)(colon - where) : 0;
    const char *digits = colon ? colon + 1 : where;

    if (len >= 2 && where[0] == '[' && where[len - 1] == ']') {
        where++;
        len -= 2;
    }
    if (len >= 256 || strlen(digits) >= 8 || !*digits || digits[strspn(digits, "0123456789")] ||
        (colon && len == 0))
        return false;
    snprintf(host, 256, "%.*s", colon ? (int)len : 9, colon ? where : "127.0.0.1");
    snprintf(port, 8, "%s", digits);
    return true;
}

static void name_address(struct listener *l)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char host[256], port[8];

    if (getsockname(l->fd, (struct sockaddr *)&address, &len) == 0 &&
        getnameinfo((struct sockaddr *)&address, len, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(l->name, sizeof l->name, strchr(host, ':') ? "http://[%s]:%s" : "http://%s:%s", host, port);
}

static int check_reach(struct listener *l, const char *where, const struct sockaddr *address,
                       bool open_to_all, struct error *e)
{
    l->beyond = !is_loopback(address);
    if (open_to_all || !l->beyond)
        return 0;
    return error_set(e, WEIR_ECONFIG,
                     "serve --listen %.200s: other machines could reach it, and it asks nobody who they are; "
                     "listen on 127.0.0.1, or add --open-to-all",
                     where);
}

static int listen_at(struct listener *l, const char *where, const struct addrinfo *at, struct error *e)
{
    static const int yes = 1;

    l->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (l->fd < 0)
        return cannot_listen(l, where, e);
    setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(l->fd, at->ai_addr, at->ai_addrlen) < 0 || listen(l->fd, BACKLOG) < 0)
        return cannot_listen(l, where, e);
    name_address(l);
    return 0;
}

static int open_address(struct listener *l, const char *where, bool open_to_all, struct error *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found;
    char host[256], port[8];
    int failed;

    split(where, host, port);
    failed = getaddrinfo(host, port, &hints, &found);
    if (failed)
        return error_set(e, WEIR_ECONFIG,
                         "serve --listen %.200s: %s; write unix:/run/weir.sock or 127.0.0.1:8379", where,
                         gai_strerror(failed));
    failed = check_reach(l, where, found->ai_addr, open_to_all, e);
    if (!failed)
        failed = listen_at(l, where, found, e);
    freeaddrinfo(found);
    return failed;
}

/* ---- A socket that systemd has opened, and keeps while weir serve starts anew: sd_listen_fds(3) */

#define GIVEN_FD 3

static long given_count(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");

    return pid && count && atol(pid) == getpid() ? atol(count) : 0;
}

static int open_given(struct listener *l, bool open_to_all, struct error *e)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof address;

    if (getsockname(GIVEN_FD, (struct sockaddr *)&address, &len) < 0 ||
        fcntl(GIVEN_FD, F_SETFD, FD_CLOEXEC) < 0 || fcntl(GIVEN_FD, F_SETFL, O_NONBLOCK) < 0)
        return cannot_listen(l, "a socket of systemd", e);
    l->fd = GIVEN_FD;
    l->is_unix = address.ss_family == AF_UNIX;
    snprintf(l->name, sizeof l->name, "unix:%s", ((struct sockaddr_un *)&address)->sun_path);
    if (l->is_unix)
        return 0;
    name_address(l);
    return check_reach(l, l->name, (struct sockaddr *)&address, open_to_all, e);
}

/* The path of a unix socket; NULL: it is an address. */
static const char *path_of(const char *where)
{
    if (strncmp(where, "unix:", 5) == 0)
        return where + 5;
    return where[0] == '/' || where[0] == '.' ? where : NULL;
}

int listen_check(const char *where, int mode, struct error *e)
{
    const char *path;
    char host[256], port[8];

    where = where ? where : LISTEN_DEFAULT;
    path = path_of(where);
    if (path && !*path)
        return error_set(e, WEIR_EUSAGE, "serve --listen: unix: without a path; write unix:/run/weir.sock");
    if (path && strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return error_set(e, WEIR_ECONFIG,
                         "serve --listen %.200s: longer than the %zu bytes of a unix socket's path", path,
                         sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
    if (path)
        return 0;
    if (mode >= 0)
        return error_set(
            e, WEIR_EUSAGE,
            "serve --socket-mode: only a unix socket has permissions; leave it out, or listen on "
            "unix:/run/weir.sock");
    if (!split(where, host, port))
        return error_set(e, WEIR_EUSAGE,
                         "serve --listen %.200s: not an address; write unix:/run/weir.sock or 127.0.0.1:8379",
                         where);
    if (atol(port) > PORT_MOST)
        return error_set(e, WEIR_EUSAGE, "serve --listen %.200s: not a port; give one from 1 to %d", where,
                         PORT_MOST);
    return 0;
}

int listen_open(struct listener *l, const char *where, bool open_to_all, int mode, struct error *e)
{
    const char *path;
    long given = given_count();

    *l = (struct listener){.fd = -1};
    if (given > 0 && (where || mode >= 0))
        return error_set(e, WEIR_ECONFIG,
                         "serve %s: systemd has opened a socket already; leave it out, and say it in the "
                         "socket's unit (ListenStream=, SocketMode=)",
                         where ? "--listen" : "--socket-mode");
    if (given > 1)
        return error_set(
            e, WEIR_ECONFIG,
            "serve: systemd has opened %ld sockets, and it takes one; in the socket's unit put an "
            "empty ListenStream= before your own",
            given);
    if (given == 1)
        return open_given(l, open_to_all, e);
    if (listen_check(where, mode, e) < 0)
        return e->status;
    where = where ? where : LISTEN_DEFAULT;
    path = path_of(where);
    return path ? open_path(l, path, mode, e) : open_address(l, where, open_to_all, e);
}

void listen_close(struct listener *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    if (l->path[0])
        unlink(l->path);
    l->path[0] = '\0';
}
