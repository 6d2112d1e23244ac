/* Addresses of Redis. A message never quotes the URL: any part of a malformed one may be the password. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/number.h"
#include "core/wire/address.h"
#include "core/words.h"

#define DEFAULT_PORT 6379
#define SENTINEL_PORT 26379
#define FORMS                                                                                                \
    "write redis://[user:password@]host[:port][/database], rediss:// for TLS, host:port, "                   \
    "redis+sentinel://host[:port],.../name, redis+cluster://host[:port],..., "                               \
    "unix://[user:password@]/path[?db=n], /path or ./path"

static int malformed(struct error *e, const char *why)
{
    return error_set(e, WEIR_ECONFIG, "address of Redis: %s; " FORMS, why);
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

/* Reads a number of one to nine digits, which is all of text[0 .. len - 1]. */
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

/* "user:password", ":password", or "user" where the password is asked for */
static int read_login(const char *text, size_t len, struct redis_address *a, struct error *e)
{
    const char *colon = memchr(text, ':', len), *end = text + len;

    if (!decode(text, (size_t)((colon ? colon : end) - text), a->user, sizeof a->user) ||
        (colon && !decode(colon + 1, (size_t)(end - colon - 1), a->password, sizeof a->password)))
        return malformed(e, "the login is too long or not percent-encoded");
    if (colon && !a->password[0])
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

/* Reads "host", "host:port", "[v6]" or "[v6]:port". */
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

/* Reads "host:port,host:port", one or more; a host without a port has that of *a. */
static int read_seeds(const char *text, size_t len, struct redis_address *a, struct error *e)
{
    const char *end = text + len;
    struct redis_address seed;
    size_t used = 0;

    for (int i = 0; i == 0 || text < end; i++) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        size_t one = (size_t)((comma ? comma : end) - text);
        int status;

        seed = (struct redis_address){.port = a->port};
        status = read_host(text, one, &seed, e);
        if (status)
            return status;
        used += (size_t)snprintf(a->seeds + used, sizeof a->seeds - used,
                                 strchr(seed.host, ':') ? "%s[%s]:%d" : "%s%s:%d", i ? "," : "", seed.host,
                                 seed.port);
        if (i == SEEDS_MOST || used >= sizeof a->seeds)
            return malformed(e, "more than 16 hosts, or too long ones");
        text += one + (comma != NULL);
    }
    return end[-1] == ',' ? malformed(e, "a comma without a host behind it") : 0;
}

bool redis_address_seed(const struct redis_address *address, int i, struct redis_address *seed)
{
    const char *text = address->seeds;
    struct error e;

    for (; i > 0 && *text; i--) {
        text += strcspn(text, ",");
        text += *text == ',';
    }
    *seed = *address;
    seed->finder = REDIS_NAMED;
    seed->user[0] = seed->password[0] = seed->seeds[0] = '\0';
    seed->database = 0;
    return *text && read_host(text, strcspn(text, ","), seed, &e) == 0;
}

bool redis_address_is_same(const struct redis_address *a, const struct redis_address *b)
{
    return strcmp(a->host, b->host) == 0 && a->port == b->port;
}

/* Reads "name" or "name/database", behind the hosts of Sentinels; returns where the name ends. */
static const char *read_master(const char *text, struct redis_address *a)
{
    size_t len = strcspn(text, "/?#");

    return decode(text, len, a->master, sizeof a->master) && a->master[0] ? text + len : NULL;
}

/* ---- Behind the ? */

#define TEXT(name, member)                                                                                   \
    {                                                                                                        \
        name, offsetof(struct redis_address, member), sizeof(((struct redis_address *)0)->member)            \
    }
static const struct {
    const char *name;
    size_t at, size;
} texts[] = {
    TEXT("sni", sni),
    TEXT("cacert", cacert),
    TEXT("cacertdir", cacertdir),
    TEXT("cert", cert),
    TEXT("key", key),
    TEXT("password-file", password_file),
    TEXT("password-command", password_command),
    TEXT("sentinel-user", sentinel_user),
    TEXT("sentinel-password", sentinel_password),
};
#define PARAMETERS                                                                                           \
    "db, password-file, password-command, cacert, cacertdir, cert, key, sni, insecure, sentinel-user, "      \
    "sentinel-password"

static bool is_name(const char *text, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(text, name, len) == 0;
}

/* "name=value" */
static int read_parameter(const char *text, size_t len, struct redis_address *a, struct error *e)
{
    const char *equals = memchr(text, '=', len), *value = equals ? equals + 1 : text + len;
    size_t name = (size_t)(equals ? equals - text : (ptrdiff_t)len), value_len = (size_t)(text + len - value);

    if (is_name(text, name, "db"))
        return read_number(value, value_len, &a->database)
                   ? 0
                   : malformed(e, "db= must be a number, as in ?db=n");
    if (is_name(text, name, "insecure")) {
        a->insecure = true;
        return is_name(value, value_len, "yes") ? 0 : malformed(e, "insecure= must be yes");
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is_name(text, name, texts[i].name))
            return value_len > 0 && decode(value, value_len, (char *)a + texts[i].at, texts[i].size)
                       ? 0
                       : malformed(e, "a value behind the ? is empty, too long or not percent-encoded");
    return malformed(e, "behind the ? only " PARAMETERS " may stand, each as name=value, joined by &");
}

static bool names_certificates(const struct redis_address *a)
{
    return a->insecure || a->sni[0] || a->cacert[0] || a->cacertdir[0] || a->cert[0] || a->key[0];
}

/* What is right alone may not go together. */
static int check_all(const struct redis_address *a, struct error *e)
{
    int passwords = (a->password[0] != 0) + (a->password_file[0] != 0) + (a->password_command[0] != 0);
    char text[sizeof a->password_command], *words[sizeof text / 2 + 1];
    char sign = words_split(a->password_command, text, words, sizeof text / 2);

    if (sign)
        return error_set(e, WEIR_ECONFIG, "--password-command: " WORDS_FOR_SHELL, sign);
    if (passwords > 1)
        return malformed(e, "a password in several ways; leave one");
    if (a->user[0] && passwords == 0)
        return malformed(e, "a login without a password");
    if (!a->tls && names_certificates(a))
        return malformed(e, "certificates are for rediss:// alone");
    if (a->key[0] && !a->cert[0])
        return malformed(e, "a key without its certificate; name that too, cert=FILE or --tls-cert");
    return 0;
}

/* text is empty, or begins with the ?. The last one of a name counts. */
static int read_query(const char *text, struct redis_address *a, struct error *e)
{
    int status = 0;

    while (!status && *text) {
        size_t len = strcspn(++text, "&");

        status = read_parameter(text, len, a, e);
        text += len;
    }
    return status ? status : check_all(a, e);
}

static int read_redis(const char *text, struct redis_address *a, struct error *e)
{
    size_t len = strcspn(text, "/?#");
    const char *database = text + len, *at = memrchr(text, '@', len), *query;
    int status;

    if (at) {
        status = read_login(text, (size_t)(at - text), a, e);
        if (status)
            return status;
        len -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    status = a->finder == REDIS_NAMED ? read_host(text, len, a, e) : read_seeds(text, len, a, e);
    if (status)
        return status;
    if (a->finder == REDIS_BY_SENTINELS) {
        database = *database == '/' ? read_master(database + 1, a) : NULL;
        if (!database)
            return malformed(e, "the name of the master is missing: redis+sentinel://host1,host2/name");
    }
    if (*database == '/')
        database++;
    query = strchrnul(database, '?');
    if (query > database && !read_number(database, (size_t)(query - database), &a->database))
        return malformed(e, "the database must be a number");
    status = read_query(query, a, e);
    return !status && a->finder == REDIS_BY_CLUSTER && a->database
               ? malformed(e, "a cluster has database 0 alone")
               : status;
}

/* Finds where the query of a bare path begins: at the last ?, if a parameter stands behind it, as a path may have a ? of its own. */
static const char *find_query(const char *path)
{
    const char *query = strrchr(path, '?'), *end = path + strlen(path);
    size_t name;

    if (!query)
        return end;
    name = strcspn(query + 1, "=");
    if (!query[1 + name])
        return end;
    if (is_name(query + 1, name, "db"))
        return query;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (is_name(query + 1, name, texts[i].name))
            return query;
    return end;
}

static int read_path(const char *path, size_t len, struct redis_address *a, struct error *e)
{
    if (len >= sizeof a->socket_path)
        return malformed(e, "the path of the socket is longer than 107 bytes");
    memcpy(a->socket_path, path, len);
    return read_query(path + len, a, e);
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
    return status;
}

static const struct {
    const char *scheme;
    int (*read)(const char *text, struct redis_address *a, struct error *e);
    enum redis_finder finder;
    bool tls;
} schemes[] = {
    {"redis://", read_redis, REDIS_NAMED, false},
    {"rediss://", read_redis, REDIS_NAMED, true},
    {"unix://", read_unix, REDIS_NAMED, false},
    {"redis+sentinel://", read_redis, REDIS_BY_SENTINELS, false},
    {"redis-sentinel://", read_redis, REDIS_BY_SENTINELS, false},
    {"rediss+sentinel://", read_redis, REDIS_BY_SENTINELS, true},
    {"redis+cluster://", read_redis, REDIS_BY_CLUSTER, false},
    {"rediss+cluster://", read_redis, REDIS_BY_CLUSTER, true},
};

/* True for "host:port", with a database or without. */
static bool is_bare(const char *text)
{
    size_t host = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
    size_t port = text[host] == ':' ? strspn(text + host + 1, "0123456789") : 0;
    const char *rest = text + host + 1 + port;

    return host > 0 && port > 0 && (*rest == '\0' || *rest == '/' || *rest == '?');
}

int redis_address_parse(const char *url, struct redis_address *address, struct error *e)
{
    *address = (struct redis_address){.port = DEFAULT_PORT, .slot = CLUSTER_SLOT};
    if (*url == '/')
        return read_absolute_path(url, (size_t)(find_query(url) - url), address, e);
    if (strncmp(url, "./", 2) == 0 || strncmp(url, "../", 3) == 0)
        return read_path(url, (size_t)(find_query(url) - url), address, e);
    if (is_bare(url))
        return read_redis(url, address, e);
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t len = strlen(schemes[i].scheme);

        if (strncasecmp(url, schemes[i].scheme, len) != 0)
            continue;
        address->finder = schemes[i].finder;
        address->tls = schemes[i].tls;
        if (address->finder == REDIS_BY_SENTINELS)
            address->port = SENTINEL_PORT;
        return schemes[i].read(url + len, address, e);
    }
    return malformed(e, "it begins with none of these forms");
}

void redis_address_format(const struct redis_address *address, char *out, size_t size)
{
    bool v6 = strchr(address->host, ':') != NULL;
    const char *s = address->tls ? "s" : "";

    if (address->finder == REDIS_BY_SENTINELS)
        snprintf(out, size, "redis%s+sentinel://%s/%s/%d", s, address->seeds, address->master,
                 address->database);
    else if (address->finder == REDIS_BY_CLUSTER)
        snprintf(out, size, "redis%s+cluster://%s", s, address->seeds);
    else if (address->host[0])
        snprintf(out, size, "redis%s://%s%s%s:%d/%d", s, v6 ? "[" : "", address->host, v6 ? "]" : "",
                 address->port, address->database);
    else if (address->database)
        snprintf(out, size, "unix://%s?db=%d", address->socket_path, address->database);
    else
        snprintf(out, size, "%s%s", *address->socket_path == '/' ? "unix://" : "", address->socket_path);
}
