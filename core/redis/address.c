/* Addresses of Redis. A message never quotes the URL: any part of a malformed one may be the password. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/redis/redis.h"

#define DEFAULT_PORT 6379
#define FORMS                                                                                                \
    "write redis://[user:password@]host[:port][/database], host:port, unix://[user:password@]/path[?db=n], " \
    "/path or ./path"

static int malformed(struct error *e, const char *why)
{
    return error_set(e, WEIR_ECONFIG, "address of Redis: %s; " FORMS, why);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decodes text[0 .. len - 1]; false when it is malformed, holds a NUL or does not fit. */
static bool decode(const char *text, size_t len, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        int value = (unsigned char)text[i];

        if (value == '%') {
            int high = i + 2 < len ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < len ? hex_value(text[i + 2]) : -1;

            value = high < 0 || low < 0 ? 0 : high * 16 + low;
            i += 2;
        }
        if (value == 0 || n + 1 >= size)
            return false;
        out[n++] = (char)value;
    }
    out[n] = '\0';
    return true;
}

/* A number of one to nine digits, all of text[0 .. len - 1]. */
static bool read_number(const char *text, size_t len, int *number)
{
    *number = 0;
    if (len < 1 || len > 9)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        *number = *number * 10 + (text[i] - '0');
    }
    return true;
}

/* "user:password" or ":password" */
static int read_login(const char *text, size_t len, struct redis_address *a, struct error *e)
{
    const char *colon = memchr(text, ':', len);

    if (!colon)
        return malformed(e, "a login without a colon");
    if (!decode(text, (size_t)(colon - text), a->user, sizeof a->user) ||
        !decode(colon + 1, (size_t)(text + len - colon - 1), a->password, sizeof a->password))
        return malformed(e, "the login is too long or not percent-encoded");
    if (!a->password[0])
        return malformed(e, "a login without a password");
    return 0;
}

static int read_host_name(const char *host, size_t len, struct redis_address *a, struct error *e)
{
    if (len == 0)
        return malformed(e, "the host is missing");
    if (len >= sizeof a->host)
        return malformed(e, "the host is too long");
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)host[i] <= ' ' || host[i] == 0x7f || host[i] == '%')
            return malformed(e, "the host has a character that no host has");
    memcpy(a->host, host, len);
    return 0;
}

/* "host", "host:port", "[v6]", "[v6]:port" */
static int read_host(const char *text, size_t len, struct redis_address *a, struct error *e)
{
    bool v6 = len > 0 && *text == '[';
    const char *end = text + len, *host_end = memchr(text, v6 ? ']' : ':', len);
    const char *rest = host_end ? host_end + v6 : end;
    int status;

    if (v6 && !host_end)
        return malformed(e, "a bracket is not closed");
    if (!v6 && host_end && memchr(host_end + 1, ':', (size_t)(end - host_end - 1)))
        return malformed(e, "an IPv6 host needs brackets");
    status = read_host_name(text + v6, (size_t)((host_end ? host_end : end) - text - v6), a, e);
    if (status || rest == end)
        return status;
    if (*rest != ':' || !read_number(rest + 1, (size_t)(end - rest - 1), &a->port) || a->port < 1 ||
        a->port > 65535)
        return malformed(e, "the port must be a number from 1 to 65535");
    return 0;
}

static int read_redis(const char *text, struct redis_address *a, struct error *e)
{
    size_t len = strcspn(text, "/?#");
    const char *database = text + len, *at = memrchr(text, '@', len);
    int status;

    if (at) {
        status = read_login(text, (size_t)(at - text), a, e);
        if (status)
            return status;
        len -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    status = read_host(text, len, a, e);
    if (status)
        return status;
    if (*database == '/')
        database++;
    if (*database && !read_number(database, strlen(database), &a->database))
        return malformed(e, "the database must be a number");
    return 0;
}

static int read_path(const char *path, size_t len, struct redis_address *a, struct error *e)
{
    if (len >= sizeof a->socket_path)
        return malformed(e, "the path of the socket is longer than 107 bytes");
    memcpy(a->socket_path, path, len);
    return 0;
}

static int read_absolute_path(const char *path, size_t len, struct redis_address *a, struct error *e)
{
    if (len < 2 || *path != '/')
        return malformed(e, "the path of the socket is not absolute");
    return read_path(path, len, a, e);
}

static int read_unix(const char *text, struct redis_address *a, struct error *e)
{
    size_t login = strcspn(text, "/");
    const char *path = text + login, *query = strchrnul(path, '?');
    int status = 0;

    if (login > 0 && text[login - 1] == '@')
        status = read_login(text, login - 1, a, e);
    else if (login > 0)
        return malformed(e, "the path of the socket is not absolute");
    if (!status)
        status = read_absolute_path(path, (size_t)(query - path), a, e);
    if (status || !*query)
        return status;
    if (strncmp(query, "?db=", 4) != 0 || !read_number(query + 4, strlen(query + 4), &a->database))
        return malformed(e, "behind the path only ?db=n may stand");
    return 0;
}

static int refuse_tls(const char *text, struct redis_address *a, struct error *e)
{
    (void)text;
    (void)a;
    return error_set(
        e, WEIR_ECONFIG,
        "address of Redis: rediss:// is not supported: Weir has no TLS of its own; run stunnel (client = "
        "yes) beside it and name its socket, unix:///path");
}

static const struct {
    const char *scheme;
    int (*read)(const char *text, struct redis_address *a, struct error *e);
} schemes[] = {{"redis://", read_redis}, {"unix://", read_unix}, {"rediss://", refuse_tls}};

/* "host:port", with a database or without. */
static bool is_bare(const char *text)
{
    size_t host = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
    size_t port = text[host] == ':' ? strspn(text + host + 1, "0123456789") : 0;
    const char *rest = text + host + 1 + port;

    return host > 0 && port > 0 && (*rest == '\0' || *rest == '/');
}

int redis_address_parse(const char *url, struct redis_address *address, struct error *e)
{
    *address = (struct redis_address){.port = DEFAULT_PORT};
    if (*url == '/')
        return read_absolute_path(url, strlen(url), address, e);
    if (strncmp(url, "./", 2) == 0 || strncmp(url, "../", 3) == 0)
        return read_path(url, strlen(url), address, e);
    if (is_bare(url))
        return read_redis(url, address, e);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i].scheme);

        if (strncasecmp(url, schemes[i].scheme, len) == 0)
            return schemes[i].read(url + len, address, e);
    }
    return malformed(e, "it begins with none of redis://, unix://, /, ./ and ../");
}

void redis_address_format(const struct redis_address *address, char *out, size_t size)
{
    bool v6 = strchr(address->host, ':') != NULL;

    if (address->host[0])
        snprintf(out, size, "redis://%s%s%s:%d/%d", v6 ? "[" : "", address->host, v6 ? "]" : "",
                 address->port, address->database);
    else if (address->database)
        snprintf(out, size, "unix://%s?db=%d", address->socket_path, address->database);
    else
        snprintf(out, size, "%s%s", *address->socket_path == '/' ? "unix://" : "", address->socket_path);
}
