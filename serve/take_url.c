#include "serve/take_url.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "view/text.h"

#define TAKE "/take/"
#define HEALTH "/healthz"
#define SCHEME "http://"

/* Arguments stand behind the "?". */
struct arguments {
    const char *key, *cost, *denied; /* NULL: not given */
    const char *wrong;
};

static const char **place_of(struct arguments *a, const char *name)
{
    if (strcmp(name, "key") == 0)
        return &a->key;
    if (strcmp(name, "cost") == 0)
        return &a->cost;
    return strcmp(name, "denied") == 0 ? &a->denied : NULL;
}

static enum MHD_Result on_argument(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct arguments *a = arg;
    const char **place;

    (void)kind;
    assert(a);
    place = place_of(a, name);
    if (!place)
        a->wrong = "unknown argument; there are key, cost and denied";
    else if (*place)
        a->wrong = "an argument is given twice; give each once";
    else
        *place = value ? value : "";
    return MHD_YES;
}

/* Reads a number; -1: it is none, or there is none. */
static int64_t read_cost(const char *text)
{
    char *end;
    long long cost;

    errno = 0;
    cost = strtoll(text, &end, 10);
    return isdigit((unsigned char)*text) && !*end && !errno && cost > 0 ? cost : -1;
}

/* Makes the question; a cost that is no number may be one by name. */
static int make_question(const char *name, size_t name_len, const struct arguments *a,
                         struct take_question *q, const char **why)
{
    bool named = a->cost && strpbrk(a->cost, "=,");

    return take_make(q, name, name_len, a->key, named || !a->cost ? 0 : read_cost(a->cost),
                     named ? a->cost : NULL, why);
}

/* Reads the status of a denial; nginx's auth_request passes 403 on and takes 429 for a failure. 0: neither. */
static unsigned read_denied(const char *text)
{
    if (!text || strcmp(text, "429") == 0)
        return MHD_HTTP_TOO_MANY_REQUESTS;
    return strcmp(text, "403") == 0 ? MHD_HTTP_FORBIDDEN : 0;
}

/* what: behind "/take/". */
static unsigned read_take(struct MHD_Connection *connection, const char *what, struct wanted *wanted,
                          const char **why)
{
    size_t name_len = strcspn(what, "/");
    struct arguments a = {.key = NULL};

    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, on_argument, &a);
    if (what[name_len] && a.key)
        a.wrong = "two keys; give it in the path or as key=";
    if (what[name_len])
        a.key = what + name_len + 1;
    wanted->denied = read_denied(a.denied);
    if (!wanted->denied)
        a.wrong = "wrong denied; give 403 or 429";
    *why = a.wrong;
    if (a.wrong || make_question(what, name_len, &a, &wanted->q, why) < 0)
        return MHD_HTTP_BAD_REQUEST;
    return MHD_HTTP_OK;
}

const char *url_path(const char *path)
{
    const char *host = path + strlen(SCHEME);

    if (strncasecmp(path, SCHEME, strlen(SCHEME)) != 0 || !*host || *host == '/')
        return path;
    return host + strcspn(host, "/");
}

bool take_url_is(const char *address)
{
    size_t len;

    if (strncmp(address, TAKE, strlen(TAKE)) == 0)
        return true;
    address = url_path(address);
    len = strcspn(address, "?");
    return strncmp(address, TAKE, strlen(TAKE)) == 0 ||
           (len == strlen(HEALTH) && strncmp(address, HEALTH, len) == 0);
}

unsigned take_url_read(struct MHD_Connection *connection, const char *method, const char *path,
                       struct wanted *wanted, const char **why)
{
    *why = "only GET and HEAD are answered";
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    path = url_path(path);
    wanted->wish = WISH_HEALTH;
    if (strcmp(path, HEALTH) == 0)
        return MHD_HTTP_OK;
    wanted->wish = WISH_TAKE;
    if (strncmp(path, TAKE, strlen(TAKE)) == 0)
        return read_take(connection, path + strlen(TAKE), wanted, why);
    *why = "nothing here; ask for /take/NAME, /take/NAME/KEY or /healthz";
    return MHD_HTTP_NOT_FOUND;
}

size_t url_unescape(void *arg, struct MHD_Connection *connection, char *text)
{
    char *out = text;

    (void)arg, (void)connection;
    for (const char *at = text; *at; out++) {
        int byte = text_escaped(at);

        *out = byte > 0 ? (char)byte : *at;
        at += byte > 0 ? 3 : 1;
    }
    *out = '\0';
    return (size_t)(out - text);
}
