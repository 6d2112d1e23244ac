#include "tests/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/clock.h"
#include "tests/stage.h"
#include "tests/test.h"

/* -1: nobody listens; errno says why. */
static int dial(const char *where)
{
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(*where == '/' ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), failed;

    if (*where == '/') {
        snprintf(path.sun_path, sizeof path.sun_path, "%s", where);
        failed = connect(fd, (struct sockaddr *)&path, sizeof path);
    } else {
        address.sin_port = htons((uint16_t)atoi(where));
        failed = connect(fd, (struct sockaddr *)&address, sizeof address);
    }
    if (!failed)
        return fd;
    failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

bool http_listens(const char *where)
{
    int fd = dial(where);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

int http_open(const char *where)
{
    const struct timeval patience = {.tv_sec = 60};
    int fd = dial(where);

    if (fd < 0)
        fail_msg("cannot connect to %s: %s", where, strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

bool http_send(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

void http_ask(int fd, const char *method, const char *path)
{
    char text[4096];
    int len = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: x\r\n\r\n", method, path);

    if (!http_send(fd, text, (size_t)len))
        fail_msg("%s %s: the connection is closed", method, path);
}

void http_await_read(int fd)
{
    int left;

    await(ioctl(fd, SIOCOUTQ, &left) == 0 && left == 0);
}

/* One byte at a time: what follows belongs to the next answer. */
static bool receive_head(int fd, struct http_reply *reply)
{
    size_t len = 0;

    while (len < 4 || memcmp(reply->head + len - 4, "\r\n\r\n", 4) != 0) {
        ssize_t n = recv(fd, reply->head + len, 1, 0);

        if (n < 0 && errno == EAGAIN)
            fail_msg("no answer in a minute");
        if (n <= 0)
            return false;
        if (++len == sizeof reply->head)
            fail_msg("an answer without end");
    }
    reply->head[len - 2] = '\0';
    return true;
}

static void receive_body(int fd, struct http_reply *reply)
{
    size_t len = (size_t)atol(http_header(reply, "Content-Length")), at = 0;

    if (len >= sizeof reply->body)
        fail_msg("an answer of %zu bytes", len);
    while (at < len) {
        ssize_t n = recv(fd, reply->body + at, len - at, 0);

        if (n <= 0)
            fail_msg("an answer that ends too early");
        at += (size_t)n;
    }
    reply->body[at] = '\0';
}

bool http_receive(int fd, bool without_body, struct http_reply *reply)
{
    *reply = (struct http_reply){0};
    if (!receive_head(fd, reply))
        return false;
    if (sscanf(reply->head, "HTTP/1.%*d %d", &reply->status) != 1)
        fail_msg("no HTTP: %s", reply->head);
    if (!without_body)
        receive_body(fd, reply);
    return true;
}

void http_get(const char *where, const char *path, struct http_reply *reply)
{
    int fd = http_open(where);

    http_ask(fd, "GET", path);
    if (!http_receive(fd, false, reply))
        fail_msg("%s: closed without an answer", path);
    close(fd);
}

void http_request(const char *where, const char *method, const char *path, const char *headers,
                  const char *body, struct http_reply *reply)
{
    size_t len = body ? strlen(body) : 0;
    bool has_host = strstr(headers, "Host:") != NULL;
    int fd = http_open(where), head_len;
    char *text;

    head_len = asprintf(&text, "%s %s HTTP/1.1\r\n%s%sContent-Length: %zu\r\n\r\n", method, path,
                        has_host ? "" : "Host: localhost\r\n", headers, len);
    if (head_len < 0 || !http_send(fd, text, (size_t)head_len))
        fail_msg("%s %s: the connection is closed", method, path);
    (void)http_send(fd, body, len); /* it may be answered, and closed, before its end */
    if (!http_receive(fd, strcmp(method, "HEAD") == 0, reply))
        fail_msg("%s: closed without an answer", path);
    free(text);
    close(fd);
}

const char *http_header(const struct http_reply *reply, const char *name)
{
    static char values[8][512];
    static int next;
    char *value = values[next++ % 8];
    size_t len = strlen(name);

    *value = '\0';
    for (const char *line = reply->head; (line = strchr(line, '\n'));) {
        line++;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            snprintf(value, sizeof values[0], "%.*s", (int)strcspn(line + len + 2, "\r"), line + len + 2);
    }
    return value;
}
